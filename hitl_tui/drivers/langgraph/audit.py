"""Compares a line of the mirror with LangGraph's checkpointer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from hitl_tui.drivers.langgraph.graph import default_of
from hitl_tui.drivers.langgraph.mirror import Mirror, their_thread
from hitl_tui.drivers.langgraph.pregel import config_of
from hitl_tui.drivers.langgraph.values import as_json
from hitl_tui.engine.audit.findings import Mismatch
from hitl_tui.engine.commands.decisions import CHECKPOINT, UPDATE_STATE
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.state.canonical import channel_hash, state_hash
from hitl_tui.engine.thread.rebuild import live_state
from hitl_tui.errors import UnknownThread

_PAGE: Final = 500


class _Theirs(NamedTuple):
    """The compared parts of a checkpoint: its parent, and our hash of its state."""

    parent: str
    state: bytes


async def compare(
    mirror: Mirror, line: str, watch: Callable[[int, int], object] = lambda done, total: None
) -> tuple[Mismatch, ...]:
    """What of a line is not as their checkpointer has it; changes nothing.

    A checkpoint that is gone, one whose state is another now, one that follows on another, and an edit that
    does not follow on the checkpoint that it was decided on are findings.

    Args:
        watch: called with (steps done, steps in all).
    """
    info, cursor = mirror.store.info(line), mirror.store.cursor(line)
    if info is None or cursor is None:
        raise UnknownThread(f"there is no thread {line!r}", "see `hitl-tui threads`")
    thread = their_thread(info)
    theirs = await _checkpoints(mirror, thread)
    findings: list[Mismatch] = []
    origins: dict[int, str] = {}
    for point in _steps(mirror, line):
        watch(cursor.head - point.step, cursor.head + 1)
        if not point.origin:
            continue
        origins[point.step] = point.origin
        known = theirs.get(point.origin)
        if known is None:
            findings.append(_finding(point, None, _text(point.state_hash), None))
        elif known.state != point.state_hash:
            findings += await _channels(mirror, thread, point)
    findings += _parents(line, theirs, origins)
    for entry in mirror.store.ledger(line):
        meant = entry.data.get(CHECKPOINT) if isinstance(entry.data, Mapping) else None
        edited = theirs.get(origins.get(entry.step, ""))
        if entry.kind == UPDATE_STATE and meant and edited and edited.parent != meant:
            place = f"parent of checkpoint {origins[entry.step]}"
            findings.append(
                Mismatch("origin", entry.n, entry.step, None, place, meant, edited.parent, thread=line)
            )
    return tuple(findings)


def _finding(point: Checkpoint, channel: str | None, ours: str, theirs: str | None) -> Mismatch:
    place = f"checkpoint {point.origin}"
    return Mismatch("origin", None, point.step, channel, place, ours, theirs, thread=point.thread_id)


def _parents(line: str, theirs: Mapping[str, _Theirs], origins: Mapping[int, str]) -> Iterator[Mismatch]:
    """Return the steps whose checkpoint does not follow the checkpoint of the step before."""
    known = set(origins.values())
    for step, origin in sorted(origins.items()):
        if origin not in theirs or (step and step - 1 not in origins):
            continue
        before, parent = origins.get(step - 1, ""), theirs[origin].parent
        while parent in theirs and parent not in known:  # a checkpoint that changes nothing is no step
            parent = theirs[parent].parent
        if parent != before:
            place = f"parent of checkpoint {origin}"
            yield Mismatch("origin", None, step, None, place, before or None, parent or None, thread=line)


async def _checkpoints(mirror: Mirror, thread: str) -> dict[str, _Theirs]:
    theirs: dict[str, _Theirs] = {}
    before = ""
    while page := await mirror.app.history(thread, before=before, limit=_PAGE):
        for saved in page:
            state = state_hash(_digests(mirror, saved.values))
            theirs[saved.id] = _Theirs(saved.parent, state)
        before = page[-1].id
    return theirs


def _digests(mirror: Mirror, values: Any) -> dict[str, bytes]:
    held = values
    return {
        name: channel_hash(as_json(held[name]) if name in held else default_of(mirror.app.graph, name))
        for name in mirror.reduction.channels
    }


def _steps(mirror: Mirror, line: str) -> Iterator[Checkpoint]:
    before: int | None = None
    while page := mirror.store.checkpoints(line, before, _PAGE):
        yield from page
        before = page[-1].step


async def _channels(mirror: Mirror, thread: str, point: Checkpoint) -> list[Mismatch]:
    """Return the channels of a step whose values differ in the checkpointer."""
    saved = await mirror.app.state(config_of(thread, point.origin or ""))
    digests = _digests(mirror, saved.values if saved else None)
    ours = live_state(mirror.store, point.thread_id, point.step, mirror.graph.channels).digests
    return [
        _finding(point, name, _text(ours[name]), _text(digests[name]))
        for name in ours
        if digests.get(name) != ours[name]
    ]


def _text(digest: bytes) -> str:
    return f"sha256:{digest.hex()}"
