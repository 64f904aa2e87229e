"""One thread, open for reading and writing: its cursor, state and commits.

Specified in docs/spec/threads.md and docs/spec/log.md.
"""

from __future__ import annotations

import _thread
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.graph.limits import UNLIMITED, limits_near
from hitl_tui.engine.graph.termination import RunTotals, WrittenChannels
from hitl_tui.engine.log.events import (
    PRIVATE,
    AppliedUpdate,
    Event,
    KnownOutcome,
    LedgerWritten,
    PriceUnknown,
    Progress,
    ProgressChanged,
    StepCommitted,
    StepOutcome,
    shown_step,
)
from hitl_tui.engine.log.records import (
    CALL,
    END,
    NO_DECISIONS,
    PROGRESS,
    Checkpoint,
    Commit,
    Cursor,
    Effect,
    LedgerEntry,
    Limits,
    Source,
    UpdateRecord,
)
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.signing import Signer
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import (
    LEASE_TIME,
    Lease,
    Owner,
    Stamp,
    ThreadInfo,
    other_thread,
    takeover_notice,
)
from hitl_tui.engine.state.changes import Change, after
from hitl_tui.engine.state.patches import length_after
from hitl_tui.engine.state.reducers import logged_reducer
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.state.workflow_state import NotedState, StateView, WorkflowState
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.agent_settings import apply_settings, fresh_agents
from hitl_tui.engine.thread.call_log import CallLog, CallRecord, as_data, calls_since
from hitl_tui.engine.thread.hashes import (
    chained,
    chained_part,
    checkpoint_hash,
    cursor_hash,
    facts_hash,
    pending_hash,
)
from hitl_tui.engine.thread.journal import StepFacts, checkpoint_of, records_of, snapshot_of
from hitl_tui.engine.thread.logged import (
    checked_cursor,
    decisions,
    logged_digest,
    progress_of,
    with_frozen_inputs,
)
from hitl_tui.engine.thread.private import private_values
from hitl_tui.engine.thread.rebuild import live_state, state_at, update_of
from hitl_tui.engine.thread.recorded import RecordedGraph, recorded_graph
from hitl_tui.engine.thread.run_inputs import checked_context, shown_entry
from hitl_tui.errors import (
    STORE_FAILURES,
    HitlError,
    LogCorrupt,
    StaleWriter,
    StoreUnusable,
    ThreadBusy,
    described,
)

if TYPE_CHECKING:
    from hitl_tui.engine.log.outcomes import ModelUse
    from hitl_tui.engine.state.channel import BoundChannel
    from hitl_tui.engine.thread.breakpoints import Stops


class FirstInput(msgspec.Struct, frozen=True):
    """The first entry that the input of an invocation put into a channel, tracked up to a step.

    Attributes:
        given: the entry as it was given.
        place: its index in the channel's list; -1 once a bounded channel or an edit has dropped it.
        length: the length of the list.
        step: the step up to which it was tracked.
    """

    given: Any
    place: int
    length: int
    step: int

    def now(self, value: Any) -> Any:
        """Return the entry as it is in the channel's value, after edits.

        As it was given if it was dropped.
        """
        held = isinstance(value, (list, tuple)) and 0 <= self.place < len(value)
        return value[self.place] if held else self.given

    def follow(self, store: Store, thread_id: str, channel: str, head: int) -> FirstInput:
        """Return the same entry, tracked to the thread's head."""
        place, length = self.place, self.length
        for effect in store.effects(thread_id, self.step + 1, head):
            if effect.channel == channel:
                place, length = _moved_entry(place, length, effect)
        return FirstInput(self.given, place, length, head)


def first_input(
    store: Store, thread_id: str, channel: str, head: int, defaults: dict[str, Any]
) -> FirstInput | None:
    """Return the first entry from the newest invocation with input for a channel; None without one.

    Args:
        head: the thread's last step.
        defaults: values of channels before the first step.
    """
    last = head
    while last >= 0:
        first = first_step_of_invocation(store, thread_id, last)
        effects = [effect for effect in store.effects(thread_id, first, first) if effect.channel == channel]
        if effects:
            before = state_at(store, thread_id, first - 1, defaults, [channel]) if first else defaults
            length = len(value) if isinstance(value := before.get(channel), (list, tuple)) else 0
            given = update_of(effects[0], before.get(channel))
            first_input = FirstInput(given, length, length, first - 1)
            return first_input.follow(store, thread_id, channel, head)
        last = first - 1
    return None


def first_step_of_invocation(store: Store, thread_id: str, step: int) -> int:
    """Return the step that started the invocation to which a step belongs.

    The numbers of invocations only grow along a thread.
    """
    point = store.checkpoint(thread_id, step)
    low, high = 0, step
    while point and low < high:
        middle = (low + high) // 2
        other = store.checkpoint(thread_id, middle)
        if other and other.invocation < point.invocation:
            low = middle + 1
        else:
            high = middle
    return high


