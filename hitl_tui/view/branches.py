"""A family of threads as lines of steps: what the timeline lays out and what keys move along.

The open thread's line is the first, with the steps it shares with its ancestors.  Every other thread
is a line of its own steps below the line from which it goes off; lines that go off later come first,
so that the way down to a line never crosses another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hitl_tui.drivers.protocol import Relative
from hitl_tui.engine.log.records import Checkpoint, Status
from hitl_tui.view.run_view import RunView, find_step

Place = tuple[str, int]
Direction = Literal["left", "right", "up", "down"]


@dataclass(frozen=True, slots=True)
class Branch:
    """One line: the steps `start` to `head` of a thread, going off line `parent` at step `start - 1`.

    `sources` are where its checkpoints are looked up, each up to a step.
    """

    thread_id: str
    parent: int
    start: int
    head: int
    status: Status
    reason: str
    next_node: str
    sources: tuple[tuple[int, tuple[Checkpoint, ...]], ...]

    def covers(self, step: int) -> bool:
        """True if the line has that step."""
        return self.start <= step <= self.head

    def find(self, step: int) -> Checkpoint | None:
        """The checkpoint of a step of this line, None where it isn't loaded."""
        if not self.covers(step):
            return None
        found = (find_step(checkpoints, step) for last, checkpoints in self.sources if step <= last)
        return next((checkpoint for checkpoint in found if checkpoint), None)


@dataclass(frozen=True, slots=True)
class Lines:
    """All lines of a family in drawing order, and which one shows a thread's own steps."""

    branches: tuple[Branch, ...]
    index: Mapping[str, int]

    def home(self, place: Place) -> tuple[int, int]:
        """The line and step at which a place is shown; the nearest one where it is none."""
        thread_id, step = place
        line = self.index.get(thread_id, 0)
        while line and step < self.branches[line].start:
            line = self.branches[line].parent
        branch = self.branches[line]
        return line, min(max(step, branch.start), max(branch.head, branch.start))

    def place(self, line: int, step: int) -> Place:
        """What a step of a line is called."""
        return self.branches[line].thread_id, step


def family_lines(view: RunView, family: Sequence[Relative]) -> Lines:
    """The lines of the open thread and its relatives."""
    relatives = {relative.thread_id: relative for relative in family if relative.thread_id != view.thread_id}
    leaves = _ancestors(view, relatives)
    # Ancestors have no line of their own up to the step at which the way to this thread leaves them.
    starts = {name: leaves.get(name, relative.fork_step) + 1 for name, relative in relatives.items()}
    children: dict[str, list[str]] = {}
    for name, relative in relatives.items():
        parent = relative.parent or ""
        on_top = name in leaves or relative.fork_step < starts.get(parent, relative.fork_step + 1)
        children.setdefault(view.thread_id if on_top else parent, []).append(name)

    branches = [_top(view, relatives, leaves)]
    index = {view.thread_id: 0}

    def add(parent: str) -> None:
        for name in sorted(children.pop(parent, ()), key=lambda name: (-starts[name], name)):
            relative = relatives[name]
            if relative.summary.head >= starts[name]:
                index[name] = len(branches)
                branches.append(_branch(relative, index[parent], starts[name]))
                add(name)
            else:
                index[name] = index[parent]

    add(view.thread_id)
    return Lines(tuple(branches), index)


def _ancestors(view: RunView, relatives: Mapping[str, Relative]) -> dict[str, int]:
    """The last step that the open thread shares with each of its ancestors."""
    leaves: dict[str, int] = {}
    parent, step = view.parent, view.fork_step
    while parent is not None and parent in relatives and parent not in leaves:
        leaves[parent] = step
        step = min(step, relatives[parent].fork_step)
        parent = relatives[parent].parent
    return leaves


def _top(view: RunView, relatives: Mapping[str, Relative], leaves: Mapping[str, int]) -> Branch:
    shared = ((last, relatives[name].checkpoints) for name, last in leaves.items())
    progress = view.progress
    # Where no node is to blame, as when the store went away, none is named.
    at_fault = progress.status != "failed" or view.error is None or bool(view.error.node)
    return Branch(
        thread_id=view.thread_id,
        parent=0,
        start=0,
        head=progress.head,
        status=progress.status,
        reason=progress.reason,
        next_node=(view.running_node or progress.next_node or "") if at_fault else "",
        sources=((progress.head, view.checkpoints), *shared),
    )


def _branch(relative: Relative, parent: int, start: int) -> Branch:
    summary = relative.summary
    return Branch(
        thread_id=relative.thread_id,
        parent=parent,
        start=start,
        head=summary.head,
        status=summary.status,
        reason=summary.reason,
        next_node=summary.next_node or "",
        sources=((summary.head, relative.checkpoints),),
    )


def neighbours(view: RunView, family: Sequence[Relative], place: Place, direction: Direction) -> Place:
    """The step one key press away; the same place where there is none."""
    lines = family_lines(view, family)
    line, step = lines.home(place)
    branch = lines.branches[line]
    if direction == "left":
        if step > branch.start or not line:
            return lines.place(line, max(step - 1, branch.start))
        return lines.place(branch.parent, step - 1)
    if direction == "right":
        return lines.place(line, min(step + 1, branch.head))
    other = min(max(line + (1 if direction == "down" else -1), 0), len(lines.branches) - 1)
    bounds = lines.branches[other]
    return lines.place(other, min(max(step, bounds.start), bounds.head))
