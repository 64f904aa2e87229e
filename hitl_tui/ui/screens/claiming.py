"""Whose it is to decide what waits: claiming it, taking it over from somebody, passing it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from textual.app import App

from hitl_tui.engine.commands import Claim, Command, HandOver, Unclaim
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.threads import Presence
from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.queue import left_words
from hitl_tui.view.sanitise import sanitise_line


def claim(
    app: App[Any],
    request: Request,
    own: Claim,
    execute: Callable[[Command[Any]], object],
    *,
    standing: Presence | None,
    now: int,
) -> None:
    """Claim a request, or give it back; from somebody else after asking.

    Args:
        own: the claim that there shall be.
        standing: the one that there is.
    """
    if standing is None:
        execute(own)
        return
    if standing.actor == own.actor:
        execute(Unclaim(request.id, own.actor))
        return

    def answered(answer: DialogResult | None) -> None:
        if answer is not None:
            execute(replace(own, take_over=standing.actor, note=answer.fields["why"].strip() or None))

    who = sanitise_line(standing.actor, 80)
    text = [
        sanitise_line(request.title, 200),
        f"{who} has claimed it, {left_words(standing, now)}. That you take it over is logged.",
    ]
    # The way back comes first, so that enter alone takes nothing from anybody.
    options = [
        Option("back", "ask.back", "leave it to them"),
        Option("take", "t", f"take it over from {who}"),
    ]
    app.push_screen(Dialog("Take it over?", text, options, [DialogField("why", "why")]), answered)


def ask_hand_over(
    app: App[Any], request: Request, actor: str, seen: bytes, hand: Callable[[HandOver], object]
) -> None:
    """Ask to whom a request is passed on, and why.

    Args:
        seen: the hash of the state that is on screen.
        hand: carries it out.
    """

    def answered(answer: DialogResult | None) -> None:
        if answer is not None:
            to, note = answer.fields["to"].strip().removeprefix("@"), answer.fields["why"].strip()
            if to:
                hand(HandOver(request.id, request.step, to, actor, note or None, seen))
            else:
                app.notify("give a name: who gets it?", markup=False, severity="warning")

    text = [
        sanitise_line(request.title, 200),
        "It becomes theirs. Others who may answer still can.",
    ]
    if request.reviewers:
        text.append(f"Reviewers: {sanitise_line(', '.join(request.reviewers), 200)}")
    fields = [DialogField("to", "to (name)"), DialogField("why", "note for them")]
    options = [Option("hand", "h", "hand it over"), BACK]
    app.push_screen(Dialog("Hand over", text, options, fields), answered)
