"""Records of a thread: updates, checkpoints, the ledger, the cursor.

Times are microseconds since the Unix epoch, UTC; durations are microseconds; hashes are 32 raw
bytes (`sha256:<hex>` is how they are shown).  Costs are US dollars, None if the price is unknown.

Specified in docs/spec/threads.md and docs/spec/log.md.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Self

import msgspec

from hitl_tui.declared import Declaration
from hitl_tui.engine.log.outcomes import (
    BranchOutcome,
    BranchState,
    ChildLink,
    Compensation,
    ErrorInfo,
    KeptAnswer,
    KeptArtifact,
    ModelUse,
    PassedGate,
    StreamedText,
    ToolUse,
)
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.taint import Lineage, Taint
from hitl_tui.engine.log.units import Duration, Facts, Maybe, StateHash, Time, about
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.log.threads import Lease

Status = Literal["pending", "running", "waiting", "completed", "failed", "cancelled"]
MadeBy = Literal["person", "deadline", "policy", "node", "program"]
"""Who made a step or a decision: a person, the deadline of a request, a policy or an allowance, the node of
the graph, or another program that wrote to the store."""
NO_PERSON: Final[Mapping[str, str]] = {
    "deadline": "the deadline",
    "policy": "a policy",
    "program": "another program",
}
"""Makers of steps and decisions other than people, in words."""
Source = Literal["input", "node", "map", "subgraph", "human", "fork", "rollback"]
RAN: Final = ("node", "map", "subgraph")
"""Sources of steps that nodes made."""
Operation = Literal["reduce", "set"]
Visibility = Literal["public", "private"]
Patched = tuple[Literal["update", "result"], ...]
"""The fields of a record that are patches of the value before (see `state.patches`) instead of values."""

START = "START"
END = "END"
ROLLBACK = "rollback"
"""The position of a thread that is being undone: it can only continue with the rollback."""
GRAPH = "graph"
"""The kind of the ledger entry that replaces a thread's graph."""
CHANNELS = "channels"
"""The kind of the ledger entry for the first step after the graph's channels changed."""
NOTE: Final = "note"
"""The kind of ledger entries that are notes of people on a step."""
CALL: Final = "call"
"""The kind of ledger entries that record calls."""
PROGRESS: Final = "progress"
"""The kind of ledger entries that only add a cursor to the hash chain, when no other entry does."""
NO_DECISIONS: Final = frozenset((CALL, PROGRESS))
"""Kinds of entries that are no decisions; no screen shows them."""
ROLLED_BACK: tuple[Status, str] = ("cancelled", "rolled_back")
"""The status and the reason of a thread that has been undone."""


def tool_path(branch: str, tool: str) -> str:
    """Return the path of an update by a tool: `scan[0]/save()`, or `save()` in a plain node."""
    return f"{branch}/{tool}()" if branch and tool else f"{tool}()" if tool else branch


def branch_of(path: str) -> str:
    """Return the branch of an update, "" for a plain node."""
    return path.rpartition("/")[0] if path.endswith("()") else path


def tool_of(path: str) -> str:
    """Return the tool that made an update, "" if the node did."""
    return path.rpartition("/")[2][:-2] if path.endswith("()") else ""


class UpdateRecord(msgspec.Struct, frozen=True, gc=False):
    """One change of one channel; states are rebuilt from these records.

    `path` names the branch or subgraph it came from ("" for a plain node), and the tool (see
    `tool_path`).  `result` is stored for custom reducers only, so that viewing history never runs user
    code.  `lineage` says why the update tainted its channel, or that a human cleared the taint; None if it
    changed nothing about the taint.
    If `patched` names `update` or `result`, that field is a patch of the channel's value before:
    `thread.rebuild` applies it.
    """

    thread_id: str
    seq: int
    step: int
    invocation: int
    node: str
    path: str
    attempt: int
    channel: str
    op: Operation
    reducer: str
    visibility: Visibility
    source: Source
    update: Any
    previous_hash: bytes
    update_hash: bytes
    next_hash: bytes
    tainted: bool
    actor: str | None
    note: str | None
    at: int
    prev_record_hash: bytes
    record_hash: bytes
    result: Any = msgspec.UNSET
    lineage: Lineage | None = None
    patched: Patched = ()
    made_by: MadeBy = "node"


