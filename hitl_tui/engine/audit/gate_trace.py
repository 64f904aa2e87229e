"""Follows a thread past its gates for `verify --strict`: no step after a gate without an answer.

The gates are those of the graphs that the log holds as data; nothing is built.

Specified in docs/spec/threads.md and docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import msgspec

from hitl_tui.engine.commands.guarding import asking_nodes, ledgers_of_parents, open_questions
from hitl_tui.engine.graph.description import GateInfo, GraphInfo, NodeInfo
from hitl_tui.engine.graph.guards import always_passed, guards_ahead, guards_of, passed_from
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.outcomes import HASHED
from hitl_tui.engine.log.records import RAN, ROLLBACK, START, Checkpoint, Cursor, LedgerEntry, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import Part
from hitl_tui.engine.state.canonical import equal, item_hash, show_hash
from hitl_tui.engine.thread.authors import Authors, authors_by, is_written
from hitl_tui.engine.thread.binding import logged_hash
from hitl_tui.engine.thread.second_readings import READ_AGAIN, second_readings
from hitl_tui.errors import HitlError, LogCorrupt

_BINDS = ("request", "rebound", "vote", "handed_over", "escalated")
_SETTLES = ("answer", "timeout")
# After these, requests from before no longer wait.
_DROPS = ("failed", "cancel", "rollback", "fork")
"""After these, a node's earlier requests no longer wait: it asks again, or never runs again."""


class GateFinding(NamedTuple):
    """Why a thread should not have continued; `n` is the number of the decision, if it is about one."""

    n: int | None
    field: str
    expected: Any
    actual: Any


class _Question(NamedTuple):
    """A request that must be answered before a step, and what counts as an answer.

    Args:
        choices: the ids of the answers, empty for any.
        on_timeout: the answer when the deadline has passed, None for none.
        request: the id of the request, if only this one counts.
        about: the channels whose values an answer is about.
    """

    node: str
    when: Literal["before", "after", "inside"]
    title: str
    policy: str = ""
    choices: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    escalate_to: tuple[str, ...] = ()
    quorum: int = 1
    one_account: bool = False
    logins: tuple[str, ...] = ()
    signed: bool = False
    four_eyes: bool = False
    on_timeout: Any = None
    request: str | None = None
    about: frozenset[str] = frozenset()

    @classmethod
    def of_gate(cls, gate: GateInfo, node: NodeInfo | None = None) -> _Question:
        reads = node.reads if node else ()
        named = (gate.subject, *reads) if gate.subject else reads
        return cls(
            gate.node,
            gate.when,
            gate.title,
            "",
            tuple(choice.id for choice in gate.choices),
            gate.reviewers,
            gate.escalate_to,
            gate.quorum,
            gate.one_account,
            gate.logins,
            gate.signed,
            gate.four_eyes,
            gate.on_timeout if gate.deadline is not None and gate.on_timeout else None,
            about=frozenset(name for name in named if name != "*" and "." not in name),
        )

    @classmethod
    def of_node(cls, node: str, asked: LedgerEntry, data: Mapping[str, Any]) -> _Question:
        """Make the question of a node itself, which is only known from its request."""
        quorum = data.get("quorum")
        return cls(
            node,
            "inside",
            asked.note or "",
            reviewers=_names(data, "reviewers"),
            escalate_to=_names(data, "escalate_to"),
            quorum=quorum if isinstance(quorum, int) else 1,
            one_account=bool(data.get("one_account")),
            logins=_names(data, "logins"),
            signed=bool(data.get("signed")),
            four_eyes=bool(data.get("four_eyes")),
            on_timeout=data.get("on_timeout"),
            request=asked.request_id,
        )

    @property
    def expected(self) -> str:
        return f"an answer to {self.title!r} ({self.when} {self.node})"


