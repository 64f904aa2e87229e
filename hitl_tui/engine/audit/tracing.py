"""Following channels and taint through a log by their hashes, as `verify` does.

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
        return {name: digest for name, digest in (self._lost | digests).items() if name in self._names}

    def _kept(self, step: int) -> dict[str, Any] | None:
        """The whole state that a step keeps, None where it can't be read, which is for `verify` to tell."""
        with suppress(LogCorrupt):
            snapshot = self._store.snapshot(self._thread_id, step)
            if snapshot and snapshot[0] == step:
                return decode_snapshot(snapshot[1])
        return None


class TaintFinding(NamedTuple):
    """Taint that does not follow from the records; `record` is None where the checkpoint says it."""

    record: UpdateRecord | None
    field: str
    expected: Any
    actual: Any


class TaintTrace:
    """The tainted channels of a thread, followed step by step; unknown after a gap until the next step."""

    def __init__(self, known: Tainted | None = MappingProxyType({})) -> None:
        self.known = known

    def lose(self) -> None:
        """Something between is missing."""
        self.known = None

    def is_plain(self, point: Checkpoint, records: Sequence[UpdateRecord]) -> bool:
        """Whether a step has nothing to do with taint; then it is taken with it."""
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
        """Take the taint one step further; what follows is checked against what the checkpoint says.

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
"""What msgspec writes as its canonical form has it."""
_encode = msgspec.json.Encoder().encode
_NULL = item_hash(None)
# What a channel may hold before anything was written to it, to be recognised by its hash.
_USUAL_DEFAULTS = {
    channel_hash(value): value for value in (None, FrozenList(), FrozenDict(), 0, 1, "", True, False)
}


class TraceFinding(NamedTuple):
    """Something wrong with a record that none of its own hashes shows."""

    kind: Literal["value", "reducer"]
    field: str
    expected: Any
    actual: Any


class Followed(NamedTuple):
    """Which hashes of a record are not what they should be, by field, and what else was found."""

    expected: dict[str, bytes]
    findings: list[TraceFinding]


class Standing(NamedTuple):
    """How far a channel was followed: its hash as it should be and as written, None where that is unknown.

    `value` is that of `digest` where it is `known`.
    """

    digest: bytes | None
    stored: bytes | None
    known: bool
    value: Any


class _Channel:
    """How far one channel was followed; `stored` is its last hash as written, `digest` as it should be."""

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
        channels: how far they were followed before; `written`, `private`, `told`: which a record has named,
            which are private, and of which reducers was told that they are others today.
        strict: the graph's channels, to reduce by them again instead of taking stored results.
        before: looks up what a record's channel held before its step.

    Attributes:
        depends: something depended on which channels were written before this began.
    """

    def __init__(
        self,
        channels: Mapping[str, Standing],
        written: Iterable[str] = (),
        private: Iterable[str] = (),
        told: Iterable[tuple[str, str]] = (),
        *,
        strict: Mapping[str, BoundChannel] | None = None,
        before: Callable[[UpdateRecord], Any] | None = None,
    ) -> None:
        self.strict = strict
        self._before = before
        self.written, self.private, self.told = set(written), set(private), set(told)
        self.depends = False
        self._named: set[str] = set()
        self._all = {
            name: _Channel(
                freeze(standing.value) if standing.known else _UNKNOWN, standing.digest, standing.stored
            )
            for name, standing in channels.items()
        }
        # What goes into the hash of the state, by channel; those that have changed since it was made.
        self._parts: dict[str, str] = {}
        self._order: list[str] = []
        self._changed = set(self._all)
        self._state_hash: bytes | None = None

    def standings(self) -> dict[str, Standing]:
        """How far each channel is followed."""
        return {
            name: Standing(channel.digest, channel.stored, known, channel.value if known else None)
            for name, channel in self._all.items()
            for known in (channel.value is not _UNKNOWN,)
        }

    def digest(self, name: str) -> bytes | None:
        """A channel's hash as it should be, None while it is unknown."""
        channel = self._all.get(name)
        return channel.digest if channel else None

    def state_hash(self) -> bytes:
        """The hash of the state, b"" while that of a channel is unknown."""
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
        """The hashes of the channels that a record names."""
        return {
            name: channel.digest
            for name, channel in self._all.items()
            if name in self.written and channel.digest is not None
        }

    def missing(self, values: Mapping[str, Any]) -> list[str]:
        """The channels that a record names, and that a whole state lacks."""
        if self._all.keys() <= values.keys():
            return []
        self.depends = self.depends or not self._all.keys() - values.keys() <= self._named
        return sorted(self.written_digests().keys() - values.keys())

    def learn(self, name: str, value: Any, digest: bytes) -> None:
        """Take a channel's value and hash from a snapshot."""
        self._all[name] = _Channel(value, digest, digest)
        self._changed.add(name)

    def know(self, name: str, value: Any) -> None:
        """Take a channel's value, which has the hash that it should have."""
        self._all[name].value = value

    def keep(self, values: Mapping[str, Any]) -> None:
        """From here on there are these channels and no others; what was not followed has these values."""
        self.depends = self.depends or not self._all.keys() <= values.keys()
        self._all = {name: self._all.get(name) or _Channel() for name in values}
        self.written &= values.keys()
        self._named &= values.keys()
        self._parts, self._order, self._changed = {}, [], set(self._all)
        for name, channel in self._all.items():
            if channel.digest is None:
                self.learn(name, values[name], channel_hash(values[name]))

    def lose(self) -> None:
        """Forget where the channels stand: something between is missing."""
        for channel in self._all.values():
            channel.value, channel.digest, channel.stored = _UNKNOWN, None, None
        self._changed = set(self._all)

    def follow(self, record: UpdateRecord, intact: bool) -> Followed | None:
        """Take a channel one record further; None where all is as it should be.

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
        return self._traced(channel, record, intact)

    def _traced(self, channel: _Channel, record: UpdateRecord, intact: bool) -> Followed | None:
        expected: dict[str, bytes] = {}
        findings: list[TraceFinding] = []
        if channel.digest is None:
            channel.digest = channel.stored = record.previous_hash
            channel.value = _USUAL_DEFAULTS.get(record.previous_hash, _UNKNOWN)
        elif record.previous_hash not in (channel.stored, channel.digest):
            expected["previous_hash"] = channel.digest
        if record.patched:
            if channel.value is _UNKNOWN:
                channel.value = self._looked_up(record, channel)
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
        """The channel's hash after a record, None where it can't be told."""
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
        """The hash of what a record says that a user's reducer made."""
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
        """The update of a record; what it holds itself where that is a patch of another value."""
        if "update" in record.patched and previous is _UNKNOWN:
            return _UNKNOWN
        try:
            return update_of(record, previous)
        except LogCorrupt:
            return record.update

    def _looked_up(self, record: UpdateRecord, channel: _Channel) -> Any:
        """The value that a record changes, where following the log from its begin did not tell it."""
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
        """Run a user's reducer on what it got then."""
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
        """The graph's reducer where it is another one than the record's, told once.

        Of a channel that the graph has no more there is none to compare; the ledger tells that it went.
        """
        own = channels.get(record.channel)
        if record.op == "set" or own is None:
            return []
        today = own.reducer.signature
        known = (record.channel, record.reducer)
        if today == record.reducer or known in self.told:
            return []
        self.told.add(known)
        return [TraceFinding("reducer", "reducer", record.reducer, today)]


def _is_replaced(record: UpdateRecord, channel: _Channel) -> bool:
    """Whether a record puts a text, a number or the like in place of a value, and all hashes are right.

    The channel is taken with it then.  Nearly all records of many logs do no more.
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
    """How the digest after a record comes from digests alone, None where it takes the value before it.

    Args:
        op, name: the record's operation and reducer.
    """
    if op == "set":
        return "replace"
    reducer = logged_reducer(name)
    return reducer.kind if reducer and not reducer.needs_old else None


def _error_text(error: Exception) -> str:
    return error.message if isinstance(error, HitlError) else f"{type(error).__name__}: {error}"
