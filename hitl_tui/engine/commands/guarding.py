"""Refuses commands that would place a thread after a gate that has no answer.

An edit or a fork as a node (`as_node`) says that this node has run. A node runs once the gates before it are
answered, so such a command is refused while one of them has no answer: a gate on every path from START to
that node, one on every path from where the thread is, or a question that waits there and is not asked again.
What a node asks while it runs is known once it has asked, from the ledger of the thread or of one that it was
forked from. The gate after the node itself is asked when the thread continues.

This is about requests that name who may answer them, or how. What anyone may answer, anyone may also pass:
the edit is recorded with a name, as an answer is. LangGraph's requests name nobody, so each of them counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hitl_tui.engine.graph.description import GateInfo, GraphInfo
from hitl_tui.engine.graph.guards import (
    always_passed,
    guards_ahead,
    guards_of,
    is_asked_again,
    names_people,
    passed_from,
    who_may_answer,
)
from hitl_tui.engine.log.outcomes import PassedGate
from hitl_tui.engine.log.records import RAN, START, LedgerEntry
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.interrupts import make_request
from hitl_tui.engine.thread.logged import decisions, logged_digest
from hitl_tui.engine.thread.session import Session, first_step_of_invocation
from hitl_tui.errors import GateUnanswered

SETTLES: Final = ("answer", "timeout")
_CLOSES: Final = ("withdrawn", "reopened")
_PAGE: Final = 256

Names = Callable[[str], Iterable[str]]
"""Returns the nodes that a checkpoint names; LangGraph names several if they ran at once."""


class ForkPoint(NamedTuple):
    """The step and position at which a new fork starts.

    Attributes:
        decided: the decisions of the parent that it shares.
        position: where it would continue from without `as_node`.
    """

    parent: str
    step: int
    decided: Sequence[LedgerEntry]
    position: str


def refuse_skipping(
    session: Session,
    as_node: str,
    *,
    state: LiveState,
    passed: Sequence[PassedGate],
    fork: ForkPoint | None = None,
) -> None:
    """Refuse to place a thread after a node as long as a gate on the way there has no answer.

    Args:
        state: as it will be.
        passed: the answers to gates that no node has run on yet.
        fork: the place of a fork that is being made.

    Raises:
        GateUnanswered: names the question and who may answer it; nothing was changed.
    """
    if session.store is None or as_node == START:
        return
    guarded = _Guarded(session, session.store, as_node, state=state, passed=passed, fork=fork)
    # The graph that the thread has run on counts too: an edit alone does not give the thread another one.
    for graph in (session.graph.info, *known_graph(session, guarded.thread_id)):
        guarded.refuse_questions(graph)
        guarded.refuse_gates(graph)


class _Guarded:
    """The gates and requests of a thread that a command is about to place after a node."""

    def __init__(
        self,
        session: Session,
        store: Store,
        as_node: str,
        *,
        state: LiveState,
        passed: Sequence[PassedGate],
        fork: ForkPoint | None,
    ) -> None:
        self._session = session
        self._as_node = as_node
        self._state = state
        self._passed = passed
        cursor = session.cursor
        self.thread_id, self._head = (fork.parent, fork.step) if fork else (session.thread_id, cursor.head)
        self._position = fork.position if fork else cursor.position
        self._ledger = decisions(store, self.thread_id)
        self._decided = self._ledger if fork is None else fork.decided
        self._asking = asking_nodes([*ledgers_of_parents(store, self.thread_id), *self._ledger])
        self._runs = Runs(store, self.thread_id, until=self._head)
        self._first = first_step_of_invocation(store, self.thread_id, self._head)
        self._last = last_node(store, self.thread_id, self._head, self._decided)

    def refuse_questions(self, graph: GraphInfo) -> None:
        """Refuse to pass a question that waits, or that a node on the way has asked before."""
        ran_after, command = self._runs.ran_after, f"as_node={self._as_node!r}"
        here = range(self._runs.newest(), self._head + 1)
        for entry in open_questions(graph, self._ledger, self._as_node, ran_after, here=here):
            raise refusal_of_question(command, entry)
        for node in sorted(always_passed(graph, self._as_node)):
            if node in self._asking and not ran_after(node, self._first - 1):
                raise refusal_of_question(command, self._asking[node])
        for node in sorted(
            () if self._as_node == self._last else passed_from(graph, self._position, self._as_node)
        ):
            if node in self._asking:
                raise refusal_of_question(command, self._asking[node])

    def refuse_gates(self, graph: GraphInfo) -> None:
        """Refuse to pass a gate that has no answer, or one about something else."""
        for gate, inside in guards_of(graph, self._as_node):
            if inside:
                if not self._runs.ran_after(inside, self._first - 1):
                    raise self._refusal(gate, inside)
            elif not _was_answered(gate, self._decided, self._first):
                raise self._refusal(gate)
            elif not _still_holds(self._session, gate, self._state, self._passed):
                raise self._refusal(gate, why="was answered about something else")
        for gate, inside in guards_ahead(graph, self._last, self._position, self._as_node):
            if inside or not self._has_passed(gate):
                raise self._refusal(gate, inside, why="has no answer since the thread came here")

    def _has_passed(self, gate: GateInfo) -> bool:
        """Whether a gate at the thread's position has been answered, and no node has run since."""
        is_here = gate.node == self._last if gate.when == "after" else self._position == f"node:{gate.node}"
        return is_here and (gate.node, gate.when) in [(each.node, each.when) for each in self._passed]

    def _refusal(self, gate: GateInfo, inside: str = "", why: str = "has no answer") -> GateUnanswered:
        return _refusal_of_gate(self._as_node, gate, inside, why)


