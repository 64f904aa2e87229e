"""Workers as processes, over a real server: threads go on, whoever dies, and no decision is lost."""

from __future__ import annotations

import re
import signal
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.stores import open_store
from tests.support.commands import App
from tests.support.postgres import Postgres
from tests.support.workers import PATIENCE, until, worker, write_flow

pytestmark = pytest.mark.slow


@pytest.fixture
def url(app: App, postgres_url: str) -> str:
    done = app("store", "init", "--store", postgres_url)
    assert "the queue for workers is there" in done.out
    return postgres_url


def detach(app: App, url: str, graph: str, thread: str, *options: str) -> None:
    done = app("run", graph, "--thread", thread, "--store", url, "--detach", *options)
    assert done.code == 0, done.err


def stands(url: str, thread: str, status: str, head: int) -> None:
    """Wait until a thread stands there; what its log says is so."""
    with closing(open_store(url)) as store:

        def there() -> bool:
            cursor = store.cursor(thread)
            return cursor is not None and (cursor.status, cursor.head) == (status, head)

        until(there, f"{thread} {status} at {head}")


def clean(app: App, url: str, thread: str, graph: str) -> None:
    done = app("verify", thread, "--strict", "--graph", graph, "--store", url)
    assert done.code == 0, done.out


def test_a_worker_runs_a_thread_to_its_question_and_on_after_the_answer(
    app: App, url: str, tmp_path: Path
) -> None:
    graph = write_flow(tmp_path, "flow")
    detach(app, url, graph, "t")
    with worker(url, graph):
        stands(url, "t", "waiting", 2)
        assert app("approve", "t", "--store", url, "--trust").code == 0
        stands(url, "t", "completed", 4)
    clean(app, url, "t", graph)


def test_a_worker_stops_before_a_first_node_that_is_guarded(app: App, url: str, tmp_path: Path) -> None:
    graph = tmp_path / "guarded.py"
    graph.write_text(
        "from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph\n"
        "graph = StateGraph({'log': Channel('')}).add_node('danger', lambda state: {'log': 'DONE'})\n"
        "graph = graph.add_edge(START, 'danger').add_edge('danger', END).compile(\n"
        "    checkpointer=MemoryCheckpointer(), interrupt_before=['danger'])\n"
    )
    detach(app, url, str(graph), "t", "--input", "log=x")
    with worker(url, str(graph)) as first:
        stands(url, "t", "waiting", 0)
        assert first.stop() == 0
    detach(app, url, str(graph), "t")  # the person lets it continue
    with worker(url, str(graph)):
        stands(url, "t", "completed", 1)
    clean(app, url, "t", str(graph))


def test_a_decision_without_a_worker_waits_for_one(app: App, url: str, tmp_path: Path) -> None:
    graph = write_flow(tmp_path, "flow")
    detach(app, url, graph, "t")
    with worker(url, graph) as first:
        stands(url, "t", "waiting", 2)
        assert first.stop() == 0
    assert app("approve", "t", "--store", url, "--trust").code == 0
    stands(url, "t", "waiting", 3)
    with worker(url, graph):
        stands(url, "t", "completed", 4)
    clean(app, url, "t", graph)


def test_another_worker_continues_the_thread_of_a_killed_one(app: App, url: str, tmp_path: Path) -> None:
    body = "os.path.exists(HERE / 'again') or ((HERE / 'again').touch(), time.sleep(600))"
    graph = write_flow(tmp_path, "flow", body)
    detach(app, url, graph, "t")
    with worker(url, graph) as first:
        until((tmp_path / "again").exists)
        with worker(url, graph) as second:
            first.kill()
            second.wait_for("t: queued again, worker")
            stands(url, "t", "waiting", 2)
    assert "takeover" in app("log", "t", "--store", url).out
    clean(app, url, "t", graph)