class Effect(msgspec.Struct, frozen=True, gc=False):
    """The part of an update record that is needed to rebuild a state."""

    channel: str
    op: Operation
    reducer: str
    update: Any
    result: Any = msgspec.UNSET
    patched: Patched = ()
    step: int = 0

    @classmethod
    def of(cls, record: UpdateRecord) -> Self:
        """Return the effect of a record."""
        return cls(
            record.channel,
            record.op,
            record.reducer,
            record.update,
            record.result,
            record.patched,
            record.step,
        )


class Checkpoint(msgspec.Struct, frozen=True, gc=False):
    """One committed step; step 0 is the input.

    `position` is where the thread is after it: "node:NAME" (NAME runs next), "route:NAME" (NAME is done,
    its route is decided on resume), "end" or `ROLLBACK`. `node` is the node's name, "" for input and
    people. `tainted` are the tainted channels after it. `read` is what the node read, if that was
    recorded: in runs that somebody watches or that have taint to follow.

    `calls` are the tools that its agents called, and `streamed` is its output, both including failed
    attempts. `artifacts` are those of its node. `origin` is the id of the checkpoint of another engine
    that a mirrored step shows.

    `ledger_hash` is that of the newest decision at its commit, so the checkpoint names the decision that
    made it. `cursor_hash` is that of the cursor after it. `checkpoint_hash` covers all of it (see
    `thread.hashes`).
    """

    thread_id: Annotated[
        str, about("The thread that made it; for steps before a fork, the parent.", name="thread")
    ]
    step: Annotated[int, about("The step's number, from 0.")]
    parent_thread: str | None
    parent_step: int
    source: Annotated[Source, about("The kind of writer.")]
    node: Annotated[Maybe, about("The node that made it.")]
    position: Annotated[str, about("Where the run continues: `node:write`, `route:check`, `end`.")]
    status: Annotated[Status, about("The thread's status after the step.")]
    reason: Annotated[str, about("The reason for that status.")]
    invocation: Annotated[int, about("The number of the invocation.")]
    iteration: Annotated[int, about("Node runs in that invocation so far.")]
    attempt: Annotated[int, about("The number of the successful attempt.")]
    duration: Annotated[Duration, about("Seconds.")]
    tokens_in: Annotated[int, about("Tokens sent in this step.")]
    tokens_out: Annotated[int, about("Tokens written in this step.")]
    cost: Annotated[float | None, about("US dollars of this step; null if a price is unknown.")]
    state_hash: Annotated[
        StateHash,
        about("Hash of the state after it; `[private]` if private channels could be guessed by it."),
    ]
    first_seq: int
    last_seq: int
    at: Annotated[Time, about("When it was committed.")]
    actor: Annotated[str | None, about("The person who made it.")] = None
    note: Annotated[str | None, about("The reason they gave.")] = None
    decision: Annotated[str | None, about("The id of the choice they took.")] = None
    made_by: Annotated[MadeBy, about("Who made it: `person`, `deadline`, `policy`, `node` or `program`.")] = (
        "node"
    )
    text: Annotated[str | None, about("The node's own summary, such as a verdict or a route.")] = None
    uses: tuple[ModelUse, ...] = ()
    branches: Annotated[
        tuple[BranchOutcome, ...], about("The branches or the subgraph that ran inside it.")
    ] = ()
    tainted: Annotated[tuple[Taint, ...], about("The tainted channels after it.")] = ()
    read: Annotated[tuple[str, ...], about("The channels that its node read.")] = ()
    compensations: tuple[Compensation, ...] = ()
    calls: Annotated[tuple[ToolUse, ...], about("The tools that its agents called.")] = ()
    streamed: tuple[StreamedText, ...] = ()
    artifacts: tuple[KeptArtifact, ...] = ()
    origin: Annotated[str | None, about("The LangGraph checkpoint that it mirrors.")] = None
    ledger_hash: bytes = b""
    cursor_hash: bytes = b""
    checkpoint_hash: bytes = b""

    @property
    def next_node(self) -> str | None:
        """The node that runs next, END, or None while the route is undecided."""
        return next_of(self.position)


