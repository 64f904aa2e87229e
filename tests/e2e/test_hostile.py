"""Hostile text in everything that has a text, on the screen and in lines, in a real terminal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hostile import ALL, NAME, TEXTS, unexpected
from tests.support.places import ROOT
from tests.support.program import APP
from tests.support.terminal import Terminal
from tests.support.watched import Watched

THREAD = "t\u202e\u200b[red][/$(rm)漢"
GRAPH = f"graph {NAME}.py"
REVIEWER = "ann [red][/] $(rm) 漢"
CHANNELS = 4


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / GRAPH).write_text("from tests.support.hostile_graph import build\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return tmp_path


@pytest.fixture
def watched(place: Path) -> Iterator[Watched]:
    argv = [*APP, "run", GRAPH, "--thread", THREAD, "--reviewer", REVIEWER]
    with Terminal(argv, cwd=place) as terminal:
        yield Watched(terminal)


def look_at_all(watched: Watched) -> None:
    """Every channel in every mode."""
    for _ in range(CHANNELS):
        for mode in "1234":
            watched.press(mode)
        watched.press("down")


@pytest.mark.slow
def test_every_screen(watched: Watched) -> None:
    terminal = watched.terminal
    terminal.wait_for("◉ input")
    watched.press("s", shows="WAITING")
    look_at_all(watched)

    watched.press("?", shows="Run one node")
    watched.press("escape", gone="Run one node")
    watched.press("ctrl+p", shows="Search for commands")
    watched.press("Theme", shows="Theme:")
    watched.press("escape", gone="Theme:")
    watched.press("t", shows="part of a name")
    watched.press("escape", gone="part of a name")
    watched.press("f", shows="name of the new thread")
    watched.press("escape", gone="name of the new thread")
    watched.press("x", shows="cancel the thread")
    watched.press("escape", gone="cancel the thread")
    watched.press("e", shows="Saved as step 2")
    terminal.press_until("q", "not valid JSON yet")  # until the editor has the focus
    watched.press("tab", "a note [/] $(rm)", shows="a note [/] $(rm)")
    watched.press("escape", shows="Discard the changes")
    watched.press("d", gone="not valid JSON yet")

    watched.press("d", shows="you are ")
    watched.press("r", shows="say what to change")
    watched.press("[red] {} $(rm)", shows="[red] {} $(rm)")
    watched.press("escape", gone="Done typing")
    watched.press("escape", gone="you are ")
    watched.press("d", shows="you are ")
    watched.press("a", shows="send it now")
    watched.press("enter", shows="step 2")

    watched.press("c", shows="FAILED")
    look_at_all(watched)
    for key in ("[", "[", "0", "]", "g"):
        watched.press(key)
    terminal.resize(80, 24)
    for _ in range(6):
        watched.press("w")
    terminal.resize(50, 12)
    watched.press("w")
    terminal.resize(120, 40)
    watched.press("q")
    if "quit anyway" in terminal.text():
        watched.press("q")
    assert terminal.wait_exit() == 1
    assert not unexpected(bytes(terminal.raw))
    assert "continue with: hitl-tui resume" in terminal.text()


def test_the_plain_front_end(place: Path) -> None:
    argv = [*APP, "run", GRAPH, "--thread", THREAD, "--reviewer", REVIEWER, "--plain"]
    with Terminal(argv, cwd=place, size=(100, 60)) as terminal:
        watched = Watched(terminal)
        terminal.wait_for("Command")
        for words in ("step", "show", "show text", "show map", "show list", "help", "continue"):
            terminal.press(words, "enter")
            watched.check(words)
        terminal.press("quit", "enter")
        terminal.settle()
        assert not unexpected(bytes(terminal.raw))


@pytest.mark.parametrize("name", ["osc52", "clear", "csi8", "c0", "reset"])
def test_a_thread_name_with_control_characters_is_refused(name: str, place: Path) -> None:
    text = TEXTS[name].replace("\x00", "")
    for arguments in (["run", GRAPH, "--thread", text], ["demo", "--thread", text]):
        with Terminal([*APP, *arguments], cwd=place) as terminal:
            assert terminal.wait_exit() == 2
            assert not unexpected(bytes(terminal.raw))
            assert "control character" in " ".join(terminal.text().split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", f"no{NAME}.py"],
        ["run", f"no{NAME}:x"],
        ["run", GRAPH, "--input", f"{NAME}=1"],
        ["run", GRAPH, "--input", NAME],
        ["demo", "--theme", NAME],
        ["demo", "--store", f"x{NAME}://y"],
        ["demo", "--store", f"no{NAME}/dir/x.db"],
        ["resume", NAME],
        ["resume", "x", "--store", f"{NAME}.db"],
        [NAME],
        ["demo", "--reviewer", NAME],
        ["demo", f"--{NAME}"],
        ["demo", NAME],
        ["run", "no\udcff.py"],
        ["update-state", "x", "n=\udcff", "--json"],
    ],
    ids=lambda arguments: " ".join(arguments).encode("unicode_escape").decode()[:40],
)
def test_hostile_arguments_are_escaped_in_error_messages(arguments: list[str], place: Path) -> None:
    done = subprocess.run([*APP, *arguments], cwd=place, capture_output=True, timeout=150, check=False)
    assert done.returncode in (1, 2)
    assert not unexpected(done.stdout + done.stderr)
    assert b"Traceback" not in done.stderr
    assert b"this is a bug" not in done.stderr


def test_an_error_while_the_graph_is_built(place: Path) -> None:
    (place / "bad.py").write_text(f"raise RuntimeError({ALL!r})\n")
    done = subprocess.run([*APP, "run", "bad.py"], cwd=place, capture_output=True, timeout=150, check=False)
    assert done.returncode == 2
    assert not unexpected(done.stdout + done.stderr)
