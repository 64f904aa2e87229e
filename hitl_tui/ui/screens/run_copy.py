"""Taking something of the run screen along: what, by a letter, then onto the clipboard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.ui.screens.dialogs import Dialog, DialogResult
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.copying import (
    answer_command,
    became,
    card_copy,
    copy_options,
    diff_copy,
    show_command,
    value_copy,
)
from hitl_tui.view.revision import Revision
from hitl_tui.view.session import ViewSession
from hitl_tui.view.value_lines import ValuePart

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen


def ask_copy(screen: RunScreen, session: ViewSession) -> None:
    """Ask what to copy: of the selected channel, of the card, or the command that does the same."""
    channel = screen.query_one(ChannelsPane).selected
    hidden = session.step_view.values.get(channel) is PRIVATE
    options = copy_options(card=screen.review.card_open, changed=bool(channel) and not hidden)
    part = None if hidden else _part(screen, channel)
    where = channel + (part.path if part is not None else "")

    def answered(answer: DialogResult | None) -> None:
        if answer is not None:
            screen.command(partial(_copy, screen, session, channel, answer.id))

    screen.app.push_screen(Dialog("Copy", [f"Of {where}:" if channel else "What?"], options), answered)


async def _copy(screen: RunScreen, session: ViewSession, channel: str, kind: str) -> None:
    text = await _text(screen, session, channel, kind)
    if text:
        screen.app.copy_to_clipboard(text)
    else:
        screen.show_message("there is nothing to copy")


async def _text(screen: RunScreen, session: ViewSession, channel: str, kind: str) -> str:
    step, card = session.step_view, screen.review.card
    value = step.values.get(channel)
    part = None if value is PRIVATE else _part(screen, channel)
    if kind == "path":
        return channel + (part.path if part is not None else "")
    if kind == "diff":
        revised = await _revised(screen, session, channel)
        return diff_copy(revised) if revised is not None else ""
    if kind == "card" and card is not None:
        review = card.review
        return card_copy(review.card, step.values.get(review.request.subject or ""))
    if kind == "command":
        if screen.review.card_open and card is not None:
            review = card.review
            return answer_command(session.thread_id, review.request, review.chosen, review.reason)
        return show_command(session.thread_id, step.step)
    return value_copy(part.value if part is not None else value)


def _part(screen: RunScreen, channel: str) -> ValuePart | None:
    """The part of a channel's value that the cursor is on."""
    pane = screen.query_one(ValuePane)
    return pane.part if pane.text is not None and pane.text.channel == channel else None


async def _revised(screen: RunScreen, session: ViewSession, channel: str) -> Revision | None:
    shown = screen.query_one(ValuePane).text
    if shown is not None and shown.channel == channel and shown.revision is not None:
        return shown.revision
    return await became(session, channel, session.step_view.step)
