"""Strict decoding of a graph file, key by key, so that one run finds everything that is wrong."""

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
    """One problem; `line` is None where it is about the file as a whole."""

    path: toml.KeyPath
    line: int | None
    message: str
    hint: str
    details: str


class Problems:
    """Collects the problems of a file, to be raised together as one error of a kind."""

    def __init__(self, file: TomlFile, kind: type[HitlError] = GraphInvalid) -> None:
        self._kind = kind
        self.name = shown_path(file.path)
        self._index = toml.line_index(file.text)
        self._found: list[FileProblem] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, path: toml.KeyPath, message: str, hint: str = "", details: str = "") -> None:
        """Note a problem of the key at `path`."""
        line = toml.line_of(self._index, path)
        self._found.append(FileProblem(path, line, message, hint, details))

    def unknown(self, path: toml.KeyPath, what: str, name: str, known: Iterable[str]) -> None:
        """Note that `name` is no `what` of the file."""
        self.add(path, f"there is no {what} {name!r}", did_you_mean(name, known))

    @contextmanager
    def at(self, path: toml.KeyPath) -> Iterator[None]:
        """Note an error that the block raises as a problem of the key at `path`."""
        try:
            yield
        except HitlError as error:
            self.add(path, error.message, error.hint, error.details)

    def under(self, path: toml.KeyPath) -> bool:
        """Whether something at `path` or inside of it is wrong."""
        return any(problem.path[: len(path)] == path for problem in self._found)

    def check(self) -> None:
        """Raise one error with every problem found so far, if there is any."""
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
    """A path as the file writes it: `[nodes.write] retry.wait`, `[[edges]] to`."""
    names = [part for part in path if isinstance(part, str)]
    if not names:
        return ""
    head = str(path[0])
    if head in _ARRAYS_OF_TABLES:
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
    """`values` as a `shape`; None where a problem is noted, whether here or before."""
    check_value(values, shape, problems, ())
    return None if len(problems) else msgspec.convert(values, shape)


def check_value(value: Any, kind: Any, problems: Problems, path: KeyPath) -> None:
    """Note everything of a value that doesn't fit a type."""
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
    """Whether what a member of a table must be is known: a table itself, or text."""
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
    """The one member of a union that a table or a list can only mean."""
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
    """A type without its annotations and the possibility of being left out; TOML has no null."""
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
    """A decoded file, where it lies, and the problems found so far.

    Attributes:
        declared: every channel the file names, those with problems included, so that one mistake
            in a channel is not reported again at each place that uses it.
        bound: the channels that are sound.
    """

    file: GraphFile
    directory: Path
    problems: Problems
    declared: tuple[str, ...]
    bound: Mapping[str, BoundChannel]

    def check_channel(self, path: toml.KeyPath, name: str) -> bool:
        """Note a problem at `path` unless `name` is a channel of the file."""
        if name not in self.declared:
            self.problems.unknown(path, "channel", name, self.declared)
        return name in self.declared

    def check_node(self, path: toml.KeyPath, name: str, also: Iterable[str] = ()) -> bool:
        """Note a problem at `path` unless `name` is a node of the file, or one of `also`."""
        known = (*self.steps, *also)
        if name not in known and name in self.file.nodes:
            group = self.member_of(name)
            self.problems.add(path, f"{name!r} runs in the parallel {group!r}", f"name {group!r} instead")
        elif name not in known:
            self.problems.unknown(path, "node", name, known)
        return name in known

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of all nodes that edges may lead to, whatever they are made of."""
        file = self.file
        names = (*file.nodes, *file.maps, *file.parallels, *file.subgraphs)
        return tuple(name for name in names if not self.member_of(name))

    def member_of(self, name: str) -> str:
        """The parallel that a node runs in, "" where it stands by itself."""
        return next((group for group, table in self.file.parallels.items() if name in table.nodes), "")

    def readable(self, path: toml.KeyPath, given: str | list[str]) -> tuple[str, ...]:
        """`reads` as the engine takes it; the run's own inputs can always be read."""
        names = _listed(given)
        for name in names:
            if name != "*" and name not in RUN_INPUTS:
                self.check_channel(path, name.partition(".")[0])
        return tuple(name for name in names if name not in RUN_INPUTS)

    def writable(self, path: toml.KeyPath, given: str | list[str]) -> tuple[str, ...] | None:
        """`writes` as the engine takes it: None for all."""
        names = _listed(given)
        for name in names:
            if name != "*":
                self.check_channel(path, name)
        return None if "*" in names else names


def _listed(given: str | list[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
