"""Nested runs in plain text mode: the branches of a step and the threads of subgraphs."""

from __future__ import annotations

from typing import Final

from hitl_tui.engine.log.events import AppliedUpdate
from hitl_tui.errors import UsageError
from hitl_tui.plain.context import Context
from hitl_tui.plain.running import open_thread
from hitl_tui.view.branches import BranchRow, branch_detail, branch_rows, branches_of_step, items_of
from hitl_tui.view.glyphs import ASCII
from hitl_tui.view.inside import BranchView
from hitl_tui.view.lines import name, numbered, short_id, spans
from hitl_tui.view.run_view import InsidePlace, RunView, open_view, place_inside

_LISTED: Final = 200
_ROWS: Final = 400


def look_within(context: Context, typed: str) -> None:
    """Handle `i`, `i NUMBER`, `i step NUMBER`, `i back`.

    Raises:
        UsageError: there is nothing inside, or nothing of that number.
    """
    snapshot = context.snapshot()
    word, _, rest = typed.partition(" ")
    if word == "back":
        if not snapshot.owners:
            raise UsageError("this is not a subgraph thread", "t lists the threads")
        open_thread(context, snapshot.owners[-1].thread_id)
        return
    if word == "step":
        context.within = _number(rest, "i step 4 lists what is inside step 4")
    elif not word:
        context.within = None
    view = open_view(snapshot)
    place = _place(context, view)
    if place.thread:
        if word and word != "step":
            if _number(word, "i lists what is inside") != 1:
                raise UsageError(f"there is no {name(word)} inside", "i lists what is inside")
            open_thread(context, place.thread)
            return
        thread = f"1. the thread {short_id(place.thread)}"
        context.console.say(f"Inside {name(place.node)}, step {place.step}:", thread, "i 1 opens it.")
    elif word and word != "step":
        _show(context, view, place, word)
    else:
        _list(context, view, place)


def _list(context: Context, view: RunView, place: InsidePlace) -> None:
    """Print the branches with their numbers."""
    branches, updates, items = _branches(context, view, place)
    rows = branch_rows(branches, updates, items, 0, ASCII)
    context.console.say(f"Inside {name(place.node)}, step {place.step}:")
    context.console.say(*numbered(_row(row) for row in rows[:_LISTED]))
    if len(rows) > _LISTED:
        context.console.say(f"and {len(rows) - _LISTED} more, by their numbers.")
    context.console.say("i and a number shows one.")


def _place(context: Context, view: RunView) -> InsidePlace:
    """Return the running node, or the newest step with an inside, or the named step."""
    if context.within is None:
        place = place_inside(view)
        if place is None:
            raise UsageError("no step here has branches or a subgraph thread", "i step 4 looks inside step 4")
        return place
    points = context.run(context.driver.history(before=context.within + 1, limit=1))
    place = place_inside(view, points[0]) if points and points[0].step == context.within else None
    if place is None:
        raise UsageError(
            f"step {context.within} has no branches and no subgraph thread", "l lists the last steps"
        )
    return place


def _branches(
    context: Context, view: RunView, place: InsidePlace
) -> tuple[list[BranchView], tuple[AppliedUpdate, ...], list[object]]:
    """Return the branches of a place, the updates of its step and the items of a map."""
    node = view.graph.node(place.node)
    over = node.over if node else ""
    if place.point is None:
        return view.inside.in_order(), (), list(items_of(view.values, over))
    updates = context.run(context.driver.updates(place.step, place.step))[place.step]
    values = context.run(context.driver.state_at(place.step - 1)) if place.step > 0 else {}
    return branches_of_step(place.point, view.inside), updates, list(items_of(values, over))


def _row(row: BranchRow) -> str:
    """Return a branch as a sentence."""
    took = f", {row.took}" if row.took else ""
    tries = f", after {row.attempts} attempts" if row.attempts > 1 else ""
    parts = [f"on {row.item}" if row.item else "", f"wrote {row.wrote}" if row.wrote else "", row.remark]
    more = "; ".join(part for part in parts if part)
    return f"{row.label}: {row.word}{took}{tries}" + (f"; {more}." if more else ".")


def _show(context: Context, view: RunView, place: InsidePlace, typed: str) -> None:
    """Print one branch completely."""
    branches, updates, items = _branches(context, view, place)
    at = _number(typed, "i lists what is inside")
    if not 1 <= at <= len(branches):
        raise UsageError(f"there is no branch {at} inside, there are {len(branches)}", "i lists them")
    branch = branches[at - 1]
    lines = branch_detail(branch, updates, items, ASCII, node=view.graph.node(place.node))
    context.console.say(f"{at}. {name(branch.path)}:", *spans(lines, _ROWS))
    if branch.phase == "waiting":
        context.console.say("d decides.")


def _number(typed: str, hint: str) -> int:
    if not typed.strip().isdecimal():
        raise UsageError(f"{name(typed) or 'nothing'} is not a number", hint)
    return int(typed)
