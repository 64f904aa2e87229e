"""What a run has made of its graph: where it stands, how often nodes ran, which edges it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hitl_tui.engine.log.records import START, Checkpoint, Cursor
from hitl_tui.engine.log.store import Store

_STEPS_FOLLOWED = 500


@dataclass(frozen=True)
class Look:
    """What a run makes of the picture: who is current, how often nodes ran, which edges were taken.

    `breakpoints` are the nodes before which it will stop, each with its condition; `notes` stand beside the
    names of nodes, as how many branches are done; `inside` has the looks of the newest runs of subgraphs.
    """

    current: str | None = None
    visits: Mapping[str, int] = field(default_factory=dict)
    taken: frozenset[tuple[str, str]] = frozenset()
    breakpoints: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, Look] = field(default_factory=dict)


def look_of(cursor: Cursor, checkpoints: Sequence[Checkpoint]) -> Look:
    """What a thread has made of its graph; its checkpoints come oldest first."""
    asks = cursor.pending[0].node if cursor.pending else None
    failed = cursor.error.node if cursor.error else None
    return Look(failed or asks or cursor.next_node, cursor.visits, taken_edges(checkpoints, cursor.head))


def look_in_store(store: Store, thread_id: str) -> Look | None:
    """The look of a thread and of the threads inside it, None where it is not in the store."""
    cursor = store.cursor(thread_id)
    if cursor is None:
        return None
    points = store.checkpoints(thread_id, None, _STEPS_FOLLOWED)[::-1]
    threads = {point.node: one.thread for point in points for one in point.branches if one.thread}
    link = next((state.child for state in cursor.branches if state.child), None)
    if link is not None:
        threads[cursor.position.partition(":")[2]] = link.thread_id
    found = {node: look_in_store(store, thread) for node, thread in threads.items()}
    return replace(look_of(cursor, points), inside={node: look for node, look in found.items() if look})


def taken_edges(checkpoints: Sequence[Checkpoint], until: int) -> frozenset[tuple[str, str]]:
    """The edges a run went along up to a step, as far as its newest checkpoints tell."""
    taken: set[tuple[str, str]] = set()
    before = START
    for point in checkpoints[-_STEPS_FOLLOWED:]:
        if point.step > until:
            break
        if point.node and point.source != "human":
            taken.add((before, point.node))
            before = point.node
    last = next((point for point in reversed(checkpoints) if point.step <= until), None)
    if last is not None and last.next_node is not None:
        taken.add((before, last.next_node))
    return frozenset(taken)
