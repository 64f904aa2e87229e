"""`copy` through a pipe and as JSON, and `K` in lines: what `y` copies on screen."""

from __future__ import annotations

import base64
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.test_batch_decisions import twelve
from tests.support.commands import App
from tests.support.program import APP
from tests.support.terminal import Terminal

__all__ = ["twelve"]
DRAFT = "An index is a phone book that the database keeps beside the table, so as to read less of it."


@pytest.mark.slow
def test_a_pipe_gets_value_difference_card_and_the_command_that_answers(twelve: App) -> None:
    value = twelve.expect(0, "copy", "blog-joins", "value").out
    assert value.startswith(DRAFT)
    assert twelve.expect(0, "copy", "blog-joins", "value", "rounds").out == "2\n"
    diff = twelve.expect(0, "copy", "blog-joins", "diff").out
    assert "An index is a [-structure-] {+phone book+} that" in diff
    card = twelve.expect(0, "copy", "blog-joins", "card").out
    assert card.startswith("# Approve this draft? (advisor: APPROVED)\n")
    assert "- latest\\_draft of step 4 by worker, 289 characters" in card
    assert "- `accept`: agree with the advisor" in card
    assert value.strip() in card
    assert diff.strip() in card
    command = twelve.expect(0, "copy", "blog-joins", "command").out
    twelve.expect(0, *shlex.split(command.replace("ANSWER", "accept"))[1:])
    assert twelve.expect(0, "copy", "blog-joins", "command").out == "hitl-tui show blog-joins@6\n"


@pytest.mark.slow
def test_json_has_the_text_and_what_it_is_of(twelve: App) -> None:
    document = twelve.expect(0, "copy", "memo-42", "card", "--json").document
    assert (document["kind"], document["thread"], document["step"], document["what"]) == (
        "copy", "memo-42", 1, "card",
    )  # fmt: skip
    assert document["text"] == twelve.expect(0, "copy", "memo-42", "card").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("order-7", "value"), "no channel is named"),
        (("memo-42", "value", "txt"), "did you mean 'text'"),
        (("memo-42", "diff"), "'text' has no earlier version"),
    ],
)
@pytest.mark.slow
def test_copying_something_missing_is_refused_with_a_reason(
    twelve: App, words: tuple[str, ...], says: str
) -> None:
    assert says in twelve.expect(2, "copy", *words).err


@pytest.mark.slow
def test_a_thread_that_asks_nothing_has_no_card(twelve: App) -> None:
    twelve.expect(0, "approve", "memo-42")
    assert "there is no card" in twelve.expect(2, "copy", "memo-42", "card").err


def osc52(terminal: Terminal) -> list[str]:
    found = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", bytes(terminal.raw))
    return [base64.b64decode(payload).decode() for payload in found]


@pytest.fixture
def without_a_clipboard(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


def test_a_terminal_clipboard_is_filled_by_the_command_and_in_plain_text_mode(
    twelve: App, without_a_clipboard: None
) -> None:
    with Terminal([*APP, "copy", "memo-42", "value"]) as terminal:
        assert terminal.wait_exit() == 0
        assert osc52(terminal) == ["A memo about memos."]
        assert "A memo about" not in terminal.text()
        assert "copied 19 characters" in terminal.text()
    with Terminal([*APP, "resume", "memo-42", "--plain"]) as terminal:
        terminal.wait_for("Command:")
        terminal.press("K value", "enter")
        terminal.wait_for("Copied 19 characters.")
        assert osc52(terminal) == ["A memo about memos."]


def test_a_terminal_without_a_clipboard_gets_a_message(twelve: App, without_a_clipboard: None) -> None:
    with Terminal([*APP, "copy", "memo-42", "value"], env={"TERM": "dumb"}) as terminal:
        assert terminal.wait_exit() == 1
        assert osc52(terminal) == []
        assert "no clipboard here" in terminal.text()


def test_a_key_in_plain_text_mode_copies_to_the_systems_clipboard(
    twelve: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "xclip"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/clipboard\n")
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "DISPLAY": ":0", "TERM": "dumb"}
    with Terminal([*APP, "resume", "memo-42", "--plain"], env=env) as terminal:
        terminal.wait_for("Command:")
        terminal.press("K card", "enter")
        terminal.wait_for("to this machine's clipboard only.")
        assert (tmp_path / "clipboard").read_text().startswith("# Is this draft good enough?")
