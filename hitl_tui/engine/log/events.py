"""Events that a run reports: frozen, in the order in which they happened.

Texts in events are as the model, tool or user gave them; a screen must sanitise them before it shows them.
Values of private channels are already replaced by `PRIVATE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Protocol

import msgspec

from hitl_tui.engine.log.outcomes import BranchOutcome, ErrorInfo, Frame, ModelUse
from hitl_tui.engine.log.records import (
    Checkpoint,
    LedgerEntry,
    Limits,
    MadeBy,
    Operation,
    Source,
    Status,
    Visibility,
)
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.taint import Lineage, Taint
from hitl_tui.engine.log.threads import Presence
from hitl_tui.engine.log.units import Duration, Inline, Maybe, Time, about

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class _Private:
    """Placeholder for the value of a private channel."""

    def __repr__(self) -> str:
        return "[private]"


PRIVATE: Final = _Private()


class AppliedUpdate(msgspec.Struct, frozen=True):
    """One update and its reducer, with the values before and after it.

    `op` "set" is a human's edit, without a reducer.  `changed` compares canonical forms.
    `path` is the branch it came from, "" for a plain node.
    `tainted` says whether the channel is tainted afterwards; `lineage` says why, if this update is the
    reason.
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
    path: Maybe = ""
    tainted: bool = False
    lineage: Lineage | None = None
    made_by: MadeBy = "node"


EDIT: Final = ""
"""Key among `Preview.problems`, in place of a channel: a problem of the edit as a whole."""


class AsNode(msgspec.Struct, frozen=True):
    """Where a run continues after an edit that is made as if a node had just written it.

    `next_nodes` are the nodes that run next, () if the run ends; `problem` says why the edit can't be made as
    that node, or why what runs next is unknown.
    """

    node: Annotated[str, about("The node that the edit is made as, or `START`.")]
    next_nodes: Annotated[
        tuple[str, ...], about("The nodes that run next; empty if the run ends.", name="next")
    ]
    problem: Annotated[
        Maybe, about("Why the edit can't be made as this node, or why the next node is unknown.")
    ] = ""


class Preview(msgspec.Struct, frozen=True):
    """Preview of an edit, of an answer, or of new settings of agents.

    Args:
        problems: by channel (or `EDIT`) or agent: what is wrong with its new value or settings.
        next_node: the node that would run next ("END" ends the run), None if it is unknown.
        rebinds: titles of the requests that would be about the new step.
        withdraws: titles of the requests that would have to be asked again.
        forks: whether it makes a new thread.
        repeats: what would run again, None if nothing would.
        as_nodes: for each node that the edit can be made as, where the run would continue; () if the driver
            does not say.
        moves: the thread of another program that a fork shares: that program's next turn continues from the
            fork.
    """

    updates: tuple[AppliedUpdate, ...]
    problems: Mapping[str, str]
    next_node: str | None
    rebinds: tuple[str, ...]
    forks: bool
    repeats: Repeats | None = None
    withdraws: tuple[str, ...] = ()
    as_nodes: tuple[AsNode, ...] = ()
    moves: str = ""


class Progress(msgspec.Struct, frozen=True):
    """Status and totals of a thread, for status lines: the part of the cursor that is shown.

    `uses` are model calls that are not part of a step yet; the totals include them.
    """

    status: Annotated[Status, about("The thread's status.")]
    reason: Annotated[
        str,
        about(
            "The reason: `end`, `approval`, `interrupt`, `limit`, `paused`, `user`...; empty while it runs."
        ),
    ]
    head: Annotated[int, about("The newest step; 0 for the input, -1 before it.", name="step")]
    position: str
    next_node: Annotated[
        str | None,
        about("The node that runs next, `END`, or null if a route decides it.", name="next"),
    ]
    invocation: Annotated[int, about("The number of the thread's invocation, from 1.")]
    iteration: Annotated[int, about("Node runs in this invocation.")]
    visits: Mapping[str, int]
    tokens_in: Annotated[int, about("Tokens sent to models so far.")]
    tokens_out: Annotated[int, about("Tokens written by models so far.")]
    cost: Annotated[float, about("US dollars so far.")]
    cost_known: Annotated[bool, about("False if a price is unknown; `cost` is then a lower bound.")]
    active: Annotated[Duration, about("Seconds in which nodes ran.")]
    limits: Limits
    pending: Annotated[tuple[Request, ...], about("The requests that wait for a person.")]
    error: Annotated[ErrorInfo | None, about("Why the last run failed.")]
    uses: tuple[ModelUse, ...] = ()


class Fact(msgspec.Struct, frozen=True, tag_field="event", tag=lambda name: _WORDS.sub("_", name).lower()):
    """An event of a run; its tag is its name in JSON output."""


class RunStarted(Fact, frozen=True):
    """A run or a single step begins."""

    thread_id: str
    progress: Inline[Progress]


class NodeStarted(Fact, frozen=True):
    """A node begins; `step` is the number that its step will have."""

    node: Annotated[str, about("The node.")]
    step: Annotated[int, about("The number that its step will have.")]
    attempt: Annotated[int, about("The number of the attempt, from 1.")]
    at: Annotated[Time, about("When it started.")]