class _Graphs:
    """The graph on which a thread ran at any of its decisions, if the store has it."""

    def __init__(self, store: Store, parts: Sequence[Part], ledger: Sequence[LedgerEntry]) -> None:
        self._store = store
        self._known: dict[str, GraphInfo | None] = {"": None}
        self._changes = sorted(self._graph_changes(parts, ledger), key=lambda change: change[0])

    def _graph_changes(
        self, parts: Sequence[Part], ledger: Sequence[LedgerEntry]
    ) -> Iterator[tuple[int, str]]:
        for place, part in enumerate(parts):
            info = self._store.info(part.thread_id)
            first = part.after_entry + 1 if place else 0
            if info is not None and info.parent is None and info.fork_step >= 0:
                # Shared decisions are those of another thread, which is not in this store.
                forks = [
                    entry.n
                    for entry in ledger
                    if entry.kind == "fork" and _data(entry).get("step") == info.fork_step
                ]
                first = max(forks, default=first)
            yield first, info.graph_digest if info else ""
        for entry in ledger:
            if entry.kind == "graph":
                yield entry.n, str(_data(entry).get("is", ""))

    def at(self, n: int) -> GraphInfo | None:
        """Return the graph after `n` decisions, None if it is not known."""
        digest = ""
        for since, change in self._changes:
            if since > n:
                break
            digest = change
        if digest not in self._known:
            self._known[digest] = self._read(digest)
        return self._known[digest]

    def _read(self, digest: str) -> GraphInfo | None:
        try:
            stored = self._store.graph(digest)
            return GraphInfo.of(stored) if stored else None
        except LogCorrupt:
            return None  # reported by the check of the thread's facts

    def gate(self, n: int, node: str, when: str) -> GateInfo | None:
        """Return the gate at a node after `n` decisions."""
        graph = self.at(n)
        gates = graph.gates if graph else ()
        return next((gate for gate in gates if (gate.node, gate.when) == (node, when)), None)


