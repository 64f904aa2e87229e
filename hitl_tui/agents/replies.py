"""A model's reply after its call: its text, its calls, or why it is incomplete."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, Protocol

from hitl_tui.agents.backend import Finish, Message, Piece, Thought, ToolCall, Use
from hitl_tui.agents.thoughts import ReplyPart, ThoughtSplitter
from hitl_tui.errors import ModelFailed, ReplyIncomplete

CUT_CALL: Final = (
    "the reply reached its limit of tokens before it was complete, so no call of it was made; "
    "write shorter arguments, or fewer calls at once"
)
"""What the model gets as the result of each call in a cut reply."""

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME: Final = 64


class ReplyListener(Protocol):
    """Receives a reply while it is written."""

    def piece(self, text: str) -> None:
        """A piece of the reply."""

    def thought(self, text: str) -> None:
        """A piece of thinking."""

    def wrote(self, text: str) -> None:
        """The arguments of a call."""


class ReplyReader:
    """Collects what a backend yields for one reply.

    Args:
        listener: receives every piece.
        emit: receives the pieces of the reply's text.
    """

    def __init__(self, listener: ReplyListener, emit: Callable[[str], None]) -> None:
        self.calls: list[ToolCall] = []
        self.use: Use | None = None
        self._listener, self._emit = listener, emit
        self._splitter = ThoughtSplitter()
        self._finish: Finish | None = None
        self._has_thoughts = False

    def take(self, piece: Piece) -> None:
        """Add the next piece."""
        match piece:
            case Use():
                self.use = piece
            case Finish():
                self._finish = piece
            case ToolCall():
                self.calls.append(piece)
                self._listener.wrote(piece.text)
            case Thought(text):
                self._pass_on([ReplyPart(True, text)])
            case str():
                self._pass_on(self._splitter.feed(piece))

    def close(self) -> None:
        """End the stream."""
        self._pass_on(self._splitter.close())

    @property
    def is_cut(self) -> bool:
        """Whether the reply reached its token limit."""
        return self._finish is not None and self._finish.reason == "length"

    def complete_text(self, who: str) -> str:
        """Return the text of the reply, which may be empty if it has calls.

        Args:
            who: agent and model, for messages.

        Raises:
            ReplyIncomplete: it was cut or withheld; one that was cut inside calls is sent back to the model.
            ModelFailed: it is empty.
        """
        text = self._splitter.reply
        if self._finish and not (self.is_cut and self.calls):
            reason, hint = _INCOMPLETE[self._finish.reason]
            raise ReplyIncomplete(f"{who} {reason}", hint, reason=self._finish.reason, text=text)
        if text.strip():
            return text
        if not self.calls:
            what = "thought and gave no reply" if self._has_thoughts else "answered without any text"
            raise ModelFailed(f"{who} {what}", "a max_tokens that is too small can be the cause")
        return ""

    def _pass_on(self, parts: Iterable[ReplyPart]) -> None:
        for is_thought, text in parts:
            if is_thought:
                self._has_thoughts = True
                self._listener.thought(text)
            else:
                self._listener.piece(text)
                self._emit(text)


_INCOMPLETE: Final = {
    "length": (
        "reached its limit of tokens before the reply was complete",
        "give the agent a larger max_tokens, or ask for a shorter reply",
    ),
    "content_filter": (
        "did not complete the reply: the provider withheld it or the model refused",
        "change the prompt",
    ),
}


def sendable_calls(
    calls: Sequence[ToolCall], messages: Sequence[Message], known: Collection[str]
) -> tuple[ToolCall, ...]:
    """Return the calls of a reply, each with a unique id and a name that every provider accepts.

    Args:
        messages: the conversation so far, with the ids of earlier calls.
        known: names of tools, which are not changed.
    """
    taken = set(_ids(messages))
    return tuple(ToolCall(_name(call.name, known), call.text, _unique_id(call.id, taken)) for call in calls)


def _name(name: str, known: Collection[str]) -> str:
    return name if name in known else _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "unnamed"


def _unique_id(call_id: str, taken: set[str]) -> str:
    """Return the id if no other call has it, otherwise a new one; add it to the taken ones."""
    number = len(taken)
    while not call_id or call_id in taken:
        number += 1
        call_id = f"call_{number}"
    taken.add(call_id)
    return call_id


def _ids(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield call["id"]
