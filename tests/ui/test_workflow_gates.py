"""Each workflow and its person on a real screen: what is asked, why it came so, and what a key decides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from hitl_tui import (
    Agent,
    MemoryCheckpointer,
    ScriptedModel,
    advisor_workflow,
    debate_workflow,
    planner_workflow,
    sequential_workflow,
    supervisor_workflow,
)
from hitl_tui.agents import Tool, ToolCall
from hitl_tui.engine.runner import GraphRunner
from tests.support.spec import spec
from tests.ui.harness import Clock, Desk, live
from tests.ui.real import answer, asked

pytestmark = spec("15")


def says(name: str, *replies: Any, **options: Any) -> Agent:
    return Agent(name, ScriptedModel(list(replies), pace=0), **options)


def writer() -> Agent:
    return says("writer", "A lunch box.", "Another box.")


def short_plan() -> Agent:
    return says("planner", "writer: Write: short.")


WORKFLOWS: dict[str, Callable[..., GraphRunner]] = {
    "sequential": lambda **o: sequential_workflow(
        [writer(), says("editor", "Edited.")], human="handover", **o
    ),
    "supervisor": lambda **o: supervisor_workflow(
        says("boss", "Now I ask the writer", "DONE"), [says("researcher", "Notes."), writer()],
        human="route", **o,
    ),
    "debate": lambda **o: debate_workflow(
        [says("critic", "Too short."), writer()], says("judge", "Not abandoned."), human="round", **o
    ),
    "advisor": lambda **o: advisor_workflow(
        writer(), says("advisor", "revise: Longer"), human="verdict", **o
    ),
    "planner": lambda **o: planner_workflow(
        short_plan(), [writer()], says("evaluator", "replan: no sources"), human="replan", **o
    ),
    "plan": lambda **o: planner_workflow(short_plan(), [writer()], human="plan", **o),
}  # fmt: skip
OWN = "writer: Mine."


@asynccontextmanager
async def opened(runner: GraphRunner, inputs: Any) -> AsyncIterator[Desk]:
    async with live(runner, inputs=inputs, ready="READY") as it:
        desk = Desk(it.app, it.pilot, cast(Any, None), Clock())
        it.run.clock = desk.clock
        await it.press("c")
        yield desk


@pytest.mark.parametrize(
    ("name", "question", "keys", "decided"),
    [
        ("sequential", ("Pass this on to editor?", "A lunch box."), ["enter"], "pass"),
        ("supervisor", ("next: writer (named at character 15", "go to researcher"), ["1"], "researcher"),
        ("debate", ("the judge continues the debate", "Not abandoned."), ["x"], "end"),
        ("advisor", ("The advisor wants changes", "Longer", "A lunch box."), ["a"], "approve"),
        ("planner", ("The evaluator wants a new plan", "no sources"), ["x"], "done"),
        ("plan", ("Run this plan?", "writer: Write: short."), ["r", *OWN, "enter", "enter"], "replace"),
    ],
    ids=list(WORKFLOWS),
)
@pytest.mark.slow
async def test_a_gate_says_why_it_asks_and_keys_decide(
    name: str, question: tuple[str, ...], keys: list[str], decided: str
) -> None:
    runner = WORKFLOWS[name](checkpointer=MemoryCheckpointer())
    async with opened(runner, {"messages": "Do it."}) as it:
        await asked(it, *question)
        await answer(it, *keys)
        if name == "supervisor":
            await asked(it, "next: the end (the reply names no worker")
            assert runner.get_state("t")["messages"][2] == "Notes."
            await answer(it, "enter")
        await it.shows("reached the end")
    if name == "plan":
        assert runner.get_state("t")["plan"] == [{"worker": "writer", "instruction": "Mine."}]
    assert decided in [point.decision for point in runner.history("t")]


@pytest.mark.parametrize(
    ("keys", "expected", "sent"),
    [
        (["a"], "sent to ann", ["ann"]),
        (
            ["e", "end", "a", "enter", "enter"],
            "[A person changed this call before it was made. "
            'It ran with these arguments: {"to": "anna"}]\nsent to anna',
            ["anna"],
        ),
        (["r", *"too late", "enter", "enter"], "Error: A person refused this call: too late", []),
    ],
    ids=["approved", "its arguments edited", "rejected with a reason"],
)
@pytest.mark.slow
async def test_a_tool_call_waits_and_the_model_gets_the_decision(
    keys: list[str], expected: str, sent: list[str]
) -> None:
    did: list[str] = []

    def send(to: str) -> str:
        """Send an invitation."""
        did.append(to)
        return f"sent to {to}"

    def reply(messages: Any) -> Any:
        return messages[-1]["content"] if messages[-1]["role"] == "tool" else ToolCall("send", {"to": "ann"})

    clerk = Agent("clerk", ScriptedModel(reply, pace=0), tools=[Tool(send, approve="always")])
    runner = sequential_workflow([clerk], checkpointer=MemoryCheckpointer())
    async with opened(runner, {"messages": "Do it."}) as it:
        await asked(it, "Call send?", "Send an invitation.", "to  ann")
        assert did == []
        await answer(it, *keys)
        await it.shows("reached the end")
    assert (runner.get_state("t")["output"], did) == (expected, sent)
