"""Reports what models write while a graph runs here, without changing how LangGraph calls them.

A model asks its callback handlers whether to stream. LangGraph's own handler for messages says yes, so that a
model's content, usage and ids are those of a streamed reply. The handler of this module says nothing: a model
streams where the graph wants it to, and its replies are those that `invoke` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.pregel._messages import StreamMessagesHandler


def message_handlers(on_part: Callable[[Any], None], *, streams: bool | None) -> list[BaseCallbackHandler]:
    """Return the callback handlers that report what a run's models write.

    Args:
        on_part: called with each message, as in LangGraph's stream mode `messages`.
        streams: True lets all models stream, False reports nothing, None leaves it to the graph.
    """
    if streams is None:
        return [_Listener(on_part)]
    return [StreamMessagesHandler(on_part, subgraphs=True)] if streams else []


class _Listener(BaseCallbackHandler):
    """Reports model replies, streamed or not."""

    run_inline = True

    def __init__(self, on_part: Callable[[Any], None]) -> None:
        self._messages = StreamMessagesHandler(on_part, subgraphs=True)

    def on_chat_model_start(self, *given: Any, **options: Any) -> None:
        """Note that a model is called."""
        self._messages.on_chat_model_start(*given, **options)

    def on_llm_new_token(self, *given: Any, **options: Any) -> None:
        """Report a part of a model's reply."""
        self._messages.on_llm_new_token(*given, **options)

    def on_llm_end(self, response: Any, *, run_id: UUID, **options: Any) -> None:
        """Report a whole reply, unless a message in it has no id: LangGraph's handler would give it one."""
        known = [each.message for some in response.generations for each in some if hasattr(each, "message")]
        if all(message.id is not None for message in known):
            self._messages.on_llm_end(response, run_id=run_id, **options)
        else:
            self._messages.metadata.pop(run_id, None)

    def on_llm_error(self, *given: Any, **options: Any) -> None:
        """Forget a call whose model failed."""
        self._messages.on_llm_error(*given, **options)
