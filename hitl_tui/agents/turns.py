"""The turns of a chat: an agent's own, or those that a channel of the graph keeps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hitl_tui.agents.backend import Message, sendable_arguments
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.nodes.activity import Activity

_FORM = 'each is {"role": "user" or "assistant", "content": text}'
_CALL_FORM = 'each is {"id": text, "type": "function", "function": {"name": text, "arguments": JSON}}'
_RESULT_FORM = 'give "tool_call_id": the id of the call'
NO_RESULT: Final = "Error: the result of this call is not known"
"""The text instead of a result that the history does not have."""
_KEYS = {
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}


class _Block(NamedTuple):
    """The turns of one exchange, and the sources of untrusted data in them."""

    turns: list[Message]
    sources: tuple[str, ...]


class Turns:
    """The turns of an agent. Thread-safe.

    Without a channel, only the agent keeps the turns: they are not part of the state, so restoring, editing
    or forking a thread does not change them. Turns of an attempt that ends without a result are removed. With
    a channel, the turns in a node are the channel's value, and new ones are committed with the node's
    updates; the agent's own turns are then for chats outside a graph.

    Own turns that were made with tainted text taint each node that uses them again; for turns in a channel,
    the channel's taint does this.
    """

    def __init__(self, agent: str, channel: str | None = None) -> None:
        self._agent = agent
        self._channel = channel
        self._lock = threading.Lock()
        self._blocks: list[_Block] = []
        self._conversation = 0

    def read(self, activity: Activity | None) -> list[Message]:
        """Return the turns so far, oldest first.

        Raises:
            ReadDenied, UndeclaredChannel: the node can't read the channel.
            UsageError: the channel contains something that is not a turn.
        """
        if self._channel and activity and activity.state is not None:
            value = thaw(activity.state[self._channel])
            stored = value if isinstance(value, list) else [] if value is None else [value]
            check_turns(stored, f"agent {self._agent!r}: channel {self._channel!r}")
            return [*stored, *activity.added.get(self._channel, ())]
        with self._lock:
            blocks = tuple(self._blocks)
        if activity:
            self._taint(activity, blocks)
        return [dict(turn) for block in blocks for turn in block.turns]

    @property
    def conversation(self) -> int:
        """A number that changes when the turns are replaced."""
        return self._conversation

    def keep(self, turns: Sequence[Message], conversation: int, activity: Activity | None) -> None:
        """Keep the turns of one exchange, unless its conversation was replaced meanwhile."""
        if self._channel and activity and activity.state is not None:
            activity.add(self._channel, turns)
            return
        block = _Block(list(turns), activity.sources if activity else ())
        with self._lock:
            if conversation != self._conversation:
                return
            self._blocks.append(block)
        if activity:
            activity.on_undo(lambda: self._forget(block))

    def replace(self, turns: Sequence[Message], activity: Activity | None) -> None:
        """Replace all turns; the new ones are tainted like the old ones, `[]` is not."""
        if self._channel and activity and activity.state is not None:
            raise UsageError(
                f"agent {self._agent!r}: its turns are in the channel {self._channel!r}",
                "write that channel: return its new value from the node, or edit it",
            )
        check_turns(turns, f"agent {self._agent!r}")
        with self._lock:
            sources = [source for block in self._blocks for source in block.sources]
            named = dict.fromkeys((*sources, *(activity.sources if activity else ())))
            block = _Block([dict(turn) for turn in turns], tuple(named))
            self._blocks = [block] if turns else []
            self._conversation += 1

    def _taint(self, activity: Activity, blocks: Sequence[_Block]) -> None:
        sources = [source for block in blocks for source in block.sources]
        for source in (*sources, *((f"turns of {self._agent}",) if sources else ())):
            activity.taint(source)

    def _forget(self, block: _Block) -> None:
        with self._lock:
            self._blocks = [kept for kept in self._blocks if kept is not block]


def check_turns(turns: Sequence[Any], whose: str) -> None:
    """Refuse turns that can't be sent as a conversation; raises `UsageError`."""
    for number, turn in enumerate(turns, 1):
        role = turn.get("role") if isinstance(turn, Mapping) else None
        allowed = _KEYS.get(role) if isinstance(role, str) else None
        if allowed is None or not set(turn) <= allowed:
            raise UsageError(f"{whose}: turn {number} is not a turn", _FORM)
        calls, content = turn.get("tool_calls"), turn.get("content")
        if not isinstance(content, str) and not (content is None and calls):
            raise UsageError(f"{whose}: turn {number} is not a turn", _FORM)
        if not all(map(_is_call, calls if isinstance(calls, list | tuple) else (calls,) if calls else ())):
            raise UsageError(f"{whose}: turn {number} has an invalid tool call", _CALL_FORM)
        if role == "tool" and not isinstance(turn.get("tool_call_id"), str):
            raise UsageError(f"{whose}: turn {number} does not say which call it answers", _RESULT_FORM)


