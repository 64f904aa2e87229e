"""Tokens a second and time to first token, as the TUI's event stream sees them, beside a bare litellm loop.

Start any OpenAI-compatible server, then:

    python tests/benchmarks/agent_vs_litellm.py http://127.0.0.1:8089/v1 openai/gemma [ROUNDS] [MAX_TOKENS]

Both ask the same server the same thing in turns, which of them first by turns, too.  Ours is a thread of
one node with an `Agent`, run by the local driver; what is timed is when its events come to whoever watches.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from hitl_tui import END, START, Agent, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.agents.litellm_backend import preload
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Run, Start
from hitl_tui.engine.log.events import AttemptFailed, ModelCalled, RunEnded, TextStreamed

PROMPT = "Once upon a time there was a small terminal that"


@dataclass(frozen=True)
class Timing:
    """One reply: seconds to its first piece, seconds in all, and its tokens."""

    first: float
    whole: float
    tokens: int

    @property
    def rate(self) -> float:
        """Tokens a second, from the first piece to the end."""
        return self.tokens / max(self.whole - self.first, 1e-9)


async def bare(model: str, options: dict[str, Any]) -> Timing:
    """A loop over litellm's stream, and nothing else."""
    litellm = preload().result()
    begin = time.perf_counter()
    first, tokens = 0.0, 0
    messages = [{"role": "user", "content": PROMPT}]
    reply = await litellm.acompletion(
        model=model, messages=messages, stream=True, stream_options={"include_usage": True}, **options
    )
    async for chunk in reply:
        if chunk.choices and chunk.choices[0].delta.content and not first:
            first = time.perf_counter() - begin
        tokens = getattr(getattr(chunk, "usage", None), "completion_tokens", 0) or tokens
    return Timing(first, time.perf_counter() - begin, tokens)


def graph(model: str, options: dict[str, Any]) -> GraphRunner:
    """One node that asks one agent."""

    async def write(_state: Any, config: Any) -> dict[str, Any]:
        return {"text": await config.agents["writer"].achat(PROMPT)}

    return (
        StateGraph({"text": Channel("")}, name="speed")
        .add_node("write", write)
        .add_edge(START, "write")
        .add_edge("write", END)
        .compile(checkpointer=MemoryCheckpointer(), agents={"writer": Agent("writer", model, **options)})
    )


async def watched(hub: LocalHub, runner: GraphRunner, number: int) -> Timing:
    """The same reply, as somebody sees it who watches the thread."""
    driver = await hub.new(f"t{number}", runner)
    await driver.execute(Start({}))
    seen = (await driver.snapshot()).last_event
    begin = time.perf_counter()
    await driver.execute(Run())
    first = whole = 0.0
    tokens = 0
    while True:
        await driver.changed(seen)
        now = time.perf_counter() - begin
        for stamped in driver.events(seen):
            seen = stamped.number
            match stamped.event:
                case TextStreamed():
                    first = first or now
                case ModelCalled(tokens_out=out):
                    tokens, whole = out, now
                case AttemptFailed(error=error):
                    raise SystemExit(error.message)
                case RunEnded():
                    return Timing(first, whole, tokens)


async def measure(base: str, model: str, rounds: int, most: int) -> None:
    """Print both, and how far apart they are."""
    key = os.environ.get("OPENAI_API_KEY", "none")
    options = {"api_base": base, "api_key": key, "max_tokens": most, "temperature": 0, "seed": 1}
    runner = graph(model, options)
    hub = LocalHub(MemoryCheckpointer(), lambda info: runner)
    found: dict[str, list[Timing]] = {"bare litellm": [], "hitl-tui": []}
    for number in range(-1, rounds):
        kinds = ["bare litellm", "hitl-tui"]
        for kind in kinds if number % 2 else reversed(kinds):
            timing = await (bare(model, options) if kind == "bare litellm" else watched(hub, runner, number))
            if number >= 0:  # the first round warms caches on both sides
                found[kind].append(timing)
    await hub.close()
    for kind, timings in found.items():
        first, rate = median(one.first for one in timings), median(one.rate for one in timings)
        tokens = median(one.tokens for one in timings)
        print(f"{kind:<13} first token {first * 1000:7.1f} ms   {rate:7.1f} tokens/s   {tokens:.0f} tokens")
    ours, theirs = found["hitl-tui"], found["bare litellm"]
    slower = median(one.rate for one in theirs) / median(one.rate for one in ours) - 1
    later = median(one.first for one in ours) / median(one.first for one in theirs) - 1
    print(f"hitl-tui is {slower:+.1%} slower a token and {later:+.1%} later with the first, {rounds} rounds")


if __name__ == "__main__":
    arguments = [*sys.argv[1:], "", ""]
    if not arguments[1]:
        raise SystemExit(__doc__)
    asyncio.run(measure(arguments[0], arguments[1], int(arguments[2] or 5), int(arguments[3] or 64)))