def _moved_entry(place: int, length: int, effect: Effect) -> tuple[int, int]:
    """Return the index of an entry in a list after an update, and the length of the list then."""
    reducer = logged_reducer(effect.reducer) if effect.op == "reduce" else None
    if reducer and reducer.kind == "element":
        dropped = max(0, length + 1 - reducer.window) if reducer.window else 0
        return (place - dropped if place >= dropped else -1), length + 1 - dropped
    # An edit in place, or a new list: the entry at the same index counts as the same.
    field = "update" if effect.result is msgspec.UNSET else "result"
    value = getattr(effect, field)
    if field in effect.patched:
        try:
            length = length_after(value, length)
        except ValueError as error:
            raise LogCorrupt(f"channel {effect.channel!r}: {error}", "see `hitl-tui verify`") from None
    else:
        length = len(value) if isinstance(value, (list, tuple)) else 0
    return (place if place < length else -1), length


_WRITTEN = attrgetter("channel.name", "after")


class CommittedOutcome(msgspec.Struct, gc=False):
    """The outcome of a step without private channels, computed from what was committed when it is needed."""

    changes: Sequence[Change]
    step: StepFacts
    cursor: Cursor
    next_node: str | None
    limits: Limits
    _updates: tuple[AppliedUpdate, ...] | None = None
    _progress: Progress | None = None

    @property
    def updates(self) -> tuple[AppliedUpdate, ...]:
        """The updates of the step."""
        if self._updates is None:
            step = self.step
            self._updates = tuple(
                [change.applied(step.source, step.actor, step.note, step.made_by) for change in self.changes]
            )
        return self._updates

    @property
    def progress(self) -> Progress:
        """The progress of the thread after it."""
        if self._progress is None:
            self._progress = progress_of(self.cursor, self.next_node, self.limits)
        return self._progress

    @property
    def written(self) -> Iterable[tuple[str, Any]]:
        """The channels that it wrote, in order, each with its value after the update."""
        return map(_WRITTEN, self.changes)

    @property
    def changed(self) -> frozenset[str]:
        """The channels whose value was changed by an update."""
        return frozenset(
            [change.channel.name for change in self.changes if change.before_hash != change.after_hash]
        )

    def __repr__(self) -> str:
        return repr(KnownOutcome(self.updates, self.progress))


NextNode = tuple[str, str]
"""Where a thread continues: a node, END or "" for a dead end; and the termination that is met, "" for
none.
"""


