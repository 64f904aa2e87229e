"""What a run's screen shows of a thread, as it begins from a snapshot; events are folded onto it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hitl_tui.drivers.protocol import Capabilities, GraphInfo, Snapshot, Unfinished
from hitl_tui.engine.log.events import AppliedUpdate, Progress
from hitl_tui.engine.log.outcomes import ErrorInfo
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.engine.log.threads import Owner
from hitl_tui.view.inside import EMPTY, InsideView, inside_at_start
from hitl_tui.view.stream_view import StreamView

LEDGER_WINDOW = 2_000


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """An attempt failed and is tried again after `wait` seconds."""

    node: str
    attempt: int
    max_attempts: int
    wait: float
    error: str

    @property
    def why(self) -> str:
        """The error without the node and attempt that stand beside it."""
        return self.error.removeprefix(f"node {self.node!r}, attempt {self.attempt}: ")


@dataclass(frozen=True, slots=True)
class RunView:
    """One thread as shown.  Texts in it are raw; what makes lines of it sanitises.

    Args:
        values: channel values at the head; private ones are PRIVATE.
        checkpoints: the newest ones, oldest first; `add_older` puts more in front.
        head_updates: the updates of the newest step.
        running_node: the node in flight, None between nodes.
        running_since: when it began, microseconds.
        running_attempt: which attempt it is, 0 where none is in flight.
        error: why the thread failed.
        notice: what opening the thread found.
        dropped: what was given up and not committed, in words; "" for nothing.
        forks: (child, step) of forks made since the view was opened.
        held_by: who runs the thread in another process, "" for nobody.
        graph_changed: what differs in the graph since its file was saved, None while it wasn't.
        owners: of the thread of a subgraph's run: the threads it runs for, the outermost first.
        inside: what goes on, or went on last, inside a map, a parallel or a subgraph.
        signing_key: what signs the decisions made here, "" where nothing does.
    """

    thread_id: str
    graph: GraphInfo
    capabilities: Capabilities
    parent: str | None
    fork_step: int
    progress: Progress
    values: Mapping[str, Any]
    checkpoints: tuple[Checkpoint, ...]
    head_updates: tuple[AppliedUpdate, ...]
    stream: StreamView
    ledger: tuple[LedgerEntry, ...]
    running_node: str | None = None
    running_since: int | None = None
    running_attempt: int = 0
    retry: RetryNotice | None = None
    error: ErrorInfo | None = None
    notice: str = ""
    dropped: str = ""
    forks: tuple[tuple[str, int], ...] = ()
    held_by: str = ""
    graph_changed: tuple[str, ...] | None = None
    owners: tuple[Owner, ...] = ()
    inside: InsideView = EMPTY
    signing_key: str = ""
    last_event: int = 0

    @property
    def head(self) -> Checkpoint | None:
        """The newest checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None

    def checkpoint(self, step: int) -> Checkpoint | None:
        """The checkpoint of a step, where it is loaded."""
        return find_step(self.checkpoints, step)


def find_step(checkpoints: Sequence[Checkpoint], step: int) -> Checkpoint | None:
    """The checkpoint of a step in a sequence sorted by step."""
    at = bisect_left(checkpoints, step, key=_step_of)
    return checkpoints[at] if at < len(checkpoints) and checkpoints[at].step == step else None


def _step_of(checkpoint: Checkpoint) -> int:
    return checkpoint.step


def open_view(snapshot: Snapshot) -> RunView:
    """The view a screen begins with."""
    progress = snapshot.progress
    running = progress.next_node if progress.status == "running" else None
    return RunView(
        thread_id=snapshot.thread_id,
        graph=snapshot.graph,
        capabilities=snapshot.capabilities,
        parent=snapshot.parent,
        fork_step=snapshot.fork_step,
        progress=snapshot.progress,
        values=snapshot.values,
        checkpoints=snapshot.checkpoints,
        head_updates=snapshot.updates,
        stream=StreamView(node=running or "", live=running is not None),
        running_node=running,
        ledger=snapshot.ledger[-LEDGER_WINDOW:],
        error=snapshot.progress.error,
        notice=snapshot.notice,
        held_by=snapshot.held_by,
        graph_changed=snapshot.graph_changed,
        owners=snapshot.owners,
        inside=inside_at_start(
            snapshot.unfinished, progress.pending, _members(snapshot.graph, snapshot.unfinished)
        ),
        signing_key=snapshot.signing_key,
        last_event=snapshot.last_event,
    )


def _members(graph: GraphInfo, unfinished: Unfinished | None) -> tuple[str, ...]:
    return graph.members_of(unfinished.node) if unfinished else ()


def add_older(view: RunView, checkpoints: Iterable[Checkpoint]) -> RunView:
    """The view with an older page of checkpoints, in any order."""
    first = view.checkpoints[0].step if view.checkpoints else view.progress.head + 1
    older = sorted((found for found in checkpoints if found.step < first), key=_step_of)
    return replace(view, checkpoints=(*older, *view.checkpoints)) if older else view