class GateTrace:
    """Follows one thread step by step and decision by decision.

    A gate counts if the graph had it when the thread reached it. After a new invocation or a rollback,
    earlier gates no longer count. An edit or a fork as a node (`as_node`) passes every gate on the way to
    that node, so each of them needs its answer, and the gate after the node guards the route from there.

    Args:
        ledger: the thread's ledger, without gaps.
        mirror: whether another engine runs the thread. That one runs several nodes at once, also without an
            edge; its own checkpoints show where the thread was.
    """

    def __init__(
        self, store: Store, parts: Sequence[Part], ledger: Sequence[LedgerEntry], *, mirror: bool = False
    ) -> None:
        self._store = store
        self._mirror = mirror
        self._ledger = ledger
        self._parts = parts
        self._graphs = _Graphs(store, parts, ledger)
        self._of_parents: list[LedgerEntry] | None = None
        self._unreadable: dict[str, GateFinding] = {}
        # The thread's position, as in a cursor.
        self._position = f"route:{START}"
        self._point: Checkpoint | None = None
        # The number of decisions at the newest step, and when the thread came to its position.
        self._n = self._since = 0
        # The node that ran last, and the number of decisions before and with its commit.
        self._ran: tuple[str, int, int] | None = None
        self._known = True
        # The first step of the invocation, the number of decisions before it, and whether all since is known.
        self._first, self._n_before, self._whole = 0, 0, True
        # The newest step of each node.
        self._ran_at: dict[str, int] = {}
        # The hashes of the channels now, and at each answer since the last node ran.
        self._hashes: dict[str, bytes] = {}
        self._answered: dict[int, dict[str, bytes]] = {}
        # Those who gave or edited what the thread asks about, with the number of decisions by then.
        self._authors: list[tuple[int, Authors]] = []

    def lose(self) -> None:
        """Note a gap: requests and answers are known again from the next position on."""
        self._known, self._ran, self._point, self._whole = False, None, None, False

    def follow(self, point: Checkpoint, records: Sequence[UpdateRecord], n: int | None) -> list[GateFinding]:
        """Follow the thread one step further.

        Args:
            n: the number of decisions at the step's commit; None if that is not known.
        """
        if n is None:
            self.lose()
            return []
        before, self._n = self._n, n
        entries = self._ledger[before:n]
        findings: list[GateFinding] = []
        for record in records:
            if record.channel not in self._hashes:
                # Before its first record a channel had its default, also when an answer was given.
                for known in (self._hashes, *self._answered.values()):
                    known.setdefault(record.channel, record.previous_hash)
        if self._point is None or point.invocation != self._point.invocation:
            self._first, self._n_before, self._whole = (
                point.step,
                before,
                self._point is not None or point.step == 0,
            )
        self._note_answers(point, records, entries)
        if is_written(point):
            self._authors.append((n, authors_by([point], entries)))
        if point.source != "fork":
            findings += self._forked(entries)
        if point.source in RAN:
            findings += self._elsewhere(n, f"node:{point.node}")
            findings += self._passed(before + _made_before(point, entries), point.node)
            self._answered = {}
            self._ran, self._since, self._known = (point.node, before, n), n, True
            self._ran_at[point.node] = point.step
        elif _left(point, self._point, entries):
            self._hashes.update({record.channel: record.next_hash for record in records})
            findings += self._place(_acted_as(point, entries), n)
        elif self._known and point.source == "human" and point.decision is not None:
            findings += self._decided(point, records, entries)
        findings += self._elsewhere(n, point.position)
        self._point, self._position = point, point.position
        self._hashes.update({record.channel: record.next_hash for record in records})
        return findings

    def _forked(self, entries: Sequence[LedgerEntry]) -> list[GateFinding]:
        """Follow a fork that was made as a node without changing anything."""
        findings: list[GateFinding] = []
        for entry in entries:
            if entry.kind == "fork" and (as_node := _data(entry).get("as_node")) is not None:
                findings += self._place(str(as_node), entry.n)
        return findings

    def _place(self, as_node: str, n: int) -> list[GateFinding]:
        """Place the thread after a node ("" or START for the entry).

        Return findings for the gates that this passes.

        Args:
            n: the number of decisions at that time.
        """
        is_node = as_node not in ("", START)
        findings: list[GateFinding] = []
        for finding in self._skipped(as_node, n) if is_node and self._whole else ():
            if finding not in findings:
                findings.append(finding)
        self._ran, self._since, self._known = (as_node, n, n) if is_node else None, n, True
        self._position = f"route:{as_node}" if is_node else f"route:{START}"
        return findings

    def _skipped(self, as_node: str, n: int) -> Iterator[GateFinding]:
        """Yield findings for unanswered gates and requests on the way to a node."""
        graph = self._graphs.at(n)
        if graph is None:
            return
        for gate, inside in guards_of(graph, as_node):
            question = _Question.of_gate(gate, graph.node(gate.node))
            if not inside:
                yield from self._unanswered(question, self._n_before, n)
            elif not self._ran_after(inside, self._first - 1):
                yield GateFinding(None, "answer", question.expected, None)
        last, came = self._ran[:2] if self._ran else ("", self._since)
        for gate, inside in guards_ahead(graph, last, self._position, as_node):
            question = _Question.of_gate(gate, graph.node(gate.node))
            if inside:
                yield GateFinding(None, "answer", question.expected, None)
            else:
                since = came if gate.node == last and gate.when == "after" else self._since
                yield from self._unanswered(question, since, n, has_run=False)
        yield from self._skipped_questions(graph, as_node, n)

    def _skipped_questions(self, graph: GraphInfo, as_node: str, n: int) -> Iterator[GateFinding]:
        """Yield findings for requests that waited, and for those that nodes on the way are known to make."""
        decided = self._ledger[:n]
        of_parents = self._parents_decisions(decided[-1]) if decided else []
        asking = asking_nodes([*of_parents, *decided])
        known = self._decided_in_parent(decided[-1]) if decided and decided[-1].kind == "fork" else decided
        last_step = self._point.step if self._point else -1
        here = range(max(self._ran_at.values(), default=-1), last_step + 1)
        asked = list(open_questions(graph, known, as_node, self._ran_after, here=here))
        asked += [
            asking[node]
            for node in sorted(always_passed(graph, as_node) & asking.keys())
            if not self._ran_after(node, self._first - 1)
        ]
        if self._ran is None or self._ran[0] != as_node:
            ahead = passed_from(graph, self._position, as_node)
            asked += [asking[node] for node in sorted(ahead & asking.keys())]
        for entry in asked:
            title, data = entry.note or "", _data(entry)
            expected = f"an answer to {title!r} ({data.get('when')} {data.get('node')})"
            own = entry.n if entry.n <= n and self._ledger[entry.n - 1].hash == entry.hash else None
            yield GateFinding(own, "answer", expected, None)

    def _ran_after(self, node: str, step: int) -> bool:
        return self._ran_at.get(node, -1) > step

    def _parents_decisions(self, before: LedgerEntry) -> list[LedgerEntry]:
        """Return the decisions of the thread's parents, up to the time of one of its own."""
        if self._of_parents is None:
            self._of_parents = []
            with self._noting_unreadable():
                self._of_parents = ledgers_of_parents(self._store, self._parts[-1].thread_id)
        return [entry for entry in self._of_parents if entry.at <= before.at]

    def _decided_in_parent(self, fork: LedgerEntry) -> list[LedgerEntry]:
        """Return the decisions that a parent had when it was forked, including those after the step."""
        parent = str(_data(fork).get("parent"))
        if parent in (part.thread_id for part in self._parts[:-1]):
            with self._noting_unreadable():
                ledger = self._store.ledger(parent, call_data=False)
                return [entry for entry in ledger if entry.at <= fork.at]
        return list(self._ledger[: fork.n])

    @contextmanager
    def _noting_unreadable(self) -> Iterator[None]:
        """Continue without the decisions of a parent that can't be read, and report that at the end."""
        try:
            yield
        except LogCorrupt as error:
            self._unreadable[error.message] = GateFinding(None, "parent's decisions", None, error.message)

    def _note_answers(
        self, point: Checkpoint, records: Sequence[UpdateRecord], entries: Sequence[LedgerEntry]
    ) -> None:
        """Note the channels' hashes at a step's decisions, including what its answer sets."""
        for entry in entries:
            if entry.kind in _SETTLES:
                own = point.source == "human" and point.decision is not None
                written = {record.channel: record.next_hash for record in records} if own else {}
                self._answered[entry.n] = self._hashes | written

    def end(self, cursor: Cursor) -> list[GateFinding]:
        """Check that no gate before the thread's position is open; report what could not be read."""
        return [*self._at_the_end(cursor), *self._unreadable.values()]

    def _at_the_end(self, cursor: Cursor) -> list[GateFinding]:
        n = len(self._ledger)
        early = [
            *self._forked(self._ledger[self._n :]),
            *self._asked_otherwise(),
            *self._timed_out_early(),
            *self._read_by_the_first(),
        ]
        if cursor.position == ROLLBACK or cursor.status in ("failed", "cancelled", "pending"):
            return early
        kind, _, node = cursor.position.partition(":")
        waits = any(request.when == "after" and not request.thread for request in cursor.pending)
        # At the route of a node, the gate after the node is asked before the thread continues.
        waits = waits or (self._ran is not None and (kind, node) == ("route", self._ran[0]))
        findings = early if waits else [*early, *self._after_last_node(n, has_run=False)]
        findings += self._elsewhere(n, cursor.position)
        if self._known and kind == "node" and any(gate.when == "before" for gate in cursor.passed):
            findings += self._in_front(n, node, has_run=False)
        return findings

    # -- gates --------------------------------------------------------------------------------------

    def _elsewhere(self, n: int, position: str) -> Iterator[GateFinding]:
        """Whether a thread comes to a new position to which no edge leads from the last node.

        No decision placed the thread there, so requests in between were skipped.
        """
        graph = self._graphs.at(n)
        kind, _, node = position.partition(":")
        if graph is None or self._mirror or not self._known:
            return
        if position == self._position or kind not in ("node", "route"):
            return
        last = self._ran[0] if self._ran else START
        targets = [edge.target for edge in graph.edges if edge.source == last]
        if node != last if kind == "route" else node not in targets:
            yield GateFinding(None, "position", self._position, position)

    def _passed(self, n: int, node: str) -> Iterator[GateFinding]:
        """Yield findings for requests for which a node that has run did not wait."""
        yield from self._after_last_node(n)
        if not self._known:
            return
        yield from self._in_front(n, node)
        if self._reads_tainted(n, node):
            title = f"{node} is about to read untrusted data"
            yield from self._unanswered(
                _Question(node, "before", title, "on_taint", ("approve",)), self._since, n
            )
        yield from self._inside(n, node)

    def _after_last_node(self, n: int, *, has_run: bool = True) -> Iterator[GateFinding]:
        """Yield findings if a thread has passed the gate after the node that ran last."""
        if self._ran is None:
            return
        node, since, committed = self._ran
        gate = self._graphs.gate(committed, node, "after")
        # Another graph without the gate ends it only if anyone may answer it.
        if gate is not None and (gate.names_people or self._graphs.gate(n, node, "after") is not None):
            yield from self._unanswered(_Question.of_gate(gate), since, n, has_run=has_run)

    def _in_front(self, n: int, node: str, *, has_run: bool = True) -> Iterator[GateFinding]:
        gate = self._graphs.gate(n, node, "before")
        if gate is not None:
            graph = self._graphs.at(n)
            question = _Question.of_gate(gate, graph.node(node) if graph else None)
            yield from self._unanswered(question, self._since, n, has_run=has_run)

    def _reads_tainted(self, n: int, node: str) -> bool:
        """Yield findings if a node's taint policy should have asked before it ran, and has no answer."""
        graph = self._graphs.at(n)
        info = graph.node(node) if graph else None
        if graph is None or info is None or info.on_taint != "approve" or self._point is None:
            return False
        tainted = {taint.channel for taint in self._point.tainted}
        named = {name.partition(".")[0] for name in info.reads}
        public = {channel.name for channel in graph.channels if channel.visibility == "public"}
        return bool(tainted & (named | public if "*" in named else named))

    def _inside(self, n: int, node: str) -> Iterator[GateFinding]:
        """Yield findings for a node's own requests without an answer.

        Child threads are checked themselves.
        """
        graph = self._graphs.at(n)
        if graph is None:
            return
        names = _names_in(graph, node)
        asked: dict[str, LedgerEntry] = {}
        for entry in self._ledger[self._since : n]:
            data = _data(entry)
            if entry.kind == "request" and data.get("node") in names and data.get("when") == "inside":
                # Requests of a child thread are hashed, and checked, there.
                if HASHED in data or graph.kind_of(str(data["node"])) != "subgraph":
                    asked[entry.request_id or ""] = entry
            elif entry.kind in ("withdrawn", "reopened"):
                asked.pop(entry.request_id or "", None)
            elif entry.kind in _DROPS:
                asked = {}
        for entry in asked.values():
            data = _data(entry)
            yield from self._unanswered(_Question.of_node(str(data["node"]), entry, data), entry.n - 1, n)

    def _decided(
        self, point: Checkpoint, records: Sequence[UpdateRecord], entries: Sequence[LedgerEntry]
    ) -> Iterator[GateFinding]:
        """Yield findings for a step made by an answer that is not what the answer says."""
        if any(entry.kind == "declassify" for entry in entries):
            return
        settled = [entry for entry in entries if entry.kind in _SETTLES]
        entry = next(
            (
                answer
                for answer in reversed(settled)
                if _chosen(_data(answer).get("answer")) == point.decision
            ),
            None,
        )
        if entry is None:
            said = [_chosen(_data(answer).get("answer")) for answer in settled]
            yield GateFinding(
                settled[-1].n if settled else None, "decision", said[-1] if said else None, point.decision
            )
            return
        if entry.actor != point.actor:
            yield GateFinding(entry.n, "actor", entry.actor, point.actor)
        asked = self._asked(entry)
        data = _data(asked) if asked else {}
        gate = self._graphs.gate(self._n, str(data.get("node", "")), str(data.get("when", "")))
        sets = gate.sets.get(point.decision or "") if gate else None
        if sets is None:
            return
        written = {
            record.channel: PRIVATE if record.visibility == "private" else record.update for record in records
        }
        hashes = {record.channel: record.update_hash for record in records}
        for name in sorted(sets.keys() | written.keys()):
            if name in sets and hashes.get(name) == item_hash(sets[name]):
                continue
            yield GateFinding(entry.n, name, sets.get(name), written.get(name))

    def _asked(self, answer: LedgerEntry) -> LedgerEntry | None:
        for entry in reversed(self._ledger[: answer.n]):
            if entry.kind == "request" and entry.request_id == answer.request_id:
                return entry
        return None

    def _asked_otherwise(self) -> Iterator[GateFinding]:
        """Yield findings for requests that do not match their hash."""
        for entry in self._ledger:
            if entry.kind != "request" or not isinstance(entry.data, Mapping):
                continue  # an export without private values has no data
            stored = show_hash(entry.request_hash) if entry.request_hash else ""
            if HASHED not in entry.data and not (stored and self._asks_itself(entry)):
                continue
            try:
                is_now = logged_hash(entry.note, entry.data)
            except (msgspec.ValidationError, HitlError) as error:
                is_now = f"it can't be computed: {error}"
            if is_now != stored:
                yield GateFinding(entry.n, "request_hash", is_now, stored or None)

    def _asks_itself(self, entry: LedgerEntry) -> bool:
        """Whether a request is the thread's own; those of a child thread are checked there."""
        graph = self._graphs.at(entry.n)
        return graph is not None and graph.kind_of(str(_data(entry).get("node"))) != "subgraph"

    def _timed_out_early(self) -> Iterator[GateFinding]:
        """Yield findings for deadlines that were applied before their time."""
        due: dict[str | None, Any] = {}
        for entry in self._ledger:
            if entry.kind == "request":
                due[entry.request_id] = _data(entry).get("deadline")
            elif entry.kind == "timeout":
                deadline = due.get(entry.request_id)
                if not isinstance(deadline, int) or entry.at <= deadline:
                    yield GateFinding(entry.n, "deadline", deadline, entry.at)

    def _read_by_the_first(self) -> Iterator[GateFinding]:
        """Yield findings for second readings by people who had answered first, and outside the sample."""
        name = self._parts[-1].thread_id
        known = {reading.request.id: reading for reading in second_readings(self._ledger, name)}
        for entry in self._ledger:
            if entry.kind != READ_AGAIN or entry.thread_id != name:
                continue
            reading, asked = known.get(entry.request_id or ""), self._asked(entry)
            if reading is None and asked is not None and not isinstance(asked.data, Mapping):
                continue  # an export without private values has no data
            if reading is None:
                yield GateFinding(entry.n, "second_reading", "a request of the sample", entry.request_id)
            elif not entry.actor or entry.actor in reading.people:
                yield GateFinding(entry.n, "second_reading", "another person", entry.actor)

    # -- answers ------------------------------------------------------------------------------------

    def _unanswered(
        self, question: _Question, since: int, n: int, *, has_run: bool = True
    ) -> Iterator[GateFinding]:
        """Return why no decision since a number lets a thread pass a question; nothing if one does.

        Of several requests at one place, only the newest counts: the others were about something else.

        Args:
            has_run: a node ran after the question, on the current state; otherwise the question will be asked
                again before a node runs, if something that it is about has changed.
        """
        why: GateFinding | None = None
        passed: LedgerEntry | None = None
        bound: list[LedgerEntry] = []
        for entry in self._ledger[since:n]:
            if entry.kind == "request" and _is_about(entry, question):
                why, passed, bound = None, None, [entry]
            elif not bound or entry.request_id != bound[0].request_id:
                continue
            elif entry.kind in _SETTLES:
                why = _insufficient(question, bound, entry, self._store) or self._by_authors(
                    question, bound, entry
                )
                passed = entry if why is None else passed
            elif entry.kind in _BINDS:
                bound.append(entry)
        if passed is None:
            yield why or GateFinding(None, "answer", question.expected, None)
            return
        if not has_run:
            return
        then = self._answered.get(passed.n, self._hashes)
        for name in sorted(question.about):
            if then.get(name) != self._hashes.get(name):
                yield GateFinding(passed.n, name, "as it was answered", "changed since the answer")

    def _by_authors(
        self, question: _Question, bound: Sequence[LedgerEntry], answer: LedgerEntry
    ) -> GateFinding | None:
        """Return the first answer or vote by an author of the thread, where none of them may answer."""
        if not question.four_eyes or answer.kind == "timeout":
            return None
        for vote in _alike(bound, answer):
            known = Authors()
            for n, by in self._authors:
                known = known | by if n < vote.n else known
            own = (vote.account in known.accounts and not question.one_account and not vote.login) or (
                vote.login and vote.login in known.logins
            )
            if not vote.actor or vote.actor in known.names or own:
                return GateFinding(vote.n, "author", "somebody else", vote.actor)
        return None


