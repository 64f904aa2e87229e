"""Whatever could not be read back is refused before any of it is stored, and the thread stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import END, START, Channel, GraphRunner, NodeResult, SQLiteCheckpointer, StateGraph
from hitl_tui.agents import Agent, ScriptedModel, Tool, ToolCall
from hitl_tui.engine.thread.call_log import CALL, CallRecord
from hitl_tui.errors import StoreUnusable
from tests.support.flows import Clock, check_log


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteCheckpointer]:
    with closing(SQLiteCheckpointer(tmp_path / "runs.db")) as opened:
        yield opened


def runner_on(store: SQLiteCheckpointer) -> GraphRunner:
    def say(state: Any, config: Any) -> NodeResult:
        return NodeResult({"said": config.interrupt("What shall it say?")}, text="said")

    graph = StateGraph({"said": Channel("")}).add_node("say", say)
    return graph.add_edge(START, "say").add_edge("say", END).compile(checkpointer=store)


def answer(runner: GraphRunner) -> None:
    (asked,) = runner.open("t").cursor.pending
    runner.answer("t", asked.id, "hello", step=asked.step, actor="ann")


@pytest.mark.parametrize(
    "act",
    [
        answer,
        lambda runner: runner.update_state("t", {"said": "x"}, actor="ann"),
        lambda runner: runner.cancel("t", actor="ann"),
    ],
    ids=["answer", "edit", "cancel"],
)
def test_a_decision_that_could_not_be_read_back_is_not_stored(
    store: SQLiteCheckpointer,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[GraphRunner], object],
) -> None:
    runner = runner_on(store)
    runner.invoke({}, thread_id="t")
    before = (store.cursor("t"), store.ledger("t"), store.checkpoints("t", None, 99))
    with monkeypatch.context() as broken:
        # A clock that gives fractions of a microsecond: a time like that is written, and never read again.
        now = store.now()
        broken.setattr(SQLiteCheckpointer, "now", lambda self: now + 0.5)
        with pytest.raises(StoreUnusable, match=r"a decision could not be read again.*nothing was stored"):
            act(runner)
    assert (store.cursor("t"), store.ledger("t"), store.checkpoints("t", None, 99)) == before
    answer(runner)
    assert runner.invoke(thread_id="t")["said"] == "hello"
    assert runner.verify("t", strict=True).mismatches == ()
    check_log(runner, "t")


def test_a_completed_call_that_could_not_be_read_back_is_not_stored(
    store: SQLiteCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, paid = Clock(), list[str]()
    monkeypatch.setattr(store, "now", clock)

    def pay() -> str:
        """Pay."""
        clock.now += 0.5  # type: ignore[assignment]  # no entry can hold a fraction of a microsecond
        paid.append("once")
        return "paid"

    agent = Agent("cashier", ScriptedModel([ToolCall("pay")], pace=0), tools=[Tool(pay)])
    graph = StateGraph({"said": Channel("")}).add_node(
        "chat", lambda state, config: {"said": config.agents["cashier"].chat("go")}
    )
    runner = (
        graph.add_edge(START, "chat")
        .add_edge("chat", END)
        .compile(checkpointer=store, agents={"cashier": agent})
    )
    with pytest.raises(StoreUnusable, match=r"a completed call could not be read again.*nothing was stored"):
        runner.invoke({}, thread_id="t")
    assert paid == ["once"]
    kept = [msgspec.convert(entry.data, CallRecord) for entry in store.ledger("t") if entry.kind == CALL]
    assert [record.key.partition(":")[0] for record in kept] == ["reply"]
    assert runner.verify("t", strict=True).ok
