"""Draws the queue: rows in columns for any width, and a preview of a row's request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.records import END
from hitl_tui.engine.log.requests import Request
from hitl_tui.view.asked import asked_rows, is_beside
from hitl_tui.view.card import ReviewCard, Version, newest_versions, review_card
from hitl_tui.view.cells import cells, fitted
from hitl_tui.view.diff_lines import changes
from hitl_tui.view.format import ago, cost, duration
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.queue import QueueRow, due_words, notes_words, span_words
from hitl_tui.view.revision import revision
from hitl_tui.view.rows import wrap_rich, wrap_spans, wrapped
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Role, Span, trusted, untrusted
from hitl_tui.view.value_lines import value_lines

_NAME: Final = 200
_GRAPH_FROM: Final = 92
"""Cells from which a row has room for the name of its graph."""
_WAITS, _DUE, _MARK = 6, 9, 4
_NOTES_LEAST: Final = 16
_NOTES_WIDE: Final = 20
_ROOM_FOR_NOTES: Final = 56
_INDENT: Final = " " * 4
_SHORTEST: Final = 100_000
"""Microseconds of work below which no duration is shown."""
_LONGEST: Final = 400
"""Most lines of a value that are shown beside the queue."""


class Columns(NamedTuple):
    """The widths of the flexible columns in cells."""

    title: int
    where: int
    risk: int


def columns_of(rows: Sequence[QueueRow], width: int) -> Columns:
    """Return columns as wide as their contents, if there is room; the thread column shrinks last."""
    risk = len("normal" if width >= _GRAPH_FROM else "high")
    room = max(width - _MARK - _WAITS - _DUE - risk - 4, 20)
    title = max((cells(row.title) for row in rows), default=0)
    where = max((cells(_where(row, width)) for row in rows), default=0)
    where = min(max(where, 6), max(room * 2 // 5, 10))
    notes = _NOTES_WIDE if room >= _ROOM_FOR_NOTES else _NOTES_LEAST
    title = min(max(title, 13), max(room - where - notes, room // 3))
    return Columns(title, where, risk)


def _where(row: QueueRow, width: int) -> str:
    name = sanitise_line(row.name, _NAME)
    return f"{name} · {sanitise_line(row.graph, _NAME)}" if width >= _GRAPH_FROM else name


def heading(columns: Columns, width: int) -> Line:
    """Return the row with the names of the columns."""
    where = "thread · graph" if width >= _GRAPH_FROM else "thread"
    return (
        Span(
            " " * _MARK + fitted("what is asked", columns.title) + " " + fitted(where, columns.where)
            + f"{'waits':>{_WAITS}}  {'due':<{_DUE}}{'risk':<{columns.risk}} notes",
            "dim",
        ),
    )  # fmt: skip


def queue_line(
    row: QueueRow, columns: Columns, width: int, now: int, me: str, *, marked: bool = False, refused: str = ""
) -> Line:
    """Return a row of the queue as drawn.

    Args:
        refused: why it was not decided although it was marked.
    """
    expired = row.expired(now)
    presses = row.asks and (expired or row.high_risk)
    claim = row.claim(now)
    quiet = not row.asks or (claim is not None and claim.actor != me)
    role: Role = "dim" if quiet else "error" if expired else "accent" if presses else "plain"
    notes = f"not decided: {sanitise_line(refused, _NAME)}" if refused else notes_words(row, now, me)
    due = due_words(row, now)
    risk = "high" if row.high_risk else "normal" if columns.risk >= len("normal") else "–"
    return (
        Span(f"{UNICODE.done if marked else ' '} ", "ok"),
        Span("! " if presses else "  ", role),
        Span(fitted(row.title, columns.title) + " ", role),
        Span(fitted(_where(row, width), columns.where), role if presses else "dim" if quiet else "name"),
        Span(f"{span_words(max(now - row.since, 0)):>{_WAITS}}  ", role if presses else "dim"),
        Span(f"{due or '–':<{_DUE}}", "error" if expired else "plain" if due and not quiet else "dim"),
        Span(fitted(risk, columns.risk) + " ", "error" if row.high_risk else "dim"),
        Span(notes, "warning" if refused else "human" if row.looking and not quiet else "dim"),
    )


def detail_lines(row: QueueRow, width: int, now: int, me: str) -> list[Line]:
    """Return what may not fit in a row's columns: the request, its graph and goal, and the notes."""
    notes, goal = notes_words(row, now, me), sanitise_line(row.goal, _NAME)
    line = [trusted(row.title, "title"), trusted("  "), untrusted(row.graph, "name", limit=_NAME)]
    line += [trusted(f": {goal}", "dim")] if goal else []
    line += [trusted(f" · {notes}", "human" if row.looking else "dim")] if notes else []
    return wrap_rich(tuple(line), width)


