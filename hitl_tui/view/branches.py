"""Shows the branches of a map or a parallel: counts, rows, details, and output while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from hitl_tui.engine.graph.description import NodeInfo
from hitl_tui.engine.graph.drawing import nodes_at_once
from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.outcomes import BranchOutcome
from hitl_tui.engine.log.records import Checkpoint, branch_of
from hitl_tui.view.format import count, duration, inline, kind, stopwatch, tokens
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.inside import BranchPhase, BranchView, InsideView, why_failed
from hitl_tui.view.lens import lens, update_lines
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, Role, Span, trusted, untrusted
from hitl_tui.view.taint import channel_names, contract_fact
from hitl_tui.view.value_lines import value_lines

# Glyph, word for one branch, word in a count, role.
_PHASES: Final[Mapping[BranchPhase, tuple[str, str, str, Role]]] = MappingProxyType(
    {
        "ok": ("done", "done", "done", "ok"),
        "failed": ("failed", "failed", "failed", "error"),
        "running": ("running", "running", "running", "node"),
        "waiting": ("waiting", "waits", "waiting", "accent"),
        "next": ("pending", "answered", "answered", "accent"),
        "cancelled": ("cancelled", "stopped", "stopped", "dim"),
        "unneeded": ("pending", "not needed", "not needed", "dim"),
    }
)
_NAME: Final = 60
_ITEM: Final = 80
_WIDE: Final = 240
_NAMES: Final = 3


class BranchRow(msgspec.Struct, frozen=True):
    """A branch as one row of a list; all texts sanitised, on one line.

    Args:
        path: raw, used as a key.
        label: its path as shown, without its step.
        item: the item that it processes, "" for a member of a parallel.
        took: how long it ran, "" if unknown.
        wrote: the channels it wrote.
        remark: why it failed, what it asks, or who overwrote it.
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
    """Return the glyph, word and role of a branch's phase."""
    glyph, word, _, role = _PHASES[phase]
    return getattr(glyphs, glyph), word, role


def counted(inside: InsideView) -> str:
    """Return "3 of 10 done, 1 failed, 4 running"; "" if nothing is known yet."""
    phases = inside.phases()
    if not phases and not inside.total:
        return ""
    of = f" of {inside.total}" if inside.total else ""
    first = f"{phases.get('ok', 0)}{of} done"
    rest = [f"{phases[name]} {word}" for name, (_, _, word, _) in _PHASES.items() if name in phases]
    return ", ".join([first, *(part for part in rest if not part.endswith(" done"))])


def short_count(inside: InsideView) -> str:
    """Return "3/10 ✗1", as shown beside a node of the graph."""
    phases = inside.phases()
    if not phases and not inside.total:
        return ""
    failed = f" {UNICODE.failed}{phases['failed']}" if "failed" in phases else ""
    waits = f" {UNICODE.waiting}{phases['waiting']}" if "waiting" in phases else ""
    return f"{phases.get('ok', 0)}/{inside.total or len(inside.branches)}{failed}{waits}"


def branches_of_step(point: Checkpoint, inside: InsideView) -> list[BranchView]:
    """Return the branches of a committed step by place, with the text that they wrote, if it is known."""
    known = inside.branches if (inside.node, inside.step) == (point.node, point.step) else {}
    views: list[BranchView] = []
    for outcome in point.branches:
        seen = known.get(outcome.path)
        views.append(
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
    return views


def items_of(values: Mapping[str, Any], over: str) -> Sequence[Any]:
    """Return the items of a map: the list at a channel, or at a path into one."""
    name, *path = over.split(".") if over else [""]
    value = values.get(name)
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, list | tuple) else ()


