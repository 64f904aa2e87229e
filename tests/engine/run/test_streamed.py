"""What a node prints and streams is kept with its step: bounded, in its hash, of failed attempts, too."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from hitl_tui import END, START, Agent, Channel, RetryPolicy, ScriptedModel, StateGraph, append
from hitl_tui.engine.audit.verify import verify
from hitl_tui.engine.log.outcomes import StreamedText
from hitl_tui.engine.nodes.activity import STREAM_KEPT, StreamKeeper, newest_texts
from hitl_tui.errors import NodeFailed
from hitl_tui.stores import Checkpointer, MemoryCheckpointer
from tests.support.spec import spec

pytestmark = spec("10")


def one_node(node: Any, store: Checkpointer, **options: Any) -> Any:
    graph = StateGraph({"n": Channel(0), "said": Channel([], reducer=append())})
    graph.add_node("work", node, **options).add_edge(START, "work").add_edge("work", END)
    return graph.compile(checkpointer=store)


def test_what_a_node_and_its_agent_write_is_in_the_checkpoint_and_in_its_hash() -> None:
    store = MemoryCheckpointer()

    def work(_state: Any, config: Any) -> dict[str, Any]:
        config.emit("looking ")
        said = config.agents["writer"].chat("go")
        config.emit("done\n")
        return {"said": said}

    graph = StateGraph({"said": Channel([], reducer=append())})
    graph.add_node("work", work).add_edge(START, "work").add_edge("work", END)
    agents = {"writer": Agent("writer", ScriptedModel(["a draft"]))}
    graph.compile(checkpointer=store, agents=agents).invoke({}, thread_id="t")
    point = store.checkpoints("t", None, 1)[0]
    assert point.streamed == (
        StreamedText("", "", 1, "looking done\n"),
        StreamedText("writer", "", 1, "a draft", replies=((7, 0),)),
    )
    assert verify(store, "t").ok
    forged = (replace(point.streamed[0], text="looked"), *point.streamed[1:])
    store._threads["t"].checkpoints[-1] = replace(point, streamed=forged)  # type: ignore[attr-defined]
    assert not verify(store, "t").ok


def test_output_of_failed_attempts_is_separate_and_kept_until_a_step_has_it() -> None:
    store = MemoryCheckpointer()
    tries: list[int] = []

    def work(_state: Any, config: Any) -> dict[str, Any]:
        tries.append(1)
        config.emit(f"try {len(tries)} \ud800")
        if len(tries) < 3:
            raise ValueError("n/a")
        return {"n": 1}

    runner = one_node(work, store, retry=RetryPolicy(2, wait=0))
    with pytest.raises(NodeFailed):
        runner.invoke({}, thread_id="t")
    runner.invoke(thread_id="t")
    (point,) = store.checkpoints("t", None, 1)
    assert [(text.attempt, text.text) for text in point.streamed] == [
        (1, "try 1 \\ud800"),
        (2, "try 2 \\ud800"),
        (3, "try 3 \\ud800"),
    ]
    assert verify(store, "t").ok


def test_what_is_written_again_with_an_answer_is_kept_once() -> None:
    store = MemoryCheckpointer()

    def work(_state: Any, config: Any) -> dict[str, Any]:
        config.emit("before ")
        return {"n": config.interrupt({"kind": "ask", "title": "how many?"})}

    runner = one_node(work, store)
    waiting = runner.invoke({}, thread_id="t")
    (request,) = waiting.pending
    runner.answer("t", request.id, 3, step=request.step)
    runner.invoke(thread_id="t")
    point = store.checkpoints("t", None, 1)[0]
    assert [text.text for text in point.streamed] == ["before "]


def test_long_output_keeps_its_start_and_end_and_the_size_of_the_gap() -> None:
    keeper = StreamKeeper()
    pieces = [f"{number:07}\n" for number in range(20_000)]
    for piece in pieces:
        keeper.add(piece, "", "", 1)
    (text,) = keeper.texts
    whole = "".join(pieces)
    assert whole.startswith(text.text)
    assert whole.endswith(text.end)
    assert text.size + text.left_out == len(whole)
    assert text.size < len(whole) / 2


def test_all_writers_together_stay_within_bounds() -> None:
    keeper = StreamKeeper()
    for branch in range(200):
        keeper.add("x" * 100_000, "", f"scan[{branch}]", 1)
    texts = keeper.texts
    assert sum(text.size for text in texts) <= STREAM_KEPT
    assert all(text.size + text.left_out == 100_000 for text in texts)
    attempts = [StreamedText("", "", number, "y" * 100_000) for number in range(1, 9)]
    assert [text.attempt for text in newest_texts(attempts)] == [7, 8]
