"""Small dialogs over the run screen: a few sentences, sometimes a field or two, and a few answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import msgspec
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from hitl_tui.engine.commands import Run
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.gate import refuse
from hitl_tui.ui.screens.modal import Host, Modal
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.lines import ROLE_CLASSES, LineView
from hitl_tui.ui.widgets.safe_text import FieldArea, SafeInput
from hitl_tui.ui.work import Work
from hitl_tui.view.format import capital
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.rows import wrap_line
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span

if TYPE_CHECKING:
    from hitl_tui.engine.commands.command import DoubleTexting
    from hitl_tui.loading.trust import Question

_TEXT: Final = 60
_AROUND: Final = 6
_FIELD: Final = 3
_AREA: Final = 5
_REST: Final = 6
_LEAST: Final = 4
"""Rows of a field, of a long one, of all else around the text, and of the text at least."""
_LOOK_EVERY: Final = 0.25
_HEIGHTS: list[tuple[int, str]] = [(0, "-low"), (24, "-tall")]


class DialogField(msgspec.Struct, frozen=True):
    """Line to type in, or an area for `long` ones; an `optional` one does not get the focus first."""

    id: str
    label: str
    value: str = ""
    optional: bool = False
    long: bool = False


class DialogResult(msgspec.Struct, frozen=True):
    """The chosen answer, and the texts of the fields."""

    id: str
    fields: dict[str, str]


class LongField(FieldArea):
    """Field of several lines, in which enter moves on as in one of a single line."""

    BINDINGS: ClassVar[list[BindingType]] = [bound("form.done", "submit", priority=True)]

    class Submitted(Message):
        """Enter was pressed."""

    def action_submit(self) -> None:
        """Move on."""
        self.post_message(self.Submitted())


class Dialog(Modal[DialogResult | None]):
    """Dialog; esc always leaves it without doing anything."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss"]
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("ask.back", "dismiss_none")]
    AUTO_FOCUS = ""
    VERTICAL_BREAKPOINTS = _HEIGHTS

    def __init__(
        self, title: str, text: Sequence[str], options: Sequence[Option], fields: Sequence[DialogField] = ()
    ) -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._options = options
        self._fields = fields
        self._more: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = Content(sanitise(self._title, multiline=False))
            yield LineView("dialog-text")
            for field in self._fields:
                yield Labelled(field)
            yield Choices(self._options)

    def on_mount(self) -> None:
        """Focus the first required field, else the answers."""
        self._show_text()
        wanted = [field.id for field in self._fields if not field.optional]
        (self.query_one(f"#{wanted[0]}") if wanted else self.query_one(Choices)).focus()

    def say_more(self, sentences: Sequence[str]) -> None:
        """Add information that arrived after the question."""
        self._more = tuple(sentences)
        self._show_text()

    def _show_text(self) -> None:
        width = min(_TEXT, int(self.size.width * 0.96) - _AROUND)
        rows: list[Line] = [
            (Span(row),) for text in (*self._text, *self._more) for row in wrap_line(sanitise(text), width)
        ]
        # A long text scrolls in its place: the answers must stay in sight.
        fields = sum(_AREA if field.long else _FIELD for field in self._fields)
        room = self.size.height - _REST - fields - len(self._options)
        high = min(len(rows) + 1, max(_LEAST, room))
        for view in self.query("#dialog-text").results(
            LineView
        ):  # there is none while the dialog opens or closes
            view.show([*rows, ()])
            view.styles.height = high
            view.can_focus = high <= len(rows)
            view.styles.overflow_y = "auto" if view.can_focus else "hidden"

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Let enter take the first answer in the last field."""
        fields = self._entries
        last = bool(fields) and event.widget is fields[-1] and not self._way_back_first
        self.query_one(Choices).take_keys_from(("ask.back",), entered=0 if last else None)

    @property
    def _entries(self) -> list[SafeInput | LongField]:
        return [labelled.entry for labelled in self.query(Labelled)]

    @property
    def _way_back_first(self) -> bool:
        """Whether enter alone does nothing: from the last field it moves to the answers."""
        return self._options[0].key == "ask.back"

    def action_dismiss_none(self) -> None:
        """Leave without an answer."""
        self.dismiss(None)

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        if event.option.key == "ask.back":
            self.dismiss(None)
        else:
            self._answer(event.option.id)

    @on(Input.Submitted)
    @on(LongField.Submitted)
    def _submitted(self) -> None:
        """Move to the next field; in the last one enter takes the first answer."""
        if self.focused is not self._entries[-1] or self._way_back_first:
            self.focus_next()
        elif not refuse(self.app):
            self._answer(self._options[0].id)

    def _answer(self, option: str) -> None:
        self.dismiss(
            DialogResult(
                option,
                {
                    entry.id or "": entry.value if isinstance(entry, SafeInput) else entry.text
                    for entry in self._entries
                },
            )
        )


class Labelled(Vertical):
    """Field with its label above it."""

    def __init__(self, field: DialogField) -> None:
        super().__init__(classes="labelled")
        kind = LongField if field.long else SafeInput
        self.entry = kind(field.value, id=field.id)
        self.entry.border_title = Content(sanitise(field.label, multiline=False))

    def compose(self) -> ComposeResult:
        yield self.entry


def ask_double_texting(screen: Host, choose: Callable[[DoubleTexting], None]) -> None:
    """Ask what to do about the run that a server already has of a thread."""
    options = [
        Option("reject", "ask.back", "leave it", "nothing is run"),
        Option("enqueue", "w", "wait for it", "and continue after it"),
        Option("interrupt", "i", "interrupt it", "its saved steps are kept"),
        Option("rollback", "r", "roll it back", "its saved steps are deleted"),
    ]

    def answered(answer: DialogResult | None) -> None:
        if answer is not None:
            choose(cast("DoubleTexting", answer.id))

    text = ["The server already runs this thread: for somebody else, or since the connection was lost."]
    screen.app.push_screen(Dialog("The thread is busy", text, options), answered)


async def ask_to_repeat(screen: Host, session: ViewSession, action: str, run: Work) -> None:
    """Run again what failed or was stopped; if it has side effects, only after a confirmation.

    Args:
        action: the action whose key confirms it.
    """
    from hitl_tui.view.repeats import repeat_lines

    repeats = (await session.driver.preview(Run())).repeats
    if repeats is None or not repeats.outside:
        await run()
        return

    def answered(answer: DialogResult | None) -> None:
        if answer is not None and answer.id == "again" and session is screen.session:
            screen.command(run)

    options = [Option("again", action, "try it again"), BACK]
    screen.app.push_screen(Dialog("Try again", repeat_lines(repeats), options), answered)


class QuitDialog(Dialog):
    """Asks before the app is left, from any screen, and follows what happens meanwhile.

    Args:
        lost: returns a sentence for each thing that would be lost by leaving now.
        unsent: returns the decision that could be sent before leaving, "" for none.
    """

    def __init__(self, lost: Callable[[], Sequence[str]], unsent: Callable[[], str]) -> None:
        self._lost, self._unsent = lost, unsent
        self._options = self._keys_on()
        super().__init__("Quit?", self._sentences(), self._options)

    def on_mount(self) -> None:
        """Follow changes: a decision may be sent, or a run may end, while this asks."""
        self.set_interval(_LOOK_EVERY, self._look)

    def _sentences(self) -> list[str]:
        return [*self._lost()] or ["Committed steps are kept."]

    def _keys_on(self) -> list[Option]:
        options = [Option("back", "ask.back", "stay"), Option("leave", "q", "quit anyway", "so does ctrl+c")]
        return [*options, Option("send", "s", "send it and quit")] if self._unsent() else options

    def _look(self) -> None:
        sentences = self._sentences()
        if sentences != self._text:
            self._text = sentences
            self._show_text()
            options = self._keys_on()
            if len(options) != len(self._options):
                self._options = options
                self.query_one(Choices).set_options(options)

    def leave(self) -> None:
        """Leave, as the question is answered."""
        self.dismiss(DialogResult("leave", {}))


def ask_quit(
    app: App[Any],
    lost: Callable[[], Sequence[str]],
    unsent: Callable[[], str],
    leave: Callable[[bool], None],
) -> None:
    """Show what would be lost, and ask.

    Args:
        lost: returns a sentence for each thing that would be lost by leaving now.
        unsent: returns the decision that could still be sent, "" for none.
        leave: called with whether to send that decision first.
    """

    def answered(answer: DialogResult | None) -> None:
        if answer is not None:
            leave(answer.id == "send")

    app.push_screen(QuitDialog(lost, unsent), answered)


class TrustDialog(Dialog):
    """Asks whether a graph of a thread's record may run; closing it in any way means no."""

    def __init__(self, question: Question) -> None:
        options = [
            Option("back", "ask.back", "don't run it", "only view the thread"),
            Option("trust", "t", "trust it, and run it"),
        ]
        text = [f"{capital(question.why)}. It would run:", *question.lines]
        super().__init__("Trust this graph?", text, options)
        self.agreed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def settle(self, answer: DialogResult | None) -> None:
        """Take an answer."""
        if not self.agreed.done():
            self.agreed.set_result(answer is not None and answer.id == "trust")

    def on_unmount(self) -> None:
        """Answer no if it was removed without an answer."""
        self.settle(None)


async def ask_trust(app: App[Any], question: Question) -> bool:
    """Ask whether a graph may run, over any open screen."""
    dialog = TrustDialog(question)
    app.call_later(app.push_screen, dialog, dialog.settle)
    return await dialog.agreed


def ask_drop(screen: Screen[Any], what: str, drop: Callable[[], Any]) -> None:
    """Ask before dropping changes that were made on a screen.

    Args:
        what: a sentence about them.
        drop: called if the user agrees.
    """
    options = [Option("keep", "ask.back", "keep editing"), Option("drop", "d", "discard the changes")]

    def answered(answer: DialogResult | None) -> None:
        if answer is not None and answer.id == "drop":
            drop()

    screen.app.push_screen(Dialog("Discard the changes?", [what], options), answered)