def _is_call(call: Any) -> bool:
    if not isinstance(call, Mapping) or not isinstance(call.get("id"), str) or not call["id"]:
        return False
    function = call.get("function")
    return isinstance(function, Mapping) and isinstance(function.get("name"), str) and bool(function["name"])


def sendable_turns(turns: Sequence[Message]) -> list[Message]:
    """Return the turns as every provider accepts them.

    - A result without its call is left out: a bounded history has dropped the call.
    - If a bounded history starts inside an exchange with tools, it is sent from the user's next turn on.
    - A call without its result gets one that says so: the node stopped before it, or it was removed.
    - Arguments that are not a JSON object become `{}`.
    - An assistant's turn without text and calls is left out.
    """
    sent: list[Message] = []
    starts_inside = False
    rest = deque(turns)
    while rest:
        turn = rest.popleft()
        if turn["role"] == "tool":
            starts_inside = starts_inside or not sent
        elif calls := turn.get("tool_calls"):
            starts_inside = starts_inside or not sent
            results: dict[str, deque[Message]] = {}
            while rest and rest[0]["role"] == "tool":
                result = rest.popleft()
                results.setdefault(result["tool_call_id"], deque()).append(result)
            sent += _with_results(turn, calls, results)
        elif turn["role"] != "assistant" or turn["content"].strip():
            sent.append({"role": turn["role"], "content": turn["content"]})
    if starts_inside:
        first = next((at for at, turn in enumerate(sent) if turn["role"] == "user"), len(sent))
        del sent[:first]
    return sent


def _with_results(
    turn: Message, calls: Sequence[Mapping[str, Any]], results: Mapping[str, deque[Message]]
) -> Iterator[Message]:
    """Yield a turn with calls, then one result for each of them."""
    taken: set[str] = set()
    made, answers = list[Message](), list[Message]()
    for call in calls:
        call_id, function = call["id"], call["function"]
        kept = results.get(call_id)
        content = kept.popleft()["content"] if kept else NO_RESULT
        while call_id in taken:
            call_id += "_"
        taken.add(call_id)
        arguments = sendable_arguments(function.get("arguments"))
        made.append(
            {
                "id": call_id,
                "type": "function",
                "function": {"name": function["name"], "arguments": arguments},
            }
        )
        answers.append({"role": "tool", "tool_call_id": call_id, "content": content})
    yield {"role": "assistant", "content": turn.get("content") or "", "tool_calls": made}
    yield from answers


def channel_name(history: str | None, agent: str) -> str | None:
    """Return the channel that `history` names: "channel:NAME", or "channel" for the agent's name.

    Raises:
        UsageError: it has another form.
    """
    if history is None:
        return None
    kind, _, name = history.partition(":") if isinstance(history, str) else ("", "", "")
    if kind != "channel":
        raise UsageError(
            f"agent {agent!r}: history={history!r} is not a place for turns", 'give "channel:NAME" or None'
        )
    return name or agent
