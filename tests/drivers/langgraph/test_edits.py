"""Edits of LangGraph threads tried on copies: values, operators, the way on as each node, nothing stored."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.edits import (
    LocalTrial,
    as_nodes,
    candidates,
    editable,
    lost_by,
    replacing,
    try_update,
    update_of,
)
from hitl_tui.errors import UsageError
from tests.drivers.langgraph import graphs

langgraph_types = pytest.importorskip("langgraph.types")
pytestmark = pytest.mark.skipif(
    not hasattr(langgraph_types, "Overwrite"), reason="this LangGraph has no Overwrite"
)
CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest) -> Iterator[BaseCheckpointSaver[Any]]:
    if request.param == "memory":
        yield InMemorySaver()
        return
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()


class Given(TypedDict):
    log: Annotated[list[str], operator.add]


seen: list[list[str]] = []


def hostile(held: list[str], update: Any) -> list[str]:
    if update == "boom":
        seen.append(held)
        held.append("changed in place")
        raise RuntimeError("the operator broke")
    return [*held, *update]


class Strange(TypedDict):
    log: Annotated[list[str], hostile]


def opened(graph: StateGraph[Any], saver: BaseCheckpointSaver[Any], **compiled: Any) -> Any:
    app = graph.compile(checkpointer=saver, **compiled)
    app.invoke({"log": []}, CONFIG)
    return app


def head(app: Any) -> Any:
    return app.get_state(CONFIG).config


def stored(app: Any) -> list[str]:
    return [state.config["configurable"]["checkpoint_id"] for state in app.get_state_history(CONFIG)]


async def test_setting_a_channel_goes_around_its_operator(saver: BaseCheckpointSaver[Any]) -> None:
    app = opened(graphs.two_reviews([]), saver)
    update, problems = update_of(app, {"log": ["only"], "draft": "mine"})
    before = stored(app)
    tried = await try_update(app, head(app), update)
    assert problems == {}
    assert (tried.before["log"], tried.after["log"], tried.after["draft"]) == (["plan"], ["only"], "mine")
    assert tried.next_nodes == ("legal", "style")
    assert stored(app) == before, "nothing was stored"
    assert app.get_state(CONFIG).values["log"] == ["plan"]


async def test_an_update_goes_through_the_operator(saver: BaseCheckpointSaver[Any]) -> None:
    app = opened(graphs.two_reviews([]), saver)
    assert (await try_update(app, head(app), {"log": ["more"]})).after["log"] == ["plan", "more"]


async def test_what_is_previewed_is_what_update_state_does(saver: BaseCheckpointSaver[Any]) -> None:
    app = opened(graphs.routed([]), saver, interrupt_after=["write"])
    values: dict[str, Any] = {"score": 9, "log": []}
    update, _ = update_of(app, values)
    for offers in await as_nodes(LocalTrial(app, app, head(app)), values, candidates(app, ["write"])):
        at = head(app)
        app.update_state(at, update, as_node={"START": "__start__"}.get(offers.node, offers.node))
        assert app.get_state(CONFIG).next == offers.next_nodes, offers


async def test_the_preview_names_the_next_node_for_each_possible_as_node(
    saver: BaseCheckpointSaver[Any],
) -> None:
    app = opened(graphs.routed([]), saver, interrupt_after=["write"])
    nodes = candidates(app, ["write"])
    assert nodes == ("write", "revise", "publish", "START")
    offers = await as_nodes(LocalTrial(app, app, head(app)), {"score": 9}, nodes)
    assert {each.node: each.next_nodes for each in offers} == {
        "write": ("publish",),
        "revise": ("write",),
        "publish": (),
        "START": ("write",),
    }


async def test_a_route_that_raises_is_reported_with_its_place(saver: BaseCheckpointSaver[Any]) -> None:
    app = opened(graphs.routed([]), saver, interrupt_after=["write"])
    as_write, as_revise = await as_nodes(LocalTrial(app, app, head(app)), {"draft": ""}, ["write", "revise"])
    assert as_write.problem.startswith("ValueError: no draft to route by (in way, graphs.py:")
    assert (as_revise.problem, as_revise.next_nodes) == ("", ("write",))


async def test_an_ambiguous_edit_wants_a_node(saver: BaseCheckpointSaver[Any]) -> None:
    graph = StateGraph(graphs.State)
    for name in ("left", "right", "join"):
        graph.add_node(name, lambda _state, name=name: {"log": [name]})
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    graph.add_edge(["left", "right"], "join")
    app = opened(graph, saver, interrupt_before=["join"])
    tried = await try_update(app, head(app), {"draft": "x"})
    assert tried.ambiguous
    assert "say which" in tried.problem
    assert not (await try_update(app, head(app), {"draft": "x"}, "left")).problem


async def test_the_operator_gets_a_copy_and_its_error_is_reported(saver: BaseCheckpointSaver[Any]) -> None:
    seen.clear()
    graph = StateGraph(Strange)
    graph.add_node("node", lambda _state: {"log": ["node"]})
    graph.add_edge(START, "node")
    app = opened(graph, saver)
    tried = await try_update(app, head(app), {"log": "boom"}, "node")
    assert tried.problem.startswith("RuntimeError: the operator broke (in hostile, test_edits.py:")
    assert seen
    assert app.get_state(CONFIG).values["log"] == ["node"]


async def test_an_edit_inside_a_subgraph_continues_there(saver: BaseCheckpointSaver[Any]) -> None:
    app = opened(graphs.team_of([]), saver)
    (task,) = app.get_state(CONFIG, subgraphs=True).tasks
    before = stored(app)
    tried = await try_update(app, task.state.config, {"draft": "inside"})
    assert (tried.before["draft"], tried.after["draft"], tried.next_nodes) == ("given", "inside", ("ask",))
    team = dict(app.get_subgraphs())["team"]
    trial = LocalTrial(app, team, task.state.config)
    offers = await as_nodes(trial, {"draft": "inside"}, candidates(team))
    assert [(each.node, each.next_nodes) for each in offers] == [
        ("gather", ("ask",)),
        ("ask", ()),
        ("START", ("gather",)),
    ]
    assert stored(app) == before


def test_channels_that_can_not_be_set_are_reported(saver: BaseCheckpointSaver[Any]) -> None:
    app = opened(graphs.two_reviews([]), saver)
    update, problems = update_of(app, {"draft": "x", "unheard": 1, "branch:to:legal": 2})
    assert update == {"draft": "x"}
    assert sorted(problems) == ["branch:to:legal", "unheard"]
    assert editable(app) == ("log", "draft", "score")
    with pytest.raises(UsageError, match="no channel"):
        replacing(app, "__start__", {})


async def test_a_value_that_a_node_does_not_write_is_not_lost_silently(
    saver: BaseCheckpointSaver[Any],
) -> None:
    graph = StateGraph(graphs.State, input_schema=Given)
    graph.add_node("node", lambda _state: {"draft": "first"})
    graph.add_edge(START, "node")
    app = opened(graph, saver)
    tried = await try_update(app, head(app), {"draft": "x"}, "START")
    assert tried.problem or lost_by(tried, {"draft": "x"}) == ["draft"]
    (offers,) = await as_nodes(LocalTrial(app, app, head(app)), {"draft": "x"}, ["START"])
    assert offers.problem


async def test_routes_that_are_coroutines_are_run_too() -> None:
    graph = StateGraph(graphs.State)

    async def write(_state: graphs.State) -> graphs.State:
        return {"draft": "d"}

    async def way(state: graphs.State) -> str:
        return "on" if state.get("score") else "__end__"

    graph.add_node("write", write)
    graph.add_node("on", write)
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", way, ["on", "__end__"])
    app = graph.compile(checkpointer=InMemorySaver())
    await app.ainvoke({"log": []}, CONFIG)
    assert (await try_update(app, head(app), {"score": 1}, "write")).next_nodes == ("on",)
