"""Deletion of threads after a look at what goes and what stays, of which `delete` and `prune` consist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hitl_tui.errors import HitlError
from hitl_tui.verbs.conversation import (
    NOTE,
    Ask,
    AskChoice,
    AskField,
    AskReply,
    AskRows,
    At,
    Report,
    Show,
    Talk,
    Work,
)
from hitl_tui.view.format import capital, count

if TYPE_CHECKING:
    from hitl_tui.engine.log.records import LedgerEntry
    from hitl_tui.stores.deletion import DeletionPlan, Retention
    from hitl_tui.view.deletion import DeleteDocument

FORCE: Final = AskField(
    "force",
    "also threads that run or wait: yes or no",
    about="Also delete threads that run or wait for a person.",
    switch=True,
)
DRY_RUN: Final = "Only show what would be deleted."
_LEDGER: Final = (
    "The ledger of the store keeps who did it, when, why, and the last hashes; nothing else remains."
)


class _Unneeded(HitlError):
    """Nobody waits any more for what would be deleted."""


async def deletion(at: At, what: Sequence[str] | Retention, *, forks: bool = True) -> Talk:
    """Show which threads go and which stay, ask, and delete.

    Args:
        what: the threads, or the rule of `prune`.
        forks: where all or none are deleted, their forks may go with them.
    """
    from hitl_tui.view.deletion import kept_words, plan_words

    force = AskReply("", at.given).yes(FORCE.name)
    while True:
        plan = yield _look(at, what, forks=forks, force=force)
        if plan is None:
            return
        if at.leaves and not plan.going:
            kept = kept_words(plan.kept)
            yield Show(plan_words(plan), document=_document(at, plan), more=(kept,) if kept else ())
            return
        reply = yield _preview(at, plan)
        if reply is None:
            return
        if reply.choice != FORCE.name:
            break
        force = not force
    entries: list[LedgerEntry] = []
    try:
        yield _delete(at, plan, reply.text(NOTE.name), entries)
    except HitlError:
        if entries:
            yield _result(plan, entries, None)
        raise
    yield _result(plan, entries, _document(at, plan, entries))


def _look(at: At, what: Sequence[str] | Retention, *, forks: bool, force: bool) -> Work:
    """Find out what would be deleted; None if that was stopped."""

    async def look(report: Report) -> DeletionPlan | None:
        def watch(done: int, of: int) -> None:
            if not report(done, of):
                raise _Unneeded("it was stopped")

        try:
            return await at.hub.plan_deletion(
                what, force=force, spared=at.opened, together=at.leaves, forks=forks, watch=watch
            )
        except _Unneeded:
            return None

    return Work("looking…", look, stopping="nothing is deleted")


def _preview(at: At, plan: DeletionPlan) -> Ask:
    from hitl_tui.view.deletion import kept_words, leaving_line, plan_words, stays_lines

    now = at.hub.now()
    text = [f"{capital(plan_words(plan))}."]
    text += [f"{capital(words)}." for words in (plan.rule, kept_words(plan.kept)) if words]
    choices = [
        AskChoice(
            FORCE.name,
            "f",
            "only those that neither run nor wait" if plan.force else "include those that run or wait",
            switch=FORCE.name,
        )
    ]
    if plan.going:
        text.append(_LEDGER)
        going = f"delete {count(len(plan.going), 'thread')} for good"
        choices.insert(0, AskChoice("delete", "d", going, final=True))
    return Ask(
        "Delete threads",
        tuple(text),
        tuple(choices),
        (NOTE,) if plan.going else (),
        confirm=True,
        document=_document(at, plan),
        rows=(
            AskRows(tuple(leaving_line(thread, now) for thread in plan.going)),
            AskRows(tuple(stays_lines(plan)), "These would be kept:"),
        ),
    )


def _delete(at: At, plan: DeletionPlan, note: str | None, entries: list[LedgerEntry]) -> Work:
    """Delete the threads of a plan; what was deleted is added to the entries."""

    async def delete(report: Report) -> None:
        def on_batch(gone: Sequence[LedgerEntry]) -> bool:
            entries.extend(gone)
            return report(len(entries), len(plan.going))

        await at.hub.delete(plan, actor=at.actor or None, note=note, on_batch=on_batch, alone=at.leaves)

    return Work("deleting…", delete, stopping="stopping after the current batch")


def _result(plan: DeletionPlan, entries: Sequence[LedgerEntry], document: DeleteDocument | None) -> Show:
    from hitl_tui.view.deletion import left_lines, result_words

    gone = {entry.thread_id for entry in entries}
    return Show(result_words(plan, len(gone)), document=document, more=tuple(left_lines(plan, gone)))


def _document(at: At, plan: DeletionPlan, entries: Sequence[LedgerEntry] = ()) -> DeleteDocument:
    from hitl_tui.view.deletion import DeleteDocument, DeletedThread

    return DeleteDocument(
        threads=plan.going,
        dry_run=at.dry_run,
        entries=tuple(DeletedThread(entry.thread_id, entry) for entry in entries),
        rule=plan.rule,
        kept=dict(plan.kept),
    )
