"""A graph of six nodes with three bugs: each is found and mended from the screen, without restart or print.

The keys are counted: from the end of the run that shows a bug to the step that made it so, and from there to
the run of the mended graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

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
EDITOR: Final = """\
#!/bin/sh
echo "$1" >> opened
sed -i -f typed.sed "$2"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the graph, and with an editor for somebody who types what stands in `typed.sed`."""
    (tmp_path / "flow.py").write_text(FLOW)
    editor = tmp_path / "vim"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    return tmp_path


class Bug:
    """One that is looked for and mended in a terminal, and the keys that this takes."""

    def __init__(self, terminal: Terminal, place: Path, name: str) -> None:
        self.terminal = terminal
        self.name = name
        self._place = place
        self._keys: list[str] = []

    def press(self, *keys: str) -> None:
        self._keys += keys
        self.terminal.press(*keys)

    def found(self, most: int) -> None:
        """Its step is on the screen."""
        self._print_figures("found", most)

    def fix(self, line: str, old: str, new: str, stands: str) -> None:
        """Open the editor, which is at the line; save it mended, and run on behind the steps that stand."""
        code = self._place / "flow.py"
        before = code.read_text()
        assert before.count(old) == 1
        (self._place / "typed.sed").write_text(f"s/{old}/{new}/\n".replace("[", "\\[").replace("*", "\\*"))
        self.press("E")
        self.terminal.wait_for("R run again")
        assert code.read_text() == before.replace(old, new)
        (opened,) = (self._place / "opened").read_text().split()
        (self._place / "opened").unlink()
        assert before.splitlines()[int(opened) - 1].strip() == line
        self.press("R")
        self.terminal.wait_for("The fork will run")
        self.terminal.wait_for(stands)
        self.press("R")
        self.terminal.wait_gone("The fork will run")
        self._print_figures("fixed and run again", most=3)

    def _print_figures(self, done: str, most: int) -> None:
        print(
            f"{self.name}: {done} with {len(self._keys)} keys ({' '.join(self._keys)}), wanted at most {most}"
        )
        assert len(self._keys) <= most
        self._keys.clear()


def test_three_bugs_are_found_and_fixed_from_the_screen(place: Path) -> None:
    app = [*APP, "run", "flow.py", "--store", str(place / "runs.db"), "--thread", "t"]
    with Terminal(app, size=(140, 44), cwd=place, env={"VISUAL": str(place / "vim")}) as terminal:
        terminal.wait_for("read is next")
        terminal.press("c")
        terminal.wait_for("1 facts, best 0.5")

        bug = Bug(terminal, place, "the route that flips")
        bug.press("[")  # it ended too early: what did the node before the last one see?
        terminal.wait_for("Step 5 of 6")
        bug.found(most=6)
        bug.fix("def check(state):", 'state["n"] > 3', 'state["n"] < 3', "steps 1–5 are kept")
        terminal.wait_for("merge failed")
        terminal.wait_for("score   overwrite null")
        terminal.wait_for('→ 21 │     return {"best": max(state["best"], state["score"])}')

        bug = Bug(terminal, place, "None at step 7")
        bug.press("up")
        terminal.wait_for("─ score ─")
        bug.press("{")
        terminal.wait_for("Step 7 of 8")
        bug.found(most=6)
        bug.fix("def score(state):", "else None}", "else 0.0}", "step 1 is kept")
        terminal.wait_for("7 facts, best 0.9")

        bug = Bug(terminal, place, "the reducer that doubles")
        bug.press("up", "up")
        terminal.wait_for("─ facts ─")
        bug.press("{")
        terminal.wait_for("list 3 + list 4")  # the update holds the old list, and `extend` has it, too
        bug.found(most=6)
        bug.fix("def collect(state):", '[*state["facts"], f"fact', '[f"fact', "steps 1–2 are kept")
        terminal.wait_for("3 facts, best 0.9")

        terminal.press("=")
        terminal.wait_for("t-d")
        terminal.wait_for("7 facts, best 0.9")
        terminal.press("q")
        terminal.wait_gone("of 5 differ")
        terminal.press("q")
        assert terminal.wait_exit() == 0
