"""The queue of a store in PostgreSQL: what makes a job of a thread, who may, and what becomes of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import msgspec
import psycopg
import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, StateGraph
from hitl_tui.engine.log.jobs import HandedGraph, WorkerJob
from hitl_tui.engine.log.threads import Deletion, PauseRequest
from hitl_tui.errors import AnswerRefused, StoreUnusable, UnknownThread
from hitl_tui.stores.postgres.jobs import DIGEST
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.support.commands import App
from tests.support.flows import line, say
from tests.support.nested import around, chain
from tests.support.postgres import PASSWORD, Postgres, may
from tests.support.workers import until

TAKE = "SELECT id FROM take_job(ARRAY(SELECT queue_name FROM procrastinate_jobs), {})"


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresCheckpointer]:
    opened = PostgresCheckpointer(postgres_url)
    opened.jobs().make()
    opened.jobs().make()  # again changes nothing
    yield opened
    opened.close()


@pytest.fixture
def runner(store: PostgresCheckpointer) -> GraphRunner:
    return asking(store)


def asking(store: PostgresCheckpointer, **terms: object) -> GraphRunner:
    """A graph whose node is asked about."""
    gate = Gate("a", "Go on?", [GateChoice("yes", "yes")], **terms)  # type: ignore[arg-type]
    return line(store, say("x"), say("y"), interrupt_after=[gate])


def jobs(store: PostgresCheckpointer) -> list[WorkerJob]:
    return list(store.jobs().listed(100))


def asked(runner: GraphRunner, thread: str = "t") -> None:
    """A thread that waits for an answer, and is the workers'."""
    runner.invoke({}, thread_id=thread)
    store = runner.store
    assert isinstance(store, PostgresCheckpointer)
    store.jobs().hand(thread)
    take_all(store)


def take_all(store: PostgresCheckpointer) -> None:
    store._server.rows("DELETE FROM procrastinate_jobs")


def answer(runner: GraphRunner, value: str = "yes", thread: str = "t") -> None:
    waits = runner.open(thread).cursor.pending[0]
    runner.answer(thread, waits.id, value, step=waits.step, actor="ann")


def test_an_answer_queues_its_thread_and_a_refused_one_does_not(
    runner: GraphRunner, store: PostgresCheckpointer
) -> None:
    asked(runner)
    with pytest.raises(AnswerRefused):
        answer(runner, "no such")
    assert jobs(store) == []
    answer(runner)
    assert [(job.thread, job.state, job.graph) for job in jobs(store)] == [("t", "queued", runner.graph.name)]
    assert jobs(store)[0].digest == runner.graph.digest[:DIGEST]
    assert [line.job and (line.job.state, line.job.orphan) for line in store.threads()] == [("queued", True)]


def test_an_answer_and_its_job_are_there_together_or_not_at_all(
    runner: GraphRunner, store: PostgresCheckpointer
) -> None:
    asked(runner)
    before = store.cursor("t")
    store._server.rows("ALTER TABLE procrastinate_jobs ADD CONSTRAINT no_room CHECK (priority > 0) NOT VALID")
    with pytest.raises(StoreUnusable):
        answer(runner)
    after = store.cursor("t")
    assert before is not None
    assert after is not None
    assert (after.pending, jobs(store)) == (before.pending, [])
    assert [entry.kind for entry in store.ledger("t")].count("answer") == 0


def test_a_thread_that_is_nobodys_is_not_queued(runner: GraphRunner, store: PostgresCheckpointer) -> None:
    runner.invoke({}, thread_id="t")
    answer(runner)
    assert jobs(store) == []
    assert not store.jobs().is_handed("t")
    with pytest.raises(UnknownThread):
        store.jobs().hand("none")