def _names_in(graph: GraphInfo, place: str) -> Collection[str]:
    """Return the nodes that ran in a step: several, joined by "+" in the log, for a LangGraph superstep."""
    return (place,) if graph.node(place) is not None else {place, *place.split("+")}


def _is_about(entry: LedgerEntry, question: _Question) -> bool:
    data = _data(entry)
    if question.request not in (None, entry.request_id):
        return False
    place = (data.get("node"), data.get("when"), data.get("policy", ""))
    return place == (question.node, question.when, question.policy)


def _insufficient(
    question: _Question, bound: Sequence[LedgerEntry], answer: LedgerEntry, store: Store
) -> GateFinding | None:
    """Return why an answer, or the one of a deadline, does not let a thread pass.

    Args:
        bound: earlier entries of the ledger about the request: asked, bound to a step, voted on.
    """
    value = _data(answer).get("answer")
    chosen = _chosen(value)
    newest = bound[-1]
    if answer.request_hash != bound[0].request_hash:
        return GateFinding(answer.n, "request_hash", bound[0].request_hash, answer.request_hash)
    if answer.pending_hash != newest.pending_hash:
        return GateFinding(answer.n, "request", newest.pending_hash, answer.pending_hash)
    if answer.kind == "timeout":
        allowed = _chosen(question.on_timeout)
        same = question.on_timeout is not None and equal(allowed, chosen)
        return None if same else GateFinding(answer.n, "on_timeout", allowed, chosen)
    if early := _escalated_early(question, bound):
        return early
    if question.choices and chosen not in question.choices:
        return GateFinding(answer.n, "choice", ", ".join(question.choices), chosen)
    wider = any(entry.kind == "escalated" for entry in bound)
    reviewers = (*question.reviewers, *(question.escalate_to if wider else ()))
    votes = _alike(bound, answer)
    return _too_few(question._replace(reviewers=reviewers), votes, answer) or _strangers(
        question, votes, store
    )