def item_text(branch: BranchView, items: Sequence[Any]) -> str:
    """Return a branch's item on one line; nothing of a private list."""
    if not 0 <= branch.index < len(items):
        return ""
    item = items[branch.index]
    if kind(item) == "object" and item:
        # Its first texts say more than the names of its fields.
        texts = [value for value in item.values() if isinstance(value, str) and value]
        return sanitise_line(" · ".join(text[:_ITEM] for text in texts[:2]), _ITEM) or inline(item, _ITEM)
    return "" if item is PRIVATE else inline(item, _ITEM)


def overwriters(updates: Sequence[AppliedUpdate]) -> dict[tuple[str, str], str]:
    """Return (path, channel) -> the path of the next branch that wrote the same channel."""
    last: dict[str, str] = {}
    writers: dict[tuple[str, str], str] = {}
    for update in updates:
        before = last.get(update.channel)
        path = branch_of(update.path)
        if before and before != path:
            writers[before, update.channel] = path
        last[update.channel] = path
    return writers


def overwritten(branch: BranchView, by: Mapping[tuple[str, str], str]) -> str:
    """Return "draft overwritten by group/b"; "" if all its writes stayed."""
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
    """Return a row for each branch of a map or a parallel.

    Args:
        updates: of the committed step; () while it runs.
        items: the items of a map.
        now: microseconds, for branches that run.
    """
    wrote: dict[str, dict[str, None]] = {}
    for update in updates:
        wrote.setdefault(branch_of(update.path), {})[update.channel] = None
    by = overwriters(updates)
    rows: list[BranchRow] = []
    for branch in branches:
        glyph, word, role = phase_words(branch.phase, glyphs)
        remark = branch.asks or branch.error or overwritten(branch, by)
        rows.append(
            BranchRow(
                path=branch.path,
                label=sanitise_line(_label(branch.path), _NAME),
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


def _label(path: str) -> str:
    """Return a branch's label; for a node of a LangGraph superstep, just its name."""
    step, _, member = path.partition("/")
    return member if member and nodes_at_once(step) else path


def slowest_first(branches: Sequence[BranchView], now: int) -> list[BranchView]:
    """Sort branches by duration, the slowest first; those with unknown duration come last."""
    return sorted(branches, key=lambda branch: _time(branch, now), reverse=True)


def _time(branch: BranchView, now: int) -> int:
    if branch.outcome is not None:
        return branch.outcome.duration
    return now - branch.since if branch.since is not None else -1


def _took(branch: BranchView, now: int) -> str:
    if branch.outcome is not None:
        return duration(branch.outcome.duration) if branch.outcome.attempts else ""
    running = branch.phase == "running" and branch.since is not None
    return stopwatch(now - (branch.since or 0)) if running else ""


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(sanitise_line(name, _NAME) for name in names[:_NAMES]) + more


_SHOWN: Final = 40
_NAMED: Final = 8


def branch_lens(
    updates: Sequence[AppliedUpdate], branches: Sequence[BranchOutcome], glyphs: Glyphs = UNICODE
) -> tuple[Line, ...]:
    """Return lines for the updates of a step by branch; only the first of many branches.

    One line at the end names the branches that were not needed.
    """
    if not branches:
        return lens(updates, glyphs)
    groups: dict[str, list[AppliedUpdate]] = {outcome.path: [] for outcome in branches}
    for update in updates:
        groups.setdefault(branch_of(update.path), []).append(update)
    by = overwriters(updates)
    shown = [outcome for outcome in branches if outcome.status != "unneeded"]
    shown.sort(key=lambda outcome: outcome.status != "failed")  # the rest may be off screen
    lines: list[Line] = []
    for outcome in shown[:_SHOWN]:
        lines += outcome_lines(outcome, glyphs)
        for update in groups[outcome.path]:
            lines += update_lines(update, glyphs)
            if update.channel in outcome.overridden:
                lines.append(_overwritten(by.get((outcome.path, update.channel), "")))
    if len(shown) > _SHOWN:
        lines.append((trusted(f"{glyphs.ellipsis} and {len(shown) - _SHOWN:,} more branches", "dim"),))
    known = {outcome.path for outcome in branches}
    lines += lens([update for update in updates if branch_of(update.path) not in known], glyphs)
    return (*lines, *_unneeded([outcome for outcome in branches if outcome.status == "unneeded"], glyphs))


def outcome_lines(outcome: BranchOutcome, glyphs: Glyphs = UNICODE, message: int = _WIDE) -> list[Line]:
    """Return lines about a branch's outcome, and its error if it failed."""
    glyph, word, role = phase_words(outcome.status, glyphs)
    facts = [word] if outcome.status != "ok" else []
    if outcome.attempts > 1:
        facts.append(f"after {count(outcome.attempts, 'attempt')}")
    words = " ".join(facts)
    took = duration(outcome.duration) if outcome.attempts else ""
    said = ", ".join(part for part in (words, took) if part)
    thread: tuple[Span, ...] = ()
    if outcome.thread:
        thread = (trusted("  thread ", "dim"), untrusted(outcome.thread, "name", _WIDE))
    lines: list[Line] = [
        (
            trusted(f"{glyph} ", role),
            untrusted(outcome.path, "node", _NAME),
            trusted(f"  {said}", role),
            *thread,
        )
    ]
    if outcome.error is not None:
        lines.append((trusted("  "), untrusted(why_failed(outcome), "error", message)))
        if outcome.error.hint:
            lines.append((trusted("  "), untrusted(outcome.error.hint, "dim", message)))
    return lines


def _overwritten(by: str) -> Line:
    who = (trusted(" by ", "warning"), untrusted(by, "warning", _NAME)) if by else ()
    return (trusted("  overwritten", "warning"), *who)


def _unneeded(branches: Sequence[BranchOutcome], glyphs: Glyphs) -> list[Line]:
    if not branches:
        return []
    names = ", ".join(sanitise_line(outcome.path, _NAME) for outcome in branches[:_NAMED])
    more = f" and {len(branches) - _NAMED} more" if len(branches) > _NAMED else ""
    return [(trusted(f"{glyphs.pending} {len(branches)} not needed: {names}{more}", "dim"),)]


_ITEM_LINES: Final = 8
_ROWS: Final = 400


def branch_detail(
    branch: BranchView,
    updates: Sequence[AppliedUpdate],
    items: Sequence[Any],
    glyphs: Glyphs = UNICODE,
    *,
    node: NodeInfo | None = None,
) -> list[Line]:
    """Return lines about a branch; each line of a text is one line, not wrapped.

    Args:
        updates: of the whole step, or () while it runs.
        items: the items of a map.
        node: the map or the parallel, for the contract of its branches.
    """
    lines = _head(branch, glyphs)
    if branch.asks:
        lines.append((trusted("asks: ", "accent"), untrusted(branch.asks, "accent")))
    lines += _about(branch, items)
    if node is not None:
        member = next((declared for declared in node.members if declared.name == branch.name), node)
        may = (("may read", member.reads), ("may write", member.writes))
        lines += [contract_fact(name, channel_names(names)) for name, names in may]
    if branch.error:
        error = branch.outcome.error if branch.outcome else None
        lines += _text(branch.error, "error")
        lines += _text(error.hint, "dim") if error and error.hint else []
    by = overwriters(updates)
    own = [update for update in updates if branch_of(update.path) == branch.path]
    if own:
        lines += [(), (trusted("what it wrote", "title"),)]
        lines += [line for update in own for line in update_lines(update, glyphs)]
    lost = overwritten(branch, by)
    lines += [(trusted(lost, "warning"),)] if lost else []
    if branch.text:
        lines += [(), (trusted("its output while it ran", "title"), *_writer(branch))]
        lines += _text(branch.text, "plain")
    return lines


def _head(branch: BranchView, glyphs: Glyphs) -> list[Line]:
    if branch.outcome is not None:
        return outcome_lines(branch.outcome, glyphs, message=0)[:1]
    glyph, word, role = phase_words(branch.phase, glyphs)
    again = f", attempt {branch.attempt}" if branch.attempt > 1 else ""
    who = (trusted(f"{glyph} ", role), untrusted(branch.path, "node", _NAME))
    return [(*who, trusted(f"  {word}{again}", role))]


def _about(branch: BranchView, items: Sequence[Any]) -> list[Line]:
    if not 0 <= branch.index < len(items):
        return []
    item = items[branch.index]
    lines = value_lines(item, "text" if kind(item) == "text" else "json")
    shown: list[Line] = [
        (trusted("item  " if at == 0 else "      ", "dim"), trusted(line, "value"))
        for at, line in enumerate(lines[:_ITEM_LINES])
    ]
    more = len(lines) - _ITEM_LINES
    return [*shown, (trusted(f"      … {count(more, 'more line')}", "dim"),)] if more > 0 else shown


def _writer(branch: BranchView) -> tuple[Span, ...]:
    parts = [part for part in (branch.agent, branch.model) if part]
    used = f" · {tokens(branch.tokens)}" if branch.tokens else ""
    return (*(untrusted(f"  {part}", "dim", _NAME) for part in parts), trusted(used, "dim"))


def _text(text: str, role: Role) -> list[Line]:
    """Return the last lines of a text."""
    return [(trusted(line, role),) for line in sanitise(text).split("\n")[-_ROWS:]]


_NAME_BRANCH_STREAM: Final = 40
_FEWEST: Final = 2
Wrap = Callable[[str, int], Sequence[str]]


def branch_stream(inside: InsideView, width: int, height: int, wrap: Wrap) -> list[Line]:
    """Return rows for a pane of `width` times `height` cells: running branches first, then the latest to end.

    Args:
        wrap: breaks a sanitised line into rows of a width.
    """
    every = inside.in_order()
    running = [branch for branch in every if branch.phase == "running"]
    shown = [branch for branch in running if branch.text] or [branch for branch in every if branch.text][-1:]
    silent = [branch for branch in running if not branch.text]
    rows: list[Line] = []
    words = counted(inside)
    if words:
        rows.append((untrusted(inside.node, "node", _NAME_BRANCH_STREAM), trusted(f" · {words}", "dim")))
    room = max(height - len(rows), _FEWEST)
    most = max(1, room // _FEWEST)
    left_out = len(shown) - most
    if left_out > 0 or silent:
        room -= 1
        most = max(1, room // _FEWEST)
    picked = shown[-most:]
    each = max(1, room // len(picked) - 1) if picked else 0
    for branch in picked:
        rows += _branch(branch, width, each, wrap)
    more = [branch.path for branch in (*shown[:-most], *silent)]
    if more:
        names = ", ".join(sanitise_line(path, _NAME_BRANCH_STREAM) for path in more[:4])
        rest = f" and {len(more) - 4} more" if len(more) > 4 else ""
        rows.append((trusted(f"also running: {names}{rest}", "dim"),))
    return rows


def _branch(branch: BranchView, width: int, most: int, wrap: Wrap) -> list[Line]:
    """Return a branch's name and the newest rows of its output."""
    glyph, _, role = phase_words(branch.phase)
    who = [untrusted(branch.path, "node", _NAME_BRANCH_STREAM)]
    by = branch.agent if branch.agent not in ("", branch.name) else ""
    who += [untrusted(f" · {part}", "dim", _NAME_BRANCH_STREAM) for part in (by, branch.model) if part]
    # No row is longer than this, so the last characters of a text fill all rows.
    tail = branch.text[-(width * (most + 1) * 4) :]
    rows = [row for line in sanitise(tail).rstrip("\n").split("\n") for row in wrap(line, max(width - 2, 4))]
    return [(trusted(f"{glyph} ", role), *who), *((trusted("  "), trusted(row)) for row in rows[-most:])]
