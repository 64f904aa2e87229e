"""What `verify` tells of a log that is whole, and of reducers that are not what they were."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.engine.audit.verify import verify
from hitl_tui.errors import UnknownThread, UsageError
from hitl_tui.stores import Checkpointer, SQLiteCheckpointer
from tests.engine.audit.logs import CHANNELS, graph, run
from tests.support.spec import spec

pytestmark = spec("12")


class TestWhole:
    def test_an_intact_log_has_no_findings(self, store: Checkpointer) -> None:
        runner = run(store)
        for report in (runner.verify("t"), runner.verify("t", strict=True)):
            assert report.mismatches == ()
            assert (report.ok, report.records, report.checkpoints) == (True, 1 + 80 * CHANNELS + 2, 82)
            assert report.unchecked == 0

    def test_forks_are_checked_through_their_parents(self, store: Checkpointer) -> None:
        runner = run(store)
        runner.fork("t", 40, "f", changes={"n": 79}, actor="ann")
        runner.invoke(thread_id="f")
        runner.fork("f", 41, "g")
        for thread in ("f", "g"):
            assert runner.verify(thread, strict=True).mismatches == ()

    def test_without_the_graph_verify_says_what_it_could_not_compare(self, store: Checkpointer) -> None:
        run(store)
        report = verify(store, "t")
        assert report.mismatches == ()
        # The first snapshot tells of channels that nothing writes.
        assert 0 < report.unchecked < 40

    def test_saved_threads_have_no_other_channels(self, store: Checkpointer) -> None:
        for step in range(20):
            store.save("s", step, {"a": [step], f"c{step}": "x" * 900})
        for report in (verify(store, "s"), graph().compile(checkpointer=store).verify("s")):
            assert report.mismatches == ()
        assert verify(store, "s").unchecked == 0

    def test_an_empty_or_unknown_thread(self, store: Checkpointer) -> None:
        with pytest.raises(UnknownThread):
            verify(store, "none")
        store.save("s", 0, {})
        with pytest.raises(UsageError, match="channels"):
            verify(store, "s", strict=True)
        assert verify(store, "s").ok

    def test_it_changes_nothing(self, store: Checkpointer) -> None:
        runner = run(store)
        before = (store.cursor("t"), store.ledger("t"), store.lease("t"))
        runner.verify("t", strict=True)
        assert (store.cursor("t"), store.ledger("t"), store.lease("t")) == before


class TestStrict:
    def test_a_changed_custom_reducer_is_reported_where_it_differs(self, store: Checkpointer) -> None:
        run(store)

        def longest(old: Any, new: Any) -> Any:
            return min(old or "", new, key=len)

        longest.__qualname__ = "longest"
        changed = graph(longest).compile(checkpointer=store)
        assert changed.verify("t").ok
        report = changed.verify("t", strict=True)
        assert {(found.kind, found.channel, found.field) for found in report.mismatches} == {
            ("reducer", "word", "reducer"),
            ("reducer", "word", "result"),
        }

    def test_another_reducer_is_reported_once(self, store: Checkpointer) -> None:
        run(store)
        changed = graph(total="max").compile(checkpointer=store)
        report = changed.verify("t", strict=True)
        (found,) = report.mismatches
        assert (found.kind, found.channel, found.expected, found.actual) == ("reducer", "total", "sum", "max")

    def test_a_failing_reducer_is_reported(self, store: Checkpointer) -> None:
        run(store)

        def longest(_old: Any, _new: Any) -> Any:
            raise ZeroDivisionError("oops")

        longest.__qualname__ = "longest"
        report = graph(longest).compile(checkpointer=store).verify("t", strict=True)
        assert any("oops" in found.actual for found in report.mismatches if found.field == "result")


@pytest.mark.slow
def test_verify_does_not_load_the_whole_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[int] = []
    with closing(SQLiteCheckpointer(tmp_path / "runs.db")) as store:
        for step in range(600):
            store.save("t", step, {"n": step})
        reading = store.records

        def records(thread_id: str, first: int, last: int) -> Any:
            spans.append(last - first + 1)
            return reading(thread_id, first, last)

        monkeypatch.setattr(store, "records", records)
        assert verify(store, "t").records == 600
    assert max(spans) <= 256
    assert len(spans) == 3
