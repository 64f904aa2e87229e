"""Writes new graph files from templates, for `hitl-tui new`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hitl_tui.errors import UsageError
from hitl_tui.loading.graphfile.schema import SCHEMA_FILE
from hitl_tui.suggest import did_you_mean

STARTS = {
    "advisor": "a worker, an advisor, and your decision on every verdict",
    "sequential": "agents in a row, and your approval of each hand-over",
    "supervisor": "a manager and its workers, and you can overrule each choice",
    "debate": "two sides and a judge, and you can end or extend it after each round",
    "planner": "a planner, workers and an evaluator, and your approval of each plan",
    "review": "an agent writes and you check, until you approve",
    "counter": "a loop whose steps are Python functions",
    "blank": "one agent, one node",
}

_FOLDER = Path(__file__).resolve().parent / "templates"


def write_start(template: str, file: Path) -> list[Path]:
    """Write a commented graph file and the Python file it needs, if any; returns the files written.

    Raises:
        UsageError: no such template, a bad name, a file exists already, or it can't be written.
            Then no file remains.
    """
    if template not in STARTS:
        raise UsageError(f"there is no template {template!r}", did_you_mean(template, STARTS))
    if file.suffix != ".toml" or not file.name.isprintable():
        raise UsageError(f"{str(file)!r} is not a graph file name", f"as in {file.stem or 'my'}.toml")
    texts = {file: _text(template, file)}
    code = _FOLDER / f"{template}.py"
    if os.path.isfile(code):
        texts[file.with_suffix(".py")] = code.read_text(encoding="utf-8")
    for path in texts:
        if os.path.exists(path):
            raise UsageError(f"there is a file {path} already", "choose another name")
    written: list[Path] = []
    try:
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as stream:
                written.append(path)
                stream.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise UsageError(f"{path} can't be written: {error.strerror}", "give another place") from None
    return written


def takes_model(template: str) -> bool:
    """Whether a template has agents: those with Python functions have none."""
    return not os.path.isfile(_FOLDER / f"{template}.py")


def _text(template: str, file: Path) -> str:
    """Fill in a template: the path of the installed schema, and the name of the Python file."""
    text = (_FOLDER / f"{template}.toml").read_text(encoding="utf-8")
    text = text.replace(f"#:schema {SCHEMA_FILE.name}", f"#:schema {SCHEMA_FILE.as_uri()}", 1)
    functions = json.dumps(f"{file.stem}.py", ensure_ascii=False)[:-1]
    return text.replace(f'"{template}.py', functions)