class ThreadState:
    """The cursor and the state of a thread, and where they lead."""

    graph: CompiledGraph
    cursor: Cursor
    state: LiveState
    max_iterations: int | None = None
    """The limit of the current `invoke`, used instead of the thread's own; it is not stored."""
    _reported_price = False
    _routed: tuple[str, LiveState, str] | None = None
    _ended: tuple[LiveState, tuple[int, float], str] | None = None
    _written: WrittenChannels | None = None

    @property
    def limits(self) -> Limits:
        """The limits of the current run."""
        limits = self.cursor.limits
        return limits if self.max_iterations is None else replace(limits, max_iterations=self.max_iterations)

    @property
    def progress(self) -> Progress:
        """The progress of the thread, for status lines."""
        return progress_of(self.cursor, self._peek_next(), self.limits)

    @property
    def exists(self) -> bool:
        """True once the thread has been written."""
        return self.cursor.version > 0

    def view(self, state: LiveState | None = None) -> WorkflowState:
        """Return the whole state as routes, gates and conditions read it."""
        return StateView((state or self.state).values, self.graph.channels, None, self.cursor.run_inputs)

    def private(self, updates: Iterable[tuple[str, Any]] = ()) -> dict[str, Any]:
        """Return the values that no error may show, by name; see `private_values`."""
        return private_values(self.graph, self.cursor, self.state.values, updates)

    def shown(self) -> dict[str, Any]:
        """Return all values as streams show them, without those of private channels."""
        channels = self.graph.channels
        return {
            name: PRIVATE if channels[name].visibility == "private" else value
            for name, value in self.state.values.items()
        }

    def next_target(
        self, position: str | None = None, state: LiveState | None = None, cursor: Cursor | None = None
    ) -> NextNode:
        """Return where a position leads, by default the thread's own.

        Termination is checked before a route: a run that is over calls no routing function.

        Raises:
            HitlError: the condition or the routing function raised, or it returned an unknown key.
        """
        kind, _, name = (self.cursor.position if position is None else position).partition(":")
        state = self.state if state is None else state
        asks = kind == "route" and name in self.graph.routes
        target = END if kind == "end" else name
        if kind == "route":
            target = "" if asks else self.route_from(name, state)
        if target == END:
            return END, ""
        if ended := self.terminated(state, cursor):
            return END, ended
        return (self.route_from(name, state) if asks else target), ""

    def route_from(self, node: str, state: LiveState) -> str:
        """Return the node after `node` for a state; a routing function is called once for each state."""
        known = self._routed
        if known and known[0] == node and known[1] is state:
            return known[2]
        target = self.graph.route(node, self.view(state), self.cursor.context)
        self._routed = (node, state, target)
        return target

    def cursor_after_node(self, cursor: Cursor, node: str, state: LiveState) -> Cursor:
        """Return a cursor after `node`, with the next node if that is already known.

        A conditional edge is not decided yet, because a person may still edit the state; except if it leads
        to END: then nothing more will run, and the thread is done.
        """
        if node in self.graph.routes:
            try:
                if self.terminated(state, cursor) or self.route_from(node, state) != END:
                    return cursor
            except HitlError:
                return cursor  # reported when the route is taken, after the step was committed
            target = END
        else:
            target = self.graph.edges.get(node, "")
        if target == END:
            return replace(cursor, position="end", status="completed", reason="end")
        return replace(cursor, position=f"node:{target}")

    def terminated(self, state: LiveState | None = None, cursor: Cursor | None = None) -> str:
        """Return which termination condition is met on a state after a node, "" for none.

        It is checked once for each state.

        Raises:
            HitlError: the condition, a user's function, raised.
        """
        condition = self.graph.termination
        state, cursor = state or self.state, cursor or self.cursor
        if condition is None or cursor.iteration == 0:
            return ""
        known, spent = self._ended, (cursor.iteration, cursor.cost)
        if known and known[0] is state and known[1] == spent:
            return known[2]
        read: dict[str, None] = {}
        channels = self.graph.channels
        written = self._written_up_to(state, cursor)
        totals = RunTotals(*spent, written, read, partial(_is_default, channels, state))
        view = NotedState(state.values, channels, None, self.cursor.run_inputs, noted=read, taint=state.taint)
        try:
            ended = condition.met(view, totals)
        except HitlError:
            raise
        except Exception as error:
            raise HitlError(
                f"the termination condition {condition.reason!r} raised {described(error)}"
            ) from error
        self._ended = (state, spent, ended)
        return ended

    def _written_up_to(self, state: LiveState, cursor: Cursor) -> WrittenChannels:
        """Return what the invocation has written, up to a state that may not be committed yet."""
        known = self._written
        if known is None or known.invocation != cursor.invocation or known.step < self.cursor.head:
            known = self._written = self._written_before(cursor)
        if state is self.state or known.step > self.cursor.head:
            return known
        written = WrittenChannels(known.invocation, known.step)
        written.given, written.older = known.given, dict(known.older)
        for name, value in state.values.items():
            if value is not (before := self.state.values.get(name)):
                written.note(name, None, length_of(before), length_of(value))
        return written

    def _written_before(self, cursor: Cursor) -> WrittenChannels:
        """Return what an invocation has written up to the thread's last step."""
        return WrittenChannels(cursor.invocation, self.cursor.head)

    def note_changes(self, changes: Sequence[Change], source: Source, cursor: Cursor) -> None:
        """Count what the next step writes, for the graph's termination condition."""
        step, known = self.cursor.head + 1, self._written
        if known and known.step == step:
            return
        if known is None or known.step != self.cursor.head or known.invocation != cursor.invocation:
            if cursor.invocation == self.cursor.invocation and step > 0 and self.cursor.head >= 0:
                return  # it is read from the log when it is needed
            known = self._written = WrittenChannels(cursor.invocation, step)
        begins = source == "input" and (cursor.invocation != self.cursor.invocation or step == 0)
        known.step = step
        for change in changes:
            name = change.channel.name
            if begins:
                known.given.add(name)
                continue
            reducer = change.channel.reducer if change.op == "reduce" else None
            known.note(name, reducer, length_of(change.before), length_of(change.after))

    def _peek_next(self) -> str | None:
        """Return the next node as it would be decided now, for display."""
        kind, _, node = self.cursor.position.partition(":")
        if kind != "route":
            return self.cursor.next_node
        routed = self._routed
        if routed and routed[1] is self.state and routed[0] == node and self.graph.termination is None:
            return routed[2] or None  # the loop has checked it just before
        try:
            return self.next_target()[0] or None
        except HitlError:
            return None


def _is_default(channels: Mapping[str, BoundChannel], state: LiveState, name: str) -> bool:
    channel = channels.get(name)
    return channel is None or state.values.get(name) == channel.default


def length_of(value: Any) -> int:
    """Return the length of a list, 0 for other values."""
    return len(value) if isinstance(value, (list, tuple)) else 0


Clock = Callable[[], int]
Sink = Callable[[Event], None]
log = logging.getLogger(__name__)

HEARTBEAT = 5.0
"""Seconds between renewals of the lease of a running thread."""


