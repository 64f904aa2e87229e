"""One branch in full: what became of it, why it failed, what it wrote, what it said while it ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hitl_tui.drivers.protocol import NodeInfo
from hitl_tui.engine.log.events import AppliedUpdate
from hitl_tui.view.branch_lens import outcome_lines
from hitl_tui.view.branch_words import overwriters, overwritten, phase_words
from hitl_tui.view.format import count, kind, tokens
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.inside import BranchView
from hitl_tui.view.lens import update_lines
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Line, Role, Span, trusted, untrusted
from hitl_tui.view.taint import channel_names, contract_fact
from hitl_tui.view.value_lines import value_lines

_ITEM_LINES: Final = 8
_ROWS: Final = 400
_NAME: Final = 60


def branch_detail(
    branch: BranchView,
    updates: Sequence[AppliedUpdate],
    items: Sequence[Any],
    glyphs: Glyphs = UNICODE,
    *,
    node: NodeInfo | None = None,
) -> list[Line]:
    """Lines about a branch; texts are not wrapped, but each line of them is one.

    Args:
        updates: of the whole step, or () while it runs.
        items: what a map goes over.
        node: the map or the parallel, for what its branches may read and write.
    """
    lines = _head(branch, glyphs)
    if branch.asks:
        lines.append((trusted("asks: ", "accent"), untrusted(branch.asks, "accent")))
    lines += _about(branch, items)
    if node is not None:
        member = next((one for one in node.members if one.name == branch.name), node)
        may = (("may read", member.reads), ("may write", member.writes))
        lines += [contract_fact(name, channel_names(names)) for name, names in may]
    if branch.error:
        error = branch.outcome.error if branch.outcome else None
        lines += _text(branch.error, "error")
        lines += _text(error.hint, "dim") if error and error.hint else []
    by = overwriters(updates)
    own = [update for update in updates if update.path == branch.path]
    if own:
        lines += [(), (trusted("what it wrote", "title"),)]
        lines += [line for update in own for line in update_lines(update, glyphs)]
    lost = overwritten(branch, by)
    lines += [(trusted(lost, "warning"),)] if lost else []
    if branch.text:
        lines += [(), (trusted("what it said while it ran", "title"), *_writer(branch))]
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
    """The end of a text, a line each."""
    return [(trusted(line, role),) for line in sanitise(text).split("\n")[-_ROWS:]]
