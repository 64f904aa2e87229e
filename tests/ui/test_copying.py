"""What is copied, as bytes on a real terminal and in a program of the machine; what asks before it quits."""

from __future__ import annotations

import base64
import os
import re
import shlex
from pathlib import Path

import pytest

from tests.support import reviewed_flow
from tests.support.program import APP, call
from tests.support.terminal import Terminal

FLOW = Path(reviewed_flow.__file__)
_OSC = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")


def copied(terminal: Terminal) -> list[str]:
    """All that was put on the terminal's clipboard so far."""
    return [base64.b64decode(payload).decode() for payload in _OSC.findall(bytes(terminal.raw))]


@pytest.fixture(autouse=True)
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread `t` that waits, on a machine without a clipboard of its own."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    call("run", str(FLOW), "--headless", "--thread", "t")


def test_a_key_and_a_letter_copy_value_path_diff_card_and_command() -> None:
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("WAITING")
        assert copied(terminal) == []
        for number, letter in enumerate("vpds", 1):
            terminal.press("y")
            terminal.wait_for("the shell command")
            terminal.press(letter)
            terminal.wait_until(lambda number=number: len(copied(terminal)) == number, "a copy")  # type: ignore[misc]
            terminal.wait_for("copied")
        value, path, diff, command = copied(terminal)
        assert value == reviewed_flow.NEW
        assert path == "draft"
        assert "[-word120-] {+packed lunch+}" in diff
        assert re.fullmatch(r"hitl-tui answer t \w+ ANSWER --step 3", command)
        terminal.press("d")
        terminal.wait_for("Is it good?")
        terminal.press_until("y", "as Markdown")
        terminal.press("m")
        terminal.wait_until(lambda: len(copied(terminal)) == 5, "the card")
        card = copied(terminal)[-1]
        assert card.startswith("# Is it good?")
        assert "- `revise`: write it again" in card
        assert "{+packed lunch+}" in card
        assert reviewed_flow.NEW in card
        terminal.press("tab", "reads well", "enter", "y")
        terminal.wait_for("as Markdown")
        terminal.press("s")
        terminal.wait_until(lambda: len(copied(terminal)) == 6, "the command")
        does_the_same = shlex.split(copied(terminal)[-1])
    assert does_the_same[:3] == ["hitl-tui", "answer", "t"]
    assert does_the_same[4:] == ["approve", "--step", "3", "--note", "reads well"]
    assert call(*does_the_same[1:]).returncode == 0


def test_a_private_value_is_copied_as_it_is_shown() -> None:
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("WAITING")
        for _ in range(3):
            terminal.press("down")
        terminal.wait_for("private, so not shown")
        terminal.press("y")
        terminal.wait_for("the shell command")
        terminal.press("v")
        terminal.wait_until(lambda: bool(copied(terminal)), "a copy")
        assert copied(terminal) == ["[private]"]
        assert b"sesame" not in terminal.raw


def test_no_value_can_write_to_the_clipboard_by_itself() -> None:
    call("update-state", "t", "draft=before \x1b]52;c;aGFja2Vk\x07 behind \x9d52;c;aGFja2Vk\x9c")
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("aGFja2Vk")
        for key in "1234":
            terminal.press(key)
            terminal.settle()
        terminal.press("d")
        terminal.wait_for("Is it good?")
        assert copied(terminal) == []
        assert b"\x1b]52" not in terminal.raw
        assert "\x9d".encode() not in terminal.raw
        terminal.press_until("y", "the shell command")
        terminal.press("v")
        terminal.wait_until(lambda: bool(copied(terminal)), "a copy")
        (text,) = copied(terminal)
        assert "before" in text
        assert "\x1b" not in text
        assert "\x9d" not in text


def drag(terminal: Terminal, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Press the button at a cell, move, and let it go at another."""
    (x, y), (to_x, to_y) = (tuple(at + 1 for at in place) for place in (start, end))
    terminal.send(f"\x1b[<0;{x};{y}M".encode())
    terminal.send(f"\x1b[<32;{to_x};{to_y}M\x1b[<0;{to_x};{to_y}m".encode())


def test_what_the_mouse_selects_is_what_ctrl_c_copies_and_without_it_asks() -> None:
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("WAITING")
        terminal.press("1")
        terminal.wait_for("‹text›")
        terminal.wait_for("word8 word9")
        found = terminal.find("word8 word9")
        assert found is not None
        x, y = found
        drag(terminal, (x, y), (x + len("word8 word9"), y))
        terminal.settle()
        terminal.press("ctrl+c")
        terminal.wait_until(lambda: bool(copied(terminal)), "a copy")
        assert copied(terminal) == ["word8 word9"]
        terminal.click("Timeline")
        terminal.settle()
        terminal.press("ctrl+c")
        terminal.wait_for("quit anyway")


def test_text_too_long_for_the_terminal_goes_to_the_systems_clipboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("update-state", "t", f"draft={'x' * 100_000}")
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("WAITING")
        terminal.press("y")
        terminal.wait_for("the shell command")
        terminal.press("v")
        terminal.wait_for("not copied: 100,000 bytes")
        assert copied(terminal) == []
    program = tmp_path / "bin" / "xclip"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/clipboard\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    with Terminal([*APP, "resume", "t"], env={"PATH": path, "DISPLAY": ":0"}) as terminal:
        terminal.wait_for("WAITING")
        terminal.press("y")
        terminal.wait_for("the shell command")
        terminal.press("v")
        terminal.wait_for("machine's clipboard only")
        assert (tmp_path / "clipboard").read_text() == "x" * 100_000


def test_two_versions_are_side_by_side_if_there_is_room() -> None:
    with Terminal([*APP, "resume", "t"], size=(200, 60)) as terminal:
        terminal.wait_for("WAITING")
        terminal.press("d")
        terminal.wait_for("step 2, by again")
        terminal.wait_for("draft, side by side")
        terminal.press("escape")
        terminal.wait_gone("Your answer")
