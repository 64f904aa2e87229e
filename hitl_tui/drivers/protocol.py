"""The interface between runs and screens: drivers and hubs.

Commands go down as data (`engine.commands`), facts come up as numbered, frozen events. All methods may be
called from any event loop or thread; none blocks longer than it takes to hand over the command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from hitl_tui.engine.log.outcomes import BranchOutcome
from hitl_tui.engine.log.units import Maybe, Time, about

if TYPE_CHECKING:
    from hitl_tui.drivers.decided import DecisionFilter, DecisionSearch
    from hitl_tui.drivers.history import Asked, HitsCallback, MomentsCallback, Sample
    from hitl_tui.drivers.measured import Reviews
    from hitl_tui.drivers.routes import RouteTaken
    from hitl_tui.engine.audit.findings import Mismatch
    from hitl_tui.engine.audit.lineage import Arrival
    from hitl_tui.engine.commands import (
        Answer,
        Command,
        ConfigureAgents,
        Fork,
        Rerun,
        Run,
        Step,
        UpdateState,
    )
    from hitl_tui.engine.graph.compensation import RollbackEntry
    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.log.events import AppliedUpdate, Event, Preview, Progress
    from hitl_tui.engine.log.jobs import AtWork
    from hitl_tui.engine.log.outcomes import Frame
    from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
    from hitl_tui.engine.log.repeats import Repeats
    from hitl_tui.engine.log.threads import Owner, Presence, Space, ThreadSize, ThreadSummary, Waiting
    from hitl_tui.engine.thread.agent_settings import AgentInfo
    from hitl_tui.loading.known import KnownGraph
    from hitl_tui.loading.trust import Ask
    from hitl_tui.stores.deletion import DeletionPlan, Retention, Watch

    Previewed: TypeAlias = UpdateState | Answer | ConfigureAgents | Fork | Rerun | Run | Step

Check: TypeAlias = Literal["log", "strict", "replay"]
ThreadKey: TypeAlias = tuple[str, str]
"""A source of the inbox, "" for a single store, and a thread: two sources may have threads of one name."""
R = TypeVar("R")


class StoredItem(msgspec.Struct, frozen=True):
    """An item of a graph's long-term store, which it keeps beside its threads."""

    namespace: Annotated[tuple[str, ...], about("The namespace, outermost first.")]
    key: Annotated[str, about("The item's key.")]
    value: Annotated[Any, about("The item's value.")]
    created_at: Annotated[Time, about("When it was created.")]
    updated_at: Annotated[Time, about("When it was last written.")]


class Unfinished(msgspec.Struct, frozen=True):
    """A map, parallel or subgraph at which a thread was suspended, and the part of it that is stored.

    `outcomes` are those of the branches that have ended.
    """

    node: Annotated[str, about("The node.")]
    step: Annotated[int, about("The number that its step will have.")]
    total: Annotated[int, about("The number of branches; 0 for a subgraph.")] = 0
    outcomes: Annotated[tuple[BranchOutcome, ...], about("The branches that are kept.", name="branches")] = ()
    child: Annotated[Maybe, about("The thread of a subgraph's run.", name="thread")] = ""


class Snapshot(msgspec.Struct, frozen=True):
    """Everything a screen needs at the start: the result of folding all events up to `number`.

    `checkpoints` is the newest page, oldest first; ask for events after `last_event`. `notice` says what
    was noticed on opening, such as a lease taken over from a dead process. `held_by` is who runs it in
    another process, "" for nobody. `graph_changed` is how the graph differs since its file was saved, None
    if it wasn't; `repeats` is what would run again under it.

    For a subgraph's thread, `owners` are the threads it runs for, outermost first. `unfinished` is what is
    kept of a node with branches that waits. `attending` are the people who have its requests open or
    claimed, except the viewer. `source` is how its record names its graph, "" if it does not.
    `signing_key` signs decisions, "" for none.

    `refusals` are the commands that the driver can't carry out, by verb, with the reason (see
    `Driver.refusal`). `handed` says that the thread belongs to the workers: a decision that lets it
    continue queues it, and nobody needs to run it. `now` is the time of the snapshot by the store's clock.
    """

    thread_id: str
    graph: GraphInfo
    progress: Progress
    values: Mapping[str, Any]
    checkpoints: tuple[Checkpoint, ...]
    updates: tuple[AppliedUpdate, ...]
    ledger: tuple[LedgerEntry, ...]
    parent: str | None
    fork_step: int
    last_event: int
    refusals: Mapping[str, str] = {}
    notice: str = ""
    held_by: str = ""
    graph_changed: tuple[str, ...] | None = None
    repeats: Repeats | None = None
    owners: tuple[Owner, ...] = ()
    unfinished: Unfinished | None = None
    signing_key: str = ""
    attending: tuple[Presence, ...] = ()
    source: str = ""
    handed: bool = False
    now: int = 0

    @property
    def state_hash(self) -> bytes:
        """The hash of the newest state, to send with a decision about it; b"" before the first step."""
        return self.checkpoints[-1].state_hash if self.checkpoints else b""


