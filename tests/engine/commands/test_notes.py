"""Notes on steps: a ledger entry of a kind of its own, whatever the status of the thread."""

from __future__ import annotations

import pytest

from hitl_tui import Gate, GateChoice, UnknownThread, UsageError
from hitl_tui.drivers.breakpoints import Hits, RunStops, stopped_by
from hitl_tui.engine.audit.verify import verify
from hitl_tui.engine.commands import Cancel, Note, Start
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.errors import ThreadBusy
from hitl_tui.stores import Checkpointer
from tests.support.flows import Clock, Desk, review_loop
from tests.support.spec import spec

pytestmark = spec("10")

GATE = Gate("check", title="verdict", choices=[GateChoice("approve", "ok")])


def started(store: Checkpointer) -> Desk:
    desk = Desk(review_loop(store, interrupt_after=[GATE]), "t", Clock())
    desk.do(Start({}, actor="ann"))
    desk.run()
    return desk


def test_it_is_kept_on_its_step_and_changes_nothing_else(store: Checkpointer) -> None:
    desk = started(store)
    before = desk.session.cursor
    desk.do(Note("  look here ", 0, "ann"))
    desk.do(Note("and here"))
    notes = [entry for entry in store.ledger("t") if entry.kind == "note"]
    assert [(one.step, one.actor, one.note, one.made_by) for one in notes] == [
        (0, "ann", "look here", "person"),
        (2, None, "and here", "person"),
    ]
    after = desk.session.cursor
    assert (after.head, after.pending, after.position) == (before.head, before.pending, before.position)
    desk.do(Cancel())
    desk.do(Note("too late", 1, "bob"))
    assert desk.session.cursor.status == "cancelled"
    assert verify(store, "t").ok


def test_an_empty_one_and_one_on_no_step_are_refused(store: Checkpointer) -> None:
    desk = started(store)
    kept = len(store.ledger("t"))
    for text in ("", " \n "):
        with pytest.raises(UsageError, match="the note is empty"):
            Note(text)
    for step in (3, -1):
        with pytest.raises(UnknownThread, match="has no step"):
            desk.do(Note("here", step))
    assert len(store.ledger("t")) == kept


def test_what_stopped_the_thread_is_still_known_after_it(store: Checkpointer) -> None:
    desk = Desk(review_loop(store), "t", Clock())
    desk.do(Start({}))
    stops = RunStops((Breakpoint("before", "check"),), desk.session.graph.info, Hits())
    progress, at = desk.run(on_limit="pause", stops=stops).progress, "breakpoint before check"
    assert stopped_by(progress, store.ledger("t")) == at
    desk.do(Note("why here?", 0))
    assert stopped_by(progress, store.ledger("t")) == at
    assert desk.run(on_limit="pause", stops=stops).progress.head > progress.head


def test_while_the_thread_runs_it_is_refused(store: Checkpointer) -> None:
    desk = started(store)
    with desk.session.writing(), pytest.raises(ThreadBusy):
        desk.do(Note("now"))
