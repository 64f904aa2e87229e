"""Before something is typed: whether it can be done at all; after a refusal: what was typed is given back."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.errors import AnswerRefused, HitlError, StaleWriter, ThreadBusy, UsageError
from hitl_tui.plain.console import refusal
from hitl_tui.plain.content import content
from hitl_tui.plain.differing import changed_since
from hitl_tui.plain.talk import Talk

Doing: TypeAlias = Literal["can_edit", "can_answer", "can_fork", "can_cancel", "can_roll_back", "can_reload"]

_WORDS = 100


_WITHOUT_GRAPH: frozenset[Doing] = frozenset({"can_cancel", "can_reload"})


def ready_to(talk: Talk, doing: Doing) -> Snapshot:
    """The thread as it is, its graph built; what it can't take is refused before anybody types for it.

    Raises:
        UsageError: it can only be looked at.
        HitlError: its graph can't be built.
        ThreadBusy: another process runs it; a fork can be made all the same.
    """
    snapshot = talk.snapshot()
    can = snapshot.capabilities
    if not getattr(can, doing):
        raise UsageError(f"thread {snapshot.thread_id!r} can only be looked at", can.why_not)
    if snapshot.held_by and doing != "can_fork":
        raise ThreadBusy(
            f"thread {snapshot.thread_id!r} is run by {snapshot.held_by}",
            "wait until it is done; you can look at it, or fork it",
        )
    if doing not in _WITHOUT_GRAPH:
        return talk.prepare()
    return snapshot


def give_back(talk: Talk, error: HitlError, step: int, *typed: tuple[str, str | None]) -> None:
    """Say why something was refused, what has changed since the step it was about, and what was typed for it.

    Args:
        typed: what to call each text, and the text; what was left empty is not told.
    """
    if isinstance(error, AnswerRefused | StaleWriter):
        now = talk.run(talk.driver.snapshot()).progress.head
        error.details = talk.run(changed_since(talk.driver, step, now))
    talk.console.say(*refusal(error), "Nothing was stored.")
    for label, text in typed:
        if text:
            talk.console.say(f"Your {label}:", *content(text.split("\n"), _WORDS))