class BranchStarted(Fact, frozen=True):
    """Branch number `index` (from 0) of `total` begins, of a map or a parallel."""

    node: Annotated[str, about("The node.")]
    path: Annotated[str, about("The branch.")]
    name: Annotated[str, about("The node of the branch.")]
    index: Annotated[int, about("Its index, from 0.")]
    total: Annotated[int, about("The number of branches.")]
    attempt: Annotated[int, about("The number of the attempt, from 1.")]
    at: Annotated[Time, about("When it started.")]


class BranchEnded(Fact, frozen=True):
    """A branch has ended; its updates count once the step is committed.

    A branch that was no longer needed before it began ends without a `BranchStarted`.
    """

    node: Annotated[str, about("The node.")]
    outcome: Annotated[BranchOutcome, about("How the branch ended.")]
    at: Annotated[Time, about("When it ended.")]


class BranchWaits(Fact, frozen=True):
    """A branch waits for a human; the others continue until each has ended or waits."""

    node: Annotated[str, about("The node.")]
    path: Annotated[str, about("The branch.")]
    title: Annotated[str, about("The question.")]


class ChildMoved(Fact, frozen=True):
    """A subgraph's thread began, began a node, committed or stopped.

    `path` is the subgraph node in this thread's graph, such as `team` or `team/inner`; `running` is the
    child's running node, "" between nodes.
    """

    node: str
    path: str
    thread_id: str
    running: Maybe
    progress: Progress


class TextStreamed(Fact, frozen=True, tag="text"):
    """A piece of text that a running node or its agent wrote; `agent` is "" for the node itself.

    `path` is the branch, or the node inside a subgraph, that wrote it.
    """

    node: Annotated[str, about("The node.")]
    agent: Annotated[str, about("The agent; empty for the node itself.")]
    text: Annotated[str, about("The text.")]
    path: Annotated[Maybe, about("The branch.")] = ""


class ModelCalled(Fact, frozen=True):
    """A model call ended; `cost` is None if the price is unknown."""

    node: Annotated[str, about("The node.")]
    agent: Annotated[str, about("The agent.")]
    model: Annotated[str, about("The model.")]
    tokens_in: Annotated[int, about("Tokens sent.")]
    tokens_out: Annotated[int, about("Tokens written.")]
    cost: Annotated[float | None, about("US dollars; null where the price is unknown.")]
    duration: Annotated[Duration, about("Seconds.")]
    path: Annotated[Maybe, about("The branch.")] = ""


class TaintRead(Fact, frozen=True):
    """A node that warns of taint is about to run on tainted channels."""

    node: Annotated[str, about("The node.")]
    tainted: Annotated[tuple[Taint, ...], about("The tainted channels that the node may read.")]


class ToolCalled(Fact, frozen=True):
    """An agent called a tool: its arguments, and its result or error.

    `arguments` is the model's text if it could not be read as JSON.  When an answer makes the node run again,
    calls recorded before are reported again, though each ran only once.
    """

    node: Annotated[str, about("The node.")]
    agent: Annotated[str, about("The agent.")]
    tool: Annotated[str, about("The tool.")]
    arguments: Annotated[Any, about("The arguments.")]
    result: Annotated[str | None, about("The result.")]
    error: Annotated[str | None, about("The error, if it failed.")]
    duration: Annotated[Duration, about("Seconds.")]
    path: Annotated[Maybe, about("The branch.")] = ""


class NodeRetrying(Fact, frozen=True):
    """An attempt failed and the next one follows after `wait` seconds."""

    node: Annotated[str, about("The node.")]
    attempt: Annotated[int, about("The attempt that failed.")]
    max_attempts: Annotated[int, about("The number of attempts.")]
    wait: Annotated[float, about("Seconds until the next attempt.")]
    error: Annotated[str, about("Why the attempt failed.")]
    path: Annotated[Maybe, about("The branch.")] = ""


class BreakpointHit(Fact, frozen=True):
    """A run reached a breakpoint: it stops there, logs the breakpoint's line, or only counts the hit."""

    node: Annotated[str, about("The node.")]
    breakpoint: Annotated[str, about("The breakpoint, as `--break` takes it.")]
    hits: Annotated[int, about("How often it was hit since the thread was opened.")]
    stops: Annotated[bool, about("Whether the run stops there.")]
    line: Annotated[Maybe, about("The logged line.")] = ""
    frames: Annotated[tuple[Frame, ...], about("Where the node returned, if the run stops after it.")] = ()


class StepOutcome(Protocol):
    """Result of a step; an implementation may compute it only when it is read."""

    @property
    def updates(self) -> tuple[AppliedUpdate, ...]:
        """The updates of the step."""

    @property
    def progress(self) -> Progress:
        """The thread's progress after the step."""

    @property
    def written(self) -> Iterable[tuple[str, Any]]:
        """The channels that the step wrote, in order, each with its new value."""

    @property
    def changed(self) -> frozenset[str]:
        """The channels whose value changed."""


