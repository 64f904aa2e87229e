"""A process killed in the middle of a map, or of the thread of a subgraph."""

from __future__ import annotations

from pathlib import Path

from hitl_tui import SQLiteCheckpointer
from tests.engine.nodes import fanout_crashing
from tests.support.killed import kill_once_it_says
from tests.support.spec import spec

pytestmark = [spec("7"), spec("10")]


def kill(path: Path, kind: str) -> None:
    """Run a graph in another process and kill it in the middle."""
    kill_once_it_says("in the node", "tests.engine.nodes.fanout_crashing", path, kind)


def test_a_killed_map_has_committed_nothing_and_runs_again_with_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    kill(path, "map")
    store = SQLiteCheckpointer(path)
    runner = fanout_crashing.runner(store, path, "map")
    assert runner.get_state("t")["log"] == []
    assert runner.invoke(thread_id="t")["log"] == ["a", "b", "c"]
    ran = [line.split() for line in fanout_crashing.calls(path)]
    assert [(item, attempt) for item, attempt, *_ in ran] == [(i, n) for n in "12" for i in "abc"]
    assert [key for *_, key, _ in ran[:3]] == [key for *_, key, _ in ran[3:]]
    assert len({key for *_, key, _ in ran}) == 3
    assert runner.verify("t", strict=True).ok
    store.close()


def test_a_killed_child_continues_in_the_same_thread(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    kill(path, "subgraph")
    store = SQLiteCheckpointer(path)
    runner = fanout_crashing.runner(store, path, "subgraph")
    assert runner.get_state("t/work#1")["log"] == ["first"]
    assert runner.invoke(thread_id="t")["log"] == [["first", "second"]]
    ran = [line.split() for line in fanout_crashing.calls(path)]
    assert [(node, attempt) for node, attempt, *_ in ran] == [
        ("first", "1"),
        ("second", "1"),
        ("second", "2"),
    ]
    assert ran[1][2] == ran[2][2]
    assert store.info("t/work#2") is None
    assert runner.verify("t", strict=True).ok
    assert runner.verify("t/work#1", strict=True).ok
    store.close()
