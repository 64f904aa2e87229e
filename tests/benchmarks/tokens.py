"""How far behind a server the painted tokens are, and how often they are painted.

    python -m tests.benchmarks.tokens [--quick]

A server on loopback speaks OpenAI's protocol and sends 200 tokens a second, each its number.  What counts is
how old the newest painted number is when it is painted, in a first call and in a second one, for which all is
loaded.  The issue wants 0.1 s and 30 frames a second in the second one.  The last line is JSON.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.benchmarks.terminals import APP, Program, homes
from tests.support.openai_server import Say, openai_server

GRAPH = """
from hitl_tui import END, START, Agent, Channel, StateGraph

def build(checkpointer):
    agent = Agent("writer", "openai/test", api_base="{base}", api_key="none")

    async def write(state, config):
        return {{"text": await config.agents["writer"].achat("go")}}

    return (
        StateGraph({{"text": Channel("")}}, name="tokens")
        .add_node("first", write).add_node("second", write)
        .add_edge(START, "first").add_edge("first", "second").add_edge("second", END)
        .compile(checkpointer=checkpointer, agents={{"writer": agent}})
    )
"""
RATE = 200
_TOKEN = re.compile(r"w(\d{5})")


class Timed(tuple[str, ...]):
    """Pieces that come at a rate; notes when each was sent."""

    sent: list[float]

    def __iter__(self) -> Iterator[str]:
        self.sent = []
        started = time.perf_counter()
        for number, piece in enumerate(super().__iter__()):
            time.sleep(max(started + number / RATE - time.perf_counter(), 0))
            self.sent.append(time.perf_counter())
            yield piece


def watched(program: Program, pieces: Timed, first: int) -> dict[str, float]:
    """Follow one call: the age of the newest number of each paint, and paints a second."""
    program.press("s")
    seen, newest = "", first - 1
    ages: list[float] = []
    times: list[float] = []
    end = time.perf_counter() + 60
    while newest < first + len(pieces) - 1 and time.perf_counter() < end:
        data = program.read(0.2)
        now = time.perf_counter()
        seen = seen[-200:] + data.decode(errors="replace")
        numbers = [int(number) for number in _TOKEN.findall(seen)]
        if numbers and max(numbers) > newest:
            newest = max(numbers)
            ages.append(now - pieces.sent[newest - first])
            times.append(now)
    frames = sum(1 for one, other in pairwise(times) if other - one > 0.005)
    steady = ages[len(ages) // 4 :]
    return {
        "behind_s": round(statistics.median(steady), 3),
        "worst_s": round(max(steady), 3),
        "frames": round(frames / max(times[-1] - times[0], 1e-9), 1),
    }


def main() -> None:
    """Print the figures of a first and of a second call."""
    count = RATE * (2 if "--quick" in sys.argv else 6)
    figures: dict[str, object] = {"script": "tokens"}
    with tempfile.TemporaryDirectory() as place, openai_server() as server:
        folder = Path(place)
        (folder / "tokens_graph.py").write_text(GRAPH.format(base=server.api_base))
        argv = [APP, "run", str(folder / "tokens_graph.py"), "--store", str(folder / "runs.db")]
        calls = {"cold": 0, "warm": count}
        texts = {name: Timed(f"w{first + n:05} " for n in range(count)) for name, first in calls.items()}
        server.plan(*(Say(pieces) for pieces in texts.values()))
        with Program(argv, homes(folder)) as program:
            program.until("READY")
            program.quiet(1.0)
            for (name, pieces), first in zip(texts.items(), calls.values(), strict=True):
                figures[name] = watched(program, pieces, first)
                program.quiet(1.0)
                print(f"{name:5} {figures[name]}", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
