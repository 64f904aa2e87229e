"""The state: what nodes and routes read, and what the engine keeps behind it (SPEC 1, 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from hitl_tui.engine.log.records import Visibility
from hitl_tui.engine.log.taint import Taint, Tainted
from hitl_tui.engine.state.canonical import DIGEST_HEX, state_hash, state_text
from hitl_tui.engine.state.channel import RUN_INPUTS, BoundChannel
from hitl_tui.errors import ReadDenied, UndeclaredChannel, in_words

Reads = tuple[str, ...] | None

_UNTAINTED: dict[str, Taint] = {}
_MANY = 8
"""Channels from which on a part of what a state's hash is over is written faster than all of it."""


class WorkflowState(Mapping[str, Any]):
    """A read-only view of the channels that a node may read.

    `state["name"]` and `state.get("name")` give a channel, `state["plan.steps"]` a leaf of one;
    `goal` and `constraints` of the run can always be read.

    Raises:
        UndeclaredChannel: the graph has no such channel.
        ReadDenied: the node's `reads` do not name it.
    """

    __slots__ = ("_channels", "_extras", "_reads", "_values")

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

    if not TYPE_CHECKING:  # a type checker says so by itself, and sooner

        def __setitem__(self, name: str, value: object) -> NoReturn:
            raise TypeError(f"state is read-only inside a node: return {{{name!r}: …}} as an update instead")

        def __delitem__(self, name: str) -> NoReturn:
            raise TypeError(f"state is read-only inside a node: return {{{name!r}: None}} to set it to null")

        def __getattr__(self, name: str) -> NoReturn:
            how = "" if name.startswith("_") or name not in self._channels else f"; write state[{name!r}]"
            raise AttributeError(f"the state has no attribute {name!r}{how}", name=name, obj=self)

    def get(self, name: str, default: Any = None) -> Any:
        """The channel's value, `default` where it is null."""
        value = self[name]
        return default if value is None else value

    @property
    def reads(self) -> Reads:
        """What the node declares to read; None for all."""
        return self._reads

    def visibility(self, channel: str) -> Visibility:
        """Whether a channel is public or private."""
        return self._channels[channel].visibility

    def is_tainted(self, channel: str) -> bool:
        """True where a channel holds something from outside (SPEC 8)."""
        return False

    def tainted_sources(self) -> tuple[str, ...]:
        """What from outside is in the channels that were read so far."""
        return ()

    def private(self) -> dict[str, Any]:
        """All private channels with their values, for those who must keep them out of files."""
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

    def _may_read(self, channel: str, name: str) -> bool:
        reads = self._reads
        if reads is None or channel in reads or name in reads:
            return True
        if name != channel and any(name.startswith(f"{entry}.") for entry in reads):
            return True
        return "*" in reads and self._channels[channel].visibility == "public"


class NotedState(WorkflowState):
    """A `WorkflowState` that knows of taint and notes what is read of it, dotted names as such.

    Asking for names (`keys`, `in`, `len`) reads nothing; `values`, `items` and `dict(state)` read all.
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
        """True where a channel holds something from outside (SPEC 8)."""
        return channel in self._taint

    def tainted_sources(self) -> tuple[str, ...]:
        """What from outside is in the channels that were read so far."""
        names = (name.partition(".")[0] for name in tuple(self._noted))
        return tuple(source for name in names if name in self._taint for source in self._taint[name].sources)

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if name.partition(".")[0] in self._channels:
            self._noted[name] = None
        return value


# What Python says of a wrong use of it names the class, and users know but one.
NotedState.__name__ = NotedState.__qualname__ = WorkflowState.__name__


def _leaf(value: Any, path: str, name: str) -> Any:
    for part in path.split(".") if path else ():
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise UndeclaredChannel(
                f"there is nothing at {name!r}", "check the path inside the channel"
            ) from None
    return value


def undeclared(name: str, channels: Mapping[str, Any]) -> UndeclaredChannel:
    """The error for a name that is not a channel, with the nearest one that is."""
    if name in RUN_INPUTS:
        return UndeclaredChannel(
            f"{name!r} is an input of the run, which is read-only", "give it to a new run, or use a channel"
        )
    from difflib import get_close_matches

    close = get_close_matches(str(name), channels, 1)
    known = ", ".join(channels) or "none"
    return UndeclaredChannel(
        f"there is no channel {name!r}; channels: {known}", f"did you mean {close[0]!r}?" if close else ""
    )


class OtherChannels(NamedTuple):
    """How the channels of a graph differ from those that a state was committed with."""

    new: tuple[str, ...]
    gone: tuple[str, ...]


class LiveState:
    """All channels of a thread with their digests, and which are tainted; replaced, never changed, by a
    commit.

    `other` says how its channels differ from those that the log has it with, None where they don't.
    """

    __slots__ = ("_text", "digests", "other", "taint", "values")

    def __init__(
        self,
        values: dict[str, Any],
        digests: dict[str, bytes],
        taint: Tainted = _UNTAINTED,
        other: OtherChannels | None = None,
    ) -> None:
        self.values = values
        self.digests = digests
        self.taint = taint
        self.other = other
        self._text: tuple[bytearray, Mapping[str, int]] | None = None

    @classmethod
    def initial(cls, channels: Mapping[str, BoundChannel]) -> LiveState:
        """Every channel at its default."""
        return cls(
            {name: channel.default for name, channel in channels.items()},
            {name: channel.default_hash for name, channel in channels.items()},
        )

    @property
    def hash(self) -> bytes:
        """Its `state_hash`; of many channels what changed since the state before alone is written anew."""
        if len(self.digests) < _MANY:
            return state_hash(self.digests)
        text = self._text = self._text or state_text(self.digests)
        return sha256(text[0]).digest()

    @property
    def is_written(self) -> bool:
        """Whether the text that its hash is over is kept."""
        return self._text is not None

    def follow(self, before: LiveState, changed: Iterable[str]) -> None:
        """Be hashed as a state that was, of the same channels but for those that `changed` may add."""
        if before._text and len(self.digests) == len(before.digests):
            text, places = before._text[0].copy(), before._text[1]
            for name in changed:
                place = places[name]
                text[place : place + DIGEST_HEX] = self.digests[name].hex().encode()
            self._text = text, places
