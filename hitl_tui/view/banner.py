"""Makes the banner under the header, and describes failed nodes."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Protocol

from hitl_tui.drivers.protocol import command_refusal
from hitl_tui.engine.commands import PrepareGraph
from hitl_tui.engine.log.outcomes import ErrorInfo
from hitl_tui.engine.log.records import ROLLBACK
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.given_files import home_directory
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.format import local_time
from hitl_tui.view.rows import wrap_line, wrapped
from hitl_tui.view.run_view import RetryNotice
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Role, Span, untrusted
from hitl_tui.view.status import more_words, retry_words

_SAID = 600
_RAGGED = 8
"""About how many cells wrapping leaves empty at the end of a row."""
_EDGES = 2
_FEWEST = 24
"""Narrower than this, the banner repeats nothing that is elsewhere on screen."""
_BESIDE_SAVED = ("", "waiting", "past")
"""The kinds of row that leave room for a word about the graph's file."""
_LINE = re.compile(r"(?:— |; )at [^;:]+, line \d+")
"""In a hint on how to fix a failure: the place that caused it, without the code there."""
_SAID_ROWS = ((30, 3), (20, 2), (0, 1))
"""How many rows a failure may take, by the height of the screen."""


class ScreenSize(Protocol):
    """Columns and rows of the screen."""

    @property
    def width(self) -> int:
        """Width of a row in cells."""

    @property
    def height(self) -> int:
        """Number of rows."""


def banner_of(
    session: ViewSession, key_hints: Mapping[str, str], room: ScreenSize, *, narrow: bool
) -> tuple[tuple[Line, ...], str]:
    """Return the banner's rows and its kind; no rows if there is nothing to say.

    Args:
        key_hints: the keys to press, by action.
        room: the size of the screen in cells.
        narrow: the header has no room to say what waits, so the banner says it.
    """
    view = session.view
    if session.shown is None and view.error is not None and view.progress.status == "failed":
        return _failed(session, view.error, key_hints, room), "error"
    unbuilt = command_refusal(view.refusals, PrepareGraph)
    if session.shown is None and unbuilt and view.graph_changed is None:
        return _wrapped(unbuilt, room, "warning"), "note"
    if session.shown is None and view.retry is not None:
        return _retrying(view.retry, room), "note"
    line, kind = _one_row(session, key_hints, room, narrow=narrow)
    if view.graph_changed is not None and kind in _BESIDE_SAVED:
        saved = _graph_changed(view.graph_changed, view.repeats, key_hints, room)
        return ((line, saved[0]) if line else saved), kind or "note"
    if not line and view.notice:
        return _wrapped(view.notice, room, "dim"), "note"
    return ((line,) if line else ()), kind


def _wrapped(text: str, room: ScreenSize, role: Role) -> tuple[Line, ...]:
    """Wrap a line to as many rows as there is room for."""
    most = next(rows for height, rows in _SAID_ROWS if room.height >= height)
    width = max(room.width - 4, 12)
    rows = wrap_line(sanitise_line(text, _SAID), width)
    if len(rows) > most:
        rows = [*rows[: most - 1], cut(" ".join(rows[most - 1 :]), width)]
    return tuple((Span(row, role),) for row in rows)


def failed_what(error: ErrorInfo) -> str:
    """Return what failed: a node, or whatever else it was."""
    return f"{error.node} failed" if error.node else error.title


def _retrying(retry: RetryNotice, room: ScreenSize) -> tuple[Line, ...]:
    """Return when the node is retried, and why; on two rows if the reason is long."""
    width = max(room.width - 4, 12)
    again = retry_words(retry.attempt, retry.max_attempts, retry.wait)
    rows = wrap_line(sanitise_line(f"{retry.node}: {again}: {retry.why}", _SAID), width)
    rows = [rows[0], cut(" ".join(rows[1:]), width)] if len(rows) > 1 else rows
    return tuple((Span(row, "warning"),) for row in rows)


