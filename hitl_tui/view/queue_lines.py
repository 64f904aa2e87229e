"""Draws the queue: two lines for each request, for any width, and a preview of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from hitl_tui.drivers.protocol import Inbox
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.records import END
from hitl_tui.engine.log.requests import Request
from hitl_tui.view.about import about_line, version_words
from hitl_tui.view.asked import asked_rows, is_beside
from hitl_tui.view.card import ReviewCard, Version, newest_versions, review_card
from hitl_tui.view.cells import cells, cut, fitted
from hitl_tui.view.diff_lines import changes, excerpt
from hitl_tui.view.format import ago, cost, duration
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.queue import QueueRow, due_words, notes_words, span_words
from hitl_tui.view.revision import revision
from hitl_tui.view.rows import wrap_rich, wrap_spans, wrapped
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Role, Span, trusted
from hitl_tui.view.terms import then_words
from hitl_tui.view.value_lines import value_lines

_NAME: Final = 200
_WIDE: Final = 92
"""Cells from which a row has room for the name of its graph and for whole words."""
_WAITS, _RISK, _MARK, _GAPS = 6, 5, 4, 4
_DUE, _DUE_WIDE = 10, 14
_TITLE: Final = 40
_NOTES: Final = 15
_NOTES_FROM: Final = 68
"""Cells from which notes have a column of their own; below the list they are in the preview."""
_NOTES_WIDE: Final = 28
_INDENT: Final = " " * 4
_SECOND: Final = " " * 6
_SHORTEST: Final = 100_000
"""Microseconds of work below which no duration is shown."""
_LONGEST: Final = 400
"""Most lines of a value that are shown beside the queue."""
_SPACED: Final = 8
"""Lines from which a preview sets its parts apart."""
_TALL: Final = 20
"""Lines from which a preview shows the text around changes."""
ROWS: Final = 2
"""Lines of a request in the list."""


class Columns(NamedTuple):
    """The widths of the columns in cells; 0 for one that no row needs."""

    title: int
    where: int
    notes: int
    due: int
    risk: int


def columns_of(rows: Sequence[QueueRow], width: int) -> Columns:
    """Return columns as wide as their contents, if there is room; the thread column shrinks last."""
    is_wide = width >= _WIDE
    due = (_DUE_WIDE if is_wide else _DUE) if any(row.deadline is not None for row in rows) else 0
    risk = _RISK if any(row.high_risk for row in rows) else 0
    room = max(width - _MARK - _WAITS - due - risk - _GAPS, 20)
    title = max((cells(row.title) for row in rows), default=0)
    where = max((cells(_where(row, width)) for row in rows), default=0)
    least = _NOTES_WIDE if is_wide else _NOTES if width >= _NOTES_FROM else 0
    where = min(max(where, 6), max(room // 3, 10))
    title = min(max(title, 13), max(min(room - where - least, _TITLE), room // 3))
    return Columns(title, where, max(room - title - where, 0), due, risk)


def _where(row: QueueRow, width: int) -> str:
    name = sanitise_line(row.name, _NAME)
    return f"{name} · {sanitise_line(row.graph, _NAME)}" if width >= _WIDE else name


def queue_line(
    row: QueueRow, columns: Columns, width: int, now: int, me: str, *, marked: bool = False, new: bool = False
) -> Line:
    """Return the first line of a row: what is asked, where, the notes, and what makes it urgent.

    Args:
        new: it was asked since the person last looked.
    """
    role = _role(row, now, me)
    quiet, presses = role == "dim", role in ("urgent", "error")
    is_urgent = role == "urgent"
    due = due_words(row, now)
    due = f"due {due}" if due.startswith(("in ", "tom")) and columns.due >= _DUE_WIDE else due
    notes = notes_words(row, now, me)
    if is_urgent and row.request is not None and row.due_soon(now):
        notes = " · ".join(part for part in (then_words(row.request), notes) if part)
    mark = UNICODE.done if marked else UNICODE.new if new else " "
    attended = bool(row.looking) and not quiet
    risk = "high" if row.high_risk else ""
    # Notes have the room of the columns behind them that are empty in this row.
    after = [columns.due if due or risk else 0, columns.risk if risk or due else 0]
    room = columns.notes + columns.due + columns.risk - sum(after)
    return (
        Span(f"{mark} ", "ok" if marked else "accent"),
        Span("! " if presses else "  ", role),
        Span(fitted(row.title, columns.title) + " ", role),
        Span(fitted(_where(row, width), columns.where) + "  ", "dim"),
        Span(fitted(notes, room) + " ", role if is_urgent else "human" if attended else "dim"),
        Span(fitted(due, after[0]), role if is_urgent else "plain" if due and not quiet else "dim"),
        Span(fitted(risk, after[1]), "error"),
        Span(f"{span_words(max(now - row.since, 0)):>{_WAITS}}", "dim"),
    )


def second_line(
    row: QueueRow, width: int, now: int, me: str, *, refused: str = "", dangers: Sequence[str] = ()
) -> Line:
    """Return the second line of a row: what it is about.

    Args:
        refused: why it was not decided although it was marked.
        dangers: what to look at twice, as from `danger_words`; it has its room at the end.
    """
    if refused:
        words = f"not decided: {sanitise_line(refused, _NAME)}"
        return (trusted(_SECOND), trusted(cut(words, max(width - len(_SECOND), 0)), "warning"))
    quiet = _role(row, now, me) == "dim"
    line = about_line(row.request) if row.request is not None else ()
    if not line:
        goal, asker = sanitise_line(row.goal, _NAME), ""
        if row.request is not None and row.asks:
            asker = f"asked by {sanitise_line(row.request.node, _NAME)}, step {row.request.step}"
        line = (trusted(goal or asker or "it only stopped", "dim"),)
    line = (trusted(_SECOND), *(Span(span.text, "dim") if quiet else span for span in line))
    if not dangers:
        return line
    warning = f"  ! {', '.join(sanitise_line(words, _NAME) for words in dangers)}"
    return (*_cut(line, max(width - cells(warning), width // 2)), Span(warning, "warning"))


def _cut(line: Line, width: int) -> Line:
    """Return a line in at most so many cells; a cut shows as "…"."""
    kept: list[Span] = []
    for span in line:
        if (room := width - sum(cells(each.text) for each in kept)) <= 0:
            break
        kept.append(Span(cut(span.text, room), span.role))
    return tuple(kept)


def _role(row: QueueRow, now: int, me: str) -> Role:
    """Return the role of a row's title: the most urgent is the most conspicuous."""
    claim = row.claim(now)
    if not row.asks or (claim is not None and claim.actor != me):
        return "dim"
    if row.expired(now) or row.due_soon(now):
        return "urgent"
    return "error" if row.high_risk else "title" if row.handed_to(me) else "plain"


