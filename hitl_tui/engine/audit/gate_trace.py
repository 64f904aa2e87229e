"""Following a thread past its gates, as `verify --strict` does: no step without an answer (SPEC 11, 12).

Which gates there are is told by the graphs that the log holds as data; nothing is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from hitl_tui.engine.graph.description import GateInfo, GraphInfo
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.records import ROLLBACK, Checkpoint, Cursor, LedgerEntry, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import Part
from hitl_tui.engine.state.canonical import equal, item_hash
from hitl_tui.errors import LogCorrupt

_RAN = ("node", "map", "subgraph")
_BINDS = ("request", "rebound", "vote", "handed_over", "escalated")
_SETTLES = ("answer", "timeout")
# After these a thread waits for nothing that it asked before.
_DROPS = ("failed", "cancel", "rollback")


class GateFinding(NamedTuple):
    """What lets a thread not have gone where it went; `n` is the number of the decision, if it is one."""

    n: int | None
    field: str
    expected: Any
    actual: Any


class _Question(NamedTuple):
    """A question that must be answered before a step, and what counts as an answer.

    Args:
        choices: the ids of the answers, empty for any.
        on_timeout: what counts when the deadline has passed, None where nothing does.
        request: the id of the one request that it is, where no other will do.
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
    on_timeout: Any = None
    request: str | None = None

    @classmethod
    def of_gate(cls, gate: GateInfo) -> _Question:
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
            gate.on_timeout if gate.deadline is not None and gate.on_timeout else None,
        )

    @classmethod
    def of_node(cls, node: str, asked: LedgerEntry, data: Mapping[str, Any]) -> _Question:
        """What a node asked itself, which its request alone tells of."""
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
            on_timeout=data.get("on_timeout"),
            request=asked.request_id,
        )

    @property
    def expected(self) -> str:
        return f"an answer to {self.title!r} ({self.when} {self.node})"


class _Graphs:
    """The graph that a thread ran on, at any of its decisions, as far as the store has it."""

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
                # What it shares was another thread's doing, which is not in this store.
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
        """The graph after `n` decisions, None where it is not known."""
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
            return None  # told where the thread's facts are checked

    def gate(self, n: int, node: str, when: str) -> GateInfo | None:
        """The gate at a node after `n` decisions."""
        graph = self.at(n)
        gates = graph.gates if graph else ()
        return next((gate for gate in gates if (gate.node, gate.when) == (node, when)), None)


class GateTrace:
    """One thread, followed step by step and decision by decision.

    A gate counts where the graph had it when the thread came to it and when it went on.  A thread that was
    put elsewhere (an edit with `as_node`, a new invocation, a rollback) has left its gates behind.

    Args:
        ledger: the thread's, without gaps.
    """

    def __init__(self, store: Store, parts: Sequence[Part], ledger: Sequence[LedgerEntry]) -> None:
        self._store = store
        self._ledger = ledger
        self._graphs = _Graphs(store, parts, ledger)
        self._point: Checkpoint | None = None
        # Decisions up to the newest step, and up to where the thread came to the place where it is.
        self._n = self._since = 0
        # The node that ran last, decisions before it was committed, and with it.
        self._ran: tuple[str, int, int] | None = None
        self._known = True

    def lose(self) -> None:
        """Something between is missing: what was asked and answered is known from the next place on."""
        self._known, self._ran, self._point = False, None, None

    def follow(self, point: Checkpoint, records: Sequence[UpdateRecord], n: int | None) -> list[GateFinding]:
        """Go one step further.

        Args:
            n: how many decisions there were at the step's own commit; None where that is not known.
        """
        if n is None:
            self.lose()
            return []
        before, self._n = self._n, n
        entries = self._ledger[before:n]
        findings: list[GateFinding] = []
        if point.source in _RAN:
            findings += self._passed(n, point.node)
            self._ran, self._since, self._known = (point.node, before, n), n, True
        elif _left(point, self._point, entries):
            self._ran, self._since, self._known = None, n, True
        elif self._known and point.source == "human" and point.decision is not None:
            findings += self._decided(point, records, entries)
        self._point = point
        return findings

    def end(self, cursor: Cursor) -> list[GateFinding]:
        """Where the thread stands must not be behind a gate, either."""
        n = len(self._ledger)
        early = list(self._timed_out_early())
        if cursor.position == ROLLBACK or cursor.status in ("failed", "cancelled", "pending"):
            return early
        kind, _, node = cursor.position.partition(":")
        waits = any(request.when == "after" and not request.thread for request in cursor.pending)
        findings = early if waits else [*early, *self._after_last_node(n)]
        if self._known and kind == "node" and cursor.passed:
            findings += self._in_front(n, node)
        return findings

    # -- gates --------------------------------------------------------------------------------------

    def _passed(self, n: int, node: str) -> Iterator[GateFinding]:
        """What a node did not wait for that has run."""
        yield from self._after_last_node(n)
        if not self._known:
            return
        yield from self._in_front(n, node)
        if self._reads_tainted(n, node):
            title = f"{node} would read what came from outside"
            yield from self._unanswered(
                _Question(node, "before", title, "on_taint", ("approve",)), self._since, n
            )
        yield from self._inside(n, node)

    def _after_last_node(self, n: int) -> Iterator[GateFinding]:
        """Whether a thread went on past the gate after the node that ran last."""
        if self._ran is None:
            return
        node, since, committed = self._ran
        gate = self._graphs.gate(committed, node, "after")
        if gate is not None and self._graphs.gate(n, node, "after") is not None:
            yield from self._unanswered(_Question.of_gate(gate), since, n)

    def _in_front(self, n: int, node: str) -> Iterator[GateFinding]:
        gate = self._graphs.gate(n, node, "before")
        if gate is not None:
            yield from self._unanswered(_Question.of_gate(gate), self._since, n)

    def _reads_tainted(self, n: int, node: str) -> bool:
        """Whether the policy of a node made it ask before it ran."""
        graph = self._graphs.at(n)
        info = graph.node(node) if graph else None
        if graph is None or info is None or info.on_taint != "approve" or self._point is None:
            return False
        tainted = {taint.channel for taint in self._point.tainted}
        named = {name.partition(".")[0] for name in info.reads}
        public = {channel.name for channel in graph.channels if channel.visibility == "public"}
        return bool(tainted & (named | public if "*" in named else named))

    def _inside(self, n: int, node: str) -> Iterator[GateFinding]:
        """What a node asked itself and did not wait for; the thread of a subgraph answers for itself."""
        graph = self._graphs.at(n)
        if graph is None or graph.kind_of(node) == "subgraph":
            return
        asked: dict[str, LedgerEntry] = {}
        for entry in self._ledger[self._since : n]:
            data = _data(entry)
            if entry.kind == "request" and (data.get("node"), data.get("when")) == (node, "inside"):
                asked[entry.request_id or ""] = entry
            elif entry.kind == "withdrawn":
                asked.pop(entry.request_id or "", None)
            elif entry.kind in _DROPS:
                asked = {}
        for entry in asked.values():
            yield from self._unanswered(_Question.of_node(node, entry, _data(entry)), entry.n - 1, n)

    def _decided(
        self, point: Checkpoint, records: Sequence[UpdateRecord], entries: Sequence[LedgerEntry]
    ) -> Iterator[GateFinding]:
        """Whether a step that an answer made is what its answer says."""
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

    def _timed_out_early(self) -> Iterator[GateFinding]:
        """Deadlines that are said to have passed before their time, whether the thread went on or failed."""
        due: dict[str | None, Any] = {}
        for entry in self._ledger:
            if entry.kind == "request":
                due[entry.request_id] = _data(entry).get("deadline")
            elif entry.kind == "timeout":
                deadline = due.get(entry.request_id)
                if not isinstance(deadline, int) or entry.at <= deadline:
                    yield GateFinding(entry.n, "deadline", deadline, entry.at)

    # -- answers ------------------------------------------------------------------------------------

    def _unanswered(self, question: _Question, since: int, n: int) -> Iterator[GateFinding]:
        """Why no decision between two numbers lets a thread pass a question; nothing where one does."""
        why: GateFinding | None = None
        asked: dict[str | None, list[LedgerEntry]] = {}
        for entry in self._ledger[since:n]:
            if entry.kind == "request" and _is_about(entry, question):
                asked[entry.request_id] = []
            if entry.request_id not in asked:
                continue
            if entry.kind in _SETTLES:
                why = _insufficient(question, asked[entry.request_id], entry, self._store)
                if why is None:
                    return
            elif entry.kind in _BINDS:
                asked[entry.request_id].append(entry)
        yield why or GateFinding(None, "answer", question.expected, None)


