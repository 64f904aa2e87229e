"""The reducer lens: shows old value, update, reducer and new value for each update of a step.

messages  append
  list 3 + “revise: Use a concrete…”
  → list 4
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Final

from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.records import Checkpoint, tool_of
from hitl_tui.engine.state.reducers import logged_reducer
from hitl_tui.view.format import (
    PRIVATE_TEXT,
    REPLACED,
    count,
    inline,
    is_set_by_person,
    kind,
    person,
    size,
    writer,
)
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.leaves import ABSENT, changed_leaves, changed_words, has_leaves, leaf_line, leaf_lines
from hitl_tui.view.spans import Line, Role, Span, trusted, untrusted
from hitl_tui.view.taint import taint_remark

_INDENT: Final = trusted("  ")
_WIDE: Final = 160
_SHORT: Final = 30
_LONG_TEXT: Final = 160
_LEAVES: Final = 8
"""Most lines for changed parts of a value."""
_ADDS: Final = frozenset({"element", "members", "merge", "sum"})


def step_title(point: Checkpoint) -> Line:
    """Return a step's number and writer, as the title above its changes."""
    return (Span(f"step {point.step}  ", "dim"), untrusted(writer(point), "node"))


def lens(updates: Sequence[AppliedUpdate], glyphs: Glyphs = UNICODE) -> tuple[Line, ...]:
    """Return lines for all updates of a step: a title each, with details indented below."""
    return tuple([line for update in updates for line in update_lines(update, glyphs)])


def update_lines(update: AppliedUpdate, glyphs: Glyphs = UNICODE) -> tuple[Line, ...]:
    """Return how the lens shows an update: old value, update, reducer, new value."""
    if is_set_by_person(update):
        how = _set_by(update)
    else:
        how = _reduced_by(REPLACED if update.op == "set" else update.reducer, update.path)
    title = (untrusted(update.channel, "name"), _INDENT, *how, *taint_remark(update, glyphs))
    if update.visibility == "private" or update.before is PRIVATE or update.after is PRIVATE:
        facts: list[Line] = [(_INDENT, trusted(PRIVATE_TEXT, "private"))]
    elif update.op == "set":
        facts = _replaced(update, glyphs)
    else:
        facts = _reduced(update, glyphs)
    if update.note and update.op == "set":
        facts.append((_INDENT, trusted("note  ", "dim"), untrusted(update.note, "human", _WIDE)))
    return (title, *facts)


def _set_by(update: AppliedUpdate) -> tuple[Span, ...]:
    return trusted("set by ", "human"), untrusted(person(update.actor, update.made_by), "human", 40)


@lru_cache(maxsize=256)  # each step of a loop would repeat it
def _reduced_by(reducer: str, path: str) -> tuple[Span, ...]:
    tool = tool_of(path)
    by = (trusted("  by ", "dim"), untrusted(f"{tool}()", "node", _SHORT)) if tool else ()
    return (untrusted(reducer, "dim", 40), *by)


def _reduced(update: AppliedUpdate, glyphs: Glyphs) -> list[Line]:
    reducer = logged_reducer(update.reducer)
    way = reducer.kind if reducer else "custom"
    if way == "replace":
        return _replaced(update, glyphs)
    if way == "extreme":
        call = f"{update.reducer}({inline(update.before, _SHORT)}, {inline(update.update, _SHORT)})"
        return [(_INDENT, trusted(call, "value"), _between(glyphs.arrow), *_result(update))]
    old = trusted(_shape(update.before), "dim")
    new = trusted(inline(update.update, _WIDE), "added")
    if way in _ADDS:
        if kind(update.after) == "number":
            return [(_INDENT, old, trusted(" + ", "dim"), new, _between(glyphs.arrow), *_result(update))]
        change = (_INDENT, old, trusted(" + ", "dim"), new)
        return [change, *_overwritten(update, glyphs), _arrow_line(update, glyphs)]
    return [
        (_INDENT, trusted("old ", "dim"), trusted(inline(update.before, _WIDE), "removed")),
        (_INDENT, trusted("update ", "dim"), trusted(inline(update.update, _WIDE), "value")),
        *_overwritten(update, glyphs),
        _arrow_line(update, glyphs),
    ]


def _overwritten(update: AppliedUpdate, glyphs: Glyphs) -> list[Line]:
    """Return the changed and removed members of an object that keeps most of them."""
    if kind(update.before) != "object" or not has_leaves(update.before, update.after):
        return []
    leaves = changed_leaves(update.before, update.after, _LEAVES).first
    return [(_INDENT, *leaf_line(leaf, glyphs)) for leaf in leaves if leaf.before is not ABSENT]


@cache
def _between(arrow: str) -> Span:
    return trusted(f" {arrow} ", "dim")


@cache
def _before(arrow: str) -> Span:
    return trusted(f"{arrow} ", "dim")


def _arrow_line(update: AppliedUpdate, glyphs: Glyphs) -> Line:
    return (_INDENT, _before(glyphs.arrow), *_result(update))


def _result(update: AppliedUpdate) -> tuple[Span, ...]:
    """Return the new value with a remark."""
    role: Role = "added" if update.changed else "value"
    return (trusted(_shape(update.after), role), *_remark(update))


def _remark(update: AppliedUpdate) -> tuple[Span, ...]:
    if not update.changed:
        return (trusted("  same value", "dim"),)
    reducer = logged_reducer(update.reducer)
    full = reducer and reducer.window and kind(update.before) == "list" == kind(update.after)
    lost = len(update.before) + 1 - len(update.after) if full else 0
    return (trusted(f"  oldest {lost} dropped", "dim"),) if lost > 0 else ()


def _shape(value: Any) -> str:
    """Return the size of a value that has one, else the value."""
    return inline(value, _SHORT) if kind(value) == "text" else size(value) or inline(value, _SHORT)


def _replaced(update: AppliedUpdate, glyphs: Glyphs) -> list[Line]:
    before, after = update.before, update.after
    if not update.changed:
        return [(*_one_line(before, after, glyphs, "value", "value"), trusted("  same value", "dim"))]
    if _is_short(before) and _is_short(after) and not has_leaves(before, after):
        return [_one_line(before, after, glyphs, "removed", "added")]
    if kind(before) == kind(after) == "text" and max(len(before), len(after)) > _LONG_TEXT:
        from hitl_tui.view.diff import changed_lines

        change = count(changed_lines(before, after), "line")
        sizes = f"text {len(before)} {glyphs.arrow} {len(after)}, {change} changed"
        reworded = changed_words(before, after)
        return [
            (_INDENT, trusted(sizes, "dim")),
            (_INDENT, *reworded) if reworded else _new_line(after, glyphs),
        ]
    if has_leaves(before, after):
        return [(_INDENT, *line) for line in leaf_lines(before, after, _LEAVES, glyphs)]
    # Shorter texts are shown whole, before and after: a run in plain text mode has thousands.
    return [(_INDENT, trusted(inline(before, _WIDE), "removed")), _new_line(after, glyphs)]


def _is_short(value: Any) -> bool:
    return kind(value) != "text" or (len(value) <= _SHORT // 2 and "\n" not in value)


def _one_line(before: Any, after: Any, glyphs: Glyphs, old: Role, new: Role) -> Line:
    return (
        _INDENT,
        trusted(inline(before, _SHORT), old),
        _between(glyphs.arrow),
        trusted(inline(after, _SHORT), new),
    )


def _new_line(value: Any, glyphs: Glyphs) -> Line:
    return (_INDENT, _before(glyphs.arrow), trusted(inline(value, _WIDE), "added"))
