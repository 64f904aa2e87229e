"""The one seam between runs and screens.

Commands go down as data (`engine.commands`), facts come up as numbered, frozen events.  All methods may be
called from any event loop or thread; none blocks longer than it takes to hand the command over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from hitl_tui.engine.log.outcomes import BranchOutcome
from hitl_tui.engine.log.units import Maybe, Time, about

if TYPE_CHECKING:
    from hitl_tui.drivers.decided import Decided
    from hitl_tui.drivers.history import Asked, HitsCallback, MomentsCallback, Sample
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
R = TypeVar("R")


class StoredItem(msgspec.Struct, frozen=True):
    """An item of a graph's long-term store: what it keeps beside its threads."""

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
    """Everything a screen needs to begin: what folding all events up to `number` would show.

    `checkpoints` is the newest page, oldest first; `last_event` the number to ask events after.
    `notice` says what opening the thread found, as a lease taken over from a dead process;
    `held_by` who runs it in another process, "" for nobody; `graph_changed` what differs in the graph
    since its file was saved, None while it wasn't; `repeats` what would run again under it.  `owners` are,
    for the thread of a subgraph's run, the threads it runs for, the outermost first; `unfinished` what is
    kept of a node with branches that waits.
    `attending` are those who look at what waits or have claimed it, but for whoever looks from here.
    `source` is what the thread's record names its graph by, "" where it doesn't.
    `signing_key` is the key that signs what is decided, "" where nothing is signed.  `refusals` say in words
    which commands the driver can't carry out, by verb (see `Driver.refusal`).  `handed` says that
    the thread is the workers': a decision that lets it go on queues it, and nobody needs to run it.  `now` is
    the time at which it was taken, by the store's clock.
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
        """The hash of the newest state, to go with what a person decides on it; b"" before the first step."""
        return self.checkpoints[-1].state_hash if self.checkpoints else b""


class ContextField(msgspec.Struct, frozen=True):
    """A value that a graph reads besides its input, which a new thread can be given.

    Args:
        type: a short word for its type, as "text".
        default: what it is where none is given, as it would be typed; "" where nothing is known.
        required: the graph declares no default.
    """

    name: str
    type: str
    default: str = ""
    required: bool = False


class Checked(msgspec.Struct, frozen=True):
    """What a check of a thread found, and how much it looked at.

    Args:
        nodes: of a replay, the nodes whose results were served.
        unchecked: states whose hash could not be compared.
        changes: of a strict check with findings, how today's graph differs from the one that ran, in words.
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
    """A thread of the same family in the timeline: the parent line or a fork."""

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
        """The thread this driver is about."""

    def refusal(self, command: type[Command[Any]]) -> str:
        """Why the driver can't carry out a kind of command, in words; "" where it can.  A screen greys it."""

    async def execute(self, command: Command[R]) -> R:
        """Carry out a command; what it gives and raises stands with its struct.

        Raises:
            UsageError: the driver can't, see `refusal`.
            ThreadBusy: the thread is running, here or elsewhere, and the command needs it at rest.
        """

    async def preview(self, command: Previewed) -> Preview:
        """What a command would do, before anyone commits it; changes nothing.

        An edit is shown at its `expected_step`, the head or a past one.  Other settings of agents have, as
        problems, what is known to keep an agent from being called: an unknown provider, a missing key; that
        may take seconds the first time.  A fork, a rerun, a run and a step tell what would run again.

        Raises:
            AnswerRefused: an answer that is not allowed.
            UsageError: no such agent or setting.
        """

    async def snapshot(self) -> Snapshot:
        """Everything a screen needs to begin."""

    async def history(self, before: int | None = None, limit: int = 50) -> tuple[Checkpoint, ...]:
        """Checkpoints before a step (None: from the head), newest first."""

    async def state_at(self, step: int) -> Mapping[str, Any]:
        """All channel values as of a step; private ones are `PRIVATE`."""

    async def visits(self, step: int) -> Mapping[str, int]:
        """How often each node ran in the steps up to one of them."""

    async def updates(
        self, first: int, last: int, only: str | None = None
    ) -> Mapping[int, tuple[AppliedUpdate, ...]]:
        """The updates of each of the steps `first` to `last`, in the order in which they were reduced.

        The state before them is made up once for all.  They are held in memory together, values and all; go
        through a long thread piece by piece.

        Args:
            only: the channel that is asked about, None for all of them.
        """

    async def written(self, first: int, last: int) -> Mapping[int, Mapping[str, bool]]:
        """The channels that each of the steps `first` to `last` wrote, and whether they differ since.

        It fetches no values: what a step's updates were is made up from all of the state before it.
        """

    async def family(self) -> tuple[Relative, ...]:
        """The thread's parent line and forks with their newest checkpoints, for the timeline."""

    async def context_fields(self) -> tuple[ContextField, ...]:
        """The context that a new thread can still be given with its input; () for any other thread."""

    async def agents(self) -> tuple[AgentInfo, ...]:
        """The thread's agents as they are for the next step: settings, use, chat turns."""

    async def code(self, node: str) -> tuple[Frame, ...]:
        """The functions of a node, and that of the route after it, as they stand in their files.

        () where the graph is not loaded: nothing is built for it.

        Args:
            node: its name; "" for the file in which the first node stands, from its top.
        """

    async def where(self, node: str) -> tuple[tuple[Frame, ...], ...]:
        """Where a node that runs here is now, the frames of a stack for each call of its functions.

        It goes on meanwhile. () where it does not run, or runs in another process.
        """

    async def route(self, step: int, *, load: bool = False) -> RouteTaken | None:
        """What the routing function after a step returns on its state; None where nothing is chosen there.

        Args:
            load: load the graph where it is not loaded yet.
        """

    async def rollback_entries(self) -> tuple[RollbackEntry, ...]:
        """What can be undone, in the order in which a rollback runs it, with what became of it."""

    async def lineage(self, channel: str, step: int) -> tuple[Arrival, ...]:
        """Why a channel is tainted at a step: every way by which it came in, oldest first."""

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Check the thread's log: "log" against itself, "strict" by reducing every update again,
        or "replay" its graph; changes nothing.

        Args:
            watch: called from any thread with (steps done, steps in all); what it raises ends the check.
        """

    async def search(self, query: str, report: HitsCallback) -> None:
        """Look for a text in all steps; see `history.search`.

        Args:
            report: called from any thread; what it raises ends the search, as does a cancelled task.
        """

    async def ask(self, expression: str, report: MomentsCallback) -> Asked:
        """The steps at which a condition began to hold; see `history.ask`.

        Args:
            report: as for `search`.

        Raises:
            ExpressionInvalid: it can't be read.
        """

    async def series(
        self, expressions: Sequence[str], last: int, most: int
    ) -> tuple[tuple[Sample, ...], ...]:
        """What expressions were over the run up to a step, at `most` of its steps; see `history.series`."""

    def events(self, since: int) -> Sequence[Stamped]:
        """Events with a number greater than `since`, without waiting.

        When `since` is older than what is kept, the first number returned is greater than
        `since + 1`: take a new snapshot.
        """

    async def changed(self, since: int) -> None:
        """Wait until there is an event with a number greater than `since`."""

    async def ended(self, since: int) -> None:
        """Wait until a run has ended by an event with a number greater than `since`."""

    async def close(self) -> str:
        """Stop at once; committed steps stay. Returns what was not committed, "" for nothing."""


class Hub(Protocol):
    """Opens drivers by thread: what a screen that lists and switches threads talks to."""

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> tuple[ThreadSummary, ...]:
        """Threads of the store by last change, newest first; the rest as for `Store.threads`."""

    async def waiting(self, limit: int) -> tuple[Waiting, ...]:
        """At most `limit` threads at the top that wait for a human, with what they ask; longest first."""

    def changes(self) -> object:
        """What stays equal as long as nobody writes to the store; None where it can't tell; at once."""

    def subscribe(self, wake: Callable[[], object]) -> Callable[[], None] | None:
        """See `Store.subscribe`."""

    def now(self) -> int:
        """See `Store.now`; at once."""

    def borrow(self, thread_id: str, *, look: bool = False) -> AbstractAsyncContextManager[Driver]:
        """A thread's driver for a while: one that nobody else has open is closed at the end.

        Args:
            look: to look at it alone: nothing of it is ever built.
        """

    async def open(self, thread_id: str, *, at_once: bool = False) -> Driver:
        """The driver of a thread; one that is open already is returned as it is.

        Args:
            at_once: a long thread that has to be copied first is shown by its newest page meanwhile.
        """

    async def decided(self, person: str, limit: int) -> tuple[Decided, ...]:
        """What a person has decided in all threads, newest first; at most `limit`."""

    async def deleted(self, newest: int) -> tuple[LedgerEntry, ...]:
        """The newest entries of the store's own ledger, oldest first: who deleted which threads."""

    @property
    def upkeep_refusal(self) -> str:
        """Why deletion from the store is unavailable; "" if it is available."""

    async def plan_deletion(
        self,
        what: Sequence[str] | Retention,
        *,
        force: bool = False,
        spared: str = "",
        watch: Watch | None = None,
    ) -> DeletionPlan:
        """What goes of threads that are named, with their forks and what ran inside them, or by a rule.

        Args:
            force: also what runs or waits.
            spared: a thread that stays, with what it would go with.
            watch: called, anywhere, with (threads looked at, threads that may go); what it raises ends it.

        Raises:
            UsageError: nothing can be taken out here.
        """

    async def delete(
        self,
        plan: DeletionPlan,
        *,
        actor: str | None,
        note: str | None,
        on_batch: Callable[[Sequence[str]], bool],
    ) -> int:
        """Delete what a plan says, some families at a time, and how many threads went.

        The ledger of the store keeps who did it.

        Args:
            on_batch: called from any thread with the threads of a deleted batch; returns whether to continue.

        Raises:
            StaleWriter: one has moved since; those that have gone before it are gone.
            ThreadBusy, UsageError: as for `plan_deletion`.
        """

    async def sizes(self, watch: Watch | None = None) -> tuple[tuple[ThreadSize, ...], Space]:
        """What each thread fills, the largest first, and what the store takes on the disk.

        Args:
            watch: called, anywhere, with (threads looked at, threads there are); what it raises ends it.
        """

    async def vacuum(self) -> tuple[Space, Space]:
        """Give back what is free; what the store took on the disk, and what it takes now.

        Raises:
            StoreUnusable: the store is in use, read-only or full.
            UsageError: it can't be done here.
        """

    @property
    def no_agents(self) -> str:
        """Why its threads' agents can't be shown or changed, in words; "" where they can."""

    @property
    def no_items(self) -> str:
        """Why its graph has no long-term store to look at, in words; "" where it has one."""

    async def items(self, prefix: Sequence[str], query: str, limit: int) -> tuple[StoredItem, ...]:
        """Items of the graph's long-term store.

        Args:
            prefix: what their namespace begins with.
            query: words that each has in its namespace, its key or its value; "" for all.

        Raises:
            UsageError: there is none.
        """

    @property
    def no_workers(self) -> str:
        """Why its threads are left to no workers, in words; "" where they may be."""

    async def at_work(self, limit: int) -> AtWork:
        """Who advances threads, and at most `limit` of what is to be done.

        Raises:
            UsageError: there are no workers for its threads.
        """

    async def known_graphs(self) -> tuple[KnownGraph, ...]:
        """The graphs that a thread can be started of."""

    async def start(self, graph: KnownGraph, actor: str | None) -> Driver:
        """The driver of a new thread of a known graph, which its first input creates.

        Raises:
            NotTrusted: the person has not agreed to run it.
            UsageError, GraphInvalid: it can't be built.
        """

    def ask_by(self, ask: Ask) -> None:
        """Ask a person in this way, on this event loop, before a graph is built that they don't trust yet."""

    async def close(self) -> tuple[str, ...]:
        """Close all drivers; what was not committed, a sentence for each thread concerned."""
