"""A question about a list of things: what would be done with each, one key to do it, and the outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.gate import refuse
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import Work
from hitl_tui.verbs.actions import ALL_BY_ID
from hitl_tui.verbs.conversation import Ask, AskChoice, AskReply, BeginEach, Listing, ListRow, Show
from hitl_tui.view.cells import cells, cut, thread_name
from hitl_tui.view.format import capital
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, trusted

_SHOWS_EVERY: Final = 0.2
_NAME: Final = 200
_OUTCOME: Final = 40
"""Cells for the outcomes, before texts are cut."""
_LOOKS: Final[Mapping[str, tuple[str, Role]]] = {
    "would": ("  ", "plain"),
    "left": ("– ", "dim"),
    "done": ("✔ ", "ok"),
    "refused": ("✗ ", "error"),
}


class ListQuestion(OverlayScreen):
    """Stays open from the first look at the list to its outcome; a person closes it.

    Args:
        title: what is being looked for.
        doing: said meanwhile.

    Attributes:
        stops: whether no more of them are to be begun.
        left: done once it is closed.
        listing: what is shown.
    """

    STAYS = True
    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "batch.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("ask.take", "take"),
        bound("ask.back", "back"),
        bound("batch.answer", "choose('batch.answer')"),
        bound("batch.words", "words"),
        bound("batch.undo", "undo"),
    ]
    AUTO_FOCUS = "#batch"

    def __init__(self, title: str, doing: str = "") -> None:
        super().__init__()
        self._title, self._doing = title, doing
        self._ask: Ask | None = None
        self._over = False
        self.stops = False
        self.listing: Listing | None = None
        self._reply: asyncio.Future[AskReply | None] | None = None
        self._held: asyncio.Future[None] | None = None
        self.left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def compose(self) -> ComposeResult:
        yield LineView("batch", sanitise_line(self._title, _NAME))
        yield SafeInput(id="words")
        yield KeysBar()

    def on_mount(self) -> None:
        """Show what is being done."""
        self._show()

    def on_unmount(self) -> None:
        """Leave whatever is asked without an answer."""
        self.stops = True
        if not self.left.done():
            self.left.set_result(None)
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(None)
        self._begin()

    async def ask(self, ask: Ask) -> AskReply | None:
        """Show a question; return the answer, None if it is left without one."""
        if self.left.done():
            return None
        self._reply = asyncio.get_running_loop().create_future()
        if ask.fields:
            field = self.query_one(Input)
            field.value, field.border_title = ask.fields[0].value, ask.fields[0].label
        self._put(ask)
        return await self._reply

    async def follow(self, each: BeginEach, work: Work) -> None:
        """Show how far some work is, until it has ended."""
        self._ask, self._doing = None, each.text
        if each.undo_seconds:
            await self._hold(each.undo_seconds)
        shown = self.set_interval(_SHOWS_EVERY, lambda: self._show_result(each.so_far()))
        self._show_result(each.so_far())
        try:
            await work()
        finally:
            shown.stop()
            self._doing = ""

    async def _hold(self, seconds: float) -> None:
        """Wait before anything is sent: a person can undo all of it, or begin at once."""
        self._held = asyncio.get_running_loop().create_future()
        doing, key = self._doing, keymap_of(self.app).shown("batch.undo")
        for left in range(round(seconds), 0, -1):
            self._doing = f"sending in {left} s; {key} undoes it"
            self._show()
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await asyncio.shield(self._held)
                    break
        self._begin()
        self._held, self._doing = None, doing
        self._show()

    def _begin(self) -> None:
        if self._held is not None and not self._held.done():
            self._held.set_result(None)

    async def closed(self) -> Listing | None:
        """Wait until the person has closed it; at once if there is nothing to read."""
        if self._over:
            await self.left
        return self.listing

    def finish(self, show: Show) -> None:
        """Show what came of it; only closing is left to do."""
        self._over, self._doing = True, ""
        self._show_result(show)

    def _put(self, ask: Ask) -> None:
        self._ask, self._doing = ask, ""
        self._title, self.listing = ask.title, ask.listing
        self._show()

    def _show_result(self, show: Show) -> None:
        """Show the outcomes so far, if there are new ones."""
        if (self._title, self.listing) != (show.text, show.listing) or self._over:
            self._title, self.listing = show.text, show.listing
            self._show()

    def _show(self) -> None:
        if not self.display or self.left.done():  # while it is being removed, its parts go one by one
            return
        view = self.query_one("#batch", LineView)
        doing = "stopping after those that are being sent…" if self.stops else self._doing
        view.set_titles(sanitise_line(self._title, _NAME), doing if self._doing else "")
        width = max(view.scrollable_content_region.width, self.size.width - 4)
        view.show(list(_lines(self.listing.rows if self.listing is not None else (), width)))
        field = self.query_one(Input)
        field.set_class(not (field.has_focus or field.value) or not self._has_field, "-empty")
        self._show_keys()

    @property
    def _has_field(self) -> bool:
        return self._ask is not None and bool(self._ask.fields)

    @property
    def _first(self) -> AskChoice | None:
        """The choice that enter takes."""
        choices = self._ask.choices if self._ask is not None else ()
        return next((choice for choice in choices if not choice.action), None)

    def _show_keys(self) -> None:
        footer = self.query_one(KeysBar)
        if self.focused is self.query_one(Input):
            entries = [("enter ask.back", "To the list")]
        elif self._ask is None:
            back = ("ask.take ask.back", "Back") if self._over else ("ask.back", "Back")
            held = [("batch.undo", "Undo"), ("ask.take", "Send now")] if self._held is not None else []
            entries = held or [("ask.back", "Stop") if self._doing and self.listing is not None else back]
        else:
            entries = [
                (choice.action or "ask.take", sanitise_line(capital(choice.label), 30))
                for choice in self._ask.choices
            ]
            entries += [("batch.words", ALL_BY_ID["batch.words"].label)] if self._has_field else []
            entries.append(("ask.back", "Back"))
        if footer.entries != entries:
            footer.entries = entries
            footer.refresh()

    def on_resize(self) -> None:
        """Cut the rows for the width."""
        self.call_after_refresh(self._show)

    def on_descendant_focus(self) -> None:
        """Show the keys of the widget with the focus."""
        self._show()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        """Show the question as it is with this text."""
        ask = self._ask
        if ask is not None and ask.anew is not None and ask.fields:
            self._put(ask.anew({ask.fields[0].name: event.value}))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.query_one("#batch").focus()

    def action_words(self) -> None:
        """Move to the field."""
        if self._has_field:
            field = self.query_one(Input)
            field.remove_class("-empty")
            field.focus()

    def action_choose(self, action: str) -> None:
        """Take the choice with the keys of an action."""
        choices = self._ask.choices if self._ask is not None else ()
        for choice in choices:
            if choice.action == action:
                self._answer(choice)

    def action_back(self) -> None:
        """Go from the field to the list, or from there back; while something is done, stop after that."""
        if self.focused is self.query_one(Input):
            self.query_one("#batch").focus()
        elif self._ask is None and self._doing and self.listing is not None:
            self.stops = True
            self._begin()
            self._show()
        else:
            self.dismiss(None)

    def action_undo(self) -> None:
        """Send nothing of what could still be undone."""
        if self._held is not None:
            self.stops = True
            self._begin()

    def action_take(self) -> None:
        """Do what is listed; once that is done, go back."""
        if self._over:
            self.dismiss(None)
        elif self._held is not None:
            if not refuse(self.app):
                self._begin()
        elif (choice := self._first) is not None and not refuse(self.app):
            self._answer(choice)

    def _answer(self, choice: AskChoice) -> None:
        if self._ask is not None and self._reply is not None and not self._reply.done():
            texts = {field.name: self.query_one(Input).value for field in self._ask.fields}
            self._reply.set_result(AskReply(choice.name, texts))


def _lines(rows: Sequence[ListRow], width: int) -> Iterator[Line]:
    """Return what something would be done with, then the rest with the reasons."""
    name = _widest((thread_name(row.name, _NAME) for row in rows), width // 4)
    what = _widest((_outcome(row) for row in rows), _OUTCOME)
    text = _widest((row.text for row in rows), max(width - name - what - 8, 16))
    left = False
    for row in rows:
        if row.state == "left" and not left:
            left = True
            yield ()
            yield (trusted("Left for you", "title"),)
        sign, role = _LOOKS[row.state]
        yield (
            Span(sign, role),
            Span(_fit(thread_name(row.name, _NAME), name), "name"),
            Span(_fit(row.text, text), "dim" if row.state == "left" else "plain"),
            Span(_outcome(row), "warning" if row.state == "refused" else role),
        )


def _outcome(row: ListRow) -> str:
    return sanitise_line(row.outcome, _NAME)


def _widest(texts: Iterable[str], most: int) -> int:
    return min(max(map(cells, texts), default=0), most)


def _fit(text: str, width: int) -> str:
    """Return a text in a number of cells, and a gap."""
    shown = cut(text, width)
    return shown + " " * (width - cells(shown) + 2)
