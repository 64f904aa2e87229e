"""The one seam between runs and screens (DESIGN, "The driver").

Commands go down as methods, facts come up as numbered, frozen events.  All methods may be called
from any event loop or thread; none blocks longer than it takes to hand the command over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import msgspec

from hitl_tui.engine.audit.findings import Mismatch
from hitl_tui.engine.audit.lineage import Arrival
from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.engine.graph.description import EdgeInfo, GraphInfo, InputField, NodeInfo
from hitl_tui.engine.log.events import AppliedUpdate, Event, Preview, Progress
from hitl_tui.engine.log.outcomes import BranchOutcome
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.engine.log.threads import Owner, ThreadSummary
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.engine.thread.agent_settings import AgentInfo, Settings

if TYPE_CHECKING:
    from hitl_tui.loading.trust import Ask

__all__ = [
    "AgentInfo",
    "Arrival",
    "Capabilities",
    "ChannelInfo",
    "Check",
    "Checked",
    "Driver",
    "EdgeInfo",
    "GraphInfo",
    "Hub",
    "InputField",
    "NodeInfo",
    "Preview",
    "Relative",
    "RollbackEntry",
    "Settings",
    "Snapshot",
    "Stamped",
    "Unfinished",
]


Check: TypeAlias = Literal["log", "strict", "replay"]
NO_BREAKPOINTS: Final[Mapping[str, str]] = MappingProxyType({})


class Capabilities(msgspec.Struct, frozen=True):
    """What a driver can do; a screen greys the rest.  `why_not` says it in words."""

    can_run: bool = True
    can_edit: bool = True
    can_edit_past: bool = True
    can_fork: bool = True
    can_answer: bool = True
    can_cancel: bool = True
    can_roll_back: bool = True
    can_check: bool = True
    can_reload: bool = True
    why_not: str = ""


class Unfinished(msgspec.Struct, frozen=True):
    """A map, a parallel or a subgraph at which a thread was put down, with what is kept of it (SPEC 7).

    Args:
        step: the step that it will be committed as.
        total: how many branches there are; 0 for a subgraph.
        outcomes: the branches that have ended.
        child: the thread of a subgraph's run.
    """

    node: str
    step: int
    total: int = 0
    outcomes: tuple[BranchOutcome, ...] = ()
    child: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """Everything a screen needs to begin: what folding all events up to `number` would show.

    `checkpoints` is the newest page, oldest first; `last_event` the number to ask events after.
    `notice` says what opening the thread found, as a lease taken over from a dead process;
    `held_by` who runs it in another process, "" for nobody; `graph_changed` what differs in the graph
    since its file was saved, None while it wasn't.  `owners` are, for the thread of a subgraph's run, the
    threads it runs for, the outermost first; `unfinished` what is kept of a node with branches that waits.
    `signing_key` is the key that signs what is decided, "" where nothing is signed.
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
    capabilities: Capabilities
    last_event: int
    notice: str = ""
    held_by: str = ""
    graph_changed: tuple[str, ...] | None = None
    owners: tuple[Owner, ...] = ()
    unfinished: Unfinished | None = None
    signing_key: str = ""


class Checked(msgspec.Struct, frozen=True):
    """What a check of a thread found, and how much it looked at.

    Args:
        nodes: of a replay, the nodes whose results were served.
        unchecked: states whose hash could not be compared.
    """

    kind: Check
    mismatches: tuple[Mismatch, ...]
    steps: int
    records: int
    nodes: int = 0
    unchecked: int = 0


class Stamped(msgspec.Struct, frozen=True):
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


