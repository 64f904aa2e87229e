"""Follows channels and taint through a log by their hashes, for `verify`.

Specified in docs/spec/data.md and docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from hitl_tui.engine.log.records import CHANNELS, Checkpoint, LedgerEntry, Operation, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.taint import Tainted, spread
from hitl_tui.engine.state.canonical import EMPTY_LIST_DIGEST, channel_hash, extend_chain, item_hash
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.state.frozen import FrozenDict, FrozenList, freeze
from hitl_tui.engine.state.reducers import Kind, logged_reducer
from hitl_tui.engine.thread.rebuild import decode_snapshot, next_value, update_of
from hitl_tui.errors import HitlError, LogCorrupt, UnknownThread


class ReplayedChannels:
    """The channels of a thread, followed in a replay with the current graph.

    Args:
        channels: those of the graph.
        ledger: that of the thread.
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
        # The hashes, from the log, of channels that the thread has lost since.
        self._lost: dict[str, bytes] = {}
        for entry in ledger:
            if entry.kind == CHANNELS:
                self._steps.add(entry.step)
                self._left = self._left.union(entry.data["gone"]).difference(entry.data["new"])

    def lost(self, record: UpdateRecord) -> bool:
        """Whether a record is about a channel that the graph lacks because the thread has lost it since."""
        known = record.channel in self._left and record.channel not in self._channels
        if known:
            self._lost[record.channel] = record.next_hash
        return known

    def follow(self, step: int, written: set[str], values: dict[str, Any], digests: dict[str, bytes]) -> None:
        """Apply a step, after its records: channels that it added or removed get their new values.

        Args:
            written: the channels that the step has written.
            values, digests: those of the graph's channels, replayed so far; changed in place.
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
        """Return the hashes from which the hash of the state is made."""
        if self._names == digests.keys():
            return digests
        return {name: digest for name, digest in (self._lost | digests).items() if name in self._names}

    def _kept(self, step: int) -> dict[str, Any] | None:
        """Return the whole state that a step keeps; None if it can't be read, which `verify` reports."""
        with suppress(LogCorrupt):
            snapshot = self._store.snapshot(self._thread_id, step)
            if snapshot and snapshot[0] == step:
                return decode_snapshot(snapshot[1])
        return None


class TaintFinding(NamedTuple):
    """Taint that does not follow from the records; `record` is None if it is in the checkpoint."""

    record: UpdateRecord | None
    field: str
    expected: Any
    actual: Any


class TaintTrace:
    """The tainted channels of a thread, followed step by step; after a gap unknown until the next step."""

    def __init__(self, known: Tainted | None = MappingProxyType({})) -> None:
        self.known = known

    def lose(self) -> None:
        """Note a gap."""
        self.known = None

    def is_plain(self, point: Checkpoint, records: Sequence[UpdateRecord]) -> bool:
        """Whether a step has nothing to do with taint; such a step is then followed."""
        if self.known or point.tainted:
            return False
        for record in records:
            if record.tainted or record.lineage is not None:
                return False
        self.known = {}
        return True

    def follow(
        self, point: Checkpoint, records: Sequence[UpdateRecord], intact: bool
    ) -> tuple[TaintFinding, ...]:
        """Follow the taint one step further, and check the result against the checkpoint.

        Args:
            intact: no record of the step was changed, so their lineages are as they were written.
        """
        if self.is_plain(point, records):
            return ()
        before = self.known
        self.known = {taint.channel: taint for taint in point.tainted}
        if before is None or not intact:
            return ()
        findings: list[TaintFinding] = []
        tainted = set(before)
        for record in records:
            findings += _of_record(record, point, before, tainted)
            if record.lineage:
                tainted.add(record.channel)
        after = spread(before, [(record.channel, record.lineage) for record in records])
        if after != self.known:
            names = (sorted(after), sorted(self.known))
            shown = names if names[0] != names[1] else (list(after.values()), list(point.tainted))
            findings.append(TaintFinding(None, "tainted", *map(str, shown)))
        return tuple(findings)


