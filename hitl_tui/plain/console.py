"""Reading and writing lines, on a terminal or through a pipe."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, Protocol

from hitl_tui.drivers.node_streams import flush_output, own_input, own_out
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.view.format import NotJson, read_json
from hitl_tui.view.glyphs import plain_chars
from hitl_tui.view.lines import BAR, content, on_terminal
from hitl_tui.view.sanitise import sanitise

_INDENT = "  "
"""Prefix of the second row of a line, so that content can't look like one of our lines."""
END_OF_TEXT = "."
"""A line with only this ends a text of several lines."""


class Left(Exception):
    """The input has ended: nobody answers any more."""


class PromptEnded(Exception):
    """A prompt ended before a line was typed, because of something that the person must see."""


class Console(Protocol):
    """Input and output of a session in plain text mode."""

    def say(self, *lines: str) -> None:
        """Write lines."""

    def ask(self, prompt: str) -> str:
        """Read one line; raise `Left` if the input has ended."""


class Terminal:
    """Standard input and output."""

    def __init__(self) -> None:
        if sys.stdin.isatty():
            with suppress(ImportError):
                import readline  # noqa: F401 - gives `input` its line editing

    def say(self, *lines: str) -> None:
        """Write lines, each sanitised, and flush; a terminal gets rows that it need not wrap."""
        for line in lines:
            print(*map(self._shown, _rows(line)), sep="\n", file=own_out())
        own_out().flush()

    def ask(self, prompt: str) -> str:
        """Read one line after a prompt; ctrl+c empties it, and the end of the input raises `Left`."""
        flush_output()  # otherwise it would follow the prompt
        try:
            typed = own_input(f"{self._shown(prompt)} ").strip()
        except EOFError:
            self._end_line()
            raise Left from None
        except KeyboardInterrupt:
            self._end_line()
            return ""
        except PromptEnded:
            self._drop_typed()
            self._end_line()
            raise
        except UnicodeDecodeError:
            self.say("That line is not text; nothing was done.")
            return ""
        if not sys.stdin.isatty():
            self._end_line()  # nobody pressed enter to end the prompt's line
        return typed

    @staticmethod
    def _drop_typed() -> None:
        """Discard typed input, so that it becomes no part of the next line."""
        with suppress(ImportError, OSError):
            import termios

            if sys.stdin.isatty():
                termios.tcflush(sys.stdin, termios.TCIFLUSH)

    @staticmethod
    def _end_line() -> None:
        print(file=own_out(), flush=True)

    @staticmethod
    def _shown(text: str) -> str:
        encoding = (own_out().encoding or "utf-8").lower()
        return sanitise(text) if encoding in ("utf-8", "utf8") else plain_chars(sanitise(text), encoding)


def _rows(line: str) -> list[str]:
    """Return a line as rows of the terminal; content has its bar before each row."""
    if line.startswith(BAR):
        return [BAR + row for row in on_terminal(line.removeprefix(BAR), len(BAR))]
    first, *more = on_terminal(line, len(_INDENT))
    return [first, *(_INDENT + row for row in more)]


def ask_text(console: Console, prompt: str) -> str:
    """Read several lines, up to one with only a dot."""
    console.say(f"{prompt} End it with a line that has only a dot.")
    lines: list[str] = []
    while (line := console.ask("text:")) != END_OF_TEXT:
        lines.append(line)
    return "\n".join(lines)


def confirm(console: Console, question: str) -> bool:
    """Ask for an explicit yes; anything else is a no."""
    return console.ask(f"{question} Type yes to confirm:").lower() == "yes"


def refusal(error: HitlError) -> list[str]:
    """Return an error as a line: the title is ours, but it may quote anybody's text."""
    lines = [f"Refused: {error.title}.", *content([error.message], 20)]
    if error.details:
        lines += content(error.details.splitlines(), 40)
    return [*lines, *content([error.hint])] if error.hint else lines


def json_of(typed: str) -> Any:
    """Return the value of typed JSON.

    Raises:
        UsageError: it is invalid; the message says where.
    """
    try:
        return read_json(typed)
    except NotJson as error:
        raise UsageError(f"this is not JSON: {error}", 'write a text "in quotes"') from None