def _is_about(entry: LedgerEntry, question: _Question) -> bool:
    data = _data(entry)
    if question.request not in (None, entry.request_id):
        return False
    place = (data.get("node"), data.get("when"), data.get("policy", ""))
    return place == (question.node, question.when, question.policy)


def _insufficient(
    question: _Question, bound: Sequence[LedgerEntry], answer: LedgerEntry, store: Store
) -> GateFinding | None:
    """Why an answer, or what counted when the deadline had passed, does not let a thread pass.

    Args:
        bound: what the ledger says of the request before: that it was asked, bound to a step, voted on.
    """
    value = _data(answer).get("answer")
    chosen = _chosen(value)
    newest = bound[-1]
    if answer.step != newest.step:
        return GateFinding(answer.n, "step", newest.step, answer.step)
    if answer.request_hash != newest.request_hash:
        return GateFinding(answer.n, "request", newest.request_hash, answer.request_hash)
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
    """Whether others were let in who should not have been, or not yet."""
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
    """An answer, and the votes for the same on the same step, the newest of each person."""
    votes: dict[str | None, LedgerEntry] = {}
    for entry in bound:
        if entry.kind == "vote":
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
    """Why the logins of the database that an answer and its votes came from may not give them."""
    if not question.logins:
        return None
    for vote in votes:
        if not vote.login or not set(store.roles(vote.login)) & set(question.logins):
            return GateFinding(vote.n, "login", ", ".join(question.logins), vote.login or None)
    logins = len({vote.login for vote in votes})
    return GateFinding(votes[-1].n, "logins", question.quorum, logins) if logins < question.quorum else None


def _left(point: Checkpoint, before: Checkpoint | None, entries: Iterable[LedgerEntry]) -> bool:
    """Whether a step put its thread elsewhere, so that what was asked where it stood counts no more."""
    if point.source == "rollback":
        return True
    if point.source == "input":
        return point.step == 0 or (before is not None and point.invocation != before.invocation)
    edits = (entry for entry in entries if entry.kind == "update_state" and entry.step == point.step)
    return point.source == "human" and any(_data(entry).get("as_node") is not None for entry in edits)


def _data(entry: LedgerEntry) -> Mapping[str, Any]:
    return entry.data if isinstance(entry.data, Mapping) else {}


def _names(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    names = data.get(field)
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _chosen(answer: Any) -> Any:
    """What an answer decides, without the words that go with it."""
    return answer["choice"] if isinstance(answer, Mapping) and "choice" in answer else answer
