"""Shows the frames of a failure as lines: the place, the source around it, and the local variables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from hitl_tui.engine.log.outcomes import Frame, LocalValue
from hitl_tui.view.cells import cells
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.rows import continued, wrap_line
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, trusted, untrusted

_NAME: Final = 60
_CODE: Final = 200
_VALUE: Final = 260
_BETWEEN: Final = "    "
_NARROW: Final = 32


def innermost(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the user's code."""
    return next((frame for frame in reversed(frames) if frame.file), None)


def frame_lines(
    frames: Sequence[Frame], width: int = 78, glyphs: Glyphs = UNICODE, *, height: int = 0
) -> tuple[Line, ...]:
    """Return lines of the frames, the innermost first and with its source; of the others only one line.

    score.py:41 in score(state, config)
      39 │     number = re.search(r"[\\d.]+", reply)
    → 41 │     return {"score": float(number[0])}
    reply = 'n/a'    number = None

    Args:
        width: the width of the rows in which local variables are placed side by side.
        height: the height of the pane that the source should fill without scrolling; 0 for just a few
            lines of source.
    """
    lines: list[Line] = []
    last = innermost(frames)
    for frame in reversed(frames):
        if frame.file:
            lines += [()] if lines else []
            lines.append(_head(frame))
            lines += _source(frame, width, glyphs, height if frame is last else None)
            lines += _value_rows(frame.values, width)
        else:
            many = "frame" if frame.count == 1 else "frames"
            lines.append(
                (trusted(f"{frame.count} {many} of ", "dim"), untrusted(frame.library, "dim", _NAME))
            )
    return tuple(lines)


def code_lines(frames: Sequence[Frame], width: int, room: int) -> tuple[Line, ...]:
    """Return the source of functions, one below the other; the last one is cut to the room."""
    rows: list[Line] = []
    for frame in frames:
        rows += [()] if rows else []
        rows.append((trusted("── ", "dim"), *_head(frame)))
        last = len(str(frame.first + len(frame.lines) - 1))
        for number, text in enumerate(frame.lines, frame.first):
            lead = f"{number:>{last}} {UNICODE.down} "
            for part in wrap_line(sanitise_line(text, _CODE), max(width - len(lead), _NARROW)):
                rows.append((trusted(lead, "dim"), Span(part)))
                lead = continued(lead)
    if len(rows) <= room:
        return tuple(rows)
    left_out = len(rows) - room + 1
    return (*rows[: max(room - 1, 0)], (trusted(f"{left_out} more rows", "dim"),))


def _head(frame: Frame) -> Line:
    if not frame.function:
        return (untrusted(os.path.basename(frame.file), "dim", _NAME),)
    name, rest = frame.function.partition("(")[0], "".join(frame.function.partition("(")[1:])
    return (
        untrusted(f"{os.path.basename(frame.file)}:{frame.line}", "dim", _NAME),
        trusted(" in ", "dim"),
        untrusted(name, "title", _NAME),
        untrusted(rest, "dim", _NAME),
    )


def _source(frame: Frame, width: int, glyphs: Glyphs, height: int | None) -> list[Line]:
    """Return the source around a frame; `height` as for `frame_lines`, None for its own line alone."""
    before, after = (0, 0) if height is None else (3, 2)
    if height:
        room = height - 2 - len(_value_rows(frame.values, width))
        if room < before + after:  # the line itself must stay visible
            before, after = min(before, max(height - 2, 0)), 0
        else:
            after = max(after, room * 2 // 5)
            before = max(before, room - 1 - after)
    first, last = frame.first, frame.first + len(frame.lines) - 1
    rows: list[Line] = []
    for number in range(max(first, frame.line - before), min(last, frame.line + after) + 1):
        at = number == frame.line
        lead = f"{glyphs.arrow if at else ' '} {number:>{len(str(last))}} {glyphs.down} "
        longest = max(width - len(lead), _NARROW) if height else _CODE
        code = untrusted(frame.lines[number - first], "title" if at else "plain", longest)
        rows.append((trusted(lead, "warning" if at else "dim"), code))
    return rows


def _value_rows(values: Sequence[LocalValue], width: int) -> list[Line]:
    """Return local variables with their values, as many side by side as fit."""
    rows: list[Line] = []
    row: tuple[Span, ...] = ()
    used = 0
    for value in values:
        name, text = sanitise_line(value.name, _NAME), sanitise_line(value.text, _VALUE)
        role: Role = "private" if value.text == "[private]" else "value"
        own = (Span(name, "name"), Span(" = ", "dim"), Span(text, role))
        size = cells(name) + 3 + cells(text)
        if row and (used + len(_BETWEEN) + size > width or size > _NARROW):
            rows, row, used = [*rows, row], (), 0
        row, used = (*row, *((Span(_BETWEEN),) if row else ()), *own), used + size + len(_BETWEEN)
    return [*rows, row] if row else rows
