"""Tool calls that were under way when their process was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.agents.tools import Effects
from tests.agents import killed_at_calls
from tests.agents.paying_once import build


@pytest.mark.integration
@pytest.mark.parametrize(
    ("answer", "out", "calls"),
    [({"choice": "made", "text": "paid before"}, "done: paid before", 1), ("again", "done: paid", 2)],
)
def test_a_person_is_asked_about_a_call_that_must_not_run_twice(
    tmp_path: Path, answer: Any, out: str, calls: int
) -> None:
    program = [sys.executable, "-m", "tests.agents.paying_once", str(tmp_path)]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    runner = build(tmp_path)
    (request,) = runner.invoke(thread_id="t").pending
    assert request.title == "Was pay called?"
    runner.answer("t", request.id, answer, step=request.step, actor="ann")
    assert runner.invoke(thread_id="t")["out"] == out
    keys = (tmp_path / "paid").read_text().split()
    assert len(keys) == calls
    assert len(set(keys)) == 1
    assert runner.verify("t", strict=True).ok


def _resumed_after_a_kill(folder: Path, point: str, effects: Effects) -> list[str]:
    """Kill a process there, and resume its thread here; gives the calls that were made, in order."""
    program = [sys.executable, "-m", "tests.agents.killed_at_calls", str(folder), point, effects]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    runner = killed_at_calls.build(folder, effects)
    result = runner.invoke(thread_id="t")
    when, _, call = point.partition(" ")
    may_have_been_made = effects == "once" and call in killed_at_calls.TOOLS
    assert [request.title for request in result.pending] == [f"Was {call} called?"] * may_have_been_made
    for request in result.pending:
        answer = "again" if when == "before" else {"choice": "made", "text": f"{call} done"}
        runner.answer("t", request.id, answer, step=request.step, actor="ann")
        result = runner.invoke(thread_id="t")
    assert result["out"] == "done"
    assert runner.verify("t", strict=True).ok
    made = killed_at_calls.Made(folder).lines()
    keys = {call: {key for other, key in made if other == call} for call, _ in made}
    assert all(len(each) == 1 for each in keys.values())
    assert len({key for tool in killed_at_calls.TOOLS for key in keys.get(tool, ())}) == len(
        [tool for tool in killed_at_calls.TOOLS if tool in keys]
    )
    assert runner.store is not None
    runner.store.close()
    return [call for call, _ in made]


def _expected(point: str, effects: Effects) -> list[str]:
    """Each call once; again only one whose process died before it was recorded, if nobody need be asked."""
    when, _, call = point.partition(" ")
    expected = []
    for name in ("model 0", "look", "model 1", "pay", "model 2", "send", "model 3"):
        is_repeated = when == "after" and name == call and (effects == "repeatable" or "model" in call)
        expected += [name] * (2 if is_repeated else 1)
    return expected


@pytest.mark.integration
@pytest.mark.parametrize(("point", "effects"), [("before model 2", "repeatable"), ("after send", "once")])
def test_completed_calls_are_not_made_again_after_a_kill(
    tmp_path: Path, point: str, effects: Effects
) -> None:
    assert _resumed_after_a_kill(tmp_path, point, effects) == _expected(point, effects)


@pytest.mark.slow
@pytest.mark.parametrize("effects", ["repeatable", "once"])
@pytest.mark.parametrize("point", killed_at_calls.POINTS)
def test_completed_calls_are_not_made_again_after_a_kill_at_any_point(
    tmp_path: Path, point: str, effects: Effects
) -> None:
    assert _resumed_after_a_kill(tmp_path, point, effects) == _expected(point, effects)
