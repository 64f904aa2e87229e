"""Shared by the verbs about a request: which request is meant, and who has claimed it or has it open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.log.requests import HandedOn, Request
from hitl_tui.engine.log.threads import Presence
from hitl_tui.engine.log.units import about, span_of
from hitl_tui.errors import UsageError
from hitl_tui.verbs.conversation import Ask, AskChoice, AskField, At, Show
from hitl_tui.view.answers import pick_request
from hitl_tui.view.lines import name
from hitl_tui.view.presence import at_request, attending_words
from hitl_tui.view.shapes import Document
from hitl_tui.view.status import standing_line

REQUEST: Final = AskField(
    "request",
    "which request, by its id",
    about="Which request, if there are several.",
    metavar="ID",
    rare=True,
)
TAKE_OVER: Final = AskField(
    "take_over",
    "take it over from (name)",
    about="Take it over from NAME, who claimed it.",
    metavar="NAME",
    rare=True,
)


def minutes_of(typed: str) -> float | None:
    """Return the minutes of a time such as 90s, 15m or 2h; None if none was typed.

    Raises:
        UsageError: it is not a time.
    """
    if not typed.strip():
        return None
    try:
        return span_of(typed.strip()) / 60e6
    except ValueError as error:
        raise UsageError(f"for: {error}", "give it as 90s, 15m or 2h") from None


class AttendingDocument(Document, frozen=True):
    """`claim`, `unclaim`, `hand-over`: who is at a request."""

    thread: Annotated[str, about("The thread.")]
    request: Annotated[str, about("The request.")]
    step: Annotated[int, about("The step it is about.")]
    handed: Annotated[HandedOn | None, about("Who must decide it now.")]
    attending: Annotated[tuple[Presence, ...], about("Who has it open, or has claimed it.")]


def which_request(at: At, snapshot: Snapshot) -> Ask | None:
    """Return the question which of several requests is meant; None if only one can be."""
    waiting = [request for request in snapshot.progress.pending if not request.breakpoint]
    if len(waiting) < 2 or at.leaves or at.request or at.given.get("request"):
        return None
    return Ask(
        f"{len(waiting)} requests wait",
        (),
        tuple(AskChoice(request.id, str(number), request.title) for number, request in enumerate(waiting, 1)),
    )


def request_of(at: At, snapshot: Snapshot, chosen: str = "") -> Request:
    """Return the request that is meant.

    Args:
        chosen: its id, if it was asked for.

    Raises:
        UsageError: no request waits, or several do and none was named.
    """
    where = standing_line(snapshot.progress, snapshot.held_by, snapshot.ledger)
    wanted = chosen or at.given.get("request") or at.request or None
    return pick_request(snapshot.progress.pending, wanted, f"thread {snapshot.thread_id!r}: {where}")


async def who_attends(at: At, asked: Request, before: Sequence[str] = ()) -> Show:
    """Return what is to be shown of a request once it was claimed, released or handed over.

    Args:
        before: said first.
    """
    snapshot = await at.driver.snapshot()
    request = next((other for other in snapshot.progress.pending if other.id == asked.id), asked)
    there = tuple(at_request(snapshot.attending, request))
    words = [*before, *attending_words(request, there, at.actor)] or ["no longer claimed"]
    return Show(
        f"{name(request.title)}: {'; '.join(words)}",
        document=AttendingDocument(
            thread=snapshot.thread_id,
            request=request.id,
            step=request.step,
            handed=request.handed,
            attending=there,
        ),
        visible=True,
    )
