"""One step as the panes show it: channels with their marks, and the reducer lens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hitl_tui.engine.events import AppliedUpdate
from hitl_tui.engine.records import Checkpoint, Visibility
from hitl_tui.view.format import Kind
from hitl_tui.view.run_view import RunView
from hitl_tui.view.spans import Line

Mark = Literal["+", "≠", "=", "✎", " "]


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel at a step: what the step did to it (`mark`, `word`) and its value on one line.

    `changed_by` is who wrote it in this very step, "" where nobody did.
    """

    name: str
    mark: Mark
    word: str
    reducer: str
    kind: Kind
    preview: str
    value: Line
    visibility: Visibility
    changed_by: str


@dataclass(frozen=True, slots=True)
class StepView:
    """A step and everything the panes show of it; `checkpoint` is None before the first step."""

    step: int
    checkpoint: Checkpoint | None
    is_head: bool
    values: Mapping[str, Any]
    updates: tuple[AppliedUpdate, ...]
    rows: tuple[ChannelRow, ...]
    lens: tuple[Line, ...]


def head_step(view: RunView) -> StepView:
    """The newest step."""
    raise NotImplementedError


def past_step(
    view: RunView, checkpoint: Checkpoint, values: Mapping[str, Any], updates: Sequence[AppliedUpdate]
) -> StepView:
    """Any committed step, from what the driver says of it."""
    raise NotImplementedError
