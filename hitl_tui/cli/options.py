"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from hitl_tui.cli.invocation import keep_stores


def options_as(name: str, kind: Any, *options: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator that passes several options to a command as one object.

    Args:
        name: the command's parameter that takes the object.
        kind: a named tuple with a field for each option.
        options: the decorators of the options, in the order in which `--help` shows them.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def gathered(**given: Any) -> Any:
            together = kind(**{field: given.pop(field) for field in kind._fields})
            return command(**given, **{name: together})

        for option in reversed(options):
            gathered = option(gathered)
        return gathered

    return decorate


def named_thread(_ctx: click.Context, _param: click.Parameter, given: str | None) -> str | None:
    """Return the given name of a thread; an empty one, as of an unset variable, names none."""
    if given is not None:
        from hitl_tui.engine.log.threads import check_thread_id
        from hitl_tui.errors import UsageError

        try:
            check_thread_id(given)
        except UsageError as error:
            raise click.BadParameter(error.message) from None
    return given


def complete_thread(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete names of threads of the named or configured store, except names a shell could misread."""
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.errors import HitlError

    store: Any = None
    try:
        store = open_existing(load_settings({"store": ctx.params.get("store")}))
        names = [summary.info.thread_id for summary in store.threads(incomplete, 100)]
    except HitlError:
        return []
    finally:
        if store is not None:
            store.close()
    return [name for name in names if name.startswith(incomplete) and _is_tame(name)]


def _is_tame(name: str) -> bool:
    return name.isascii() and all(char.isalnum() or char in "-_.@+" for char in name)


def _keep(ctx: click.Context, param: click.Parameter, given: Any) -> None:
    ctx.meta[f"hitl_tui.{param.name}"] = given


def trust_option(names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option that agrees to run a graph; `invocation.trusting` reads it.

    Args:
        names: the argument or option that names the graph.
    """
    return click.option(
        "--trust",
        is_flag=True,
        callback=_keep,
        expose_value=False,
        help=f"Run the graph that {names} names, though you have not run it yet.",
    )


def building_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that builds a thread's graph; `invocation` reads them."""
    command = trust_option("the thread's record")(command)
    return click.option(
        "--graph",
        "own_graph",
        metavar="GRAPH",
        callback=_keep,
        expose_value=False,
        help="The thread's graph, if its record does not say how to build it.",
    )(command)


_STORE: Final = (
    "Where threads are kept: sqlite:///FILE, files:DIR, postgresql://HOST/DATABASE, a path, memory:, "
    "or langgraph:GRAPH."
)
store_option = click.option("--store", metavar="URL", help=_STORE)
stores_option = click.option(
    "--store",
    metavar="URL",
    multiple=True,
    callback=keep_stores,
    help=f"{_STORE} Several times: one queue for several stores.",
)
stream_option = click.option(
    "--stream/--no-stream",
    default=None,
    callback=_keep,
    expose_value=False,
    help="Whether models of a LangGraph graph stream; by default the graph decides.",
)
server_option = click.option(
    "--server", metavar="URL", help="A server of LangGraph that has the graph, as http://localhost:2024."
)
durability_option = click.option(
    "--durability",
    metavar="WHICH",
    help="Which commits are on disk at once: decisions (the default), steps, or none.",
)
theme_option = click.option("--theme", metavar="NAME", help="The colours; `hitl-tui themes` lists them.")
reviewer_option = click.option(
    "--reviewer", "--as", "reviewer", metavar="NAME", help="Your name, kept with what you decide."
)
thread_option = click.option(
    "--thread", metavar="ID", callback=named_thread, help="Name of the thread; generated if left out."
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only show which nodes would run again, and what they used last time."
)
note_option = click.option("--note", metavar="TEXT", help="Why, for the record.")
plain_option = click.option(
    "--plain", is_flag=True, help="Plain text instead of a screen, for screen readers and pipes."
)
headless_option = click.option(
    "--headless", is_flag=True, help="Run without a screen until something waits, fails or ends."
)
on_busy_option = click.option(
    "--on-busy",
    metavar="HOW",
    help="If a server already runs the thread: reject (the default), enqueue, interrupt or rollback.",
)
break_option = click.option(
    "--break",
    "breaks",
    metavar="WHERE",
    multiple=True,
    help='Stop before a node, as "write: n > 2"; or "after NODE", "change CHANNEL", "tool [NAME]", "error"; '
    'with hit N or log "TEXT {n}" before the colon.',
)
kept_breaks_option = click.option(
    "--breakpoints",
    "kept_breaks",
    is_flag=True,
    help="Without a screen: also stop at the saved breakpoints of the graph.",
)
PACE: Final = click.FloatRange(0.25, 8)
"""Tape speeds; the presentation's keys also use the slowest and the fastest."""
record_screen_option = click.option(
    "--record-screen",
    type=click.Path(path_type=Path),
    metavar="FILE.cast",
    help="Record the screen as asciicast v3, with its pace.",
)
thread_argument = click.argument("thread", shell_complete=complete_thread)
