"""Graphs of every kind run: async, nested, of the functional API; failures are reported."""

from __future__ import annotations

import asyncio
import contextvars
import operator
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph import pregel
from hitl_tui.drivers.langgraph.continuing import Leg
from hitl_tui.drivers.langgraph.graph import describe
from hitl_tui.drivers.langgraph.pregel import App
from hitl_tui.engine.commands import Answer, CancelAttempt, Run, Start, UpdateState
from hitl_tui.engine.log.events import AttemptDropped, TextStreamed
from hitl_tui.engine.thread.breakpoints import Breakpoint
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.graphs import fan_out


class Numbers(TypedDict):
    log: Annotated[list[str], operator.add]
    goal: str


def one_node(node: Any, saver: Any, state: Any = Numbers) -> Any:
    graph = StateGraph(state)
    graph.add_node("work", node)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph.compile(checkpointer=saver)


async def _ran(hubs: Hubs, graph: Any, given: Any) -> Any:
    watcher = await hubs.watch(graph)
    await watcher.driver.execute(Start(given))
    await watcher.run()
    await watcher.check()
    return watcher


async def test_a_graph_of_async_nodes_is_awaited(saver: Any, hubs: Hubs) -> None:
    async def work(_state: Numbers) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"log": ["awaited"]}

    watcher = await _ran(hubs, one_node(work, saver), {"log": [], "goal": "a channel of theirs"})
    assert watcher.view.values == {"log": ["awaited"], "goal": "a channel of theirs"}
    assert watcher.view.progress.status == "completed"


async def test_custom_stream_output_is_shown_and_stored(hubs: Hubs) -> None:
    def work(_state: Numbers) -> dict[str, Any]:
        get_stream_writer()("half way")
        get_stream_writer()({"percent": 50})
        return {"log": ["done"]}

    watcher = await _ran(hubs, one_node(work, InMemorySaver()), {"log": []})
    events = [event.text for event in watcher.events_of(TextStreamed)]
    assert "half way" in "".join(events)
    (kept,) = watcher.view.checkpoints[-1].streamed
    assert "percent" in kept.text


async def test_model_output_is_streamed_and_its_tokens_are_counted(hubs: Hubs) -> None:
    usage: Any = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    reply = AIMessage("a closure keeps its names", usage_metadata=usage)

    def work(state: Any) -> dict[str, Any]:
        model = GenericFakeChatModel(messages=iter(["a closure keeps its names"]))
        model.invoke(state["messages"])
        return {"messages": [reply]}

    graph = one_node(work, InMemorySaver(), MessagesState)
    watcher = await _ran(hubs, graph, {"messages": "what is a closure?"})
    events = [event.text for event in watcher.events_of(TextStreamed)]
    assert "".join(events).startswith("a closure keeps its names")
    view = watcher.view
    assert [(each["type"], each["content"]) for each in view.values["messages"]] == [
        ("human", "what is a closure?"),
        ("ai", "a closure keeps its names"),
    ]
    assert (view.progress.tokens_in, view.progress.tokens_out) == (7, 3)
    assert (await watcher.driver.snapshot()).updates[0].reducer == "add_messages"


class Priced(BaseChatModel):
    """A model whose answers tell what they used; it streams in two pieces, each with its tokens."""

    streams: bool = False

    @property
    def _llm_type(self) -> str:
        return "priced"

    def _generate(self, messages: list[BaseMessage], *given: Any, **options: Any) -> ChatResult:
        metadata = {"model_name": "gpt-4o", "model_provider": "openai"}
        answer = AIMessage("an answer", usage_metadata=_used(1_000, 100), response_metadata=metadata)
        return ChatResult(generations=[ChatGeneration(message=answer)])


class PricedStream(Priced):
    def _stream(self, messages: list[BaseMessage], *given: Any, **options: Any) -> Iterator[Any]:
        metadata = {"model_name": "gpt-4o", "model_provider": "openai"}
        first = AIMessageChunk("an ", usage_metadata=_used(1_000, 0), response_metadata=metadata)
        last = AIMessageChunk("answer", usage_metadata=_used(0, 100), chunk_position="last")
        yield from (ChatGenerationChunk(message=first), ChatGenerationChunk(message=last))


ONE_CALL = 1_000 * 2.5e-6 + 100 * 10e-6


def _used(read: int, written: int) -> Any:
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}


