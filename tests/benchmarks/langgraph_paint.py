"""The first screen of a LangGraph thread that can be read, beside `import langgraph.graph` alone.

    python -m tests.benchmarks.langgraph_paint [--quick]

Both are started in turns, so that a busy machine slows them alike.  What counts is the first screen with the
names of the nodes and the values of the channels.  Wanted are 0.3 s on top of the import.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.terminals import APP, Program, homes

ROUNDS = 5 if "--quick" in sys.argv else 15
GRAPH = """
import operator
import sqlite3
from pathlib import Path
from typing import Annotated

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    words: Annotated[list[str], operator.add]
    draft: str


builder = StateGraph(State)
builder.add_node("write", lambda state: {"draft": "a-first-draft", "words": ["written"]})
builder.add_node("polish", lambda state: {"draft": "a-polished-draft", "words": ["polished"]})
builder.add_edge(START, "write")
builder.add_edge("write", "polish")
builder.add_edge("polish", END)
file = Path(__file__).with_name("theirs.sqlite")
graph = builder.compile(checkpointer=SqliteSaver(sqlite3.connect(file, check_same_thread=False)))
"""
WANTED = ("write", "polish", "a-polished-draft", "words")


def imported(env: dict[str, str]) -> tuple[float, float]:
    """Seconds, and seconds of CPU, of a Python that only imports LangGraph."""
    started, used = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-c", "import langgraph.graph"], env=env, check=True)
    now = os.times()
    cpu = now.children_user + now.children_system - used.children_user - used.children_system
    return time.perf_counter() - started, cpu


def main() -> None:
    """Print the times, their differences and one line of JSON."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        app = folder / "app.py"
        app.write_text(GRAPH)
        make = "from app import graph; graph.invoke({'words': []}, {'configurable': {'thread_id': 'one'}})"
        subprocess.run([sys.executable, "-c", make], cwd=folder, check=True)
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env = {**kept, **homes(folder)}
        imports, paints, cpus = [], [], []
        for turn in range(ROUNDS + 1):
            alone = imported(env)
            with Program([APP, "run", str(app), "--thread", "one"], env) as program:
                paint = program.readable(*WANTED)
            if turn:
                imports.append(alone[0])
                paints.append(paint[0])
                cpus.append(paint[1] - alone[1])
    over = [paint - alone for paint, alone in zip(paints, imports, strict=True)]
    figures = {
        "import_s": round(min(imports), 3),
        "paint_s": round(min(paints), 3),
        "over_median_s": round(statistics.median(over), 3),
        "over_least_s": round(min(paints) - min(imports), 3),
        "over_cpu_s": round(statistics.median(cpus), 3),
    }
    for name, value in figures.items():
        print(f"{name:16} {value}")
    print(json.dumps({"script": "langgraph_paint", **figures}))


if __name__ == "__main__":
    main()
