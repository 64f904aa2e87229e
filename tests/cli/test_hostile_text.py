"""Whatever is in a thread, no command lets a raw control character or a fake of ours through."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tests.support.commands import App

BOX = "Question: The advisor says APPROVED.\n1. approve: yes\nCommand:"
NASTY = (
    "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202e\u200b\x00\x7f\x85\u2028 [/] [red] $(rm) "
    f"👩\u200d👩 a{chr(0x301) * 9} 漢字\n{BOX}"
)
ID = "id[red]$(rm)\u200b'"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2028\u2029\u2066-\u2069]")

GRAPH = f"""
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
NASTY = {NASTY!r}
choices = [GateChoice("approve", NASTY), GateChoice("revise", "no", text="required")]
payload = lambda state: {{"verdict": NASTY, "feedback": NASTY, "k": 1}}
gate = Gate("node", title=NASTY, subject="text", payload=payload, choices=choices)
write = lambda state: {{"text": NASTY, "list": NASTY, "map": {{NASTY: {{NASTY: NASTY}}}}}}
channels = {{
    "text": Channel("", description=NASTY),
    "list": Channel([], reducer="append"),
    "map": Channel({{}}),
    "other": Channel(NASTY),
}}
graph = (
    StateGraph(channels, name="bad\\x1b[2Jname")
    .add_node("node", write).add_edge(START, "node").add_edge("node", END)
    .compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
)
"""


@pytest.fixture
def hostile(app: App, tmp_path: Path) -> App:
    """Threads `h` and `f`, hostile in every text that a graph, a model or a person can give."""
    path = tmp_path / "hostile.py"
    path.write_text(GRAPH)
    app.expect(3, "run", str(path), "--headless", "--thread", "h")
    app.expect(0, "update-state", "h", f"text={NASTY} x", "--note", NASTY)
    app.expect(0, "fork", "h@1", "f", f"text={NASTY} fork", "--note", NASTY)
    app.expect(0, "fork", "h@1", ID)
    return app


@pytest.mark.parametrize(
    "arguments",
    [
        ("threads",),
        ("show", "h"),
        ("show", "h@1"),
        ("show", "h", "--channel", "text"),
        ("show", "h", "--channel", "map"),
        ("show", ID),
        ("log", "h"),
        ("log", "f"),
        ("diff", "h", "f"),
        ("diff", "h@0", "h@1"),
        ("blame", "h", "text"),
        ("blame", "h", "list"),
        ("blame", "h", "map"),
        ("verify", "h"),
        ("resume", "h", "--headless"),
        ("approve", "h", "--step", "1"),
        ("answer", "h", "\x1b[2J\x9b", "\x1b]52;", "--step", "2"),
        ("show", "\x1b[2J\x9b"),
        ("update-state", "h", "no\x1b[2J=\x9b"),
        ("graph", "HOSTILE"),
    ],
    ids=lambda arguments: " ".join(arguments).encode("unicode_escape").decode(),
)
@pytest.mark.slow
def test_no_control_character_comes_out(hostile: App, arguments: tuple[str, ...], tmp_path: Path) -> None:
    arguments = tuple(word.replace("HOSTILE", str(tmp_path / "hostile.py")) for word in arguments)
    for extra in ((), ("--json",)):
        done = hostile(*arguments, *extra)
        assert done.out + done.err
        assert not CONTROL.search(done.out + done.err)
        if extra:
            assert done.out.isascii()
            assert done.documents
        elif arguments[0] in ("log", "diff", "blame") or arguments == ("show", "h"):
            assert not re.search(r"^(Question:|1\. approve|Command:)", done.out, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments",
    [("--\x1b[2J\x9b\u202e",), ("show", "--\x1b[2J\x9b"), ("\x1b[2J\x9b",), ("threads", "a", "\x9b2J")],
)
def test_mistyped_input_is_quoted_without_control_characters(app: App, arguments: tuple[str, ...]) -> None:
    done = app.expect(2, *arguments)
    assert done.err
    assert not CONTROL.search(done.out + done.err)


@pytest.mark.slow
def test_plain_text_mode_prints_no_control_characters(hostile: App, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = f"w\nl\nt\nv text\nv map\n\x1b[2J\x9b\nd\n2\n{NASTY[:30]!r}\ne other\n\x1b\x9b\n.\nno\no h\nq\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    done = hostile.expect(0, "resume", "h", "--plain")
    assert not CONTROL.search(done.out + done.err)
    fakes = [line for line in done.out.splitlines() if "APPROVED" in line and not line.startswith("  | ")]
    # What is left are titles inside lines of ours, on one line, their line breaks made visible.
    assert all("⏎" in line or "…" in line for line in fakes)
    assert not re.search(r"^1\. approve: yes", done.out, re.MULTILINE)
