"""Tries edits of a server's thread on a copy of it: its own reducers and routes show where they lead.

A server does not say which channel has a reducer, so the update is sent that led to the wanted value in the
copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.drivers.langgraph.edits import ChosenRoute, Tried, next_of, their_node
from hitl_tui.drivers.langgraph.pregel import Goto, going_to
from hitl_tui.drivers.langgraph.server_requests import failed_there, once_more_if_lost
from hitl_tui.drivers.langgraph.server_states import looks_like_message, no_state, snapshot_of
from hitl_tui.drivers.langgraph.values import as_json
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.errors import HitlError, ServerRefused, UsageError

if TYPE_CHECKING:
    from langgraph.types import Command, StateSnapshot

TRIAL: Final = "hitl_tui_trial"
"""In a thread's metadata: it is a copy for trying things out."""
_KEPT: Final = {"strategy": "delete", "ttl": 10}
"""Minutes after which a server deletes a copy that was left behind, where it deletes threads by itself."""
_NOT_THERE: Final = (404, 405)
"""What a server answers that can't do what it is asked for, as aegra does for copies."""
_END: Final = "__end__"
_OVERWRITE: Final = "__overwrite__"
_REMOVE_ALL: Final = {"type": "remove", "id": "__remove_all__", "content": ""}
_MADE: Final = "response_metadata"
"""What the JSON of a message has that was made from JSON without it."""


class ServerTrial:
    """Tries edits of one checkpoint; a context manager.

    Args:
        client: the client of the server.
        config: names the checkpoint, and the namespace of its subgraph if it is in one.
        read: returns the state of a config.
        draw: returns the drawing of the graph, or of the subgraph whose channels are edited.

    Raises:
        UsageError: the server can't copy the thread.
    """

    most_nodes: Final = 12

    def __init__(
        self, client: Any, config: Any, read: Callable[[Any], StateSnapshot], draw: Callable[[], Any]
    ) -> None:
        self._client = client
        self._draw = draw
        self._goto: tuple[Goto, ...] = ()
        self._place: dict[str, Any] = dict(config["configurable"])
        self._read = read
        self._copy = ""
        self._before: Mapping[str, Any] = {}
        self._forms: dict[str, int] = {}

    async def __aenter__(self) -> ServerTrial:
        await asyncio.to_thread(self._begin)
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await asyncio.to_thread(self._end)

    def _begin(self) -> None:
        threads = self._client.threads
        try:
            copy = once_more_if_lost(lambda: threads.copy(self._place["thread_id"]))
            self._copy = str(copy["thread_id"])
            threads.update(self._copy, metadata={TRIAL: True}, ttl=_KEPT)
            self._before = self._read({"configurable": self._place}).values
        except ServerRefused as error:
            self._end()
            missing = error.status in _NOT_THERE
            problem = "this server copies no threads" if missing else f"it is not copied: {error.message}"
            raise UsageError(
                f"an edit of thread {self._place['thread_id']!r} can't be tried: {problem}",
                "an edit is first tried on a copy of its thread on the server",
            ) from None
        except HitlError:
            self._end()
            raise

    def _renew_copy(self) -> None:
        """Make a new copy: only the newest checkpoint keeps a route, and an edit has added one after it."""
        self._end()
        self._begin()

    def _end(self) -> None:
        if self._copy:
            with suppress(Exception):  # the copy is marked, so no list shows it, and nothing depends on it
                once_more_if_lost(lambda: self._client.threads.delete(self._copy))

    async def make(
        self, values: Mapping[str, Any], as_node: str | None = None, route: ChosenRoute | None = None
    ) -> Tried:
        """Return what an edit would do.

        Args:
            values: LangGraph's values by channel.
            as_node: our name for the node; None lets the server infer it.
            route: the route that the last node chose; the edit keeps it, or is refused.
        """
        given = {name: thaw(as_json(value)) for name, value in values.items()}
        return await asyncio.to_thread(self._on_route, given, as_node, route)

    def _on_route(self, values: Mapping[str, Any], as_node: str | None, route: ChosenRoute | None) -> Tried:
        tried = self._make(values, as_node)
        if route is None or as_node not in (None, route.node) or tried.problem:
            return tried
        lost = self._lost(route, tried)
        if not lost:
            return tried
        if all(isinstance(goto, str) for goto in lost) and self._is_newest():
            self._goto = lost
            try:
                tried = self._make(values, route.node)
            finally:
                self._goto = ()
            return tried._replace(kept=ChosenRoute(route.node, lost))
        where = ", ".join(dict.fromkeys(map(_node_of, lost)))
        return tried._replace(
            problem=f"{route.node} has sent the thread to {where} by a Command, and this edit would lose "
            "that: a server keeps such a route only after the newest step of the whole graph, and no Send"
        )

    def _lost(self, route: ChosenRoute, tried: Tried) -> tuple[Goto, ...]:
        """Return the lost part of a route: it is not next, and no edges join it to what is next."""
        edges = {edge.target for edge in self._draw().edges if edge.source == route.node}
        now = {name.partition("[")[0] for name in tried.next_nodes} or {_END}
        return tuple(
            goto
            for goto in route.goto
            if (name := _node_of(goto)) not in now and not (name in edges and now <= edges)
        )

    def _is_newest(self) -> bool:
        """Whether the checkpoint is the newest of the root graph, the only one that keeps a route."""
        newest = once_more_if_lost(lambda: self._client.threads.get_state(self._place["thread_id"]))
        is_newest = newest["checkpoint"]["checkpoint_id"] == self._place.get("checkpoint_id")
        return bool(is_newest and not self._place.get("checkpoint_ns"))

    def _make(self, values: Mapping[str, Any], as_node: str | None) -> Tried:
        while True:
            update = {name: self._form(name, value) for name, value in values.items()}
            problem, state = self._try(update, as_node)
            after = state.values if isinstance(state.values, Mapping) else {}
            wrong = [name for name, value in values.items() if not _is(self._raw(name), value)]
            if not problem and not wrong:
                return Tried(self._before, after, next_of(state), update=update)
            if problem and len(values) > 1:
                # Find out one by one which of them the server refuses.
                alone = [self._make({name: value}, as_node).problem for name, value in values.items()]
                problem, state = self._try(
                    update := {name: self._form(name, value) for name, value in values.items()}, as_node
                )
                if problem:
                    return Tried(self._before, {}, (), next(filter(None, alone), problem), update=update)
                continue
            if not self._advance(values if problem else wrong, values):
                return Tried(
                    self._before, after, next_of(state), problem, update=update, lost=() if problem else wrong
                )

    def _advance(self, names: Any, values: Mapping[str, Any]) -> bool:
        """Try the next update for each channel that was not set; False if none is left."""
        moved = False
        for name in names:
            number = self._forms.get(name, 0) + 1
            if number < len(_forms(values[name])):
                self._forms[name], moved = number, True
        return moved

    def _form(self, name: str, value: Any) -> Any:
        forms = _forms(value)
        return forms[min(self._forms.get(name, 0), len(forms) - 1)]

    def _raw(self, name: str) -> Any:
        return self._values.get(name)

    def _try(self, update: Mapping[str, Any], as_node: str | None) -> tuple[str, StateSnapshot]:
        """Edit the copy; return the problem as text, and the resulting state."""
        threads, place = self._client.threads, {**self._place, "thread_id": self._copy}
        self._values: Mapping[str, Any] = {}
        config = {"configurable": place}
        try:
            if self._goto:
                self._renew_copy()
                at = update_on_route(self._client, self._copy, going_to(dict(update), self._goto), as_node)
            else:
                saved = threads.update_state(
                    self._copy, dict(update), as_node=their_node(as_node), checkpoint=place
                )
                at = saved["checkpoint"]
            state = once_more_if_lost(lambda: threads.get_state(self._copy, checkpoint=dict(at)))
        except ServerRefused as error:
            return _why(error), no_state(config)
        self._values = state["values"] if isinstance(state["values"], Mapping) else {}
        return "", snapshot_of(state, config)


