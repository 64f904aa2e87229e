"""From the first step of a graph whose agent wants litellm until its request leaves.

    python -m tests.benchmarks.first_request [--quick]

The server is one of our own on loopback.  The key is pressed as soon as graph and channels can be read, and
in a second run after so long as somebody takes to read them; beside both the seconds of `import litellm`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.terminals import APP, Program, figures, homes
from tests.support.openai_server import OpenAIServer, openai_server

GRAPH = """
from hitl_tui import END, START, Agent, Channel, StateGraph

agent = Agent("writer", "openai/test", api_base={api_base!r}, api_key="none")

def write(state, config):
    return {{"text": agent.chat("Write a line.")}}

def build(checkpointer):
    graph = StateGraph({{"text": Channel("blank")}}, name="asks").add_node("write", write)
    graph.add_edge(START, "write").add_edge("write", END)
    return graph.compile(checkpointer=checkpointer, agents={{"writer": agent}})
"""
READING, ROUNDS, QUICK = 10.0, 3, 1
SAID = "waits for litellm"


def request_after(folder: Path, server: OpenAIServer, pause: float) -> tuple[float, bool]:
    """Seconds from the key to the request, and whether the screen said what it waits for."""
    path = folder / "asks.py"
    path.write_text(GRAPH.format(api_base=server.api_base))
    known = len(server.requests)
    with Program([APP, "run", str(path), "--store", "memory:"], homes(folder)) as program:
        program.readable("write", "overwrite “blank”", "READY")
        program.listen(pause)
        program.press("s")
        started, seen = time.perf_counter(), ""
        while len(server.requests) == known:
            if (taken := time.perf_counter() - started) > 120:
                raise SystemExit(f"no request in {taken:.0f} s")
            seen += program.text(0.01)
        return time.perf_counter() - started, SAID in seen


def main() -> None:
    """Print the seconds and one line of JSON."""
    rounds = QUICK if "--quick" in sys.argv else ROUNDS
    whole, at_once, later, said = [], [], [], []
    with tempfile.TemporaryDirectory() as place, openai_server() as server:
        for _ in range(rounds):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", "import litellm"], check=True, capture_output=True)
            whole.append(time.perf_counter() - started)
            seconds, line = request_after(Path(place), server, 0.0)
            at_once.append(seconds)
            said.append(line)
            later.append(request_after(Path(place), server, READING)[0])
    result = {
        "import": statistics.median(whole),
        "at once": statistics.median(at_once),
        "after reading": statistics.median(later),
        "said": sum(said) / len(said),
    }
    print(
        f"import litellm {result['import']:.1f} s; the request leaves {result['at once']:.1f} s after a key "
        f"pressed at once, {result['after reading']:.2f} s after one pressed {READING:.0f} s later; "
        f"said what it waits for in {result['said']:.0%}"
    )
    figures("first_request", result)


if __name__ == "__main__":
    main()
