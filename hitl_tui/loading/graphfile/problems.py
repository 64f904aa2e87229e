"""What is wrong with a graph file: every problem with file, line, table and key, told together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hitl_tui.errors import GraphInvalid, HitlError
from hitl_tui.loading import positions
from hitl_tui.loading.toml import TomlFile
from hitl_tui.suggest import did_you_mean

_SHOWN = 20
_TABLES_OF_TABLES = ("nodes", "maps", "parallels", "subgraphs", "channels", "agents", "inputs")


@dataclass(frozen=True)
class Problem:
    """One problem; `line` is None where it is about the file as a whole."""

    path: positions.Path
    line: int | None
    message: str
    hint: str
    details: str


class Problems:
    """Collects the problems of a file."""

    def __init__(self, file: TomlFile) -> None:
        self.name = shown_path(file.path)
        self._index = positions.line_index(file.text)
        self._found: list[Problem] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, path: positions.Path, message: str, hint: str = "", details: str = "") -> None:
        """Note a problem of the key at `path`."""
        line = positions.line_of(self._index, path)
        self._found.append(Problem(path, line, message, hint, details))

    def unknown(self, path: positions.Path, what: str, name: str, known: Iterable[str]) -> None:
        """Note that `name` is no `what` of the file."""
        self.add(path, f"there is no {what} {name!r}", did_you_mean(name, known))

    @contextmanager
    def at(self, path: positions.Path) -> Iterator[None]:
        """Note an error that the block raises as a problem of the key at `path`."""
        try:
            yield
        except HitlError as error:
            self.add(path, error.message, error.hint, error.details)

    def under(self, path: positions.Path) -> bool:
        """Whether something at `path` or inside of it is wrong."""
        return any(problem.path[: len(path)] == path for problem in self._found)

    def check(self) -> None:
        """Raise `GraphInvalid` with every problem found so far, if there is any."""
        if not self._found:
            return
        ordered = sorted(self._found, key=lambda problem: problem.line or 0)
        lines = [self._told(problem) for problem in ordered[:_SHOWN]]
        if len(ordered) > _SHOWN:
            lines.append(f"and {len(ordered) - _SHOWN} more")
        failed = GraphInvalid("\n".join(lines))
        failed.details = next((problem.details for problem in ordered if problem.details), "")
        raise failed

    def _told(self, problem: Problem) -> str:
        place = self.name if problem.line is None else f"{self.name}, line {problem.line}"
        where = key_in_words(problem.path)
        hint = f", {problem.hint}" if problem.hint else ""
        return f"{place}{f', {where}' if where else ''}: {problem.message}{hint}"


def key_in_words(path: positions.Path) -> str:
    """A path as the file writes it: `[nodes.write] retry.wait`, `[[edges]] to`."""
    names = [part for part in path if isinstance(part, str)]
    if not names:
        return ""
    head = str(path[0])
    if head in ("edges", "routes"):
        return f"[[{head}]] {'.'.join(names[1:])}".rstrip()
    depth = 2 if head in _TABLES_OF_TABLES and len(names) > 1 else 1
    return f"[{'.'.join(names[:depth])}] {'.'.join(names[depth:])}".rstrip()


def shown_path(path: Path) -> str:
    """A path as a person knows it: from the current directory where it lies below."""
    try:
        near = os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)
    return str(path) if near.startswith("..") else near
