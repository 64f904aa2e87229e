"""`copy`: a value, its changes, a review card or the command that answers, to the clipboard or stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import thread_argument
from hitl_tui.cli.output import emit, say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.drivers.node_streams import own_out
from hitl_tui.errors import ExitCode, HitlError

if TYPE_CHECKING:
    from hitl_tui.view.copying import TextKind


@click.command()
@thread_argument
@click.argument("what", type=click.Choice(["value", "diff", "card", "command"]))
@click.argument("channel", required=False, default="")
@on_thread()
async def copy(opened: OpenThread, *, thread: str, what: TextKind, channel: str) -> ExitCode:
    """Copy something of a thread, as `y` on screen does.

    value: the whole value of CHANNEL, or of what the request is about. diff: what changed in it since its
    last version. card: the review card as Markdown. command: the shell command that answers it. On a
    terminal it goes to the clipboard; through a pipe or with --json it is printed. Private values are
    masked.
    """
    from hitl_tui.cli.reports import CopyDocument
    from hitl_tui.view import clipboard
    from hitl_tui.view.copying import copied_text
    from hitl_tui.view.session import ViewSession

    driver = await opened.reading(thread)
    session = await ViewSession.open(opened.hub, driver)
    text = await copied_text(session, what, channel)
    if opened.as_json:
        head = session.view.progress.head
        emit(CopyDocument(thread=driver.thread_id, step=head, what=what, text=text))
    elif own_out().isatty():
        said = await clipboard.copy(clipboard.to_own_terminal(), text)
        if not said.done:
            raise HitlError(said.words, "write it through a pipe: `hitl-tui copy … | less`")
        say(said.words)
    else:
        say(text.rstrip("\n"))
    return ExitCode.DONE