def ledgers_of_parents(store: Store, thread_id: str) -> list[LedgerEntry]:
    """Return all decisions of the thread's parents that the store has."""
    parents = dict.fromkeys(part.thread_id for part in store.parts(thread_id) if part.thread_id != thread_id)
    known: list[LedgerEntry] = []
    for parent in parents:
        known += decisions(store, parent)
    return known


def asking_nodes(ledger: Iterable[LedgerEntry]) -> dict[str, LedgerEntry]:
    """Return the nodes that have asked certain people themselves, each with its newest request."""
    asking: dict[str, LedgerEntry] = {}
    for entry in ledger:
        data = data_of(entry)
        is_own = entry.kind == "request" and data.get("when") == "inside" and not data.get("policy")
        if is_own and names_people_of(data):
            asking[str(data.get("node", ""))] = entry
    return asking


def last_node(store: Store, thread_id: str, head: int, ledger: Sequence[LedgerEntry]) -> str:
    """Return the node that ran last up to a step, or as which a later edit or fork was made; "" for none."""
    placed = {
        (entry.step or 0, entry.kind == "fork"): str(data_of(entry)["as_node"])
        for entry in ledger
        if entry.kind in ("update_state", "fork") and data_of(entry).get("as_node")
    }
    invocation: int | None = None
    for step in range(head, -1, -1):
        point = store.checkpoint(thread_id, step)
        if (step, True) in placed:
            return placed[step, True]
        if point is None or invocation not in (None, point.invocation) or point.source == "rollback":
            return ""
        if (step, False) in placed:
            return placed[step, False]
        if point.source in RAN:
            return point.node
        invocation = point.invocation
    return ""


def known_graph(session: Session, thread_id: str) -> list[GraphInfo]:
    """Return the graph on which the thread ran by its log; none if that is the session's graph."""
    store = session.store
    found = (store.info(thread_id), store.cursor(thread_id)) if store else (None, None)
    info, cursor = found
    digest = logged_digest(info, cursor) if info and cursor else ""
    stored = store.graph(digest) if store and digest and digest != session.graph.digest else None
    return [GraphInfo.of(stored)] if stored else []


class Runs:
    """Reads from a thread's newest step backwards which nodes have run, and when.

    Args:
        names: the nodes that a checkpoint names.
        until: the newest step that counts, None for the thread's newest.
    """

    def __init__(
        self,
        store: Store,
        thread_id: str,
        names: Names = lambda node: (node,),
        *,
        until: int | None = None,
    ) -> None:
        self._store = store
        self._thread_id = thread_id
        self._names = names
        self._newest: dict[str, int] = {}
        self._before = None if until is None else until + 1
        self._done = False

    def ran_after(self, node: str, step: int) -> bool:
        """Whether a node has run in a later step than the given one."""
        while not self._done and node not in self._newest and (self._before is None or self._before > step):
            self._read_page()
        return self._newest.get(node, -1) > step

    def newest(self) -> int:
        """Return the newest step made by a node; -1 for none."""
        while not self._done and not self._newest:
            self._read_page()
        return max(self._newest.values(), default=-1)

    def _read_page(self) -> None:
        points = self._store.checkpoints(self._thread_id, self._before, _PAGE)
        for point in points:
            for name in self._names(point.node) if point.source in RAN else ():
                self._newest.setdefault(name, point.step)
        self._done = not points
        self._before = points[-1].step if points else self._before


