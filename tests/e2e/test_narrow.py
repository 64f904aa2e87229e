"""What commands print in a terminal of 80 columns: whole rows, which the terminal need not wrap."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.program import APP
from tests.support.terminal import Terminal

ASKING = """
from hitl_tui import END, START, Channel, StateGraph
from hitl_tui import InputField
graph = StateGraph({"sure": Channel(False, schema=bool)}, name="asking").add_node("on", lambda state: {})
graph.add_edge(START, "on").add_edge("on", END)
runner = graph.compile(inputs=[InputField("sure", "sure", "Are you sure?")])
"""

WIDE_LINES = """
from hitl_tui import END, START, Channel, StateGraph

def write(state):
    for length in range(106, 122):
        print("x" * length, "words")

graph = StateGraph({"n": Channel(0)}, name="wide").add_node("write", write)
graph.add_edge(START, "write").add_edge("write", END)
"""


@pytest.fixture
def crowded(app: App) -> App:
    """A store with a long name, a long question and a fork."""
    app.expect(3, "run", "review", "--headless", "--input", "task=x", "--thread", "report-of-2026")
    app.expect(0, "fork", "report-of-2026@1", "report-of-2026-b")
    return app


def rows(*arguments: str) -> list[str]:
    with Terminal([*APP, *arguments], size=(80, 400)) as terminal:
        terminal.wait_exit()
        return terminal.text().rstrip().splitlines()


def test_the_table_of_threads_keeps_a_row_for_each(crowded: App) -> None:
    head, *threads = rows("threads")
    assert head.split() == ["THREAD", "GRAPH", "STATUS", "STEP", "WAITS", "FOR", "CHANGED"]
    assert [row.split()[0] for row in threads] == ["report-of-2026-b", "report-of-2026"]
    assert all(row.endswith(" just now") for row in threads)
    assert "…" in threads[1]
    piped = crowded.expect(0, "threads").out
    assert "  fork of report-of-2026@1  " in piped
    assert "Is this draft good enough?" in piped


@pytest.mark.parametrize("command", ["keys", "doctor"])
def test_words_at_the_end_of_a_row_are_wrapped_to_the_next_row(crowded: App, command: str) -> None:
    shown = rows(command)
    start = shown[0].index("WHAT" if command == "keys" else "0.1.0")
    edges = [row[start - 1 : start + 1] for row in shown]
    assert all(edge.startswith(" ") and edge.strip() for edge in edges), "\n".join(shown)
    piped = crowded.expect(0, command).out.split()
    if command == "keys":
        assert " ".join(shown).split() == piped


def test_lines_are_wrapped_between_words_and_their_second_rows_are_indented(tmp_path: Path) -> None:
    command = [*APP, "demo", "--plain", "--pace", "0", "--thread", "p"]
    with Terminal(command, size=(60, 90)) as terminal:
        terminal.wait_for("help lists the commands.")
        terminal.press("h", "enter")
        terminal.wait_for("q, quit: quit;")
        shown = terminal.text().splitlines()
        terminal.press("q", "enter")
        terminal.wait_exit()
    start = next(at for at, row in enumerate(shown) if row.startswith("C, comment:"))
    assert [row.rstrip() for row in shown[start : start + 2]] == [
        "C, comment: list passages to comment on; back: undo the",
        "  last comment.",
    ]


def test_an_input_that_is_not_text_is_typed_on_screen(tmp_path: Path) -> None:
    (tmp_path / "asking.py").write_text(ASKING)
    command = [*APP, "run", str(tmp_path / "asking.py"), "--thread", "t"]
    with Terminal(command, size=(80, 24)) as terminal:
        terminal.wait_for("Are you sure?")
        terminal.press(*"true")
        terminal.press("enter")
        terminal.wait_for("READY")
        terminal.press("q")
        terminal.wait_exit()


def test_each_row_of_node_output_has_a_bar(tmp_path: Path) -> None:
    (tmp_path / "wide.py").write_text(WIDE_LINES)
    command = [*APP, "run", str(tmp_path / "wide.py"), "--plain"]
    with Terminal(command, size=(120, 60)) as terminal:
        terminal.wait_for("Command:")
        terminal.press("s", "enter")
        terminal.wait_for("Done at step 1.")
        shown = [row for row in terminal.text().splitlines() if "word" in row or "xxx" in row]
        terminal.press("q", "enter")
        terminal.wait_exit()
    assert len(shown) > 20
    assert not [row for row in shown if not row.startswith("  | ")]
