"""Who made a step, in a word that a person knows."""

from __future__ import annotations

from typing import Final

from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.requests import DEADLINE_PASSED
from hitl_tui.view.sanitise import sanitise_line

HUMAN: Final = "you"
DEADLINE: Final = "the deadline"
_NAME_LIMIT: Final = 40


def writer(checkpoint: Checkpoint) -> str:
    """The node's name, the person's, or "input", "fork" and the like; sanitised, on one line."""
    if checkpoint.source == "human":
        return sanitise_line(person(checkpoint.actor, checkpoint.note), _NAME_LIMIT)
    if checkpoint.source == "rollback":
        return sanitise_line(f"undo {checkpoint.node.rpartition('>/')[2]}", _NAME_LIMIT)
    if checkpoint.source == "fork" and checkpoint.actor:
        return sanitise_line(checkpoint.actor, _NAME_LIMIT)
    if checkpoint.node:
        return sanitise_line(checkpoint.node, _NAME_LIMIT)
    return checkpoint.source


def person(actor: str | None, note: str | None) -> str:
    """Who decided or edited, as stored; a deadline's answer is nobody's."""
    return actor or (DEADLINE if note == DEADLINE_PASSED else HUMAN)
