"""What a user's own code does on the command line: prints, asks the keyboard, warns, moves elsewhere."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitl_tui.drivers.node_streams import keyboard_kept
from hitl_tui.errors import HitlError
from tests.support.commands import App

HEAD = "import sys\nfrom hitl_tui import END, START, Channel, StateGraph\n"
TAIL = """
graph = StateGraph({"draft": Channel("", reducer=REDUCER)}).add_node("write", write).add_node("end", write)
graph.add_edge(START, "write").add_edge("write", "end").add_edge("end", END)
"""
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a graph file whose node "write" does what is given; returns its path."""

    def write_file(*lines: str, before: str = "", reducer: str = "None", folder: str = ".") -> str:
        path = tmp_path / folder / "flow.py"
        path.parent.mkdir(exist_ok=True)
        body = "\n".join(f"    {line}" for line in lines)
        path.write_text(f"{HEAD}{before}\ndef write(state):\n{body}\n{TAIL.replace('REDUCER', reducer)}")
        return str(path)

    return write_file


def test_what_a_node_prints_is_an_event_and_never_between_documents(app: App, write: Write) -> None:
    path = write("print('from the node')", "return {'draft': 'x'}", before="print('from the file')")
    done = app.expect(0, "run", path, "--json")
    texts = [one["text"] for one in done.documents if one.get("event") == "text"]
    assert "from the node\n" in "".join(texts)
    assert done.err == "  | from the file\n"


def test_a_node_that_reads_the_keyboard_gets_a_hint_how_to_ask(app: App, write: Write) -> None:
    done = app.expect(1, "run", write("return {'draft': input('which? ')}"), "--headless")
    assert "it tries to read the keyboard (input(), pdb); the app owns it" in done.out
    said = " ".join(done.out.replace("|", " ").split())
    assert "config.interrupt(" in said
    assert "flow.py, line" in said


def test_a_node_can_not_read_the_keyboard_while_a_screen_is_shown() -> None:
    real = sys.stdin
    with keyboard_kept(from_all=True):
        assert sys.stdin.encoding == real.encoding
        with pytest.raises(HitlError, match="tries to read the keyboard"):
            input()
        with pytest.raises(HitlError, match="tries to read the keyboard"):
            list(sys.stdin)
    assert sys.stdin is real


def test_breakpoint_opens_a_debugger_that_has_the_terminal_while_it_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lent: list[str] = []
    results: list[int] = []

    @contextmanager
    def lend() -> Iterator[None]:
        lent.append(capsys.readouterr().err)
        yield
        lent.append(capsys.readouterr().err)

    def node() -> int:
        item = {"id": 17}
        breakpoint()
        item["id"] += 1
        return item["id"]

    monkeypatch.setattr("sys.stdin", io.StringIO("p item\nnext\nreturn\np item\ncontinue\n"))
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    with keyboard_kept(from_all=True, lend=lend):
        thread = threading.Thread(target=lambda: results.append(node()))
        thread.start()
        thread.join(20)
    assert results == [18]
    assert [text for text in lent[::2] if text] == []  # nothing is written while the screen is shown
    first, second, third = lent[1::2]
    assert "{'id': 17}" in first
    assert "return item" in second
    assert "--Return--" in third
    assert "{'id': 18}" in third


def test_a_node_that_ends_the_program_fails_with_its_line(app: App, write: Write) -> None:
    said = " ".join(app.expect(1, "run", write("sys.exit(7)"), "--headless").out.replace("|", " ").split())
    assert "SystemExit: 7" in said
    assert "a node can't end the program: return from it" in said
    assert "sys.exit(7)" in said


@pytest.mark.slow
def test_a_thread_continues_with_its_graph_file_moved(app: App, write: Write) -> None:
    parts = {"before": "def add(old, new):\n    return old + new\n", "reducer": "add"}
    old = write("return {'draft': 'x'}", folder="old", **parts)
    app.expect(3, "run", old, "--headless", "--thread", "t", "--break", "end")
    Path(old).unlink()
    gone = app.expect(2, "resume", "t", "--headless").err
    assert "was moved or deleted" in gone
    assert "hitl-tui run GRAPH --thread t" in gone
    new = write("return {'draft': 'x'}", folder="new", **parts)
    done = app.expect(0, "run", new, "--headless", "--thread", "t")
    assert done.err == ""
    assert "flow.py:add" in done.out
    state = json.loads(app.expect(0, "show", "t", "--json").out)["state"]
    assert state == {"draft": "xx"}


def test_a_default_that_does_not_fit_is_a_graph_that_can_not_be_built(app: App, tmp_path: Path) -> None:
    path = tmp_path / "flow.py"
    path.write_text(f"{HEAD}graph = StateGraph({{'n': Channel('', schema=int)}})\n")
    assert "The graph can't be built: channel 'n'" in app.expect(2, "run", str(path), "--headless").err


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (b"from .helpers import write\n", "write `from name import …` for a file beside it"),
        ("x = 'Entwürfe'\n".encode("latin-1"), "save the file as UTF-8"),
        ("x = 1\n".encode("utf-16"), "save the file as UTF-8"),
        (b"async def build():\n    pass\n", "write def instead of async def"),
        (b"def build():\n    pass\n", "did it forget its `return`?"),
    ],
    ids=["relative import", "latin-1", "utf-16", "async", "no return"],
)
def test_a_file_that_gives_no_graph_says_what_to_do(app: App, tmp_path: Path, text: bytes, hint: str) -> None:
    path = tmp_path / "flow.py"
    path.write_bytes(text)
    assert hint in app.expect(2, "run", str(path), "--headless").err


def test_the_branch_that_failed_names_the_line(app: App, tmp_path: Path) -> None:
    path = tmp_path / "flow.py"
    path.write_text(
        f"{HEAD}graph = StateGraph({{'items': Channel([0], reducer='overwrite'), 'n': Channel(0)}})\n"
        "def divide(state, config):\n    return {'n': 1 / config.item}\n"
        "graph.add_map('each', over='items', node=divide).add_edge(START, 'each').add_edge('each', END)\n"
    )
    done = app.expect(0, "run", str(path), "--headless", "--thread", "t")
    assert done.out.count("at flow.py, line 5: return {'n': 1 / config.item}") == 2
    assert "at flow.py, line 5" in app.expect(0, "log", "t").out
