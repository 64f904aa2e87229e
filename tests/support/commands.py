"""The command line inside the test's process: arguments in, exit code and output out."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from hitl_tui.cli.documents import output_schema
from hitl_tui.cli.failures import guarded
from hitl_tui.cli.main import cli
from hitl_tui.drivers.node_streams import give_output_back

OUTPUT_SCHEMA = output_schema()


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[dict[str, Any]]:
        """Each line of stdout as JSON, and as the published schema describes it."""
        found = [json.loads(line) for line in self.out.splitlines()]
        for one in found:
            check_document(one)
        return found

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
        try:
            code = guarded(lambda: cli.main(given, prog_name="hitl-tui", standalone_mode=False), given)
        finally:
            give_output_back()
        said = self._capsys.readouterr()
        return Done(code, said.out, said.err)

    def expect(self, code: int, *arguments: str) -> Done:
        """A call that must leave with this exit code."""
        done = self(*arguments)
        assert done.code == code, f"{arguments}: {done}"
        return done


def check_document(document: dict[str, Any]) -> None:
    """Compare a document with the schema of its kind, which knows every field that there may be."""
    name = f"event_{document['event']}" if document["kind"] == "event" else f"kind_{document['kind']}"
    errors = [
        f"{'.'.join(map(str, one.instance_path))}: {one.message}"
        for one in _checker(name).iter_errors(document)
    ]
    assert not errors, f"{name}: {errors}"


@cache
def _checker(name: str) -> Any:
    from jsonschema_rs import validator_for

    return validator_for({"$ref": f"#/$defs/{name}", "$defs": OUTPUT_SCHEMA["$defs"]})


def close_log() -> None:
    """Take the log file of a finished command away again."""
    logger = logging.getLogger("hitl_tui")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)
