"""Checks an edit, and describes what it would do: where it leads, and which requests it withdraws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import UpdateState
from hitl_tui.engine.log.events import EDIT, AsNode
from hitl_tui.engine.log.records import END
from hitl_tui.errors import UsageError
from hitl_tui.view.sanitise import sanitise_line

_NAME: Final = 60
_WHY: Final = 200


async def check_edit(driver: Driver, changes: Mapping[str, Any], step: int, as_node: str | None) -> list[str]:
    """Return lines about the requests that an edit withdraws.

    Raises:
        UsageError: the edit can't be made; lists every problem.
    """
    if not changes or step < 0:
        return []
    preview = await driver.preview(UpdateState(changes, step, as_node))
    if preview.problems:
        problems = [": ".join(filter(None, problem)) for problem in preview.problems.items()]
        destinations = as_node_lines(preview.as_nodes) if EDIT in preview.problems else []
        raise UsageError("\n".join([*problems, *destinations]), "nothing was stored")
    return withdrawn_lines(preview.withdraws, preview.next_node)


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
