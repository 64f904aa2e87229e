"""Run a thread again in a fork, from where its code changed.

A step is still valid while its node, its route, its questions and the reducers of what it wrote are
unchanged. NEW is the fork's name, THREAD-b by default. First you see what changed, which nodes run again,
which of them have side effects, and what they used last time. Then the fork runs until it waits for a
person, fails or ends. Compare it with `hitl-tui diff THREAD NEW`.

    hitl-tui rerun r1 --dry-run
    hitl-tui rerun r1 r1-fixed
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.commands import ReloadGraph, Rerun, Run
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.errors import HitlError
from hitl_tui.verbs.conversation import (
    FORK_DRY_RUN,
    NOTE,
    Ask,
    AskChoice,
    AskField,
    AskReply,
    At,
    Do,
    Follow,
    Open,
    Show,
    Talk,
    Verb,
)
from hitl_tui.view.actions import Action, Situation, has_steps, running_now, when_open
from hitl_tui.view.family import free_name
from hitl_tui.view.repeats import repeat_lines, standing_words
from hitl_tui.view.shapes import ForkDocument, RepeatsDocument

_NEW: Final = AskField("new", "name of the fork", rare=True)
_NOTE: Final = replace(NOTE, rare=True)


@when_open
def _disabled(now: Situation) -> str:
    return now.refusal(Rerun) or has_steps(now) or running_now(now)


async def _talk(at: At) -> Talk:
    """Say which steps are kept and what would run again; run that in a fork, or only reload the graph."""
    driver, thread = at.driver, at.driver.thread_id
    proposed = free_name(thread, {relative.thread_id for relative in await driver.family()})
    repeats = (await driver.preview(Rerun(proposed, at.actor))).repeats
    snapshot = await driver.snapshot()
    document = RepeatsDocument(thread=thread, repeats=repeats)
    if (repeats is None or repeats.head <= 0) and snapshot.graph_changed is None:
        yield Show("nothing to run again; the graph's file is unchanged", document=document)
        return
    reply, refused = AskReply("reload", {}), None
    while repeats is not None and repeats.head > 0:
        name = reply.text("new") or at.given.get("new") or proposed
        texts = ((_NEW, name), (_NOTE, reply.text("note") or ""))
        fields = tuple(replace(field, value=text, rare=refused is None) for field, text in texts)
        choices = _choices(repeats, snapshot, name)
        reply = yield Ask("Again", _text(repeats, snapshot), choices, fields, refused, document=document)
        if reply is None:
            return
        if reply.choice == "reload":
            break
        try:
            new = yield Do(Rerun(reply.text("new") or name, at.actor, reply.text("note")))
        except HitlError as error:
            refused = error
        else:
            fork = yield Open(new)
            step = (await fork.snapshot()).fork_step
            yield Show(
                f"Forked {thread!r} at step {step} as {new!r}",
                document=ForkDocument(thread=new, parent=thread, step=step),
                hint=("look.compare", f"compares it with {thread}"),
            )
            yield Follow(Run(), fork)
            return
    differences = yield Do(ReloadGraph(at.actor))
    yield Show("The graph was reloaded", more=differences)


def _text(repeats: Repeats, snapshot: Snapshot) -> tuple[str, ...]:
    kept = (standing_words(repeats), *repeat_lines(repeats, in_fork=True), *(snapshot.graph_changed or ()))
    return kept if _runs(repeats, snapshot) else (*kept, "Nothing has to run again; a fork of a step would.")


def _choices(repeats: Repeats, snapshot: Snapshot, name: str) -> tuple[AskChoice, ...]:
    choices = []
    if _runs(repeats, snapshot):
        begin = f"run from step {repeats.step}" if repeats.step else "run all steps again"
        choices.append(AskChoice("again", "R", f"{begin} in the fork {name}"))
    if snapshot.graph_changed is not None:
        choices.append(AskChoice("reload", "l", "only reload the graph; continue in this thread"))
    return tuple(choices)


def _runs(repeats: Repeats, snapshot: Snapshot) -> bool:
    """Return whether a fork would run anything."""
    is_over = snapshot.progress.status in ("completed", "cancelled")
    return bool(repeats.nodes or repeats.rerouted or not is_over)


VERB = Verb(
    Rerun,
    _talk,
    Action(
        "run.again",
        "R",
        "Again",
        "Run again in a fork, from where the saved code differs",
        "Run",
        _disabled,
    ),
    after="run.breaks",
    letter="R",
    arguments=(_NEW,),
    options=(_NOTE,),
    dry_run=FORK_DRY_RUN,
    builds=True,
)