# -- what a row is about -----------------------------------------------------------------------------


async def preview_lines(hub: Hub, row: QueueRow, now: int, width: int, *, marked: bool) -> list[Line]:
    """Return a preview of a row: the asker's text, the changes, the last decision here, what runs next."""
    async with hub.borrow(row.name, look=True) as driver:
        session = await ViewSession.open(hub, driver)
        pending = session.view.progress.pending
        request = next((asked for asked in pending if row.request and asked.id == row.request.id), None)
        if request is None:
            return [(trusted(row.title, "title"),), *_then(session, None)]
        values = session.view.values
        version, previous = None, None
        if request.subject and values.get(request.subject, PRIVATE) is not PRIVATE:
            version, previous = await newest_versions(session, request.subject, request.step)
        card = review_card(request, session.view, values, version=version, previous=previous)
        return list(_preview(row, session, card, (version, previous), now=now, width=width, marked=marked))


def _preview(
    row: QueueRow,
    session: ViewSession,
    card: ReviewCard,
    versions: tuple[Version | None, Version | None],
    *,
    now: int,
    width: int,
    marked: bool,
) -> Iterator[Line]:
    request = card.request
    asked = f"{sanitise_line(row.graph, _NAME)} · step {request.step} · asked {ago(row.since, now)}"
    risk = (trusted("   high risk", "error"),) if card.high_risk else ()
    yield from wrap_rich((trusted(row.title, "title"), *risk, trusted(f"   {asked}", "dim")), width)
    if card.facts:
        yield card.facts
    yield from (row for line in (*card.terms, *card.attending) for row in wrap_rich(line, width))
    words = asked_rows(request, 0, width) if is_beside(request) else card.words
    yield from _part((*card.dangers, *words, *card.votes, *((card.signing,) if card.signing else ())), width)
    if card.about:
        yield ()
        for line in card.about:
            yield from wrap_spans(line, width)
        yield ()
        yield from _value(session, request, versions, width, marked=marked)
    if card.before:
        yield ()
        for line in card.before:
            yield from wrap_spans((trusted("last time  ", "dim"), *line), width)
    yield from _then(session, request)


def _part(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Wrap lines to the width, after an empty line; nothing for no lines."""
    shown = list(lines)[:_LONGEST]
    if shown:
        yield ()
    for line in shown:
        yield from wrap_spans(line, width)


def _value(
    session: ViewSession,
    request: Request,
    versions: tuple[Version | None, Version | None],
    width: int,
    *,
    marked: bool,
) -> Iterator[Line]:
    """Return the subject's changes since its last version, else all of it."""
    assert request.subject is not None
    value = session.view.values.get(request.subject, PRIVATE)
    version, previous = versions
    if value is PRIVATE:
        return
    if version is not None and previous is not None:
        for line in changes(revision(previous.value, version.value), marked=marked):
            yield from wrap_rich(line, width, _INDENT)
        return
    for text in value_lines(value, "text")[:_LONGEST]:
        yield from wrapped(text, width) or [()]


def _then(session: ViewSession, request: Request | None) -> Iterator[Line]:
    """Return what would run next, and what that has cost in this thread."""
    view = session.view
    if request is None or request.when != "after":
        node = request.node if request else view.progress.next_node
        targets = [node] if node else []
    else:
        targets = [edge.target for edge in view.graph.edges if edge.source == request.node]
    if not targets:
        return
    known = dict.fromkeys("the end" if node == END else sanitise_line(node, _NAME) for node in targets)
    took = trusted(_took(session, targets), "dim")
    yield ()
    yield (trusted("then            ", "dim"), trusted(" or ".join(known), "node"), took)


def _took(session: ViewSession, nodes: Sequence[str]) -> str:
    """Return " · about $0.0060 and 4.0 s", from the newest run of these nodes; "" if none ran."""
    for point in reversed(session.view.checkpoints):
        if point.node in nodes and (point.cost or point.duration >= _SHORTEST):
            price = f"{cost(point.cost)} and " if point.cost else ""
            return f" · about {price}{duration(point.duration)}"
    return ""
