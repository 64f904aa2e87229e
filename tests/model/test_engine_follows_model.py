"""The engine on SQLite does what the model does, step by step, also when its process dies in between."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.model.engine import Engine, Killed
from tests.model.protocol import DEADLINE, Asked, Budget, Entry, State, steps

HIDDEN = ("the worker takes the lease", "the worker passes the gate", "look is allowed")
"""Steps of the model that change neither the store nor the world."""
POINTS = 24
"""More than the points at which a run of the worker can die."""
KILLED_AT = (0, *range(1, 20, 2))
"""Before the first commit of the run, and after each commit and each call up to the step that ends it."""


def is_visible(label: str) -> bool:
    """Whether a step of the model shows in the store or in the world."""
    return label not in HIDDEN and not label.endswith("was recorded before")


class EngineFollowsModel(RuleBasedStateMachine):
    """Takes each step in the model and in the engine, and compares the two after it."""

    budget = Budget(edits=3, forks=1, kills=3, failures=1, deadlines=1, claims=1, rule_changes=2)

    def __init__(self) -> None:
        super().__init__()
        self.place = TemporaryDirectory()
        self.engine = Engine(Path(self.place.name) / "threads.db")
        self.state = State(budget=self.budget)
        self.asked_by_id: dict[str, Asked] = {}
        self.before_fork: frozenset[Entry] = frozenset()
        self.engine.run(0, None, fails=False)
        self.take("the worker takes the lease")
        self.take('the worker asks "pay 0?"')

    def teardown(self) -> None:
        try:
            for number in range(len(self.state.threads)):
                report = self.engine.runner.verify(self.engine.name(number), strict=True)
                assert report.ok, report
        finally:
            self.engine.close()
            self.place.cleanup()

    def labels(self) -> list[str]:
        """What can happen next; no deadline passes where two requests wait, for both have the same clock."""
        labels = [label for label, _ in steps(self.state)]
        gates = [one for one in self.state.threads if one.request and one.request.asked.about == "gate"]
        return [one for one in labels if len(gates) < 2 or not one.startswith(DEADLINE)]

    def take(self, label: str) -> None:
        """Take a step of the model."""
        self.state = dict(steps(self.state))[label]

    @precondition(lambda self: self.labels())
    @rule(data=st.data(), dies_at=st.none() | st.integers(0, POINTS), fails=st.booleans())
    def something_happens(self, data: st.DataObject, dies_at: int | None, *, fails: bool) -> None:
        label = data.draw(st.sampled_from(self.labels()), label="step")
        if not self.state.budget.kills:
            dies_at = None
        words, _, place = label.partition(" (thread ")
        number = int(place[:-1]) if place else 0
        if words == "the worker takes the lease":
            self.run(label, number, dies_at, fails=fails and self.state.budget.failures > 0)
        elif " answers " in words and not words.startswith(DEADLINE):
            self.answer(label, words, number, None if dies_at is None else dies_at % 4)
        else:
            self.do_at_once(words, number)
            self.take(label)
            if words == "fork":
                self.settle(len(self.state.threads) - 1)

    @precondition(lambda self: not self.labels())
    @rule()
    def nothing_is_left(self) -> None:
        for number in range(len(self.state.threads)):
            assert self.engine.run(number, None, fails=False) == ([], False)

    def run(self, label: str, number: int, dies_at: int | None, *, fails: bool) -> None:
        """Let the worker run until it waits, ends, fails or dies."""
        trace, died = self.engine.run(number, dies_at, fails=fails)
        self.take(label)
        followed: list[str] = []
        while self.state.worker is not None and (not died or len(followed) < len(trace)):
            options = [one for one in self.labels() if one != "kill the worker"]
            ending = "the node fails, and will be tried again"
            step = ending if fails and ending in options else options[0]
            self.take(step)
            if is_visible(step):
                followed.append(step)
        assert trace == followed
        if died:
            if self.state.worker is not None:
                self.take("kill the worker")
            self.engine.restart()

    def answer(self, label: str, words: str, number: int, dies_at: int | None) -> None:
        """Let a reviewer answer; their process may die before or after the answer is stored."""
        who, _, verdict, *_ = words.split()
        before = len(list(self.engine.answers(number)))
        try:
            self.engine.answer(number, who, verdict, dies_at)
        except Killed:
            self.engine.restart()
            if len(list(self.engine.answers(number))) > before:
                self.take(label)
                self.take(f"kill the process of {who}")
        else:
            self.take(label)
            self.take(f"{who} is told that the answer is stored")

    def do_at_once(self, words: str, number: int) -> None:
        """Do something that is one commit, or none."""
        thread = self.state.threads[number]
        if words.startswith("edit"):
            self.engine.edit(number, int(words[-1]))
        elif words.startswith("undo"):
            assert thread.before is not None
            self.engine.edit(number, thread.before)
        elif words == "fork":
            self.before_fork = thread.ledger
            self.engine.fork(number, len(self.state.threads))
        elif " claims " in words:
            self.engine.claim(number, words.partition(" ")[0])
        elif words.startswith("the rule"):
            self.engine.rule_asks = not self.engine.rule_asks
        else:
            assert words.startswith(DEADLINE)
            self.engine.pass_deadline(number)

    def settle(self, number: int) -> None:
        """Let the engine ask what the model's fork asks."""
        if self.state.threads[number].request is not None:
            self.engine.run(number, None, fails=False)

    @invariant()
    def engine_and_model_agree(self) -> None:
        for number, thread in enumerate(self.state.threads):
            cursor = self.engine.cursor(number)
            asked = [self.engine.asked(number, request) for request in cursor.pending]
            assert asked == ([thread.request.asked] if thread.request else [])
            for request, what in zip(cursor.pending, asked, strict=True):
                self.asked_by_id[request.id] = what
                assert thread.request is not None
                assert {(vote.actor, vote.answer) for vote in request.votes} == thread.request.votes
            values = self.engine.runner.get_state(self.engine.name(number))
            assert values["amount"] == thread.value
            assert (cursor.status == "completed") == (thread.status != "open")
            assert values["paid"] == (thread.value if thread.status == "done" else None)
            answers = {
                Entry(self.asked_by_id[request_id], who, verdict)
                for request_id, who, verdict in self.engine.answers(number)
            }
            # A fork shares the decisions up to a step; which of its parent's these are is not modelled.
            shared = self.before_fork if number else frozenset()
            assert answers - shared == thread.ledger - shared


