"""Applies updates to channels: checked, reduced in order of channel names, all or none.

Specified in docs/spec/channels.md and docs/spec/graphs.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.records import MadeBy, Operation, Source, tool_path
from hitl_tui.engine.log.taint import Lineage, Tainted, spread
from hitl_tui.engine.state.canonical import EMPTY_LIST_DIGEST, canonical, channel_hash, extend_chain
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.state.frozen import SIZE_SHIFT, known
from hitl_tui.engine.state.state import LiveState, undeclared


class Change(msgspec.Struct, frozen=True, gc=False):
    """One update of one channel through its reducer, with digests; `size` in about canonical bytes.

    `path` and `attempt` are those of the branch it came from, "" and 0 for those of the step.
    `tainted` says whether the channel is tainted afterwards; `lineage` says why, if this update is the
    reason.
    """

    channel: BoundChannel
    op: Operation
    before: Any
    update: Any
    after: Any
    before_hash: bytes
    update_hash: bytes
    after_hash: bytes
    size: int
    path: str = ""
    attempt: int = 0
    tainted: bool = False
    lineage: Lineage | None = None

    def applied(
        self,
        source: Source,
        actor: str | None = None,
        note: str | None = None,
        made_by: MadeBy = "person",
    ) -> AppliedUpdate:
        """Return the change for screens, without the values of private channels."""
        private = self.channel.visibility == "private"
        return AppliedUpdate(
            channel=self.channel.name,
            op=self.op,
            reducer=self.channel.reducer.text,
            visibility=self.channel.visibility,
            source=source,
            before=PRIVATE if private else self.before,
            update=PRIVATE if private else self.update,
            after=PRIVATE if private else self.after,
            changed=self.before_hash != self.after_hash,
            actor=actor,
            note=note,
            path=self.path,
            tainted=self.tainted,
            lineage=self.lineage,
            made_by=made_by,
        )


def reduce_updates(
    state: LiveState,
    channels: Mapping[str, BoundChannel],
    updates: Iterable[tuple[str, Any]],
) -> list[Change]:
    """Put updates through their reducers, in channel-name order.

    Raises:
        UndeclaredChannel, ValueRejected, SchemaMismatch, ReducerError: no update is applied.
    """
    values, digests = state.values, state.digests
    latest: dict[str, Change] = {}
    changes = []
    ordered = list(updates)
    if len(ordered) > 1:
        ordered.sort(key=itemgetter(0))
    for name, given in ordered:
        channel = _channel(name, channels)
        earlier = latest.get(name)
        before = earlier.after if earlier else values[name]
        update = channel.accept(given, before)
        before_hash = earlier.after_hash if earlier else digests[name]
        change = reduced(channel, before, update, before_hash)
        latest[name] = change
        changes.append(change)
    return _keep_taint(changes, state.taint) if state.taint else changes


def reduce_calls(
    state: LiveState,
    channels: Mapping[str, BoundChannel],
    calls: Iterable[tuple[str, Iterable[tuple[str, Any]]]],
) -> list[Change]:
    """Put the updates of several callers through their reducers, one after the other.

    Args:
        calls: the updates by tool name, "" for the node; the changes of a tool have its name in their path.

    Raises:
        UndeclaredChannel, ValueRejected, SchemaMismatch, ReducerError: no update is applied.
    """
    changes: list[Change] = []
    for tool, updates in calls:
        own = reduce_updates(after(state, changes) if changes else state, channels, updates)
        changes += [replace(change, path=tool_path("", tool)) for change in own] if tool else own
    return changes


def set_values(
    state: LiveState, channels: Mapping[str, BoundChannel], values: Mapping[str, Any]
) -> list[Change]:
    """Set channels without reducers, as a human's edit; raises as `reduce_updates`."""
    changes = []
    for channel in sorted((_channel(name, channels) for name in values), key=lambda known: known.name):
        name = channel.name
        value = channel.replace(values[name], state.values[name])
        data = canonical(value)
        update_hash = sha256(data).digest()
        after_hash = channel_hash(value) if isinstance(value, list) else update_hash
        changes.append(
            Change(
                channel,
                "set",
                state.values[name],
                value,
                value,
                state.digests[name],
                update_hash,
                after_hash,
                len(data),
            )
        )
    return _keep_taint(changes, state.taint) if state.taint else changes


def after(state: LiveState, changes: Sequence[Change]) -> LiveState:
    """Return the state after changes."""
    values, digests = state.values.copy(), state.digests.copy()
    moved = False
    for change in changes:
        values[change.channel.name] = change.after
        digests[change.channel.name] = change.after_hash
        moved = moved or change.lineage is not None
    taint = state.taint
    if moved:
        taint = spread(taint, [(change.channel.name, change.lineage) for change in changes])
    following = LiveState(values, digests, taint)
    if state.is_written:
        following.follow(state, [change.channel.name for change in changes])
    return following


def without_values(change: Change) -> Change:
    """Return a change, which a later one of its channel follows, without values that no record needs."""
    if change.channel.reducer.custom:
        return replace(change, before=None)
    return replace(change, before=None, after=None)


def _keep_taint(changes: list[Change], taint: Tainted) -> list[Change]:
    """Mark changes of tainted channels as tainted: no write clears a taint."""
    return [replace(change, tainted=True) if change.channel.name in taint else change for change in changes]


def reduced(channel: BoundChannel, before: Any, update: Any, before_hash: bytes) -> Change:
    """Reduce an accepted update; only the new part of the value is hashed."""
    value = channel.reduce(before, update)
    if update is before and value is before and not isinstance(value, list):
        size = len(value) if isinstance(value, str) else known(value) >> SIZE_SHIFT
        return Change(channel, "reduce", before, update, value, before_hash, before_hash, before_hash, size)
    data = canonical(update)
    update_hash = sha256(data).digest()
    if value is before:
        after_hash = before_hash
    elif not isinstance(value, list):
        after_hash = update_hash if value is update else channel_hash(value)
    elif channel.reducer.appends:
        after_hash = _appended_hash(before, before_hash, value, update, update_hash)
    else:
        after_hash = channel_hash(value)
    return Change(channel, "reduce", before, update, value, before_hash, update_hash, after_hash, len(data))


def _appended_hash(before: Any, before_hash: bytes, value: Any, update: Any, update_hash: bytes) -> bytes:
    """Return the hash chain of `value` from that of `before`: an append hashes only its element."""
    start = before_hash if before is not None else EMPTY_LIST_DIGEST
    added = value[len(before or ()) :]
    if len(added) == 1 and added[0] is update:
        return sha256(start + update_hash).digest()
    return extend_chain(start, added)


def _channel(name: str, channels: Mapping[str, BoundChannel]) -> BoundChannel:
    channel = channels.get(name)
    if channel is None:
        raise undeclared(name, channels)
    return channel
