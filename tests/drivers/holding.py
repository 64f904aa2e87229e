"""Another process on a thread: on request it runs a loop of steps, edits or answers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from hitl_tui import (
    END,
    START,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    HitlError,
    SQLiteCheckpointer,
    StateGraph,
    append,
)
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Answer, Run, Start, UpdateState
from hitl_tui.engine.log.records import Limits
from hitl_tui.stores import Checkpointer
from tests.support.flows import review_loop
from tests.support.places import ROOT

SLOW = 0.15
"""Seconds a step takes that nobody waits for."""


def ticker(store: Checkpointer, tick: Callable[[int], object]) -> GraphRunner:
    """A node that counts in a loop without end; `tick` gets the next number before it is committed."""

    def count(state: Any) -> dict[str, Any]:
        tick(state["n"] + 1)
        return {"n": state["n"] + 1, "log": f"step {state['n'] + 1}"}

    return (
        StateGraph({"n": Channel(0), "log": Channel([], reducer=append())}, name="ticker")
        .add_node("count", count)
        .add_edge(START, "count")
        .add_conditional_edge("count", lambda state: state["n"] < 1000, {"true": "count", "false": END})
        .compile(checkpointer=store, limits=Limits(max_iterations=None))
    )


def gated(store: Checkpointer) -> GraphRunner:
    """Writing and checking, with a decision after each check."""
    choices = [GateChoice("accept", "ok"), GateChoice("approve", "ok", values={"verdict": "approved"})]
    return review_loop(store, interrupt_after=[Gate("check", title="verdict", choices=choices)])


class Other:
    """The other process, seen from a test: lines go in, lines come out."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def wait_for_line(self, wanted: str) -> str:
        """Wait for a line that starts with a text, and return it."""
        assert self._process.stdout
        async with asyncio.timeout(60):
            while line := (await self._process.stdout.readline()).decode():
                if line.startswith(wanted):
                    return line.rstrip("\n")
        raise AssertionError(f"the other process ended without {wanted!r}")

    def send_line(self, line: str = "go on") -> None:
        """Send a line, on which it continues."""
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n".encode())

    async def kill(self) -> None:
        """End it as a power cut would."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@contextlib.asynccontextmanager
async def another(role: str, path: Path, *words: str) -> AsyncIterator[Other]:
    """This module in a process of its own, dead at the end."""
    other = Other(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.drivers.holding", role, str(path), *words),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
    )
    try:
        yield other
    finally:
        await other.kill()


def _say(words: str) -> None:
    """A whole line at once: `print` writes its end apart, and another thread may get between."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _wait_for_word(number: int) -> None:
    _say(f"at {number}")
    sys.stdin.readline()


async def _run(path: str, tick: Callable[[int], object]) -> None:
    store = SQLiteCheckpointer(path)
    graph = ticker(store, tick)
    driver = await LocalHub(store, lambda info: graph).new("t", graph)
    await driver.execute(Start({}))
    await driver.execute(Run())
    _say("running")
    await asyncio.Event().wait()


async def _decide(path: str, role: str, actor: str, choice: str) -> None:
    """Edit, or answer what waits, on the step that was seen before the word to go was given."""
    store = SQLiteCheckpointer(path)
    graph = gated(store)
    driver = await LocalHub(store, lambda info: graph).open("t")
    seen = (await driver.snapshot()).progress
    _say("ready")
    sys.stdin.readline()
    try:
        if role == "edit":
            step = await driver.execute(UpdateState({"draft": choice}, expected_step=seen.head, actor=actor))
        else:
            request = seen.pending[0]
            step = await driver.execute(Answer(request.id, choice, step=request.step, actor=actor))
    except HitlError as error:
        _say(f"done {type(error).__name__}")
    else:
        _say(f"done {step}")


def _main(role: str, path: str, *words: str) -> None:
    if role == "asked":
        asyncio.run(_run(path, _wait_for_word))
    elif role == "free":
        asyncio.run(_run(path, lambda _: time.sleep(SLOW)))
    else:
        asyncio.run(_decide(path, role, *words))


if __name__ == "__main__":
    _main(*sys.argv[1:])
