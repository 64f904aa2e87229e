"""The one place that turns a failure into text on stderr and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click

from hitl_tui.cli.streams import give_up_output, output_failure
from hitl_tui.drivers.node_streams import output_kept, own_err
from hitl_tui.errors import ExitCode, HitlError

_OURS = f"{Path(__file__).resolve().parent.parent}{os.sep}"
INTERRUPTED = 130
"""Exit code that shells report for a program ended by ctrl+c."""


def guarded(command: Callable[[], object], arguments: Sequence[str] = ()) -> int:
    """Run a command; return its exit code and never let a traceback out.

    Args:
        arguments: the typed arguments: if they contain `--json`, even a parse error is a document.
    """
    try:
        result = command()
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.ClickException as wrong:
        if "--json" in arguments:
            _emit_usage(wrong)
        _say(_words_of(wrong))
        return wrong.exit_code
    except (click.Abort, KeyboardInterrupt):
        _say("stopped")
        return INTERRUPTED
    except HitlError as error:
        report(error)
        return int(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe has gone: it has read enough.
        give_up_output()
        return int(ExitCode.DONE)
    except OSError as error:
        if failed := output_failure(error):
            give_up_output()
            report(failed)
        elif error.filename is not None and error.strerror:
            # A file that the user named, or one in the place of ours: no bug in either case.
            report(HitlError(f"{error.filename} can't be used: {error.strerror}", _details_of(error)))
        else:
            _unexpected(error)
        return int(ExitCode.FAILED)
    except Exception as error:
        _unexpected(error)
        return int(ExitCode.FAILED)
    return int(result) if isinstance(result, int) else int(ExitCode.DONE)


def report(error: HitlError) -> None:
    """Print on stderr what went wrong and how to fix it."""
    _say(f"hitl-tui: {error.title}: {error.message}")
    for part in (error.details, error.hint):
        if part:
            _say("\n".join(f"  {line}" for line in part.splitlines()))


def print_warning(  # noqa: PLR0917  (as Python calls it)
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning on stderr, as `warnings.showwarning` does; a line of our code would help nobody."""
    ours = filename.startswith(_OURS)
    text = f"{'hitl-tui' if ours else f'{filename}, line {lineno}'}: warning: {message}"
    if output_kept() and not ours:
        print(text, file=sys.stderr)
    else:
        _say(text)


def _words_of(wrong: click.ClickException) -> str:
    """Return Click's own message; it quotes the arguments."""
    words = io.StringIO()
    wrong.show(file=words)
    return words.getvalue().rstrip("\n")


def _emit_usage(wrong: click.ClickException) -> None:
    """Emit the document that the command itself could not: it was never called."""
    from hitl_tui.cli.documents import error_document
    from hitl_tui.cli.output import emit
    from hitl_tui.errors import UsageError

    context = getattr(wrong, "ctx", None)
    emit(error_document(UsageError(wrong.format_message(), context.get_usage() if context else "")))


def _details_of(error: OSError) -> str:
    from hitl_tui.cli.logs import write_crash

    return write_crash(error).removeprefix("this is a bug; ")


def _unexpected(error: Exception) -> None:
    from hitl_tui.cli.logs import write_crash

    _say(f"hitl-tui: unexpected {type(error).__name__}: {error}")
    _say(f"  {write_crash(error)}")


def _say(text: str) -> None:
    from hitl_tui.view.sanitise import sanitise

    # If stderr can't be written either, only the exit code is left.
    with suppress(OSError):
        click.echo(sanitise(text), file=own_err())
