"""What recording each model call in a SQLite file costs of an agent's tokens a second.

    python tests/benchmarks/recording_cost.py [ROUNDS] [TOKENS_A_SECOND]

A server on loopback, in a process of its own, writes replies at a steady pace. A node asks it several times.
With a store each completed call is committed to the file before the next begins; without one nothing is
recorded. Both run in turns, and so does a bare litellm loop that asks the same. The program fails where the
agent gets more than 2 % fewer tokens a second with a store.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from hitl_tui import END, START, Agent, Channel, GraphRunner, StateGraph
from hitl_tui.agents.litellm_backend import preload
from hitl_tui.stores import Checkpointer, open_store

CALLS, TOKENS = 3, 100
PROMPT = "Once upon a time there was a small terminal that"
MODEL = "openai/paced"
MOST = 0.02


def serve(rate: float, tell: Connection) -> None:
    """Stream replies of `TOKENS` tokens, `rate` a second, until the process is ended.

    Args:
        tell: gets the port.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            started = time.perf_counter()
            for number in range(TOKENS):
                time.sleep(max(0.0, started + (number + 1) / rate - time.perf_counter()))
                self._write({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "word "}}]})
            self._write({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            usage = {"prompt_tokens": 9, "completion_tokens": TOKENS, "total_tokens": TOKENS + 9}
            self._write({"choices": [], "usage": usage})
            self._chunk(b"data: [DONE]\n\n")
            self._chunk(b"")

        def _write(self, part: dict[str, Any]) -> None:
            part = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "paced", **part}
            self._chunk(b"data: %s\n\n" % json.dumps(part).encode())

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def log_message(self, *_args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_given: object) -> None:
            pass  # a client that has its reply leaves as it likes

    server = Server(("127.0.0.1", 0), Handler)
    tell.send(server.server_port)
    server.serve_forever()


@contextmanager
def paced(rate: float) -> Iterator[str]:
    """The address of a server in another process, so that it takes no time from those that it serves."""
    spawning = get_context("spawn")
    hear, tell = spawning.Pipe(duplex=False)
    process = spawning.Process(target=serve, args=(rate, tell), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{hear.recv()}/v1"
    finally:
        process.terminate()
        process.join()


async def bare(options: dict[str, Any]) -> float:
    """Seconds that litellm's streams take alone."""
    litellm = preload().result()
    started = time.perf_counter()
    for _ in range(CALLS):
        messages = [{"role": "user", "content": PROMPT}]
        reply = await litellm.acompletion(
            model=MODEL, messages=messages, stream=True, stream_options={"include_usage": True}, **options
        )
        async for _chunk in reply:
            pass
    return time.perf_counter() - started


def runner_on(store: Checkpointer | None, options: dict[str, Any], took: list[float]) -> GraphRunner:
    """A graph of one node that asks an agent several times and notes how long that took."""

    async def write(_state: Any, config: Any) -> dict[str, Any]:
        started = time.perf_counter()
        for number in range(CALLS):
            await config.agents["writer"].achat(f"{PROMPT} {number}")
        took.append(time.perf_counter() - started)
        return {"text": "done"}

    graph = StateGraph({"text": Channel("")}, name="recording").add_node("write", write)
    agent = Agent("writer", MODEL, **options)
    graph.add_edge(START, "write").add_edge("write", END)
    return graph.compile(checkpointer=store, agents={"writer": agent})


async def measure(base: str, rounds: int) -> float:
    """How much slower the agent's tokens come with a store than without one."""
    options = {"api_base": base, "api_key": "none", "max_tokens": TOKENS}
    bare_times: list[float] = []
    unrecorded: list[float] = []
    recorded: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(str(Path(directory, "threads.db")))
        with_store, without = runner_on(store, options, recorded), runner_on(None, options, unrecorded)
        for number in range(rounds + 1):
            bare_times.append(await bare(options))
            for runner in (with_store, without) if number % 2 else (without, with_store):
                await runner.ainvoke({}, thread_id=f"t{number}")
        store.close()
    # The first round warms caches.
    theirs, before, after = (median(times[1:]) for times in (bare_times, unrecorded, recorded))
    tokens = CALLS * TOKENS
    print(f"bare litellm          {tokens / theirs:7.1f} tokens/s")
    print(f"an agent, no store    {tokens / before:7.1f} tokens/s")
    print(f"an agent, SQLite file {tokens / after:7.1f} tokens/s")
    return after / before - 1


def main() -> None:
    """Measure and compare with what is promised."""
    given = [float(argument) for argument in sys.argv[1:]]
    rounds, rate = (*given, 5.0)[0], (*given[1:], 100.0)[0]
    with paced(rate) as base:
        slower = asyncio.run(measure(base, int(rounds)))
    print(f"recording costs {slower:+.2%} at {rate:.0f} tokens/s, {rounds:.0f} rounds; at most {MOST:.0%}")
    if slower > MOST:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
