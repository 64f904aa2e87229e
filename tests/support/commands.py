"""The command line inside the test's process: arguments in, exit code and output out."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

import pytest

from hitl_tui.cli.failures import guarded
from hitl_tui.cli.main import cli


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[dict[str, Any]]:
        """Each line of stdout as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def document(self) -> dict[str, Any]:
        """The one document of stdout, or the last of a stream."""
        return self.documents[-1]


class App:
    """Calls commands as `hitl-tui` does."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Done:
        self._capsys.readouterr()
        given = list(arguments)
        code = guarded(lambda: cli.main(given, prog_name="hitl-tui", standalone_mode=False), given)
        said = self._capsys.readouterr()
        return Done(code, said.out, said.err)

    def expect(self, code: int, *arguments: str) -> Done:
        """A call that must leave with this exit code."""
        done = self(*arguments)
        assert done.code == code, f"{arguments}: {done}"
        return done


def close_log() -> None:
    """Take the log file of a finished command away again."""
    logger = logging.getLogger("hitl_tui")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True
