"""Log of a thread in plain text mode: its steps, searches, conditions, watches, taint, a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hitl_tui.config import watches_file
from hitl_tui.drivers.expressions import check_expression
from hitl_tui.drivers.history import Asked, Moment, SearchHit
from hitl_tui.drivers.protocol import Check, Checked, Snapshot
from hitl_tui.engine.log.taint import Taint
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.plain.context import Context, Places
from hitl_tui.view.answers import find_channel
from hitl_tui.view.findings import MEANING, changed_words, checked_words, finding_line
from hitl_tui.view.followed import dated_lines, followed_in
from hitl_tui.view.format import capital, count, inline
from hitl_tui.view.glyphs import ASCII
from hitl_tui.view.hits import answer_line, hit_line, moment_line
from hitl_tui.view.lines import content, name, short_id, spans
from hitl_tui.view.notes import notes_on
from hitl_tui.view.routes import lines_of_route
from hitl_tui.view.run_view import open_view
from hitl_tui.view.spans import Line
from hitl_tui.view.step_view import StepView, head_step, past_step
from hitl_tui.view.strips import strip
from hitl_tui.view.taint import lineage_lines, taint_line
from hitl_tui.view.transcript import note_lines, step_lines, stream_lines
from hitl_tui.view.watches import MOST, keep_watches, read_watches, watch

_STEPS: Final = 10
_DECISIONS: Final = 20
_STRIP: Final = 40
_VALUE: Final = 60
_CODE: Final = 90
_MISMATCHES: Final = 50
_CHECKS: Final[dict[str, Check]] = {"": "log", "log": "log", "strict": "strict", "replay": "replay"}


def list_steps(context: Context, typed: str) -> None:
    """List the last steps; "mine" lists your decisions, "route 3" shows the route after step 3.

    Raises:
        UsageError: the words name none of these.
    """
    if typed == "mine":
        _list_mine(context)
        return
    word, _, number = typed.partition(" ")
    if word == "route" and (not number or number.isdecimal()):
        _show_route(context, int(number) if number else context.snapshot().progress.head)
        return
    if typed:
        raise UsageError(
            f"{typed!r} is not listed",
            "l lists the last steps, l mine your decisions, l route 3 the route after step 3",
        )
    driver = context.driver
    if points := context.run(driver.history(limit=_STEPS))[::-1]:
        ledger = context.snapshot().ledger
        updates = context.run(driver.updates(points[0].step, points[-1].step))
        for point in points:
            notes = notes_on(ledger, point.step)
            context.console.say(*step_lines(point, updates[point.step]), *note_lines(notes))


def _show_route(context: Context, step: int) -> None:
    """Show what the route after a step returned, what it read, and its code."""
    head = context.snapshot().progress.head
    if not 0 <= step <= head:
        raise UsageError(f"there is no step {step}", f"the newest is step {head}")
    lines = context.run(lines_of_route(context.driver, step, _CODE, ASCII, load=True))
    if lines:
        context.console.say(*spans(lines))
    else:
        context.console.say(f"There is no choice after step {step}: it has one edge.")


def _list_mine(context: Context) -> None:
    snapshot = context.snapshot()
    decisions = context.run(
        followed_in(context.driver, snapshot.progress, snapshot.ledger, context.actor, _DECISIONS)
    )
    for decision in decisions:
        context.console.say(*dated_lines(decision))
    if not decisions:
        context.console.say(f"{name(context.actor)} has decided nothing in this thread.")


def find(context: Context, typed: str) -> None:
    """Search all steps for a text, or with "?" for the steps at which a condition became true, and show the
    first place; without a word the next one.

    Raises:
        UsageError: nothing was searched for yet.
        ExpressionInvalid: the condition can't be read.
    """
    if not typed:
        walk(context, 1)
        return
    context.places = _moments(context, typed[1:].strip()) if typed.startswith("?") else _hits(context, typed)
    if context.places.lines:
        _show(context, context.places)


def walk(context: Context, by: int) -> None:
    """Show the next or the previous place of the search.

    Raises:
        UsageError: nothing was searched for yet, or it was not found.
    """
    places = context.places
    if not places.lines:
        raise UsageError("no search yet", "/ TEXT finds")
    context.places = Places(places.lines, (places.at + by) % len(places.lines))
    _show(context, context.places)


def _hits(context: Context, text: str) -> Places:
    hits: list[SearchHit] = []
    looked = 0

    def print_hits(some: tuple[SearchHit, ...], _looked: int, of: int) -> None:
        nonlocal looked
        hits.extend(some)
        looked = of

    context.run(context.driver.search(text, print_hits))
    context.console.say(f"{count(len(hits), 'place')} in {count(looked, 'step')}.")
    return Places(tuple((hit.thread, hit.step, hit_line(hit)) for hit in hits))


def _moments(context: Context, expression: str) -> Places:
    def ignore(_moments: tuple[Moment, ...], _looked: int, _of: int) -> None: ...

    answer: Asked = context.run(context.driver.ask(expression, ignore))
    text = answer_line(answer)
    context.console.say(f"{capital(text)}.")
    return Places(tuple(("", moment.step, moment_line(moment)) for moment in answer.moments))


def _show(context: Context, places: Places) -> None:
    """Show a place, and its step."""
    thread, step, line = places.lines[places.at]
    context.console.say(f"{places.at + 1} of {len(places.lines)}, step {step}:", *spans([line]))
    if thread:
        context.console.say(f"o {short_id(thread)} opens that thread.")
        return
    show_step(context, step)


def show_step(context: Context, step: int) -> None:
    """Show a step of the thread."""
    driver = context.driver
    (point,) = context.run(driver.history(step + 1, 1))
    updates = context.run(driver.updates(step, step))[step]
    context.console.say(*step_lines(point, updates), *stream_lines(point))


def watches(context: Context, typed: str) -> None:
    """Print the values of the watches, now and over the run; with an expression add or remove that watch.

    "step 3" prints them as of that step.

    Raises:
        ExpressionInvalid: it can't be parsed.
        UsageError: there is no such step.
    """
    snapshot = context.snapshot()
    graph, file = snapshot.graph, watches_file()
    texts = read_watches(file).get(graph.name, ())
    word, _, number = typed.partition(" ")
    at = int(number) if word == "step" and number.strip().isdigit() else None
    if typed and at is None:
        if typed not in texts:
            check_expression(typed, graph.channels)
        others = tuple(text for text in texts if text != typed)
        texts = others if typed in texts else (*others, typed)[-MOST:]
        try:
            keep_watches(file, graph.name, texts)
        except OSError as error:
            raise HitlError(f"watches can't be saved: {error.strerror}", f"see {file}") from None
    if not texts:
        context.console.say("No watches.")
        return
    _print_watches(context, texts, _step_of(context, snapshot, at))


def _step_of(context: Context, snapshot: Snapshot, at: int | None) -> StepView:
    """Return a step with its values, None for the newest one."""
    view = open_view(snapshot)
    if at is None:
        return head_step(view)
    driver, head = context.driver, snapshot.progress.head
    if at > head:
        raise UsageError(f"there is no step {at}", f"the newest is step {head}")
    (point,) = context.run(driver.history(at + 1, 1))
    values, updates = context.run(driver.state_at(at)), context.run(driver.updates(at, at))[at]
    return past_step(view, point, values, updates)


def _print_watches(context: Context, texts: Sequence[str], step: StepView) -> None:
    channels = context.snapshot().graph.channels
    known = step.checkpoint is not None
    series = context.run(context.driver.series(texts, step.step, _STRIP)) if known else [()] * len(texts)
    for number, (text, samples) in enumerate(zip(texts, series, strict=True), 1):
        shown = watch(text, step, channels)
        value = f"undefined: {shown.why}" if shown.why else inline(shown.value, _VALUE)
        changed = f", changed by {'this step' if step.is_head else f'step {step.step}'}"
        context.console.say(
            f"{number}. {name(text)}{changed if shown.mark != ' ' else ''}:", *content([value], 3)
        )
        rows: list[Line] = [strip(samples, _STRIP)] if samples and not shown.why else []
        context.console.say(*spans(rows))


def check(context: Context, typed: str) -> None:
    """Check the log against itself; "strict" reduces every update again, "replay" runs the graph again."""
    kind = _CHECKS.get(typed)
    if kind is None:
        raise UsageError(f"there is no check {typed!r}", "V, V strict or V replay")
    checked: Checked = context.run(context.driver.check(kind, lambda done, total: None))
    words = checked_words(checked)
    context.console.say(f"{capital(words)}.", *map(capital, changed_words(checked.changes)))
    for mismatch in checked.mismatches[:_MISMATCHES]:
        context.console.say(*content([finding_line(mismatch)]), f"  {MEANING[mismatch.kind]}")
    if len(checked.mismatches) > _MISMATCHES:
        context.console.say(f"And {len(checked.mismatches) - _MISMATCHES} more.")


def why_tainted(context: Context, typed: str) -> None:
    """Print which channels hold untrusted data, each with its path; or one of them."""
    snapshot = context.snapshot()
    channel = find_channel(list(snapshot.values), typed) if typed else ""
    tainted = [taint for taint in _tainted(snapshot) if channel in ("", taint.channel)]
    if not tainted:
        context.console.say(f"{name(channel)} is not tainted." if channel else "No channel is tainted.")
    for taint in tainted:
        arrivals = context.run(context.driver.lineage(taint.channel, snapshot.progress.head))
        context.console.say(*spans([taint_line(taint)]), *spans(lineage_lines(arrivals)))


def _tainted(snapshot: Snapshot) -> tuple[Taint, ...]:
    return snapshot.checkpoints[-1].tainted if snapshot.checkpoints else ()
