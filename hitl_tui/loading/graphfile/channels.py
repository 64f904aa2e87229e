"""Builds the channels of a graph file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import UNSET

from hitl_tui.engine.state.channel import BoundChannel, Channel, DefaultRejected, bind
from hitl_tui.engine.state.reducers import Reducer
from hitl_tui.engine.state.schema import TYPE_WORDS
from hitl_tui.errors import GraphInvalid, UsageError
from hitl_tui.given_files import read_given, text_of
from hitl_tui.loading import toml
from hitl_tui.loading.graphfile.decode import Problems
from hitl_tui.loading.graphfile.functions import find_file, find_reducer
from hitl_tui.loading.graphfile.shape import ChannelTable

_LIST_NEEDS = (
    "it starts as a list and has no reducer",
    'say reducer = "append" to collect single values, "extend" to add lists, "overwrite" to replace the list',
)
_START_NEEDS = (
    "it has no value to start with",
    "say default = 0, or unset = true to take the first update as it is",
)


def build_channels(
    tables: dict[str, ChannelTable], directory: Path, problems: Problems
) -> tuple[dict[str, Channel], dict[str, BoundChannel]]:
    """Return the valid channels, as declared and as bound."""
    channels: dict[str, Channel] = {}
    bound: dict[str, BoundChannel] = {}
    for name, table in tables.items():
        path: toml.KeyPath = ("channels", name)
        before = len(problems)
        with problems.at(path):
            bind({name: Channel()})
        reducer = _reducer(table, directory, problems, (*path, "reducer"))
        schema = _schema(table.schema, directory, problems, (*path, "schema"))
        default = _default(table, reducer, problems, path)
        if len(problems) > before:
            continue
        channel = Channel(
            *(() if default is UNSET else (default,)),
            reducer=reducer,
            schema=schema,
            visibility=table.visibility,
            description=table.description,
        )
        try:
            bound |= bind({name: channel})
            channels[name] = channel
        except DefaultRejected as error:
            problems.add((*path, "default"), error.message, error.hint)
        except GraphInvalid as error:
            problems.add((*path, "schema"), error.message, error.hint)
    return channels, bound


def _reducer(table: ChannelTable, directory: Path, problems: Problems, path: toml.KeyPath) -> Reducer | None:
    if not table.reducer:
        return None
    with problems.at(path):
        return find_reducer(table.reducer, directory)
    return None


def _default(table: ChannelTable, reducer: Reducer | None, problems: Problems, path: toml.KeyPath) -> Any:
    """Return the default value, UNSET for the reducer's default."""
    given = [value for value in (table.default, table.initial) if value is not UNSET]
    if len(given) + table.unset > 1:
        problems.add(path, "it takes one of default, initial and unset", "they all say how it starts")
        return UNSET
    if table.unset:
        return None
    if given and isinstance(given[0], list) and not table.reducer:
        problems.add(path, *_LIST_NEEDS)
    if not given and reducer is not None and reducer.text in ("min", "max"):
        problems.add(path, *_START_NEEDS)
    return given[0] if given else UNSET


def _schema(
    given: str | dict[str, Any], directory: Path, problems: Problems, path: toml.KeyPath
) -> dict[str, Any]:
    if not isinstance(given, str):
        return given
    with problems.at(path):
        return _read_schema(given, directory)
    return {}


def _read_schema(name: str, directory: Path) -> dict[str, Any]:
    if word := TYPE_WORDS.get(name.lower(), name if name in TYPE_WORDS.values() else ""):
        raise UsageError(f"{name!r} is not a file", f'write a table, as {{ type = "{word}" }}')
    file = find_file(name, directory)
    try:
        schema = json.loads(text_of(read_given(file)))
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} isn't JSON: {error}", "a schema is a JSON object") from None
    if not isinstance(schema, dict):
        raise UsageError(f"{file} holds no JSON object", "a schema is a JSON object")
    return schema
