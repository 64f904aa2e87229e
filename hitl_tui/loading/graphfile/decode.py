"""Strict decoding, key by key, so that one run finds everything that is wrong."""

from __future__ import annotations

import functools
import re
import reprlib
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from hitl_tui.loading.graphfile.problems import Problems
from hitl_tui.loading.positions import Path
from hitl_tui.suggest import did_you_mean, nearest

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


def check_value(value: Any, kind: Any, problems: Problems, path: Path) -> None:
    """Note everything of a value that doesn't fit a type."""
    bare = _bare(kind)
    if _is_struct(bare):
        _check_table(value, bare, problems, path)
    elif get_origin(bare) in (dict, Mapping) and isinstance(value, dict) and _told_by_member(bare):
        for key, member in value.items():
            check_value(member, get_args(bare)[1], problems, (*path, key))
    elif get_origin(bare) is list and isinstance(value, list):
        for number, member in enumerate(value):
            check_value(member, get_args(bare)[0], problems, (*path, number))
    elif (member := _member_for(value, bare)) is not None:
        check_value(value, member, problems, path)
    else:
        _check_leaf(value, kind, problems, path)


def _told_by_member(table: Any) -> bool:
    """Whether what a member of a table must be is known: a table itself, or text."""
    member = _bare(get_args(table)[1])
    return member is str or _is_struct(member)


def _check_table(value: Any, shape: Any, problems: Problems, path: Path) -> None:
    if not isinstance(value, dict):
        problems.add(path, f"must be a table, not {_found(value)}")
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


def _check_leaf(value: Any, kind: Any, problems: Problems, path: Path) -> None:
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
        return f"must be {wanted}, not {_found(value)}"
    if match := re.fullmatch(r"Expected `\w+` (>=|>|<=|<) ([\d.-]+)", message):
        words = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}
        return f"must be {words[match[1]]} {match[2].removesuffix('.0')}, not {reprlib.repr(value)}"
    if message.endswith("of length >= 1"):
        return "must not be empty"
    return message


def _found(value: Any) -> str:
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