@pytest.mark.parametrize("model", [Priced(), PricedStream()], ids=["whole", "in pieces"])
@pytest.mark.parametrize("kept", [True, False], ids=["message kept", "text alone kept"])
async def test_the_cost_of_a_model_call_is_reported_even_if_its_node_drops_the_message(
    hubs: Hubs, model: Any, kept: bool
) -> None:
    def work(_state: Any) -> dict[str, Any]:
        answer = model.invoke("hi")
        return {"messages": [answer if kept else ("ai", answer.text)]}

    watcher = await _ran(hubs, one_node(work, InMemorySaver(), MessagesState), {"messages": []})
    progress = watcher.view.progress
    assert (progress.tokens_in, progress.tokens_out, progress.cost_known) == (1_000, 100, True)
    assert progress.cost == pytest.approx(ONE_CALL)
    (use,) = watcher.view.checkpoints[-1].uses
    assert (use.agent, use.provider, use.model) == ("work", "openai", "gpt-4o")


async def test_messages_that_were_there_before_are_not_counted_again(hubs: Hubs) -> None:
    def said(read: int) -> list[Any]:
        return [AIMessage("said", usage_metadata=_used(read, 1))]

    inner = one_node(lambda _state: {"messages": said(10)}, None, MessagesState)
    graph = StateGraph(MessagesState)
    graph.add_node("first", lambda _state: {"messages": said(100)})
    graph.add_node("team", inner)
    graph.add_node("all", lambda state: {"messages": [*state["messages"], *said(1_000)]})
    for source, target in ((START, "first"), ("first", "team"), ("team", "all")):
        graph.add_edge(source, target)
    watcher = await _ran(hubs, graph.compile(checkpointer=InMemorySaver()), {"messages": []})
    assert watcher.view.progress.tokens_in == 1_110
    points = sorted(watcher.view.checkpoints, key=lambda point: point.step)
    assert [[use.tokens_in for use in point.uses] for point in points] == [[], [100], [10], [1_000]]


async def test_usage_before_an_interrupt_or_failure_is_counted_and_shown_before_a_re_run(
    saver: Any, hubs: Hubs
) -> None:
    tries: list[int] = []

    def work(_state: Any) -> dict[str, Any]:
        Priced().invoke("hi")
        answer = interrupt("go on?")
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("no luck")
        return {"goal": answer}

    watcher = await _ran(hubs, one_node(work, saver), {"log": []})
    assert watcher.view.progress.cost == pytest.approx(ONE_CALL)
    repeats = (await watcher.driver.preview(Run())).repeats
    assert repeats is not None
    assert (repeats.nodes[0].node, repeats.tokens_in, repeats.cost) == (
        "work",
        1_000,
        pytest.approx(ONE_CALL),
    )
    (request,) = watcher.view.progress.pending
    await watcher.driver.execute(Answer(request.id, "yes", request.step))
    await watcher.run()
    assert (watcher.view.progress.status, watcher.view.progress.tokens_in) == ("failed", 2_000)
    await watcher.run()
    view = await watcher.check()
    assert (view.values["goal"], view.progress.tokens_in) == ("yes", 3_000)
    assert len(view.checkpoints[-1].uses) == 3


async def test_a_failed_node_is_reported_with_its_line_and_can_run_again(saver: Any, hubs: Hubs) -> None:
    tries: list[int] = []

    def work(_state: Numbers) -> dict[str, Any]:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("no luck")
        return {"log": ["luck"]}

    watcher = await _ran(hubs, one_node(work, saver), {"log": []})
    error = watcher.view.progress.error
    assert error is not None
    assert (error.node, watcher.view.progress.status) == ("work", "failed")
    assert "ValueError: no luck" in error.message
    assert error.frames[-1].function.startswith("work")
    await watcher.run()
    assert (await watcher.check()).values["log"] == ["luck"]


async def test_a_step_that_the_checkpointer_refuses_is_not_committed_and_runs_again(
    tmp_path: Path, hubs: Hubs
) -> None:
    given: list[Any] = [len, "text"]
    connection = sqlite3.connect(tmp_path / "theirs.sqlite", check_same_thread=False)
    graph = one_node(lambda _state: {"goal": given.pop(0)}, SqliteSaver(connection))
    watcher = await _ran(hubs, graph, {"log": []})
    progress = watcher.view.progress
    assert (progress.status, progress.head) == ("failed", 0)
    assert progress.error is not None
    assert (progress.error.node, "not msgpack serializable" in progress.error.message) == ("work", True)
    await watcher.run()
    view = await watcher.check()
    assert (view.progress.status, view.progress.head, view.values["goal"]) == ("completed", 1, "text")
    assert (await watcher.driver.check("log", lambda *_: None)).mismatches == ()
    connection.close()


