"""Resume: from the cursor, never a committed step twice; or as a new invocation."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    GraphRunner,
    MemoryCheckpointer,
    StateGraph,
    StoreUnusable,
    UsageError,
    append,
    last_n,
    open_store,
)
from hitl_tui.engine.commands import Start
from hitl_tui.engine.log.threads import Lease
from hitl_tui.engine.run.loop import RunLoop
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import ThreadBusy
from hitl_tui.stores import Checkpointer
from tests.support.flows import Desk, channels, check_log, line, review_loop, say
from tests.support.spec import spec

pytestmark = spec("11")


def counting(counts: dict[str, int], *names: str) -> list[Any]:
    def make(name: str) -> Any:
        def node(state: Any) -> dict[str, Any]:
            counts[name] = counts.get(name, 0) + 1
            return {"log": name}

        return node

    return [make(name) for name in names]


@spec("14")
def test_a_fresh_runner_continues_at_the_cursor(store: Checkpointer) -> None:
    counts: dict[str, int] = {}
    nodes = counting(counts, "one", "two", "three")
    for _ in range(3):
        line(store, *nodes).step(thread_id="t", inputs=None)
    runner = line(store, *nodes)
    result = runner.invoke(thread_id="t")
    assert (result.status, counts) == ("completed", {"one": 1, "two": 1, "three": 1})
    assert list(result["log"]) == ["one", "two", "three"]
    check_log(runner, "t")


def test_a_completed_thread_without_input_runs_nothing_and_writes_nothing(store: Checkpointer) -> None:
    counts: dict[str, int] = {}
    runner = line(store, *counting(counts, "one"))
    first = runner.invoke({"draft": "in"}, thread_id="t")
    before = store.cursor("t")
    again = runner.invoke(thread_id="t")
    assert (again.status, again.reason, again.step) == (first.status, first.reason, first.step)
    assert dict(again.state) == dict(first.state)
    assert counts == {"one": 1}
    assert store.cursor("t") == before


def test_a_completed_thread_with_input_starts_a_new_invocation_on_its_state(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    runner.invoke({"log": "first"}, thread_id="t")
    result = runner.invoke({"log": "second"}, thread_id="t")
    assert list(result["log"]) == ["first", "one", "second", "one"]
    assert (runner.run_info("t").invocation, runner.run_info("t").iteration_count) == (2, 1)
    sources = [(point.step, point.source, point.invocation) for point in reversed(runner.history("t"))]
    assert sources == [(0, "input", 1), (1, "node", 1), (2, "input", 2), (3, "node", 2)]
    check_log(runner, "t")


def test_an_empty_mapping_of_inputs_is_no_input(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    runner.invoke({}, thread_id="t")
    assert runner.invoke({}, thread_id="t").step == 1


@spec("14")
@pytest.mark.parametrize("finished", [True, False])
def test_resume_entry_is_a_new_invocation_with_new_records(store: Checkpointer, finished: bool) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after=[] if finished else ["a"])
    runner.invoke({}, thread_id="t")
    before = runner.get_state("t")["log"]
    result = runner.invoke(thread_id="t", resume="entry")
    assert list(result["log"]) == [*before, "one", *(["two"] if finished else [])]
    assert runner.run_info("t").invocation == 2
    kinds = [entry.kind for entry in store.ledger("t")]
    assert ("withdrawn" in kinds) is not finished
    check_log(runner, "t")


def test_an_undecided_route_follows_the_state_as_edited(store: Checkpointer) -> None:
    runner = review_loop(store, interrupt_after=["check"])
    runner.invoke({}, thread_id="t")
    assert runner.open("t").progress.next_node == "write"
    runner.update_state("t", {"verdict": "approved"})
    assert runner.open("t").progress.next_node == "END"
    result = runner.invoke(thread_id="t")
    assert (result.status, result["n"]) == ("completed", 1)


def test_an_edit_can_change_the_route_back(store: Checkpointer) -> None:
    runner = review_loop(store, interrupt_after=["check"])
    runner.invoke({"verdict": "approved"}, thread_id="t")
    runner.update_state("t", {"verdict": "revise"})
    assert runner.invoke(thread_id="t")["n"] == 2


def test_a_pause_between_node_and_route_leaves_the_route_open_too(store: Checkpointer) -> None:
    runner = review_loop(store)
    runner.step({}, thread_id="t")
    runner.step(thread_id="t")
    runner.update_state("t", {"verdict": "approved"})
    assert runner.invoke(thread_id="t")["n"] == 1


def test_an_interrupt_after_the_last_node_resumes_to_completed(store: Checkpointer) -> None:
    counts: dict[str, int] = {}
    runner = line(store, *counting(counts, "one", "two"), interrupt_after=["b"])
    waiting = runner.invoke({}, thread_id="t")
    assert (waiting.status, waiting.step) == ("waiting", 2)
    done = runner.invoke(thread_id="t")
    assert (done.status, done.reason, done.step) == ("completed", "end", 2)
    assert counts == {"one": 1, "two": 1}


def test_input_of_a_paused_thread_is_its_next_step_and_is_never_dropped(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after=["a"])
    runner.invoke({"log": "first"}, thread_id="t")
    result = runner.invoke({"log": "meanwhile"}, thread_id="t")
    assert list(result["log"]) == ["first", "one", "meanwhile", "two"]
    points = runner.history("t")
    assert [(point.step, point.source) for point in points[::-1]] == [
        (0, "input"), (1, "node"), (2, "input"), (3, "node"),
    ]  # fmt: skip
    check_log(runner, "t")


def test_a_list_given_to_append_or_last_n_is_spliced_for_input_alone(store: Checkpointer) -> None:
    graph = StateGraph(
        {
            "all": Channel([], reducer=append()),
            "few": Channel([], reducer=last_n(2)),
            "more": Channel([], reducer="extend"),
            "plain": Channel(None),
        }
    )
    graph.add_node("a", lambda state: {"all": ["x", "y"]}).add_edge(START, "a").add_edge("a", END)
    runner = graph.compile(checkpointer=store)
    given = {"all": ["p", "q"], "few": [1, 2, 3], "more": [1, 2], "plain": [1]}
    result = runner.invoke(given, thread_id="t")
    assert result["all"] == ["p", "q", ["x", "y"]]
    assert (result["few"], result["more"], result["plain"]) == ([2, 3], [1, 2], [1])
    assert sum(1 for record in store.records("t", 0, 0) if record.channel == "few") == 3
    runner.invoke({"all": ["r"]}, thread_id="t")
    assert runner.get_state("t", 2)["all"] == ["p", "q", ["x", "y"], "r"]
    check_log(runner, "t")


def test_goal_and_constraints_are_inputs_that_every_node_reads(store: Checkpointer) -> None:
    seen: list[Any] = []

    def look(state: Any) -> None:
        seen.append((state["goal"], state["constraints"]))

    graph = StateGraph(channels()).add_node("a", look, reads=[]).add_edge(START, "a").add_edge("a", END)
    runner = graph.compile(checkpointer=store)
    runner.invoke({"goal": "win", "constraints": ["short"]}, thread_id="t")
    assert seen == [("win", ["short"])]
    assert runner.run_info("t").goal == "win"


def test_input_that_does_not_fit_starts_nothing(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    with pytest.raises(UsageError, match="takes no input 'lgo'"):
        runner.invoke({"lgo": "x"}, thread_id="t")
    assert store.list_threads() == []
    assert runner.invoke({"log": "x"}, thread_id="t").status == "completed"


def test_leaving_a_run_early_keeps_what_was_committed(store: Checkpointer) -> None:
    counts: dict[str, int] = {}
    runner = line(store, *counting(counts, "one", "two", "three"))
    for _ in runner.stream({}, thread_id="t"):
        break
    assert runner.invoke(thread_id="t").status == "completed"
    assert counts == {"one": 1, "two": 1, "three": 1}


def test_a_cancelled_task_commits_nothing_of_its_node(store: Checkpointer) -> None:
    entered = asyncio.Event()
    attempts: list[tuple[int, str]] = []

    async def slow(state: Any, config: Any) -> dict[str, Any]:
        attempts.append((config.attempt, config.idempotency_key))
        if len(attempts) == 1:
            entered.set()
            await asyncio.Event().wait()
        return {"log": "slow"}

    runner = line(store, say("one"), slow)

    async def interrupted() -> None:
        task = asyncio.create_task(runner.ainvoke({}, thread_id="t"))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    assert (store.cursor("t").status, store.cursor("t").reason) == ("waiting", "paused")  # type: ignore[union-attr]
    assert list(runner.invoke(thread_id="t")["log"]) == ["one", "slow"]
    assert [attempt for attempt, _ in attempts] == [1, 2]
    assert attempts[0][1] == attempts[1][1]


def test_the_idempotency_key_is_the_step_s_own(store: Checkpointer) -> None:
    keys: list[str] = []

    def note(state: Any, config: Any) -> None:
        keys.append(config.idempotency_key)

    runner = line(store, note, note)
    runner.invoke({}, thread_id="t")
    runner.invoke({"log": "x"}, thread_id="t")
    runner.invoke({}, thread_id="u")
    assert len(set(keys)) == len(keys) == 6


def test_an_edit_while_a_node_waits_does_not_change_its_idempotency_key(store: Checkpointer) -> None:
    keys: list[str] = []

    def charge(state: Any, config: Any) -> dict[str, Any]:
        keys.append(config.idempotency_key)
        return {"log": str(config.interrupt({"kind": "ask", "title": "really?"}))}

    runner = line(store, say("one"), charge, charge)
    request = runner.invoke({}, thread_id="t").pending[0]
    step = runner.update_state("t", {"log": ["mended"]})
    runner.answer("t", request.id, "yes", step=step)
    runner.invoke(thread_id="t")
    assert keys[0] == keys[1]
    assert keys[2] != keys[0], "the next node's is another"


def test_a_run_keeps_its_lease_however_long_a_node_blocks(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitl_tui.engine.thread.session.HEARTBEAT", 0.001)
    renewed: list[Lease | None] = []

    def block(state: Any, config: Any) -> dict[str, Any]:
        first = lease = store.lease("t")
        while lease is not None and lease == first:
            lease = store.lease("t")
        renewed.append(lease)
        return {"log": "done"}

    assert line(store, block).invoke({}, thread_id="t").status == "completed"
    assert renewed[0] is not None, "the run lost its lease"
    assert store.lease("t") is None


def test_a_lost_lease_is_noticed_at_the_refused_commit(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hitl_tui.engine.thread.session.HEARTBEAT", 0.001)
    refused = threading.Event()
    renew = store.renew

    def watched(*given: Any) -> None:
        try:
            renew(*given)
        except ThreadBusy:
            refused.set()
            raise

    def give_back(state: Any) -> dict[str, Any]:
        lease = store.lease("t")
        assert lease is not None
        store.release("t", lease.token)
        assert refused.wait(60)
        return {"log": "done"}

    monkeypatch.setattr(store, "renew", watched)
    with pytest.raises(ThreadBusy):
        line(store, give_back).invoke({}, thread_id="t")
    assert "could not be renewed" not in caplog.text


def test_a_stops_object_gives_the_reason_to_stop_at_a_node(store: Checkpointer) -> None:
    asked: list[tuple[str, bool]] = []

    class Stops:
        def before(self, _session: Session, node: str, first: bool) -> str:
            asked.append((node, first))
            return "a look at b" if node == "b" and not first else ""

        def after(self, _session: Session, _node: str, _state: Any) -> str:
            return ""

        def shows_return(self, _node: str) -> bool:
            return False

    stops: Any = Stops()
    desk = Desk(line(store, say("one"), say("two"), say("three")), "t")
    desk.do(Start({}))
    desk.run(stops=stops)
    assert list(desk.session.state.values["log"]) == ["one"]
    assert (store.ledger("t")[-1].kind, store.ledger("t")[-1].note) == ("stop", "a look at b")
    desk.run(stops=stops)
    assert list(desk.session.state.values["log"]) == ["one", "two", "three"]
    assert asked == [("a", True), ("b", False), ("b", True), ("c", False)]


def test_a_thread_that_runs_can_be_neither_run_nor_edited_nor_answered(store: Checkpointer) -> None:
    from hitl_tui import ThreadBusy

    runner = line(store, say("one"), say("two"))

    async def meet() -> None:
        desk = Desk(runner, "t")
        desk.do(Start({}))
        steps = RunLoop(desk.session).steps()
        await anext(steps)
        for intrude in (
            lambda: runner.update_state("t", {"draft": "x"}),
            lambda: runner.answer("t", "any", "yes", step=1),
            lambda: runner.cancel("t"),
        ):
            with pytest.raises(ThreadBusy):
                intrude()
        with pytest.raises(ThreadBusy):
            await runner.ainvoke(thread_id="t")
        await steps.aclose()

    asyncio.run(meet())
    assert runner.invoke(thread_id="t").status == "completed"
    check_log(runner, "t")


def test_goal_constraints_and_answers_refuse_to_be_changed_in_another_process_too(tmp_path: Path) -> None:
    """What comes from a store is as immutable as what was just given."""
    place = str(tmp_path / "runs.db")
    refused: list[str] = []

    def work(state: Any, config: Any) -> dict[str, Any]:
        for value in (state["constraints"], state["goal"]["of"], config.interrupt("what else?")):
            with pytest.raises(TypeError, match="read-only"):
                value.append("changed")
            refused.append(value[0])
        return {"log": "worked"}

    def opened() -> GraphRunner:
        graph = StateGraph({"log": Channel([], reducer="append")})
        graph.add_node("work", work).add_edge(START, "work").add_edge("work", END)
        return graph.compile(checkpointer=open_store(place))

    opened().invoke({"constraints": ["short"], "goal": {"of": ["all"]}}, thread_id="t")
    request = opened().open("t").cursor.pending[0]
    opened().answer("t", request.id, ["more"], step=request.step)
    refused.clear()
    runner = opened()
    assert runner.invoke(thread_id="t").status == "completed"
    assert refused == ["short", "all", "more"]
    assert runner.run_info("t").constraints == ["short"]


class Failing(MemoryCheckpointer):
    """Can't be written to while it is broken; what was written before is there."""

    broken = False

    def commit(self, thread_id: str, commit: Any) -> None:
        if self.broken:
            raise StoreUnusable("the disk is full", "make room")
        super().commit(thread_id, commit)


def test_an_attempt_that_could_not_be_written_runs_again_as_the_next_one_under_the_same_key() -> None:
    tried: list[tuple[int, str]] = []
    store = Failing()

    def work(state: Any, config: Any) -> dict[str, Any]:
        tried.append((config.attempt, config.idempotency_key))
        store.broken = len(tried) == 1
        return {"log": "worked"}

    with pytest.raises(StoreUnusable):
        line(store, work).invoke({}, thread_id="t")
    assert line(store, work).run_info("t").status == "running"
    store.broken = False
    assert line(store, work).invoke(thread_id="t").status == "completed"
    (first, key), (second, same) = tried
    assert (first, second) == (1, 2)
    assert key == same