def open_questions(
    graph: GraphInfo,
    ledger: Sequence[LedgerEntry],
    as_node: str,
    ran_after: Callable[[str, int], bool],
    *,
    here: range,
    of_anyone: bool = False,
) -> Iterator[LedgerEntry]:
    """Yield the unanswered requests that a thread would pass if it were placed after a node.

    These are the requests that nodes on every path to it have made, gates that the graph no longer has,
    and requests at the position of the thread that will not be asked again. Plain breakpoints and taint
    policies only ask whether a node may run, so they are left out.

    Args:
        ledger: all decisions of the thread.
        ran_after: whether a node has run in a later step than a given one, so that its questions are over.
        here: the steps from the newest one that a node has made; what was asked at one of them may wait.
        of_anyone: also the questions that anyone may answer.
    """
    on_the_way = always_passed(graph, as_node)
    nodes, gates = {node.name for node in graph.nodes}, {(gate.node, gate.when) for gate in graph.gates}
    closed = {entry.request_id for entry in ledger if entry.kind in _CLOSES}
    asked_later: set[tuple[str, Any]] = set()
    for entry in reversed(ledger):
        data = data_of(entry)
        if entry.kind != "request" or data.get("breakpoint") or data.get("policy"):
            continue
        node = str(data.get("node", ""))
        place = node, data.get("when")
        superseded = entry.request_id in closed and place in asked_later
        asked_later.add(place)
        if superseded or not (of_anyone or names_people_of(data)):
            continue
        step = -1 if entry.step is None else entry.step
        when = str(data.get("when"))
        is_elsewhere = (node in nodes and node not in on_the_way) or (node, when) in gates
        if is_elsewhere and (step not in here or is_asked_again(graph, as_node, node, when)):
            continue
        if not is_settled(ledger, entry.request_id) and not ran_after(node, step):
            yield entry


def data_of(entry: LedgerEntry) -> Mapping[str, Any]:
    """Return the data of a decision; empty if it is no mapping."""
    return entry.data if isinstance(entry.data, Mapping) else {}


def is_settled(ledger: Sequence[LedgerEntry], request_id: str | None) -> bool:
    """Whether a request was answered, by its deadline too; False if its deadline failed the thread."""
    return any(
        entry.kind in SETTLES and entry.request_id == request_id and "answer" in data_of(entry)
        for entry in ledger
    )


def _was_answered(gate: GateInfo, ledger: Sequence[LedgerEntry], first: int) -> bool:
    """Whether the newest request of a gate since a step was answered."""
    for entry in reversed(ledger):
        if entry.kind != "request" or (entry.step or 0) < first:
            continue
        data = data_of(entry)
        if (data.get("node"), data.get("when")) == (gate.node, gate.when) and not data.get("policy"):
            return is_settled(ledger, entry.request_id)
    return False


def _still_holds(session: Session, gate: GateInfo, state: LiveState, passed: Sequence[PassedGate]) -> bool:
    """Whether an answer that no node has run on yet matches what the gate would ask now."""
    held = next((each for each in passed if (each.node, each.when) == (gate.node, gate.when)), None)
    gates = session.graph.before if gate.when == "before" else session.graph.after
    if held is None or gate.node not in gates:
        return True
    return held.holds == make_request(session, gate.node, gate.when, state=state).request_hash


def _refusal_of_gate(
    as_node: str, gate: GateInfo, inside: str = "", why: str = "has no answer"
) -> GateUnanswered:
    who = who_may_answer(
        gate.reviewers, gate.quorum, gate.logins, signed=gate.signed, four_eyes=gate.four_eyes
    )
    where = f"{gate.when} {gate.node}, inside {inside}" if inside else f"{gate.when} {gate.node}"
    asks = f"; as_node={gate.node!r} asks it" if gate.when == "after" and not inside else ""
    return GateUnanswered(
        f"as_node={as_node!r} would pass the gate {gate.title!r} ({where}), which {why}",
        f"{who}{asks}",
    )


def refusal_of_question(command: str, asked: LedgerEntry) -> GateUnanswered:
    """Return the error for a command that would pass a request without an answer.

    `command` is such as "as_node='check'".

    Args:
        command: what it is, as "as_node='check'".
    """
    data = data_of(asked)
    again = str(data.get("node")) if data.get("when") == "after" else START
    return GateUnanswered(
        f"{command} would pass the question {asked.note or ''!r} ({data.get('when')} {data.get('node')}), "
        "which has no answer",
        f"{_Terms.of(data).who}; as_node={again!r} {'asks it' if again != START else 'begins'} again",
    )


class _Terms(NamedTuple):
    """Who may answer a request, and how, as the ledger has it."""

    reviewers: tuple[str, ...]
    quorum: int
    logins: tuple[str, ...]
    signed: bool
    four_eyes: bool

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> _Terms:
        quorum = data.get("quorum")
        return cls(
            _names(data, "reviewers"),
            quorum if isinstance(quorum, int) else 1,
            _names(data, "logins"),
            bool(data.get("signed")),
            bool(data.get("four_eyes")),
        )

    @property
    def who(self) -> str:
        return who_may_answer(
            self.reviewers, self.quorum, self.logins, signed=self.signed, four_eyes=self.four_eyes
        )


def names_people_of(asked: Mapping[str, Any]) -> bool:
    """Whether the data of a request says who may answer it, or how."""
    terms = _Terms.of(asked)
    return names_people(
        terms.reviewers, terms.quorum, terms.logins, signed=terms.signed, four_eyes=terms.four_eyes
    )


def _names(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    given = data.get(field)
    return tuple(map(str, given)) if isinstance(given, list) else ()
