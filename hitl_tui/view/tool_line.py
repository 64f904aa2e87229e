"""Calls of tools: what was called with what, what came of it, and how long it took."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from hitl_tui.engine.channels.values import thaw
from hitl_tui.engine.log.events import ToolCalled
from hitl_tui.engine.log.outcomes import ToolUse
from hitl_tui.view.format import duration, inline
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, trusted, untrusted

_NAME: Final = 64
_ARGUMENTS: Final = 200
_RESULT: Final = 240
_SHORT: Final = 100_000


def tool_line(event: ToolCalled) -> str:
    """As in `tool weather {"city": "Graz"} -> “sunny” (0.3 s)`; sanitised, whatever a model wrote."""
    call = f"tool {sanitise_line(event.tool, _NAME)} {_arguments(event.arguments)}"
    took = f" ({_took(event.duration)})" if event.duration else ""
    if event.error is not None:
        return f"{call} failed: {sanitise_line(event.error, _RESULT)}{took}"
    return f"{call} -> {inline(event.result, _RESULT)}{took}"


def call_lines(calls: Sequence[ToolUse], glyphs: Glyphs = UNICODE) -> tuple[Line, ...]:
    """The calls that a committed step made, each as a title with its arguments and its result below.

    writer called weather
      {"city": "Graz"}
      → 0.3 s  “sunny”
    """
    return tuple(line for call in calls for line in _lines_of(call, glyphs))


def _lines_of(call: ToolUse, glyphs: Glyphs) -> tuple[Line, ...]:
    where = (untrusted(call.path, "node", _NAME), trusted(" ")) if call.path else ()
    title: Line = (
        *where,
        untrusted(call.agent, "name", _NAME),
        trusted(" called ", "dim"),
        untrusted(call.tool, "name", _NAME),
        *((trusted(f"  attempt {call.attempt}", "dim"),) if call.attempt > 1 else ()),
    )
    took = f"{_took(call.duration)}  " if call.duration else ""
    came = trusted(f"  {glyphs.arrow} {took}", "dim")
    if call.error is not None:
        result: Line = (came, trusted("failed: ", "error"), untrusted(call.error, "error", _RESULT))
    else:
        result = (came, trusted(inline(call.result, _RESULT), "value"))
    return (title, (trusted("  "), trusted(_arguments(call.arguments), "value")), result)


def _took(us: int) -> str:
    return f"{us / 1000:.0f} ms" if us < _SHORT else duration(us)


def _arguments(value: Any) -> str:
    """As the model wrote them, on one line."""
    if not isinstance(value, str):
        try:
            value = json.dumps(thaw(value), ensure_ascii=False)
        except (TypeError, ValueError):
            return inline(value, _ARGUMENTS)
    return sanitise_line(value, _ARGUMENTS)