def _of_record(
    record: UpdateRecord, point: Checkpoint, before: Tainted, tainted: set[str]
) -> Iterator[TaintFinding]:
    lineage = record.lineage
    if lineage is not None and lineage.cleared:
        if record.tainted:
            yield TaintFinding(record, "tainted", False, True)
        if record.previous_hash != record.next_hash:
            yield TaintFinding(record, "next_hash", record.previous_hash, record.next_hash)
        return
    expected = lineage is not None or record.channel in tainted
    if record.tainted != expected:
        yield TaintFinding(record, "tainted", expected, record.tainted)
    named = set(lineage.channels) if lineage else set()
    read = {name.partition(".")[0] for name in point.read} & before.keys()
    from_node = record.source == "node" and not record.path
    wanted = read if from_node and point.read else named & before.keys()
    if named != wanted:
        yield TaintFinding(record, "lineage", ", ".join(sorted(wanted)), ", ".join(sorted(named)))


_UNKNOWN: Any = object()
_PLAIN = frozenset((str, int, bool, type(None)))
"""Types of which msgspec's JSON is the canonical form."""
_encode = msgspec.json.Encoder().encode
_NULL = item_hash(None)
# Usual defaults of channels, recognised by their hashes.
_USUAL_DEFAULTS = {
    channel_hash(value): value for value in (None, FrozenList(), FrozenDict(), 0, 1, "", True, False)
}


class TraceFinding(NamedTuple):
    """An error in a record that none of its own hashes shows."""

    kind: Literal["value", "reducer"]
    field: str
    expected: Any
    actual: Any


class Followed(NamedTuple):
    """The wrong hashes of a record as they should be, by field, and other findings."""

    expected: dict[str, bytes]
    findings: list[TraceFinding]


class Standing(NamedTuple):
    """A channel as far as it was followed: its hash as it should be and as written, None if that is unknown.

    `value` is that of `digest` if it is `known`.
    """

    digest: bytes | None
    stored: bytes | None
    known: bool
    value: Any


class _Channel:
    """One channel while it is followed; `stored` is its last hash as written, `digest` as it should be."""

    __slots__ = ("digest", "stored", "value")

    def __init__(
        self, value: Any = _UNKNOWN, digest: bytes | None = None, stored: bytes | None = None
    ) -> None:
        self.value = value
        self.digest = digest
        self.stored = stored


