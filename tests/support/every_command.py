"""A command of each kind, with every field set to something else than its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import msgspec

from hitl_tui.engine.commands import Command
from hitl_tui.engine.commands.command import DoubleTexting
from hitl_tui.engine.thread.agent_settings import Settings
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.engine.thread.comments import Comment

VALUES: dict[Any, Any] = {
    DoubleTexting: "interrupt",
    str: "a\x1b[2J ü",
    str | None: "ann",
    int: 7,
    int | None: 7,
    float: 2.5,
    float | None: 1.5,
    bool: True,
    bytes: bytes(range(32)),
    Any: {"deep": [1, 2.5, None, "x", 2**70]},
    tuple[str, ...]: ("one", "two"),
    Mapping[str, str]: {"node": "n > 1"},
    Mapping[str, int]: {"tone": 4},
    Mapping[str, Any]: {"draft": "x", "list": [1, {"a": None}]},
    Mapping[str, Any] | None: {"draft": "x"},
    Mapping[str, int | float | str | None]: {"max_iterations": 3, "max_seconds": 1.5, "max_cost_usd": None},
    tuple[Breakpoint, ...]: (Breakpoint("after", "node", "n > 1", 2, "n={n}"),),
    tuple[Comment, ...]: (Comment("a jar", "keep one image", "draft", 3),),
    Settings: {"worker": {"model": "demo/x", "temperature": None}},
    Settings | None: {"worker": {"temperature": 0}},
}
"""A value for each type of a field, other than its default."""

NAMES: dict[str, Any] = {"new_thread_id": "a ü"}
"""Values of fields that take less than their types allow."""


def with_every_field_set(kind: type[Command[Any]]) -> Any:
    """A command of this kind; a field of a type that nobody thought of fails here."""
    hints = get_type_hints(kind)
    fields = (field.name for field in msgspec.structs.fields(kind))
    return kind(**{name: NAMES[name] if name in NAMES else VALUES[hints[name]] for name in fields})
