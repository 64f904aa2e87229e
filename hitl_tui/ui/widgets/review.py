"""The review card: what is asked, about what, the allowed answers, a form to fill in, a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from hitl_tui.engine.records import Request
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.ui.composing import Composing
from hitl_tui.ui.keys import written
from hitl_tui.ui.session import Session
from hitl_tui.ui.widgets.card_options import answer_label, card_options, sending_options
from hitl_tui.ui.widgets.card_text import card_lines
from hitl_tui.ui.widgets.choices import Choices, Option
from hitl_tui.ui.widgets.form import AnswerForm
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.reason import ReasonField
from hitl_tui.ui.widgets.sending import GRACE, UNDO, SendingPane
from hitl_tui.view.answers import choice_answer, value_answer, wants_text
from hitl_tui.view.asking import EDIT
from hitl_tui.view.form import mismatch
from hitl_tui.view.review import ChoiceView, Version, review_card
from hitl_tui.view.spans import Line, Span, untrusted

_SMALL: Final = 26


class ReviewPane(SendingPane):
    """Asks one request at a time; typing never decides."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,shift+tab", "type_reason", "Reason", show=False),
        Binding("slash", "type_reason('card.reason')", "Reason", show=False, id="card.reason"),
        Binding("greater_than_sign", "other('card.next')", "Next", show=False, id="card.next"),
        Binding("less_than_sign", "other('card.previous')", "Previous", show=False, id="card.previous"),
    ]

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._request: Request | None = None
        self._making: Composing | None = None
        self._versions: tuple[Version | None, Version | None] = (None, None)
        self._wanted: ChoiceView | None = None
        self._ways: dict[str, str] = {}
        self._wrapped_for = 0

    def compose(self) -> ComposeResult:
        """Words, reason, choices, and a line about what happens next."""
        yield LineView("card-text")
        yield LineView("card-label")
        yield AnswerForm()
        yield ReasonField("reason")
        yield Choices(name="card-choices")
        yield LineView("card-note")

    def on_mount(self) -> None:
        """Look at the clock ten times a second while something is due."""
        for name in ("#card-label", "#card-note"):
            self.query_one(name, LineView).can_focus = False
        self.begin_ticking()
        self.border_title = Content("Your decision")
        if self._request is not None:
            self._begin()

    @property
    def unapplied(self) -> tuple[str, str]:
        """What was typed so far, and what to call it; "" for nothing."""
        form = self.query_one(AnswerForm)
        typed = "\n".join(f"{'.'.join(path)}: {text}" for path, text in form.texts.items())
        words = "\n".join(part for part in (typed if form.changed else "", self.reason) if part)
        return words, f"what you wrote about {self._request.title!r}" if self._request else ""

    @property
    def request_id(self) -> str:
        """The request it asks about, "" for none."""
        return self._request.id if self._request else ""

    @property
    def reason(self) -> str:
        """The words typed so far."""
        return self.query_one(ReasonField).text.strip()

    def show_request(self, session: Session, request: Request, actor: str) -> None:
        """Ask this."""
        known, making = self._request, self._making
        same = known is not None and known.id == request.id
        self._session, self._request, self._actor = session, request, actor
        if making is not None and known is not None and same and known.payload == request.payload:
            making.request = request
        else:
            self._making = Composing(request)
        if self.is_mounted:
            if not same:
                self.query_one(ReasonField).text = ""
                self.since = ()
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
        taken_back, refused = self.unsent, self.refused if known and known.id == request.id else ""
        self.take_back()
        self.show_request(session, request, self._actor)
        if taken_back:
            refused = "what you decided about has changed, so the decision was not sent"
        self._problem = self.refused = refused
        if taken_back and known is not None:
            self.run_worker(self.say_since(session, known), group="since", exit_on_error=False)

    def _show_since(self, lines: tuple[Line, ...]) -> None:
        if self.since != lines:
            self.since = lines
            self._lay_out()
            self.query_one("#card-text", LineView).scroll_home(animate=False)

    def _begin(self) -> None:
        self.state, self.decision, self._wanted = "grace", None, None
        self._problem = ""
        self._ways = {}
        self._due = self.clock() + GRACE
        self._versions = (None, None)
        self._make_card()
        self.query_one(Choices).focus()
        self._show_state()
        self.run_worker(self._load(), group="card", exclusive=True, exit_on_error=False)

    @property
    def making(self) -> Composing:
        """The answer as it is made up."""
        assert self._making is not None
        return self._making

    def _make_card(self) -> None:
        session, request = self._session, self._request
        assert session is not None
        assert request is not None
        version, previous = self._versions
        self._card = review_card(
            request, session.view, session.view.values, version=version, previous=previous,
            decided=self.making.labels,
        )  # fmt: skip
        waiting = [one.id for one in session.requests]
        bound = untrusted(self._card.bound).text
        if len(waiting) > 1 and request.id in waiting:
            keys = self.run_screen.keymap.bindings["card.next"]
            way = f", {written(keys[0])} next" if keys else ""
            bound = f"{waiting.index(request.id) + 1} of {len(waiting)}{way} · {bound}"
        self.border_subtitle = Content(bound)
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
                self._versions = (versions[0], versions[1])
                self._make_card()
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
        if card is None or not self.size.height:
            return
        self._wrapped_for = text.scrollable_content_region.width
        text.show(card_lines(card, max(self._wrapped_for, 20), self.since))
        small = self.size.height < _SMALL
        self.set_class(small, "-small")
        making = self.making
        self.query_one(AnswerForm).show_form(making.form)
        self.set_class(making.form is not None, "-form")
        document = making.edited or (making.request.kind == "edit" and not making.request.choices)
        self.query_one(ReasonField).display = making.form is None and not document
        fixed = (
            (2 if small else 4) + 1 + len(self.query_one(Choices).options or "12345") + (2 if small else 4)
        )
        free = max(self.size.height - fixed, 3)
        if making.form is not None:
            free = max(free // 3, free - 3 * len(making.form.fields), 2)
        text.styles.height = min(len(text.lines), free)
        label = self.query_one("#card-label", LineView)
        label.show([(Span(answer_label(making.request, making), "dim"),)])

    @on(LineView.Widened, "#card-text")
    def _lay_out_again(self, event: LineView.Widened) -> None:
        """Laying out may itself have changed the room there is."""
        if event.view.scrollable_content_region.width != self._wrapped_for:
            self._lay_out()

    def on_resize(self, event: events.Resize) -> None:
        """Wrap anew."""
        self._lay_out()

    def _show_state(self) -> None:
        choices, card = self.query_one(Choices), self._card
        if card is None:
            return
        if self.state == "sending":
            choices.set_options(sending_options(self.run_screen.keymap.bindings["card.undo"]))
            choices.cursor_row = None
        elif self.state in ("grace", "open", "confirm"):
            can = self._session.view.capabilities if self._session else None
            edit_keys = self.run_screen.keymap.bindings["card.edit"]
            options = card_options(
                self.making, self._ways, edit_keys, can_edit=can is not None and can.can_edit
            )
            cursor = next((i for i, one in enumerate(options) if self._is_cursor(one)), 0)
            choices.set_options(options, cursor)
        choices.arm(self.state in ("open", "confirm", "sending"))
        self._show_note()
        self.run_screen.show_bars()

    def _is_cursor(self, option: Option) -> bool:
        wanted = self._wanted.id if self._wanted else None
        return option.id == wanted if wanted else option.key == "enter"

    def focus_choices(self) -> None:
        """Back to what can be chosen."""
        self.query_one(Choices).focus()

    def opened(self) -> None:
        """The keys listen: a form is typed in at once."""
        if self.making.form is not None and self.query_one(Choices).has_focus:
            self.query_one(AnswerForm).focus_first()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key of the reason does nothing where it was given none."""
        return (
            action == "scroll_text"
            or not parameters
            or bool(self.run_screen.keymap.bindings[str(parameters[0])])
        )

    def action_type_reason(self, action_id: str = "") -> None:
        """Type a reason, or the answer."""
        if self.making.form is not None:
            self.query_one(AnswerForm).focus_first()
        else:
            self.query_one(ReasonField).focus()

    def action_other(self, action_id: str) -> None:
        """Ask about another of the requests that wait."""
        self.run_screen.other_request(1 if action_id == "card.next" else -1)

    @on(AnswerForm.Left)
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
            case "_edit" | "_inside":
                self.run_screen.do_card_edit()
            case "_free":
                self._decide_freely()
            case "_form" | "_take":
                self._decide_by_form()
            case "_write":
                self._write()
            case "_value" | "_same":
                self._prepare("your version", self.making.value)
            case "_untake" | "_back":
                if event.option.id == "_back":
                    self.making.back()
                self.making.end_edit()
                self._made_more()
            case chosen:
                self._decide(chosen)

    def _decide(self, chosen: str) -> None:
        card, making = self._card, self.making
        choice = next((one for one in making.choices if one.id == chosen), None)
        if card is None or choice is None:
            return
        if making.action is not None and choice.id == EDIT:
            if making.begin_edit():
                self._made_more()
                self.query_one(AnswerForm).focus_first()
            else:
                self._write()
            return
        if choice.text == "required" and not self.reason:
            self._wanted = choice
            self._problem = ""
            self.query_one(ReasonField).focus()
            self._show_state()
            wanted = f"write what to change; enter, then enter again for “{choice.label}”"
            self.query_one("#card-note", LineView).show([(untrusted(wanted, "accent"),)])
            return
        if making.action is not None:
            self._decided(choice)
        else:
            self._prepare(choice.label, choice_answer(choice, self.reason), self.reason)

    def _decided(self, choice: ChoiceView, args: Any = None) -> None:
        """One action is decided about: ask about the next one, or send the decisions on all."""
        whole = self.making.decide(choice, self.reason, args)
        if whole is None:
            self.query_one(ReasonField).text = ""
            self._made_more()
        else:
            note = self.reason if len(self.making.actions) == 1 else ""
            self._made_more()
            self._prepare(*whole, note)

    def _made_more(self) -> None:
        """The answer stands elsewhere now: other words, other choices."""
        self._wanted, self._problem = None, ""
        self._make_card()
        self._show_state()
        self.query_one(Choices).focus()

    def _decide_by_form(self) -> None:
        reading = self.query_one(AnswerForm).read()
        whole = reading.problems.get((), "")
        self._problem = f"the answer: {whole}" if whole else ""
        if reading.problems:
            self._show_note()
        elif self.making.editing:
            self._decided(self._edit_choice(), reading.value)
        else:
            self._prepare("the answer", reading.value)

    def _edit_choice(self) -> ChoiceView:
        return next(one for one in self.making.choices if one.id == EDIT)

    def _write(self) -> None:
        """Open the editor on the answer."""
        from hitl_tui.ui.screens.value import ValueScreen

        making, request = self.making, self.making.request

        def written_(found: tuple[Any] | None) -> None:
            if found is None:
                making.end_edit()
            elif making.editing:
                self._decided(self._edit_choice(), found[0])
                return
            else:
                making.take(found[0])
            self._made_more()

        schema = None if making.editing else request.schema
        is_text = not making.editing and wants_text(request.schema)
        self.app.push_screen(ValueScreen(request.title, making.value, schema, text=is_text), written_)

    def _decide_freely(self) -> None:
        assert self._request is not None
        try:
            answer = value_answer(self._request, self.reason)
        except UsageError as error:
            self._problem = f"{error.message}; {error.hint}"
            self._show_note()
            return
        wrong = mismatch(self._request.schema or {}, answer)
        if wrong:
            self._problem = wrong
            self._show_note()
            return
        self._prepare("the answer", answer)