class Totals(msgspec.Struct, frozen=True):
    """Sums over a thread's steps up to one of them; `active` in microseconds."""

    visits: dict[str, int]
    tokens_in: int
    tokens_out: int
    cost: float
    cost_known: bool
    active: int


def next_of(position: str) -> str | None:
    """Return the node that a position leads to: a name, END, or None while the route is undecided."""
    kind, _, name = position.partition(":")
    return name if kind == "node" else END if kind == "end" else None


class LedgerEntry(msgspec.Struct, frozen=True, gc=False):
    """One entry of the decision ledger: who decided what, when, why, and which state they saw.

    `kind` is one of input (goal and constraints as given), request, rebound, withdrawn, vote, answer,
    refused, timeout, claim_taken, handed_over, escalated, allowed, allowance_revoked, update_state,
    declassify, reveal, export, note, taint, extend, cancel, pause, resume, fork, takeover, graph, agent,
    stop, failed, rollback, undone, undo_failed, rolled_back. It can also be one of `NO_DECISIONS`: a call
    is a completed model or tool call of a node without a step so far; a progress entry only says that the
    cursor changed.

    `seen` is the state_hash that was on screen, b"" for none. `pending_hash` covers the whole request that
    the entry is about, as it waited then; b"" for none. `request_hash` covers what that request asked (see
    `thread.binding`): an answer applies only to a request with the same one.

    `account` is the operating system's account and host that wrote it, as "ann@box", recorded besides the
    stated name. `signature` is made with the person's key over what was decided (see `signed_words`); ""
    if unsigned. `login` is the database login that wrote it, "" without one; no hash covers it, since the
    database itself sets it and nobody can change it.

    Entries form a hash chain of their own. `cursor_hash` is that of the cursor after the commit, in the
    last entry of a commit without a step; b"" in others.
    """

    thread_id: str
    n: Annotated[int, about("The entry's number, from 1.")]
    kind: Annotated[
        str,
        about(
            "The kind: `request`, `answer`, `update_state`, `refused`, `takeover`, `cancel`, `declassify`...",
            name="decision",
        ),
    ]
    step: Annotated[int, about("The step it is about.")]
    request_id: Annotated[str | None, about("The request.", name="request")]
    actor: Annotated[str | None, about("The person.")]
    note: Annotated[str | None, about("The reason, or the title of a request.")]
    seen: Annotated[StateHash, about("Hash of the state that was on screen.")]
    data: Annotated[Facts, about("More facts, depending on the kind, such as the answer.")]
    at: Annotated[Time, about("When it was written.")]
    prev_hash: bytes
    hash: bytes
    pending_hash: bytes = b""
    request_hash: bytes = b""
    account: Annotated[str, about("The account and host that wrote it, as ann@box.")] = ""
    signature: Annotated[
        Maybe, about("The deciding person's signature, as `ssh-keygen -Y sign` makes it.")
    ] = ""
    made_by: Annotated[MadeBy, about("Who decided: `person`, `deadline`, `policy`, `node` or `program`.")] = (
        "person"
    )
    cursor_hash: bytes = b""
    login: Annotated[Maybe, about("The database login that wrote it.")] = ""


class Limits(Declaration, frozen=True):
    """Limits of a run; None is no limit.

    Args:
        max_iterations: runs of nodes; a map or a parallel is one.
        max_tokens: tokens that models read and wrote, of failed attempts, too.
        max_cost_usd: US dollars for model calls.
        max_seconds: seconds in which nodes ran; waiting for a person does not count.
        on_unknown_price: what a call of unknown price does to `max_cost_usd`: "warn" reports the first one
            and counts it as nothing, "stop" takes the limit as reached.
    """

    max_iterations: int | None = 25
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_seconds: float | None = None
    on_unknown_price: Literal["warn", "stop"] = "warn"

    refusal = UsageError

    def check(self) -> None:
        """Refuse negative and non-numeric limits."""
        for name, value in msgspec.structs.asdict(self).items():
            if name == "on_unknown_price":
                if value not in ("warn", "stop"):
                    raise UsageError(f"{name}={value!r} is not allowed", 'give "warn" or "stop"')
                continue
            whole = name in ("max_iterations", "max_tokens")
            kinds = int if whole else (int, float)
            if value is None:
                continue
            if not isinstance(value, kinds) or isinstance(value, bool) or not 0 <= value < math.inf:
                kind = "a whole number" if whole else "a number"
                raise UsageError(
                    f"{name}={value!r} is not a limit", f"give {kind} of at least 0, or None for none"
                )


