"""The state that nodes and routes read; it can also be used without a graph.

Specified in docs/spec/graphs.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from hitl_tui.declared import declares
from hitl_tui.engine.log.records import Visibility
from hitl_tui.engine.log.taint import Tainted
from hitl_tui.engine.state.changes import Change, after, reduce_updates, set_values
from hitl_tui.engine.state.channel import RUN_INPUTS, BoundChannel, Channel, bind
from hitl_tui.engine.state.listing import channel_lines
from hitl_tui.engine.state.state import LiveState, undeclared
from hitl_tui.errors import ReadDenied, UndeclaredChannel, UsageError, in_words

Reads = tuple[str, ...] | None


class WorkflowState(Mapping[str, Any]):
    """The channels that nodes work on; nodes get them read-only, within their `reads`.

    `state["name"]` and `state.get("name")` give a channel, `state["plan.steps"]` a leaf of one.  In a run
    `goal` and `constraints` can be read as well.  `WorkflowState(channels)` makes a state without a graph: to
    try reducers and schemas, and to call a node from a test.

    Args:
        channels: name to `Channel`, as for `StateGraph`.

    Raises:
        GraphInvalid: a bad channel.
        UndeclaredChannel: there is no such channel.
        ReadDenied: the node's `reads` do not name it.
    """

    __slots__ = ("_channels", "_extras", "_live", "_reads", "_values")

    _channels: Mapping[str, BoundChannel]
    _extras: Mapping[str, Any]
    _live: LiveState
    _reads: Reads
    _values: Mapping[str, Any]

    @declares()
    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = bind(channels)
        self._extras = {}
        self._reads = None
        self._become(LiveState.initial(self._channels))

    def update(self, updates: Mapping[str, Any]) -> None:
        """Apply updates through the reducers of their channels, all or none.

        Raises:
            UndeclaredChannel, ValueRejected, SchemaMismatch, ReducerError: nothing is applied.
        """
        self._apply(reduce_updates(self._live, self._channels, _mapping(updates, "updates").items()))

    def set(self, values: Mapping[str, Any]) -> None:
        """Replace values without reducers, as a human's edit does; raises what `update` raises."""
        self._apply(set_values(self._live, self._channels, _mapping(values, "values")))

    def snapshot(self) -> Mapping[str, Any]:
        """Return the current values, which never change."""
        return MappingProxyType({name: self[name] for name in self})

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restore the values of a snapshot, without reducers; other channels get their defaults.

        Raises:
            UndeclaredChannel, ValueRejected, SchemaMismatch: nothing is changed.
        """
        began = LiveState.initial(self._channels)
        self._become(after(began, set_values(began, self._channels, _mapping(snapshot, "snapshot"))))

    def _apply(self, changes: Sequence[Change]) -> None:
        self._become(after(self._live, changes))

    def _become(self, live: LiveState) -> None:
        self._live, self._values = live, live.values

    def __getitem__(self, name: str) -> Any:
        if self._reads is None and name in self._values:
            return self._values[name]
        if name in RUN_INPUTS:
            return self._extras.get(name)
        try:
            channel, _, path = name.partition(".")
        except AttributeError:
            raise UndeclaredChannel(
                f"a channel is named by a text, not by {in_words(name)}", f"channels: {', '.join(self)}"
            ) from None
        if channel not in self._channels:
            raise undeclared(channel, self._channels)
        if not self._may_read(channel, name):
            raise ReadDenied(
                f"channel {name!r} is not among the node's reads ({', '.join(self._reads or ()) or 'none'})",
                f"add {name!r} to reads=[...] of the node",
            )
        return _leaf(self._values[channel], path, name)

    if not TYPE_CHECKING:  # hidden from type checkers, which report it themselves

        def __setitem__(self, name: str, value: object) -> NoReturn:
            raise TypeError(f"write state.update({{{name!r}: …}}), or state.set(…) to go by its reducer")

        def __getattr__(self, name: str) -> NoReturn:
            how = "" if name.startswith("_") or name not in self._channels else f"; write state[{name!r}]"
            raise AttributeError(f"the state has no attribute {name!r}{how}", name=name, obj=self)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the channel's value, `default` if it is null."""
        value = self[name]
        return default if value is None else value

    @property
    def reads(self) -> Reads:
        """The channels that the node declares to read; None for all."""
        return self._reads

    def visibility(self, channel: str) -> Visibility:
        """Whether a channel is public or private."""
        return self._channels[channel].visibility

    def description(self, channel: str) -> str:
        """Return the description of a channel, "" if it has none."""
        return self._channels[channel].description

    def is_tainted(self, channel: str) -> bool:
        """Whether a channel holds untrusted data."""
        return False

    def tainted_sources(self) -> tuple[str, ...]:
        """Return the external sources of the tainted channels that were read so far."""
        return ()

    def private(self) -> dict[str, Any]:
        """Return all private channels with their values, so that a caller can keep them out of files."""
        return {
            name: self._values[name]
            for name, channel in self._channels.items()
            if channel.visibility == "private" and name in self._values
        }

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._channels if self._may_read(name, name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._channels and self._may_read(name, name)

    def __repr__(self) -> str:
        return f"WorkflowState({', '.join(self)})"

    def __str__(self) -> str:
        private = {name for name in self if self.visibility(name) == "private"}
        values = {name: self._values[name] for name in self}
        count = f"{len(values)} channel{'' if len(values) == 1 else 's'}"
        return "\n".join((f"WorkflowState with {count}", *channel_lines(values, private)))

    def _may_read(self, channel: str, name: str) -> bool:
        reads = self._reads
        if reads is None or channel in reads or name in reads:
            return True
        if name != channel and any(name.startswith(f"{entry}.") for entry in reads):
            return True
        return "*" in reads and self._channels[channel].visibility == "public"


class StateView(WorkflowState):
    """Read-only state for a node or a route, within its `reads`."""

    __slots__ = ()

    def __init__(
        self,
        values: Mapping[str, Any],
        channels: Mapping[str, BoundChannel],
        reads: Reads = None,
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        self._values = values
        self._channels = channels
        self._reads = reads
        self._extras = extras or {}

    def update(self, updates: Mapping[str, Any]) -> NoReturn:
        """Raise an error: a node returns its updates."""
        raise TypeError("state is read-only inside a node: return the updates instead")

    def set(self, values: Mapping[str, Any]) -> NoReturn:
        """Raise an error, as `update` does."""
        self.update(values)

    def restore(self, snapshot: Mapping[str, Any]) -> NoReturn:
        """Raise an error, as `update` does."""
        self.update(snapshot)

    if not TYPE_CHECKING:

        def __setitem__(self, name: str, value: object) -> NoReturn:
            raise TypeError(f"state is read-only inside a node: return {{{name!r}: …}} as an update instead")

        def __delitem__(self, name: str) -> NoReturn:
            raise TypeError(f"state is read-only inside a node: return {{{name!r}: None}} to set it to null")


class NotedState(StateView):
    """A `StateView` that knows of taint and records what is read, dotted names included.

    Listing names (`keys`, `in`, `len`) reads nothing; `values`, `items` and `dict(state)` read all.
    """

    __slots__ = ("_noted", "_taint")

    def __init__(
        self,
        values: Mapping[str, Any],
        channels: Mapping[str, BoundChannel],
        reads: Reads,
        extras: Mapping[str, Any] | None,
        *,
        noted: dict[str, None],
        taint: Tainted,
    ) -> None:
        super().__init__(values, channels, reads, extras)
        self._noted = noted
        self._taint = taint

    def is_tainted(self, channel: str) -> bool:
        """Whether a channel holds untrusted data."""
        return channel in self._taint

    def tainted_sources(self) -> tuple[str, ...]:
        """Return the external sources of the tainted channels that were read so far."""
        names = (name.partition(".")[0] for name in tuple(self._noted))
        return tuple(source for name in names if name in self._taint for source in self._taint[name].sources)

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if name in self._channels or name.partition(".")[0] in self._channels:
            self._noted[name] = None
        return value


# Python's errors name the class, and users know only `WorkflowState`.
for _class in (StateView, NotedState):
    _class.__name__ = _class.__qualname__ = WorkflowState.__name__


def _mapping(given: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError(f"the {what} are {in_words(given)}", 'give a dict, as {"draft": "…"}')
    return given


def _leaf(value: Any, path: str, name: str) -> Any:
    for part in path.split(".") if path else ():
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise UndeclaredChannel(
                f"there is nothing at {name!r}", "check the path inside the channel"
            ) from None
    return value
