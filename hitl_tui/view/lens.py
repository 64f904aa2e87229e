"""The reducer lens: for each update of a step the old value, the update, the reducer, the new value."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.engine.events import AppliedUpdate
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.spans import Line


def lens(updates: Sequence[AppliedUpdate], glyphs: Glyphs = UNICODE) -> tuple[Line, ...]:
    """Lines for all updates of a step: a title each, its facts indented below."""
    raise NotImplementedError