WAITS = "(HERE / 'at').touch(), [time.sleep(0.05) for _ in range(6000) if not (HERE / 'on').exists()]"
"""A node that takes until the test lets it go on, or five minutes."""
ONCE = "os.path.exists(HERE / 'at') or ((HERE / 'at').touch(), time.sleep(600))"
"""A node that never ends the first time, and at once the second."""


def test_a_worker_that_is_stopped_finishes_its_node_and_leaves_the_rest(
    app: App, url: str, tmp_path: Path
) -> None:
    graph = write_flow(tmp_path, "flow", WAITS)
    detach(app, url, graph, "t")
    with worker(url, graph) as first:
        until((tmp_path / "at").exists)
        first.process.terminate()
        (tmp_path / "on").touch()
        assert first.process.wait(PATIENCE) == 0
        lines = str(first.said)
        assert "t: its worker was stopped; left to other workers" in lines or "waiting" in lines
    with worker(url, graph):
        stands(url, "t", "waiting", 2)
    assert "takeover" not in app("log", "t", "--store", url).out
    clean(app, url, "t", graph)


def test_a_node_that_outlasts_the_grace_is_cancelled_and_run_elsewhere(
    app: App, url: str, tmp_path: Path
) -> None:
    graph = write_flow(tmp_path, "flow", ONCE)
    detach(app, url, graph, "t")
    with worker(url, graph, options=("--grace", "0.2")) as first:
        until((tmp_path / "at").exists)
        assert first.stop() == 0
    with worker(url, graph):
        stands(url, "t", "waiting", 2)
    clean(app, url, "t", graph)


def test_a_second_ctrl_c_stops_running_nodes_at_once(app: App, url: str, tmp_path: Path) -> None:
    graph = write_flow(tmp_path, "flow", ONCE)
    detach(app, url, graph, "t")
    with worker(url, graph, options=("--grace", "3600")) as first:
        until((tmp_path / "at").exists)
        first.process.send_signal(signal.SIGINT)
        first.wait_for("taking no more threads")
        with closing(open_store(url)) as store:
            assert store.lease("t") is not None
            assert first.process.poll() is None
            first.process.send_signal(signal.SIGINT)
            assert first.process.wait(PATIENCE) == 0
            assert store.lease("t") is None
    with worker(url, graph):
        stands(url, "t", "waiting", 2)
    assert "takeover" not in app("log", "t", "--store", url).out
    clean(app, url, "t", graph)


def test_cancel_reaches_a_node_that_runs_at_a_worker(app: App, url: str, tmp_path: Path) -> None:
    graph = write_flow(tmp_path, "flow", ONCE)
    detach(app, url, graph, "t")
    with worker(url, graph) as running:
        until((tmp_path / "at").exists)
        done = app("cancel", "t", "--note", "enough", "--store", url)
        assert done.code == 0, done.err
        stands(url, "t", "cancelled", 1)
        running.wait_for("t: ")
        assert "0 threads run · 0 queued" in app("workers", "--store", url).out


def test_a_pause_stops_a_run_at_a_worker_and_takes_it_from_the_queue(
    app: App, url: str, tmp_path: Path
) -> None:
    graph = write_flow(tmp_path, "flow", WAITS)
    detach(app, url, graph, "t")
    with worker(url, graph):
        until((tmp_path / "at").exists)
        (tmp_path / "on").touch()
        app("pause", "t", "--store", url)
        with closing(open_store(url)) as store:
            jobs = store.jobs()
            assert jobs is not None
            until(lambda: not jobs.of_threads(["t"]), "no job is left")


def test_a_deadline_acts_though_nobody_looks(app: App, url: str, tmp_path: Path) -> None:
    graph = write_flow(tmp_path, "flow", gate=', deadline=0.5, on_timeout="approve"')
    detach(app, url, graph, "t")
    with worker(url, graph):
        stands(url, "t", "completed", 4)
    assert "timeout" in app("log", "t", "--store", url).out
    clean(app, url, "t", graph)