def test_what_is_handed_twice_is_queued_once(runner: GraphRunner, store: PostgresCheckpointer) -> None:
    asked(runner)
    answer(runner)
    for priority in (0, 7):
        store.jobs().hand("t", priority=priority)
    assert [(job.thread, job.priority) for job in jobs(store)] == [("t", 7)]
    store.jobs().hand("t", at=store.now() + 3_600_000_000)
    assert [job.state for job in jobs(store)] == ["later"]


def test_an_edit_that_moves_a_thread_queues_it_and_one_that_does_not_leaves_it(
    runner: GraphRunner, store: PostgresCheckpointer
) -> None:
    asked(runner)
    runner.update_state("t", {"n": 7})
    assert jobs(store) == []
    runner.update_state("t", {"n": 7}, as_node="a")
    assert [job.thread for job in jobs(store)] == ["t"]


def test_a_deadline_is_a_job_at_its_time_until_somebody_answers(store: PostgresCheckpointer) -> None:
    runner = asking(store, deadline=3600.0, on_timeout="yes")
    runner.invoke({}, thread_id="t")
    store.jobs().hand("t")
    take_all(store)
    store.jobs().settle("t")
    assert [(job.state, job.why) for job in jobs(store)] == [("later", "a deadline")]
    answer(runner)
    assert [(job.state, job.why) for job in jobs(store)] == [("queued", "")]


def test_a_pause_and_an_end_take_a_thread_from_the_queue(
    runner: GraphRunner, store: PostgresCheckpointer
) -> None:
    asked(runner)
    answer(runner)
    store.request_pause("t", PauseRequest("ann", None, store.now()))
    assert jobs(store) == []
    store.jobs().hand("t")
    assert runner.invoke(thread_id="t").status == "completed"
    assert jobs(store) == []


def test_what_is_queued_of_a_thread_goes_with_it(runner: GraphRunner, store: PostgresCheckpointer) -> None:
    asked(runner)
    answer(runner)
    cursor = store.cursor("t")
    assert cursor is not None
    store.delete(Deletion({"t": cursor.version}, None, None, 0, force=True))
    assert jobs(store) == []


def test_no_worker_takes_a_job_between_a_decision_and_its_commit(
    runner: GraphRunner, store: PostgresCheckpointer, postgres: Postgres, postgres_url: str
) -> None:
    asked(runner)
    answer(runner)
    schema = postgres_url.rpartition("=")[2]
    with postgres.admin() as deciding, postgres.admin() as worker:
        for db in (deciding, worker):
            db.execute(f"SET search_path = {schema}".encode())
        with deciding.transaction():
            deciding.execute("SELECT put_job(thread, NULL, 0, 'again') FROM work")
            assert worker.execute(TAKE.format("NULL").encode()).fetchone() is None
        assert worker.execute(TAKE.format("NULL").encode()).fetchone() is not None


def test_jobs_are_taken_by_priority_and_no_thread_is_taken_twice(
    runner: GraphRunner, store: PostgresCheckpointer
) -> None:
    for name, priority in (("low", -1), ("high", 5), ("first", 0), ("second", 0)):
        asked(runner, name)
        store.jobs().hand(name, priority=priority)
    take_all(store)
    store._server.rows("SELECT put_job(thread, NULL, 0, '') FROM work ORDER BY thread")
    # As of a graph of their own: the first of each queue are compared.
    store._server.rows("UPDATE procrastinate_jobs SET queue_name = 'other' WHERE args ->> 'thread' = 'first'")
    took = []
    while given := store._server.rows(TAKE.format("NULL").replace("id FROM", "args ->> 'thread' FROM")):
        took.append(given[0][0])
        store._server.rows("SELECT put_job(key, NULL, 0, '') FROM thread WHERE id = ?", (took[-1],))
    assert took == ["high", "first", "second", "low"]
    assert [(job.thread, job.state) for job in jobs(store)] == [
        *((name, "running") for name in ("low", "high", "first", "second")),
        *((name, "queued") for name in took),
    ]


