"""Limits hold inside nodes: before each model call of a node, a map, parallel chats and rounds of tools."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    GraphRunner,
    Limits,
    MemoryCheckpointer,
    RetryPolicy,
    StateGraph,
    UsageError,
)
from hitl_tui.agents import ScriptedModel, ToolCall, aparallel_chat, parallel_chat
from hitl_tui.agents.backend import CallFailed, Use
from hitl_tui.engine.commands import Start, execute
from hitl_tui.engine.log.events import PriceUnknown
from hitl_tui.engine.run.loop import RunLoop
from hitl_tui.engine.thread.session import Session
from hitl_tui.view.answers import read_limit

PROMPT = "x" * 200
EACH = 150
"""Tokens of one call."""


class Metered:
    """A model that says the same in every call, whose use is known exactly.

    Args:
        replies: from the messages to a text or a call of a tool.
        price: of a call; None where it is unknown.
    """

    def __init__(
        self, replies: Callable[[Sequence[Any]], Any] = lambda _: "y", price: float | None = 0.0
    ) -> None:
        self.calls = 0
        self.price = price
        self._replies = replies

    def estimate(self, messages: Sequence[Any], text: str) -> Use:
        return Use("p", "m", EACH, 0, self.price)

    async def stream(self, messages: Sequence[Any], options: Mapping[str, Any]) -> Any:
        self.calls += 1
        reply = self._replies(messages)
        if isinstance(reply, Exception):
            yield "half"
            raise reply
        yield reply
        yield Use("p", "m", 100, EACH - 100, self.price)


def rounds(messages: Sequence[Any]) -> Any:
    """Ten rounds of a tool, then a reply."""
    return "done" if sum(turn["role"] == "tool" for turn in messages) == 10 else ToolCall("look", {})


def look() -> str:
    """Look."""
    return "seen"


def runner_of(node: Any, model: Metered, limits: Limits, *, tools: Any = (), **more: Any) -> GraphRunner:
    """A graph of one node that writes `out`, then another one."""
    graph = StateGraph(
        {"items": Channel(list(range(50)), reducer="overwrite"), "out": Channel([], reducer="append")}
    )
    if node == "map":
        graph.add_map("n", over="items", node=chat_once, **more)
    else:
        graph.add_node("n", node, **more)
    graph.add_node("z", lambda state: {})
    graph.add_edge(START, "n").add_edge("n", "z").add_edge("z", END)
    agents = {"a": Agent("a", model, tools=tools, num_retries=0)}
    return graph.compile(checkpointer=MemoryCheckpointer(), agents=agents, limits=limits)


def chat_once(state: Any, config: Any) -> dict[str, Any]:
    return {"out": config.agents["a"].fresh().chat(PROMPT)}


def chat_often(state: Any, config: Any) -> dict[str, Any]:
    for _ in range(50):
        config.agents["a"].aside().chat(PROMPT)
    return {"out": "all"}


def chat_beside(state: Any, config: Any) -> dict[str, Any]:
    return {"out": len(parallel_chat(config.agents["a"], [PROMPT] * 50, limit=3))}


async def achat_beside(state: Any, config: Any) -> dict[str, Any]:
    return {"out": len(await aparallel_chat(config.agents["a"], [PROMPT] * 50, limit=3))}


async def chat_in_group(state: Any, config: Any) -> dict[str, Any]:
    async def five() -> None:
        for _ in range(5):
            await config.agents["a"].aside().achat(PROMPT)

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(five())
    return {"out": "all"}


def chat_caught(state: Any, config: Any) -> dict[str, Any]:
    for _ in range(50):
        with suppress(BaseException):
            config.agents["a"].aside().chat(PROMPT)
    return {"out": "all"}


def chat_disguised(state: Any, config: Any) -> dict[str, Any]:
    try:
        return chat_often(state, config)
    except BaseException as error:
        raise ValueError("something else") from error


def chat_structured(state: Any, config: Any) -> dict[str, Any]:
    try:
        for _ in range(50):
            config.agents["a"].aside().chat_structured(PROMPT, dict[str, int])
    except Exception as error:
        return {"out": str(error)}
    return {"out": "all"}


def use_tools(state: Any, config: Any) -> dict[str, Any]:
    return {"out": config.agents["a"].chat(PROMPT)}


INSIDE: dict[str, tuple[Any, dict[str, Any], Callable[[Any], Any], int]] = {
    "a map": ("map", {"max_concurrent": 3}, lambda _: "y", 3),
    "parallel chats": (chat_beside, {}, lambda _: "y", 3),
    "awaited parallel chats": (achat_beside, {}, lambda _: "y", 3),
    "a task group": (chat_in_group, {}, lambda _: "y", 3),
    "one chat after the other": (chat_often, {}, lambda _: "y", 1),
    "rounds of tools": (use_tools, {"tools": [look]}, rounds, 1),
    "structured answers": (chat_structured, {}, lambda _: '{"a": 1}', 1),
    "caught": (chat_caught, {}, lambda _: "y", 1),
    "disguised": (chat_disguised, {}, lambda _: "y", 1),
    "a node that is tried again": (chat_often, {"retry": RetryPolicy(5, wait=0)}, lambda _: "y", 1),
}


@pytest.mark.parametrize(("node", "more", "replies", "at_once"), INSIDE.values(), ids=INSIDE)
@pytest.mark.parametrize("on_limit", ["stop", "pause"])
def test_no_model_call_begins_once_a_limit_is_reached(
    node: Any, more: dict[str, Any], replies: Any, at_once: int, on_limit: Any
) -> None:
    model = Metered(replies)
    runner = runner_of(node, model, Limits(max_tokens=2 * EACH), **more)
    result = runner.invoke(thread_id="t", on_limit=on_limit)
    assert (result.status, result.reason) == ("failed" if on_limit == "stop" else "waiting", "limit")
    assert 2 <= model.calls <= 2 + at_once - 1
    assert (info := runner.run_info("t")).tokens_in + info.tokens_out == model.calls * EACH
    assert result["out"] == []
    again = runner.invoke(thread_id="t", on_limit=on_limit)
    assert again.reason == "limit"
    assert model.calls <= 2 + at_once - 1


def test_a_map_keeps_its_branches_and_continues_after_the_limit_is_raised() -> None:
    model = Metered()
    runner = runner_of("map", model, Limits(max_tokens=10 * EACH), max_concurrent=2)
    runner.invoke(thread_id="t", on_limit="pause")
    runner.extend_limits("t", max_tokens=None)
    result = runner.invoke(thread_id="t")
    assert (result.status, len(result["out"])) == ("completed", 50)
    assert model.calls == 50
    assert runner.verify("t", strict=True).ok


@pytest.mark.parametrize("on_limit", ["stop", "pause"])
def test_rounds_of_tools_continue_where_the_limit_stopped_them(on_limit: Any) -> None:
    calls: list[int] = []

    def count() -> str:
        """Count."""
        calls.append(1)
        return "counted"

    def replies(messages: Sequence[Any]) -> Any:
        return "done" if sum(turn["role"] == "tool" for turn in messages) == 10 else ToolCall("count", {})

    model = Metered(replies)
    runner = runner_of(use_tools, model, Limits(max_tokens=4 * EACH), tools=[count])
    for allowed in (4, 7, 20):
        runner.extend_limits("t", max_tokens=allowed * EACH) if calls else None
        result = runner.invoke(thread_id="t", on_limit=on_limit)
        assert model.calls == min(allowed, 11)
    assert (result.status, list(result["out"]), len(calls)) == ("completed", ["done"], 10)


def test_failed_attempts_count() -> None:
    model = Metered(lambda _: CallFailed("it broke"))
    runner = runner_of(chat_often, model, Limits(max_tokens=3 * EACH), retry=RetryPolicy(50, wait=0))
    result = runner.invoke(thread_id="t")
    assert (result.reason, model.calls) == ("limit", 3)


def test_a_last_call_that_ends_its_node_completes_it() -> None:
    model = Metered()
    runner = runner_of(use_tools, model, Limits(max_tokens=EACH))
    result = runner.invoke(thread_id="t")
    assert (result.reason, list(result["out"])) == ("limit", ["y"])


def test_active_time_is_checked_before_a_call() -> None:
    model = Metered()
    seconds = itertools.count()
    graph = runner_of(chat_often, model, Limits(max_seconds=20)).graph
    session = Session.new(graph, MemoryCheckpointer(), "t", clock=lambda: next(seconds) * 1_000_000)
    with session.writing():
        execute(session, Start())

    async def run() -> None:
        async for _ in RunLoop(session).steps():
            pass

    asyncio.run(run())
    assert session.cursor.reason == "limit"
    assert 0 < model.calls < 20


def test_a_subgraph_gets_what_is_left_of_its_parents_limits() -> None:
    model = Metered()
    child = StateGraph({"out": Channel("")}).add_node("inner", chat_often)
    child.add_edge(START, "inner").add_edge("inner", END)
    graph = StateGraph({"out": Channel("")}).add_node("first", lambda s, c: {"out": c.agents["a"].chat("x")})
    graph.add_subgraph("sub", child, inputs={}, outputs={"out": "out"}).add_edge(START, "first")
    runner = (
        graph.add_edge("first", "sub")
        .add_edge("sub", END)
        .compile(
            checkpointer=MemoryCheckpointer(),
            agents={"a": Agent("a", model)},
            limits=Limits(max_tokens=4 * EACH),
        )
    )
    result = runner.invoke(thread_id="t")
    assert (result.status, result.reason, model.calls) == ("failed", "limit", 4)


@pytest.mark.parametrize("choice", ["warn", "stop"])
def test_an_unknown_price_is_reported_once(choice: Any) -> None:
    model, events = Metered(price=None), list[Any]()
    limits = Limits(max_cost_usd=1.0, on_unknown_price=choice)
    runner = runner_of(chat_often, model, limits)
    result = runner.invoke(thread_id="t", on_event=events.append)
    warnings = [event for event in events if isinstance(event, PriceUnknown)]
    assert [(event.agent, event.model, event.stops) for event in warnings] == [("a", "m", choice == "stop")]
    if choice == "warn":
        assert (result.status, model.calls) == ("completed", 50)
        return
    assert (result.reason, model.calls) == ("limit", 1)
    runner.extend_limits("t", on_unknown_price="warn")
    assert runner.invoke(thread_id="t").status == "completed"


def test_a_known_price_is_not_reported() -> None:
    events = list[Any]()
    runner = runner_of(chat_often, Metered(price=0.3), Limits(max_cost_usd=1.0, on_unknown_price="stop"))
    result = runner.invoke(thread_id="t", on_event=events.append)
    assert result.reason == "limit"
    assert not [event for event in events if isinstance(event, PriceUnknown)]
    assert runner.run_info("t").cost == pytest.approx(1.2)


def test_the_option_for_unknown_prices_is_checked() -> None:
    with pytest.raises(Exception, match="on_unknown_price"):
        runner_of(chat_once, Metered(), Limits(on_unknown_price="maybe"))  # type: ignore[arg-type]
    assert read_limit("on_unknown_price=stop") == ("on_unknown_price", "stop")
    with pytest.raises(UsageError, match="on_unknown_price"):
        read_limit("on_unknown_price=3")


def test_a_script_costs_nothing() -> None:
    """A scripted model has a price, so a limit on cost says nothing about it."""
    events = list[Any]()
    graph = StateGraph({"out": Channel("")}).add_node("n", use_tools).add_edge(START, "n").add_edge("n", END)
    runner = graph.compile(
        agents={"a": Agent("a", ScriptedModel(["hi"], pace=0))}, limits=Limits(max_cost_usd=1.0)
    )
    assert runner.invoke({}, on_event=events.append).status == "completed"
    assert not [event for event in events if isinstance(event, PriceUnknown)]
