"""`read`: a text of a thread, rendered, with its changes and what became of earlier comments."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import complete_thread
from hitl_tui.cli.output import emit, say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.view.session import ViewSession

_WIDEST = 100
"""Cells from which notes would be beside the text; on paper they are below their paragraphs."""


@click.command()
@click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.argument("channel", required=False, default="")
@click.option("--source", is_flag=True, help="Print the text as it is, not rendered.")
@on_thread(acts=True)
async def read(opened: OpenThread, *, place: str, channel: str, source: bool) -> ExitCode:
    """Read a text, rendered, with its changes and comments.

    Without CHANNEL, it is the text that the waiting request is about. Changes are marked since you last read
    it, else since its last version. Comments on the last version follow their passages, which are changed,
    unchanged or gone.

        hitl-tui read r1
        hitl-tui read r1@3 draft --json
    """
    from hitl_tui.cli.inputs import split_place
    from hitl_tui.cli.reports import ReadDocument, ReadHeading
    from hitl_tui.config import looked_file
    from hitl_tui.view.reading import Looked, load_reading, pages_of, reading_lines
    from hitl_tui.view.session import ViewSession

    thread, step = split_place(opened.store, place)
    session = await ViewSession.open(opened.hub, await opened.reading(thread))
    if step is not None:
        session.move_to((session.thread_id, step))
        await session.load_shown()
    request = session.request if step is None else None
    chosen = channel or (request.subject if request is not None else None) or ""
    _check(session, chosen)
    about_it = request is not None and request.subject == chosen
    looked = None if opened.as_json else Looked(looked_file())
    reviewer = opened.settings.reviewer
    reading = await load_reading(session, chosen, request if about_it else None, reviewer, looked)
    if not opened.as_json:
        width = min(shutil.get_terminal_size().columns, _WIDEST)
        say(*reading_lines(reading, width, source=source))
        return ExitCode.DONE
    pages = pages_of(reading, _WIDEST, source=source)
    emit(
        ReadDocument(
            thread=session.thread_id,
            step=reading.step,
            channel=chosen,
            version=reading.version,
            headings=tuple(ReadHeading(heading.level, heading.text) for heading in pages.headings),
            changes=len(pages.change_rows),
            since=reading.baselines[0].since if reading.baselines else "",
            comments=reading.earlier,
        )
    )
    return ExitCode.DONE


def _check(session: ViewSession, channel: str) -> None:
    names = ", ".join(session.step_view.values)
    if not channel:
        raise UsageError("no request waits about a text", f"name a channel: {names}")
    if channel not in session.step_view.values:
        raise UsageError(f"there is no channel {channel!r}", f"channels: {names}")
