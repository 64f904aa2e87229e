"""A thread that is run superstep by superstep goes as one run of LangGraph goes, and shows what was saved."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.managed import IsLastStep, RemainingSteps
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from hitl_tui.drivers.protocol import ContextField
from hitl_tui.engine.commands import Answer, Start
from hitl_tui.errors import UsageError
from tests.drivers.langgraph.conftest import Hubs

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Turn(TypedDict, total=False):
    question: str
    answer: str
    log: Annotated[list[Any], operator.add]


class Words(TypedDict, total=False):
    words: list[str]
    n: int
    secret: Annotated[Any, UntrackedValue]
    left: RemainingSteps
    last: IsLastStep


async def test_a_list_that_nodes_change_in_place_is_shown_as_it_was_saved_at_each_step(
    hubs: Hubs, saver: Any
) -> None:
    def add(state: Words) -> Words:
        words = state["words"]
        words.append(f"word {state['n']}")
        return {"words": words, "n": state["n"] + 1}

    graph = StateGraph(Words).add_node("a", add).add_node("b", add)
    graph.add_edge(START, "a").add_edge("a", "b")
    app = graph.compile(checkpointer=saver)
    watcher = await hubs.watch(app)
    await watcher.driver.execute(Start({"words": ["hello"], "n": 0}))
    assert (await watcher.run()).progress.status == "completed"
    driver = watcher.driver
    shown = [(await driver.state_at(step))["words"] for step in range(3)]
    assert shown == [["hello"], ["hello", "word 0"], ["hello", "word 0", "word 1"]]
    assert (await driver.check("log", lambda done, total: None)).mismatches == ()


async def test_a_change_that_a_node_does_not_return_reaches_the_next_node_and_is_shown_as_saved(
    hubs: Hubs,
) -> None:
    def change(state: Words) -> Words:
        state["words"].append("quietly")
        return {"n": 1, "secret": object()}

    def count(state: Words) -> Words:
        return {"n": len(state["words"]) * (2 if state.get("secret") else 100)}

    graph = StateGraph(Words).add_node("change", change).add_node("count", count)
    graph.add_edge(START, "change").add_edge("change", "count")
    app = graph.compile(checkpointer=InMemorySaver())
    theirs = app.copy({"checkpointer": InMemorySaver()})
    theirs.invoke({"words": ["hello"], "n": 0}, CONFIG)
    watcher = await hubs.watch(app)
    await watcher.driver.execute(Start({"words": ["hello"], "n": 0}))
    await watcher.run()
    shown = await watcher.driver.state_at(2)
    saved = app.get_state(CONFIG).values
    assert (saved["n"], shown["n"], saved["n"]) == (4, 4, theirs.get_state(CONFIG).values["n"])
    assert shown["words"] == saved["words"]
    assert (await watcher.driver.check("log", lambda done, total: None)).mismatches == ()


async def test_the_steps_that_remain_count_over_the_whole_run(hubs: Hubs) -> None:
    def note(state: Any) -> Any:
        return {"log": [[state["left"], state["last"]]]}

    class Counting(TypedDict):
        log: Annotated[list[Any], operator.add]
        left: RemainingSteps
        last: IsLastStep

    graph = StateGraph(Counting).add_node("a", note).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: END if state["left"] <= 1 else "a", ["a", END])
    limited = graph.compile(checkpointer=InMemorySaver()).with_config(recursion_limit=5)
    watcher = await hubs.watch(limited)
    await watcher.driver.execute(Start({"log": []}))
    await watcher.step()
    assert (await watcher.run()).progress.status == "completed"
    assert limited.get_state(CONFIG).values == {"log": [[4, False], [3, False], [2, False], [1, True]]}


async def test_nodes_get_the_graphs_store(hubs: Hubs) -> None:
    async def remember(state: Turn, runtime: Runtime[Any]) -> Turn:
        assert runtime.store is not None
        await runtime.store.aput(("facts",), "name", {"name": "ann"})
        return {"log": [type(runtime.store).__name__]}

    store = InMemoryStore()
    graph = StateGraph(Turn).add_node("a", remember).add_edge(START, "a")
    watcher = await hubs.watch(graph.compile(checkpointer=InMemorySaver(), store=store))
    await watcher.driver.execute(Start({"log": []}))
    assert (await watcher.run()).progress.status == "completed"
    item = store.get(("facts",), "name")
    assert item is not None
    assert item.value == {"name": "ann"}


def remembering(think: Any) -> Any:
    """A graph that calls a subgraph with a memory of its own."""
    agent = StateGraph(Turn).add_node("think", think).add_edge(START, "think").compile(checkpointer=True)
    graph = StateGraph(Turn).add_node("agent", agent).add_node("after", lambda state: {})
    return graph.add_edge(START, "agent").add_edge("agent", "after").compile(checkpointer=InMemorySaver())


async def test_a_subgraph_with_its_own_memory_runs_in_each_turn(hubs: Hubs) -> None:
    graph = remembering(lambda state: {"answer": f"{state['question']} of {len(state['log'])}"})
    theirs = graph.copy({"checkpointer": InMemorySaver()})
    watcher = await hubs.watch(graph)
    for question in ("one", "two", "three"):
        given: Any = {"question": question, "log": [0]}
        await watcher.driver.execute(Start(given))
        assert (await watcher.run()).progress.status == "completed"
        assert graph.get_state(CONFIG).values == theirs.invoke(given, CONFIG)


async def test_a_subgraph_with_its_own_memory_asks_in_each_turn(hubs: Hubs) -> None:
    graph = remembering(lambda state: {"answer": interrupt(state["question"])})
    watcher = await hubs.watch(graph)
    for question in ("one", "two"):
        await watcher.driver.execute(Start({"question": question, "log": []}))
        (request,) = (await watcher.run()).progress.pending
        assert request.payload == question
        await watcher.driver.execute(Answer(request.id, f"yes, {question}", request.step, "ann"))
        assert (await watcher.run()).progress.status == "completed"
        assert graph.get_state(CONFIG).values["answer"] == f"yes, {question}"


# --- what a run gets besides its input -------------------------------------------------------------------


@dataclass
class Model:
    name: str = "small"
    temperature: float = 0.5


def log_context(state: Turn, runtime: Runtime[Model], config: RunnableConfig) -> Turn:
    return {"log": [runtime.context.name, config["configurable"].get("user")]}


def with_context() -> Any:
    graph = (
        StateGraph(Turn, context_schema=Model)
        .add_node("a", log_context)
        .add_node("b", log_context)
        .add_node("c", log_context)
    )
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c")
    return graph.compile(checkpointer=InMemorySaver(), interrupt_before=["b", "c"])


async def test_each_step_gets_the_context_and_configurable_of_the_threads_start(hubs: Hubs) -> None:
    graph = with_context()
    watcher = await hubs.watch(graph)
    await watcher.driver.execute(
        Start({"log": []}, context={"name": "large", "configurable": {"user": "ann"}})
    )
    for stop in ("b", "c"):
        (request,) = (await watcher.run()).progress.pending
        assert (request.node, request.breakpoint) == (stop, True)
    assert (await watcher.run()).progress.status == "completed"
    assert graph.get_state(CONFIG).values["log"] == ["large", "ann"] * 3
    inputs = [entry for entry in (await watcher.driver.snapshot()).ledger if entry.kind == "input"]
    assert [entry.data["context"]["name"] for entry in inputs] == ["large"]


class Asked(TypedDict, total=False):
    user: str


class Checked(BaseModel):
    key: str
    tries: int = 3


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        (Model, [ContextField("name", "text", "small"), ContextField("temperature", "number", "0.5")]),
        (Checked, [ContextField("key", "text", required=True), ContextField("tries", "number", "3")]),
        (Asked, [ContextField("user", "text")]),
        (None, []),
    ],
    ids=["dataclass", "pydantic", "typed dict", "none"],
)
async def test_a_new_thread_says_which_context_it_can_be_given(
    hubs: Hubs, schema: Any, fields: list[ContextField]
) -> None:
    graph = StateGraph(Turn, context_schema=schema).add_node("a", lambda state: {"log": []})
    hub = hubs.over(graph.add_edge(START, "a").compile(checkpointer=InMemorySaver()))
    driver = await hub.begin("t", "ann", context={"configurable": {"user": "ann"}})
    assert list(await driver.context_fields()) == fields
    given = {field.name: "x" for field in fields if field.required}
    await driver.execute(Start({"log": []}, context=given))
    assert await driver.context_fields() == ()
    cursor = hub.mirror.store.cursor("t")
    assert cursor is not None
    assert cursor.context == {"configurable": {"user": "ann"}, **given}


@pytest.mark.integration
@pytest.mark.parametrize("saver", ["server"], indirect=True)
async def test_a_server_says_which_context_its_graph_takes(hubs: Hubs, saver: Any) -> None:
    graph = StateGraph(Turn, context_schema=Checked).add_node("a", lambda state: {"log": []})
    hub = hubs.over(graph.add_edge(START, "a").compile(checkpointer=saver))
    fields = await (await hub.begin("t", "ann")).context_fields()
    assert fields == (ContextField("key", "text"), ContextField("tries", "number", "3"))


async def test_defaults_of_the_context_are_filled_in_and_stops_hold_in_each_turn(
    hubs: Hubs,
) -> None:
    graph = with_context()
    watcher = await hubs.watch(graph)
    for turn in range(2):
        await watcher.driver.execute(Start({"log": [turn]}))
        for stop in ("b", "c"):
            assert [request.node for request in (await watcher.run()).progress.pending] == [stop]
        assert (await watcher.run()).progress.status == "completed"
    assert graph.get_state(CONFIG).values["log"] == [0, *["small", None] * 3, 1, *["small", None] * 3]
    kinds = [entry.kind for entry in (await watcher.driver.snapshot()).ledger]
    assert "withdrawn" not in kinds, "a stop is asked once, and passed"


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"nmae": "x"}, "no field 'nmae'"),
        ({"configurable": {"thread_id": "x"}}, "set by LangGraph"),
        ({"configurable": 3}, "not an object"),
    ],
)
async def test_a_context_that_the_graph_does_not_take_is_refused(
    hubs: Hubs, context: dict[str, Any], words: str
) -> None:
    watcher = await hubs.watch(with_context())
    with pytest.raises(UsageError, match=words):
        await watcher.driver.execute(Start({"log": []}, context=context))
