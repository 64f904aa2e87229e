"""Common first mistakes are explained, with the line of the user's code."""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    Gate,
    GateChoice,
    GraphInvalid,
    HitlError,
    MemoryCheckpointer,
    NodeFailed,
    RetryPolicy,
    ScriptedModel,
    StateGraph,
    UsageError,
    WorkflowState,
    custom_condition,
    max_turns,
)
from tests.engine.building import chain, one_node
from tests.support.spec import spec

pytestmark = spec("5")

DRAFT = {"draft": Channel("")}


def by_attribute(state: Any) -> Any:
    return {"draft": state.draft}


def by_assignment(state: Any) -> None:
    state["draft"] = "new"


def by_deletion(state: Any) -> None:
    del state["draft"]


def by_number(state: Any) -> Any:
    return {"draft": state[0]}


def unknown_agent(state: Any, config: Any) -> Any:
    return {"draft": config.agents["writer"].chat("…")}


def bug(state: Any) -> Any:
    return {"draft": 1 / len(state["draft"])}


def misspelt(state: Any) -> Any:
    return {"draft": state["drft"]}


def streamed(state: Any) -> Any:
    yield {"draft": "piece"}


@pytest.mark.parametrize(
    ("node", "why", "fix"),
    [
        (by_attribute, "the state has no attribute 'draft'; write state['draft']", 'state.draft}'),
        (by_assignment, "read-only inside a node: return {'draft': …}", 'state["draft"] = "new"'),
        (by_deletion, "read-only inside a node: return {'draft': None} to set it to null", "del state"),
        (by_number, "a channel is named by a text, not by a whole number", "channels: draft"),
        (unknown_agent, "the graph has no agent 'writer'", "hand it over: compile(agents={'writer': …}); at"),
        (bug, "ZeroDivisionError: division by zero", 'at test_first_mistakes.py, line '),
        (bug, "ZeroDivisionError: division by zero", ': return {"draft": 1 / len(state["draft"])}'),
        (streamed, "returned a generator", "call config.emit(text) instead of yield"),
        (misspelt, "there is no channel 'drft'", "did you mean 'draft'?; at test_first_mistakes.py, line "),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_a_node_that_fails_says_where(node: Callable[..., Any], why: str, fix: str) -> None:
    with pytest.raises(NodeFailed) as caught:
        one_node(DRAFT, node).invoke()
    assert why in caught.value.message
    assert fix in caught.value.hint


@pytest.mark.parametrize("watched", [False, True], ids=["nobody watches", "watched"])
@pytest.mark.parametrize(
    "misuse", [lambda s: s + 1, lambda s: s(), hash, json.dumps, lambda s: setattr(s, "x", 1)]
)
def test_python_calls_the_state_by_its_public_name(misuse: Callable[..., Any], watched: bool) -> None:
    runner = one_node(DRAFT, misuse)
    with pytest.raises(NodeFailed, match=WorkflowState.__name__) as failed:
        runner.invoke(on_event=(lambda _event: None) if watched else None)
    assert "Noted" not in failed.value.message


def test_an_error_outside_the_users_code_names_no_line() -> None:
    with pytest.raises(NodeFailed) as caught:
        one_node(DRAFT, lambda state: "text").invoke()
    assert ", line " not in caught.value.hint


def test_a_route_that_raises_says_where() -> None:
    graph = StateGraph(DRAFT).add_node("n", lambda state: None).add_edge(START, "n")
    graph.add_conditional_edge("n", lambda state: 1 / 0, {"again": "n", "end": END})
    with pytest.raises(HitlError) as caught:
        graph.compile().invoke()
    assert "at test_first_mistakes.py, line " in caught.value.hint


def gate(**values: Any) -> Gate:
    return Gate("n", "Good?", [GateChoice("yes", "yes", "y", values=values)], subject="draft")


@pytest.mark.parametrize(
    ("make", "why", "fix"),
    [
        (lambda: one_node(DRAFT, bug).invoke("hello"), "the input is text", 'give a dict, as {"task"'),  # type: ignore[arg-type]
        (lambda: compiled(()).invoke(thread_id=7), "a thread id is text", "use '7'"),  # type: ignore[arg-type]
        (lambda: Gate("n", "Good?", ["yes"]), "the choice 'yes' is text", "write GateChoice("),  # type: ignore[list-item]
        (lambda: one_node({"draft": str}, bug), "channel 'draft' is a type", "Channel(DEFAULT, schema=str)"),  # type: ignore[dict-item]
        (lambda: Agent("a", ["x"]), "a list is not a model", 'ScriptedModel(["a reply"])'),  # type: ignore[arg-type]
        (lambda: ScriptedModel("a reply"), "replies is text", "ScriptedModel(['a reply'])"),
        (lambda: Agent(5, ScriptedModel([])), "the agent's name 5 is not", 'Agent("writer"'),  # type: ignore[arg-type]
        (lambda: Agent(" ", ScriptedModel([])), "the agent's name ' ' is not", 'Agent("writer"'),
        (lambda: compiled((), agents={5: "a"}), "agents: the name 5 is not", '{"writer": …}'),
        (lambda: StateGraph(DRAFT, name=None), "the graph's name None is", 'name="review"'),  # type: ignore[arg-type]
        (lambda: StateGraph(DRAFT, name="\ud800"), "the graph's name '\\ud800' is", 'name="review"'),
        (lambda: compiled(gate(drft=1)), "gate at 'n': there is no channel 'drft'", "channels: draft"),
        (lambda: one_node(DRAFT, lambda: None), "can't be called with (state): too many", "lambda state: …"),
        (lambda: one_node(DRAFT, takes_three), "missing a required argument", "takes_three(state, config)"),
        (lambda: Channel(0, reducer=lambda new: new), "<lambda> can't be called", "(old, new) -> value"),
        (lambda: Channel(0, reducer=waits), "the reducer waits is async", "(old, new) -> value"),
        (lambda: routed(waits), "the route after 'n' is async", "only nodes may wait"),
        (lambda: one_node(DRAFT, bug, retry=3), "node 'n1': retry is a whole", "RetryPolicy(max_attempts=3)"),
        (lambda: one_node(DRAFT, bug, timeout="3"), "node 'n1': timeout is text", "timeout=30"),
        (lambda: compiled((), "runs.db"), "checkpointer is text", "SQLiteCheckpointer('runs.db')"),
        (lambda: compiled((), agents=["a"]), "agents is a list", 'as {"writer": Agent('),
        (lambda: compiled((), termination=bug), "termination is a function", "custom_condition(function)"),
        (lambda: compiled((), limits={}), "limits is a dict", "Limits(max_tokens=50_000)"),
        (lambda: compiled(gate(draft="x"), None).invoke(), "at 'n' needs a store", "`hitl-tui run`"),
    ],
    ids=["a text as input", "a number as thread", "a text as choice", "a type as channel", "a list as model",
         "a text as script", "a number as agent", "a blank as agent", "a number as place of an agent",
         "null as graph", "a surrogate as graph",
         "a gate that sets no channel", "a node that takes nothing", "a node that takes three",
         "a reducer that takes one", "an async reducer", "an async route", "a number as retry",
         "a text as timeout", "a path as store", "a list of agents", "a function as termination",
         "a dict as limits", "a gate without a store"],
)  # fmt: skip
def test_a_mistake_in_building_says_what_to_write(make: Callable[[], Any], why: str, fix: str) -> None:
    with pytest.raises((GraphInvalid, UsageError)) as caught:
        make()
    assert why in caught.value.message
    assert fix in caught.value.hint


async def waits(*given: Any) -> Any:
    return None


def takes_three(state: Any, config: Any, extra: Any) -> Any:
    return None


def routed(route: Any) -> StateGraph:
    return StateGraph(DRAFT).add_node("n", bug).add_conditional_edge("n", route, {"end": END})


OPTIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no list of interrupts": ({"interrupt_before": None}, "interrupt_before is null", "a list of nodes"),
    "inputs are names": ({"inputs": ["draft"]}, "an entry of inputs is text", "as InputField("),
    "a size in text": ({"max_update_bytes": "1 MB"}, "max_update_bytes is '1 MB'", "whole number"),
    "reads is a number": ({"reads": 5}, "node 'n1': reads is 5", "a list of names"),
    "writes has a number": ({"writes": [1]}, "node 'n1': writes is [1]", "a list of names"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "why", "fix"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_of_the_wrong_type_says_what_to_write(options: dict[str, Any], why: str, fix: str) -> None:
    of_nodes = {
        name: options.pop(name) for name in ("retry", "timeout", "reads", "writes") if name in options
    }
    with pytest.raises(GraphInvalid) as caught:
        chain(DRAFT, bug, **of_nodes).compile(**options)
    assert why in caught.value.message
    assert fix in caught.value.hint


@pytest.mark.parametrize("asked", [waits, lambda: True], ids=["async", "without an argument"])
def test_a_condition_that_can_not_be_called_with_the_state_is_refused(asked: Any) -> None:
    with pytest.raises(GraphInvalid, match=r"the condition .* (is async|can't be called with)"):
        custom_condition(asked)


def test_a_condition_is_combined_with_another_condition() -> None:
    for combine in (operator.or_, operator.and_):
        with pytest.raises(TypeError, match="unsupported operand"):
            combine(max_turns(3), len)


@pytest.mark.parametrize(
    ("options", "why"),
    [({"resume": "entrypoint"}, "resume is 'entrypoint'"), ({"on_limit": "wait"}, "on_limit is 'wait'")],
    ids=["resume", "on_limit"],
)
def test_a_misspelt_option_starts_no_thread(options: dict[str, Any], why: str) -> None:
    store = MemoryCheckpointer()
    runner = chain(DRAFT, bug).compile(checkpointer=store)
    with pytest.raises(UsageError, match=why) as caught:
        runner.invoke(thread_id="t", **options)
    assert caught.value.hint.startswith("one of '")
    assert store.list_threads() == []


def compiled(asks: Any, store: Any = ..., **options: Any) -> Any:
    graph = StateGraph(DRAFT).add_node("n", bug).add_edge(START, "n").add_edge("n", END)
    checkpointer = MemoryCheckpointer() if store is ... else store
    return graph.compile(checkpointer=checkpointer, interrupt_after=asks, **options)


@pytest.mark.parametrize(
    ("edge", "hint"), [(("start", "n"), "did you mean START?"), (("n", "__end__"), "did you mean END?")]
)
def test_an_end_named_as_in_another_framework_gets_a_hint(edge: tuple[str, str], hint: str) -> None:
    with pytest.raises(GraphInvalid) as caught:
        StateGraph(DRAFT).add_node("n", bug).add_edge(*edge).compile()
    assert caught.value.hint == hint


def test_a_graph_that_is_run_before_it_is_compiled_says_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r"graph\.compile\(\)\.invoke\(…\)"):
        StateGraph(DRAFT).invoke({})  # type: ignore[attr-defined]


def test_swapped_inputs_of_a_subgraph_get_a_hint() -> None:
    inner = StateGraph({"inside": Channel("")}).add_node("n", bug).add_edge(START, "n").add_edge("n", END)
    graph = StateGraph(DRAFT).add_subgraph("sub", inner, inputs={"inside": "draft"}, outputs={})
    with pytest.raises(GraphInvalid) as caught:
        graph.add_edge(START, "sub").add_edge("sub", END).compile()
    assert caught.value.hint.startswith("inputs goes from this graph's channel to the inner one's")


def test_a_gate_inside_a_subgraph_is_named_where_there_is_no_store() -> None:
    inner = compiled(gate(draft="x"))
    graph = StateGraph(DRAFT).add_subgraph("sub", inner, inputs={}, outputs={})
    runner = graph.add_edge(START, "sub").add_edge("sub", END).compile()
    with pytest.raises(UsageError, match="the interrupt at 'n' inside subgraph 'sub' needs a store"):
        runner.invoke()


def test_a_reducer_that_returns_nothing_is_named() -> None:
    channels = {"n": Channel(0, schema=int, reducer=lambda old, new: None)}
    with pytest.raises(NodeFailed, match=r"the reducer .*<lambda> returned None") as caught:
        one_node(channels, lambda state: {"n": 1}).invoke()
    assert caught.value.hint == "let it return the next value"


async def test_a_node_whose_own_task_was_cancelled_fails_and_is_tried_again() -> None:
    async def node(state: Any, config: Any) -> Any:
        if config.attempt == 1:
            raise asyncio.CancelledError
        return {"draft": "whole"}

    runner = one_node(DRAFT, node, retry=RetryPolicy(max_attempts=2, wait=0))
    assert (await runner.ainvoke())["draft"] == "whole"


async def test_cancelling_a_run_is_no_failure_of_the_node() -> None:
    started = asyncio.Event()

    async def node(state: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    runner = chain(DRAFT, node).compile(checkpointer=MemoryCheckpointer())
    run = asyncio.create_task(runner.ainvoke(thread_id="t"))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert runner.open("t").cursor.status == "waiting"


def test_one_gate_needs_no_list_around_it() -> None:
    compiled(gate(draft="x"))


def test_a_question_that_nobody_can_answer_fails_when_it_is_asked() -> None:
    runner = one_node(DRAFT, lambda state, config: {"draft": config.interrupt("Which?")})
    with pytest.raises(UsageError, match=r"node .* asks a person, but this runner has no store") as caught:
        runner.invoke()
    assert "MemoryCheckpointer()" in caught.value.hint