class Cursor(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Current position of a thread: its one mutable row, replaced in each commit.

    `version` grows by one per commit; a writer that expects another version is stale. `head` is the last
    step (-1: none yet). `answers` are the answers to interrupts inside the node at `position`. `passed`
    are the answered questions before that node and after the one that ran last. `branches` is the progress
    of that node's branches.

    `last_record_hash`, `checkpoint_hash` and `ledger_hash` are the hashes to which the next record,
    checkpoint and decision are chained.

    `first_call` is the number of the first ledger entry that records a call of that node, 0 for none.
    Calls of entries up to number `counted` are in `uses` and `calls`, which hold the model and tool calls
    since the last step of a node. `streamed` is the output of failed attempts since then. `compensated`
    says that some step may have something to undo.

    `graph` is the digest of the graph with which the thread has continued, "" for its first graph.
    `context` is that of its invocation, `private_context` the names in it whose values are private.
    """

    thread_id: str
    version: int = 0
    head: int = -1
    last_seq: int = 0
    last_record_hash: bytes = b""
    checkpoint_hash: bytes = b""
    ledger_n: int = 0
    ledger_hash: bytes = b""
    status: Status = "pending"
    reason: str = ""
    position: str = "end"
    invocation: int = 0
    iteration: int = 0
    attempt: int = 1
    passed: tuple[PassedGate, ...] = ()
    answers: tuple[KeptAnswer, ...] = ()
    pending: tuple[Request, ...] = ()
    visits: dict[str, int] = {}
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    cost_known: bool = True
    active: int = 0
    retries: int = 0
    limits: Limits = Limits()
    goal: Any = None
    constraints: Any = None
    error: ErrorInfo | None = None
    log_bytes: int = 0
    log_records: int = 0
    snapshot_bytes: int = 0
    created_at: int = 0
    updated_at: int = 0
    branches: tuple[BranchState, ...] = ()
    uses: tuple[ModelUse, ...] = ()
    agents: dict[str, dict[str, Any]] = {}
    compensated: bool = False
    calls: tuple[ToolUse, ...] = ()
    graph: str = ""
    streamed: tuple[StreamedText, ...] = ()
    context: Mapping[str, Any] = {}
    private_context: tuple[str, ...] = ()
    first_call: int = 0
    counted: int = 0

    @property
    def next_node(self) -> str | None:
        """The node that runs next, END, or None while the route is undecided."""
        return next_of(self.position)

    @property
    def child(self) -> ChildLink | None:
        """The child thread of the subgraph at the cursor's position, if it was started."""
        return next((state.child for state in self.branches if state.child), None)

    @property
    def open_uses(self) -> tuple[ModelUse, ...]:
        """Model calls that are part of no step yet: of failed or stopped attempts, and of a child thread."""
        if not self.branches:
            return self.uses
        return (*self.uses, *(use for state in self.branches if state.child for use in state.child.uses))

    @property
    def run_inputs(self) -> dict[str, Any] | None:
        """Goal and constraints as nodes read them from the state, None if the run has neither."""
        if self.goal is None and self.constraints is None:
            return None
        return {"goal": self.goal, "constraints": self.constraints}


class StoredGraph(NamedTuple):
    """A graph as data, as JSON; `digest` is the SHA-256 of its body, in hex."""

    digest: str
    body: bytes


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Everything that one transaction writes: after a crash, all of it is stored or nothing.

    `birth` is the unique id of the thread (`ThreadInfo.birth`), which keeps a writer of a deleted thread
    from writing to a new thread of the same name. `graph` is the graph with which the thread continues, if
    the store may not have it yet. `takes` is a lease to acquire in the same transaction, `gives_back`
    releases the lease after it.
    """

    cursor: Cursor
    expected_version: int
    lease_token: str
    records: tuple[UpdateRecord, ...] = ()
    checkpoint: Checkpoint | None = None
    snapshot: bytes | None = None
    ledger: tuple[LedgerEntry, ...] = ()
    graph: StoredGraph | None = None
    gives_back: bool = False
    takes: "Lease | None" = None
    birth: bytes = b""
