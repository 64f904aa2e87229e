"""Every state that two reviewers, one worker and a crash at any point can reach keeps what was promised."""

from __future__ import annotations

from functools import partial

import pytest

from tests.model.protocol import RULES, Budget, Rules, State, explore, steps

SMALL = (
    Budget(edits=1, kills=1, rule_changes=1),
    Budget(edits=1, kills=0, failures=1, deadlines=1),
    Budget(edits=0, forks=1, kills=1),
    Budget(edits=2, kills=0, claims=1),
)
LARGE = (
    Budget(edits=1, kills=1, failures=1, deadlines=1, rule_changes=1),
    Budget(edits=2, kills=1, failures=1, deadlines=1),
    Budget(edits=1, kills=2, claims=1, rule_changes=1),
    Budget(edits=1, forks=1, kills=0),
)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [*SMALL, *(pytest.param(one, marks=pytest.mark.slow) for one in LARGE)])
def test_no_state_breaks_a_promise(budget: Budget) -> None:
    explored = explore(State(budget=budget))
    assert not explored.trace, str(explored)
    assert explored.ends > 0
    assert "the step is committed" in {label.partition(" (thread")[0] for label in explored.seen}
    print(explored)


BROKEN = {
    "answers_match_by_hash": ("send of 1 was made, and nobody agreed to it", "edit the amount to 1"),
    "kept_answer_comes_before_rule": (
        "send of 0 was made, and a person refused it",
        "the rule now asks for no approval of send",
    ),
    "calls_are_recorded_at_once": ("look of 0 was made again after it completed", "kill the worker"),
    "votes_end_with_their_request": (
        "look of 1 was made, and the gate was not passed for 1",
        "edit the amount to 1",
    ),
    "gate_is_bound_to_hash": (
        "look of 1 was made, and the gate was not passed for 1",
        "edit the amount to 1",
    ),
    "stored_before_acknowledged": (
        "an acknowledged answer is missing: ann said yes",
        'ann answers yes to "pay 0?"',
    ),
    "asks_about_call_in_flight": (
        "send of 0 was made again, and nobody was asked",
        "kill the worker",
    ),
}
"""What goes wrong without each rule, and a step on the shortest way there."""


def test_each_rule_is_broken_once() -> None:
    assert set(BROKEN) == set(Rules._fields)


@pytest.mark.parametrize("rule", BROKEN)
def test_breaking_a_rule_is_found(rule: str) -> None:
    fault, decisive = BROKEN[rule]
    broken = RULES._replace(**{rule: False})
    start = State(budget=Budget(edits=1, kills=1, rule_changes=1))
    explored = explore(start, partial(steps, rules=broken))
    print(explored)
    assert explored.fault == fault
    assert decisive in explored.trace
    lines = str(explored).splitlines()
    assert [line.partition(". ")[2] for line in lines[1:]] == list(explored.trace)


def test_the_trace_is_one_that_the_model_takes_and_the_sound_rules_do_not() -> None:
    broken = RULES._replace(gate_is_bound_to_hash=False)
    start = State(budget=Budget())
    trace = explore(start, partial(steps, rules=broken)).trace
    state = start
    for label in trace:
        state = dict(steps(state, broken))[label]
    assert state.facts.wrong
    state = start
    for label in trace[: trace.index("the worker passes the gate")]:
        state = dict(steps(state))[label]
    assert set(dict(steps(state))) == {'the worker asks "pay 1?"', "kill the worker"}
