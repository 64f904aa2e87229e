"""What each role may do in a store in PostgreSQL: every action with the statements that try it.

`tests/stores/test_role_statements.py` tries each as each login; `python -m tests.tools.role_page` writes the
table of `docs/roles.md` from the same list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.outcomes import BranchOutcome, BranchState, KeptAnswer, PassedGate
from hitl_tui.engine.log.records import Checkpoint, Commit, Cursor, LedgerEntry, Limits
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.signing import DECISIONS
from hitl_tui.engine.log.threads import Lease, Presence
from hitl_tui.stores import rows
from hitl_tui.stores.postgres import store as postgres_store
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from hitl_tui.stores.postgres.writing import RUN_KINDS
from tests.stores.log_writer import NOW, Writer, digest, info, start

LOGINS: Mapping[str, str] = {
    "nell": "",
    "vic": "hitl_viewer",
    "rob": "hitl_reviewer",
    "wes": "hitl_worker",
    "oli": "hitl_operator",
}
"""Each login of the test with its role; nell has none."""

ALL = ("vic", "rob", "wes", "oli")
DECIDE = ("rob", "oli")
RUN = ("wes", "oli")
WRITE = ("rob", "wes", "oli")
OPERATE = ("oli",)
WORK = ("wes",)
NOBODY: tuple[str, ...] = ()

Statement = tuple[str, Sequence[Any] | None]
Try = Callable[["World"], Sequence[Statement]]

TABLES = (
    "thread", "cursor", "record", "checkpoint", "snapshot", "spending", "ledger", "store_ledger", "graph",
    "store", "pause", "presence",
)  # fmt: skip
LOG = ("thread", "cursor", "record", "checkpoint", "snapshot", "spending", "ledger", "store_ledger", "graph",
       "store")  # fmt: skip


class World:
    """A store with a thread for each situation, made by the owner of its tables."""

    def __init__(self, store: PostgresCheckpointer, schema: str) -> None:
        self.store, self.schema = store, schema

    def cursor(self, thread: str) -> Cursor:
        found = self.store.cursor(thread)
        assert found is not None
        return found

    def key(self, thread: str) -> int:
        return self.store._key(thread)

    def request(self, thread: str) -> Request:
        return self.cursor(thread).pending[0]

    def entry(self, thread: str, kind: str, request: Request | None = None, **changes: Any) -> LedgerEntry:
        """The next entry of a thread, about a request or none."""
        cursor = self.cursor(thread)
        plain = LedgerEntry(
            thread_id=thread, n=cursor.ledger_n + 1, kind=kind, step=cursor.head,
            request_id=request.id if request else None, actor="ann", note=None, seen=b"", data={}, at=NOW,
            prev_hash=cursor.ledger_hash, hash=digest(thread, kind), pending_hash=digest("pending"),
            request_hash=bytes.fromhex(request.request_hash.partition(":")[2]) if request else b"",
            account="ann@box",
        )  # fmt: skip
        return replace(plain, **changes)

    def point(self, thread: str, source: str) -> Checkpoint:
        writer = Writer.__new__(Writer)
        writer.store, writer.thread_id = self.store, thread
        return writer.point((), source=source, position=self.cursor(thread).position)

    def commit(
        self, thread: str, *ledger: LedgerEntry, point: Checkpoint | None = None, **changes: Any
    ) -> list[Statement]:
        """The statement of the next commit of a thread; `changes` are of its cursor."""
        was = self.cursor(thread)
        moved = replace(
            was,
            **{
                "version": was.version + 1,
                "ledger_n": was.ledger_n + len(ledger),
                "head": was.head + (point is not None),
                **changes,
            },
        )
        commit = Commit(moved, was.version, None, (), point, None, tuple(ledger))  # type: ignore[arg-type]
        statement, values, _ = self.store.commit_statement(self.key(thread), thread, commit)
        return [(statement, values)]

    def answered(self, thread: str, kind: str = "answer", **changes: Any) -> list[Statement]:
        """The commit that answers the request of a thread."""
        request = self.request(thread)
        entry = self.entry(thread, kind, request, **changes)
        gate = PassedGate(request.node, request.when, request.request_hash, request.request_hash, entry.n)
        return self.commit(thread, entry, pending=(), status="waiting", reason="paused", passed=(gate,))

    def new_thread(self, *ledger: LedgerEntry, cursor: bool = True) -> list[Statement]:
        """The statements that make a thread "new" with a ledger."""
        facts = info("new")
        # A transaction that failed or was rolled back used no key.
        key = self.store._rows("SELECT threads + 1 FROM store")[0][0]
        row = (
            "new", facts.graph_name, facts.graph_digest, rows.source_of(facts), -1, 0, 0, NOW, "ann",
            None, None, facts.facts_hash, None, None,
        )  # fmt: skip
        statements: list[Statement] = [(postgres_store._BEGIN_THREAD.replace("?", "%s"), row)]
        if ledger:
            commit = Commit(Cursor("new"), 0, "", (), None, None, tuple(ledger))
            parts, values = self.store._parts_of(key, commit)
            statements.append((f"SELECT add_history(%s{postgres_store._arguments(parts)})", (key, *values)))
        if cursor:
            placed = Cursor("new", ledger_n=len(ledger), created_at=NOW, updated_at=NOW, **start(facts))
            placed_row = rows.cursor_row(placed, facts.facts_hash, "ann")
            values = [key, *placed_row, 0, *postgres_store._NOBODY]
            statements.append((postgres_store._BEGIN_CURSOR, values))
        return [*statements, ("SET CONSTRAINTS ALL IMMEDIATE", None)]

    def deleted(self, thread: str, *entries: LedgerEntry) -> list[Statement]:
        lines = [(*rows.ledger_row(0, entry), entry.thread_id) for entry in entries]
        columns = postgres_store._by_column(lines) or [[] for _ in range(len(rows.LEDGER.split(", ")) + 1)]
        held: Statement = ("SELECT * FROM hold_threads(%s)", ([thread],))
        return [held, (postgres_store._DELETE, ([self.key(thread)], *columns))]


def _sql(text: str) -> Try:
    """A statement in which {key} and {schema} are replaced by the key of a thread and the schema."""
    return lambda world: [(text.format(key=world.key("waits"), schema=world.schema), None)]


def _each(names: Sequence[str], text: str) -> dict[str, Try]:
    """The same statement for each of some tables."""
    return {name: _sql(text.replace("TABLE", name)) for name in names}


def _decided(kind: str) -> Try:
    return lambda world: world.commit("paused", world.entry("paused", kind))


def _pending(thread: str, **changes: Any) -> Try:
    """The request of a thread with other terms."""
    return lambda world: world.commit(thread, pending=(replace(world.request(thread), **changes),))


def _kept(n: int, **changes: Any) -> Try:
    """A cursor that says that its question was answered, in an entry that says something else."""

    def tried(world: World) -> Sequence[Statement]:
        request = world.request("waits")
        number = n or world.cursor("waits").ledger_n
        gate = PassedGate(request.node, request.when, request.request_hash, request.request_hash, number)
        kept = KeptAnswer(request.request_hash, "yes", number)
        value = {"passed": (gate,), "answers": (kept,)}
        return world.commit("waits", **{name: value[name] for name in changes})

    return tried


def _asks(thread: str, data: Mapping[str, Any], **changes: Any) -> Try:
    """A new request beside the one that waits, and its entry."""

    def tried(world: World) -> Sequence[Statement]:
        request = replace(world.request("waits"), **{"id": "new", **changes})
        entry = world.entry(thread, "request", request, made_by="node", data=data)
        known = world.cursor(thread).pending
        return world.commit(thread, entry, pending=(*known, request))

    return tried


def _reopens(world: World) -> Sequence[Statement]:
    """A request that is asked again, as an edit does that changes what it is about."""
    request = world.request("waits")
    again = replace(request, id="again", request_hash=f"sha256:{digest('other').hex()}")
    edit = world.entry("waits", "update_state")
    gone = replace(world.entry("waits", "reopened", request), n=edit.n + 1)
    asked = replace(world.entry("waits", "request", again, made_by="node"), n=edit.n + 2)
    return world.commit("waits", edit, gone, asked, point=world.point("waits", "human"), pending=(again,))


def _steps(source: str) -> Try:
    return lambda world: world.commit("paused", point=world.point("paused", source))


def _edits(world: World) -> Sequence[Statement]:
    return world.commit("paused", world.entry("paused", "update_state"), point=world.point("paused", "human"))


def _passes_gate(world: World) -> Sequence[Statement]:
    """An edit that moves a thread past a question for other logins."""
    request = world.request("boss")
    edit = world.entry("boss", "update_state")
    gone = replace(world.entry("boss", "withdrawn", request), n=edit.n + 1)
    point = world.point("boss", "human")
    return world.commit("boss", edit, gone, point=point, pending=(), position="node:b")


def _presence(**changes: Any) -> Try:
    lease = Lease("token", "ann", "box", 1, 1, NOW)
    present = Presence("r", b"x", "ann", "ann@box", NOW, NOW, False, False, lease)
    body = msgspec.to_builtins(present) | changes

    def tried(world: World) -> Sequence[Statement]:
        insert = "INSERT INTO presence (thread, token, body) VALUES (%s, 'token', %s)"
        return [(insert, (world.key("waits"), msgspec.json.encode(body)))]

    return tried


_ARGS = '{{"thread": "waits", "version": 1, "tries": 0, "why": ""}}'


def _job(lock: str = "{key}", args: str = _ARGS) -> Try:
    return _sql(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args) "
        f"VALUES ('q', 'advance', '{lock}', '{args}')"
    )


def _worker(graphs: str = "[]", login: str = "DEFAULT", at: int = NOW) -> Try:
    def tried(_world: World) -> Sequence[Statement]:
        return [
            (
                "INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (77)",
                None,
            ),
            (
                'INSERT INTO worker (id, "user", host, pid, process_started, boot, namespace, backend, '
                "concurrency, graphs, started_at, login) "
                f"VALUES (77, 'u', 'h', 1, 1, '', '', 1, 1, '{graphs}', {at}, {login})",
                None,
            ),
        ]

    return tried


def _claims(table: str, tried: Try) -> Try:
    """A claim of another login: the statement is accepted, and the database stores the true login."""
    check = f"SELECT 1 / (count(*) FILTER (WHERE login = session_user))::int FROM {table}"
    return lambda world: [*tried(world), (check, None)]


def _history(kind: str, **changes: Any) -> Try:
    def tried(world: World) -> Sequence[Statement]:
        one = replace(world.entry("paused", kind), n=1, thread_id="new", **changes)
        return world.new_thread(one)

    return tried


def _deletes(*names: str) -> Try:
    return lambda world: world.deleted(
        "paused", *(replace(world.entry("paused", "delete"), n=1, thread_id=name) for name in names)
    )


@dataclass(frozen=True)
class Action:
    """Something that somebody may want to do in a store: who may, and the statements that do it."""

    name: str
    logins: tuple[str, ...]
    tries: Mapping[str, Try]


ACTIONS: tuple[Action, ...] = (
    Action("read threads, logs and ledgers", ALL, _each(TABLES, "SELECT * FROM TABLE LIMIT 1")),
    Action("answer or vote on a request", DECIDE, {
        "by name": lambda w: w.answered("waits"),
        "without a name": lambda w: w.answered("waits", actor=None),
        "as a policy": lambda w: w.answered("waits", actor=None, made_by="policy"),
        "as a policy, by an allowance that nobody gave": lambda w: w.answered(
            "waits", actor=None, made_by="policy", data={"allowances": [{"id": "x", "thread": "waits"}]}),
        "as a program": lambda w: w.answered("waits", actor=None, made_by="program"),
        "as the node": lambda w: w.answered("waits", actor=None, made_by="node"),
        "of a gate that names their login": lambda w: w.answered("release"),
        "vote": lambda w: w.commit("quorum", w.entry("quorum", "vote", w.request("quorum"))),
    }),
    Action("resume a thread at a plain breakpoint", WRITE, {
        "continue": lambda w: w.answered("breakpoint", actor=None),
    }),
    Action("answer for other logins, twice, or without a request", NOBODY, {
        "a gate that names other logins": lambda w: w.answered("boss"),
        "a vote for other logins": lambda w: w.commit("boss", w.entry("boss", "vote", w.request("boss"))),
        "a deadline that is to come": lambda w: w.answered("deadline", "timeout", made_by="deadline"),
        "no deadline": lambda w: w.answered("waits", "timeout", made_by="deadline"),
        "before all votes are in": lambda w: w.answered("quorum"),
        "another id": lambda w: w.commit(
            "waits", w.entry("waits", "answer", replace(w.request("waits"), id="x"))),
        "another hash": lambda w: w.answered("waits", request_hash=digest("other")),
        "nothing waits": lambda w: w.commit("paused", w.entry("paused", "answer", w.request("waits"))),
        "with the id of another thread": lambda w: w.answered("waits", n=1 << 32),
    }),
    Action("decide in other ways: edit, declassify, extend, cancel, allow, hand over, note …", DECIDE, {
        "update_state": _edits,
        "a request that an edit asks again": _reopens,
        **{kind: _decided(kind)
           for kind in sorted(DECISIONS - {"answer", "vote", "rollback", "update_state"})},
        **{f"{kind} by nobody": (lambda w, kind=kind: w.commit("paused", w.entry("paused", kind, actor=None)))
           for kind in ("cancel", "declassify", "extend", "allowed")},
    }),
    Action("roll back", OPERATE, {"rollback": _decided("rollback")}),
    Action("run a thread", RUN, {
        **{f"a step of a {source}": _steps(source) for source in ("node", "map", "subgraph", "input")},
        "status running": lambda w: w.commit("paused", status="running", reason=""),
        "the end": lambda w: w.commit("paused", status="completed", reason="end"),
        "another position": lambda w: w.commit("paused", position="node:a"),
        "a goal": lambda w: w.commit("paused", goal="other"),
        "limits": lambda w: w.commit("paused", limits=Limits(max_iterations=99)),
        "the result of a branch": lambda w: w.commit("paused", branches=(
            BranchState("b[0]", outcome=BranchOutcome("b[0]", "b", 0, "completed")),)),
        "a new request": _asks("paused", {}),
        "a request that names logins": _asks("paused", {"logins": ["bosses"]}, logins=("bosses",)),
        **{kind: _decided(kind) for kind in RUN_KINDS if kind != "rollback"},
    }),
    Action("move a thread past a request without its answer", NOBODY, {
        "drop the request": lambda w: w.commit("waits", pending=()),
        "drop it and move": lambda w: w.commit("waits", pending=(), position="node:b"),
        "an edit past a gate for other logins": _passes_gate,
        "an edit past such a gate of a cancelled thread": lambda w: w.commit(
            "cancelled", w.entry("cancelled", "update_state"), point=w.point("cancelled", "human"),
            position="node:b", status="waiting", reason="paused"),
        "passed by no entry": _kept(99, passed=True),
        "passed by the request itself": _kept(0, passed=True),
        "answered by no entry": _kept(99, answers=True),
        "answered by the request itself": _kept(0, answers=True),
    }),
    Action("withdraw a request for other logins that the graph no longer makes", WORK, {
        "at its place": lambda w: w.commit(
            "boss", w.entry("boss", "withdrawn", w.request("boss")), pending=(), reason="paused"),
    }),
    Action("change the terms of a request", NOBODY, {
        "logins": _pending("boss", logins=("rob", "wes", "oli")),
        "no logins": _pending("boss", logins=()),
        "quorum": _pending("quorum", quorum=1),
        "deadline": _pending("deadline", deadline=1),
        "hash": _pending("waits", request_hash=f"sha256:{digest('x').hex()}"),
        "breakpoint": _pending("waits", breakpoint=True),
        "a second entry of the same request": lambda w: w.commit(
            "boss", w.entry("boss", "request", w.request("boss"), data={})),
        "an entry of a request that does not wait": lambda w: w.commit(
            "paused", w.entry("paused", "request", w.request("waits"), data={})),
        "other logins in the ledger": _asks("paused", {"logins": ["wes"]}, logins=("bosses",)),
    }),
    Action("write a commit that does not continue the last one", NOBODY, {
        "the same version": lambda w: w.commit("paused", version=w.cursor("paused").version),
        "a version too far": lambda w: w.commit("paused", version=w.cursor("paused").version + 2),
        "an entry left out": lambda w: w.commit(
            "paused", w.entry("paused", "pause", n=w.cursor("paused").ledger_n + 2)),
        "an entry of before": lambda w: w.commit("paused", w.entry("paused", "pause", n=1)),
        "a ledger that ends elsewhere": lambda w: w.commit("paused", ledger_n=99),
        "records that are not there": lambda w: w.commit("paused", last_seq=99),
        "a step of a person without an entry": lambda w: w.commit("paused", point=w.point("paused", "human")),
        "a step too far": lambda w: w.commit(
            "paused", point=replace(w.point("paused", "node"), step=9), head=9),
        "a head without its step": lambda w: w.commit("paused", head=w.cursor("paused").head + 1),
        "a checkpoint of before": lambda w: w.commit(
            "paused", point=replace(w.point("paused", "node"), step=0)),
    }),
    Action("add rows to the log directly", NOBODY,
           _each(LOG, "INSERT INTO TABLE SELECT * FROM TABLE LIMIT 1")),
    Action("change rows of the log directly", NOBODY, {
        **_each(("record", "checkpoint", "ledger"), "UPDATE TABLE SET actor = 'bob'"),
        **_each(("snapshot", "spending", "graph"), "UPDATE TABLE SET body = ''"),
        "cursor's body": _sql("UPDATE cursor SET body = '{{}}'"),
        "cursor's position": _sql("UPDATE cursor SET position = 'end', version = version + 1"),
        "cursor's status": _sql("UPDATE cursor SET status = 'completed'"),
        "name of a thread": _sql("UPDATE thread SET id = 'x'"),
        "number of threads": _sql("UPDATE store SET threads = threads + 1"),
        "store's version": _sql("UPDATE store SET version = 0"),
    }),
    Action("delete or empty rows of the log directly", NOBODY, {
        **{f"delete {name}": tried for name, tried in _each(LOG, "DELETE FROM TABLE").items()},
        **{f"truncate {name}": tried for name, tried in _each(LOG, "TRUNCATE TABLE CASCADE").items()},
        "one entry": _sql("DELETE FROM ledger WHERE id = ({key}::bigint << 32) + 1"),
    }),
    Action("start or import a thread", RUN, {
        "with its input": _history("input"),
        "empty": lambda w: w.new_thread(),
    }),
    Action("import a thread with decisions, or fork one", OPERATE, {
        "fork": _history("fork"),
        "an answer": _history("answer"),
        "an answer by nobody": _history("answer", actor=None),
    }),
    Action("create part of a thread, or add to the past of one", NOBODY, {
        "without a cursor": lambda w: w.new_thread(cursor=False),
        "more entries": lambda w: [(
            f"SELECT add_history(%s{postgres_store._arguments(('spent',))})", (w.key("paused"), 1, b""))],
        "a second cursor": lambda w: [(postgres_store._BEGIN_CURSOR, (
            w.key("paused"), *rows.cursor_row(w.cursor("paused"), b"", "x"), 0, *postgres_store._NOBODY))],
    }),
    Action("delete a thread", OPERATE, {"with an entry of the store's ledger": _deletes("paused")}),
    Action("delete a thread without a ledger entry", NOBODY, {
        "without an entry": _deletes(),
        "with an entry of another": _deletes("waits"),
    }),
    Action("take the lease of a thread, ask it to pause, show that it is open", WRITE, {
        "lease": _sql("UPDATE cursor SET token = 't', \"user\" = 'u', host = 'h', pid = 1, "
                      "process_started = 1, expires_at = 1, boot = '', namespace = '' WHERE thread = {key}"),
        "end of the lease": _sql("UPDATE cursor SET token = NULL WHERE thread = {key}"),
        "pause": _sql("INSERT INTO pause (thread, at, at_once) VALUES ({key}, 0, 0)"),
        "no pause": _sql("DELETE FROM pause"),
        "presence": _presence(),
        "absence": _sql("DELETE FROM presence"),
    }),
    Action("store an unreadable row", NOBODY, {
        "half a lease": _sql("UPDATE cursor SET token = 't', host = NULL WHERE thread = {key}"),
        "presence: no JSON": _sql("INSERT INTO presence VALUES ({key}, 'token', 'x')"),
        "presence: no lease": _presence(lease=None),
        "presence: a time in words": _presence(since="now"),
        "presence: another token": _presence(lease={"token": "x"}),
        "a job: no thread": _job("x"),
        "a job: another thread": _job("99999999"),
        "a job: tries in words": _job(args=_ARGS.replace('"tries": 0', '"tries": "abc"')),
        "a job: no arguments": _job(args="{{}}"),
        "a job: a list": _job(args="[]"),
        "a worker: no JSON": _worker("x"),
        "a worker: graphs of another form": _worker('[{"name": 1}]'),
        "a worker: no list": _worker("null"),
        "a worker: text that is none": _worker('[{"name": "\\ud800", "digest": ""}]'),
        "a worker: a time after all": _worker(at=1 << 62),
    }),
    Action("leave a thread to the workers", RUN, {
        "work": _sql("INSERT INTO work (thread, priority) VALUES ({key}, 0)"),
        "under another login": _claims("work", _sql(
            "INSERT INTO work (thread, priority, login) VALUES ({key}, 0, 'boss')")),
    }),
    Action("take jobs, register as a worker", WORK, {
        "job": _job(),
        "worker": _worker(),
        "a worker under another login": _claims("worker", _worker(login="'boss'")),
        "take": _sql("SELECT * FROM take_job(ARRAY['q'], NULL)"),
    }),
    Action("switch off guards, or become another login", NOBODY, {
        "triggers": _sql("ALTER TABLE ledger DISABLE TRIGGER ALL"),
        "replica": _sql("SET session_replication_role = replica"),
        "policy": _sql("CREATE POLICY mine ON ledger USING (true)"),
        "function": _sql("CREATE FUNCTION {schema}.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
        "other function": _sql("CREATE OR REPLACE FUNCTION {schema}.is_owner() RETURNS boolean "
                               "LANGUAGE sql AS 'SELECT true'"),
        "drop": _sql("DROP TABLE ledger CASCADE"),
        "grant": _sql("GRANT hitl_operator TO CURRENT_USER"),
        "role": _sql("SET ROLE owner"),
        "session": _sql("SET SESSION AUTHORIZATION owner"),
        "rows by the inner function": _sql("SELECT add_rows()"),
        "jobs by the inner function": _sql("SELECT put_owner({key})"),
    }),
)  # fmt: skip