def test_scheduled_threads_start_on_time_and_urgent_ones_first(app: App, url: str, tmp_path: Path) -> None:
    graph = write_flow(tmp_path, "flow")
    detach(app, url, graph, "later", "--in", "1h")
    detach(app, url, graph, "low", "--priority", "-5")
    detach(app, url, graph, "high", "--priority", "5")
    with worker(url, graph, options=("--concurrency", "1")) as running:
        stands(url, "low", "waiting", 2)
        assert "begins in 59m" in app("workers", "--store", url).out
        assert app("resume", "later", "--detach", "--store", url).code == 0
        stands(url, "later", "waiting", 2)
        started = [line.split()[1] for line in running.said if "continuing" in line]
    assert started == ["high:", "low:", "later:"]


def test_a_worker_runs_several_threads_at_once_and_workers_lists_them(
    app: App, url: str, tmp_path: Path
) -> None:
    body = f"(HERE / f'at{{time.monotonic_ns()}}').touch(), {WAITS}"
    graph = write_flow(tmp_path, "flow", body)
    for name in ("a", "b", "c"):
        detach(app, url, graph, name)
    with worker(url, graph, options=("--concurrency", "2")) as running:
        until(lambda: len(list(tmp_path.glob("at?*"))) == 2, "two nodes run")
        output = app("workers", "--store", url).out
        assert "1 worker · 2 threads run · 1 queued" in output
        assert f"process {running.process.pid}" in output
        assert [bool(re.search(rf"{name} +.*runs at worker \d+, since ", output)) for name in "abc"] == [
            True,
            True,
            False,
        ]
        assert re.search("c +.*queued ", output)
        assert len(list(tmp_path.glob("at?*"))) == 2, "the third waits for its turn"
        (tmp_path / "on").touch()
        for name in ("a", "b", "c"):
            stands(url, name, "waiting", 2)
        until(lambda: "0 threads run · 0 queued" in app("workers", "--store", url).out, "nobody is held")


def test_a_thread_of_another_version_waits_for_a_worker_that_has_it(
    app: App, url: str, tmp_path: Path
) -> None:
    old = write_flow(tmp_path, "flow")
    detach(app, url, old, "t")
    (tmp_path / "new").mkdir()
    new = write_flow(tmp_path / "new", "flow", "s = {'n': 10}")
    with worker(url, new) as running:
        running.wait_for("1 thread waits for graph flow")
        assert "no worker has graph flow" in app("workers", "--store", url).out
        detach(app, url, new, "u")
        stands(url, "u", "waiting", 2)
        with worker(url, old, new):
            stands(url, "t", "waiting", 2)
    clean(app, url, "t", old)


def test_a_thread_that_somebody_else_runs_is_tried_again_later(app: App, url: str, tmp_path: Path) -> None:
    graph = write_flow(tmp_path, "flow")
    detach(app, url, graph, "t")
    with closing(open_store(url)) as store:
        lease = store.new_lease(store.now())
        store.acquire("t", lease, store.now())
        with worker(url, graph) as running:
            assert "again in 1 s" in running.wait_for("is run by")
            store.release("t", lease.token)
            stands(url, "t", "waiting", 2)


def test_a_restart_of_the_server_loses_nothing_and_waits_for_no_node(
    app: App, url: str, tmp_path: Path, postgres: Postgres
) -> None:
    graph = write_flow(tmp_path, "flow", WAITS)
    detach(app, url, graph, "t")
    with worker(url, graph):
        until((tmp_path / "at").exists)
        postgres.restart("immediate")
        detach(app, url, graph, "u")
        with closing(open_store(url)) as store:
            jobs = store.jobs()
            assert jobs is not None
            until(lambda: [job.state for job in jobs.of_threads(["t", "u"])] == ["running"] * 2, "both run")
        (tmp_path / "on").touch()
        stands(url, "t", "waiting", 2)
        stands(url, "u", "waiting", 2)
    clean(app, url, "t", graph)
