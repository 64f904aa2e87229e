"""A tool's call on one line: what was called with what, what came of it, and how long it took."""

from __future__ import annotations

import json
from typing import Any, Final

from hitl_tui.engine.events import ToolCalled
from hitl_tui.engine.values import thaw
from hitl_tui.view.format import duration, inline
from hitl_tui.view.sanitise import sanitise_line

_NAME: Final = 64
_ARGUMENTS: Final = 200
_RESULT: Final = 240


def tool_line(event: ToolCalled) -> str:
    """As in `tool weather {"city": "Graz"} -> “sunny” (0.3 s)`; sanitised, whatever a model wrote."""
    call = f"tool {sanitise_line(event.tool, _NAME)} {_arguments(event.arguments)}"
    took = f" ({duration(event.duration)})" if event.duration else ""
    if event.error is not None:
        return f"{call} failed: {sanitise_line(event.error, _RESULT)}{took}"
    return f"{call} -> {inline(event.result, _RESULT)}{took}"


def _arguments(value: Any) -> str:
    """As the model wrote them, on one line."""
    if not isinstance(value, str):
        try:
            value = json.dumps(thaw(value), ensure_ascii=False)
        except (TypeError, ValueError):
            return inline(value, _ARGUMENTS)
    return sanitise_line(value, _ARGUMENTS)
