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
from tests.stores.processes import read_line, write_line
from tests.stores.reviewing import execute, runner_on
from tests.support.flows import ledger_of
from tests.support.places import ROOT
from tests.support.spec import spec

pytestmark = [pytest.mark.integration, spec("11"), pytest.mark.integration]

SLOW = pytest.mark.slow
HOW_MANY = [40, pytest.param(80, marks=SLOW)]


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


@pytest.fixture(params=["sqlite", "files", pytest.param("postgres", marks=SLOW)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    urls = {"sqlite": str(tmp_path / "runs.db"), "files": f"files:{tmp_path / 'runs'}"}
    return urls.get(request.param) or request.getfixturevalue("postgres_url")


def both_decide(place: str, people: int) -> dict[str, list[str]]:
    """What each of two processes says to have decided, that go through what waits at the same time."""
    said: dict[str, list[str]] = {"ann": [], "bob": []}
    with reviewer(place, "ann", people) as ann, reviewer(place, "bob", people) as bob:
        for each in (ann, bob):
            assert read_line(each) == "ready"
        for each in (ann, bob):
            write_line(each)
        for name, each in (("ann", ann), ("bob", bob)):
            while (line := read_line(each)) != "end":
                said[name].append(line)
    return said


@pytest.mark.parametrize("decisions", HOW_MANY)
def test_two_processes_and_two_people_for_each_decide_all_and_none_twice(place: str, decisions: int) -> None:
    store = open_store(place, "none")
    runner = runner_on(store)
    threads = [f"t{number}" for number in range(decisions)]
    for thread in threads:
        runner.invoke({}, thread_id=thread)
    said = both_decide(place, 2)
    assert sorted(said["ann"]) == sorted(said["bob"]) == sorted(threads)
    for thread in threads:
        votes = ledger_of(store, thread, "vote") + ledger_of(store, thread, "answer")
        assert sorted(entry.actor or "" for entry in votes) == ["ann", "bob"]
        assert len(ledger_of(store, thread, "answer")) == 1
        assert store.attending(thread, time.time_ns() // 1000) == ()
    assert all(runner.verify(thread, strict=True).ok for thread in threads[::10])
    print(f"{decisions} decisions by two people each, in two processes: none twice, none lost")
    store.close()


def test_of_two_processes_that_answer_the_same_question_one_is_first(place: str) -> None:
    store = open_store(place, "none")
    runner = runner_on(store, 1)
    threads = [f"t{number}" for number in range(40)]
    for thread in threads:
        runner.invoke({}, thread_id=thread)
    said = both_decide(place, 1)
    assert sorted(said["ann"] + said["bob"]) == sorted(threads)
    for name, own in said.items():
        for thread in own:
            assert [entry.actor for entry in ledger_of(store, thread, "answer")] == [name]
    assert all(runner.verify(thread, strict=True).ok for thread in threads[::10])
    store.close()


def test_what_a_killed_process_had_claimed_is_free_at_once(place: str) -> None:
    store = open_store(place, "none")
    runner = runner_on(store)
    runner.invoke({}, thread_id="t")
    request = runner.open("t").cursor.pending[0]
    with reviewer(place, "ann", 2, "t") as ann:
        assert read_line(ann) == "claimed"
        with pytest.raises(AnswerRefused, match="ann"):
            runner._execute("t", Claim(request.id, "bob"))
        ann.send_signal(signal.SIGKILL)
        ann.wait()
        assert execute(runner, "t", Claim(request.id, "bob"))
    assert [at.actor for at in store.attending("t", time.time_ns() // 1000)] == ["bob"]
    store.close()
