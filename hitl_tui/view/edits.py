"""Describes what an edit would do: where it leads as each node, and which requests it withdraws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hitl_tui.engine.log.events import AsNode
from hitl_tui.engine.log.records import END
from hitl_tui.view.sanitise import sanitise_line

_NAME: Final = 60
_WHY: Final = 200


def as_node_lines(edits: Iterable[AsNode]) -> list[str]:
    """Return a line for each node that an edit can be made as, with the next nodes."""
    return [f"as {sanitise_line(edit.node, _NAME)}: {_destinations(edit)}" for edit in edits]


def _destinations(edit: AsNode) -> str:
    if edit.problem:
        return sanitise_line(edit.problem, _WHY)
    names = ", ".join(sanitise_line(name, _NAME) for name in edit.next_nodes)
    return f"{names or END} is next" if len(edit.next_nodes) < 2 else f"{names} are next"


def withdrawn_lines(titles: Sequence[str], next_node: str | None) -> list[str]:
    """Return lines about the requests that an edit withdraws.

    Args:
        next_node: the node that the edit leads to.
    """
    if next_node == END:
        lines = [f"withdrawn: {sanitise_line(title, _WHY)}" for title in titles]
        return [*lines, "The edit ends the thread: nobody is asked again."] if lines else []
    lines = [f"withdrawn; the graph must ask again: {sanitise_line(title, _WHY)}" for title in titles]
    return [*lines, "The next step asks; nothing is answered before that."] if lines else []
