"""From a decision to its being sent: a moment to read, a second key at high risk, seconds to take it back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast

from textual.binding import BindingType
from textual.containers import Vertical

from hitl_tui.engine.log.requests import Request
from hitl_tui.errors import AnswerRefused, HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.widgets.card_text import note_lines
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.view.card import Decision, ReviewCard
from hitl_tui.view.session import Session
from hitl_tui.view.spans import Line

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen

GRACE: Final = 0.5
UNDO: Final = 4.0
_TICK: Final = 0.1
_NOTE_PART: Final = 4
"""The note gets at most this part of the height."""
State = Literal["grace", "open", "confirm", "sending", "sent", "over"]


class SendingPane(Vertical):
    """Deaf for `GRACE` seconds after it appears; an answer leaves it `UNDO` seconds after it was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("list.page_up", "scroll_text(-1)"),
        bound("list.page_down", "scroll_text(1)"),
    ]

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(id="card")
        self.clock = clock
        self.state: State = "grace"
        self.decision: Decision | None = None
        self._session: Session | None = None
        self._card: ReviewCard | None = None
        self._actor = ""
        self._due = 0.0
        self._problem = ""
        self.refused = ""
        self.since: tuple[Line, ...] = ()
        self.above: tuple[Line, ...] = ()
        self.note_rows = 1

    def begin_ticking(self) -> None:
        """Look at the clock ten times a second while something is due."""
        self.set_interval(_TICK, self._tick)

    def opened(self) -> None:
        """Called when the moment to read is over."""

    @abstractmethod
    def _show_state(self) -> None:
        """Show what can be done in the state it is in."""

    def action_scroll_text(self, by: int) -> None:
        """Scroll what is asked, and what has changed."""
        text = self.query_one("#card-text", LineView)
        text.scroll_relative(y=by * max(text.size.height - 1, 1), animate=False)

    @abstractmethod
    def _show_since(self, lines: tuple[Line, ...]) -> None:
        """Show what has changed since the answer was made up, () for no longer."""

    @property
    def run_screen(self) -> RunScreen:
        """The screen it is part of."""
        return cast("RunScreen", self.screen)

    @property
    def unsent(self) -> str:
        """The decision that could still be taken back, in words."""
        return self.decision.label if self.decision is not None and self.state == "sending" else ""

    def _show_note(self) -> None:
        """Say below the choices what is to be said; what is too long for there stands above, in the text."""
        note = self.query_one("#card-note", LineView)
        width = note.scrollable_content_region.width
        words, role = self._note()
        lines = note_lines((words, role), width)
        above: tuple[Line, ...] = ()
        if len(lines) > max(2, self.size.height // _NOTE_PART):
            above = (*lines, ())
            lines = note_lines((f"see above ({self._scrolling}): {words}", role), width)[:1]
        if lines != list(note.lines):
            note.show(lines)
            note.styles.height = len(lines) + 1
        if (len(lines), above) != (self.note_rows, self.above):
            begun = above != self.above
            self.note_rows, self.above = len(lines), above
            self._lay_out()
            if begun:
                self.query_one("#card-text", LineView).scroll_home(animate=False)

    @property
    def _scrolling(self) -> str:
        """The keys that scroll the text."""
        keymap = self.run_screen.keymap
        return f"{keymap.shown('list.page_down')}, {keymap.shown('list.page_up')}"

    @abstractmethod
    def _lay_out(self) -> None:
        """Give the text what height the rest leaves."""

    def _note(self) -> tuple[str, str]:
        """What is said below, and its role."""
        label = self.decision.label if self.decision else ""
        if self._problem:
            return self._problem, "error"
        if self.state == "grace":
            return "a moment to read: keys listen in half a second", "dim"
        if self.state == "confirm":
            return f"high risk: press again for “{label}”", "accent"
        if self.state == "sending":
            return f"sending “{label}” in {max(1, round(self._due - self.clock() + 0.49))}…", "accent"
        if self.state == "sent":
            return "sent", "dim"
        if self._card and self._card.high_risk:
            return "high risk: wants a second key press", "accent"
        undo = self.run_screen.ways["card.undo"]
        return f"you decide as {self._actor}; {undo} takes it back within {UNDO:.0f} s", "dim"

    def _tick(self) -> None:
        if self.state == "grace" and self.clock() >= self._due:
            self.state = "open"
            self._show_state()
            self.opened()
        elif self.state == "sending":
            if self.clock() >= self._due:
                self._send()
            else:
                self._show_note()

    def take_back(self) -> None:
        """Don't send; the words stay."""
        if self.state in ("sending", "confirm"):
            self.state, self.decision = "open", None
            self._show_state()

    def _prepare(self, label: str, answer: Any, note: str = "") -> None:
        """Choose an answer; a high-risk one must be chosen twice.  Then the seconds to take it back begin."""
        card = self._card
        assert card is not None
        decision = Decision(card.request, label, answer, note or None, card.seen)
        self._problem = self.refused = ""
        self._show_since(())
        if card.high_risk and self.decision != decision:
            self.state, self.decision = "confirm", decision
        else:
            self.state, self.decision = "sending", decision
            self._due = self.clock() + UNDO
        self._show_state()

    def _send(self) -> None:
        self.state = "sent"
        self._show_note()
        assert self.decision is not None
        self.run_worker(self._answer(self.decision), group="answer", exit_on_error=False)

    async def send_at_once(self) -> bool:
        """Send what could still be taken back, without waiting longer; False where it was refused."""
        if self.state != "sending" or self.decision is None:
            return True
        self.state = "sent"
        return await self._answer(self.decision)

    async def _answer(self, decision: Decision) -> bool:
        """Whether it was accepted."""
        session = self._session
        assert session is not None
        request = decision.request
        try:
            await session.driver.answer(
                request.id, decision.answer, step=request.step, actor=self._actor, note=decision.note,
                seen=decision.seen,
            )  # fmt: skip
        except HitlError as error:
            self.state, self.decision = "open", None
            hint = f" — {error.hint}" if error.hint else ""
            title = "" if isinstance(error, AnswerRefused) else f"{error.title}: "
            self._problem = self.refused = f"not accepted: {title}{error.message}{hint}"
            self._show_state()
            if isinstance(error, AnswerRefused):
                await self.say_since(session, request)
                self.run_screen.review.words_back(session)
            return False
        await self.run_screen.stepping.after_answer(session)
        return True

    async def say_since(self, session: Session, request: Request) -> None:
        """Beside why an answer was refused: what has changed since the step it was bound to."""
        try:
            lines = await session.changed_since(request.step)
            words = f"what changed since stands above ({self._scrolling})" if lines else ""
        except HitlError as error:
            words, lines = f"what changed can't be told: {error.message}", ()
        card = self._card
        if self.refused and card is not None and card.request.id == request.id:
            self._problem = self.refused = f"{self.refused}; {words}" if words else self.refused
            self._show_since(lines)
            self._show_note()
