"""Limits and conditions that a user gives to a workflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import (
    Agent,
    GraphInvalid,
    GraphRunner,
    Limits,
    MemoryCheckpointer,
    ScriptedModel,
    advisor_workflow,
    debate_workflow,
    max_turns,
    planner_workflow,
    sequential_workflow,
    supervisor_workflow,
    text_match,
)


def agent(name: str, says: str) -> Agent:
    return Agent(name, ScriptedModel(lambda messages: says, pace=0))


WORKFLOWS: dict[str, Callable[..., GraphRunner]] = {
    "sequential": lambda **more: sequential_workflow([agent("a", "go"), agent("b", "go")], **more),
    "supervisor": lambda **more: supervisor_workflow(
        agent("boss", "writer"), [agent("writer", "go")], max_rounds=40, **more
    ),
    "debate": lambda **more: debate_workflow([agent("a", "go"), agent("b", "go")], max_rounds=20, **more),
    "advisor": lambda **more: advisor_workflow(
        agent("worker", "go"), agent("advisor", "revise: go"), max_revisions=20, **more
    ),
    "planner": lambda **more: planner_workflow(
        agent("planner", "writer: go\n" * 30), [agent("writer", "go")], max_steps=30, **more
    ),
}


def run(make: Callable[..., GraphRunner], **more: Any) -> Any:
    runner = make(checkpointer=MemoryCheckpointer(), **more)
    return runner.invoke({"messages": ["Write."]}, thread_id="t"), runner.run_info("t")


@pytest.mark.parametrize("make", WORKFLOWS.values(), ids=WORKFLOWS)
def test_each_workflow_takes_limits(make: Any) -> None:
    result, info = run(make, limits=Limits(max_tokens=1))
    assert (result.status, result.reason) == ("failed", "limit")
    assert info.iteration_count == 1
    result, info = run(make, limits=Limits(max_iterations=1))
    assert (result.reason, info.iteration_count) == ("limit", 1)


@pytest.mark.parametrize("make", WORKFLOWS.values(), ids=WORKFLOWS)
def test_each_workflow_takes_a_condition(make: Any) -> None:
    result, info = run(make, termination=max_turns(1))
    assert (result.status, result.reason, info.iteration_count) == ("completed", "termination", 1)
    result, _ = run(make, termination=text_match("writer|go", "messages"))
    assert result.reason == "termination"


@pytest.mark.parametrize("name", ["supervisor", "debate", "advisor", "planner"])
def test_the_default_of_25_iterations_cuts_no_workflow_short(name: str) -> None:
    result, info = run(WORKFLOWS[name], limits=Limits(max_tokens=10**9))
    assert result.status == "completed"
    assert info.iteration_count > 25


@pytest.mark.parametrize("given", [{"limits": 3}, {"limits": {"max_tokens": 3}}, {"termination": "done"}])
@pytest.mark.parametrize("make", WORKFLOWS.values(), ids=WORKFLOWS)
def test_invalid_limits_and_conditions_are_refused(make: Any, given: Any) -> None:
    with pytest.raises(GraphInvalid, match=next(iter(given))):
        make(**given)
