"""Strict decoding of a graph file, key by key, so that one run finds every problem."""

from __future__ import annotations

import functools
import os
import re
import reprlib
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from hitl_tui.engine.state.channel import RUN_INPUTS, BoundChannel
from hitl_tui.errors import GraphInvalid, HitlError
from hitl_tui.loading import toml
from hitl_tui.loading.graphfile.shape import GraphFile
from hitl_tui.loading.toml import KeyPath, TomlFile
from hitl_tui.suggest import did_you_mean, nearest

_SHOWN = 20
_ARRAYS_OF_TABLES = ("edges", "routes", "stops", "captions")
_TABLES_OF_TABLES = ("nodes", "maps", "parallels", "subgraphs", "channels", "agents", "inputs")


class FileProblem(msgspec.Struct, frozen=True):
    """One problem of a file; `line` is None if it concerns the whole file."""

    path: toml.KeyPath
    line: int | None
    message: str
    hint: str
    details: str


class Problems:
    """Collects the problems of a file and raises them together as one error."""

    def __init__(self, file: TomlFile, kind: type[HitlError] = GraphInvalid) -> None:
        self._kind = kind
        self.name = shown_path(file.path)
        self._index = toml.line_index(file.text)
        self._found: list[FileProblem] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, path: toml.KeyPath, message: str, hint: str = "", details: str = "") -> None:
        """Add a problem of the key at `path`."""
        line = toml.line_of(self._index, path)
        self._found.append(FileProblem(path, line, message, hint, details))

    def unknown(self, path: toml.KeyPath, what: str, name: str, known: Iterable[str]) -> None:
        """Add the problem that the file has no `what` called `name`."""
        self.add(path, f"there is no {what} {name!r}", did_you_mean(name, known))

    @contextmanager
    def at(self, path: toml.KeyPath) -> Iterator[None]:
        """Add an error that the block raises as a problem of the key at `path`."""
        try:
            yield
        except HitlError as error:
            self.add(path, error.message, error.hint, error.details)

    def under(self, path: toml.KeyPath) -> bool:
        """Whether there is a problem at `path` or inside it."""
        return any(problem.path[: len(path)] == path for problem in self._found)

    def check(self) -> None:
        """Raise one error with all problems found so far, if any."""
        if not self._found:
            return
        ordered = sorted(self._found, key=lambda problem: problem.line or 0)
        lines = [self._line_of(problem) for problem in ordered[:_SHOWN]]
        if len(ordered) > _SHOWN:
            lines.append(f"and {len(ordered) - _SHOWN} more")
        failed = self._kind("\n".join(lines))
        failed.details = next((problem.details for problem in ordered if problem.details), "")
        raise failed

    def _line_of(self, problem: FileProblem) -> str:
        place = self.name if problem.line is None else f"{self.name}, line {problem.line}"
        where = key_in_words(problem.path)
        hint = f", {problem.hint}" if problem.hint else ""
        return f"{place}{f', {where}' if where else ''}: {problem.message}{hint}"


def key_in_words(path: toml.KeyPath) -> str:
    """Return a path of keys as the file writes it: `[nodes.write] retry.wait`, `[[edges]] to`."""
    names = [part for part in path if isinstance(part, str)]
    if not names:
        return ""
    head = str(path[0])
    if head in _ARRAYS_OF_TABLES:
        return f"[[{head}]] {'.'.join(names[1:])}".rstrip()
    depth = 2 if head in _TABLES_OF_TABLES and len(names) > 1 else 1
    return f"[{'.'.join(names[:depth])}] {'.'.join(names[depth:])}".rstrip()


def shown_path(path: Path) -> str:
    """Return a file's path for people: relative to the current directory if it is inside."""
    try:
        near = os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)
    return str(path) if near.startswith("..") else near


T = TypeVar("T", bound=msgspec.Struct)

_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
    "datetime": "a date",
    "date": "a date",
    "time": "a time",
}


def decode(values: Mapping[str, Any], shape: type[T], problems: Problems) -> T | None:
    """Decode `values` as a `shape`; None if there is a problem with them, found now or before."""
    check_value(values, shape, problems, ())
    return None if len(problems) else msgspec.convert(values, shape)


def check_value(value: Any, kind: Any, problems: Problems, path: KeyPath) -> None:
    """Add a problem for each part of a value that does not fit a type."""
    bare = _bare(kind)
    if _is_struct(bare):
        _check_table(value, bare, problems, path)
    elif get_origin(bare) in (dict, Mapping) and isinstance(value, dict) and _has_known_member(bare):
        for key, member in value.items():
            check_value(member, get_args(bare)[1], problems, (*path, key))
    elif get_origin(bare) is list and isinstance(value, list):
        for number, member in enumerate(value):
            check_value(member, get_args(bare)[0], problems, (*path, number))
    elif (member := _member_for(value, bare)) is not None:
        check_value(value, member, problems, path)
    else:
        _check_leaf(value, kind, problems, path)


def _has_known_member(table: Any) -> bool:
    """Whether the members of a table have a known type: a table, or text."""
    member = _bare(get_args(table)[1])
    return member is str or _is_struct(member)


