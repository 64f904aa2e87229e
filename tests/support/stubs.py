"""Agents without a model, and what every test of a workflow does with a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hitl_tui import GraphRunner, RunResult


class Stub:
    """An agent that replies from a list, or by a function of the prompt, and keeps what it was asked."""

    def __init__(self, name: str, replies: Sequence[str] | Callable[[str], str]) -> None:
        self.name = name
        self.prompts: list[str] = []
        self._replies = replies

    def chat(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self._replies(prompt) if callable(self._replies) else self._replies[len(self.prompts) - 1]


def decide(runner: GraphRunner, choice: str, text: str = "", thread_id: str = "t") -> RunResult:
    """Answer the one question of a thread and run on."""
    (request,) = runner.open(thread_id).cursor.pending
    answer = {"choice": choice, "text": text} if text else choice
    runner.answer(thread_id, request.id, answer, step=request.step, actor="ann")
    return runner.invoke(thread_id=thread_id)


def reasons(runner: GraphRunner, thread_id: str = "t") -> list[str]:
    """Why each step went on as it did, oldest first."""
    return [point.text for point in reversed(runner.history(thread_id)) if point.text]


def check_every_fork(runner: GraphRunner, thread_id: str = "t") -> None:
    """A fork at any step, run on without a change, ends in the same state; all logs verify."""
    wanted: Any = dict(runner.get_state(thread_id))
    for step in range(runner.open(thread_id).cursor.head + 1):
        fork = runner.fork(thread_id, step, f"{thread_id}-at-{step}")
        result = runner.invoke(thread_id=fork)
        assert dict(result) == wanted, f"forked at step {step}"
        assert runner.verify(fork, strict=True).ok
    assert runner.verify(thread_id, strict=True).ok
