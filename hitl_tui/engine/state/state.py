"""All channels of a thread with their digests, as the engine keeps them.

Specified in docs/spec/values.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from hitl_tui.engine.log.taint import Taint, Tainted
from hitl_tui.engine.state.canonical import DIGEST_HEX, state_hash, state_text
from hitl_tui.engine.state.channel import RUN_INPUTS, BoundChannel
from hitl_tui.errors import UndeclaredChannel

_UNTAINTED: dict[str, Taint] = {}
_MANY = 8
"""From this number of channels on, updating parts of the hashed text is faster than writing all of it."""


def undeclared(name: str, channels: Mapping[str, Any]) -> UndeclaredChannel:
    """Return the error for an unknown channel, suggesting the most similar name."""
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


class OtherChannels(msgspec.Struct, frozen=True):
    """Differences between a graph's channels and those that a state was committed with.

    Args:
        committed: the `state_hash` of the state as it was committed.
    """

    new: tuple[str, ...]
    gone: tuple[str, ...]
    committed: bytes


class LiveState:
    """All channels of a thread with their digests and taint.  Immutable: a commit replaces it.

    `other` says how its channels differ from those in the log, None if they don't.
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
        """Return a state with every channel at its default."""
        return cls(
            {name: channel.default for name, channel in channels.items()},
            {name: channel.default_hash for name, channel in channels.items()},
        )

    @property
    def hash(self) -> bytes:
        """The `state_hash`; with many channels only those that changed since the last state are written."""
        if len(self.digests) < _MANY:
            return state_hash(self.digests)
        text = self._text = self._text or state_text(self.digests)
        return sha256(text[0]).digest()

    @property
    def committed_hash(self) -> bytes:
        """The `state_hash` that the step was committed with, as people and other programs know it."""
        return self.other.committed if self.other else self.hash

    @property
    def is_written(self) -> bool:
        """Whether the hashed text is cached."""
        return self._text is not None

    def follow(self, before: LiveState, changed: Iterable[str]) -> None:
        """Reuse the hashed text of an earlier state; only the `changed` channels are written again."""
        if before._text and len(self.digests) == len(before.digests):
            text, places = before._text[0].copy(), before._text[1]
            for name in changed:
                place = places[name]
                text[place : place + DIGEST_HEX] = self.digests[name].hex().encode()
            self._text = text, places
