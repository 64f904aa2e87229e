"""A store that fails while nodes run: the store is blamed, no node is, and the run goes on afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, NodeFailed, StateGraph
from hitl_tui.agents import Agent, ScriptedModel, Tool, ToolCall
from hitl_tui.engine.log.store import all_threads
from hitl_tui.errors import StoreUnusable
from tests.engine.nodes.subgraphs import inner, outer


class FailingStore(MemoryCheckpointer):
    """Fails from its `fails_at`-th call on: for good until it is mended, or once."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.fails_at: int | None = None
        self.once = False

    def _called(self) -> None:
        self.calls += 1
        if self.fails_at is not None and self.calls >= self.fails_at:
            if self.once:
                self.fails_at = None
            raise StoreUnusable("the server has gone away", "wait until it is back")


def _fails(name: str) -> Callable[..., Any]:
    real = getattr(MemoryCheckpointer, name)

    def method(store: FailingStore, *given: Any, **named: Any) -> Any:
        store._called()
        return real(store, *given, **named)

    return method


for _name in ("create_thread", "commit", "acquire", "info", "cursor", "ledger", "checkpoint", "facts"):
    setattr(FailingStore, _name, _fails(_name))


def _in_a_subgraph(store: FailingStore) -> GraphRunner:
    return outer(inner(lambda _s: {"seen": "1"}, lambda _s: {"draft": "2"}), store)


def _two_deep(store: FailingStore) -> GraphRunner:
    middle = (
        StateGraph(
            {"question": Channel(""), "seen": Channel([], reducer="append"), "draft": Channel("")},
            name="middle",
        )
        .add_subgraph("deep", inner(), inputs={"question": "question"}, outputs={"draft": "draft"})
        .add_edge(START, "deep")
        .add_edge("deep", END)
    )
    return outer(middle, store)


def _agent() -> Agent:
    def reply(messages: Sequence[Mapping[str, Any]]) -> Any:
        return ToolCall("look") if messages[-1]["role"] == "user" else "seen"

    def look() -> str:
        """Look."""
        return "there"

    return Agent("scout", ScriptedModel(reply, pace=0), tools=[Tool(look)])


def _with_calls(store: FailingStore) -> GraphRunner:
    return (
        StateGraph({"out": Channel(None)}, name="calls")
        .add_node("work", lambda _s, config: {"out": config.agents["scout"].chat("go")})
        .add_edge(START, "work")
        .add_edge("work", END)
        .compile(checkpointer=store, agents={"scout": _agent()})
    )


def _in_branches(store: FailingStore) -> GraphRunner:
    return (
        StateGraph(
            {"out": Channel([], reducer="append"), "tasks": Channel(["a", "b"], reducer="overwrite")},
            name="branches",
        )
        .add_map(
            "each", over="tasks", node=lambda _s, config: {"out": config.agents["scout"].chat(config.item)}
        )
        .add_edge(START, "each")
        .add_edge("each", END)
        .compile(checkpointer=store, agents={"scout": _agent()})
    )


RUNNERS = [_in_a_subgraph, _two_deep, _with_calls, _in_branches]


@pytest.mark.parametrize("once", [True, False], ids=["once", "until it is mended"])
@pytest.mark.parametrize("make", RUNNERS, ids=lambda make: make.__name__[1:])
@pytest.mark.slow
def test_whichever_call_of_the_store_fails_the_store_is_blamed_and_no_node(
    make: Callable[[FailingStore], GraphRunner], once: bool
) -> None:
    whole = FailingStore()
    runner = make(whole)
    assert runner.invoke({}, thread_id="t").status == "completed"
    total, blamed = whole.calls, 0
    for place in range(1, total + 1):
        store = FailingStore()
        store.fails_at, store.once = place, once
        try:
            make(store).invoke({}, thread_id="t")
        except StoreUnusable:
            blamed += 1
        except NodeFailed as error:
            pytest.fail(f"call {place} of {total} fails as a node: {error}")
        store.fails_at = None
        threads = [summary.info.thread_id for summary in all_threads(store)]
        for thread in threads:
            assert [entry.kind for entry in store.ledger(thread) if entry.kind == "failed"] == [], place
            cursor = store.cursor(thread)
            assert cursor is not None
            assert cursor.error is None, place
        again = make(store)
        result = again.invoke({} if not threads else None, thread_id="t")
        assert result.status == "completed", (place, result.status)
        assert again.verify("t", strict=True).ok
    assert blamed > total // 2


def test_a_node_that_raises_an_error_of_another_store_fails_by_itself() -> None:
    def work(_state: Any) -> dict[str, Any]:
        raise StoreUnusable("the node's own store is locked")

    with pytest.raises(NodeFailed, match="the node's own store is locked"):
        outer(inner(work), store := MemoryCheckpointer()).invoke({}, thread_id="t")
    assert [entry.kind for entry in store.ledger("t")][-1] == "failed"
