"""Which channels a thread has, step by step: its graph may get some and lose some (SPEC 12).

A state's hash is over all channels, defaults too, which are in no record: a step from which on there are
others than before keeps the whole state, and the ledger names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from hitl_tui.engine.channels.canonical import channel_hash
from hitl_tui.engine.channels.channel import BoundChannel
from hitl_tui.engine.log.records import LedgerEntry, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.thread.journal import CHANNELS, decode_snapshot
from hitl_tui.engine.verification.tracing import Trace
from hitl_tui.errors import LogCorrupt


class ChannelSets:
    """The channels of a thread, as `verify` follows them."""

    def __init__(self, store: Store, thread_id: str, trace: Trace) -> None:
        self._trace = trace
        # The graph at hand may not be the one that the thread began with.
        self._steps = {0} if trace.channels is not None else set()
        with suppress(LogCorrupt):  # told where the ledger is checked
            self._steps |= {one.step for one in store.ledger(thread_id) if one.kind == CHANNELS}

    def follow(self, step: int, snapshot: bytes | None) -> None:
        """After the records of a step: which channels there are from it on, by its snapshot."""
        if step in self._steps and snapshot is not None:
            with suppress(Exception):  # told where the snapshot is checked
                self._trace.keep(decode_snapshot(snapshot))


class ReplayedChannels:
    """The channels of a thread, as a replay with the graph of today follows them.

    Args:
        channels: the graph's.
        ledger: the thread's.
    """

    def __init__(
        self,
        store: Store,
        thread_id: str,
        channels: Mapping[str, BoundChannel],
        ledger: Iterable[LedgerEntry],
    ) -> None:
        self._store = store
        self._thread_id = thread_id
        self._channels = channels
        self._names = frozenset(channels)
        self._steps = {0}
        self._left: set[str] = set()
        # The hashes of channels that the thread has lost since, as the log has them.
        self._lost: dict[str, bytes] = {}
        for entry in ledger:
            if entry.kind == CHANNELS:
                self._steps.add(entry.step)
                self._left = self._left.union(entry.data["gone"]).difference(entry.data["new"])

    def lost(self, record: UpdateRecord) -> bool:
        """Whether a record is of a channel that the graph lacks because the thread has lost it since."""
        known = record.channel in self._left and record.channel not in self._channels
        if known:
            self._lost[record.channel] = record.next_hash
        return known

    def follow(self, step: int, written: set[str], values: dict[str, Any], digests: dict[str, bytes]) -> None:
        """After the records of a step: channels that came or went with it have their values anew.

        Args:
            written: the channels that the step has written.
            values, digests: of the graph's channels, replayed so far; changed in place.
        """
        kept = self._kept(step) if step in self._steps else None
        if kept is None:
            return
        if step > 0:
            for name in self._channels.keys() & (kept.keys() - self._names - written):
                values[name], digests[name] = kept[name], channel_hash(kept[name])
            for name in self._channels.keys() & (self._names - kept.keys()):
                channel = self._channels[name]
                values[name], digests[name] = channel.default, channel.default_hash
        for name in kept.keys() & self._left - self._channels.keys():
            self._lost[name] = channel_hash(kept[name])
        self._names = frozenset(kept)

    def hashed(self, digests: dict[str, bytes]) -> dict[str, bytes]:
        """The hashes that the hash of the state is over."""
        if self._names == digests.keys():
            return digests
        return {name: one for name, one in (self._lost | digests).items() if name in self._names}

    def _kept(self, step: int) -> dict[str, Any] | None:
        """The whole state that a step keeps, None where it can't be read, which is for `verify` to tell."""
        with suppress(LogCorrupt):
            found = self._store.snapshot(self._thread_id, step)
            if found and found[0] == step:
                return decode_snapshot(found[1])
        return None