def now_us() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


def clock_of(store: Store | None) -> Clock:
    """Return the clock of a store; this process's clock without one."""
    return store.now if store else now_us


class _LeaseKeeper:
    """Renews the leases of all running threads of one store, from one operating-system thread.

    That thread is kept for a while when no lease is left, because starting it takes longer than a step.
    """

    def __init__(self) -> None:
        self._lock = (
            threading.Lock()
        )  # held while leases are renewed, so that none is renewed after it was removed
        self._running: dict[Session, None] = {}
        self._awake = False

    def add(self, session: Session) -> None:
        """Renew a session's lease until it is removed."""
        with self._lock:
            self._running[session] = None
            if not self._awake:
                # Otherwise it would wait for the interpreter, and each hash of a fast run would wake it.
                (started := threading.Lock()).acquire()
                _thread.start_new_thread(self._work, (started.release,))
                self._awake = started.acquire()

    def remove(self, session: Session) -> None:
        """Stop renewing a session's lease."""
        with self._lock:
            del self._running[session]

    def _work(self, started: Callable[[], None]) -> None:
        started()
        while True:
            time.sleep(HEARTBEAT)
            with self._lock:
                if not self._running:
                    self._awake = False
                    return
                for session in self._running:
                    try:
                        session.renew_lease()
                    except ThreadBusy:
                        continue  # released just now; or lost, which its next commit will find
                    except Exception as error:  # the others must still be renewed
                        log.warning("the lease of %s could not be renewed: %s", session.thread_id, error)


_keepers: WeakKeyDictionary[Store, _LeaseKeeper] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keepers.clear)  # these threads exist only in the parent process


