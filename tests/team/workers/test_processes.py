"""Workers as processes, over a real server: threads go on, whoever dies, and no decision is lost."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.stores import open_store
from tests.support.program import call
from tests.support.workers import until, worker, write_flow

pytestmark = pytest.mark.slow


@pytest.fixture
def url(postgres_url: str) -> str:
    done = call("store", "init", "--store", postgres_url)
    assert "the queue for workers is there" in done.stdout
    return postgres_url


def detach(url: str, graph: str, thread: str, *options: str) -> None:
    done = call("run", graph, "--thread", thread, "--store", url, "--detach", *options)
    assert done.returncode == 0, done.stderr


def stands(url: str, thread: str, status: str, head: int) -> None:
    """Wait until a thread stands there; what its log says is so."""
    with closing(open_store(url)) as store:

        def there() -> bool:
            cursor = store.cursor(thread)
            return cursor is not None and (cursor.status, cursor.head) == (status, head)

        until(there, f"{thread} {status} at {head}")


def clean(url: str, thread: str, graph: str) -> None:
    done = call("verify", thread, "--strict", "--graph", graph, "--store", url)
    assert done.returncode == 0, done.stdout


def test_a_worker_advances_a_thread_to_its_question_and_on_behind_the_answer(
    url: str, tmp_path: Path
) -> None:
    graph = write_flow(tmp_path, "flow")
    detach(url, graph, "t")
    with worker(url, graph):
        stands(url, "t", "waiting", 2)
        assert call("approve", "t", "--store", url, "--trust").returncode == 0
        stands(url, "t", "completed", 4)
    clean(url, "t", graph)


def test_a_decision_that_is_made_while_no_worker_is_there_waits_for_one(url: str, tmp_path: Path) -> None:
    graph = write_flow(tmp_path, "flow")
    detach(url, graph, "t")
    with worker(url, graph) as first:
        stands(url, "t", "waiting", 2)
        assert first.stop() == 0
    assert call("approve", "t", "--store", url, "--trust").returncode == 0
    stands(url, "t", "waiting", 3)
    with worker(url, graph):
        stands(url, "t", "completed", 4)
    clean(url, "t", graph)


def test_the_thread_of_a_worker_that_is_killed_goes_on_with_another(url: str, tmp_path: Path) -> None:
    body = "os.path.exists(HERE / 'again') or ((HERE / 'again').touch(), time.sleep(600))"
    graph = write_flow(tmp_path, "flow", body)
    detach(url, graph, "t")
    with worker(url, graph) as first:
        until((tmp_path / "again").exists)
        with worker(url, graph) as second:
            first.kill()
            second.wait_for("t: queued again, worker")
            stands(url, "t", "waiting", 2)
    assert "takeover" in call("log", "t", "--store", url).stdout
    clean(url, "t", graph)
