from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hitl_tui import END, START, Channel, InputField, MemoryCheckpointer, StateGraph
from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.loading.compatibility import Difference, differences
from tests.support.spec import spec

pytestmark = spec("10")

CHANNELS = {
    "draft": Channel("", schema=str),
    "n": Channel(0, reducer="sum"),
    "key": Channel("", visibility="private"),
}


def info(
    channels: dict[str, Channel] | None = None,
    ways: dict[str, dict[str, str]] | None = None,
    *,
    name: str = "graph",
    writes: list[str] | None = None,
    inputs: tuple[InputField, ...] = (),
) -> GraphInfo:
    """A graph; `ways` gives for each node its ways on."""
    graph = StateGraph(CHANNELS if channels is None else channels, name=name)
    ways = ways or {"write": {"": "check"}, "check": {"again": "write", "done": END}}
    for node, targets in ways.items():
        graph.add_node(node, lambda state: {}, writes=writes if node == "write" else None)
        if "" in targets:
            graph.add_edge(node, targets[""])
        else:
            graph.add_conditional_edge(node, lambda state: "done", targets)
    graph.add_edge(START, next(iter(ways)))
    return graph.compile(inputs=inputs).graph.info


def words(differences: list[Difference]) -> list[str]:
    return [difference.words for difference in differences]


def request(**changes: Any) -> Request:
    return msgspec.structs.replace(
        Request(id="r", kind="choose", node="check", when="after", step=2, title="Good?", subject="draft"),
        **changes,
    )


def test_the_same_graph_fits() -> None:
    cursor = Cursor("t", position="route:check", pending=(request(),))
    assert differences(info(), info(), cursor, {"draft": "x", "n": 1, "key": "k"}) == []


def test_channels() -> None:
    new = info(
        {
            "draft": Channel("", schema={"type": "string", "maxLength": 3}),
            "n": Channel(0, reducer="max"),
            "key": Channel(""),
            "more": Channel(),
        }
    )
    assert words(differences(info(), new, values={"draft": "abc", "n": 1, "key": "secret"})) == [
        "channel 'more' is new and starts at its default",
        "channel 'draft' has another schema",
        "channel 'n': its reducer was sum, now it is max",
        "channel 'key' was private, now public",
    ]
    assert words(
        differences(new, info({"draft": Channel("", schema={"type": "string", "maxLength": 3})}))
    ) == [
        "channel 'n' is gone; its value stays in the log",
        "channel 'key' is gone; its value stays in the log",
        "channel 'more' is gone; its value stays in the log",
    ]


def test_values_that_do_not_fit_any_more_and_private_ones_stay_private() -> None:
    schema = {"enum": ["", "a"]}
    new = info({"draft": Channel("", schema=schema), "key": Channel("", schema=schema, visibility="private")})
    found = [
        text
        for text in words(differences(info(), new, values={"draft": "b", "key": "secret"}))
        if "value of" in text
    ]
    assert len(found) == 2
    assert found[0].startswith("the value of channel 'draft' doesn't fit its schema: channel 'draft'")
    assert found[1] == "the value of channel 'key' doesn't fit its schema"


def test_differences_of_nodes_and_routes() -> None:
    new = info(ways={"write": {"": "polish"}, "polish": {"": END}}, writes=["draft"])
    assert words(differences(info(), new)) == [
        "node 'check' is gone",
        "node 'polish' is new",
        "node 'write' writes draft, before *",
        "after 'write' it goes to 'polish'",
    ]
    turned = info(ways={"write": {"": "check"}, "check": {"no": "write", "done": END}})
    assert words(differences(info(), turned)) == [
        "after 'check' it goes to 'write' on 'no', to 'END' on 'done'"
    ]
    assert words(differences(info(), info(ways={"check": {"a": "write", "b": END}, "write": {"": "check"}})))[
        0
    ] == ("after 'START' it goes to 'check'")


def test_name_and_inputs() -> None:
    new = info(name="other", inputs=(InputField("n", "n", "How many?"),))
    assert words(differences(info(), new)) == [
        "the graph was called 'graph', now it is 'other'",
        "what it asks for at the start is different",
    ]


@pytest.mark.parametrize(
    ("position", "said"),
    [
        ("node:write", None),
        ("end", None),
        ("node:check", "the thread continues at node 'check', which is gone"),
        ("route:check", "the thread must choose a route after 'check', and no edge leads from there"),
    ],
)
def test_the_threads_current_node_must_exist(position: str, said: str | None) -> None:
    new = info(ways={"write": {"": END}})
    first = differences(info(), new, Cursor("t", position=position))[0]
    assert first.blocks == (said is not None)
    if said:
        assert first.words == said


def test_questions_that_wait() -> None:
    new = info({"n": Channel(0, reducer="sum"), "key": CHANNELS["key"]}, {"write": {"": END}})
    cursor = Cursor("t", position="node:write", pending=(request(),))
    assert words([found for found in differences(info(), new, cursor) if found.blocks]) == [
        "'Good?' waits for an answer at node 'check', which is gone",
        "'Good?' is about channel 'draft', which is gone",
    ]


def test_by_the_record_of_a_thread_alone() -> None:
    def record(graph: GraphInfo) -> ThreadInfo:
        return ThreadInfo("t", graph.name, graph.digest, {}, None, -1, 0, 0)

    assert (
        differences(
            record(info()), info(), Cursor("t", position="node:write"), {"draft": "", "n": 0, "key": ""}
        )
        == []
    )
    new = info({"draft": Channel("", schema=str), "more": Channel()}, {"check": {"": END}}, name="other")
    found = differences(
        record(info()), new, Cursor("t", position="node:write"), {"draft": "", "n": 0, "key": ""}
    )
    assert words(found) == [
        "the thread continues at node 'write', which is gone",
        "the graph was called 'graph', now it is 'other'",
        "the graph has changed since this thread last ran",
        "channel 'n' is gone; its value stays in the log",
        "channel 'key' is gone; its value stays in the log",
        "channel 'more' is new and starts at its default",
    ]


def test_the_digest_in_a_threads_record_is_that_of_its_graph() -> None:
    graph = StateGraph(CHANNELS).add_node("a", lambda state: {}).add_edge(START, "a").add_edge("a", END)
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    runner.invoke(thread_id="t")
    assert runner.store is not None
    thread, cursor = runner.store.info("t"), runner.store.cursor("t")
    assert thread is not None
    assert differences(thread, runner.graph.info, cursor, runner.get_state("t")) == []


def test_a_thread_continues_after_channels_were_added_and_removed() -> None:
    def counting(channels: dict[str, Channel]) -> StateGraph:
        graph = StateGraph({"n": Channel(0, reducer="sum"), **channels})
        graph.add_node("a", lambda state: {"n": 1}).add_node("b", lambda state: {"n": 1})
        return graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)

    store = MemoryCheckpointer()
    counting({"old": Channel(1)}).compile(checkpointer=store, interrupt_after=["a"]).invoke(thread_id="t")
    grown = counting({"old": Channel(1), "new": Channel(2)}).compile(checkpointer=store)
    assert dict(grown.open("t").state.values) == {"n": 1, "old": 1, "new": 2}
    assert dict(grown.invoke(thread_id="t").state) == {"n": 2, "old": 1, "new": 2}
    assert grown.open("t").cursor.status == "completed"
    shrunk = counting({}).compile(checkpointer=store)
    assert dict(shrunk.open("t").state.values) == {"n": 2}
