from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hitl_tui import __version__
from hitl_tui.cli.failures import guarded
from hitl_tui.cli.logs import log_path
from hitl_tui.cli.main import COMMANDS, cli
from hitl_tui.errors import GraphInvalid, HitlError, StaleWriter, UsageError
from hitl_tui.loading.code import CodeFailed
from tests.support.commands import close_log
from tests.support.program import call


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    yield
    close_log()


def raising(error: BaseException) -> int:
    def command() -> None:
        raise error

    return guarded(command)


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_version(option: str) -> None:
    result = call(option)
    assert (result.returncode, result.stdout) == (0, f"hitl-tui {__version__}\n")


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_every_command(arguments: list[str]) -> None:
    result = call(*arguments)
    assert result.returncode == 0
    for name, entry in COMMANDS.items():
        assert f"  {name}" in result.stdout
        assert entry.summary in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_the_table_says_with_the_same_summary(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(limit=200) == COMMANDS[name].summary
    assert CliRunner().invoke(command, ["--help"]).exit_code == 0


def examples(name: str) -> list[str]:
    """Examples at the end of the help of a command."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.epilog is not None
    return [line.strip() for line in command.epilog.split("\n")[2:]]


EXAMPLES = [shlex.split(one) for name in COMMANDS for one in examples(name)]


@pytest.mark.parametrize("words", EXAMPLES, ids=" ".join)
def test_examples_use_only_existing_options(words: list[str]) -> None:
    at = words.index("hitl-tui")
    command = cli.get_command(click.Context(cli), words[at + 1])
    assert command is not None
    known = {option for one in command.get_params(click.Context(command)) for option in one.opts}
    for word in words[at + 2 :]:
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
            known |= {option for one in command.get_params(click.Context(command)) for option in one.opts}
    assert {word for word in words[at + 2 :] if word.startswith("--")} <= {*known, "--"}


def test_every_command_has_its_own_example() -> None:
    for name in COMMANDS:
        lines = examples(name)
        assert lines
        assert all(f"hitl-tui {name}" in line for line in lines)


def test_a_misspelt_command_gets_a_hint() -> None:
    result = call("demmo")
    assert result.returncode == 2
    assert "No such command 'demmo'; did you mean 'demo'?" in result.stderr


def test_a_store_option_before_the_command_gets_a_hint() -> None:
    result = call("--store", "a b.db", "threads")
    assert result.returncode == 2
    assert "hitl-tui threads --store 'a b.db'" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (HitlError("m"), 1),
        (UsageError("m"), 2),
        (GraphInvalid("m"), 2),
        (StaleWriter("m"), 4),
        (click.UsageError("m"), 2),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 0),
    ],
)
def test_exit_codes(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "dup2", lambda *_: 0)
    assert raising(error) == code


def test_an_error_says_what_is_wrong_and_how_to_fix_it(capsys: pytest.CaptureFixture[str]) -> None:
    error = CodeFailed("graph.py: KeyError: 'x'", "define x")
    error.details = "Traceback\n  line 3"
    assert raising(error) == 2
    assert capsys.readouterr().err == (
        "hitl-tui: The graph's code failed: graph.py: KeyError: 'x'\n  Traceback\n    line 3\n  define x\n"
    )


def test_hostile_text_in_an_error_stays_text(capsys: pytest.CaptureFixture[str]) -> None:
    raising(UsageError("no file \x1b]52;c;aGk=\x07\x9b31m\u202e"))
    assert not set("\x1b\x07\x9b\u202e") & set(capsys.readouterr().err)


def test_an_unexpected_error_is_one_line_and_a_log_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(RuntimeError("boom")) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "hitl-tui: unexpected RuntimeError: boom"
    assert str(log_path()) in second
    log = log_path().read_text()
    assert "Traceback" in log
    assert "RuntimeError: boom" in log
    assert log_path().stat().st_mode & 0o777 == 0o600


def test_a_log_file_that_cannot_be_written_is_said(
    capsys: pytest.CaptureFixture[str], isolated: Path
) -> None:
    log_path().parent.parent.mkdir(parents=True)
    log_path().parent.write_text("in the way")
    assert raising(RuntimeError("boom")) == 1
    assert "can't be written" in capsys.readouterr().err


def test_results_become_exit_codes() -> None:
    assert guarded(lambda: 3) == 3
    assert guarded(lambda: None) == 0


def test_a_ctrl_c_while_the_program_is_still_being_imported_ends_it_without_a_traceback() -> None:
    program = """
import sys

class Pressed:
    def find_spec(self, name, path, target=None):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
from hitl_tui.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")