class Driver(Protocol):
    """One open thread."""

    @property
    def thread_id(self) -> str:
        """The thread this driver is about."""

    @property
    def capabilities(self) -> Capabilities:
        """What this driver can do."""

    async def snapshot(self) -> Snapshot:
        """Everything a screen needs to begin."""

    async def prepare(self) -> None:
        """Build the thread's graph, as whatever runs or changes it does first; looking takes none.

        Raises:
            GraphInvalid, UsageError: it can't be built.
        """

    async def history(self, before: int | None = None, limit: int = 50) -> tuple[Checkpoint, ...]:
        """Checkpoints before a step (None: from the head), newest first."""

    async def state_at(self, step: int) -> Mapping[str, Any]:
        """All channel values as of a step; private ones are `PRIVATE`."""

    async def updates_at(self, step: int) -> tuple[AppliedUpdate, ...]:
        """The updates of a step, in the order in which they were reduced."""

    async def updates_between(
        self, first: int, last: int, only: str | None = None
    ) -> Mapping[int, tuple[AppliedUpdate, ...]]:
        """The updates of each of the steps `first` to `last`: the state before them is made up once for all.

        They are held in memory together, values and all; go through a long thread piece by piece.

        Args:
            only: the channel that is asked about, None for all of them.
        """

    async def written_at(self, first: int, last: int) -> Mapping[int, Mapping[str, bool]]:
        """The channels that each of the steps `first` to `last` wrote, and whether they differ since.

        It fetches no values: what a step's updates were is made up from all of the state before it.
        """

    async def family(self) -> tuple[Relative, ...]:
        """The thread's parent line and forks with their newest checkpoints, for the timeline."""

    async def start(self, inputs: Mapping[str, Any], *, actor: str | None = None) -> int:
        """Commit the input as a step (step 0 of a new thread) without running anything."""

    async def step(self) -> None:
        """Run one node; returns when the command is accepted, events tell the rest."""

    async def run(self, *, stop_before: Mapping[str, str] = NO_BREAKPOINTS) -> None:
        """Run until something waits, fails or ends, or stops before a node.

        Args:
            stop_before: breakpoints of this run: nodes, each with its condition, "" for always
                (see `drivers.breakpoints`).

        Raises:
            BreakpointInvalid: no such node, or a condition that can't be read.
        """

    async def pause(self) -> None:
        """Stop at the next node boundary."""

    async def cancel_attempt(self) -> None:
        """Give up the node in flight, a model call included; the thread waits before that node."""

    async def cancel(self, *, actor: str | None = None, note: str | None = None) -> None:
        """End the thread as cancelled(user)."""

    async def extend_limits(
        self, limits: Mapping[str, float | None], *, actor: str | None = None, note: str | None = None
    ) -> None:
        """Raise limits (names as in `Limits`) so that a thread stopped by one may go on; logged."""

    async def preview(
        self,
        values: Mapping[str, Any],
        *,
        step: int | None = None,
        as_node: str | None = None,
        answer: tuple[str, Any] | None = None,
    ) -> Preview:
        """What setting `values` at a step (None: head) would do, or answering (request id, answer)."""

    async def update_state(
        self,
        values: Mapping[str, Any],
        *,
        expected_step: int,
        as_node: str | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> int:
        """Set channel values as a new step (SPEC 11); returns it.

        Raises:
            StaleWriter: the head is no longer `expected_step`.
            ThreadBusy: the thread is running.
        """

    async def answer(
        self,
        request_id: str,
        answer: Any,
        *,
        step: int,
        actor: str | None = None,
        note: str | None = None,
        seen: bytes = b"",
    ) -> int:
        """Answer a request bound to `step`; returns the head after it.

        Raises:
            AnswerRefused: late, unknown, duplicate, stale or unauthorised; recorded as such.
        """

    async def fork(
        self,
        step: int,
        new_thread_id: str,
        *,
        changes: Mapping[str, Any] | None = None,
        agents: Settings | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> str:
        """Make a new thread from a committed step; returns its id.

        Args:
            changes: channel values it begins with.
            agents: settings of agents, beside those that were in force at `step`.
        """

    async def agents(self) -> tuple[AgentInfo, ...]:
        """The thread's agents as they are for the next step: settings, use, chat turns."""

    async def configure_agent(
        self, agent: str, settings: Mapping[str, Any], *, actor: str | None = None, note: str | None = None
    ) -> None:
        """Change `model`, `instructions`, `temperature` or `api_base` of an agent from the next step on.

        None takes a setting back to the graph's.  Logged, and kept with the thread.

        Raises:
            UsageError: no such agent or setting.
            ThreadBusy: the thread is running.
        """

    async def doubts(self, agent: str, settings: Mapping[str, Any]) -> str:
        """What is known, before anything runs, to keep an agent with other settings from being called: an
        unknown provider, a missing key; "" for nothing.  May take seconds the first time.

        Raises:
            UsageError: no such agent or setting.
        """

    async def clear_turns(self, agent: str, *, actor: str | None = None, note: str | None = None) -> int:
        """Let an agent forget its chat turns; returns how many it had.  Logged.

        Raises:
            UsageError: no such agent, or its turns are in a channel.
        """

    async def rollback_entries(self) -> tuple[RollbackEntry, ...]:
        """What can be undone, in the order in which a rollback runs it, with what became of it."""

    async def rollback(self, *, actor: str | None = None, note: str | None = None) -> None:
        """Undo what the thread's nodes did outside (SPEC 13); returns when accepted, events tell the rest.

        Raises:
            ThreadBusy: the thread is running.
        """

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Check the thread's log (SPEC 12): "log" against itself, "strict" by reducing every update again,
        or "replay" its graph; changes nothing.

        Args:
            watch: called from any thread with (steps done, steps in all); what it raises ends the check.
        """

    async def lineage(self, channel: str, step: int) -> tuple[Arrival, ...]:
        """Why a channel is tainted at a step: every way by which it came in, oldest first (SPEC 8)."""

    async def declassify(
        self, channel: str, *, expected_step: int, actor: str, reason: str, seen: bytes = b""
    ) -> int:
        """Clear a channel's taint as a new step that changes no value; returns the step.

        Raises:
            StaleWriter: the head is no longer `expected_step`.
            ThreadBusy: the thread is running.
            UsageError: it is not tainted, or there is no reason.
        """

    async def reveal(self, channel: str, step: int, *, actor: str) -> Any:
        """A channel's value at a step though it is private; the ledger keeps who has seen it.

        Raises:
            ThreadBusy: the thread is running, so nothing can be written down.
        """

    async def reload_graph(self, *, actor: str | None = None) -> tuple[str, ...]:
        """Go on with the graph as its file is now; returns what is different, in words.

        Raises:
            ThreadBusy: the thread is running, here or elsewhere.
            GraphInvalid: the file can't be built, or the thread can't go on with it as it stands.
        """

    def events(self, since: int) -> Sequence[Stamped]:
        """Events with a number greater than `since`, without waiting.

        When `since` is older than what is kept, the first number returned is greater than
        `since + 1`: take a new snapshot.
        """

    async def changed(self, since: int) -> None:
        """Wait until there is an event with a number greater than `since`."""

    async def close(self) -> str:
        """Stop at once; committed steps stay. Returns what was not committed, "" for nothing."""


class Hub(Protocol):
    """Opens drivers by thread: what a screen that lists and switches threads talks to."""

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        offset: int = 0,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> tuple[ThreadSummary, ...]:
        """Threads of the store by last change, newest first; the rest as for `Store.threads`."""

    async def open(self, thread_id: str) -> Driver:
        """The driver of a thread; one that is open already is returned as it is."""

    def ask_by(self, ask: Ask) -> None:
        """Ask a person in this way, on this event loop, before a graph is built that they don't trust yet."""

    async def close(self) -> tuple[str, ...]:
        """Close all drivers; what was not committed, a sentence for each thread concerned."""
