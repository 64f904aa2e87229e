"""Where one can look inside: the branches of a step, or the thread of a subgraph's run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.threads import Owner
from hitl_tui.view.run_view import RunView
from hitl_tui.view.sanitise import sanitise_line

_NAME = 60


@dataclass(frozen=True, slots=True)
class InsidePlace:
    """What can be opened at a node.

    Args:
        node: the map, parallel or subgraph.
        step: the step it is, or will be, committed as.
        thread: the thread of the subgraph's run, "" where there are branches.
        point: the committed step, None while the node runs or waits.
    """

    node: str
    step: int
    thread: str = ""
    point: Checkpoint | None = None


def place_inside(view: RunView, shown: Checkpoint | None = None, node: str = "") -> InsidePlace | None:
    """What there is to open; None for nothing.

    Args:
        shown: the step that the panes show where that isn't the newest: only that one counts.
        node: only runs of this node count, the newest first.
    """
    if shown is not None and not node:
        return _committed(shown)
    return _going_on(view, node) or next(
        (
            place
            for point in reversed(view.checkpoints)
            if point.branches and node in ("", point.node) and (place := _committed(point))
        ),
        None,
    )


def _going_on(view: RunView, node: str) -> InsidePlace | None:
    """The inside of a node that runs or waits."""
    inside = view.inside
    if not inside.node or node not in ("", inside.node) or inside.step != view.progress.head + 1:
        return None
    if inside.child is not None:
        return InsidePlace(inside.node, inside.step, inside.child.thread_id)
    return InsidePlace(inside.node, inside.step) if inside.branches else None


def _committed(point: Checkpoint) -> InsidePlace | None:
    if not point.branches:
        return None
    thread = next((one.thread for one in point.branches if one.thread), "")
    return InsidePlace(point.node, point.step, thread, point)


def crumbs(thread_id: str, owners: Sequence[Owner]) -> str:
    """The way to a thread, as in `report › team#1 › desk#1`; sanitised."""
    names = [*(one.thread_id for one in owners), thread_id]
    shown = [names[0]]
    for outer, name in pairwise(names):
        # A long name is shortened in its middle, so that it does not begin with the one around it.
        inside = name.startswith(f"{outer}/")
        shown.append(name.removeprefix(f"{outer}/") if inside else name.rpartition("/")[2])
    return " › ".join(sanitise_line(name, _NAME) for name in shown)
