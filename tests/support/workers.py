"""Workers as processes of their own, and graphs for them."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.places import ROOT
from tests.support.program import APP

PATIENCE = 60.0
"""Seconds that anything is waited for, on a machine that is busy with others."""


class WorkerProcess:
    """A worker that runs, and what it says."""

    def __init__(
        self, url: str, *graphs: str, options: tuple[str, ...] = (), below: Sequence[str] = ()
    ) -> None:
        given = [word for graph in graphs for word in ("--graph", graph)]
        self.process = subprocess.Popen(
            [*below, *APP, "worker", "--store", url, *given, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.said: list[str] = []
        self._news = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.said.append(line.rstrip())
                self._news.notify_all()
        with self._news:
            self.said.append("ENDED")
            self._news.notify_all()

    def wait_for(self, words: str, times: int = 1) -> str:
        """Wait until it has said something so often; the newest line that does."""
        with self._news:
            is_printed = self._news.wait_for(lambda: self._count(words) >= times, PATIENCE)
            assert is_printed, f"never said {words!r}: {self.said}"
            return next(line for line in reversed(self.said) if words in line)

    def _count(self, words: str) -> int:
        return sum(words in line for line in self.said)

    def kill(self) -> None:
        """End it as a power cut does."""
        self.process.kill()
        self._ended()

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        """Wait until it has ended and all that it said was read; its exit code."""
        code = self.process.wait(PATIENCE)
        self._listener.join(PATIENCE)
        assert self.process.stdout is not None
        if not self._listener.is_alive():
            self.process.stdout.close()
        return code


@contextmanager
def worker(
    url: str, *graphs: str, options: tuple[str, ...] = (), below: Sequence[str] = ()
) -> Iterator[WorkerProcess]:
    """A worker, which is killed at the end where it still runs; it has started to take threads.

    Args:
        below: the program that runs it.
    """
    running = WorkerProcess(url, *graphs, options=options, below=below)
    try:
        running.wait_for("taking threads")
        yield running
    except AssertionError as error:
        error.add_note(f"the worker said: {running.said}")
        raise
    finally:
        running.kill()


def until(done: Callable[[], object], what: str = "") -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, f"never {what or done}"
        time.sleep(0.05)


_FLOW = """
import os, time
from pathlib import Path
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph

HERE = Path(__file__).parent

def work(s):
    {body}
    return {{"n": s["n"] + 1}}

choices = [GateChoice("approve", "yes", "a"), GateChoice("stop", "no", "r")]
gate = Gate("work", "Go on?", choices, "approve", "n"{gate})
graph = (
    StateGraph({{"n": Channel(0)}}, name="{name}")
    .add_node("begin", lambda s: {{"n": s["n"] + 1}})
    .add_node("work", work)
    .add_node("end", lambda s: {{"n": s["n"] + 1}})
    .add_edge(START, "begin").add_edge("begin", "work").add_edge("work", "end").add_edge("end", END)
    .compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
)
"""


def write_flow(folder: Path, name: str, body: str = "pass", gate: str = "") -> str:
    """The file of a graph that counts to three, with a node whose body is given, and a question behind that.

    Args:
        gate: further arguments of the gate, as ", deadline=1.0".
    """
    path = folder / f"{name}.py"
    path.write_text(_FLOW.format(name=name, body=body, gate=gate))
    return str(path)
