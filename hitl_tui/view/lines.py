"""Lines for people, on a terminal or in a pipe: content stands behind a bar, never at the left edge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hitl_tui.drivers.node_streams import own_out, terminal_columns
from hitl_tui.errors import UsageError
from hitl_tui.view.cells import cells, cut, narrow, thread_name
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, plain_text

_NAME = 60
BAR = "  | "
_NARROWEST = 20


def content(lines: Iterable[str], limit: int | None = None, whole: str = "") -> list[str]:
    """Sanitised lines behind the bar, in the width of the terminal.

    Args:
        limit: at most so many; a last one then says that there is more.
        whole: where to see all of it, "" where there is no such place.
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
    """Lines of spans behind the bar; the rest as for `content`."""
    return _behind_bar(map(plain_text, lines), limit, whole)  # what is in spans is harmless already


def columns_beside(taken: int) -> int:
    """The cells that are left for content in a row of the terminal."""
    return max(terminal_columns(100) - taken - 1, _NARROWEST)


def on_terminal(line: str, taken: int) -> list[str]:
    """A line as it is for a file or a pipe, and in rows for a terminal, which would wrap it to its edge."""
    return list(rows(line, columns_beside(taken))) if own_out().isatty() else [line]


def rows(line: str, room: int) -> Iterator[str]:
    """A line in rows of so many cells, cut between words where there are some."""
    return _rows(sanitise(line), room)


def _fits(clean: str, room: int) -> bool:
    return len(clean) <= room and clean.isprintable() and (clean.isascii() or cells(clean) <= room)


def _rows(clean: str, room: int) -> Iterator[str]:
    for part in clean.replace("\t", "    ").split("\n"):
        at, is_narrow = 0, narrow(part)
        # A cell holds at most a character and four marks, so a row is within this window.
        while len(part) - at > room if is_narrow else cells(part[at : at + 6 * room]) > room:
            # Longer by a space, so that `cut` has to cut it also where it is a cell too wide alone.
            row = part[at : at + room] if is_narrow else cut(part[at : at + 6 * room] + " ", room + 1, "")
            space = row.rstrip().rfind(" ")
            row = row[: space + 1] if space > room // 2 else row
            yield row.rstrip() if row.strip() else row
            at += len(row)
            # The space between two words is at the end of a row or nowhere.
            if not row.endswith(" ") and part[at : at + 1] == " " and part[at + 1 : at + 2].strip():
                at += 1
        yield part[at:]


def name(text: str) -> str:
    """Somebody else's word inside a line of ours."""
    return sanitise_line(text, _NAME)


def short_id(thread_id: str) -> str:
    """The id of a thread inside a line of ours, with both its ends."""
    return thread_name(thread_id, _NAME)


def split_words(typed: str) -> list[str]:
    """The words of a line, of which those in quotes may hold spaces, as "path=docs/* title='two words'".

    Raises:
        UsageError: a quotation mark is left open.
    """
    import shlex

    try:
        return shlex.split(typed)
    except ValueError as error:
        raise UsageError(f"it can't be read: {error}", "close the quotes") from None


def sentence(text: str) -> str:
    """A text with a full stop, where a question is not its end."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def numbered(lines: Iterable[str]) -> list[str]:
    """Lines with a number to name them by."""
    return [f"{number}. {line}" for number, line in enumerate(lines, 1)]
