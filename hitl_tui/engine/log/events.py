"""The facts a run tells: frozen events, in the order in which they happened.

Texts in events are as the model, tool or user gave them; whoever shows them sanitises first.
Values of private channels are replaced by `PRIVATE` before they get here (SPEC 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hitl_tui.engine.log.outcomes import BranchOutcome, ErrorInfo, ModelUse
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry, Limits, Operation, Source, Status, Visibility
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.taint import Lineage, Taint


class _Private:
    """Stands for the value of a private channel."""

    def __repr__(self) -> str:
        return "[private]"


PRIVATE: Final = _Private()


class AppliedUpdate(msgspec.Struct, frozen=True):
    """One update through its reducer: old value, update, reducer, new value (the reducer lens).

    `op` "set" is a human's edit, without a reducer.  `changed` compares by canonical form (SPEC 2).
    `path` is the branch it came from, "" for a plain node.
    `tainted` is what the channel is afterwards, `lineage` why where this update is the reason (SPEC 8).
    """

    channel: str
    op: Operation
    reducer: str
    visibility: Visibility
    source: Source
    before: Any
    update: Any
    after: Any
    changed: bool
    actor: str | None = None
    note: str | None = None
    path: str = ""
    tainted: bool = False
    lineage: Lineage | None = None


class Preview(msgspec.Struct, frozen=True):
    """What an edit, an answer or a fork with changes would do.

    `problems` maps a channel to what is wrong with its value; `next_node` is where the run would go
    ("END" ends it), None when it can't be told; `rebinds` are the titles of requests that would then
    be about the new step; `forks` says that the edit makes a new thread.
    """

    updates: tuple[AppliedUpdate, ...]
    problems: Mapping[str, str]
    next_node: str | None
    rebinds: tuple[str, ...]
    forks: bool


class Progress(msgspec.Struct, frozen=True):
    """Where the thread stands, for status lines: the part of the cursor that is shown.

    `tokens_in`, `tokens_out`, `cost` (US dollars) and `active` (microseconds) are totals of the
    thread; `cost_known` is False as soon as one call had no known price.  `uses` are the calls that
    no step has yet.
    """

    status: Status
    reason: str
    head: int
    position: str
    next_node: str | None
    invocation: int
    iteration: int
    visits: Mapping[str, int]
    tokens_in: int
    tokens_out: int
    cost: float
    cost_known: bool
    active: int
    limits: Limits
    pending: tuple[Request, ...]
    error: ErrorInfo | None
    uses: tuple[ModelUse, ...] = ()


class RunStarted(msgspec.Struct, frozen=True):
    """A run or a single step begins."""

    thread_id: str
    progress: Progress


class NodeStarted(msgspec.Struct, frozen=True):
    """A node begins; `step` is the step it will commit as."""

    node: str
    step: int
    attempt: int
    at: int


class BranchStarted(msgspec.Struct, frozen=True):
    """A branch of a map or a parallel begins: number `index` (from 0) of `total`."""

    node: str
    path: str
    name: str
    index: int
    total: int
    attempt: int
    at: int


class BranchEnded(msgspec.Struct, frozen=True):
    """A branch has ended; what it did counts once the step is committed.

    Branches that had not begun when the others settled the join end without a start.
    """

    node: str
    outcome: BranchOutcome
    at: int


class BranchWaits(msgspec.Struct, frozen=True):
    """A branch asks a human; the others go on until all have ended or ask."""

    node: str
    path: str
    title: str


class ChildMoved(msgspec.Struct, frozen=True):
    """The thread of a subgraph's run began, began a node, committed or stopped.

    `path` is the place in this thread's graph, as `team` or `team/inner`; `running` the child's node in
    flight, "" between nodes.
    """

    node: str
    path: str
    thread_id: str
    running: str
    progress: Progress


class TextStreamed(msgspec.Struct, frozen=True):
    """A piece of text a node or its agent wrote while running; `agent` is "" for the node itself.

    `path` names the branch, or the node inside a subgraph, that wrote it.
    """

    node: str
    agent: str
    text: str
    path: str = ""


class ModelCalled(msgspec.Struct, frozen=True):
    """A model call ended; `cost` is None where the price is unknown."""

    node: str
    agent: str
    model: str
    tokens_in: int
    tokens_out: int
    cost: float | None
    duration: int
    path: str = ""


class TaintRead(msgspec.Struct, frozen=True):
    """A node that warns of taint is about to run on tainted channels."""

    node: str
    tainted: tuple[Taint, ...]


class ToolCalled(msgspec.Struct, frozen=True):
    """An agent called a tool: the arguments it ran with, and its result or what went wrong.

    `arguments` is what the model wrote where that could not be read.  A call that a human's answer
    restarted the node over is told again, though it ran only once.
    """

    node: str
    agent: str
    tool: str
    arguments: Any
    result: str | None
    error: str | None
    duration: int
    path: str = ""


class NodeRetrying(msgspec.Struct, frozen=True):
    """An attempt failed and the next one follows after `wait` seconds."""

    node: str
    attempt: int
    max_attempts: int
    wait: float
    error: str
    path: str = ""


class StepCommitted(msgspec.Struct, frozen=True):
    """A step is in the log: its checkpoint and every update of it."""

    checkpoint: Checkpoint
    updates: tuple[AppliedUpdate, ...]
    progress: Progress


class ProgressChanged(msgspec.Struct, frozen=True):
    """The thread's status, cursor or pending requests changed without a step."""

    progress: Progress


class LedgerWritten(msgspec.Struct, frozen=True):
    """A decision, a refusal or another entry came into the ledger."""

    entry: LedgerEntry


class AttemptFailed(msgspec.Struct, frozen=True):
    """A node's last attempt failed; nothing of it was committed."""

    error: ErrorInfo


class AttemptDropped(msgspec.Struct, frozen=True):
    """An attempt in flight was given up (cancel, quit); nothing of it was committed."""

    node: str
    attempt: int
    why: str


class ThreadForked(msgspec.Struct, frozen=True):
    """A fork of this thread was made at `step`."""

    child: str
    step: int


class HolderChanged(msgspec.Struct, frozen=True):
    """Another process took the thread, or gave it back; `holder` says who, "" for nobody."""

    holder: str


class GraphChanged(msgspec.Struct, frozen=True):
    """The file of the thread's graph was saved; `differences` says what isn't as it was, () for nothing
    that shows from outside.  The thread goes on with the graph as it was until it is reloaded."""

    differences: tuple[str, ...]


class LimitNear(msgspec.Struct, frozen=True):
    """A thread has used up `percent` (50, 75, 90 or 100) of a limit; told once on the way up.

    `limit` is the field of `Limits`; `used` and `allowed` are in its unit.
    """

    limit: str
    percent: int
    used: float
    allowed: float


class RunEnded(msgspec.Struct, frozen=True):
    """The one terminal event of a run or a single step."""

    progress: Progress


Event = (
    RunStarted
    | NodeStarted
    | BranchStarted
    | BranchEnded
    | BranchWaits
    | ChildMoved
    | TextStreamed
    | ModelCalled
    | TaintRead
    | ToolCalled
    | NodeRetrying
    | StepCommitted
    | ProgressChanged
    | LedgerWritten
    | AttemptFailed
    | AttemptDropped
    | ThreadForked
    | HolderChanged
    | GraphChanged
    | LimitNear
    | RunEnded
)
