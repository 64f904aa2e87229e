"""`--record` and `--cassette`: model calls that are kept in a file, or answered from one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from hitl_tui.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def tape_options(command: F) -> F:
    """The two options, for commands that run nodes."""
    command = click.option(
        "--cassette", metavar="FILE", help="Answer model calls from FILE, and fail on any that is not in it."
    )(command)
    return click.option("--record", metavar="FILE", help="Keep every model call in FILE, without keys.")(
        command
    )


@contextmanager
def tape(record: str | None, cassette: str | None, *, shown: bool) -> Iterator[None]:
    """Let the agents of this process use the file that was named, if one was.

    Args:
        shown: somebody watches, so that what is served comes as fast as it did when it was recorded.

    Raises:
        UsageError: both are given, or the file can't be used.
    """
    if record and cassette:
        raise UsageError("--record and --cassette don't go together", "give one of them")
    if not record and not cassette:
        yield
        return
    from hitl_tui.agents.cassettes import cassette as use

    with use(record or cassette or "", record=bool(record), pace=1.0 if shown else 0.0):
        yield
