"""Several processes decide at once: none decides twice, nothing is lost, and a killed one's claim is free."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitl_tui import open_store
from hitl_tui.engine.commands import Claim
from hitl_tui.errors import AnswerRefused
from tests.stores.processes import heard, tell
from tests.stores.reviewing import execute, runner_on
from tests.support.flows import ledger_of
from tests.support.places import ROOT
from tests.support.spec import spec

pytestmark = spec("11")

THREADS = 100
"""Two votes each: 200 decisions."""


@contextmanager
def reviewer(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A reviewer's process, killed at the end."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.stores.reviewing", *map(str, arguments)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@pytest.fixture(params=["sqlite", "files", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    urls = {"sqlite": str(tmp_path / "runs.db"), "files": f"files:{tmp_path / 'runs'}"}
    return urls.get(request.param) or request.getfixturevalue("postgres_url")


def test_two_processes_and_two_people_each_decide_200_times_and_no_time_twice(place: str) -> None:
    store = open_store(place, "none")
    runner = runner_on(store)
    threads = [f"t{number}" for number in range(THREADS)]
    for thread in threads:
        runner.invoke({}, thread_id=thread)
    with reviewer(place, "ann") as ann, reviewer(place, "bob") as bob:
        for each in (ann, bob):
            assert heard(each) == "ready"
        for each in (ann, bob):
            tell(each)
        said: dict[str, list[str]] = {"ann": [], "bob": []}
        for name, each in (("ann", ann), ("bob", bob)):
            while (told := heard(each)) != "end":
                assert told in threads
                said[name].append(told)
    assert sorted(said["ann"]) == sorted(said["bob"]) == sorted(threads)
    for thread in threads:
        votes = ledger_of(store, thread, "vote") + ledger_of(store, thread, "answer")
        assert sorted(entry.actor or "" for entry in votes) == ["ann", "bob"]
        assert len(ledger_of(store, thread, "answer")) == 1
        assert store.attending(thread, time.time_ns() // 1000) == ()
        assert runner.verify(thread, strict=True).ok
    store.close()


def test_what_a_killed_process_had_claimed_is_free_at_once(place: str) -> None:
    store = open_store(place, "none")
    runner = runner_on(store)
    runner.invoke({}, thread_id="t")
    request = runner.open("t").cursor.pending[0]
    with reviewer(place, "ann", "t") as ann:
        assert heard(ann) == "claimed"
        with pytest.raises(AnswerRefused, match="ann"):
            runner._execute("t", Claim(request.id, "bob"))
        ann.send_signal(signal.SIGKILL)
        ann.wait()
        assert execute(runner, "t", Claim(request.id, "bob"))
    assert [at.actor for at in store.attending("t", time.time_ns() // 1000)] == ["bob"]
    store.close()
