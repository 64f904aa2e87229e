"""Watches: expressions that are kept for a graph and shown at every step with their history."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from hitl_tui.drivers.expressions import Expression, ExpressionInvalid, ExpressionUndefined, check_expression
from hitl_tui.drivers.history import Sample
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.format import preview_line
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, trusted, untrusted
from hitl_tui.view.step_view import StepView
from hitl_tui.view.strips import strip

MOST: Final = 20
"""Most watches of a graph."""
_NAME, _VALUE, _NARROWEST = 28, 24, 8

Kept = dict[str, tuple[str, ...]]


class WatchedValue(msgspec.Struct, frozen=True):
    """An expression's value at a step, or why it has none, and whether the step changed it."""

    text: str
    mark: Literal["≠", " "]
    value: Any = None
    why: str = ""


def watch(text: str, step: StepView, channels: Sequence[ChannelInfo]) -> WatchedValue:
    """Evaluate an expression at a step; a failure is part of the result."""
    try:
        check_expression(text, channels)
        expression = Expression(text)
    except ExpressionInvalid as error:
        return WatchedValue(text, " ", why=error.why)
    public = {name: value for name, value in step.values.items() if value is not PRIVATE}
    before = dict(public)
    for update in reversed(step.updates):
        if update.channel in public:
            before[update.channel] = update.before
    try:
        value = expression.value(public)
    except ExpressionUndefined as error:
        return WatchedValue(text, " ", why=error.message)
    return WatchedValue(text, " " if before == public or _same(expression, before, value) else "≠", value)


def _same(expression: Expression, before: Mapping[str, Any], value: Any) -> bool:
    try:
        return bool(expression.value(before) == value)
    except ExpressionUndefined:
        return False


def watch_line(shown: WatchedValue, samples: Sequence[Sample], columns: tuple[int, int], width: int) -> Line:
    """Return a row: whether it changed, the expression, its value, its history as a strip.

    Args:
        columns: the width of the expression and of the value; see `watch_columns`.
    """
    names, values = columns
    mark = trusted(f"{shown.mark} ", "warning")
    name = untrusted(shown.text, "name" if shown.mark != " " else "plain", names)
    gap = trusted(" " * (names - cells(name.text) + 2))
    if shown.why:
        return (mark, name, gap, trusted(sanitise_line(shown.why, max(width - names - 4, 10)), "warning"))
    value = _value(shown.value, values)
    room = width - names - values - 6
    pad = trusted(" " * (values - sum(cells(span.text) for span in value) + 2))
    return (mark, name, gap, *value, pad, *(strip(samples, room) if room >= _NARROWEST else ()))


def watch_columns(watches: Sequence[WatchedValue]) -> tuple[int, int]:
    """Return the widths of the expressions and the values in cells."""
    names = max((cells(sanitise_line(shown.text, _NAME)) for shown in watches), default=0)
    lines = [_value(shown.value, _VALUE) for shown in watches if not shown.why]
    values = [sum(cells(span.text) for span in line) for line in lines]
    return names, max(values, default=0)


def _value(value: Any, room: int) -> Line:
    spans: list[Span] = []
    for span in preview_line(value, room):
        text = cut(span.text, room)
        room -= cells(text)
        spans.append(trusted(text, "error" if value is None else span.role))
    return tuple(spans)


def read_watches(file: Path) -> Kept:
    """Return the watches of each graph by its name; none if the file can't be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Kept)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def keep_watches(file: Path, graph: str, texts: Sequence[str]) -> None:
    """Save the watches of a graph beside those of the others.

    Raises:
        OSError: the file can't be written.
    """
    kept = read_watches(file)
    kept[graph] = tuple(texts)
    if not texts:
        del kept[graph]
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_bytes(msgspec.json.encode(kept))
    new.replace(file)
