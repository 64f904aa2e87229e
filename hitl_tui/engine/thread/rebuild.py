"""Rebuilds the state at any step from the nearest snapshot before it and the records after that.

This never runs user code: results of custom reducers are in their records.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, Literal

import msgspec

from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.records import Checkpoint, Effect, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.state.canonical import channel_hash, state_hash
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.state.frozen import freeze
from hitl_tui.engine.state.patches import patched
from hitl_tui.engine.state.reducers import logged_reducer
from hitl_tui.engine.state.state import LiveState, OtherChannels
from hitl_tui.engine.state.values import check_nesting
from hitl_tui.errors import LogCorrupt, UnknownThread

_decode = msgspec.json.Decoder().decode
_decode_values = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def decode_snapshot(data: bytes, only: Container[str] | None = None) -> dict[str, Any]:
    """Decode a state from `encode_snapshot`, frozen; with `only`, just the channels with these names.

    Raises:
        LogCorrupt: it is not a snapshot.
    """
    try:
        if only is None:
            return {name: _decoded_value(data, value) for name, value in _decode(data).items()}
        raws = {name: raw for name, raw in _decode_values(data).items() if name in only}
        return {name: _decoded_value(raw, _decode(raw)) for name, raw in raws.items()}
    except (msgspec.MsgspecError, ValueError, AttributeError, RecursionError) as error:
        raise LogCorrupt(f"a snapshot is damaged: {error}", "restore a backup of the store") from error


def _decoded_value(data: bytes | msgspec.Raw, value: Any) -> Any:
    check_nesting(data, value)
    return freeze(value)


class Decoded:
    """Cache of the decoded snapshot that was read last; states that are built from it share their parts."""

    def __init__(self) -> None:
        self._kept: tuple[bytes, dict[str, Any]] = (b"", {})

    def values(self, data: bytes, only: Container[str] | None) -> dict[str, Any]:
        """Do what `decode_snapshot` does; a very large snapshot is not kept."""
        if len(data) > _MOST_KEPT:
            return decode_snapshot(data, only)
        if data != self._kept[0]:
            self._kept = data, decode_snapshot(data)
        return {name: value for name, value in self._kept[1].items() if only is None or name in only}


_MOST_KEPT = 4 << 20
"""Most bytes of a snapshot that is kept."""


def state_at(
    store: Store,
    thread_id: str,
    step: int,
    defaults: Mapping[str, Any] | None = None,
    only: Container[str] | None = None,
    *,
    decoded: Decoded | None = None,
) -> dict[str, Any]:
    """Return all channel values at a step, or those of some channels.

    Args:
        defaults: values of channels that no record names yet; without them these channels are left out.
        only: the names of the wanted channels, None for all.
        decoded: keeps the snapshot for the next call.

    Raises:
        UnknownThread: no such thread or step.
    """
    _point_at(store, thread_id, step)
    return _rebuild(store, thread_id, step, defaults, only, decoded=decoded)


def _point_at(store: Store, thread_id: str, step: int) -> Checkpoint:
    point = store.checkpoint(thread_id, step)
    if point is None:
        raise UnknownThread(f"thread {thread_id!r} has no step {step}", "see `hitl-tui threads`")
    return point


def _rebuild(
    store: Store,
    thread_id: str,
    step: int,
    defaults: Mapping[str, Any] | None = None,
    only: Container[str] | None = None,
    *,
    decoded: Decoded | None = None,
) -> dict[str, Any]:
    """Do what `state_at` does, for an existing step."""
    snapshot = store.snapshot(thread_id, step)
    first = snapshot[0] + 1 if snapshot else 0
    initial = {name: value for name, value in (defaults or {}).items() if only is None or name in only}
    decode = decoded.values if decoded else decode_snapshot
    values = {**initial, **(decode(snapshot[1], only) if snapshot else {})}
    own_lists: set[str] = set()
    for record in store.effects(thread_id, first, step, only):
        name = record.channel
        if only is not None and name not in only:
            continue
        reducer = logged_reducer(record.reducer) if record.op == "reduce" else None
        grows = reducer is not None and reducer.kind == "element" and reducer.appends
        if grows and name in own_lists:
            # A list that was made here can grow in place; copying it for each record would be quadratic.
            list.append(values[name], freeze(record.update))
            continue
        values[name] = next_value(record, values.get(name))
        if grows:
            own_lists.add(name)
        else:
            own_lists.discard(name)
    return values


def update_of(record: UpdateRecord | Effect, previous: Any) -> Any:
    """Return the update of a record, given the channel's value before it.

    Raises:
        LogCorrupt: it is a patch of another value.
    """
    return _value_of(record, "update", previous)


def next_value(record: UpdateRecord | Effect, previous: Any) -> Any:
    """Return the channel's value after a record, given the value before it.

    Raises:
        LogCorrupt: its reducer is custom and its result is not in the record; or it is a patch of another
            value.
    """
    if record.op == "set":
        return update_of(record, previous)
    if record.result is not msgspec.UNSET:
        return _value_of(record, "result", previous)
    reducer = logged_reducer(record.reducer)
    if reducer is None:
        raise LogCorrupt(
            f"channel {record.channel!r}: a record has no result of its reducer {record.reducer!r}, which is "
            "not one of hitl-tui's",
            "the store was changed from outside; `hitl-tui verify` says where",
        )
    return reducer.reduce(previous, update_of(record, previous))


def _value_of(record: UpdateRecord | Effect, field: Literal["update", "result"], previous: Any) -> Any:
    value = getattr(record, field)
    if field not in record.patched:
        return freeze(value)
    try:
        return patched(previous, value)
    except ValueError as error:
        raise LogCorrupt(
            f"channel {record.channel!r}: {error}",
            "the store was changed from outside; `hitl-tui verify` says where",
        ) from None


def checked_state(
    store: Store, thread_id: str, step: int, defaults: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, bytes], set[str], Checkpoint]:
    """Return the channel values at a step, their hashes, which of them the log has, and the checkpoint.

    Args:
        defaults: the values of the graph's channels before any node has written.

    Raises:
        UnknownThread: no such thread or step.
        LogCorrupt: the log does not reproduce the state that was committed.
    """
    checkpoint = _point_at(store, thread_id, step)
    stored = _rebuild(store, thread_id, step)
    values = {**defaults, **stored}
    digests = {name: channel_hash(value) for name, value in values.items()}
    # A channel that the graph got later is in its state, but not in what was committed.
    candidates = (digests, {name: digests[name] for name in stored})
    if set(values) == set(defaults) and all(
        state_hash(candidate) != checkpoint.state_hash for candidate in candidates
    ):
        raise LogCorrupt(
            f"thread {thread_id!r}: the log rebuilds another state at step {step} than was committed",
            "the store was changed from outside, or the defaults of the graph's channels were",
        )
    return values, digests, set(stored), checkpoint


def live_state(store: Store, thread_id: str, step: int, channels: Mapping[str, BoundChannel]) -> LiveState:
    """Return the state at a step with its digests, checked against the checkpoint's hash.

    Raises:
        LogCorrupt: the log does not reproduce the state that was committed.
    """
    defaults = {name: channel.default for name, channel in channels.items()}
    values, digests, stored, checkpoint = checked_state(store, thread_id, step, defaults)
    known = {name: values[name] for name in channels}
    taint = {taint.channel: taint for taint in checkpoint.tainted}
    other = None
    if stored != channels.keys():
        new, gone = channels.keys() - stored, stored - channels.keys()
        other = OtherChannels(tuple(sorted(new)), tuple(sorted(gone)), checkpoint.state_hash)
    return LiveState(known, {name: digests[name] for name in channels}, taint, other)


def applied_updates(
    records: Iterable[UpdateRecord], values: Mapping[str, Any]
) -> tuple[tuple[AppliedUpdate, ...], dict[str, Any]]:
    """Return a step's updates for display, from its records and the values before it.

    And the values after.
    """
    current = dict(values)
    updates = []
    for record in records:
        before = current.get(record.channel)
        after = current[record.channel] = next_value(record, before)
        replaced = record.op == "set" or record.reducer == "overwrite"
        private = record.visibility == "private"
        updates.append(
            AppliedUpdate(
                channel=record.channel,
                op=record.op,
                reducer=record.reducer.partition("#")[0],
                visibility=record.visibility,
                source=record.source,
                before=PRIVATE if private else before,
                update=PRIVATE if private else after if replaced else update_of(record, before),
                after=PRIVATE if private else after,
                changed=record.previous_hash != record.next_hash,
                actor=record.actor,
                note=record.note,
                path=record.path,
                tainted=record.tainted,
                lineage=record.lineage,
                made_by=record.made_by,
            )
        )
    return tuple(updates), current
