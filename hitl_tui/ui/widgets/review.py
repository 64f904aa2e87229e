"""The review card: what is asked, about what, the allowed answers, a form to fill in, a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from hitl_tui.engine.log.requests import Request
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.widgets.answering import AnsweringPane
from hitl_tui.ui.widgets.card_options import answer_label, card_options, over_options, sending_options
from hitl_tui.ui.widgets.card_text import card_lines
from hitl_tui.ui.widgets.choices import Choices, Option
from hitl_tui.ui.widgets.form import AnswerForm
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.reason import ReasonField
from hitl_tui.ui.widgets.sending import GRACE
from hitl_tui.view.card import AnswerDraft, Version, choice_answer, how_it_went, review_card
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import Session
from hitl_tui.view.spans import Line, Span, untrusted

_SMALL: Final = 26
_NODE: Final = 40
_DECIDED: Final = ("confirm", "sending", "sent")


class ReviewPane(AnsweringPane):
    """Asks one request at a time; typing never decides."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("card.reason", "type_reason('card.reason')"),
        bound("card.next", "other('card.next')"),
        bound("card.previous", "other('card.previous')"),
    ]

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._versions: tuple[Version | None, Version | None] = (None, None)
        self._ways: dict[str, str] = {}
        self._wrapped_for = 0
        self._aside: dict[tuple[str, str], tuple[AnswerDraft, str]] = {}

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

    def show_request(self, session: Session, request: Request, actor: str) -> None:
        """Ask this."""
        known, draft = self._request, self._draft
        same = known is not None and known.id == request.id
        words = ""
        if not same:
            self._put_aside()
            draft, words = self._aside.pop((session.thread_id, request.id), (None, ""))
            known = draft.request if draft is not None else None
        self._session, self._request, self._actor = session, request, actor
        if draft is not None and known is not None and known.payload == request.payload:
            draft.request = request
        else:
            draft = AnswerDraft(request)
        self._draft = draft
        if self.is_mounted:
            if not same:
                self.query_one(ReasonField).text = words
                self.since = ()
            self._begin()

    def _put_aside(self) -> None:
        """Keep what is made up for the request that is left: whoever comes back to it finds it."""
        if self._request is None or self._session is None or self._draft is None or self.state == "sent":
            return
        self._draft.form = self.query_one(AnswerForm).as_typed
        self._aside[self._session.thread_id, self._request.id] = (self._draft, self.reason)

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

    def outlives(self, session: Session) -> bool:
        """Whether the card stays though its request has gone: it holds what was refused, or words unsent."""
        if self.state != "over" and (self.unsent or self.unapplied[0] or self.refused):
            self._over(session)
        return self.state == "over"

    def _over(self, session: Session) -> None:
        """The request has gone, and what was made up was not sent: leave it to be read and copied."""
        why = (
            self.refused or f"{how_it_went(session.view.ledger, self.request_id)}; nothing of yours was sent"
        )
        self.state, self.decision, self._wanted = "over", None, None
        self._problem = f"{why}. Your words stay here until you close this"
        self._show_state()
        self.query_one(Choices).focus()

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
        self.app.call_later(self.run_screen.review.arrived)  # behind the focus, which comes that way, too
        self.run_worker(self._load(), group="card", exclusive=True, exit_on_error=False)

    def _make_card(self) -> None:
        session, request = self._session, self._request
        assert session is not None
        assert request is not None
        version, previous = self._versions
        self._card = review_card(
            request, session.view, session.view.values, version=version, previous=previous,
            decided=self.draft.outgoing if self.state in _DECIDED else self.draft.labels,
            edited=(self.draft.value,) if self.draft.edited and not self.draft.editing else None,
        )  # fmt: skip
        waiting = [one.id for one in session.requests]
        bound = untrusted(self._card.bound).text
        if len(waiting) > 1 and request.id in waiting:
            key = self.run_screen.keymap.shown("card.next")
            way = f", {key} next" if key else ""
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
            versions = [Version(point.step, who, value) for point, who, value in found.found] + [None, None]
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
                self._ways[choice.id] = f"→ {sanitise_line(preview.next_node, _NODE)}"
        if request is self._request and self.state in ("grace", "open"):
            self._show_state()

    def _lay_out(self) -> None:
        """Wrap the words for the width, and give them what height the rest leaves."""
        card = self._card
        text = self.query_one("#card-text", LineView)
        if card is None or not self.size.height:
            return
        self._wrapped_for = text.scrollable_content_region.width
        text.show(card_lines(card, max(self._wrapped_for, 20), (*self.above, *self.since)))
        small = self.size.height < _SMALL
        self.set_class(small, "-small")
        draft = self.draft
        self.query_one(AnswerForm).show_form(draft.form)
        self.set_class(draft.form is not None, "-form")
        document = draft.edited or (draft.request.kind == "edit" and not draft.request.choices)
        self.query_one(ReasonField).display = draft.form is None and not document
        options = len(self.query_one(Choices).options or "12345")
        fixed = (2 if small else 4) + 1 + options + self.note_rows + (1 if small else 3)
        free = max(self.size.height - fixed, 3)
        if draft.form is not None:
            free = max(free // 3, free - 3 * len(draft.form.fields), 2)
        text.styles.height = min(len(text.lines), free)
        label = self.query_one("#card-label", LineView)
        key = self.run_screen.keymap.shown("card.reason")
        label.show([(Span(answer_label(draft.request, draft, key), "dim"),)])
        self._show_note()

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
        if self.draft.actions:  # what is about to be sent is what is shown
            self._make_card()
        if self.state == "sending":
            choices.set_options(sending_options())
            choices.cursor_row = None
        elif self.state == "over":
            choices.set_options(over_options())
        elif self.state in ("grace", "open", "confirm"):
            can = self._session.view.capabilities if self._session else None
            edit_keys = self.run_screen.keymap.bindings["card.edit"]
            options = card_options(
                self.draft, self._ways, edit_keys, can_edit=can is not None and can.can_edit
            )
            cursor = next((i for i, one in enumerate(options) if self._is_cursor(one)), 0)
            choices.set_options(options, cursor)
        choices.arm(self.state in ("open", "confirm", "sending", "over"))
        self._show_note()
        self.run_screen.show_bars()

    def _is_cursor(self, option: Option) -> bool:
        wanted = self._wanted.id if self._wanted else None
        return option.id == wanted if wanted else option.key == "ask.take"

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """What closes the card leads from a text back to the choices."""
        typing = isinstance(event.widget, ReasonField) or self.query_one(AnswerForm) in event.widget.ancestors
        self.query_one(Choices).heed_elsewhere(() if typing else ("app.back",))

    def focus_choices(self) -> None:
        """Back to what can be chosen."""
        self.query_one(Choices).focus()

    def opened(self) -> None:
        """The keys listen: a form is typed in at once."""
        if self.draft.form is not None and self.query_one(Choices).has_focus:
            self.query_one(AnswerForm).focus_first()

    def on_key(self, event: events.Key) -> None:
        """What was typed on before the card could be read is no decision, and nothing else either.

        The moment to read begins anew with it: the end of a sentence decides no more than its beginning.
        """
        bindings = self.run_screen.keymap.bindings
        harmless = any(event.key in bindings[name] for name in ("card.reason", "card.next", "card.previous"))
        takes = event.is_printable or event.key in bindings["ask.take"]
        typing = not self.query_one(Choices).has_focus
        if self.state in ("grace", "sent") and takes and not typing and not harmless:
            event.stop()
            event.prevent_default()
            self._due = self.clock() + GRACE

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key of the reason does nothing where it was given none."""
        return (
            action == "scroll_text"
            or not parameters
            or bool(self.run_screen.keymap.bindings[str(parameters[0])])
        )

    def action_type_reason(self, action_id: str) -> None:
        """Type a reason, or the answer."""
        if self.draft.form is not None:
            self.query_one(AnswerForm).focus_first()
        else:
            self.query_one(ReasonField).focus()

    def action_other(self, action_id: str) -> None:
        """Ask about another of the requests that wait."""
        self.run_screen.review.other_request(1 if action_id == "card.next" else -1)

    @on(AnswerForm.Left)
    @on(ReasonField.Left)
    def _reason_left(self) -> None:
        self.query_one(Choices).focus()
        if self.state == "open":
            self._show_state()

    def _made_more(self) -> None:
        """The answer stands elsewhere now: other words, other choices."""
        self._wanted, self._problem = None, ""
        self._make_card()
        self._show_state()
        self.query_one(Choices).focus()