def _check_table(value: Any, shape: Any, problems: Problems, path: KeyPath) -> None:
    if not isinstance(value, dict):
        problems.add(path, f"must be a table, not {_kind_in_words(value)}")
        return
    fields = {field.encode_name: field for field in _fields(shape)}
    for key in value:
        if key not in fields and not problems.under((*path, key)):
            hint = nearest(key, fields) or f"known: {', '.join(sorted(fields))}"
            problems.add((*path, key), f"unknown key {key!r}", hint)
    for key, field in fields.items():
        if key in value:
            check_value(value[key], field.type, problems, (*path, key))
        elif field.required:
            problems.add(path, f"{key!r} is missing")


def _check_leaf(value: Any, kind: Any, problems: Problems, path: KeyPath) -> None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        bare = _bare(kind)
        if get_origin(bare) is Literal:
            known = [str(name) for name in get_args(bare)]
            hint = did_you_mean(value, known) if isinstance(value, str) else f"known: {', '.join(known)}"
            problems.add(path, f"{reprlib.repr(value)} is not one of them", hint)
        else:
            problems.add(path, _reworded(str(error), value))


def _member_for(value: Any, bare: Any) -> Any:
    """Return the only member of a union that a table or a list can match."""
    if get_origin(bare) not in (Union, types.UnionType):
        return None
    for member in get_args(bare):
        inner = _bare(member)
        if isinstance(value, dict) and _is_struct(inner):
            return member
        if isinstance(value, list) and get_origin(inner) is list:
            return member
    return None


def _reworded(message: str, value: Any) -> str:
    message = message.partition(" - at ")[0]
    if match := re.fullmatch(r"Expected `([\w| ]+)`, got `\w+`", message):
        wanted = " or ".join(_WORDS.get(name, name) for name in match[1].split(" | "))
        return f"must be {wanted}, not {_kind_in_words(value)}"
    if match := re.fullmatch(r"Expected `\w+` (>=|>|<=|<) ([\d.-]+)", message):
        words = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}
        return f"must be {words[match[1]]} {match[2].removesuffix('.0')}, not {reprlib.repr(value)}"
    if message.endswith("of length >= 1"):
        return "must not be empty"
    return message


def _kind_in_words(value: Any) -> str:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (str, "text"),
        (int, "a number"),
        (float, "a number"),
        (list, "a list"),
        (dict, "a table"),
    )
    return next((word for kind, word in kinds if isinstance(value, kind)), f"a {type(value).__name__}")


def _bare(kind: Any) -> Any:
    """Return a type without its annotations, UNSET and None; TOML has no null."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        given = [member for member in get_args(kind) if member not in (msgspec.UnsetType, types.NoneType)]
        if len(given) == 1:
            return _bare(given[0])
    return kind


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


@functools.cache
def _fields(shape: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(shape)


class FileContext(msgspec.Struct, frozen=True):
    """A decoded file, its place, and the problems found so far.

    Attributes:
        declared: every channel that the file declares, including invalid ones, so that a mistake in a channel
            is not reported again at each place that uses it.
        bound: the valid channels.
    """

    file: GraphFile
    directory: Path
    problems: Problems
    declared: tuple[str, ...]
    bound: Mapping[str, BoundChannel]

    def check_channel(self, path: toml.KeyPath, name: str) -> bool:
        """Add a problem at `path` unless `name` is a channel of the file."""
        if name not in self.declared:
            self.problems.unknown(path, "channel", name, self.declared)
        return name in self.declared

    def check_node(self, path: toml.KeyPath, name: str, also: Iterable[str] = ()) -> bool:
        """Add a problem at `path` unless `name` is a node of the file, or one of `also`."""
        known = (*self.steps, *also)
        if name not in known and name in self.file.nodes:
            group = self.member_of(name)
            self.problems.add(path, f"{name!r} runs in the parallel {group!r}", f"name {group!r} instead")
        elif name not in known:
            self.problems.unknown(path, "node", name, known)
        return name in known

    @property
    def steps(self) -> tuple[str, ...]:
        """Return the names of all nodes that edges may lead to, of every kind."""
        file = self.file
        names = (*file.nodes, *file.maps, *file.parallels, *file.subgraphs)
        return tuple(name for name in names if not self.member_of(name))

    def member_of(self, name: str) -> str:
        """Return the parallel that contains a node, "" if none does."""
        return next((group for group, table in self.file.parallels.items() if name in table.nodes), "")

    def readable(self, path: toml.KeyPath, given: str | list[str]) -> tuple[str, ...]:
        """Return `reads` for the engine; goal and constraints can always be read."""
        names = _listed(given)
        for name in names:
            if name != "*" and name not in RUN_INPUTS:
                self.check_channel(path, name.partition(".")[0])
        return tuple(name for name in names if name not in RUN_INPUTS)

    def writable(self, path: toml.KeyPath, given: str | list[str]) -> tuple[str, ...] | None:
        """Return `writes` for the engine: None for all."""
        names = _listed(given)
        for name in names:
            if name != "*":
                self.check_channel(path, name)
        return None if "*" in names else names


def _listed(given: str | list[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
