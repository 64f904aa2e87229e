"""Graphs that can't be had and input that does not fit: what is said, and that nothing is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.program import APP, COUNTER, call
from tests.support.terminal import Terminal

FILES = {
    "missing_import.py": "import no_such_library\n",
    "syntax.py": "graph = (\n",
    "exits.py": "import sys\nsys.exit(7)\n",
    "no_graph.py": "x = 1\n",
    "not_built.py": (
        "from hitl_tui import StateGraph, Channel, START\n"
        "graph = StateGraph({'a': Channel(0)}).add_node('n', lambda s: {}).add_edge(START, 'm')\n"
    ),
    "recursion.py": "def graph():\n    return graph()\n",
    "wrong_type.py": "graph = 3\n",
    "not_utf8.py": b"x = '\xff'\n",
    "broken.toml": "[channels\n",
}
CODE = [
    (
        "missing_import.py",
        "ModuleNotFoundError: No module named 'no_such_library'",
        'missing_import.py", line 1',
    ),
    ("syntax.py", "SyntaxError", 'syntax.py", line 1'),
    ("exits.py", "SystemExit: 7", 'exits.py", line 2'),
    ("no_graph.py", "has no graph", "no_graph.py:NAME"),
    ("not_built.py", "The graph can't be built", "'m'"),
    ("recursion.py", "RecursionError", 'recursion.py", line 2'),
    ("wrong_type.py", "is a whole number", "StateGraph"),
    ("not_utf8.py", "SyntaxError", "not_utf8.py"),
    ("broken.toml", "broken.toml:1:10", "TOML"),
    (".", "doesn't name a graph", "module:attribute"),
    ("no.such.module:graph", "there is no module", "path/to/file.py"),
]


@pytest.mark.parametrize(("graph", "what", "where"), CODE, ids=[row[0] for row in CODE])
def test_a_graph_that_can_not_be_loaded_is_an_error(
    graph: str, what: str, where: str, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    done = call("run", graph, "--headless", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("hitl-tui: ")
    assert what in done.stderr
    assert where in done.stderr
    assert "hitl_tui/" not in done.stderr.replace("hitl_tui/sample", "")
    assert "unexpected" not in done.stderr
    assert len(done.stderr) < 4_000
    assert done.stdout == ""


INPUTS = [
    (["limt=2"], "'limt'", "limit"),
    (["limit=two"], "limit", "integer"),
    (["limit=[1]"], "limit", "integer"),
    (["limit=1e400"], "limit", ""),
    (["@none.json"], "none.json", "can't be read"),
    (["@list.json"], "list.json", "JSON object"),
    (["@broken.json"], "broken.json", "JSON object"),
    (["limit=1", "limit=2"], "limit", "twice"),
]


@pytest.mark.parametrize("row", INPUTS, ids=[" ".join(row[0]) for row in INPUTS])
def test_input_that_does_not_fit(
    row: tuple[list[str], str, str], app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, what, how = row
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "broken.json").write_text('{"limit": ')
    options = [word for text in given for word in ("--input", text)]
    done = app("run", COUNTER, "--headless", "--thread", "c", *options)
    assert done.code in (1, 2)
    assert what in done.err
    assert how in done.err
    assert "unexpected" not in done.err
    listed = app("threads")
    assert "c  " not in listed.out


def test_an_overlong_thread_name_is_refused_before_the_screen(tmp_path: Path) -> None:
    with Terminal([*APP, "run", COUNTER, "--thread", "x" * 201], cwd=tmp_path) as terminal:
        assert terminal.wait_exit() == 2
        assert "1 to 200 characters" in " ".join(terminal.text().split())


def test_a_warning_names_the_line_of_the_graph_that_it_is_about(tmp_path: Path) -> None:
    (tmp_path / "list.py").write_text(
        "from hitl_tui import END, START, Channel, StateGraph\n"
        "graph = StateGraph({'a': Channel([])}).add_node('n', lambda s: None)\n"
        "graph.add_edge(START, 'n').add_edge('n', END)\n"
    )
    done = call("run", "list.py", "--headless", cwd=tmp_path)
    assert done.returncode == 0
    said = " ".join(done.stderr.replace("|", "").split())
    assert "list.py, line 2: warning: channel 'a' has a list as default and no reducer" in said
    assert "hitl_tui/" not in said
