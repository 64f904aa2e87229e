"""One step in the timeline: a glyph, a label and, at the head of a line, what became of the line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.view.branches import Branch
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.glyphs import Glyphs
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Role
from hitl_tui.view.writer import HUMAN, writer

_LABEL: Final = 18


@dataclass(frozen=True, slots=True)
class StepCell:
    """A step as drawn; texts are sanitised and short."""

    glyph: str
    glyph_role: Role
    label: str
    label_role: Role = "plain"
    tail: str = ""
    tail_role: Role = "dim"

    @property
    def width(self) -> int:
        """The cells it takes, a blank between its parts."""
        return sum(1 + cells(part) for part in (self.glyph, self.label, self.tail) if part) - 1


def step_cell(branch: Branch, step: int, is_open: bool, glyphs: Glyphs) -> StepCell:
    """The cell of a step; `is_open` says that the line is that of the open thread."""
    checkpoint = branch.find(step)
    glyph, role = _glyph(checkpoint, glyphs)
    label = _label(checkpoint, glyphs)
    if step != branch.head:
        return StepCell(glyph, role, label, "human" if role == "human" else "plain")
    tail, tail_role = _tail(branch, glyphs)
    if is_open:
        head_role = (
            "accent" if branch.status == "pending" else "ok" if branch.status == "running" else tail_role
        )
        return StepCell(glyphs.head, head_role, label, "title", tail, tail_role)
    return StepCell(glyph, role, label, "human" if role == "human" else "plain", tail, tail_role)


def _glyph(checkpoint: Checkpoint | None, glyphs: Glyphs) -> tuple[str, Role]:
    if checkpoint is None:
        return glyphs.dot, "dim"
    if checkpoint.source == "input":
        return glyphs.input, "ok"
    if checkpoint.decision is not None:
        return glyphs.done, "human"
    if checkpoint.source == "rollback":
        return glyphs.cancelled, "human"
    if checkpoint.source in ("human", "fork"):
        return glyphs.edit, "human"
    return glyphs.node, "ok"


def _label(checkpoint: Checkpoint | None, glyphs: Glyphs) -> str:
    if checkpoint is None:
        return glyphs.ellipsis
    label = writer(checkpoint)
    if checkpoint.decision is not None:
        label = f"{sanitise_line(checkpoint.decision, _LABEL)} by {label}"
    elif checkpoint.source == "human" or (checkpoint.source == "fork" and checkpoint.actor):
        label = f"by {label}"
    return cut(label, _LABEL, glyphs.ellipsis)


def _tail(branch: Branch, glyphs: Glyphs) -> tuple[str, Role]:
    node = cut(sanitise_line(branch.next_node, _LABEL), _LABEL, glyphs.ellipsis)
    match branch.status:
        case "completed":
            return f"{glyphs.done} end", "ok"
        case "waiting":
            paused = branch.reason in ("paused", "limit")
            return f"{glyphs.waiting} {branch.reason if paused else HUMAN}", "accent"
        case "failed":
            return " ".join(part for part in (glyphs.failed, node, "failed") if part), "error"
        case "cancelled":
            return f"{glyphs.cancelled} cancelled", "dim"
        case "running":
            return f"{glyphs.running} {node}".rstrip(), "node"
    return "", "dim"