def _escalated_early(question: _Question, bound: Sequence[LedgerEntry]) -> GateFinding | None:
    """Whether a request was escalated to the wrong people, or too early."""
    for entry in bound:
        if entry.kind != "escalated":
            continue
        to, at = _names(_data(entry), "to"), _data(bound[0]).get("escalate_at")
        if to != question.escalate_to:
            return GateFinding(entry.n, "escalate_to", ", ".join(question.escalate_to), ", ".join(to))
        if not isinstance(at, int) or entry.at < at:
            return GateFinding(entry.n, "escalate_at", at, entry.at)
    return None


def _alike(bound: Sequence[LedgerEntry], answer: LedgerEntry) -> list[LedgerEntry]:
    """Return an answer and the votes for the same answer on the same step, the newest of each person."""
    votes: dict[str | None, LedgerEntry] = {}
    for entry in bound:
        if entry.kind == "vote" and entry.request_hash == answer.request_hash:
            votes[entry.actor] = entry
        elif entry.kind in ("request", "rebound"):
            votes = {}
    votes[answer.actor] = answer
    chosen = _chosen(_data(answer).get("answer"))
    return [vote for vote in votes.values() if equal(_chosen(_data(vote).get("answer")), chosen)]


def _too_few(question: _Question, votes: Sequence[LedgerEntry], answer: LedgerEntry) -> GateFinding | None:
    for vote in votes:
        if question.reviewers and vote.actor not in question.reviewers:
            return GateFinding(vote.n, "reviewer", ", ".join(question.reviewers), vote.actor)
        if question.signed and not vote.signature:
            return GateFinding(vote.n, "signature", "signed", "not signed")
    if len(votes) < question.quorum:
        return GateFinding(answer.n, "votes", question.quorum, len(votes))
    accounts = len({vote.account for vote in votes})
    if question.quorum > 1 and not question.one_account and accounts < question.quorum:
        return GateFinding(answer.n, "accounts", question.quorum, accounts)
    return None


