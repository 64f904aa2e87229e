"""Finds the last writer of each line, key or item of a channel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.units import about
from hitl_tui.view.diff import opcodes
from hitl_tui.view.format import inline, kind, writer
from hitl_tui.view.sanitise import sanitise, sanitise_line

_WIDE: Final = 240


class BlameLine(msgspec.Struct, frozen=True):
    """A line (of a text), key (of an object) or item (of a list) and who wrote it last; sanitised."""

    step: Annotated[int, about("The step.")]
    who: Annotated[str, about("The node or person.")]
    text: Annotated[str, about("The line, key or item.")]


def blame(versions: Sequence[tuple[Checkpoint, Any]]) -> tuple[BlameLine, ...]:
    """Return the last writers in the newest of a channel's versions, given oldest first."""
    if not versions:
        return ()
    newest = versions[-1][1]
    what = kind(newest)
    if what == "text":
        texts = [value.split("\n") if isinstance(value, str) else [] for _, value in versions]
        return _lines(versions, texts, [sanitise(line) for line in texts[-1]])
    if what == "list":
        known: dict[int, str] = {}
        items = [_tokens(value, known) for _, value in versions]
        return _lines(versions, items, [inline(item, _WIDE) for item in newest])
    if what == "object":
        return _keys(versions)
    return _whole(versions)


def _line(checkpoint: Checkpoint, text: str) -> BlameLine:
    return BlameLine(checkpoint.step, writer(checkpoint), text)


def _tokens(value: Any, known: dict[int, str]) -> list[str]:
    """Convert items to a form that can be compared and hashed.

    Args:
        known: forms of items in other versions, by identity: versions of a long list share most of them.
    """
    if not isinstance(value, list | tuple):
        return []
    return [known.get(id(item)) or known.setdefault(id(item), _token(item)) for item in value]


def _token(item: Any) -> str:
    return json.dumps(item, sort_keys=True, default=repr)


def _lines(
    versions: Sequence[tuple[Checkpoint, Any]], rows: Sequence[Sequence[str]], shown: Sequence[str]
) -> tuple[BlameLine, ...]:
    """Track the writer of each row through the versions; new rows belong to the version's writer."""
    owners: list[int] = []
    before: Sequence[str] = []
    for at, after in enumerate(rows):
        kept: list[int] = []
        for equal, old, old_end, new, new_end in opcodes(before, after):
            kept += owners[old:old_end] if equal else [at] * (new_end - new)
        owners, before = kept, after
    return tuple(_line(versions[owner][0], text) for owner, text in zip(owners, shown, strict=True))


def _keys(versions: Sequence[tuple[Checkpoint, Any]]) -> tuple[BlameLine, ...]:
    owners: dict[str, Checkpoint] = {}
    before: Mapping[str, Any] = {}
    for checkpoint, value in versions:
        after = value if isinstance(value, Mapping) else {}
        for key in after:
            if key not in before or _token(before[key]) != _token(after[key]):
                owners[key] = checkpoint
        before = after
    return tuple(
        _line(owners[key], f"{sanitise_line(str(key), 64)}: {inline(value, _WIDE)}")
        for key, value in before.items()
    )


def _whole(versions: Sequence[tuple[Checkpoint, Any]]) -> tuple[BlameLine, ...]:
    """Return the last step that changed the value."""
    newest = versions[-1][1]
    first = versions[-1][0]
    for checkpoint, value in reversed(versions):
        if _token(value) != _token(newest):
            break
        first = checkpoint
    return (_line(first, inline(newest, _WIDE)),)
