"""A process killed in the middle of a node: what it committed is there, the rest runs again."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer, open_store
from tests.engine.commands import crashing, endless, killed_fork
from tests.support.flows import check_log, ledger_of
from tests.support.killed import kill_once_it_says
from tests.support.spec import spec

pytestmark = [spec("10"), spec("11")]


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store whose thread "t" was being run, in its second node, by a process that was killed."""
    path = tmp_path / "runs.db"
    kill_once_it_says("in the node", "tests.engine.commands.crashing", path)
    return path


def test_a_killed_run_continues_with_its_nodes_next_attempt(killed: Path) -> None:
    store = SQLiteCheckpointer(killed)
    runner = crashing.runner(store, killed)
    assert store.cursor("t").status == "running"  # type: ignore[union-attr]
    assert list(runner.get_state("t")["log"]) == ["one"]
    result = runner.invoke(thread_id="t")
    assert (result.status, list(result["log"])) == ("completed", ["one", "two"])
    calls = [json.loads(line) for line in crashing.calls(killed).read_text().splitlines()]
    assert [(call["node"], call["attempt"]) for call in calls] == [("a", 1), ("b", 1), ("b", 2)]
    assert calls[1]["key"] == calls[2]["key"]
    assert all(call["context"] == {"tenant": "acme"} for call in calls)
    assert calls[0]["pid"] == calls[1]["pid"] != calls[2]["pid"]
    assert [(point.step, point.node, point.attempt) for point in runner.history("t")[::-1]] == [
        (0, "", 1), (1, "a", 1), (2, "b", 2),
    ]  # fmt: skip
    taken = ledger_of(store, "t", "takeover")
    assert len(taken) == 1
    assert taken[0].note is not None
    assert f"process {calls[1]['pid']}" in taken[0].note
    check_log(runner, "t")
    store.close()


def test_a_dead_run_s_thread_can_be_edited_and_then_waits(killed: Path) -> None:
    store = SQLiteCheckpointer(killed)
    runner = crashing.runner(store, killed)
    assert runner.update_state("t", {"draft": "mine"}, expected_step=1, actor="ann") == 2
    cursor = runner.open("t").cursor
    assert (cursor.status, cursor.reason) == ("waiting", "paused")
    assert list(runner.invoke(thread_id="t")["log"]) == ["one", "two"]
    check_log(runner, "t")
    store.close()


def test_a_takeover_is_reported_to_the_process_that_opened_the_thread(killed: Path) -> None:
    store = SQLiteCheckpointer(killed)
    session = crashing.runner(store, killed).open("t")
    with session.writing():
        assert "taken over from" in session.notice
    store.close()


@pytest.mark.parametrize("changes", [None, {"draft": "mine"}], ids=["as it was", "edited"])
@pytest.mark.parametrize("place", ["runs.db", "runs/"], ids=["sqlite", "files"])
def test_a_fork_whose_process_was_killed_after_its_first_commit_asks_what_waited_there(
    tmp_path: Path, place: str, changes: dict[str, str] | None
) -> None:
    url = f"{tmp_path}/{place}"
    kill_once_it_says("committed", "tests.engine.commands.killed_fork", url, json.dumps(changes))
    with closing(open_store(url)) as store:
        runner = killed_fork.runner(store)
        cursor = runner.open("f").cursor
        assert [entry.kind for entry in store.ledger("f")][-2:] == ["fork", "request"]
        assert [request.title for request in cursor.pending] == ["verdict"]
        assert runner.verify("f", strict=True).ok
        assert runner.invoke(thread_id="f").status == "waiting"
        runner.answer("f", cursor.pending[0].id, "approve", step=cursor.head)
        assert runner.invoke(thread_id="f").status == "completed"
        assert runner.get_state("f")["draft"] == ("mine" if changes else runner.get_state("t")["draft"])
        assert runner.verify("f", strict=True).ok
        check_log(runner, "f")


@pytest.mark.slow
def test_repeated_kills_at_any_moment_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """Each process goes on where the one before it was killed, within a step or between two."""
    path, dice, seen = tmp_path / "runs.db", random.Random(11), 0
    committed: set[str] = set()
    for _ in range(5):
        kill_once_it_says("runs", "tests.engine.commands.endless", path, after=dice.uniform(0.005, 0.06))
        ran = endless.calls(path).read_text().splitlines()
        assert not committed & set(ran[seen:]), "a committed step ran again"
        seen = len(ran)
        with closing(SQLiteCheckpointer(path)) as store:
            runner = endless.runner(store, path)
            kept = [key for thread in store.list_threads() for key in runner.get_state(thread)["keys"]]
            assert len(kept) == len(set(kept))
            assert committed <= set(kept) <= set(ran)
            committed = set(kept)
            assert runner.verify("t", strict=True).mismatches == ()
    with closing(SQLiteCheckpointer(path)) as store:
        runner = endless.runner(store, path)
        for _ in range(4):
            runner.step(thread_id="t")
        assert runner.verify("t", strict=True).ok
        assert runner.replay("t").mismatches == ()
        check_log(runner, "t")