def _failed(
    session: ViewSession, error: ErrorInfo, key_hints: Mapping[str, str], room: ScreenSize
) -> tuple[Line, ...]:
    """Return what failed, why, how to fix it, and the keys."""
    width = max(room.width - 4, 12)
    view = session.view
    saved = view.graph_changed is not None
    most = 1 if saved else next(rows for height, rows in _SAID_ROWS if room.height >= height)
    what = sanitise_line(f"{failed_what(error)}: ", 80)
    hint = sanitise_line(f" — {error.hint}" if error.hint else "", _SAID)
    why = sanitise_line(_why(error), _SAID)
    # If room is short, the code at the place is left out first. Then the reason is cut, so that the hint on
    # how to fix it stays.
    room_for_why = most * width - cells(what) - cells(_without_code(hint)) - most * _RAGGED
    rows = wrap_line(what + cut(why, max(room_for_why, width // 2)) + hint, width)
    if len(rows) > most:
        rows = [*rows[: most - 1], cut(" ".join(rows[most - 1 :]), width)]
    first: Line = (Span("✗ ", "error"), Span(rows[0], "error"))
    reason = (first, *((Span(f"  {row}", "error"),) for row in rows[1:]))
    if view.graph_changed is not None:
        return (*reason, *_graph_changed(view.graph_changed, view.repeats, key_hints, room))
    return (*reason, _retry(session, _fix_hint(session, error, key_hints), width))


def _without_code(hint: str) -> str:
    place = _LINE.search(hint)
    return hint[: place.end()] if place else hint


def _retry(session: ViewSession, keys: Line, width: int) -> Line:
    """Return the keys and, if there is room, what a retry would repeat; side effects are highlighted."""
    if session.retry is None:
        return keys
    from hitl_tui.view.repeats import running_words

    words = running_words(session.retry)
    room = width - sum(cells(span.text) for span in keys) - _EDGES
    role: Role = "warning" if session.retry.outside else "dim"
    return (*keys, Span(f"  {cut(words, room)}", role)) if room >= _FEWEST else keys


def _why(error: ErrorInfo) -> str:
    """Return the error message without the node and attempt, which are shown beside it."""
    return error.message.removeprefix(f"node {error.node!r}, attempt {error.attempt}: ")


def _fix_hint(session: ViewSession, error: ErrorInfo, key_hints: Mapping[str, str]) -> Line:
    keys = [_again(session, key_hints)]
    if error.node:  # else the problem is not in the thread
        keys += [
            (key_hints["change.edit"], f"edit {sanitise_line(error.channel, 40) or 'state'}"),
            (key_hints["change.fork"], "fork"),
        ]
    if error.frames:
        keys.append((key_hints["look.editor"], "open in editor"))
    return _keys(*keys)


def _one_row(
    session: ViewSession, key_hints: Mapping[str, str], room: ScreenSize, *, narrow: bool
) -> tuple[Line, str]:
    if session.shown is not None:
        return _past(session, key_hints, room.width), "past"
    view, request = session.view, session.request
    if narrow and request is not None and not request.breakpoint:
        more = more_words(view.progress)
        others = (Span(f"  and {more}", "dim"),) if more else ()
        title = untrusted(request.title or f"{request.node} waits for you", "accent", limit=70)
        outside = [("esc", f"back to {sanitise_line(view.owners[-1].thread_id, 30)}")] if view.owners else []
        shown = _keys((key_hints["change.decide"], "decide"), *outside)
        return (Span("‖ your turn  ", "accent"), title, *shown, *others), "waiting"
    if view.dropped:
        return (untrusted(view.dropped, "warning"),), "note"
    if view.held_by:
        holder = untrusted(f"{view.held_by} runs this thread", "warning", limit=80)
        keys = _keys((key_hints["change.fork"], "fork"))
        return (holder, Span("   you can view everything, but not step", "dim"), *keys), "note"
    if view.graph_changed is not None:
        return (), ""
    if view.owners:
        owner = view.owners[-1]
        inside: Line = (Span("inside ", "dim"), untrusted(owner.node, "node", 40), Span(" of ", "dim"))
        ended = ": back to the parent thread" if view.progress.status == "completed" else ""
        back = _keys((key_hints["app.back"], f"back to it{ended}"))
        return (*inside, untrusted(owner.thread_id, "name", 60), *back), "note"
    return (), ""


def _graph_changed(
    differences: tuple[str, ...], repeats: Repeats | None, key_hints: Mapping[str, str], room: ScreenSize
) -> tuple[Line, ...]:
    """Return the banner on one row if there is room, else the key first, then what is kept and changed."""
    from hitl_tui.view.repeats import running_words, standing_words

    saved, keys = "The graph's file was saved", _keys((key_hints["run.again"], "run again"))
    steps = (standing_words(repeats), running_words(repeats)) if repeats else ()
    what = sanitise_line("; ".join((" · ".join(steps), *differences) if steps else differences), _SAID)
    words = f"{saved}: {what}" if what else saved
    if cells(words) + cells("".join(span.text for span in keys)) <= room.width - 4:
        return ((Span(words, "warning"), *keys),)
    return ((Span(saved, "warning"), *keys), *_wrapped(what, room, "warning"))


def _past(session: ViewSession, key_hints: Mapping[str, str], width: int) -> Line:
    """Return which step is shown, and the keys that fit, the one to leave first."""
    assert session.shown is not None
    thread_id, step = session.shown
    if thread_id != session.thread_id:
        where: Line = (
            Span("◂ ", "human"),
            Span(f"Step {step}", "name"),
            Span(" of "),
            untrusted(thread_id, "name"),
        )
        keys_on = [("app.back", "newest"), ("look.enter", "open that thread"), ("change.fork", "fork here")]
    else:
        newest = session.view.progress.head
        where = (Span("◂ ", "human"), Span(f"Step {step}", "name"), Span(f" of {newest} — not the newest"))
        keys_on = [("app.back", "newest"), ("change.fork", "fork here"), ("change.edit", "edit in a fork")]
    keys = [(key_hints[action], label) for action, label in keys_on]
    point = session.find(session.shown)
    written = (Span(f", written {local_time(point.at)}", "dim"),) if point else ()
    if sum(cells(span.text) for span in (*where, *written, *_keys(*keys))) <= width - _EDGES:
        return (*where, *written, *_keys(*keys))
    while keys and sum(cells(span.text) for span in (*where, *_keys(*keys))) > width - _EDGES:
        keys.pop()
    return (*where, *_keys(*keys))


def _again(session: ViewSession, key_hints: Mapping[str, str]) -> tuple[str, str]:
    """Return the action that retries what failed: the node, or the rest of a rollback."""
    if session.view.progress.position == ROLLBACK:
        return key_hints["change.rollback"], "roll back the rest"
    return key_hints["run.step"], "try again"


def _keys(*pairs: tuple[str, str]) -> Line:
    spans: list[Span] = []
    for key, label in pairs:
        spans += [Span("   "), Span(key, "accent"), Span(f" {label}", "dim")]
    return tuple(spans)


def log_file() -> str:
    """Return the path of the log file, if logging has one."""
    for handler in logging.getLogger("hitl_tui").handlers:
        if isinstance(handler, logging.FileHandler):
            return handler.baseFilename.replace(str(home_directory()), "~", 1)
    return "the log file"


def failure_lines(session: ViewSession, key_hints: Mapping[str, str], width: int) -> tuple[Line, ...]:
    """Describe a failed node at its step: what went wrong, and the keys to continue."""
    error = session.view.error
    if error is None:
        return ()
    lines: list[Line] = [(untrusted(error.title, "error"),)]
    texts: tuple[tuple[str, Role], ...] = (_why(error), "plain"), (error.hint, "dim")
    for text, role in texts:
        for row in sanitise(text).split("\n")[:12] if text else ():
            lines += wrapped(row, max(width, 12), role) or [()]
    tried = f"attempt {error.attempt}; nothing of it was saved" if error.node else "saved steps are kept"
    lines += [*_dim(tried, width), _keys(_again(session, key_hints))[1:]]
    if error.node:
        lines += [
            _keys(
                (key_hints["change.edit"], f"edit {sanitise_line(error.channel, 40) or 'the state'} first")
            )[1:],
            _keys((key_hints["change.fork"], "fork from an earlier step"))[1:],
        ]
    lines += [*_dim(f"details are in {log_file()}", width), ()]
    return tuple(lines)


def _dim(text: str, width: int) -> list[Line]:
    return wrapped(sanitise_line(text, _SAID), max(width, 12), "dim")
