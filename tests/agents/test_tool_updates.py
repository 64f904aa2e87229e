"""A tool updates channels within its node's writes: a record each, which names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    GraphRunner,
    MemoryCheckpointer,
    NodeConfig,
    NodeFailed,
    RetryPolicy,
    ScriptedModel,
    StateGraph,
    Tool,
    ToolCall,
    ToolConfig,
    UsageError,
)
from hitl_tui.stores import Checkpointer
from hitl_tui.view.lens import lens
from hitl_tui.view.spans import plain_text
from tests.support.spec import spec

pytestmark = spec("5")


def save_to_memory(key: str, value: Any, config: ToolConfig) -> str:
    """Save a finding.

    Args:
        key: the channel.
        value: what to keep.
    """
    config.update({key: value})
    return "saved"


def save(**arguments: Any) -> ToolCall:
    return ToolCall("save_to_memory", arguments)


CHANNELS = {
    "notes": Channel([], reducer="append", schema=list[str]),
    "score": Channel(0, reducer="sum"),
    "draft": Channel(""),
    "other": Channel(""),
}


def flow(
    store: Checkpointer | None,
    *said: Any,
    tools: Sequence[Any] = (save_to_memory,),
    node: Callable[..., Any] | None = None,
    writes: Sequence[str] | None = ("notes", "score", "draft"),
    retry: RetryPolicy | None = None,
) -> GraphRunner:
    """A node whose agent says one after the other, and which then writes the draft and a note."""
    agent = Agent("bot", ScriptedModel([*said], pace=0), tools=list(tools))

    def work(state: Any, config: NodeConfig) -> dict[str, Any]:
        return {"draft": config.agents["bot"].chat("go"), "notes": "the node's"}

    graph = StateGraph(CHANNELS).add_node("work", node or work, writes=writes, retry=retry)
    graph.add_edge(START, "work").add_edge("work", END)
    return graph.compile(checkpointer=store, agents={"bot": agent})


TWO = (
    save(key="notes", value="first"),
    [save(key="score", value=2), save(key="notes", value="second")],
    "done",
)


def test_updates_of_a_tool_come_before_the_nodes_own_and_name_the_tool(store: Checkpointer) -> None:
    runner = flow(store, *TWO)
    result = runner.invoke(thread_id="t")
    assert (list(result["notes"]), result["score"]) == (["first", "second", "the node's"], 2)
    records = [
        (record.node, record.path, record.channel, record.update) for record in store.records("t", 1, 1)
    ]
    assert records == [
        ("work", "save_to_memory()", "notes", "first"),
        ("work", "save_to_memory()", "score", 2),
        ("work", "save_to_memory()", "notes", "second"),
        ("work", "", "draft", "done"),
        ("work", "", "notes", "the node's"),
    ]
    assert runner.verify("t", strict=True).ok
    assert runner.replay("t").ok


def test_the_lens_names_the_tool(store: Checkpointer) -> None:
    runner = flow(store, *TWO, tools=[Tool(save_to_memory, external=False)])
    runner.invoke(thread_id="t")
    lines = [plain_text(line) for line in lens(runner.updates("t", 1))]
    assert "notes  append  by save_to_memory()" in lines
    assert lines.count("notes  append") == 1


def test_tools_can_update_the_state_without_a_store() -> None:
    assert list(flow(None, *TWO).invoke()["notes"]) == ["first", "second", "the node's"]


def test_updates_of_an_untrusted_tool_are_tainted(store: Checkpointer) -> None:
    flow(store, *TWO).invoke(thread_id="t")
    point = store.checkpoint("t", 1)
    assert point
    assert {taint.channel for taint in point.tainted} == {"notes", "score", "draft"}
    other = MemoryCheckpointer()
    flow(other, *TWO, tools=[Tool(save_to_memory, external=False)]).invoke(thread_id="t")
    point = other.checkpoint("t", 1)
    assert point
    assert point.tainted == ()


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        ("other", r"tool 'save_to_memory' writes 'other', which is not among its writes"),
        ("nots", r"tool 'save_to_memory' writes 'nots', which is not a channel of the graph"),
        ("goal", r"'goal' is an input of the run"),
    ],
)
def test_an_update_outside_the_nodes_writes_fails_the_node_without_retry(
    store: Checkpointer, channel: str, words: str
) -> None:
    runner = flow(store, *[save(key=channel, value="x"), "done"] * 3, retry=RetryPolicy(3, wait=0))
    with pytest.raises(NodeFailed, match=words) as failed:
        runner.invoke({"notes": "given"}, thread_id="t")
    assert failed.value.attempt == 1
    assert list(runner.get_state("t")["notes"]) == ["given"]


@pytest.mark.parametrize("value", [3, {"a": 1}])
def test_a_value_that_does_not_fit_is_reported_to_the_model(store: Checkpointer, value: Any) -> None:
    runner = flow(store, save(key="notes", value=value), save(key="notes", value="text"), "done")
    assert list(runner.invoke(thread_id="t")["notes"]) == ["text", "the node's"]
    point = store.checkpoint("t", 1)
    assert point
    assert "channel 'notes'" in str(point.calls[0].error)


def test_an_update_that_the_reducer_refuses_is_reported_to_the_model(store: Checkpointer) -> None:
    runner = flow(store, save(key="score", value="many"), save(key="score", value=1), "done")
    assert runner.invoke(thread_id="t")["score"] == 1


def test_a_failed_call_updates_nothing(store: Checkpointer) -> None:
    def half(config: ToolConfig) -> str:
        config.update({"notes": "half"})
        raise ValueError("broken")

    runner = flow(
        store, ToolCall("half", {}), save(key="score", value=1), "done", tools=[half, save_to_memory]
    )
    result = runner.invoke(thread_id="t")
    assert (list(result["notes"]), result["score"]) == (["the node's"], 1)


def test_an_attempt_that_fails_drops_what_its_tools_updated(store: Checkpointer) -> None:
    tries = []

    def work(state: Any, config: NodeConfig) -> dict[str, Any]:
        tries.append(config.attempt)
        said = config.agents["bot"].chat("go")
        if config.attempt == 1:
            raise ValueError("once")
        return {"draft": said}

    runner = flow(store, *TWO, *TWO, node=work, retry=RetryPolicy(2, wait=0))
    assert list(runner.invoke(thread_id="t")["notes"]) == ["first", "second"]
    assert tries == [1, 2]
    assert runner.verify("t", strict=True).ok


def test_an_approved_tool_updates_the_state_once(store: Checkpointer) -> None:
    ran: list[str] = []

    def note(text: str, config: ToolConfig) -> str:
        ran.append(text)
        config.update({"notes": [text, {"nested": [1]}][0]})
        return "noted"

    def send(to: str, config: ToolConfig) -> str:
        config.update({"notes": f"sent to {to}"})
        return "sent"

    said = (ToolCall("note", {"text": "before"}), ToolCall("send", {"to": "ann"}), "done")
    runner = flow(store, *said, tools=[note, Tool(send, approve="always")])
    waiting = runner.invoke(thread_id="t").pending[0]
    assert list(runner.get_state("t")["notes"]) == []
    runner.answer("t", waiting.id, "approve", step=waiting.step, actor="ann")
    assert list(runner.invoke(thread_id="t")["notes"]) == ["before", "sent to ann", "the node's"]
    assert ran == ["before"]
    assert runner.verify("t", strict=True).ok


def test_a_rejected_call_updates_nothing(store: Checkpointer) -> None:
    runner = flow(store, save(key="notes", value="x"), "done", tools=[Tool(save_to_memory, approve="always")])
    waiting = runner.invoke(thread_id="t").pending[0]
    runner.answer("t", waiting.id, {"choice": "reject", "text": "no"}, step=waiting.step, actor="ann")
    assert list(runner.invoke(thread_id="t")["notes"]) == ["the node's"]


def test_in_a_branch_the_record_names_branch_and_tool(store: Checkpointer) -> None:
    def make(state: Any, config: NodeConfig) -> dict[str, Any]:
        bot = Agent(
            "b",
            ScriptedModel([save(key="notes", value=f"n{config.item}"), "ok"], pace=0),
            tools=[save_to_memory],
        )
        bot.chat("go")
        return {"score": config.item}

    graph = StateGraph({**CHANNELS, "items": Channel([1, 2], reducer="overwrite")})
    graph.add_map("m", over="items", node=make, writes=["notes", "score"])
    runner = graph.add_edge(START, "m").add_edge("m", END).compile(checkpointer=store)
    assert list(runner.invoke(thread_id="t")["notes"]) == ["n1", "n2"]
    assert [(record.path, record.channel) for record in store.records("t", 1, 1)] == [
        ("m[0]/save_to_memory()", "notes"), ("m[0]", "score"),
        ("m[1]/save_to_memory()", "notes"), ("m[1]", "score"),
    ]  # fmt: skip
    assert runner.verify("t", strict=True).ok


def test_a_tool_reads_the_context_and_state_of_its_node(store: Checkpointer) -> None:
    def look(config: ToolConfig) -> str:
        """Look."""
        assert config.state is not None
        return f"{config.context['tenant']}: {config.state['draft']}"

    runner = flow(store, ToolCall("look", {}), "done", tools=[look])
    runner.invoke({"draft": "started"}, thread_id="t", context={"tenant": "acme"})
    point = store.checkpoint("t", 1)
    assert point
    assert point.calls[0].result == "acme: started"


def test_the_schema_for_the_model_leaves_out_the_state_parameter() -> None:
    assert set(Tool(save_to_memory).parameters["properties"]) == {"key", "value"}
    assert Tool(save_to_memory).parameters["required"] == ["key", "value"]


def test_outside_a_graph_there_is_nothing_to_update() -> None:
    said = [save(key="notes", value="x"), "done"]
    agent = Agent("bot", ScriptedModel(said, pace=0), tools=[save_to_memory])
    assert agent.chat("go") == "done"
    assert "outside a graph" in str(agent.turns)


def test_a_tool_can_not_update_after_its_call_has_ended(store: Checkpointer) -> None:
    left: list[ToolConfig] = []

    def leave(config: ToolConfig) -> str:
        left.append(config)
        return "left"

    flow(store, ToolCall("leave", {}), "done", tools=[leave]).invoke(thread_id="t")
    with pytest.raises(UsageError, match="the call has ended"):
        left[0].update({"notes": "late"})
