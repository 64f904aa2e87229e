"""A graph of six nodes with three bugs: each is found and mended from the screen, without a restart."""

from __future__ import annotations

from pathlib import Path

from tests.support.program import APP
from tests.support.terminal import Terminal

FLOW = """
from hitl_tui import END, START, Channel, StateGraph

REPLIES = ["0.5", "n/a", "0.9"]


def read(state):
    return {"n": state["n"] + 1}


def score(state):
    reply = REPLIES[state["n"] - 1]
    return {"score": float(reply) if reply[0].isdigit() else None}


def collect(state):
    return {"facts": [*state["facts"], f"fact {state['n']}"]}


def merge(state):
    return {"best": max(state["best"], state["score"])}


def check(state):
    return {}


def report(state):
    return {"report": f"{len(state['facts'])} facts, best {state['best']}"}


def route(state):
    return "again" if state["n"] > 3 else "enough"


CHANNELS = {
    "n": Channel(0),
    "score": Channel(None),
    "facts": Channel([], reducer="extend"),
    "best": Channel(0.0),
    "report": Channel(""),
}
graph = StateGraph(CHANNELS, name="facts")
for node in (read, score, collect, merge, check, report):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "read").add_edge("read", "score").add_edge("score", "collect")
graph.add_edge("collect", "merge").add_edge("merge", "check").add_edge("report", END)
graph.add_conditional_edge("check", route, {"again": "read", "enough": "report"})
"""
FLIPPED = ('state["n"] > 3', 'state["n"] < 3')
NONE = ("else None}", "else 0.0}")
DOUBLED = ('[*state["facts"], f"fact', '[f"fact')


def test_three_bugs_are_found_and_mended_from_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "flow.py"
    path.write_text(FLOW)
    text = FLOW

    def mend(bug: tuple[str, str]) -> None:
        nonlocal text
        assert text.count(bug[0]) == 1
        text = text.replace(*bug)
        path.write_text(text)

    def run_again(saying: str) -> None:
        """Two keys, which are one key pressed twice."""
        terminal.wait_for("R run again")
        terminal.press("R")
        terminal.wait_for("Runs again")
        terminal.wait_for(saying)
        terminal.press("R")

    app = [*APP, "run", str(path), "--store", str(tmp_path / "runs.db"), "--thread", "t"]
    with Terminal(app, size=(140, 44)) as terminal:
        terminal.wait_for("read is next")
        terminal.press("c")
        terminal.wait_for("1 facts, best 0.5")  # it ended too early: `check` went the way "enough"
        mend(FLIPPED)
        run_again("steps 1–5 stand")

        terminal.wait_for("merge failed")
        terminal.wait_for("score   overwrite null")
        terminal.wait_for('→ 21 │     return {"best": max(state["best"], state["score"])}')
        terminal.press("up")
        terminal.wait_for("─ score ─")
        terminal.press("{")
        terminal.wait_for("Step 7 of 8")  # two keys from the failure to where the None came from
        mend(NONE)
        run_again("step 1 stands")

        terminal.wait_for("7 facts, best 0.9")
        terminal.press("up", "up")
        terminal.wait_for("─ facts ─")
        terminal.press("{")
        terminal.wait_for("list 3 + list 4")  # the update holds the old list, and `extend` has it, too
        mend(DOUBLED)
        run_again("steps 1–2")

        terminal.wait_for("3 facts, best 0.9")
        terminal.press("=")
        terminal.wait_for("t-d")
        terminal.wait_for("7 facts, best 0.9")
        terminal.press("q")
        terminal.wait_gone("of 5 differ")
        terminal.press("q")
        assert terminal.wait_exit() == 0
