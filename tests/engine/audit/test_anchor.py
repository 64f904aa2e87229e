"""An anchor finds what the chains can't: a store put back to an earlier copy, or written anew as a whole."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import GraphRunner
from hitl_tui.engine.audit.anchor import Anchor, anchor, read_anchor
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.engine.thread.session import now_us
from hitl_tui.errors import UsageError
from hitl_tui.stores import Checkpointer, MemoryCheckpointer, SQLiteCheckpointer
from tests.engine.audit.logs import graph, run
from tests.engine.audit.rich import fill, runner
from tests.support.spec import spec

pytestmark = spec("10")


def findings(store: Checkpointer, thread: str, *anchors: Anchor) -> list[tuple[str, str]]:
    return [(one.kind, one.field) for one in verify_tree(store, thread, anchors=anchors).mismatches]


def test_every_kind_of_thread_matches_its_anchor_and_continues() -> None:
    store = MemoryCheckpointer()
    fill(store)
    names = [row.info.thread_id for row in store.threads("", 999)]
    anchors = [anchor(store, name, now_us()) for name in names]
    made = runner(store)
    for name in ("waits", "early", "carried", "bare"):
        made.update_state(name, {"total": 1}, actor="ann")
    assert {name: findings(store, name, *anchors) for name in names} == {name: [] for name in names}


@pytest.mark.slow
def test_an_anchor_detects_a_store_restored_from_an_older_copy(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(SQLiteCheckpointer(path)) as store:
        run(store)
    shutil.copy(path, tmp_path / "earlier.db")
    with closing(SQLiteCheckpointer(path)) as store:
        made = graph().compile(checkpointer=store)
        made.update_state("t", {"total": 1}, actor="ann")
        known = made.anchor("t")
        made.extend_limits("t", actor="ann", max_iterations=101)
        later = made.anchor("t")
        assert made.verify("t", anchor=[known, later]).ok
    shutil.copy(tmp_path / "earlier.db", path)
    with closing(SQLiteCheckpointer(path)) as store:
        made = graph().compile(checkpointer=store)
        assert made.verify("t", strict=True).ok
        found = made.verify("t", anchor=read_anchor(str(known))).mismatches
        assert [(one.kind, one.step, one.field) for one in found] == [
            ("anchor", 82, "checkpoint_hash"),
            ("anchor", 82, "ledger_hash"),
        ]
        made.update_state("t", {"total": 1}, actor="eve")
        assert findings(store, "t", known)[0] == ("anchor", "checkpoint_hash")


def test_an_anchor_detects_a_completely_rewritten_log() -> None:
    logs = []
    for actor in ("ann", "eve"):
        store = MemoryCheckpointer()
        made = runner(store)
        made.invoke({"notes": "go"}, thread_id="t")
        made.update_state("t", {"total": 1}, actor=actor)
        logs.append(store)
    true, rewritten = logs
    known = anchor(true, "t", now_us())
    assert findings(true, "t", known) == []
    assert verify_tree(rewritten, "t").ok
    assert findings(rewritten, "t", known) == [("anchor", "checkpoint_hash"), ("anchor", "ledger_hash")]


def test_anchors_of_other_threads_alone_are_a_usage_error() -> None:
    store = MemoryCheckpointer()
    fill(store)
    known = anchor(store, "undone", now_us())
    with pytest.raises(UsageError, match="none of these anchors is about thread 'waits', but about 'undone'"):
        verify_tree(store, "waits", anchors=[known])


@pytest.mark.parametrize("line", ["", "{", "[]", '{"thread": 1}', "\udcff", "[" * 100_000])
def test_an_invalid_anchor_line_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="not an anchor line"):
        read_anchor(line)


class TestSince:
    """A log that is checked from an anchor's step on."""

    @pytest.fixture
    def made(self) -> GraphRunner:
        return run(MemoryCheckpointer(), 12)

    def test_steps_after_the_anchor_are_checked_and_follow_from_it(self, made: GraphRunner) -> None:
        known = made.anchor("t")
        made.update_state("t", {"total": 1}, actor="ann")
        report = made.verify("t", anchor=known, since=known.step)
        assert report.ok
        assert (report.since, report.checkpoints) == (known.step, 2)

    def test_another_log_than_the_anchor_names_is_found(self, made: GraphRunner) -> None:
        known = run(MemoryCheckpointer(), 12).anchor("t")
        report = made.verify("t", anchor=known, since=known.step)
        assert [(one.kind, one.field) for one in report.mismatches] == [
            ("anchor", "checkpoint_hash"),
            ("anchor", "ledger_hash"),
        ]

    def test_a_check_since_a_step_trusts_the_anchor_of_that_step(self, made: GraphRunner) -> None:
        known = made.anchor("t")
        for anchors in ((), (known,)):
            with pytest.raises(UsageError, match="no anchor says where thread 't' was at step 3"):
                made.verify("t", anchor=anchors, since=3)

    def test_a_strict_check_is_of_the_whole_log(self, made: GraphRunner) -> None:
        known = made.anchor("t")
        with pytest.raises(UsageError, match="whole log"):
            made.verify("t", strict=True, anchor=known, since=known.step)