# -- what a row is about -----------------------------------------------------------------------------


async def preview_lines(
    inbox: Inbox, row: QueueRow, now: int, me: str, *, width: int, height: int, marked: bool
) -> list[Line]:
    """Return a preview of a row: the asker's text, the changes, the last decision here, what runs next.

    Args:
        height: the lines that are visible: without room for more, nothing is set apart.
    """
    hub = inbox.hub_of(row.source)
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
        card = review_card(request, session.view, values, version=version, previous=previous, reader=me)
        if height < _SPACED:
            card = replace(card, about=(), facts=())
        lines = list(
            _preview(
                row, session, card, (version, previous),
                now=now, me=me, width=width, height=height, marked=marked,
            )
        )  # fmt: skip
        return lines if height >= _SPACED else [line for line in lines if line]


def _preview(
    row: QueueRow,
    session: ViewSession,
    card: ReviewCard,
    versions: tuple[Version | None, Version | None],
    *,
    now: int,
    me: str,
    width: int,
    height: int,
    marked: bool,
) -> Iterator[Line]:
    request = card.request
    risk = (trusted("   high risk", "error"),) if card.high_risk else ()
    version = f"{words} · " if (words := version_words(request, me)) else ""
    where = f"{sanitise_line(row.graph, _NAME)} · step {request.step} · " if height >= _SPACED else ""
    asked = f"{version}{where}asked {ago(row.since, now)}"
    yield from wrap_rich((trusted(row.title, "title"), *risk, trusted(f"   {asked}", "dim")), width)
    if card.facts:
        yield card.facts
    yield from (row for line in (*card.terms, *card.attending) for row in wrap_rich(line, width))
    asked_about = asked_rows(request, 0, width) if is_beside(request) else card.words
    yield from _part(
        (*card.dangers, *asked_about, *card.votes, *((card.signing,) if card.signing else ())), width
    )
    if card.before:
        yield ()
        for line in card.before:
            yield from wrap_spans((trusted("last time  ", "dim"), *line), width)
    yield from _part(card.about, width)
    if request.subject:
        yield ()
        yield from _value(session, request, versions, width, height, marked=marked)
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
    height: int,
    *,
    marked: bool,
) -> Iterator[Line]:
    """Return the subject's changes since its last version, else all of it.

    Where there is little room, only a few words stay around each change.
    """
    assert request.subject is not None
    value = session.view.values.get(request.subject, PRIVATE)
    version, previous = versions
    if value is PRIVATE:
        return
    if version is not None and previous is not None:
        became = revision(previous.value, version.value)
        near = excerpt(became, height, marked=marked) if height < _TALL else changes(became, marked=marked)
        for line in near:
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