class Trace:
    """All channels of a thread, followed record by record.

    Args:
        channels: the channels as far as they were followed before.
        written: the channels that a record has named.
        private: the private channels.
        reported: changed reducers that were reported.
        strict: the graph's channels, to reduce updates again instead of using stored results.
        before: looks up the value of a record's channel before its step.

    Attributes:
        depends: something depended on which channels were written before the start.
    """

    def __init__(
        self,
        channels: Mapping[str, Standing],
        written: Iterable[str] = (),
        private: Iterable[str] = (),
        reported: Iterable[tuple[str, str]] = (),
        *,
        strict: Mapping[str, BoundChannel] | None = None,
        before: Callable[[UpdateRecord], Any] | None = None,
    ) -> None:
        self.strict = strict
        self._before = before
        self.written, self.private, self.reported = set(written), set(private), set(reported)
        self.depends = False
        self._named: set[str] = set()
        self._all = {
            name: _Channel(
                freeze(standing.value) if standing.known else _UNKNOWN, standing.digest, standing.stored
            )
            for name, standing in channels.items()
        }
        # The parts of the state's hash by channel, and the channels that have changed since it was made.
        self._parts: dict[str, str] = {}
        self._order: list[str] = []
        self._changed = set(self._all)
        self._state_hash: bytes | None = None

    def standings(self) -> dict[str, Standing]:
        """Return each channel as far as it was followed."""
        return {
            name: Standing(channel.digest, channel.stored, known, channel.value if known else None)
            for name, channel in self._all.items()
            for known in (channel.value is not _UNKNOWN,)
        }

    def digest(self, name: str) -> bytes | None:
        """Return a channel's hash as it should be, None while it is unknown."""
        channel = self._all.get(name)
        return channel.digest if channel else None

    def state_hash(self) -> bytes:
        """Return the hash of the state, b"" while that of a channel is unknown."""
        if self._state_hash is not None and not self._changed:
            return self._state_hash
        parts = self._parts
        for name in self._changed:
            digest = self._all[name].digest
            if digest is None:
                return b""
            parts[name] = f'"{name}":"sha256:{digest.hex()}"'
        self._changed.clear()
        if len(self._order) != len(parts):
            self._order = sorted(parts)
        self._state_hash = sha256(f"{{{','.join([parts[name] for name in self._order])}}}".encode()).digest()
        return self._state_hash

    def written_digests(self) -> dict[str, bytes]:
        """Return the hashes of the channels that a record names."""
        return {
            name: channel.digest
            for name, channel in self._all.items()
            if name in self.written and channel.digest is not None
        }

    def missing(self, values: Mapping[str, Any]) -> list[str]:
        """Return the channels that a record names and a whole state lacks."""
        if self._all.keys() <= values.keys():
            return []
        self.depends = self.depends or not self._all.keys() - values.keys() <= self._named
        return sorted(self.written_digests().keys() - values.keys())

    def set_from_snapshot(self, name: str, value: Any, digest: bytes) -> None:
        """Set a channel's value and hash from a snapshot."""
        self._all[name] = _Channel(value, digest, digest)
        self._changed.add(name)

    def set_value(self, name: str, value: Any) -> None:
        """Set a channel's value, which has the right hash."""
        self._all[name].value = value

    def keep(self, values: Mapping[str, Any]) -> None:
        """Continue with exactly these channels; channels that were not followed get these values."""
        self.depends = self.depends or not self._all.keys() <= values.keys()
        self._all = {name: self._all.get(name) or _Channel() for name in values}
        self.written &= values.keys()
        self._named &= values.keys()
        self._parts, self._order, self._changed = {}, [], set(self._all)
        for name, channel in self._all.items():
            if channel.digest is None:
                self.set_from_snapshot(name, values[name], channel_hash(values[name]))

    def lose(self) -> None:
        """Forget the values of all channels, after a gap."""
        for channel in self._all.values():
            channel.value, channel.digest, channel.stored = _UNKNOWN, None, None
        self._changed = set(self._all)

    def follow(self, record: UpdateRecord, intact: bool) -> Followed | None:
        """Follow a channel one record further; return None if all is as it should be.

        Args:
            intact: the record's own hash is right, so its hashes are as they were written.
        """
        name = record.channel
        if record.visibility == "private":
            self.private.add(name)
        if name not in self._named:
            self._named.add(name)
            self.written.add(name)
        self._changed.add(name)
        channel = self._all.get(name)
        if channel is None:
            channel = self._all[name] = _Channel()
        if self.strict is None and _is_replaced(record, channel):
            return None
        return self._trace(channel, record, intact)

    def _trace(self, channel: _Channel, record: UpdateRecord, intact: bool) -> Followed | None:
        expected: dict[str, bytes] = {}
        findings: list[TraceFinding] = []
        if channel.digest is None:
            channel.digest = channel.stored = record.previous_hash
            channel.value = _USUAL_DEFAULTS.get(record.previous_hash, _UNKNOWN)
        elif record.previous_hash not in (channel.stored, channel.digest):
            expected["previous_hash"] = channel.digest
        if record.patched:
            if channel.value is _UNKNOWN:
                channel.value = self._look_up(record, channel)
            update = self._update(record, channel.value)
        else:
            update = freeze(record.update)
        update_hash = record.update_hash if update is _UNKNOWN else item_hash(update)
        if update_hash != record.update_hash:
            if intact:
                findings.append(TraceFinding("value", "update", record.update_hash, update_hash))
                channel.value = _UNKNOWN
                channel.digest = channel.stored = record.next_hash
                return Followed(expected, findings)
            expected["update_hash"] = update_hash
        if self.strict is not None:
            findings += self._changed_reducer(record, self.strict)
        digest = self._reduced(channel, record, update, update_hash, findings)
        if digest != record.next_hash:
            if digest is None or intact:
                if digest is not None and not findings:
                    field = "next_hash" if record.result is msgspec.UNSET else "result"
                    findings.append(TraceFinding("value", field, record.next_hash, digest))
                channel.value = _UNKNOWN
                digest = record.next_hash
            else:
                expected["next_hash"] = digest
        channel.digest, channel.stored = digest, record.next_hash
        return Followed(expected, findings) if expected or findings else None

    def _reduced(
        self,
        channel: _Channel,
        record: UpdateRecord,
        update: Any,
        update_hash: bytes,
        findings: list[TraceFinding],
    ) -> bytes | None:
        """Return the channel's hash after a record, None if it is not known."""
        previous = channel.value
        channel.value = _UNKNOWN
        if update is _UNKNOWN:
            return None
        kind = _kind_by_digests(record.op, record.reducer)
        if kind == "replace":
            channel.value = update
            return channel_hash(update) if isinstance(update, list) else update_hash
        start = EMPTY_LIST_DIGEST if channel.digest == _NULL else channel.digest or b""
        if kind == "element":
            return sha256(start + update_hash).digest()
        if kind == "members" and isinstance(update, list):
            return extend_chain(start, update)
        if record.result is not msgspec.UNSET:
            return self._result(channel, previous, update, record, findings)
        if previous is _UNKNOWN:
            return None
        try:
            channel.value = next_value(record, previous)
        except Exception as error:
            findings.append(
                TraceFinding("value", "update", "an update for " + record.reducer, _error_text(error))
            )
            return None
        return channel_hash(channel.value)

    def _result(
        self,
        channel: _Channel,
        previous: Any,
        update: Any,
        record: UpdateRecord,
        findings: list[TraceFinding],
    ) -> bytes | None:
        """Return the hash of a custom reducer's result as the record has it."""
        if "result" in record.patched and previous is _UNKNOWN:
            return None
        try:
            channel.value = next_value(record, previous)
        except LogCorrupt as error:
            findings.append(TraceFinding("value", "result", record.next_hash, error.message))
            return None
        if self.strict is not None:
            findings += self._reduced_again(previous, update, record, self.strict)
        return channel_hash(channel.value)

    def _update(self, record: UpdateRecord, previous: Any) -> Any:
        """Return the update of a record; its raw content if it is a patch of another value."""
        if "update" in record.patched and previous is _UNKNOWN:
            return _UNKNOWN
        try:
            return update_of(record, previous)
        except LogCorrupt:
            return record.update

    def _look_up(self, record: UpdateRecord, channel: _Channel) -> Any:
        """Look up the value that a record changes, if it is not known from following the log."""
        if self._before is None:
            return _UNKNOWN
        with suppress(LogCorrupt, UnknownThread):
            value = self._before(record)
            if channel_hash(value) == channel.digest:
                return value
        return _UNKNOWN

    def _reduced_again(
        self, previous: Any, update: Any, record: UpdateRecord, channels: Mapping[str, BoundChannel]
    ) -> list[TraceFinding]:
        """Run a custom reducer on its recorded arguments."""
        own = channels.get(record.channel)
        if own is None or previous is _UNKNOWN:
            return []
        try:
            value = own.reduce(previous, update)
        except Exception as error:
            return [TraceFinding("reducer", "result", record.next_hash, _error_text(error))]
        digest = channel_hash(value)
        if digest == record.next_hash:
            return []
        return [TraceFinding("reducer", "result", record.next_hash, digest)]

    def _changed_reducer(
        self, record: UpdateRecord, channels: Mapping[str, BoundChannel]
    ) -> list[TraceFinding]:
        """Return the graph's reducer if it differs from the record's; reported once.

        For a channel that the graph no longer has there is none to compare; the ledger has its removal.
        """
        own = channels.get(record.channel)
        if record.op == "set" or own is None:
            return []
        today = own.reducer.signature
        known = (record.channel, record.reducer)
        if today == record.reducer or known in self.reported:
            return []
        self.reported.add(known)
        return [TraceFinding("reducer", "reducer", record.reducer, today)]


def _is_replaced(record: UpdateRecord, channel: _Channel) -> bool:
    """Whether a record replaces a value by a text, a number or the like, and all hashes are right.

    The channel is then followed. In many logs nearly all records do only this.
    """
    update, digest = record.update, record.next_hash
    if (
        type(update) in _PLAIN
        and channel.digest == record.previous_hash
        and record.update_hash == digest
        and record.result is msgspec.UNSET
        and not record.patched
        and _kind_by_digests(record.op, record.reducer) == "replace"
        and sha256(_encode(update)).digest() == digest
    ):
        channel.value, channel.digest, channel.stored = update, digest, digest
        return True
    return False


@lru_cache
def _kind_by_digests(op: Operation, name: str) -> Kind | None:
    """Return how the digest after a record follows from digests alone; None if the value before it is needed.

    Args:
        op, name: the record's operation and reducer.
    """
    if op == "set":
        return "replace"
    reducer = logged_reducer(name)
    return reducer.kind if reducer and not reducer.needs_old else None


def _error_text(error: Exception) -> str:
    return error.message if isinstance(error, HitlError) else f"{type(error).__name__}: {error}"
