"""Every action of `role_actions`, tried as every login on a real server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest

from hitl_tui import END, START, Channel, GraphRunner, NodeResult, StateGraph
from hitl_tui.engine.audit.proof import missing_answer
from hitl_tui.engine.commands import ExtendLimits, execute
from hitl_tui.engine.graph.gates import Gate, GateChoice
from hitl_tui.engine.log.threads import Deletion
from hitl_tui.errors import NotAllowed
from hitl_tui.stores.postgres.server import Server
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.stores.log_writer import NOW
from tests.stores.role_actions import ACTIONS, LOGINS, Statement, World
from tests.support.commands import App
from tests.support.flows import line, say
from tests.support.postgres import PASSWORD, Postgres

CHOICES = [GateChoice("yes", "yes")]
GATES: Mapping[str, Mapping[str, Any]] = {
    "waits": {},
    "release": {"logins": ["releasers"]},
    "boss": {"logins": ["bosses"]},
    "quorum": {"quorum": 2},
    "deadline": {"deadline": 3600, "on_timeout": "yes"},
    "cancelled": {"logins": ["bosses"]},
    "paused": {},
}
"""The gate after the first node of each thread; that of "paused" is answered."""
REFUSED = (psycopg.errors.InsufficientPrivilege, psycopg.errors.IntegrityError, psycopg.errors.DataError)
UNSEEN = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction, psycopg.errors.UndefinedObject)
"""How the database refuses a login that may not even see the schema."""


@pytest.fixture
def world(postgres: Postgres, postgres_url: str, app: App) -> Iterator[World]:
    app.expect(0, "store", "init", "--roles", "--store", postgres_url)
    with closing(PostgresCheckpointer(postgres_url, "none")) as store:
        for thread, terms in GATES.items():
            gate = Gate("a", "ship it?", CHOICES, **terms)
            runner = line(store, say("x"), say("y"), interrupt_after=[gate])
            runner.invoke({}, thread_id=thread)
        waits = runner.open("paused").cursor.pending[0]
        runner.answer("paused", waits.id, "yes", step=waits.step, actor="ann")
        runner.cancel("cancelled")
        line(store, say("x"), say("y"), interrupt_before=["b"]).invoke({}, thread_id="breakpoint")
        for login, role in LOGINS.items():
            postgres.login(login)
            if role:
                postgres.grant(role, login)
        postgres.group("releasers", "rob", "oli")
        postgres.group("bosses")
        yield World(store, postgres_url.rpartition("=")[2])


def allowed(
    db: psycopg.Connection[Any], statements: list[Statement], refused: tuple[type[psycopg.Error], ...]
) -> bool:
    """Whether a login may carry statements out, none of which stays done."""
    try:
        for statement, values in statements:
            given = db.execute(statement.encode(), values)
            if "commit_thread" in statement:
                assert given.fetchall(), "the commit found another version"
    except refused:
        return False
    finally:
        db.rollback()
    return True


def test_each_login_may_do_what_its_role_says_and_nothing_else(postgres: Postgres, world: World) -> None:
    wrong: list[str] = []
    count = 0
    with ExitStack() as stack:
        connections = {}
        for login in LOGINS:
            db = Server(postgres.url(user=login, password=PASSWORD, schema=world.schema), "none").connect()
            connections[login] = stack.enter_context(closing(db))
            db.autocommit = False
        for action in ACTIONS:
            for variant, tried in action.tries.items():
                statements = list(tried(world))
                for login, db in connections.items():
                    count += 1
                    expected = login in action.logins
                    refused = REFUSED if LOGINS[login] else (*REFUSED, *UNSEEN)
                    if allowed(db, statements, refused) is not expected:
                        wrong.append(f"{login} {'may not' if expected else 'may'}: {action.name}: {variant}")
    assert not wrong, "\n".join(wrong)
    assert count >= 500


RIGHTS = {"vic": set(), "rob": {"decide"}, "wes": {"run"}, "oli": {"run", "decide", "operate"}}


def test_a_store_knows_what_its_login_may_do(postgres: Postgres, world: World) -> None:
    assert world.store.rights() == {"run", "decide", "operate"}
    for login, rights in RIGHTS.items():
        url = postgres.url(user=login, password=PASSWORD, schema=world.schema)
        with closing(PostgresCheckpointer(url, "none")) as store:
            assert store.rights() == rights, login


def test_a_worker_without_a_name_cannot_decide_through_the_api(postgres: Postgres, world: World) -> None:
    url = postgres.url(user="wes", password=PASSWORD, schema=world.schema)
    with closing(PostgresCheckpointer(url, "none")) as store:
        runner = line(store, say("x"), say("y"), interrupt_after=[Gate("a", "ship it?", CHOICES)])
        waits = runner.open("waits").cursor.pending[0]
        for actor in (None, "wes"):
            with pytest.raises(NotAllowed, match="decides nothing"):
                runner.answer("waits", waits.id, "yes", step=waits.step, actor=actor)
        assert runner.open("waits").cursor.pending == (waits,)


def test_a_worker_checks_the_answer_in_the_ledger_before_it_continues(world: World) -> None:
    cursor = world.cursor("paused")
    assert missing_answer(world.store, cursor) == ""
    assert missing_answer(world.store, world.cursor("waits")) == ""
    # What the owner of the tables may write, no worker believes.
    db = world.store._server
    db.rows("ALTER TABLE ledger DISABLE TRIGGER USER")
    kind = "UPDATE ledger SET kind = ? WHERE id >> 32 = ? AND kind = ?"
    db.rows(kind, ("refused", world.key("paused"), "answer"))
    assert "was changed in the store" in missing_answer(world.store, cursor)
    dropped = world.commit("waits", pending=(), reason="paused")
    with closing(db.connect()) as owner:
        owner.execute(dropped[0][0].encode(), dropped[0][1])
    assert "asked and never answered" in missing_answer(world.store, world.cursor("waits"))


def team_graph(store: PostgresCheckpointer) -> GraphRunner:
    """A map whose branches ask, a subgraph with a gate, a gate with two votes, and something to undo."""

    def ask(state: Any, config: Any) -> dict[str, Any]:
        return {"log": f"{config.item} {config.interrupt(f'take {config.item}?')}"}

    channels = {
        "items": Channel(["a", "b"], reducer="overwrite"),
        "inner": Channel("", reducer="overwrite"),
        "log": Channel([], reducer="append"),
    }
    inner = (
        StateGraph({"text": Channel("")}, name="inner")
        .add_node("write", lambda state: {"text": "inner"})
        .add_edge(START, "write")
        .add_edge("write", END)
    )
    child = inner.compile(checkpointer=store, interrupt_after=[Gate("write", "keep it?", CHOICES)])
    graph = StateGraph(channels, name="team")
    graph.add_map("ask", over="items", node=ask)
    graph.add_subgraph("inside", child, inputs={}, outputs={"text": "inner"})
    graph.add_node("last", lambda state: NodeResult({"log": state["inner"]}, compensation=("undo", [1])))
    graph.add_compensation("undo", lambda state, config, args: {"log": "undone"})
    for source, target in zip([START, "ask", "inside", "last"], ["ask", "inside", "last", END], strict=True):
        graph.add_edge(source, target)
    gate = Gate("inside", "go?", CHOICES, quorum=2, one_account=True)
    return graph.compile(checkpointer=store, interrupt_after=[gate])


def test_a_team_works_with_one_role_each(postgres: Postgres, world: World) -> None:
    with ExitStack() as stack:
        runners = {}
        for login in LOGINS:
            url = postgres.url(user=login, password=PASSWORD, schema=world.schema)
            if LOGINS[login]:
                runners[login] = team_graph(stack.enter_context(closing(PostgresCheckpointer(url, "none"))))
        reviewer, worker, operator = runners["rob"], runners["wes"], runners["oli"]
        result = worker.invoke({}, thread_id="team")
        reviewer.update_state("team", {"items": ["a", "c"]}, actor="rob", note="c, not b")
        while result.status == "waiting":
            result = worker.invoke(thread_id="team")
            for waits in result.pending:
                reviewer.answer("team", waits.id, "yes", step=waits.step, actor="rob")
                if waits.quorum > 1:
                    operator.answer("team", waits.id, "yes", step=waits.step, actor="oli")
        assert result.status == "completed"
        assert list(result.state["log"]) == ["a yes", "c yes", "inner"]
        assert operator.verify("team", strict=True).mismatches == ()
        assert operator.fork("team", 1, "other", actor="oli")
        with pytest.raises(NotAllowed):
            worker.fork("team", 1, "third", actor="wes")
        with pytest.raises(NotAllowed, match="runs no thread"):
            reviewer.invoke(thread_id="other")
        operator.rollback("team", actor="oli")
        assert world.cursor("team").reason == "rolled_back"
        assert operator.verify("team", strict=True).mismatches == ()
        assert worker.invoke({}, thread_id="limited").reason == "interrupt"
        session = reviewer.open("limited")
        with session.writing():
            execute(session, ExtendLimits({"max_iterations": 50}, actor="rob"))
        reviewer.cancel("limited", actor="rob")
        assert world.cursor("limited").status == "cancelled"
        assert operator.store is not None
        operator.store.delete(
            Deletion({"other": world.cursor("other").version}, "oli", "done", NOW, force=True)
        )
        assert world.store.info("other") is None
