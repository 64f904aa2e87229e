"""`resume`: go on with a thread that is in a store."""

from __future__ import annotations

import click

from hitl_tui.cli.opening import Target
from hitl_tui.cli.options import building_options, complete_thread
from hitl_tui.cli.run_options import RunOptions, run_options
from hitl_tui.cli.storage import open_existing
from hitl_tui.cli.which_thread import find_thread


@click.command()
@click.argument("thread", required=False, shell_complete=complete_thread)
@building_options
@run_options
def resume(*, thread: str | None, how: RunOptions) -> int:
    """Go on with a thread where it stopped.

    Without THREAD the one that waits for a human and changed last, or else the last unfinished one.
    With --headless, or --json, it runs without a screen until something waits, fails or ends; a
    request that waits goes on waiting: `answer` answers it.
    """
    return how.run(how.settings(), open_existing, lambda opened: Target(find_thread(opened, thread)))
