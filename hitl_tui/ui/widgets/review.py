"""The review card: what is asked, about what, the allowed answers, a reason; and seconds to take it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from hitl_tui.engine.records import Request
from hitl_tui.errors import AnswerRefused, HitlError, UsageError
from hitl_tui.ui.decision import Decision
from hitl_tui.ui.keys import written
from hitl_tui.ui.session import Session
from hitl_tui.ui.widgets.card_text import card_lines
from hitl_tui.ui.widgets.choices import Choices, Option
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.reason import ReasonField
from hitl_tui.ui.wrap import wrap_line
from hitl_tui.view.answers import choice_answer, value_answer, wants_text
from hitl_tui.view.review import ChoiceView, ReviewCard, Version, review_card
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, untrusted

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen

GRACE: Final = 0.5
UNDO: Final = 4.0
_TICK: Final = 0.1
_SMALL: Final = 26
State = Literal["grace", "open", "confirm", "sending", "sent"]


class ReviewPane(Vertical):
    """Deaf for `GRACE` seconds after it appears; an answer leaves it `UNDO` seconds after it was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,shift+tab", "type_reason", "Reason", show=False),
        Binding("slash", "type_reason('card.reason')", "Reason", show=False, id="card.reason"),
    ]

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(id="card")
        self.clock = clock
        self.state: State = "grace"
        self.decision: Decision | None = None
        self._session: Session | None = None
        self._request: Request | None = None
        self._card: ReviewCard | None = None
        self._actor = ""
        self._due = 0.0
        self._wanted: ChoiceView | None = None
        self._problem = ""
        self._ways: dict[str, str] = {}
        self._wrapped_for = 0

    def compose(self) -> ComposeResult:
        """Words, reason, choices, and a line about what happens next."""
        yield LineView("card-text")
        yield LineView("card-label")
        yield ReasonField("reason")
        yield Choices(name="card-choices")
        yield LineView("card-note")

    def on_mount(self) -> None:
        """Look at the clock ten times a second while something is due."""
        for name in ("#card-label", "#card-note"):
            self.query_one(name, LineView).can_focus = False
        self.set_interval(_TICK, self._tick)
        self.border_title = Content("Your decision")
        if self._request is not None:
            self._begin()

    @property
    def run_screen(self) -> RunScreen:
        """The screen it is part of."""
        return cast("RunScreen", self.screen)

    @property
    def unsent(self) -> str:
        """The decision that could still be taken back, in words."""
        return self.decision.label if self.decision is not None and self.state == "sending" else ""

    @property
    def unapplied(self) -> tuple[str, str]:
        """The words typed so far, and what to call them; "" for nothing."""
        return self.reason, f"what you wrote about {self._request.title!r}" if self._request else ""

    @property
    def reason(self) -> str:
        """The words typed so far."""
        return self.query_one(ReasonField).text.strip()

    def show_request(self, session: Session, request: Request, actor: str) -> None:
        """Ask this."""
        same = self._request is not None and self._request.id == request.id
        self._session, self._request, self._actor = session, request, actor
        if self.is_mounted:
            if not same:
                self.query_one(ReasonField).text = ""
            self._begin()

    def follow(self, session: Session, request: Request) -> None:
        """The thread has moved: ask the next request, or the same one about its new step."""
        known = self._request
        if known is not None and (known.id, known.step, known.votes) == (
            request.id,
            request.step,
            request.votes,
        ):
            return
        taken_back = self.unsent
        self.take_back()
        self.show_request(session, request, self._actor)
        if taken_back:
            self._problem = "what you decided about has changed, so the decision was not sent"

    def _begin(self) -> None:
        self.state, self.decision, self._wanted = "grace", None, None
        self._problem = ""
        self._ways = {}
        self._due = self.clock() + GRACE
        self._make_card(None, None)
        self.query_one(Choices).focus()
        self._show_state()
        self.call_after_refresh(self._lay_out)
        self.run_worker(self._load(), group="card", exclusive=True, exit_on_error=False)

    def _make_card(self, version: Version | None, previous: Version | None) -> None:
        session, request = self._session, self._request
        assert session is not None
        assert request is not None
        self._card = review_card(
            request, session.view, session.view.values, version=version, previous=previous
        )
        pending = session.view.progress.pending
        place = next((index for index, one in enumerate(pending, 1) if one.id == request.id), 1)
        bound = untrusted(self._card.bound).text
        self.border_subtitle = Content(f"{place} of {len(pending)} · {bound}" if len(pending) > 1 else bound)
        self._lay_out()

    async def _load(self) -> None:
        """Fetch what the subject was before, and where each answer would lead."""
        session, request = self._session, self._request
        if session is None or request is None:
            return
        if request.subject:
            found = await session.versions(request.subject, request.step, 2)
            versions = [Version(step, who, value) for step, who, value in found] + [None, None]
            if request is self._request:
                self._make_card(versions[0], versions[1])
        for choice in self._card.choices if self._card else ():
            try:
                answer = choice_answer(choice, "…" if choice.text == "required" else "")
                preview = await session.driver.preview({}, answer=(request.id, answer))
            except HitlError:
                continue
            if preview.next_node:
                self._ways[choice.id] = f"→ {preview.next_node}"
        if request is self._request and self.state in ("grace", "open"):
            self._show_state()

    def _lay_out(self) -> None:
        """Wrap the words for the width, and give them what height the rest leaves."""
        card = self._card
        text = self.query_one("#card-text", LineView)
        if card is None:
            return
        self._wrapped_for = text.scrollable_content_region.width
        text.show(card_lines(card, max(self._wrapped_for, 20)))
        small = self.size.height < _SMALL
        self.set_class(small, "-small")
        fixed = (
            (2 if small else 4) + 1 + len(self.query_one(Choices).options or "12345") + (2 if small else 4)
        )
        free = max(self.size.height - fixed, 3)
        text.styles.height = min(len(text.lines), free)
        label = self.query_one("#card-label", LineView)
        label.show([(Span(self._label(), "dim"),)])
        self.call_after_refresh(self._lay_out_again)

    def _lay_out_again(self) -> None:
        """Laying out may itself have changed the room there is."""
        if self.query_one("#card-text", LineView).scrollable_content_region.width != self._wrapped_for:
            self._lay_out()

    def _label(self) -> str:
        request = self._request
        if request is not None and not request.choices:
            return "Your answer (tab)" if wants_text(request.schema) else "Your answer as JSON (tab)"
        return "Your reason (tab), it goes into the log"

    def on_resize(self, event: events.Resize) -> None:
        """Wrap anew."""
        self._lay_out()

    def _show_state(self) -> None:
        choices, card = self.query_one(Choices), self._card
        if card is None:
            return
        if self.state == "sending":
            keys = self.run_screen.keymap.bindings["card.undo"] or ("",)
            options = [
                Option("_undo", keys[0], "take it back", also=keys[1:]),
                Option("_now", "enter", "send it now"),
            ]
            choices.set_options(options)
            choices.cursor_row = None
        elif self.state in ("grace", "open", "confirm"):
            options = self._options(card)
            cursor = next((i for i, one in enumerate(options) if self._is_cursor(one)), 0)
            choices.set_options(options, cursor)
        choices.arm(self.state in ("open", "confirm", "sending"))
        self._show_note()

    def _is_cursor(self, option: Option) -> bool:
        wanted = self._wanted.id if self._wanted else None
        return option.id == wanted if wanted else option.key == "enter"

    def _options(self, card: ReviewCard) -> list[Option]:
        options = []
        for choice in card.choices:
            way = self._ways.get(choice.id, "")
            key, also = ("enter", (choice.key,)) if choice.recommended else (choice.key, ())
            options.append(Option(choice.id, key, choice.label, way, also))
        if not card.choices:
            options.append(Option("_free", "enter", "send the answer"))
        can_edit = self._session is not None and self._session.view.capabilities.can_edit
        if card.request.subject and can_edit:
            taken = {choice.key for choice in card.choices}
            keys = self.run_screen.keymap.bindings["card.edit"]
            if not taken & set(map(written, keys)):
                what = sanitise_line(card.request.subject, 40)
                options.append(Option("_edit", keys[0] if keys else "", f"edit {what} first", also=keys[1:]))
        options.append(Option("_later", "escape", "decide later, it stays waiting"))
        return options

    def _show_note(self) -> None:
        note = self.query_one("#card-note", LineView)
        width = max(note.scrollable_content_region.width, 20)
        lines: list[Line] = []
        if self._problem:
            lines = [(untrusted(row, "error"),) for row in wrap_line(self._problem, width)]
        elif self.state == "grace":
            lines = [(Span("a moment to read: keys listen in half a second", "dim"),)]
        elif self.state == "confirm" and self.decision:
            lines = [(untrusted(f"high risk: press again for “{self.decision.label}”", "accent"),)]
        elif self.state == "sending" and self.decision:
            left = max(1, round(self._due - self.clock() + 0.49))
            lines = [(untrusted(f"sending “{self.decision.label}” in {left}…", "accent"),)]
        elif self.state == "sent":
            lines = [(Span("sent", "dim"),)]
        elif self._card and self._card.high_risk:
            lines = [(Span("high risk: an answer wants a second key press", "accent"),)]
        else:
            lines = [(Span(f"as {self._actor}; can be taken back for {UNDO:.0f} s", "dim"),)]
        if lines != list(note.lines):
            note.show(lines)
            note.styles.height = len(lines) + 1

    def _tick(self) -> None:
        if self.state == "grace" and self.clock() >= self._due:
            self.state = "open"
            self._show_state()
        elif self.state == "sending":
            if self.clock() >= self._due:
                self._send()
            else:
                self._show_note()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key of the reason does nothing where it was given none."""
        return not parameters or bool(self.run_screen.keymap.bindings[str(parameters[0])])

    def action_type_reason(self, action_id: str = "") -> None:
        """Type a reason, or the answer."""
        self.query_one(ReasonField).focus()

    def take_back(self) -> None:
        """Don't send; the words stay."""
        if self.state in ("sending", "confirm"):
            self.state, self.decision = "open", None
            self._show_state()

    @on(ReasonField.Left)
    def _reason_left(self) -> None:
        self.query_one(Choices).focus()
        if self.state == "open":
            self._show_state()

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        event.stop()
        match event.option.id:
            case "_undo":
                self.take_back()
            case "_now":
                if self.clock() >= self._due - UNDO + GRACE:
                    self._send()
            case "_later":
                self.run_screen.close_card()
            case "_edit":
                if self._request is not None and self._request.subject:
                    self.run_screen.edit_channel(self._request.subject)
            case "_free":
                self._decide_freely()
            case chosen:
                self._decide(chosen)

    def _decide(self, chosen: str) -> None:
        card = self._card
        choice = next((one for one in card.choices if one.id == chosen), None) if card else None
        if card is None or choice is None:
            return
        if choice.text == "required" and not self.reason:
            self._wanted = choice
            self._problem = ""
            self.query_one(ReasonField).focus()
            self._show_state()
            self.query_one("#card-note", LineView).show(
                [
                    (
                        untrusted(
                            f"write what to change; enter, then enter again for “{choice.label}”", "accent"
                        ),
                    )
                ]
            )
            return
        self._prepare(choice.label, choice_answer(choice, self.reason))

    def _decide_freely(self) -> None:
        assert self._request is not None
        try:
            answer = value_answer(self._request, self.reason)
        except UsageError as error:
            self._problem = f"{error.message}; {error.hint}"
            self._show_note()
            return
        self._prepare("the answer", answer, with_note=False)

    def _prepare(self, label: str, answer: Any, *, with_note: bool = True) -> None:
        """Choose an answer; a high-risk one must be chosen twice.  Then the seconds to take it back begin."""
        card = self._card
        assert card is not None
        note = (self.reason or None) if with_note else None
        decision = Decision(card.request, label, answer, note, card.seen)
        self._problem = ""
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

    async def _answer(self, decision: Decision) -> None:
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
            self._problem = f"not accepted: {title}{error.message}{hint}"
            self._show_state()
            return
        await self.run_screen.after_answer(session)