def test_what_has_its_time_is_taken_once_that_has_come(
    runner: GraphRunner, store: PostgresCheckpointer
) -> None:
    asked(runner)
    store.jobs().hand("t", at=store.now() + 3_600_000_000)
    reap(store)
    assert store._server.rows(TAKE.format("NULL")) == []
    store._server.rows("UPDATE procrastinate_jobs SET scheduled_at = now()")
    reap(store)
    assert [job.state for job in jobs(store)] == ["queued"]
    assert len(store._server.rows(TAKE.format("NULL"))) == 1


def test_what_is_decided_or_ended_inside_a_subgraph_queues_the_thread_that_it_runs_in(
    store: PostgresCheckpointer,
) -> None:
    desk = chain(lambda _state, config: {"draft": config.interrupt("Go on?")}, lambda _state: {})
    middle = StateGraph({"question": Channel(""), "draft": Channel("")}, name="middle").add_subgraph(
        "desk", desk, inputs={"question": "question"}, outputs={"draft": "draft"}
    )
    runner = around(middle.add_edge(START, "desk").add_edge("desk", END), store)
    asked(runner)
    inside = "t/team#1/desk#1"
    assert jobs(store) == []
    answer(runner, "all about moss", inside)
    assert [job.thread for job in jobs(store)] == ["t"]
    take_all(store)
    assert runner.invoke(thread_id=inside).status == "completed"
    assert [job.thread for job in jobs(store)] == ["t"]
    take_all(store)
    # What its own run does inside queues nothing.
    assert runner.invoke(thread_id="t").status == "completed"
    assert jobs(store) == []


def test_a_thread_that_takes_the_name_of_one_that_was_deleted_is_not_the_workers(
    runner: GraphRunner, store: PostgresCheckpointer
) -> None:
    asked(runner)
    assert store.jobs().is_handed("t")
    cursor = store.cursor("t")
    assert cursor is not None
    store.delete(Deletion({"t": cursor.version}, None, None, 0, force=True))
    assert not store.jobs().is_handed("t")
    runner.invoke({}, thread_id="t")
    assert not store.jobs().is_handed("t")


def reap(store: PostgresCheckpointer, outage: float = 0.0) -> list[tuple[str, str]]:
    return store.jobs().reap(silence=3.0, gone=1.0, outage=outage)


def set_last_heartbeat(store: PostgresCheckpointer, seconds: float) -> None:
    """Worker 1 was heard of so long ago."""
    store._server.rows(
        "UPDATE procrastinate_workers SET last_heartbeat = now() - make_interval(secs => ?)", (seconds,)
    )