class ContextField(msgspec.Struct, frozen=True):
    """A value that a graph reads besides its input, which a new thread can be given.

    Args:
        type: a short word for its type, as "text".
        default: the value if none is given, as it would be typed; "" if unknown.
        required: the graph declares no default.
    """

    name: str
    type: str
    default: str = ""
    required: bool = False


class Checked(msgspec.Struct, frozen=True):
    """The result of a check of a thread.

    Args:
        nodes: for a replay, the nodes whose results were used.
        unchecked: states whose hash could not be compared.
        changes: for a strict check with findings, how the current graph differs from the one that ran.
    """

    kind: Check
    mismatches: tuple[Mismatch, ...]
    steps: int
    records: int
    nodes: int = 0
    unchecked: int = 0
    changes: tuple[str, ...] = ()


class Stamped(msgspec.Struct, frozen=True, gc=False):
    """An event and its number; numbers grow by one without gaps within a driver."""

    number: int
    event: Event


class Relative(msgspec.Struct, frozen=True):
    """A relative of a thread in the timeline: an ancestor or a fork."""

    thread_id: str
    parent: str | None
    fork_step: int
    summary: ThreadSummary
    checkpoints: tuple[Checkpoint, ...]


def command_refusal(refusals: Mapping[str, str], command: type[Command[Any]]) -> str:
    """Return why a kind of command is refused, "" if it is not."""
    from hitl_tui.engine.commands import verb

    return refusals.get(verb(command), "")


