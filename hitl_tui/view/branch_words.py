"""Branches in words: what each is doing or came to, how many there are of a kind, what each was about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.view.format import duration, inline, kind
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.inside import BranchPhase, BranchView, InsideView, why_failed
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Role

# Glyph, word for one branch, word in a count, role.
_PHASES: Final[Mapping[BranchPhase, tuple[str, str, str, Role]]] = MappingProxyType(
    {
        "ok": ("done", "done", "done", "ok"),
        "failed": ("failed", "failed", "failed", "error"),
        "running": ("running", "running", "running", "node"),
        "waiting": ("waiting", "waits", "waiting", "accent"),
        "next": ("pending", "answered", "answered", "accent"),
        "cancelled": ("cancelled", "given up", "given up", "dim"),
        "unneeded": ("pending", "not needed", "not needed", "dim"),
    }
)
_NAME: Final = 60
_ITEM: Final = 80
_WIDE: Final = 240
_NAMES: Final = 3


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A branch as one row of a list; all texts sanitised, on one line.

    Args:
        path: raw, as a key.
        label: its path as shown.
        item: what it is about, "" for a member of a parallel.
        took: how long it ran, "" where that isn't known.
        wrote: the channels it wrote.
        remark: why it failed, what it asks, or by whom it was overwritten.
    """

    path: str
    label: str
    glyph: str
    word: str
    role: Role
    item: str
    attempts: int
    took: str
    wrote: str
    remark: str


def phase_words(phase: BranchPhase, glyphs: Glyphs = UNICODE) -> tuple[str, str, Role]:
    """Glyph, word and role of a branch's phase."""
    glyph, word, _, role = _PHASES[phase]
    return getattr(glyphs, glyph), word, role


def counted(inside: InsideView) -> str:
    """ "3 of 10 done, 1 failed, 4 running"; "" where nothing is known yet."""
    phases = inside.phases()
    if not phases and not inside.total:
        return ""
    of = f" of {inside.total}" if inside.total else ""
    first = f"{phases.get('ok', 0)}{of} done"
    rest = [f"{phases[name]} {word}" for name, (_, _, word, _) in _PHASES.items() if name in phases]
    return ", ".join([first, *(part for part in rest if not part.endswith(" done"))])


def short_count(inside: InsideView, glyphs: Glyphs = UNICODE) -> str:
    """ "3/10 ✗1", as beside a node of the picture."""
    phases = inside.phases()
    if not phases and not inside.total:
        return ""
    failed = f" {glyphs.failed}{phases['failed']}" if "failed" in phases else ""
    waits = f" {glyphs.waiting}{phases['waiting']}" if "waiting" in phases else ""
    return f"{phases.get('ok', 0)}/{inside.total or len(inside.branches)}{failed}{waits}"


def branches_of_step(point: Checkpoint, inside: InsideView) -> list[BranchView]:
    """The branches of a committed step by their place; what they wrote as text, as long as it is known."""
    known = inside.branches if (inside.node, inside.step) == (point.node, point.step) else {}
    found: list[BranchView] = []
    for outcome in point.branches:
        seen = known.get(outcome.path)
        found.append(
            BranchView(
                outcome.path,
                outcome.name,
                outcome.index,
                outcome.status,
                attempt=max(outcome.attempts, 1),
                outcome=outcome,
                error=why_failed(outcome),
                text=seen.text if seen else "",
                length=seen.length if seen else 0,
                agent=seen.agent if seen else "",
                model=seen.model if seen else "",
                tokens=seen.tokens if seen else 0,
            )
        )
    return found


def items_of(values: Mapping[str, Any], over: str) -> Sequence[Any]:
    """The items that a map goes over: the list at a channel, or at a path into one."""
    name, *path = over.split(".") if over else [""]
    value = values.get(name)
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, list | tuple) else ()


def item_text(branch: BranchView, items: Sequence[Any], limit: int = _ITEM) -> str:
    """What a branch is about, on one line; a private list shows nothing of its items."""
    if not 0 <= branch.index < len(items):
        return ""
    item = items[branch.index]
    if kind(item) == "object" and item:
        # The first texts of it say more than the names of its fields.
        texts = [value for value in item.values() if isinstance(value, str) and value]
        return sanitise_line(" · ".join(text[:limit] for text in texts[:2]), limit) or inline(item, limit)
    return "" if item is PRIVATE else inline(item, limit)


def overwriters(updates: Sequence[AppliedUpdate]) -> dict[tuple[str, str], str]:
    """Who wrote after a branch: (path, channel) -> the path of the next branch that wrote the channel."""
    last: dict[str, str] = {}
    found: dict[tuple[str, str], str] = {}
    for update in updates:
        before = last.get(update.channel)
        if before and before != update.path:
            found[before, update.channel] = update.path
        last[update.channel] = update.path
    return found


def overwritten(branch: BranchView, by: Mapping[tuple[str, str], str]) -> str:
    """ "draft overwritten by group/b"; "" where all it wrote stayed."""
    names = branch.outcome.overridden if branch.outcome else ()
    parts = [
        f"{sanitise_line(name, _NAME)} overwritten"
        + (f" by {sanitise_line(by[branch.path, name], _NAME)}" if (branch.path, name) in by else "")
        for name in names
    ]
    return ", ".join(parts)


def branch_rows(
    branches: Sequence[BranchView],
    updates: Sequence[AppliedUpdate],
    items: Sequence[Any],
    now: int,
    glyphs: Glyphs = UNICODE,
) -> list[BranchRow]:
    """Branches as rows.

    Args:
        updates: of the committed step; () while it runs.
        items: what a map goes over.
        now: microseconds, for those that run.
    """
    wrote: dict[str, dict[str, None]] = {}
    for update in updates:
        wrote.setdefault(update.path, {})[update.channel] = None
    by = overwriters(updates)
    rows: list[BranchRow] = []
    for branch in branches:
        glyph, word, role = phase_words(branch.phase, glyphs)
        remark = branch.asks or branch.error or overwritten(branch, by)
        rows.append(
            BranchRow(
                path=branch.path,
                label=sanitise_line(branch.path, _NAME),
                glyph=glyph,
                word=word,
                role=role,
                item=item_text(branch, items),
                attempts=branch.outcome.attempts if branch.outcome else branch.attempt,
                took=_took(branch, now),
                wrote=_names(list(wrote.get(branch.path, ()))),
                remark=sanitise_line(remark, _WIDE),
            )
        )
    return rows


def _took(branch: BranchView, now: int) -> str:
    if branch.outcome is not None:
        return duration(branch.outcome.duration) if branch.outcome.attempts else ""
    running = branch.phase == "running" and branch.since is not None
    return duration(now - (branch.since or 0)) if running else ""


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(sanitise_line(name, _NAME) for name in names[:_NAMES]) + more
