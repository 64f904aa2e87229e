"""Opens the reader over the run screen, and does what a person chose there."""

from __future__ import annotations

from functools import partial

from hitl_tui.engine.log.requests import Request
from hitl_tui.ui.screens.reader import ReaderHead, ReaderResult, ReaderScreen
from hitl_tui.ui.screens.run import RunScreen
from hitl_tui.ui.widgets.review import ReviewPane
from hitl_tui.view.queue import span_words
from hitl_tui.view.reading import Looked, ReadValue, load_reading, payload_reading
from hitl_tui.view.session import ViewSession


def open_reader(screen: RunScreen, session: ViewSession, selected: str) -> None:
    """Open the reader on what the card is about, else on the selected channel.

    If a request waits about that channel, its card opens below the reader, so that it can be answered from
    there.
    """
    asked = screen.asked_about
    by_hand = False
    if asked is not None and not session.is_past and (screen.card_open or asked.subject == selected):
        by_hand = not screen.card_open
        if by_hand:
            screen.open_card(asked, summoned=True)
        channel = asked.subject or (asked.title if asked.payload is not None else selected)
    else:
        asked, channel = None, selected
    show = partial(_show, screen, session, channel, asked, opened=by_hand)
    if by_hand:
        screen.call_after_refresh(show)
    else:
        show()


def _show(
    screen: RunScreen, session: ViewSession, channel: str, request: Request | None, *, opened: bool
) -> None:
    from hitl_tui.config import looked_file

    if not channel:
        return
    looked = Looked(looked_file())
    payload = request is not None and request.subject is None and request.payload is not None

    async def load() -> ReadValue:
        if payload and request is not None:
            return payload_reading(request, channel)
        return await load_reading(session, channel, request, screen.actor, looked)

    value = request.payload if payload and request is not None else session.step_view.values.get(channel)
    card = screen.card if request is not None and screen.card_open else None
    reader = ReaderScreen(
        channel, value, _head(screen, session, channel, request), load,
        card=card, keys=screen.keymap.bindings["card.read" if card else "look.read"],
    )  # fmt: skip

    def closed(result: ReaderResult | None) -> None:
        if card is not None:
            _after(screen, card, result or ReaderResult("close"), opened=opened)

    screen.app.push_screen(reader, closed)


def _head(screen: RunScreen, session: ViewSession, channel: str, request: Request | None) -> ReaderHead:
    graph, thread = session.view.graph.name, session.shown[0] if session.shown else session.thread_id
    due = ""
    if request is not None and request.deadline is not None:
        left = request.deadline - screen.now()
        due = f"due in {span_words(left)}" if left > 0 else "expired"
    title = request.title if request is not None else channel
    return ReaderHead(title, f"{thread} · {graph}", due, screen.place_in_queue, asks=request is not None)


def _after(screen: RunScreen, card: ReviewPane, result: ReaderResult, *, opened: bool) -> None:
    """Do what a person chose in the reader.

    A card that opened below the reader was not seen yet, so a choice only selects its answer there.
    """
    if not card.is_open:  # somebody else has answered meanwhile, and the screen said so
        return
    match result.action:
        case "choose" if opened:
            card.suggest(result.option, "")
            card.focus_choices()
            screen.show_message("read the card, then press the key again", severity="warning")
        case "choose":
            card.choose(result.option)
        case "edit":
            screen.edit_asked()
        case "card":
            card.focus_choices()
        case "close" if opened:
            screen.close_card()
        case "close":
            card.focus_choices()
