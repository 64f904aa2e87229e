"""A state of 1 MB on screen, in a pseudo-terminal: a step, up and down, back and on, and the memory it takes.

    python -m tests.benchmarks.large_screen [--quick]

Each figure is from a key to the paint of the value that it shows.  The issue wants 120 ms for `s`, a
median of 30 ms and a worst of 120 ms for up, down, `[` and `]`, and 20 % more memory after 10 steps.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.terminals import APP, Program, figures, homes

GRAPH = """
from hitl_tui import END, START, Channel, StateGraph
from tests.benchmarks.large_values import document

DOC = document(1_000_000)

def edit(state):
    n, doc = state["n"] + 1, state["doc"]
    part, section = doc["part0"], doc["part0"]["section0"]
    leaves = {**section, "leaf0": f"changed in step {n}."}
    return {"n": n, "word": f"word of step {n}.", "doc": {**doc, "part0": {**part, "section0": leaves}}}

def build(checkpointer):
    return (
        StateGraph({"doc": Channel(DOC), "word": Channel(""), "n": Channel(0)}, name="large")
        .add_node("edit", edit)
        .add_edge(START, "edit")
        .add_conditional_edge("edit", lambda s: s["n"] < 1_000, {"true": "edit", "false": END})
        .compile(checkpointer=checkpointer, max_update_bytes=1 << 22)
    )
"""
STEPS = 10
DOWN, UP = "\x1b[B", "\x1b[A"


def pressed(program: Program, key: str, shown: str) -> float:
    """Milliseconds from a key to the paint of a text."""
    program.quiet(0.3)
    program.press(key)
    return program.until(shown, 20) * 1e3


def measure(times: int) -> dict[str, float]:
    """The figures of one session."""
    taken: dict[str, list[float]] = {"s": [], "updown": [], "travel": []}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "large.py").write_text(GRAPH)
        argv = [APP, "run", str(folder / "large.py"), "--store", str(folder / "runs.db")]
        env = {**homes(folder), "PYTHONPATH": str(Path.cwd())}
        with Program(argv, env) as program:
            program.until("READY")
            program.quiet(1.0)
            program.press("s")
            program.until("word of step 1.")
            pressed(program, UP, "changed in step 1.")
            program.quiet(1.0)
            before = program.memory
            for step in range(2, STEPS + 1):
                taken["s"].append(pressed(program, "s", f"changed in step {step}."))
            program.quiet(1.0)
            grown = program.memory / before - 1
            for _ in range(times):
                taken["updown"].append(pressed(program, DOWN, f"word of step {STEPS}."))
                taken["updown"].append(pressed(program, UP, f"changed in step {STEPS}."))
            for _ in range(max(1, times // 5)):
                for step in range(STEPS - 1, 1, -1):
                    taken["travel"].append(pressed(program, "[", f"changed in step {step}."))
                for step in range(3, STEPS + 1):
                    taken["travel"].append(pressed(program, "]", f"changed in step {step}."))
    values = {"memory_growth": grown, "memory_mb": before}
    for name, some in taken.items():
        values |= {f"{name}_median_ms": statistics.median(some), f"{name}_worst_ms": max(some)}
    return values


def main() -> None:
    """Measure, and print the figures."""
    values = measure(3 if "--quick" in sys.argv else 15)
    for name in ("s", "updown", "travel"):
        median, worst = values[f"{name}_median_ms"], values[f"{name}_worst_ms"]
        print(f"{name:8} median {median:7.1f} ms   worst {worst:7.1f} ms")
    print(f"memory   {values['memory_mb']:.0f} MB, {values['memory_growth']:+.0%} after {STEPS} steps")
    figures("large_screen", values)


if __name__ == "__main__":
    main()
