"""Names of LangGraph and misspelt names get a hint; objects describe themselves."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    GraphInvalid,
    GraphRunner,
    HitlError,
    MemoryCheckpointer,
    NodeFailed,
    StateGraph,
    UsageError,
    reducers,
)
from tests.engine.building import chain, one_node
from tests.support.spec import spec

pytestmark = spec("5")

CONFIG: Any = {"configurable": {"thread_id": "mine"}}


def runner() -> Any:
    return chain({"n": Channel(0)}, lambda state: {"n": 1}).compile(checkpointer=MemoryCheckpointer())


@pytest.mark.parametrize(
    ("call", "problem", "hint"),
    [
        (lambda r: r.invoke({}, config=CONFIG), "there is no argument 'config'", 'thread_id="…"'),
        (lambda r: r.invoke({}, CONFIG), "2 arguments without a name, and it takes 1", 'thread_id="…"'),
        (lambda r: r.invoke({}, "mine"), "2 arguments without a name", "give by name: thread_id=…, "),
        (lambda r: r.invoke({}, recursion_limit=5), "no argument 'recursion_limit'", "max_iterations"),
        (lambda r: asyncio.run(r.ainvoke({}, config=CONFIG)), "no argument 'config'", 'thread_id="…"'),
        (lambda r: r.stream({}, stream_mode="values"), "no argument 'stream_mode'", "on_event"),
        (lambda r: r.astream({}, config=CONFIG), "no argument 'config'", 'thread_id="…"'),
        (lambda r: r.get_state(CONFIG), "a thread id is text, this one a dict", "use 'mine'"),
        (lambda r: r.update_state(CONFIG, {"n": 1}), "a thread id is text", "use 'mine'"),
        (lambda r: r.update_state("t", value={"n": 1}), "no argument 'value'", "did you mean 'values'?"),
        (lambda r: r.history(thread_id=5), "a thread id is text, this one a whole number", "use '5'"),
    ],
)
def test_a_call_as_in_langgraph_gets_a_hint(call: Callable[[Any], Any], problem: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        call(runner())
    assert problem in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("get_state_history", "; write history(thread_id)"),
        ("batch", "; call invoke for each input"),
        ("invok", "; did you mean 'invoke'?"),
        ("_private", ""),
    ],
)
def test_an_unknown_method_of_a_runner_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(runner(), name)
    assert str(caught.value) == f"a GraphRunner has no attribute {name!r}{hint}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("add_conditional_edges", "; write add_conditional_edge(source, route_fn, route_map)"),
        ("set_entry_point", "; write add_edge(START, node)"),
        ("add_nodes", "; did you mean 'add_node'?"),
        ("invoke", "; a graph is compiled first: graph.compile().invoke(…)"),
    ],
)
def test_an_unknown_method_of_a_graph_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(StateGraph({"n": Channel(0)}), name)
    assert str(caught.value) == f"a StateGraph has no attribute {name!r}{hint}"


def test_the_methods_of_a_runner_keep_their_signatures() -> None:
    assert list(inspect.signature(GraphRunner.invoke).parameters)[:3] == ["self", "inputs", "thread_id"]
    assert inspect.iscoroutinefunction(GraphRunner.ainvoke)


def test_objects_say_what_they_are() -> None:
    assert repr(runner()) == "GraphRunner('graph', nodes=['n1'], store=MemoryCheckpointer)"
    assert repr(Channel([], reducer="append")) == "Channel([], reducer='append')"
    assert repr(Channel("key", visibility="private")) == "Channel(visibility='private')"
    assert "default: Any = (not given)" in str(inspect.signature(Channel))


def test_an_invalid_option_of_a_map_is_reported_as_its_own() -> None:
    graph: Any = StateGraph({"xs": Channel([1], reducer="overwrite")})
    with pytest.raises(GraphInvalid) as caught:
        graph.add_map("work", over="xs", node=lambda state: None, retires=3)
    assert caught.value.message == "add_map: got an unexpected keyword argument 'retires'"
    assert caught.value.hint == "did you mean 'retry'?"


class Typed(TypedDict):
    n: int
    words: list[str]


def test_a_state_class_gets_a_hint_to_write_channels() -> None:
    given: Any = Typed
    with pytest.raises(GraphInvalid) as caught:
        StateGraph(given)
    assert caught.value.message == "the channels are the class Typed"
    assert caught.value.hint == 'give a dict, as {"n": Channel(DEFAULT, schema=int), …}'


def test_a_dict_in_the_place_of_a_result_names_the_result() -> None:
    envelope = {"status": "completed", "text": "done", "state_updates": {"n": 1}}
    with pytest.raises(NodeFailed) as caught:
        one_node({"n": Channel(0)}, lambda state: envelope).invoke()
    assert "return NodeResult(updates={…}, status=…, text=…)" in caught.value.hint


class Truth:
    """As numpy has one."""

    def __repr__(self) -> str:
        return "np.True_"

    def __str__(self) -> str:
        return "True"


def test_a_route_that_returns_a_foreign_boolean_gets_a_hint() -> None:
    graph = StateGraph({"n": Channel(0)}).add_node("a", lambda state: None).add_edge(START, "a")
    truth: Any = Truth()
    graph.add_conditional_edge("a", lambda state: truth, {True: END, False: "a"})
    with pytest.raises(HitlError) as caught:
        graph.compile().invoke()
    assert caught.value.hint == "write bool(…) around it; valid keys: 'true', 'false'"


def test_the_reducers_show_what_they_offer_and_no_more() -> None:
    assert {"append", "last_n", "sum"} < set(dir(reducers))
    assert not {"Any", "Callable", "re"} & set(dir(reducers))


@pytest.mark.parametrize(("name", "hint"), [("append", "append()"), ("last_n", "last_n(20)")])
def test_a_reducer_that_was_not_called_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(GraphInvalid) as caught:
        Channel([], reducer=getattr(reducers, name))
    assert caught.value.hint == f"write {hint}"
