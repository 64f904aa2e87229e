"""Shows a thread's family as a tree: its ancestors, forks and their forks; names new forks."""

from __future__ import annotations

import string
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import msgspec

from hitl_tui.drivers.protocol import Relative
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.view.cells import cells, thread_name
from hitl_tui.view.format import ago, writer
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, Span

_LETTERS: Final = string.ascii_lowercase[1:]
_NAME: Final = 40
_LABEL: Final = 24


def free_name(thread_id: str, taken: Collection[str]) -> str:
    """Return a name for a fork: `THREAD-b`, or with the next unused letter."""
    thread_id = "".join(char for char in thread_id if sanitise(char) == char and char != "\n") or "fork"
    is_fork = len(thread_id) > 2 and thread_id[-2] == "-" and thread_id[-1] in _LETTERS
    base = thread_id[:-2] if is_fork else thread_id
    free = (f"{base}-{letter}" for letter in _LETTERS if f"{base}-{letter}" not in taken)
    return next(free, f"{base}-{len(taken)}")


class FamilyMember(msgspec.Struct, frozen=True):
    """A thread in its tree.

    Args:
        branch: the lines of the tree before it.
        first: its first own step, None if it has none or the step isn't loaded.
    """

    relative: Relative
    branch: str
    first: Checkpoint | None


def family_tree(family: Sequence[Relative], glyphs: Glyphs = UNICODE) -> tuple[FamilyMember, ...]:
    """Return the members, each below its parent, the earliest forks first."""
    names = {relative.thread_id for relative in family}
    children: dict[str, list[Relative]] = {}
    for relative in family:
        parent = relative.parent if relative.parent in names else ""
        children.setdefault(parent or "", []).append(relative)

    def below(parent: str, lead: str) -> Iterator[FamilyMember]:
        members = sorted(children.pop(parent, ()), key=lambda each: (each.fork_step, each.thread_id))
        for place, relative in enumerate(members):
            last = place == len(members) - 1
            branch = f"{lead}{glyphs.corner if last else glyphs.tee}{glyphs.across} " if parent else ""
            own = next(
                (point for point in relative.checkpoints if point.step == relative.fork_step + 1), None
            )
            yield FamilyMember(relative, branch, own)
            further = f"{lead}{' ' if last else glyphs.down}  " if parent else ""
            yield from below(relative.thread_id, further)

    return tuple(below("", ""))


def fork_label(member: FamilyMember) -> str:
    """Describe where and why a fork differs from its parent: "differs after step 4: edited by ann"."""
    relative = member.relative
    if relative.parent is None:
        return ""
    parts = f"differs after step {relative.fork_step}"
    if member.first is None:
        return parts if relative.summary.head > relative.fork_step else f"{parts}, no steps of its own"
    by = writer(member.first)
    person = member.first.source in ("human", "fork")
    return f"{parts}: {'edited by ' if person else ''}{sanitise_line(by, _LABEL)}"


def family_line(member: FamilyMember, width: int, *, shown: bool, now: int) -> Line:
    """Return a row of the tree: the thread, its steps and status, and where it differs.

    Args:
        width: the width of the widest tree and name in the list.
        shown: whether it is the thread on screen.
        now: microseconds.
    """
    summary = member.relative.summary
    name = _name(member)
    gap = " " * (width - cells(member.branch) - cells(name) + 2)
    state = sanitise_line(summary.reason if summary.status == "waiting" else summary.status, _LABEL)
    return (
        Span(member.branch, "dim"),
        Span(name, "title" if shown else "name"),
        Span(gap),
        Span(f"{summary.head:>6} ", "value"),
        Span(f" {state:<12}", "error" if summary.status == "failed" else "plain"),
        Span(f" {ago(summary.updated_at, now):<10}", "dim"),
        Span(f" {fork_label(member)}", "dim"),
    )


def _name(member: FamilyMember) -> str:
    return thread_name(member.relative.thread_id, _NAME)


def tree_width(members: Sequence[FamilyMember]) -> int:
    """Return the cells of the widest tree and name."""
    return max(
        (cells(member.branch) + cells(_name(member)) for member in members),
        default=0,
    )
