"""Output of commands on stdout: text for people, always sanitised, or documents for programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from hitl_tui.cli.streams import give_up_output
from hitl_tui.drivers.node_streams import keep_output, own_err, own_out
from hitl_tui.errors import HitlError

if TYPE_CHECKING:
    from hitl_tui.view.shapes import Document

R = TypeVar("R")
_UNICODE = ("utf-8", "utf8")
_documents = False
"""Whether stdout is for documents alone."""


def say(*lines: str, err: bool = False) -> None:
    """Print lines for people, sanitised so that no content can control a terminal."""
    from hitl_tui.view.glyphs import plain_chars
    from hitl_tui.view.sanitise import sanitise

    if not lines:
        return
    out = own_err() if err or _documents else own_out()
    encoding = (out.encoding or "utf-8").lower()
    safe = sanitise("\n".join(lines))
    _write(out, f"{safe if encoding in _UNICODE else plain_chars(safe, encoding)}\n")


def _write(out: TextIO, text: str) -> None:
    """Write and flush; if the reader has gone, as `head` does, the command still does all its work."""
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        give_up_output(out)


def keep_nodes_apart() -> None:
    """Before user code is loaded or run: separate its output from ours.

    The output of a node becomes an event; the rest is printed on stderr after the bar.
    """
    from hitl_tui.view.lines import content

    keep_output(lambda lines: say(*content(lines), err=True))


_BAR_AFTER = 0.5
"""Seconds until a running operation gets a progress bar."""


@contextmanager
def progress(label: str, *, as_json: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function to show progress on stderr as (done, in all); None if nobody would see it."""
    err = own_err()
    if as_json or not err.isatty():
        yield None
        return
    started, bar = time.monotonic(), None
    with ExitStack() as stack:

        def far(done: int, of: int) -> None:
            nonlocal bar
            if bar is None and time.monotonic() - started >= _BAR_AFTER:
                bar = stack.enter_context(click.progressbar(length=of, label=label, file=err))
            if bar is not None:
                bar.length = of
                bar.update(done - bar.pos)

        yield far
        if bar is not None:
            bar.update((bar.length or bar.pos) - bar.pos)


def one_line(text: str, limit: int = 200) -> str:
    """Return somebody's text as a cell of a table."""
    from hitl_tui.view.sanitise import sanitise_line

    return sanitise_line(text, limit)


def emit(*documents: Document, secret: bool = False) -> None:
    """Write documents, a line of JSON each, and flush: the reader of a stream wants them at once.

    Args:
        secret: whether the graph has private channels, so that hashes of whole states are left out.
    """
    from hitl_tui.cli.documents import shown, to_lines

    _write(own_out(), to_lines([shown(document, secret=secret) for document in documents]))


@contextmanager
def documents_alone() -> Iterator[None]:
    """Keep everything but documents from stdout: text goes to stderr."""
    global _documents  # noqa: PLW0603  (the process has one stdout)
    before, _documents = _documents, True
    try:
        yield
    finally:
        _documents = before


def table(rows: Iterable[Sequence[str]], give: Sequence[int] = (), prose: bool = False) -> list[str]:
    """Return rows as lines, each column as wide as its widest cell; cells are one line each.

    A pipe gets complete cells; on a terminal that is too narrow some are cut.

    Args:
        give: the columns that can be cut, the first one first.
        prose: whether the last column is prose, wrapped under itself.
    """
    from hitl_tui.view.cells import GAP, columns, fitted
    from hitl_tui.view.lines import columns_beside, on_terminal

    given = [tuple(row) for row in rows]
    widths = columns(given, give, columns_beside(-1) if own_out().isatty() else None)
    lines: list[str] = []
    for row in given:
        shown = [fitted(cell, most) for cell, most in zip(row, widths, strict=True)]
        if prose:
            start = sum(widths[:-1]) + GAP * (len(widths) - 1)
            first, *more = on_terminal(row[-1], start - 1)
            shown[-1:] = [first]
            lines += [(" " * GAP).join(shown).rstrip(), *(" " * start + part for part in more)]
        else:
            lines.append((" " * GAP).join(shown).rstrip())
    return lines


def json_option(command: Callable[..., R]) -> Callable[..., R]:
    """Add `--json`; an error is then a document too, besides its text on stderr."""

    @click.option("--json", "as_json", is_flag=True, help="Write JSON; `hitl-tui schema json` describes it.")
    @wraps(command)
    def with_json(*args: Any, as_json: bool, **options: Any) -> R:
        with documents_alone() if as_json else nullcontext():
            try:
                return command(*args, as_json=as_json, **options)
            except HitlError as error:
                if as_json:
                    from hitl_tui.cli.documents import error_document

                    emit(error_document(error))
                raise

    return with_json