class TestDeadWorkers:
    """Worker 1 has taken the job of thread "t", and is not heard of."""

    @pytest.fixture(autouse=True)
    def taken(self, runner: GraphRunner, store: PostgresCheckpointer) -> None:
        asked(runner)
        answer(runner)
        lease = store.new_lease(store.now())
        store.jobs().register(1, lease, [HandedGraph("g", "d")], 4, stopping=False)
        store._server.rows(TAKE.format(1))
        store.acquire("t", lease, store.now())
        store._server.rows("UPDATE cursor SET status = 'running'")

    def test_only_one_of_many_workers_requeues_the_jobs_of_dead_ones(
        self, store: PostgresCheckpointer
    ) -> None:
        assert reap(store) == []
        assert [worker.id for worker in store.jobs().workers()] == [1]
        set_last_heartbeat(store, 4.0)
        found: list[tuple[str, str]] = []
        looks = [threading.Thread(target=lambda: found.extend(reap(store))) for _ in range(4)]
        for look in looks:
            look.start()
        for look in looks:
            look.join()
        assert [thread for thread, _ in found] == ["t"]
        job = jobs(store)[0]
        assert (job.state, job.worker, store.jobs().workers()) == ("queued", None, [])
        assert "was not heard of" in job.why

    @pytest.mark.parametrize("held", ["its cursor", "its job"])
    def test_a_locked_thread_does_not_delay_the_other_jobs(
        self, runner: GraphRunner, store: PostgresCheckpointer, held: str
    ) -> None:
        runner.invoke({}, thread_id="u")
        store.jobs().hand("u")
        answer(runner, thread="u")
        other = msgspec.structs.replace(store.new_lease(store.now()), pid=2)
        store.jobs().register(2, other, [HandedGraph("g", "d")], 4, stopping=False)
        store._server.rows(TAKE.format(2))
        set_last_heartbeat(store, 4.0)
        key = store._server.rows("SELECT key FROM thread WHERE id = 't'")[0][0]
        locked = {
            "its cursor": f"SELECT FROM cursor WHERE thread = {key} FOR UPDATE",
            "its job": f"SELECT FROM procrastinate_jobs WHERE lock = '{key}' FOR UPDATE",
        }
        with store._server.connect() as writer, writer.transaction():
            writer.execute(locked[held].encode())
            writer.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            assert [thread for thread, _ in reap(store)] == ["u"]
            assert [worker.id for worker in store.jobs().workers()] == [1]
        assert [thread for thread, _ in reap(store)] == ["t"]
        assert store.jobs().workers() == []

    @pytest.mark.parametrize("status", ["running", "waiting"], ids=["running", "before its first commit"])
    def test_the_next_worker_takes_over_the_thread_of_a_dead_one(
        self, store: PostgresCheckpointer, status: str
    ) -> None:
        store._server.rows("UPDATE cursor SET status = ?", (status,))
        set_last_heartbeat(store, 4.0)
        dead = store.lease("t")
        reap(store)
        # The process lives, as one does that was stopped for a while.
        over = store.acquire("t", store.new_lease(store.now()), store.now())
        assert over is not None
        assert dead is not None
        assert over.token == dead.token

    def test_a_job_whose_worker_has_gone_is_queued_again(self, store: PostgresCheckpointer) -> None:
        store._server.rows("DELETE FROM procrastinate_workers")
        assert reap(store) == [("t", "its worker has ended")]

    def test_one_whose_connection_has_ended_is_dead_sooner(
        self, store: PostgresCheckpointer, postgres_url: str
    ) -> None:
        set_last_heartbeat(store, 1.5)
        assert reap(store) == []
        with closing(PostgresCheckpointer(postgres_url)) as other:
            other.jobs().register(1, other.new_lease(0), [], 4, stopping=False)
        set_last_heartbeat(store, 0.5)
        assert reap(store) == []
        set_last_heartbeat(store, 1.5)
        until(lambda: reap(store), "its connection has ended")
        assert store.jobs().workers() == []

    def test_nobody_is_dead_as_long_as_the_server_has_only_just_come_back(
        self, store: PostgresCheckpointer
    ) -> None:
        set_last_heartbeat(store, 4.0)
        assert reap(store, outage=1e7) == []
        assert reap(store) != []

    def test_a_thread_that_someone_else_ended_is_no_longer_a_job(self, store: PostgresCheckpointer) -> None:
        assert [job.state for job in jobs(store)] == ["running"]
        store._server.rows("UPDATE cursor SET status = 'completed'")
        work = store.jobs().at_work(10)
        assert (work.jobs, work.running, jobs(store)) == ((), 0, [])

    def test_a_job_lost_on_its_way_to_a_worker_is_queued_again(self, store: PostgresCheckpointer) -> None:
        number = store._server.rows("SELECT id FROM procrastinate_jobs")[0][0]
        store.jobs().give_back(1, {number})
        assert [job.state for job in jobs(store)] == ["running"]
        store.jobs().give_back(2, set())
        assert [job.state for job in jobs(store)] == ["running"]
        store.jobs().give_back(1, set())
        assert [(job.state, job.worker) for job in jobs(store)] == [("queued", None)]


LOGINS = {"vera": "hitl_viewer", "rita": "hitl_reviewer", "walt": "hitl_worker", "olga": "hitl_operator"}