class Session(ThreadState):
    """A thread of a graph, in a store or (without one) only in memory.

    Events go to `sink` once they are committed; `signer` signs decisions of people. Nothing is changed here
    unless its commit succeeded.
    """

    def __init__(
        self,
        graph: CompiledGraph,
        store: Store | None,
        info: ThreadInfo,
        cursor: Cursor,
        state: LiveState,
        *,
        agents: Mapping[str, Any] | None = None,
        sink: Sink | None = None,
        clock: Clock | None = None,
        signer: Signer | None = None,
    ) -> None:
        self.graph = graph
        self.store = store
        self.info = info
        self.cursor = self._stored = cursor  # after a failed commit, only the first may contain what was used
        self.state = state
        self.agents = fresh_agents(graph) if agents is None else agents
        apply_settings(self.agents, cursor.agents)
        self.sink = sink
        self.clock = clock or clock_of(store)
        self.signer = signer
        self.notice = ""
        self.children: dict[str, Session] = {}
        self.on_moved: Callable[[], None] | None = None  # acquiring the lease has loaded what others wrote
        self.on_below: Callable[[str, Event], None] | None = None
        """Gets the events of child threads while this thread runs them."""
        self.stops: Stops | None = None
        """The breakpoints of the current run."""
        self.stamp: Stamp | None = None
        """The store's stamp, if the last commit has released the lease and the store has stamps."""
        self._lease: Lease | None = None
        self.committing = threading.RLock()
        """Held while a call is recorded from another thread, and by code that may commit at the same time."""
        self.calls: tuple[tuple[str, int, int], CallLog] | None = None
        """The calls of a run of a node, and that run's node, invocation and iteration; None until the run
        uses its log.
        """
        self._given: dict[str, Any] = {}  # from the input of this invocation, for a run without a log
        self._first_inputs: dict[tuple[int, str], FirstInput | None] = {}
        self.store_failure: HitlError | None = None
        """The error of the store in a call of the running node, which must not be blamed on the node."""

    @classmethod
    def new(
        cls,
        graph: CompiledGraph,
        store: Store | None,
        thread_id: str,
        *,
        source: Mapping[str, Any] | None = None,
        actor: str | None = None,
        owner: Owner | None = None,
        agents: Mapping[str, Any] | None = None,
        sink: Sink | None = None,
        clock: Clock | None = None,
        signer: Signer | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Session:
        """Make a thread that does not exist yet; its first commit creates it.

        Args:
            context: the context of its first invocation if its `Start` has none.

        Raises:
            UsageError, ValueRejected: the context can't be kept.
        """
        now = (clock or clock_of(store))()
        known = checked_context(context or {}, graph.private_context)
        info = ThreadInfo(
            thread_id=thread_id,
            graph_name=graph.name,
            graph_digest=graph.digest if store else "",
            source=dict(source or {}),
            parent=None,
            fork_step=-1,
            fork_seq=0,
            created_at=now,
            created_by=actor,
            owner=owner,
        )
        if store:
            info = replace(info, facts_hash=facts_hash(info))
        link = chained(b"", info.facts_hash)
        cursor = Cursor(
            thread_id=thread_id,
            last_record_hash=link,
            checkpoint_hash=link,
            ledger_hash=link,
            limits=graph.limits,
            context=known,
            position=f"node:{graph.entry}",
            created_at=now,
            updated_at=now,
        )
        state = LiveState.initial(graph.channels)
        return cls(graph, store, info, cursor, state, agents=agents, sink=sink, clock=clock, signer=signer)

    @classmethod
    def recorded(
        cls, store: Store, thread_id: str, *, with_state: bool = True, signer: Signer | None = None
    ) -> Session:
        """Open a thread of a store on the graph in its log: it can be viewed, but not run.

        Raises:
            UnknownThread, LogCorrupt.
        """
        info, cursor = checked_cursor(store, thread_id)
        graph = recorded_graph(store, info, cursor)
        return cls.open(graph, store, thread_id, with_state=with_state, signer=signer)

    @classmethod
    def open(
        cls,
        graph: CompiledGraph,
        store: Store,
        thread_id: str,
        *,
        agents: Mapping[str, Any] | None = None,
        sink: Sink | None = None,
        clock: Clock | None = None,
        with_state: bool = True,
        signer: Signer | None = None,
    ) -> Session:
        """Open a thread of a store; without its state if only its position is needed.

        Raises:
            UnknownThread, LogCorrupt.
        """
        info, cursor = checked_cursor(store, thread_id)
        cursor = with_frozen_inputs(cursor)
        state = LiveState({}, {})
        session = cls(graph, store, info, cursor, state, agents=agents, sink=sink, clock=clock, signer=signer)
        if with_state:
            session.load_state()
        return session

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.info.thread_id

    @property
    def is_held(self) -> bool:
        """Whether it is held for writing, with a lease."""
        return self._lease is not None

    @property
    def declared(self) -> GraphInfo:
        """The graph as data."""
        return self.graph.info

    @property
    def values(self) -> Mapping[str, Any]:
        """The newest value of each channel."""
        return self.state.values

    @contextmanager
    def writing(self, first: Cursor | None = None) -> Iterator[bool]:
        """Hold the thread for writing, after loading what others have written.

        Args:
            first: a cursor to write in the transaction that acquires the lease. The context returns whether
                it was written; it is if nobody else has written since.

        Raises:
            ThreadBusy: another run or process holds it.
        """
        if self._lease is not None:
            raise ThreadBusy(f"thread {self.thread_id!r} is running", "pause it first")
        if self.store is None:
            yield False
            return
        try:
            taken = first is not None and self._take_with(self.store, first)
            # A new thread is made by its first commit, so a refused input makes none.
            if not taken and (self.exists or self.store.info(self.thread_id) is not None):
                self._acquire(self.store)
            yield taken
        finally:
            lease, self._lease = self._lease, None
            if lease:
                # A store that can't be written now will notice that the lease has expired.
                with suppress(StoreUnusable):
                    self.store.release(self.thread_id, lease.token)

    def _acquire(self, store: Store) -> None:
        now = self.clock()
        lease = store.new_lease(now)
        dead = store.acquire(self.thread_id, lease, now)
        try:
            moved = self.reload()
        except BaseException:
            # The lease is for another thread of this name, or the store has failed: nobody else releases it.
            with suppress(StoreUnusable):
                store.release(self.thread_id, lease.token)
            raise
        self._lease = lease
        if moved and self.on_moved:
            self.on_moved()
        if dead is not None:
            self._note_takeover(dead)

    def _take_with(self, store: Store, first: Cursor) -> bool:
        try:
            self.commit_cursor(first, takes=store.new_lease(self.clock()))
        except (StaleWriter, ThreadBusy):
            return False  # somebody holds it, or has written: acquiring the lease alone will show that
        return True

    def recover(self) -> None:
        """Take over a thread that is recorded as running although its process has died.

        A living process keeps it.
        """
        if self.exists and self.cursor.status == "running":
            with suppress(ThreadBusy), self.writing():
                pass

    @contextmanager
    def keeping_lease(self) -> Iterator[None]:
        """Keep renewing the lease from a background thread: a node may block this one for hours."""
        if self._lease is None or self.store is None:
            yield
            return
        keeper = _keepers.setdefault(self.store, _LeaseKeeper())
        keeper.add(self)
        try:
            yield
        finally:
            keeper.remove(self)

    def renew_lease(self) -> None:
        """Renew the lease, if it is held, and those of child threads."""
        lease = self._lease
        if self.store and lease:
            self.store.renew(self.thread_id, lease.token, self.clock() + LEASE_TIME)
            for child in list(self.children.values()):
                child.renew_lease()

    def reload(self) -> bool:
        """Load what another writer has committed since; return whether there was anything.

        Raises:
            UnknownThread: this thread was deleted, and another one has its name.
        """
        cursor = self.store.cursor(self.thread_id) if self.store else None
        if cursor is not None and self.store and self.store.facts(self.thread_id) != self.info.birth:
            raise other_thread(self.thread_id)
        if cursor is None or self.store is None or cursor.version == self.cursor.version:
            return False
        _, cursor = checked_cursor(self.store, self.thread_id)
        changed = logged_digest(self.info, cursor) != logged_digest(self.info, self.cursor)
        self.cursor = self._stored = with_frozen_inputs(cursor)
        self.calls = None
        if changed and self.store and isinstance(self.graph, RecordedGraph):
            self.graph = recorded_graph(self.store, self.info, cursor)
        apply_settings(self.agents, cursor.agents)
        self.load_state()
        return True

    def emit(self, event: Event) -> None:
        """Send an event to the sink."""
        if self.sink:
            self.sink(event)

    def commit_step(
        self,
        cursor: Cursor,
        changes: Sequence[Change],
        step: StepFacts,
        *,
        state: LiveState | None = None,
        ledger: Sequence[LedgerEntry] = (),
        pauses: bool = False,
        at: int | None = None,
    ) -> None:
        """Write one step: its records, its checkpoint and the given cursor, in one transaction.

        Args:
            cursor: the cursor after the step, except head, seq and hashes, which are set here.
            state: the state after the changes, if the caller has it already.
            pauses: the run ends with it, and the thread is paused; the checkpoint still says "running".
            at: microseconds since the epoch, if the caller has just read the clock; now by default.
        """
        now, before = self.clock() if at is None else at, self.cursor
        if step.source == "input" and cursor.invocation != before.invocation:
            self._given = {change.channel.name: change.update for change in reversed(changes)}
        if self.graph.termination is not None:
            self.note_changes(changes, step.source, cursor)
        other = self.state.other
        state = state or after(self.state, changes)
        if cursor.pending:
            ledger = self._with_request_hashes(cursor.pending, ledger, now)
        if other:
            ledger = journal.with_channels(ledger, cursor, before.head + 1, other, now)
        if self.store and not logged_digest(self.info, cursor):  # a thread that was made by `save`
            entry = journal.graph_entry(journal.after_entries(cursor, ledger), "", self.graph.digest, at=now)
            cursor, ledger = replace(cursor, graph=self.graph.digest), (*ledger, entry)
        if self.store is None and self.sink is None:  # without a store, nobody will read a checkpoint
            self.state = state
            self._write(
                self._next_cursor(_is_paused(cursor) if pauses else cursor, now, ledger, steps=1), ledger
            )
            return
        if ledger:
            cursor = journal.after_entries(cursor, ledger)
        records = records_of(step, cursor, changes, now, follows=other is None) if self.store else ()
        checkpoint = checkpoint_of(
            step,
            cursor,
            state,
            len(records),
            parent_thread=self._parent_thread(),
            ledger_hash=cursor.ledger_hash,
            at=now,
        )
        link = records[-1].record_hash if records else cursor.last_record_hash
        snapshot, log_bytes, log_records, snapshot_bytes = None, 0, 0, 0
        if self.store:
            # Defaults are in no record, so the first step stores the whole state.
            always = before.head < 0 or other is not None
            added = journal.log_size(changes, records)
            snapshot, log_bytes, log_records, snapshot_bytes = snapshot_of(
                cursor, added, len(records), state.values, always=always
            )
        before_step = cursor.checkpoint_hash
        cursor = replace(
            _is_paused(cursor) if pauses else cursor,
            version=before.version + 1,
            updated_at=now,
            head=checkpoint.step,
            last_seq=checkpoint.last_seq,
            last_record_hash=link,
            log_bytes=log_bytes,
            log_records=log_records,
            snapshot_bytes=snapshot_bytes,
        )
        if self.store:
            # Nothing else refers to them yet; a copy of so many fields would take longer than making them.
            msgspec.structs.force_setattr(checkpoint, "cursor_hash", cursor_hash(cursor))
            own = checkpoint_hash(checkpoint, before_step, link)
            msgspec.structs.force_setattr(checkpoint, "checkpoint_hash", own)
            msgspec.structs.force_setattr(cursor, "checkpoint_hash", own)
        self._write(
            cursor,
            ledger,
            records=records,
            checkpoint=checkpoint,
            snapshot=snapshot,
            last=pauses,
        )
        self.state, self.calls = state, None
        if self.sink:
            self.sink(StepCommitted(shown_step(checkpoint), self._outcome(changes, step)))
            self._warn(before)

    def commit_cursor(
        self,
        cursor: Cursor,
        ledger: Sequence[LedgerEntry] = (),
        *,
        last: bool = False,
        takes: Lease | None = None,
    ) -> None:
        """Write a change of the cursor, and entries of the ledger, without a step.

        Args:
            last: nothing more is written for now, so the lease is released in the same transaction.
            takes: a lease that is not held yet and is acquired in the same transaction.
        """
        before, now = self.cursor, self.clock()
        ledger = self._with_cursor_hash(cursor, self._with_request_hashes(cursor.pending, ledger, now), now)
        self._write(self._next_cursor(cursor, now, ledger), ledger, last=last, takes=takes)
        if self.sink:
            self.sink(ProgressChanged(self.progress))
            self._warn(before)

    def _outcome(self, changes: Sequence[Change], step: StepFacts) -> StepOutcome:
        outcome = CommittedOutcome(changes, step, self.cursor, self._peek_next(), self.limits)
        for change in changes:
            if change.channel.visibility == "private":  # the sink's events have no private values
                return KnownOutcome(outcome.updates, outcome.progress)
        return outcome

    def _warn(self, before: Cursor) -> None:
        limits = self.limits
        if limits != UNLIMITED:
            for alert in limits_near(before, self.cursor, limits):
                self.emit(alert)

    def call_log(self, node: str) -> CallLog:
        """Return the calls that the current or next run of `node` has completed so far."""
        run = node, self.cursor.invocation, self.cursor.iteration
        with self.committing, self._noting_store_failure():
            if self.calls is None or self.calls[0] != run:
                known = [record for _, record in self._recorded_calls(node)]
                self.calls = run, CallLog(known, self._record_call if self.store else None)
            log = self.calls[1]
        log.open()
        return log

    def uncounted_calls(self, node: str) -> list[CallRecord]:
        """Return recorded calls of a run of `node` that are in no total: their process died before that."""
        counted = self.cursor.counted
        return [record for n, record in self._recorded_calls(node) if n > counted]

    def end_calls(self) -> None:
        """Wait until the completed calls of a node that has ended are committed, and record no more."""
        if self.calls is not None:
            self.calls[1].close()

    def _recorded_calls(self, node: str) -> list[tuple[int, CallRecord]]:
        first = self.cursor.first_call
        if self.store is None or not first:
            return []
        return calls_since(decisions(self.store, self.thread_id, first - 1, calls=True), self.cursor, node)

    @contextmanager
    def _noting_store_failure(self) -> Iterator[None]:
        """Note an error of the store in a node's call: the error passes through the node's own code."""
        try:
            yield
        except (ThreadBusy, *STORE_FAILURES) as error:
            self.store_failure = error
            raise

    def _record_call(self, record: CallRecord) -> None:
        """Commit a call; may be called from any thread while the node runs."""
        with self.committing, self._noting_store_failure():
            cursor, now = self.cursor, self.clock()
            entry = journal.ledger_entry(cursor, CALL, at=now, data=as_data(record))
            if not cursor.first_call:
                cursor = replace(cursor, first_call=entry.n)
            ledger = self._with_cursor_hash(cursor, [entry], now)
            self._write(self._next_cursor(cursor, now, ledger), ledger)

    def _with_cursor_hash(
        self, cursor: Cursor, ledger: Sequence[LedgerEntry], now: int
    ) -> Sequence[LedgerEntry]:
        """Return the entries of a commit without a step; the last one keeps the hash of the cursor.

        If there are none, an entry is added, unless the hash stays the same.
        """
        if self.store is None:
            return ledger
        if not ledger:
            if self.exists and chained_part(cursor) == chained_part(self._stored):
                return ledger
            ledger = [journal.ledger_entry(cursor, PROGRESS, at=now)]
        return [*ledger[:-1], journal.with_cursor(ledger[-1], cursor)]

    def _written_before(self, cursor: Cursor) -> WrittenChannels:
        written = super()._written_before(cursor)
        if self.store is None:
            return written
        first = first_step_of_invocation(self.store, self.thread_id, self.cursor.head)
        point = self.store.checkpoint(self.thread_id, first)
        if point is None or point.invocation != cursor.invocation:
            return written
        lengths = {}
        if first:
            defaults = {name: bound.default for name, bound in self.graph.channels.items()}
            before = state_at(self.store, self.thread_id, first - 1, defaults)
            lengths = {name: length_of(value) for name, value in before.items()}
        for effect in self.store.effects(self.thread_id, first, self.cursor.head):
            length = lengths.get(effect.channel, 0)
            _, now = _moved_entry(0, length, effect)
            lengths[effect.channel] = now
            if effect.step == first and point.source == "input":
                written.given.add(effect.channel)
            else:
                reducer = logged_reducer(effect.reducer) if effect.op == "reduce" else None
                written.note(effect.channel, reducer, length, now)
        return written

    def report_unknown_price(self, use: ModelUse) -> None:
        """Report a model call with an unknown price, once for the thread, if its cost is limited."""
        limits = self.limits
        if use.cost is not None or limits.max_cost_usd is None or not self.cursor.cost_known:
            return
        if self._reported_price:
            return
        self._reported_price = True
        stops = limits.on_unknown_price == "stop"
        log.warning("the price of %s is unknown, so max_cost_usd can't be enforced", use.model)
        if self.sink:
            node = self.cursor.next_node or ""
            self.emit(PriceUnknown(node, use.agent, use.model, limits.max_cost_usd, stops))

    def first_input(self, channel: str) -> Any:
        """Return the first entry of this invocation's input, or of the newest input for the channel.

        It is the entry as it is in the channel now; if the channel has dropped it, it is the entry as it was
        given, from the log. None without any.
        """
        if self.store is None:
            return self._given.get(channel)
        key, head = (self.cursor.invocation, channel), self.cursor.head
        with self._noting_store_failure():
            if known := self._first_inputs.get(key):
                known = known.follow(self.store, self.thread_id, channel, head)
            else:
                defaults = {name: bound.default for name, bound in self.graph.channels.items()}
                known = first_input(self.store, self.thread_id, channel, head, defaults)
        self._first_inputs = {**self._first_inputs, key: known}
        return known.now(self.state.values.get(channel)) if known else None

    def _with_request_hashes(
        self, pending: Sequence[Request], ledger: Sequence[LedgerEntry], now: int
    ) -> Sequence[LedgerEntry]:
        """Return the entries of a commit.

        The newest one about each pending request has the request's hash.
        """
        known = self.cursor.pending
        if not pending or tuple(pending) == known:
            return ledger
        ids = {request.id for request in known}
        hashes = {pending_hash(request) for request in known} | {entry.pending_hash for entry in ledger}
        entries = list(ledger)
        for request in pending:
            at = journal.after_entries(self.cursor, entries)
            if pending_hash(request) in hashes:
                continue
            if request.id in ids:
                entries.append(
                    journal.ledger_entry(at, "rebound", at=now, step=request.step, request=request)
                )
            else:
                entries.append(journal.request_entry(at, request, now))
        return entries

    def _next_cursor(self, cursor: Cursor, now: int, ledger: Sequence[LedgerEntry], steps: int = 0) -> Cursor:
        """Return the cursor to write next, after entries of the ledger and this many steps."""
        cursor = journal.after_entries(cursor, ledger) if ledger else cursor
        head = cursor.head + steps
        return replace(cursor, version=self.cursor.version + 1, updated_at=now, head=head)

    def _write(
        self,
        cursor: Cursor,
        ledger: Sequence[LedgerEntry],
        *,
        records: tuple[UpdateRecord, ...] = (),
        checkpoint: Checkpoint | None = None,
        snapshot: bytes | None = None,
        last: bool = False,
        takes: Lease | None = None,
    ) -> None:
        if self.store:
            lease = takes or self._lease
            new = lease is None and not self.exists
            # The log gets the graph as data at its first commit and after each change.
            kept = bool(self.info.graph_digest) if new else cursor.graph != self.cursor.graph
            commit = Commit(
                cursor=cursor,
                expected_version=self.cursor.version,
                lease_token=lease.token if lease else "",
                records=records,
                checkpoint=checkpoint,
                snapshot=snapshot,
                ledger=tuple(ledger),
                graph=self.graph.info.stored if kept else None,
                gives_back=last and lease is not None,
                takes=takes,
                birth=self.info.birth,
            )
            journal.check_readable(commit, self.cursor)
            if new:
                self.store.create_thread(self.info, self.cursor, commit)
                self.cursor = self._stored = cursor
                self._acquire(self.store)
            else:
                self.stamp = self.store.commit(self.thread_id, commit)
                self._lease = None if last else lease
        self.cursor = self._stored = cursor
        login = self.store.login if self.store else ""
        for entry in ledger:
            if entry.kind in NO_DECISIONS:
                continue
            self.emit(
                LedgerWritten(shown_entry(msgspec.structs.replace(entry, login=login) if login else entry))
            )

    def _parent_thread(self) -> str:
        shares = self.info.parent is not None and self.cursor.head == self.info.fork_step
        return self.info.parent if shares and self.info.parent else self.thread_id

    def load_state(self) -> None:
        """Rebuild the state at the cursor from the log; raises `LogCorrupt`."""
        if self.cursor.head < 0 or self.store is None:
            self.state = LiveState.initial(self.graph.channels)
        else:
            self.state = live_state(self.store, self.thread_id, self.cursor.head, self.graph.channels)

    def _note_takeover(self, dead: Lease) -> None:
        entry = journal.takeover_entry(self.cursor, dead, self.clock())
        self.notice = takeover_notice(entry.note or "")
        cursor = self.cursor
        if cursor.status == "running":
            cursor = replace(cursor, status="waiting", reason="paused", attempt=cursor.attempt + 1)
        self.commit_cursor(cursor, [entry])


def _is_paused(cursor: Cursor) -> Cursor:
    return replace(cursor, status="waiting", reason="paused")