def _strangers(question: _Question, votes: Sequence[LedgerEntry], store: Store) -> GateFinding | None:
    """Return why the database logins of an answer and its votes may not give them."""
    if not question.logins:
        return None
    for vote in votes:
        if not vote.login or not set(store.roles(vote.login)) & set(question.logins):
            return GateFinding(vote.n, "login", ", ".join(question.logins), vote.login or None)
    logins = len({vote.login for vote in votes})
    return GateFinding(votes[-1].n, "logins", question.quorum, logins) if logins < question.quorum else None


def _made_before(point: Checkpoint, entries: Sequence[LedgerEntry]) -> int:
    """Return how many decisions were made before a step.

    Its own commit may have opened the request after it.
    """
    return sum(entry.step is None or entry.step < point.step for entry in entries)


def _left(point: Checkpoint, before: Checkpoint | None, entries: Iterable[LedgerEntry]) -> bool:
    """Whether a step moved its thread elsewhere, so that requests at its old position no longer count."""
    if point.source == "rollback":
        return True
    if point.source == "input":
        return point.step == 0 or (before is not None and point.invocation != before.invocation)
    return point.source in ("human", "fork") and bool(_acted_as(point, entries))


def _acted_as(point: Checkpoint, entries: Iterable[LedgerEntry]) -> str:
    """Return the node after which a step has placed its thread, START for the entry; "" for none."""
    kind, step = ("fork", point.step - 1) if point.source == "fork" else ("update_state", point.step)
    for entry in entries:
        if entry.kind == kind and entry.step == step:
            return str(_data(entry).get("as_node") or "")
    return ""


def _data(entry: LedgerEntry) -> Mapping[str, Any]:
    return entry.data if isinstance(entry.data, Mapping) else {}


def _names(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    names = data.get(field)
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _chosen(answer: Any) -> Any:
    """Return what an answer decides, without its comment."""
    return answer["choice"] if isinstance(answer, Mapping) and "choice" in answer else answer
