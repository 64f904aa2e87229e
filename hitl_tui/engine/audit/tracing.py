"""Following channels and taint through a log by their hashes, as `verify` does (SPEC 8, 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec

from hitl_tui.engine.log.records import Checkpoint, LedgerEntry, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.taint import Tainted, spread
from hitl_tui.engine.state.canonical import EMPTY_LIST_DIGEST, channel_hash, extend_chain, item_hash
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.state.reducers import Kind, logged_reducer
from hitl_tui.engine.state.values import FrozenDict, FrozenList
from hitl_tui.engine.thread.journal import CHANNELS, decode_snapshot
from hitl_tui.engine.thread.rebuild import next_value, update_of
from hitl_tui.errors import HitlError, LogCorrupt, UnknownThread


class ChannelSets:
    """The channels of a thread, as `verify` follows them."""

    def __init__(self, store: Store, thread_id: str, trace: Trace) -> None:
        self._trace = trace
        # The graph at hand may not be the one that the thread began with.
        self._steps = {0} if trace.channels is not None else set()
        with suppress(LogCorrupt):  # told where the ledger is checked
            self._steps |= {entry.step for entry in store.ledger(thread_id) if entry.kind == CHANNELS}

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

    def __init__(self) -> None:
        self._known: Tainted | None = {}

    def lose(self) -> None:
        """Something between is missing."""
        self._known = None

    def follow(
        self, point: Checkpoint, records: Sequence[UpdateRecord], intact: bool
    ) -> tuple[TaintFinding, ...]:
        """Take the taint one step further; what follows is checked against what the checkpoint says.

        Args:
            intact: no record of the step was changed, so their lineages are as they were written.
        """
        before = self._known
        plain = not point.tainted and not any(record.tainted or record.lineage for record in records)
        if plain and not before:
            self._known = {}
            return ()
        self._known = {taint.channel: taint for taint in point.tainted}
        if before is None or not intact:
            return ()
        findings: list[TaintFinding] = []
        tainted = set(before)
        for record in records:
            findings += _of_record(record, point, before, tainted)
            if record.lineage:
                tainted.add(record.channel)
        after = spread(before, [(record.channel, record.lineage) for record in records])
        if after != self._known:
            names = (sorted(after), sorted(self._known))
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
    """What the hashes of a record should be, by field, and what else was found."""

    expected: dict[str, bytes]
    findings: tuple[TraceFinding, ...] = ()


class _Channel:
    """How far one channel was followed; `stored` is its last hash as written, `digest` as it should be."""

    __slots__ = ("digest", "stored", "value", "written")

    def __init__(self, value: Any = _UNKNOWN, digest: bytes | None = None) -> None:
        self.value = value
        self.digest = self.stored = digest
        self.written = False


class Trace:
    """All channels of a thread, followed record by record.

    Args:
        channels: the graph's, or None where it is not at hand.
        strict: reduce by the graph's reducers instead of taking stored results.
        before: looks up what a record's channel held before its step.
    """

    def __init__(
        self,
        channels: Mapping[str, BoundChannel] | None,
        strict: bool,
        before: Callable[[UpdateRecord], Any] | None = None,
    ) -> None:
        self.channels = channels
        self._before = before
        self.strict = strict
        self.private = {name for name, channel in (channels or {}).items() if channel.visibility == "private"}
        self.changes = 0
        self._all = {
            name: _Channel(channel.default, channel.default_hash)
            for name, channel in (channels or {}).items()
        }
        self._told: set[tuple[str, str]] = set()

    def digest(self, name: str) -> bytes | None:
        """A channel's hash as it should be, None while it is unknown."""
        channel = self._all.get(name)
        return channel.digest if channel else None

    def digests(self) -> dict[str, bytes] | None:
        """The hashes of all channels, None while one is unknown."""
        digests = {name: one.digest for name, one in self._all.items() if one.digest is not None}
        return digests if len(digests) == len(self._all) else None

    def written(self) -> dict[str, bytes]:
        """The hashes of the channels that a record names."""
        return {name: one.digest for name, one in self._all.items() if one.written and one.digest is not None}

    def learn(self, name: str, value: Any, digest: bytes) -> None:
        """Take a channel's value from a snapshot."""
        channel = self._all.setdefault(name, _Channel())
        channel.value, channel.digest, channel.stored = value, digest, digest
        self.changes += 1

    def keep(self, values: Mapping[str, Any]) -> None:
        """From here on there are these channels and no others; what was not followed has these values."""
        self._all = {name: self._all.get(name) or _Channel() for name in values}
        for name, channel in self._all.items():
            if channel.digest is None:
                self.learn(name, values[name], channel_hash(values[name]))
        self.changes += 1

    def lose(self) -> None:
        """Forget where the channels stand: something between is missing."""
        for channel in self._all.values():
            channel.value, channel.digest, channel.stored = _UNKNOWN, None, None
        self.changes += 1

    def follow(self, record: UpdateRecord, intact: bool) -> Followed:
        """Take a channel one record further.

        Args:
            intact: the record's own hash is right, so its hashes are as they were written.
        """
        self.changes += 1
        if record.visibility == "private":
            self.private.add(record.channel)
        channel = self._all.setdefault(record.channel, _Channel())
        channel.written = True
        expected: dict[str, bytes] = {}
        findings: list[TraceFinding] = []
        if channel.digest is None:
            channel.digest = channel.stored = record.previous_hash
            channel.value = _USUAL_DEFAULTS.get(record.previous_hash, _UNKNOWN)
        elif record.previous_hash != channel.stored:
            expected["previous_hash"] = channel.digest
        if record.patched and channel.value is _UNKNOWN:
            channel.value = self._looked_up(record, channel)
        update = self._update(record, channel.value)
        update_hash = record.update_hash if update is _UNKNOWN else item_hash(update)
        if update_hash != record.update_hash and intact:
            findings.append(TraceFinding("value", "update", record.update_hash, update_hash))
            channel.value = _UNKNOWN
            channel.digest = channel.stored = record.next_hash
            return Followed(expected, tuple(findings))
        expected["update_hash"] = update_hash
        findings += self._changed_reducer(record)
        digest = self._reduced(channel, record, update, update_hash, findings)
        if digest is None or (digest != record.next_hash and intact):
            if digest is not None and not findings:
                field = "next_hash" if record.result is msgspec.UNSET else "result"
                findings.append(TraceFinding("value", field, record.next_hash, digest))
            channel.value = _UNKNOWN if digest != record.next_hash else channel.value
            digest = record.next_hash
        else:
            expected["next_hash"] = digest
        channel.digest, channel.stored = digest, record.next_hash
        return Followed(expected, tuple(findings))

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
        kind = _kind_by_digests(record)
        if update is _UNKNOWN:
            return None
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
        if self.strict:
            self._reduce_again(previous, update, record, findings)
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

    def _reduce_again(
        self, previous: Any, update: Any, record: UpdateRecord, findings: list[TraceFinding]
    ) -> None:
        """Run a user's reducer on what it got then."""
        own = (self.channels or {}).get(record.channel)
        if own is None or previous is _UNKNOWN:
            return
        try:
            value = own.reduce(previous, update)
        except Exception as error:
            findings.append(TraceFinding("reducer", "result", record.next_hash, _error_text(error)))
            return
        if (digest := channel_hash(value)) != record.next_hash:
            findings.append(TraceFinding("reducer", "result", record.next_hash, digest))

    def _changed_reducer(self, record: UpdateRecord) -> list[TraceFinding]:
        """The graph's reducer where it is another one than the record's, told once.

        Of a channel that the graph has no more there is none to compare; the ledger tells that it went.
        """
        own = (self.channels or {}).get(record.channel)
        if not self.strict or record.op == "set" or own is None:
            return []
        today = own.reducer.signature
        known = (record.channel, record.reducer)
        if today == record.reducer or known in self._told:
            return []
        self._told.add(known)
        return [TraceFinding("reducer", "reducer", record.reducer, today)]


def _kind_by_digests(record: UpdateRecord) -> Kind | None:
    """How the digest after a record comes from digests alone, None where it takes the value before it."""
    if record.op == "set":
        return "replace"
    reducer = logged_reducer(record.reducer)
    return reducer.kind if reducer and not reducer.needs_old else None


def _error_text(error: Exception) -> str:
    return error.message if isinstance(error, HitlError) else f"{type(error).__name__}: {error}"
