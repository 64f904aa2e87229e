"""Terminals of any size, and what they send."""

from __future__ import annotations

from tests.support.hostile import unexpected
from tests.support.program import APP
from tests.support.terminal import Terminal

KEYS_AND_WHAT_THEY_SHOW = {
    "s ? escape w w t": ("PAUSED", "Keys, words", "‹State›", "‹Changed›", "Stream", "1 thread"),
    "escape s d escape e escape": (
        "Stream",
        "your turn",
        "Your answ",
        "your turn",
        "edit latest",
        "your turn",
    ),
}


def test_a_tiny_terminal_and_a_storm_of_sizes() -> None:
    with Terminal([*APP, "demo", "--pace", "0", "--thread", "tiny"], size=(20, 5)) as terminal:
        terminal.wait_for("newest")
        for keys, screens in KEYS_AND_WHAT_THEY_SHOW.items():
            for key, shown in zip(keys.split(), screens, strict=True):
                terminal.press(key)
                terminal.wait_for(shown)
        terminal.settle()
        for step in range(60):
            terminal.resize(*((1, 1), (20, 5), (200, 60), (7, 40), (120, 3))[step % 5])
            terminal.press("w" if step % 7 == 0 else "")
        terminal.resize(120, 40)
        terminal.press("escape")
        terminal.settle()
        terminal.wait_for("WAITING")
        terminal.press("q")
        assert terminal.wait_exit() == 3


def test_bytes_that_are_not_text_can_be_typed_and_pasted() -> None:
    with Terminal([*APP, "demo", "--pace", "0", "--thread", "bytes"]) as terminal:
        terminal.wait_for("worker is next")
        terminal.send(b"\xff\xc3(\x1b[M\xe1\xe2\xe3")
        terminal.press("e")
        terminal.wait_for("Saved as step 1")
        terminal.send(b"a\xffb\x1b[200~" + "\u202e[red][/]\x05\x9b31m".encode() + b"\xfe\x1b[201~")
        terminal.wait_for("[red][/]")
        terminal.settle()
        assert not unexpected(bytes(terminal.raw))
        terminal.press("escape")
        terminal.wait_for("Discard the changes?")
        terminal.press("d")
        terminal.wait_for("worker is next")
        terminal.press("q")
        assert terminal.wait_exit() == 3