@pytest.mark.parametrize("login", LOGINS)
def test_each_role_may_do_its_part(
    runner: GraphRunner, store: PostgresCheckpointer, postgres: Postgres, postgres_url: str, login: str
) -> None:
    asked(runner)
    store.make_roles()
    for name, role in LOGINS.items():
        postgres.login(name)
        with postgres.admin() as db:
            db.execute(f"GRANT {role} TO {name}".encode())
    schema = postgres_url.rpartition("=")[2]
    with closing(PostgresCheckpointer(postgres.url(user=login, password=PASSWORD, schema=schema))) as theirs:
        tries = {
            "hand": lambda: theirs.jobs().hand("t"),
            "decide": lambda: answer(asking(theirs)),
            "work": lambda: (
                theirs.jobs().register(1, theirs.new_lease(0), [], 1, stopping=False),
                reap(theirs),
                theirs._server.rows(
                    "SELECT id FROM take_job(ARRAY(SELECT queue_name FROM procrastinate_jobs), 1)"
                ),
                theirs.jobs().put("t", 1.0, 1, "later"),
                theirs._server.rows("DELETE FROM procrastinate_jobs"),
            ),
        }
        done = {what for what, do in tries.items() if may(do)}
        assert theirs.jobs().listed(10) is not None
    assert (
        done
        == {
            "vera": set(),
            "rita": {"decide"},
            "walt": {"hand", "work"},
            "olga": {"hand", "decide"},
        }[login]
    )
    assert (jobs(store) != []) == (login in ("rita", "olga"))
    with (
        psycopg.connect(
            postgres.url(user="rita", password=PASSWORD), autocommit=True, options=f"-csearch_path={schema}"
        ) as db,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        db.execute("SELECT put_job(1, NULL, 0, '')")


class TestOrphans:
    """A worker is there that has another graph than the threads that are its."""

    @pytest.fixture(autouse=True)
    def other(self, runner: GraphRunner, store: PostgresCheckpointer) -> None:
        asked(runner)
        lease = store.new_lease(store.now())
        store.jobs().register(1, lease, [HandedGraph("other", "0" * DIGEST)], 4, stopping=False)

    def test_a_waiting_thread_says_that_no_worker_has_its_graph(
        self, runner: GraphRunner, store: PostgresCheckpointer
    ) -> None:
        runner.invoke({}, thread_id="mine")  # left to nobody
        assert {row.thread.info.thread_id: row.orphan for row in store.waiting(10)} == {
            "t": True,
            "mine": False,
        }
        lease = store.new_lease(store.now())
        has = [HandedGraph("line", runner.graph.digest[:DIGEST])]
        store.jobs().register(2, lease, has, 4, stopping=False)
        assert not any(row.orphan for row in store.waiting(10))

    def test_all_jobs_are_counted_even_if_few_are_listed(
        self, runner: GraphRunner, store: PostgresCheckpointer
    ) -> None:
        answer(runner)
        asked_later = store.now() + 3_600_000_000
        for name in ("b", "c"):
            runner.invoke({}, thread_id=name)
            store.jobs().hand(name, at=asked_later if name == "c" else None)
        work = store.jobs().at_work(1)
        assert (len(work.jobs), work.running, work.queued, work.later) == (1, 0, 2, 1)
        assert [(graph.name, graph.digest, graph.threads) for graph in work.orphans] == [
            (runner.graph.name, runner.graph.digest[:DIGEST], 3)
        ]
        assert [worker.graphs[0].name for worker in work.workers] == ["other"]

    def test_documents_have_the_job_of_a_thread(
        self,
        runner: GraphRunner,
        postgres_url: str,
        app: App,
    ) -> None:
        answer(runner)
        thread, work = (
            app.expect(0, command, "--store", postgres_url, "--json").document
            for command in ("threads", "workers")
        )
        assert thread["threads"][0]["job"] == work["jobs"][0]
        assert work["jobs"][0]["orphan"]
        assert (work["queued"], work["orphans"][0]["threads"]) == (1, 1)
