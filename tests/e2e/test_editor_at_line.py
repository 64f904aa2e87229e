"""`E` at a failed node: the user's editor has the terminal, at the line; then the screen is back."""

from __future__ import annotations

from pathlib import Path

from tests.support.program import APP
from tests.support.terminal import Terminal

FLOW = """\
from hitl_tui import END, START, Channel, StateGraph

def fails(state, config):
    words = state["words"].split()
    return {"words": words[7]}

graph = StateGraph({"words": Channel("a b")}).add_node("fails", fails)
graph.add_edge(START, "fails").add_edge("fails", END)
"""


def test_the_editor_opens_at_the_line_and_the_screen_comes_back(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    editor = tmp_path / "vim"
    editor.write_text(
        '#!/bin/sh\necho "EDITING $1 of $2"\nread answer\nsed -i "s/words\\[7\\]/words[0]/" "$2"\n'
    )
    editor.chmod(0o755)
    with Terminal([*APP, "run", "flow.py"], cwd=tmp_path, env={"VISUAL": str(editor)}) as terminal:
        terminal.wait_for("fails is next")
        terminal.press("c")
        terminal.wait_for("words = ['a', 'b']")
        terminal.press("E")
        terminal.wait_for(f"EDITING +5 of {tmp_path / 'flow.py'}")
        terminal.press("enter")
        terminal.wait_for("Where fails failed")
        terminal.wait_for("R run again")
        terminal.press("q")
        terminal.wait_exit()
    assert "words[0]" in (tmp_path / "flow.py").read_text()