def update_on_route(client: Any, thread: str, given: Command[Any], as_node: str | None) -> Mapping[str, Any]:
    """Edit a thread's newest checkpoint and go to nodes that no edge leads to; returns the new checkpoint.

    Only the request that creates a thread takes a `Command`; for an existing thread that request is an edit.
    """
    goto = list(given.goto) if isinstance(given.goto, (list, tuple)) else [given.goto]
    command = {"update": given.update, "goto": goto}
    updates = [{"values": None, "command": command, "as_node": their_node(as_node)}]
    client.threads.create(thread_id=thread, if_exists="do_nothing", supersteps=[{"updates": updates}])
    newest: Mapping[str, Any] = once_more_if_lost(lambda: client.threads.get_state(thread))["checkpoint"]
    return newest


def _node_of(goto: Goto) -> str:
    return goto if isinstance(goto, str) else str(goto.node)


def _forms(value: Any) -> tuple[Any, ...]:
    """Return updates that may set a channel's value: plain, replacing all messages, past the reducer."""
    messages = isinstance(value, list) and bool(value) and all(map(looks_like_message, value))
    if messages:
        return value, [_REMOVE_ALL, *value]
    # Past a reducer, nothing converts JSON to messages.
    return (value,) if any(_messages_in(value)) else (value, {_OVERWRITE: value})


def _messages_in(value: Any) -> Iterator[Any]:
    if looks_like_message(value):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _messages_in(item)


def _is(after: Any, value: Any) -> bool:
    """Whether a server's JSON equals a value; a message may have fields that were added to it."""
    if isinstance(value, dict) and isinstance(after, dict):
        if looks_like_message(value):
            return _MADE in after and all(_is(after.get(key), item) for key, item in value.items())
        return after.keys() == value.keys() and all(_is(after[key], value[key]) for key in value)
    if isinstance(value, list) and isinstance(after, list):
        return len(after) == len(value) and all(map(_is, after, value))
    return bool(after == value) and isinstance(after, bool) == isinstance(value, bool)


def _why(error: ServerRefused) -> str:
    if failed_there(error):
        return "the graph's own code failed on it: see the server's log"
    return error.message