@pytest.mark.slow
@pytest.mark.parametrize(("examples", "steps_each"), [(20, 18), (40, 30)], ids=["few", "many"])
def test_the_engine_follows_the_model(examples: int, steps_each: int) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        EngineFollowsModel,
        settings=settings(
            max_examples=examples, stateful_step_count=steps_each, derandomize=True,
            database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


@pytest.mark.integration
@pytest.mark.parametrize("point", KILLED_AT)
def test_a_killed_process_leaves_what_the_model_says(point: int, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    state = State(rule_asks=False, budget=Budget(edits=0, kills=1))
    engine = Engine(path, rule_asks=False, really_dies=True)
    try:
        engine.run(0, None, fails=False)
        engine.answer(0, "ann", "yes", None)
        engine.answer(0, "bob", "yes", None)
    finally:
        engine.close()
    for label in (
        "the worker takes the lease", 'the worker asks "pay 0?"',
        'ann answers yes to "pay 0?"', "ann is told that the answer is stored",
        'bob answers yes to "pay 0?"', "bob is told that the answer is stored",
        "the worker takes the lease",
    ):  # fmt: skip
        state = dict(steps(state))[label]
    log = tmp_path / "trace"
    program = [sys.executable, "-m", "tests.model.engine", str(path), str(point), str(log)]
    ended = subprocess.run(program, check=False).returncode
    trace = log.read_text().splitlines()
    done: list[str] = []
    while state.worker is not None and len(done) < len(trace):
        label = next(one for one, _ in steps(state) if one != "kill the worker")
        state = dict(steps(state))[label]
        done += [label] if is_visible(label) else []
    assert done == trace
    assert ended == -signal.SIGKILL
    if state.worker is not None:
        state = dict(steps(state))["kill the worker"]
    after = Engine(path, rule_asks=False, really_dies=True)
    try:
        assert_continues(after, state)
    finally:
        after.close()


def assert_continues(engine: Engine, state: State) -> None:
    """The next process does what the model does, until both wait or end."""
    followed: list[str] = []
    if state.threads[0].status == "open":
        state = dict(steps(state))["the worker takes the lease"]
    while state.worker is not None:
        label = next(one for one, _ in steps(state) if one != "kill the worker")
        state = dict(steps(state))[label]
        followed += [label] if is_visible(label) else []
    trace, _ = engine.run(0, None, fails=False)
    assert trace == followed
    request = state.threads[0].request
    pending: list[Any] = [engine.asked(0, one) for one in engine.cursor(0).pending]
    assert pending == ([request.asked] if request else [])
    assert engine.runner.verify("t", strict=True).ok
