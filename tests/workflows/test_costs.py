"""Which part of a workflow costs what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hitl_tui import Agent, MemoryCheckpointer, ScriptedModel, planner_workflow, supervisor_workflow
from tests.support.spec import spec

pytestmark = spec("15")


def agent(name: str, says: str | Callable[[str], str], model: str) -> Agent:
    def reply(messages: Sequence[Any]) -> str:
        return says(messages[-1]["content"]) if callable(says) else says

    return Agent(name, ScriptedModel(reply, pace=0, name=model))


@pytest.mark.parametrize(
    ("steps", "replans"), [(1, 0), (6, 0), (4, 1), (3, 3)], ids=lambda number: f"{number}"
)
def test_a_planner_is_asked_once_a_plan_however_long_it_is(steps: int, replans: int) -> None:
    verdicts = iter(["replan: more"] * replans + ["done"])
    runner = planner_workflow(
        agent("planner", "writer: Write it.\n" * steps, "dear/large"),
        [agent("writer", "text", "cheap/small")],
        agent("evaluator", lambda _: next(verdicts), "dear/large"),
        max_replans=3,
        checkpointer=MemoryCheckpointer(),
    )
    assert runner.invoke({"task": "t"}, thread_id="t").reason == "end"
    report = runner.cost_report("t")
    calls = {(line.agent, line.provider): line.calls for line in report}
    assert calls == {
        ("planner", "dear"): replans + 1,
        ("evaluator", "dear"): replans + 1,
        ("writer", "cheap"): steps * (replans + 1),
    }
    by_node = {one.node: one for one in report.by_node()}
    assert by_node["dispatcher"].runs == (steps + 1) * (replans + 1)
    assert by_node["dispatcher"].spent.calls == 0
    assert report.total.cost == pytest.approx(runner.run_info("t").cost)
    assert report.total.calls == (steps + 2) * (replans + 1)


def test_a_manager_is_asked_once_a_step() -> None:
    turns = iter(["writer"] * 5 + ["DONE"])
    runner = supervisor_workflow(
        agent("manager", lambda _: next(turns), "dear/large"),
        [agent("writer", "text", "cheap/small")],
        max_rounds=20,
        checkpointer=MemoryCheckpointer(),
    )
    runner.invoke({"task": "t"}, thread_id="t")
    assert {line.agent: line.calls for line in runner.cost_report("t")} == {"manager": 6, "writer": 5}


def test_an_agent_that_was_never_called_has_its_line() -> None:
    runner = supervisor_workflow(
        agent("manager", "DONE", "dear/large"),
        [agent("writer", "text", "cheap/small")],
        checkpointer=MemoryCheckpointer(),
    )
    runner.invoke({"task": "t"}, thread_id="t")
    for report in (runner.cost_report("t"), runner.cost_report()):
        assert [(line.agent, line.provider, line.model, line.calls, line.cost) for line in report] == [
            ("manager", "dear", "large", 1, 0),
            ("writer", "cheap", "small", 0, 0),
        ]
