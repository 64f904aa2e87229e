"""Whether models stream is the graph's choice, and a reply is what LangGraph itself returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from hitl_tui.engine.commands import Start
from hitl_tui.engine.log.events import TextStreamed
from tests.drivers.langgraph.conftest import Hubs
from tests.support.watching import Watcher

USAGE: Any = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


class TwoVoices(BaseChatModel):
    """A model whose streamed replies differ from those that it gives at once, and have no usage."""

    streaming: bool = False

    @property
    def _llm_type(self) -> str:
        return "two-voices"

    def _generate(self, *_given: Any, **_options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("whole", usage_metadata=USAGE))])

    def _stream(self, *_given: Any, **_options: Any) -> Iterator[ChatGenerationChunk]:
        for part in ("in ", "parts"):
            yield ChatGenerationChunk(message=AIMessageChunk(part))


def calling(model: TwoVoices) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("call", lambda state: {"messages": [model.invoke(state["messages"])]})
    return graph.add_edge(START, "call").compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    ("model", "streams", "reply", "shown"),
    [
        (TwoVoices(), None, "whole", "whole"),
        (TwoVoices(streaming=True), None, "in parts", "in parts"),
        (TwoVoices(), True, "in parts", "in parts"),
        (TwoVoices(), False, "whole", ""),
    ],
    ids=["graph decides", "graph streams", "--stream", "--no-stream"],
)
async def test_models_stream_if_the_graph_or_the_user_asks_for_it(
    model: TwoVoices, streams: bool | None, reply: str, shown: str, hubs: Hubs
) -> None:
    watcher = await Watcher.open(await hubs.over(calling(model), streams=streams).begin("t", "ann"))
    await watcher.driver.execute(Start({"messages": "hello"}))
    await watcher.run()
    message = watcher.view.values["messages"][-1]
    assert message["content"] == reply
    assert watcher.view.progress.tokens_out == (4 if reply == "whole" else 0)
    texts = [event.text for event in watcher.events_of(TextStreamed)]
    assert "".join(texts) == shown


def test_a_reply_is_the_one_that_invoke_gives_outside() -> None:
    given: Any = {"messages": "hello"}
    ended = calling(TwoVoices()).invoke(given, {"configurable": {"thread_id": "t"}})
    assert (ended["messages"][-1].content, ended["messages"][-1].usage_metadata) == ("whole", USAGE)
