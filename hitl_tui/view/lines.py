"""Makes lines for people, on a terminal or in a pipe: content comes after a bar, never at the left edge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hitl_tui.drivers.node_streams import own_out, terminal_columns
from hitl_tui.view.cells import cells, cut, narrow, thread_name
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, plain_text

_NAME = 60
BAR = "  | "
_NARROWEST = 20


def content(lines: Iterable[str], limit: int | None = None, whole: str = "") -> list[str]:
    """Return sanitised lines after the bar, in the width of the terminal.

    Args:
        limit: the maximum number; an extra line then says that there is more.
        whole: where to see all lines, "" if nowhere.
    """
    return _behind_bar(map(sanitise, lines), limit, whole)


def _behind_bar(lines: Iterable[str], limit: int | None, whole: str) -> list[str]:
    more = f"(more: {whole})" if whole else "(more)"
    room = columns_beside(len(BAR))
    shown: list[str] = []
    for line in lines:
        for row in (line,) if _fits(line, room) else _rows(line, room):
            if limit is not None and len(shown) == limit:
                return [*shown, f"{BAR}{more}"]
            shown.append(BAR + row)
    return shown


def spans(lines: Iterable[Line], limit: int | None = None, whole: str = "") -> list[str]:
    """Return lines of spans after the bar; the rest as for `content`."""
    return _behind_bar(map(plain_text, lines), limit, whole)  # spans are already sanitised


def columns_beside(taken: int) -> int:
    """Return the cells that are left for content in a row of the terminal."""
    return max(terminal_columns(100) - taken - 1, _NARROWEST)


def on_terminal(line: str, taken: int) -> list[str]:
    """Return a line unchanged for a file or pipe; in rows for a terminal, which would wrap it to its edge."""
    return list(rows(line, columns_beside(taken))) if own_out().isatty() else [line]


def rows(line: str, room: int) -> Iterator[str]:
    """Return a line in rows of so many cells, cut between words if possible."""
    return _rows(sanitise(line), room)


def _fits(clean: str, room: int) -> bool:
    return len(clean) <= room and clean.isprintable() and (clean.isascii() or cells(clean) <= room)


def _rows(clean: str, room: int) -> Iterator[str]:
    for part in clean.replace("\t", "    ").split("\n"):
        at, is_narrow = 0, narrow(part)
        # A cell holds at most a character and four marks, so a row is within this window.
        while len(part) - at > room if is_narrow else cells(part[at : at + 6 * room]) > room:
            # Longer by a space, so that `cut` also cuts a text that is just one cell too wide.
            row = part[at : at + room] if is_narrow else cut(part[at : at + 6 * room] + " ", room + 1, "")
            space = row.rstrip().rfind(" ")
            row = row[: space + 1] if space > room // 2 else row
            yield row.rstrip() if row.strip() else row
            at += len(row)
            # The space between two words is at the end of a row or left out.
            if not row.endswith(" ") and part[at : at + 1] == " " and part[at + 1 : at + 2].strip():
                at += 1
        yield part[at:]


def name(text: str) -> str:
    """Sanitise a foreign name for use in our lines."""
    return sanitise_line(text, _NAME)


def short_id(thread_id: str) -> str:
    """Shorten a thread's id for use in our lines; keeps both ends."""
    return thread_name(thread_id, _NAME)


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends with another closing mark."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def numbered(lines: Iterable[str]) -> list[str]:
    """Number lines, so that a person can name them."""
    return [f"{number}. {line}" for number, line in enumerate(lines, 1)]