class Driver(Protocol):
    """One open thread."""

    @property
    def thread_id(self) -> str:
        """The id of the driver's thread."""

    def refusal(self, command: type[Command[Any]]) -> str:
        """Return why the driver can't carry out a kind of command; "" if it can. Screens disable it."""

    async def execute(self, command: Command[R]) -> R:
        """Carry out a command; each command's struct documents its result and errors.

        Raises:
            UsageError: the driver can't, see `refusal`.
            ThreadBusy: the thread is running, here or elsewhere, and the command needs it at rest.
        """

    async def preview(self, command: Previewed) -> Preview:
        """Return what a command would do, without changing anything.

        An edit is shown at its `expected_step`, the head or a past one. For new settings of agents,
        problems are what is known to prevent a call, such as an unknown provider or a missing key; that
        may take seconds the first time. For a fork, a rerun, a run and a step it is what would run again.

        Raises: AnswerRefused: an answer that is not allowed. UsageError: no such agent or setting.
        """

    async def snapshot(self) -> Snapshot:
        """Return everything a screen needs at the start."""

    async def history(self, before: int | None = None, limit: int = 50) -> tuple[Checkpoint, ...]:
        """Return checkpoints before a step (None: from the head), newest first."""

    async def state_at(self, step: int) -> Mapping[str, Any]:
        """Return all channel values at a step; private ones are `PRIVATE`."""

    async def visits(self, step: int) -> Mapping[str, int]:
        """Return how often each node ran in the steps up to one of them."""

    async def updates(
        self, first: int, last: int, only: str | None = None
    ) -> Mapping[int, tuple[AppliedUpdate, ...]]:
        """Return the updates of each of the steps `first` to `last`, in the order they were reduced.

        The state before them is built once for all. All of them are held in memory with their values, so
        go through a long thread piece by piece.

        Args:
            only: the wanted channel, None for all.
        """

    async def written(self, first: int, last: int) -> Mapping[int, Mapping[str, bool]]:
        """Return the channels that each of the steps `first` to `last` wrote, and whether they differ since.

        It fetches no values: the updates of a step would need the whole state before it.
        """

    async def family(self) -> tuple[Relative, ...]:
        """Return the thread's ancestors and forks with their newest checkpoints, for the timeline."""

    async def context_fields(self) -> tuple[ContextField, ...]:
        """Return the context that a new thread can still be given with its input; () for any other thread."""

    async def agents(self) -> tuple[AgentInfo, ...]:
        """Return the thread's agents as they are for the next step: settings, use, chat turns."""

    async def code(self, node: str) -> tuple[Frame, ...]:
        """Return the functions of a node, and of the route after it, as they are in their files.

        () if the graph is not loaded: nothing is built for it.

        Args:
            node: its name; "" for the file that contains the first node, from its top.
        """

    async def where(self, node: str) -> tuple[tuple[Frame, ...], ...]:
        """Return where a node that runs here is now: a stack of frames for each call of its functions.

        It continues meanwhile. () if it does not run, or runs in another process.
        """

    async def route(self, step: int, *, load: bool = False) -> RouteTaken | None:
        """Return the result of the routing function after a step for its state; None if there is no choice.

        `load` loads the graph if it isn't loaded yet.
        """

    async def rollback_entries(self) -> tuple[RollbackEntry, ...]:
        """Return what can be undone, in the order in which a rollback runs it, with its status."""

    async def lineage(self, channel: str, step: int) -> tuple[Arrival, ...]:
        """Return why a channel is tainted at a step: every route of the taint, oldest first."""

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Check the thread's log: "log" against itself, "strict" by reducing every update again,
        or "replay" its graph; changes nothing.

        Args:
            watch: called from any thread with (steps done, all steps); an error that it raises ends the
                check.
        """

    async def search(self, query: str, report: HitsCallback) -> None:
        """Search all steps for a text; see `history.search`.

        Args:
            report: called from any thread; an error that it raises ends the search, as does cancelling the
                task.
        """

    async def ask(self, expression: str, report: MomentsCallback) -> Asked:
        """Find the steps at which a condition became true; see `history.ask`.

        Args:
            report: as for `search`.

        Raises:
            ExpressionInvalid: it can't be read.
        """

    async def series(
        self, expressions: Sequence[str], last: int, most: int
    ) -> tuple[tuple[Sample, ...], ...]:
        """Return the values of expressions over the run, at most `most` samples; see `history.series`."""

    def events(self, since: int) -> Sequence[Stamped]:
        """Return events with a number greater than `since`, without waiting.

        If `since` is older than what is kept, the first number is greater than `since + 1`: take a new
        snapshot.
        """

    async def changed(self, since: int) -> None:
        """Wait until there is an event with a number greater than `since`."""

    async def ended(self, since: int) -> None:
        """Wait until a run has ended by an event with a number greater than `since`."""

    async def close(self) -> str:
        """Stop at once; committed steps are kept. Returns what was not committed, "" for nothing."""


class SourceState(msgspec.Struct, frozen=True):
    """One of the sources of an inbox, and whether its requests can be read now."""

    name: Annotated[str, about("Its name, as in the field `source` of a request.")]
    url: Annotated[str, about("The store, as `--store` takes it, without a password.")]
    status: Annotated[
        Literal["ready", "connecting", "unavailable"], about("Whether its requests can be read now.")
    ]
    problem: Annotated[Maybe, about("Why it is unavailable; null if it is not.")] = ""


class Inbox(Protocol):
    """The requests that wait in one or several stores, and the hub of each."""

    async def waiting(self, limit: int) -> tuple[Waiting, ...]:
        """Return at most `limit` waiting top-level threads with their requests, longest first.

        Each names its source (`Waiting.source`). Those of a source that can't be read now are left out.
        """

    def sources(self) -> tuple[SourceState, ...]:
        """Return all sources as of the last reading; () for a single store."""

    def hub_of(self, source: str) -> Hub:
        """Return the hub of a source, "" for that of a single store.

        Raises:
            StoreUnusable: it can't be reached now.
        """

    @property
    def home(self) -> Hub:
        """The hub of the store that the command was started for."""

    def changes(self) -> object:
        """Return a value that stays equal as long as nobody writes to a store; None if unknown; at once."""

    def subscribe(self, wake: Callable[[], object]) -> Callable[[], None] | None:
        """See `Store.subscribe`."""

    def now(self) -> int:
        """See `Store.now`; at once."""

    def ask_by(self, ask: Ask) -> None:
        """Set how a person is asked, on this event loop, before an untrusted graph is built."""

    async def close(self) -> tuple[str, ...]:
        """Close all drivers; returns what was not committed, a sentence for each thread concerned."""


class Hub(Inbox, Protocol):
    """Opens drivers by thread: the interface for screens that list and switch threads.

    Attributes:
        inbox: the inbox whose source it is; the hub itself if its store is the only one.
        source: its name there; "" if its store is the only one.
    """

    inbox: Inbox
    source: str

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> tuple[ThreadSummary, ...]:
        """Return threads of the store by last change, newest first; see `Store.threads`."""

    def borrow(self, thread_id: str, *, look: bool = False) -> AbstractAsyncContextManager[Driver]:
        """Open a thread's driver for a while; it is closed at the end unless somebody else has it open.

        With `look` it only views: none of the thread is ever built.
        """

    async def open(self, thread_id: str, *, at_once: bool = False) -> Driver:
        """Return the driver of a thread; an open one is returned as it is.

        Args:
            at_once: a long thread that must be copied first is shown by its newest page meanwhile.
        """

    def decisions(self, wanted: DecisionFilter) -> DecisionSearch:
        """Return a search for decisions in all threads; reading a page of it blocks."""

    async def reviews(self) -> Reviews:
        """Return what is measured about the reviews in all threads; that reads them all."""

    async def deleted(self, newest: int) -> tuple[LedgerEntry, ...]:
        """Return the newest entries of the store's own ledger, oldest first: who deleted which threads."""

    @property
    def upkeep_refusal(self) -> str:
        """Why deletion from the store is unavailable; "" if it is available."""

    async def plan_deletion(
        self,
        what: Sequence[str] | Retention,
        *,
        force: bool = False,
        spared: str = "",
        together: bool = False,
        forks: bool = True,
        watch: Watch | None = None,
    ) -> DeletionPlan:
        """Plan the deletion of named threads, with their forks and inner threads, or of those by a rule.

        Args:
            force: also threads that run or wait.
            spared: a thread that is kept, with those with which it would be deleted.
            together: all named threads or none: the first that can't be deleted is an error.
            forks: their forks may go with them, if they are deleted together.
            watch: called from any thread with (threads checked, threads that may be deleted); an error that
                it raises ends this.

        Raises:
            UsageError: nothing can be deleted here.
            UnknownThread, ThreadBusy: a thread can't be deleted with the others.
        """

    async def delete(
        self,
        plan: DeletionPlan,
        *,
        actor: str | None,
        note: str | None,
        on_batch: Callable[[Sequence[LedgerEntry]], bool],
        alone: bool = False,
    ) -> int:
        """Delete the threads of a plan, some families at a time; returns how many were deleted.

        The ledger of the store records who did it.

        Args:
            on_batch: called from any thread with the entries of a deleted batch; returns whether to continue.
            alone: the process does nothing else meanwhile: batches are large, and ctrl+c can cancel the
                current one.

        Raises:
            StaleWriter: a thread has moved since; those deleted before it stay deleted.
            ThreadBusy, UsageError: as for `plan_deletion`.
        """

    async def sizes(self, watch: Watch | None = None) -> tuple[tuple[ThreadSize, ...], Space]:
        """Return the size of each thread, the largest first, and the store's space on disk.

        Args:
            watch: called from any thread with (threads measured, all threads); an error that it raises ends
                this.
        """

    async def space(self) -> Space:
        """Return the store's space on disk."""

    async def vacuum(self) -> tuple[Space, Space]:
        """Free unused space; returns the space before and after.

        Raises:
            StoreUnusable: the store is in use, read-only or full.
            UsageError: it can't be done here.
        """

    @property
    def no_agents(self) -> str:
        """Why its threads' agents can't be shown or changed; "" if they can."""

    @property
    def no_items(self) -> str:
        """Why its graph has no long-term store to view; "" if it has one."""

    async def items(self, prefix: Sequence[str], query: str, limit: int) -> tuple[StoredItem, ...]:
        """Return items of the graph's long-term store.

        Args:
            prefix: the beginning of their namespace.
            query: words that each has in its namespace, its key or its value; "" for all.

        Raises:
            UsageError: there is none.
        """

    @property
    def no_workers(self) -> str:
        """Why its threads can't be left to workers; "" if they can."""

    async def at_work(self, limit: int) -> AtWork:
        """Return the workers, and at most `limit` of their jobs.

        Raises:
            UsageError: there are no workers for its threads.
        """

    async def known_graphs(self) -> tuple[KnownGraph, ...]:
        """Return the graphs from which a thread can be started."""

    async def start(self, graph: KnownGraph, actor: str | None) -> Driver:
        """Return the driver of a new thread of a known graph; its first input creates the thread.

        Raises:
            NotTrusted: the person has not agreed to run it.
            UsageError, GraphInvalid: it can't be built.
        """