async def test_a_node_with_a_plus_in_its_name_is_one_node(saver: Any, hubs: Hubs) -> None:
    graph = StateGraph(Numbers)
    for name in ("a", "a+b", "c"):
        graph.add_node(name, lambda _state, name=name: {"log": [name]})
    graph.add_edge(START, "a")
    graph.add_edge("a", "a+b")
    graph.add_edge("a", "c")
    watcher = await hubs.watch(graph.compile(checkpointer=saver))
    await watcher.driver.execute(Start({"log": []}))
    await watcher.run(breakpoints=(Breakpoint("before", "a+b"),))
    assert (await watcher.check()).progress.next_node == "a+b+c"
    await watcher.run(breakpoints=(Breakpoint("after", "a+b"),))
    assert (await watcher.check()).values["log"] == ["a", "a+b", "c"]
    preview = await watcher.driver.preview(UpdateState({"goal": "x"}, as_node="a+b"))
    assert [way.node for way in preview.as_nodes][:2] == ["a+b", "c"]


async def test_a_cancelled_blocking_node_saves_nothing(saver: Any, hubs: Hubs) -> None:
    started, go = threading.Event(), threading.Event()

    def work(_state: Numbers) -> dict[str, Any]:
        started.set()
        go.wait(10)
        return {"log": ["late"]}

    graph = one_node(work, saver)
    watcher = await hubs.watch(graph)
    await watcher.driver.execute(Start({"log": []}))
    await watcher.driver.execute(Run())
    await asyncio.to_thread(started.wait, 10)
    await watcher.driver.execute(CancelAttempt())
    await watcher.driver.ended(watcher.view.last_event)
    go.set()
    await watcher.look()
    assert watcher.events_of(AttemptDropped)
    assert watcher.view.progress.reason == "paused"
    assert graph.get_state({"configurable": {"thread_id": "t"}}).next == ("work",)
    await watcher.run()
    assert (await watcher.check()).values["log"] == ["late"]
    # The interpreter has nothing left over that would hang the next function that is profiled.
    thread = threading.Thread(target=_profiled, daemon=True)
    thread.start()
    await asyncio.to_thread(thread.join, 10)
    assert not thread.is_alive()


def test_a_cancelled_run_does_not_stop_the_threads_of_the_next_run() -> None:
    threads = pregel._KeptThreads()
    error = RuntimeError("given up")

    def run_both() -> None:
        given_up = threads.lent()
        given_up.__enter__()
        with threads.lent():
            executor = pregel._LENT.get()
            assert executor is not None
            assert not given_up.__exit__(RuntimeError, error, None)
            assert executor.submit(lambda: "done").result() == "done"

    contextvars.copy_context().run(run_both)  # each run has a context of its own
    threads.close()


def test_cancelling_a_run_that_is_just_ending_lets_it_end() -> None:
    app = App(one_node(lambda _state: {"log": ["done"]}, InMemorySaver()))
    config = {"configurable": {"thread_id": "t"}}

    def too_late(frame: FrameType, _event: str, _arg: object) -> None:
        if frame.f_code is App._finish.__code__:
            sys.settrace(None)
            app.drop()

    sys.settrace(too_late)
    try:
        app.run({"log": []}, config, lambda _part: None, leg=Leg())
    finally:
        sys.settrace(None)
    app.drop()
    assert app.graph.get_state(config).values["log"] == ["done"]
    app.close()


def _profiled() -> None:
    sys.setprofile(lambda *_: None)
    try:
        _quick(1)
    finally:
        sys.setprofile(None)


def _quick(number: int) -> int:
    return number + 1


async def test_a_graph_inside_is_one_step_of_its_parent_and_drawn_inside_it(saver: Any, hubs: Hubs) -> None:
    inner = one_node(lambda _state: {"log": ["inner"]}, None)
    watcher = await _ran(hubs, one_node(inner, saver), {"log": ["in"]})
    node = watcher.view.graph.node("work")
    assert node is not None
    assert (node.kind, node.graph.nodes[0].name) == ("subgraph", "work")
    shared = tuple((name, name) for name in inner.channels if name in watcher.view.values)
    assert shared
    assert (node.inputs, node.outputs) == (shared, shared)
    assert watcher.view.values["log"] == ["in", "in", "inner"]


def test_a_channel_has_the_type_that_it_is_annotated_with() -> None:
    info = describe(fan_out([]).compile(), "graph")
    assert {channel.name: channel.type for channel in info.channels}["log"] == "list"
