"""Undo the side effects of a thread's nodes.

Runs the handlers that the nodes left, last one first. If one fails, that is recorded and the others still
run. The thread ends cancelled, with exit code 0, or failed with the remaining ones, with 1; the next
rollback tries them again. If somebody pauses it, the exit code is 3. Without --yes it shows what would run,
and asks.

    hitl-tui rollback trip --dry-run
    hitl-tui rollback trip --yes --note "not needed"
"""

from __future__ import annotations

from typing import Annotated

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Rollback
from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.engine.log.events import AttemptFailed, ChildMoved, NodeStarted, Progress, StepCommitted
from hitl_tui.engine.log.records import ROLLBACK
from hitl_tui.engine.log.units import Inline, about
from hitl_tui.errors import ExitCode, UsageError
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, At, Follow, Show, Talk, Verb
from hitl_tui.view.actions import Action, Situation, running_now, when_open
from hitl_tui.view.rollback import entry_line, entry_rows, remaining, summary
from hitl_tui.view.shapes import Document
from hitl_tui.view.spans import Line


class RollbackDocument(Document, frozen=True):
    """`rollback`: what can be undone, and what was."""

    thread: Annotated[str, about("The thread.")]
    progress: Inline[Progress]
    dry_run: Annotated[bool, about("Whether it was a dry run.")]
    entries: Annotated[tuple[RollbackEntry, ...], about("The entries in the order they run.")]
    exit_code: Annotated[int, about("The exit code of the command.")]


class _Handlers:
    """How far the handlers are, as rows.

    Args:
        seen: the newest event before the rollback.
    """

    def __init__(self, driver: Driver, seen: int) -> None:
        self._driver, self._seen = driver, seen
        self._running = ("", "")

    async def rows(self) -> list[Line]:
        """Return what became of each handler so far, and which one runs."""
        for stamped in self._driver.events(self._seen):
            self._seen = stamped.number
            match stamped.event:
                case NodeStarted(node=node):
                    self._running = (node, "")
                case ChildMoved(running=node, thread_id=thread):
                    self._running = (node, thread)
                case StepCommitted() | AttemptFailed():
                    self._running = ("", "")
        return entry_rows(await self._driver.rollback_entries(), *self._running)


@when_open
def _disabled(now: Situation) -> str:
    return now.refusal(Rollback) or (running_now(now) if now.has_steps else "there is nothing to undo yet")


async def _talk(at: At) -> Talk:
    """Show what would run, run it after a yes, and say what came of it."""
    driver = at.driver
    entries = await driver.rollback_entries()
    snapshot = await driver.snapshot()
    progress = snapshot.progress
    left = remaining(entries)
    document = _document(driver, progress, entries, dry_run=True)
    over = progress.position != ROLLBACK or progress.status in ("completed", "cancelled")
    if not left and over:
        if why := driver.refusal(Rollback):
            raise UsageError(f"thread {driver.thread_id!r} takes no rollback", why)
        words = f": {summary(entries)}" if entries else ""
        yield Show(f"Nothing is left to undo{words}.", document=document)
        return
    lines = [f"{number}. {entry_line(entry)}" for number, entry in enumerate(left, 1)]
    reply = yield Ask(
        "Roll back: these run in this order" if left else "Roll back: only its end is left",
        tuple(lines) or ("All handlers have run. This ends the rollback.",),
        (AskChoice("rollback", "r", "roll back", "each as its own step"),),
        (NOTE,),
        confirm=True,
        document=document,
    )
    if reply is None:
        return
    yield Follow(
        Rollback(at.actor, reply.text("note")),
        title="Roll back",
        text="Rolling back…",
        progress=_Handlers(driver, snapshot.last_event).rows,
    )
    yield _outcome(driver, (await driver.snapshot()).progress, await driver.rollback_entries())


def _outcome(driver: Driver, progress: Progress, entries: tuple[RollbackEntry, ...]) -> Show:
    codes = {"cancelled": ExitCode.DONE, "waiting": ExitCode.WAITING}
    code = codes.get(progress.status, ExitCode.FAILED)
    words = {ExitCode.DONE: "Rolled back", ExitCode.WAITING: "Paused"}.get(code, "Not complete")
    return Show(
        f"{words}: {summary(entries)}.",
        document=_document(driver, progress, entries, code),
        more=tuple(entry_line(entry) for entry in entries if entry.state == "failed"),
        code=code,
    )


def _document(
    driver: Driver,
    progress: Progress,
    entries: tuple[RollbackEntry, ...],
    code: ExitCode = ExitCode.DONE,
    *,
    dry_run: bool = False,
) -> RollbackDocument:
    return RollbackDocument(
        thread=driver.thread_id, progress=progress, dry_run=dry_run, entries=entries, exit_code=int(code)
    )


VERB = Verb(
    Rollback,
    _talk,
    Action(
        "change.rollback",
        "U",
        "Roll back",
        "Undo the side effects of the nodes, last one first",
        "Change",
        _disabled,
    ),
    after="change.allowed",
    letter="u",
    options=(NOTE,),
    dry_run="Only show what would run, in its order.",
    confirms=True,
)
