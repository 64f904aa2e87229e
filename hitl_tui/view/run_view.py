"""From events to what a run's screen shows: a pure fold, without I/O and without a clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hitl_tui.drivers.protocol import Capabilities, GraphInfo, Snapshot, Stamped
from hitl_tui.engine.events import AppliedUpdate, Progress
from hitl_tui.engine.records import Checkpoint, ErrorInfo, LedgerEntry

CHECKPOINT_WINDOW = 20_000
LEDGER_WINDOW = 2_000
STREAM_TAIL = 64 * 1024


@dataclass(frozen=True, slots=True)
class StreamView:
    """What the newest node writes or wrote while running.

    `text` is the raw tail of what was streamed (sanitise before showing), `length` counts all of
    it, so that a screen can append what is new; `serial` is the number of the event that began it.
    """

    serial: int = 0
    node: str = ""
    agent: str = ""
    model: str = ""
    text: str = ""
    length: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    calls: int = 0
    started: int | None = None
    duration: int | None = None
    live: bool = False


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """An attempt failed and is tried again after `wait` seconds."""

    node: str
    attempt: int
    max_attempts: int
    wait: float
    error: str


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
    last_event: int = 0

    @property
    def head(self) -> Checkpoint | None:
        """The newest checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None

    def checkpoint(self, step: int) -> Checkpoint | None:
        """The checkpoint of a step, where it is loaded."""
        raise NotImplementedError


def open_view(snapshot: Snapshot) -> RunView:
    """The view a screen begins with."""
    raise NotImplementedError


def fold(view: RunView, events: Iterable[Stamped]) -> RunView:
    """The view after a batch of events; the same however they are cut into batches.

    Events with a number up to `view.last_event` are skipped.  A gap in the numbers means that a
    new snapshot is needed: see `is_gap`.
    """
    raise NotImplementedError


def is_gap(view: RunView, events: Sequence[Stamped]) -> bool:
    """True if events were lost before this batch, so that only a new snapshot helps."""
    raise NotImplementedError


def add_older(view: RunView, checkpoints: Iterable[Checkpoint]) -> RunView:
    """The view with an older page of checkpoints, in any order."""
    raise NotImplementedError