class KnownOutcome(msgspec.Struct, frozen=True):
    """Result of a step, computed already."""

    updates: tuple[AppliedUpdate, ...]
    progress: Progress

    @property
    def written(self) -> Iterable[tuple[str, Any]]:
        """The channels that the step wrote, in order, each with its new value."""
        return [(update.channel, update.after) for update in self.updates]

    @property
    def changed(self) -> frozenset[str]:
        """The channels whose value changed."""
        return frozenset(update.channel for update in self.updates if update.changed)


class StepCommitted(Fact, frozen=True):
    """A step was committed: its checkpoint and its updates.

    The outcome is computed when it is read: in a fast run most steps need only their checkpoint.
    """

    checkpoint: Annotated[Checkpoint, about("The step.")]
    outcome: StepOutcome

    @property
    def updates(self) -> tuple[AppliedUpdate, ...]:
        """The updates of the step."""
        return self.outcome.updates

    @property
    def progress(self) -> Progress:
        """The thread's progress after the step."""
        return self.outcome.progress


def shown_step(point: Checkpoint) -> Checkpoint:
    """Return a step for events: without the arguments of its compensations, which may be private."""
    if not point.compensations:
        return point
    undo = tuple(msgspec.structs.replace(each, args=None) for each in point.compensations)
    return msgspec.structs.replace(point, compensations=undo)


class ProgressChanged(Fact, frozen=True, tag="progress"):
    """The thread's status, cursor or pending requests changed without a step."""

    progress: Inline[Progress]


class LedgerWritten(Fact, frozen=True, tag="decision"):
    """A decision, a refusal or another entry was added to the ledger."""

    entry: Inline[LedgerEntry]


class AttemptFailed(Fact, frozen=True, tag="node_failed"):
    """A node's last attempt failed; nothing was committed."""

    error: Inline[ErrorInfo]


class AttemptDropped(Fact, frozen=True):
    """A running attempt was stopped (cancel, quit); nothing was committed."""

    node: Annotated[str, about("The node.")]
    attempt: Annotated[int, about("The number of the attempt.")]
    why: Annotated[str, about("Why it was stopped.")]


class ThreadForked(Fact, frozen=True, tag="forked"):
    """A fork of this thread was made at `step`."""

    child: Annotated[str, about("The new thread.")]
    step: Annotated[int, about("The step it was forked at.")]


class HolderChanged(Fact, frozen=True):
    """Another process took the thread's lease, or released it."""

    holder: Annotated[
        Maybe, about("The new holder: user, host and process; empty if it was released.", name="held_by")
    ]


class AttendanceChanged(Fact, frozen=True):
    """A person opened or closed the card of a request, or claimed or released it.

    `attending` are all people who have it open or claimed now, except the viewer itself.
    """

    attending: Annotated[tuple[Presence, ...], about("Who has a request open or has claimed one.")]


class GraphChanged(Fact, frozen=True):
    """The file of the thread's graph was saved.

    The thread continues with the graph as it was loaded, until it is reloaded.

    Args:
        differences: changes of the graph; () if only code inside functions changed.
        repeats: the steps that are still valid and what would run again after them, None if the file can't be
            loaded.
    """

    differences: Annotated[
        tuple[str, ...], about("The differences, a line each; empty if only code inside functions changed.")
    ]
    repeats: Annotated[
        Repeats | None, about("What would run again under the saved code; null if it can't be loaded.")
    ] = None


class LimitNear(Fact, frozen=True):
    """A thread has used `percent` (50, 75, 90 or 100) of a limit; reported once per percentage.

    `limit` is a field of `Limits`; `used` and `allowed` are in its unit.
    """

    limit: Annotated[str, about("The limit, such as `max_iterations`.")]
    percent: Annotated[int, about("The percentage used: 50, 75, 90 or 100.")]
    used: Annotated[float, about("The amount used, in the limit's unit.")]
    allowed: Annotated[float, about("The amount allowed.")]


class PriceUnknown(Fact, frozen=True):
    """A model call's price is unknown, so `max_cost_usd` can't be enforced; sent once per thread."""

    node: Annotated[str, about("The node that made the call.")]
    agent: Annotated[str, about("The agent; empty if the node counted the call itself.")]
    model: Annotated[str, about("The model.")]
    allowed: Annotated[float, about("The cost limit in US dollars.")]
    stops: Annotated[bool, about("Whether the limit counts as reached.")]


class RunEnded(Fact, frozen=True):
    """The one terminal event of a run or a single step."""

    progress: Inline[Progress]
    exit_code: Annotated[
        int,
        about("For an aborted run, why: 4 if somebody else continued the thread; otherwise 0."),
    ] = 0


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
    | BreakpointHit
    | StepCommitted
    | ProgressChanged
    | LedgerWritten
    | AttemptFailed
    | AttemptDropped
    | ThreadForked
    | HolderChanged
    | AttendanceChanged
    | GraphChanged
    | LimitNear
    | PriceUnknown
    | RunEnded
)
