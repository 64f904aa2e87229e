"""Review card: the request, its subject, the allowed answers, a form to fill in, a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Protocol

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import TextArea

from hitl_tui.engine.commands import Answer, Command, LookAt, Run, Unclaim
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.gate import decides, gate_of, is_on_screen, rows_on_screen
from hitl_tui.ui.screens.modal import Severity
from hitl_tui.ui.terminal_input import is_burst
from hitl_tui.ui.textual_private import force_layout
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.form import AnswerForm, FieldBox
from hitl_tui.ui.widgets.lines import LineView, TextView
from hitl_tui.ui.widgets.safe_text import ReasonField
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.ui.work import start_work
from hitl_tui.view.card import ReviewCard, choice_answer, newest_versions
from hitl_tui.view.form import Reading
from hitl_tui.view.format import count
from hitl_tui.view.keymap import Option
from hitl_tui.view.presence import Attention, claim_of
from hitl_tui.view.review import Decision, Effect, Review, Send, Since, Write
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span

_TICK: Final = 0.1
_KEEP_AFTER: Final = 0.3
"""Seconds after a key until what was typed is in a file."""
_LARGER: Final = "make the window larger"
_SMALL: Final = 26
_NODE: Final = 40


class CardHost(Protocol):
    """Methods of the screen that the card calls."""

    def card_arrived(self) -> None:
        """Tell the screen that the card is visible and has the focus."""

    def card_changed(self) -> None:
        """Update the keys: other ones work now."""

    def play_about_card(self, name: str) -> None:
        """Play the conversation of a verb about the request."""

    def other_request(self, by: int) -> None:
        """Show another of the waiting requests."""

    def next_thread(self) -> None:
        """Open the next thread that waits."""

    def close_card(self) -> None:
        """Decide later."""

    def edit_asked(self) -> None:
        """Edit the subject."""

    def read_asked(self) -> None:
        """Read the subject alone."""

    def restore_draft(self, session: ViewSession) -> None:
        """Restore the draft after an answer was refused: its text must not be lost."""

    async def after_answer(self, session: ViewSession) -> None:
        """React to an accepted answer."""

    def not_shown(self, request: Request) -> str:
        """Return why the subject can't be seen beside the card, "" if it can; shows it if possible."""

    def show_message(self, text: str, title: str = "", severity: Severity = "information") -> None:
        """Show a message in a line of the screen."""


class ReviewPane(Vertical):
    """Paints a `Review`, and passes keys, clicks and the time to it.

    While it is open, other people see that this person has the request open.

    Args:
        beside: the pane that shows the subject.

    Attributes:
        is_open: whether it is on screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("list.page_up", "scroll_text(-1)"),
        bound("list.page_down", "scroll_text(1)"),
        bound("card.reason", "type_reason('card.reason')"),
        bound("card.claim", "claim"),
        bound("card.hand", "hand_over"),
        bound("card.allow", "allow"),
        bound("card.comment", "comment"),
        bound("card.uncomment", "uncomment"),
        bound("card.read", "read"),
        bound("card.next", "other('card.next')"),
        bound("card.previous", "other('card.previous')"),
    ]

    def __init__(
        self,
        review: Review,
        session: ViewSession,
        host: CardHost,
        beside: ValuePane,
        *,
        attention: Attention,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(id="card")
        self.is_open = True
        self._review = review
        self._session = session
        self._host = host
        self._beside = beside
        self._attention = attention
        self._clock = clock
        self._looking: Timer | None = None
        self._looked_at: tuple[ViewSession, str] | None = None
        self._words = ""
        self._card: ReviewCard | None = None
        self._laid_out: tuple[object, ...] = ()
        self._offered: tuple[tuple[Option, ...], int | None] = ((), None)
        self._since: tuple[Line, ...] = ()
        self._above: tuple[Line, ...] = ()
        self._note_rows = 1
        self._wrapped_for = 0
        self._has_more = False
        self._timer: Timer
        self._keeping: Timer | None = None

    def compose(self) -> ComposeResult:
        yield TextView("card-text")
        yield LineView("card-more")
        yield LineView("card-label")
        yield AnswerForm()
        yield ReasonField("reason")
        yield Choices(name="card-choices", judged=True)
        yield LineView("card-note")

    def on_mount(self) -> None:
        """Check the time ten times a second while something is due."""
        for name in ("#card-more", "#card-label", "#card-note"):
            self.query_one(name, LineView).can_focus = False
        for text in (self.query_one("#card-text"), self._beside):
            self.watch(text, "scroll_y", self.show_more, init=False)
        self._timer = self.set_interval(_TICK, self._tick, pause=True)
        self.border_title = Content("Your answer")
        self._look_at(self._session, self._review.request)
        self._do(self._review.begin(self._clock()))

    @property
    def review(self) -> Review:
        """Request and its state, with the text typed so far."""
        if self.is_mounted:
            form = self.query_one(AnswerForm)
            self._review.words = self._words = self.query_one(ReasonField).text
            if form.form is self._review.draft.form:
                self._review.texts, self._review.changed = form.texts, form.changed
        return self._review

    def show_request(
        self, session: ViewSession, request: Request, actor: str, *, summoned: bool = False
    ) -> None:
        """Show a request; `summoned` if a person opened the card with a key."""
        self._session = session
        self.is_open = True
        effects = self.review.ask(session, request, actor, self._clock(), summoned=summoned)
        if self.is_mounted:
            self._look_at(session, request)
            self._do(effects)

    @on(TextArea.Changed)
    @on(FieldBox.Typed)
    def _changed(self) -> None:
        """Keep what is typed in a file, shortly after the key."""
        if self._keeping is None:
            self._keeping = self.set_timer(_KEEP_AFTER, self.keep)

    def keep(self) -> None:
        """Keep the unsent answer in a file now."""
        if self._keeping is not None:
            self._keeping.stop()
            self._keeping = None
        if problem := self.review.keep():
            self._host.show_message(problem, severity="warning")

    def on_unmount(self) -> None:
        """Keep what was typed last."""
        self._review.keep()

    def _look_at(self, session: ViewSession, request: Request) -> None:
        """Show others that this person has the card open, once that lasts a while."""
        self._look_away()

        def look() -> None:
            self._looked_at = session, request.id
            self._send_later(session, LookAt(request.id, self._review.actor))

        self._looking = self.set_timer(self._attention.look_seconds, look)

    def _look_away(self) -> None:
        """Stop showing that."""
        if self._looking is not None:
            self._looking.stop()
        looked, self._looked_at = self._looked_at, None
        if looked is not None:
            self._send_later(looked[0], LookAt("", self._review.actor))

    def _send_later(self, session: ViewSession, command: Command[Any]) -> None:
        start_work(self, partial(session.driver.execute, command), group="attention")

    def leave(self) -> None:
        """Hide the card: cancel sending, and release a claim that was made here without a decision."""
        self.is_open = False
        self.take_back()
        if self._review.state == "over":
            self._review.drop_kept(self._review.request)
        self.keep()
        session, request, actor = self._session, self._review.request, self._review.actor
        self._look_away()
        claim = claim_of(session.view.attending, request, session.hub.now())
        if request in session.requests and claim is not None and claim.actor == actor:
            self._send_later(session, Unclaim(request.id, actor, left=True))
        self._beside.show_comments(())

    def follow(self, session: ViewSession, request: Request) -> None:
        """Follow the thread, which has moved: show the next request, or the same one about its new step."""
        self._session = session
        effects = self.review.follow(session, request, self._clock())
        if effects and self.is_mounted:
            self._do(effects)

    def attend(self, session: ViewSession) -> None:
        """Update who views, has claimed or was handed the request."""
        self.review.attend(session)
        if self.is_mounted:
            self.show()

    def survives_refresh(self) -> bool:
        """Whether the card stays though its request has gone; it says why, and can be closed."""
        stays = self.review.survives_refresh()
        if stays:
            self._do(("choices",))
        return stays

    def suggest(self, answer: str, words: str) -> None:
        """Put the cursor on an answer and text into the reason; the person still decides."""
        review = self.review
        review.suggested = answer
        if words and not review.reason:
            review.words = words
        if self.is_mounted:
            self._do(())

    def choose(self, option: str) -> None:
        """Take an option of the choices, chosen where the subject was read."""
        self.focus_choices()
        self._do(self.review.choose(option, self._clock(), by_letter=True))

    def focus_choices(self) -> None:
        """Move the cursor back to the choices."""
        self.query_one(Choices).focus()

    def take_back(self) -> None:
        """Cancel sending; the text stays."""
        state = self._review.state
        self._review.take_back()
        if self._review.state != state:
            self._do(())

    def comment(self) -> None:
        """Comment on a passage of the subject: the selected one, or one to choose."""
        from hitl_tui.ui.screens.comment import CommentScreen
        from hitl_tui.view.comments import first_changed, passages, selected_passages

        review = self.review
        subject = review.request.subject or ""
        found = passages(subject, self._session.view.values.get(subject)) if subject else ()
        if not found:
            self._host.show_message("there is no text here to comment on", severity="warning")
            return
        selected = self.screen.get_selected_text() or ""
        before = self._beside.rows_before_selection()
        chosen = selected_passages(found, selected, before) if selected.strip() else ()
        first = 0 if chosen else first_changed(found, review.card.revised)

        def answered(comment: Comment | None) -> None:
            if comment is not None:
                self.add_comment(comment)

        asked = CommentScreen(subject, chosen or found, first, first, review.comments)
        self.app.push_screen(asked, answered)

    def add_comment(self, comment: Comment) -> None:
        """Keep a comment on a passage, and show it."""
        self.review.comment(comment)
        self._card = None
        self._do(("choices",))

    def uncomment(self) -> None:
        """Undo the last comment."""
        if self.review.drop_comment():
            self._card = None
            self._do(("choices",))
        else:
            self._host.show_message("there is no comment to undo", severity="warning")

    def _show_comments(self) -> None:
        """Show the comments beside their passages."""
        from hitl_tui.view.comments import destination

        comments = self._review.comments if self.is_open else ()
        self._beside.show_comments(comments, destination(self._review.request))

    def step_back(self) -> None:
        """Go back to the previously decided action."""
        self._do(self.review.step_back())

    async def send_at_once(self) -> bool:
        """Send what could still be undone, without waiting longer; return False if it was refused."""
        decision = self.review.send_at_once()
        return decision is None or await self._send(decision)

    def missing(self) -> str:
        """Return what must be seen before a decision and isn't on screen, in words; "" for nothing."""
        if not self._missing():
            return ""
        force_layout(self.screen)  # the subject may have changed meanwhile, and be laid out only now
        return self._missing()

    @property
    def _undo_is_shown(self) -> bool:
        """Whether the line that says how to undo a decision is visible, on a screen that was read."""
        note = self.query_one("#card-note", LineView)
        if self.app.screen is not self.screen or not gate_of(self.app).is_settled:
            return False
        return len(rows_on_screen(note)) >= max(len(note.lines), 1)  # the blank row below may be cut off

    def _missing(self) -> str:
        text, note = self.query_one("#card-text", LineView), self.query_one("#card-note", LineView)
        more = self.query_one("#card-more", LineView)
        if len(rows_on_screen(note)) < max(len(note.lines), 1):
            return f"the line on how to undo is not on screen; {_LARGER}"
        if not is_on_screen(text) or (_rows_below(text) and not is_on_screen(more)):
            return f"the end of the text is not on screen; {_LARGER}"
        return self._host.not_shown(self._review.request)

    # From events of the review, and from its effects to actions.

    def _tick(self) -> None:
        state = self._review.state
        if state == "sending" and not self._undo_is_shown:
            self._review.hold(self._clock())
        effects = self.review.tick(self._clock())
        if self._review.state != state:
            typing = not self.query_one(Choices).has_focus
            self._do(() if typing and effects == ("form",) else effects)
        elif state == "sending":
            self._show_note()

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        event.stop()
        refusal = event.refusal or self.missing()
        effects = self.review.choose(
            event.option.id, self._clock(), by_letter=event.by_letter, refusal=refusal
        )
        self._do(effects)

    def on_key(self, event: events.Key) -> None:
        """Handle a key; keys typed before the card could be read decide nothing and do nothing else."""
        typing = not self.query_one(Choices).has_focus
        printable = event.is_printable
        if self._review.swallows(event.key, printable=printable, typing=typing, now=self._clock()):
            event.stop()
            event.prevent_default()
        elif printable and not typing and self._review.is_text(event.key, event.character):
            event.stop()
            event.prevent_default()
            field = self.query_one(ReasonField)
            field.focus()
            field.insert(event.character or "")
        elif self._review.has_opened(event.key):
            event.stop()
            event.prevent_default()
        elif printable and not self._review.knows(event.key, event.character):
            event.stop()
            event.prevent_default()
            if not is_burst(event) and self._review.pick(event.character or ""):
                self._lay_out(anew=True)
                self._do(())
                return
            self._review.typed_on(self._clock())
            if event.character == "r" and self._review.takes_words and not is_burst(event):
                self.action_type_reason("card.reason")
            else:
                self._host.show_message(f"{event.character} is not an answer here", severity="warning")
            self._do(())

    def _do(self, effects: Iterable[Effect]) -> None:
        """Show the state of the review, and carry out its effects."""
        self.show()
        self._changed()
        (self._timer.resume if self._review.timed else self._timer.pause)()
        session = self._session
        for effect in effects:
            match effect:
                case Send(decision):
                    start_work(self, partial(self._send, decision), group="answer")
                case Write():
                    self._write(effect)
                case Since(request):
                    start_work(self, partial(self._load_since, session, request), group="since")
                case Reading():
                    self.query_one(AnswerForm).show_problems(effect)
                case "load":
                    self.app.call_later(
                        self._host.card_arrived
                    )  # after the focus, which is set by a message, too
                    start_work(self, self._load, group="card", exclusive=True)
                case "choices":
                    self.focus_choices()
                case "reason":
                    self.query_one(ReasonField).focus()
                case "form":
                    self.query_one(AnswerForm).focus_first()
                case "next":
                    self._host.next_thread()
                case "later":
                    self._host.close_card()
                case "edit":
                    self._host.edit_asked()
                case "allow":
                    self._host.play_about_card("allow")
                case "score":
                    self.ask_scores()

    def ask_scores(self, problem: str = "", typed: Mapping[str, str] | None = None) -> None:
        """Ask for a score for each criterion of the rubric, again if one is not on the scale."""
        from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult

        rubric = self._review.request.rubric
        if not rubric:
            self._host.show_message("this request has no rubric", severity="warning")
            return
        known = typed or {name: str(score) for name, score in self._review.draft.scores.items()}
        fields = [
            DialogField(f"score-{place}", name, known.get(name, "")) for place, name in enumerate(rubric)
        ]
        options = (Option("keep", "ask.take", "keep these scores"), Option("back", "ask.back", "back"))

        def answered(result: DialogResult | None) -> None:
            if result is None or result.id != "keep":
                return
            scores = {name: result.fields[f"score-{place}"] for place, name in enumerate(rubric)}
            if wrong := self._review.score(scores):
                self.ask_scores(wrong, scores)
            else:
                self._do(("choices",))

        text = [
            *([problem] if problem else []),
            "From 1 to 5; empty for none. They are sent with your answer.",
        ]
        self.app.push_screen(Dialog("Scores", text, options, fields), answered)

    async def _send(self, decision: Decision) -> bool:
        """Send the answer; return whether it was accepted."""
        session, request = self._session, decision.request
        try:
            await session.driver.execute(
                Answer(
                    request.id,
                    decision.answer,
                    request.step,
                    decision.actor,
                    decision.note,
                    decision.seen,
                    decision.comments,
                    reasons=decision.reasons,
                    scores=decision.scores,
                )
            )
        except HitlError as error:
            stale = self.review.refuse(error)
            self._do(())
            if stale:
                await self._load_since(session, request)
                self._host.restore_draft(session)
            return False
        self._review.drop_kept(request)
        await self._host.after_answer(session)
        return True

    async def _load_since(self, session: ViewSession, request: Request) -> None:
        try:
            self.review.show_since(request, await session.changed_since(request.step))
        except HitlError as error:
            self.review.show_since(request, (), error.message)
        self._do(())

    def _write(self, effect: Write) -> None:
        """Open the editor on the answer."""
        from hitl_tui.ui.screens.edit import ValueScreen

        def written(value: tuple[Any] | None) -> None:
            self._do(self.review.written(value, self._clock()))

        screen = ValueScreen(effect.title, effect.value, effect.schema, text=effect.text)
        self.app.push_screen(screen, written)

    async def _load(self) -> None:
        """Load the previous version of the subject, and where each answer would lead."""
        session, request = self._session, self._review.request
        if request.subject:
            known = await newest_versions(session, request.subject, request.step)
            if request is self._review.request:
                self.review.show_versions(*known)
                self._do(())
        destinations: dict[str, str] = {}
        for choice in self._review.card.choices:
            try:
                answer = choice_answer(choice, "…" if choice.text == "required" else "")
                preview = await session.driver.preview(Answer(request.id, answer, request.step))
            except HitlError:
                continue
            if preview.next_node:
                destinations[choice.id] = f"→ {sanitise_line(preview.next_node, _NODE)}"
        repeats = (await session.driver.preview(Run())).repeats
        if request is self._review.request:
            self._review.destinations = destinations
            if repeats is not None:
                self._review.show_repeats(repeats)
            if self._review.state in ("grace", "open"):
                self._do(())
        if isinstance(session.view.values.get(request.subject or ""), str):
            await asyncio.to_thread(_prepare_to_read)

    # The display.

    def show(self) -> None:
        """Show the state of the review."""
        review, choices, reason = self._review, self.query_one(Choices), self.query_one(ReasonField)
        if review.words != self._words:
            self._words = reason.text = review.words
        self.border_subtitle = Content(review.bound)
        self._lay_out()
        if review.since != self._since:
            self._since = review.since
            self.query_one("#card-text", LineView).scroll_home(animate=False, immediate=True)
        offered = (review.options, review.cursor)
        if offered != self._offered:
            self._offered = offered
            choices.set_options(review.options, 0)
            choices.cursor_row = review.cursor
        choices.arm(review.armed)
        self._show_note()
        self._show_comments()
        self._host.card_changed()

    def _show_note(self) -> None:
        """Show a note below the choices; one that is too long for there is part of the text above."""
        note = self.query_one("#card-note", LineView)
        width = note.scrollable_content_region.width
        lines, above = self._review.note_lines(self._clock(), width, self.size.height)
        if lines != list(note.lines):
            note.show(lines)
            note.styles.height = len(lines) + 1
        if (len(lines), above) != (self._note_rows, self._above):
            scroll = above != self._above
            self._note_rows, self._above = len(lines), above
            self._lay_out()
            if scroll:
                self.query_one("#card-text", LineView).scroll_home(animate=False, immediate=True)

    def _lay_out(self, *, anew: bool = False) -> None:
        """Wrap the texts for the width, and give them the remaining height."""
        review = self._review
        leads = tuple(review.destinations.values())
        shown = (review.since, review.repeats, leads, self._above, self._note_rows)
        same = review.card is self._card and shown == self._laid_out
        if not self.size.height or (same and not anew):
            return
        self._card, self._laid_out = review.card, shown
        text = self.query_one("#card-text", LineView)
        self._wrapped_for = text.scrollable_content_region.width
        small = self.size.height < _SMALL
        self.set_class(small, "-small")
        form = review.draft.form
        self.query_one(AnswerForm).show_form(form)
        self.set_class(form is not None, "-form")
        self.query_one(ReasonField).display = review.takes_words
        options = len(self.query_one(Choices).options or "12345")
        width = max(self._wrapped_for, 20)
        label = [(Span(review.label, "dim"),), *review.reason_lines(width)]
        fixed = (2 if small else 4) + len(label) + options + self._note_rows + (1 if small else 3)
        free = max(self.size.height - fixed, 3)
        if form is not None:
            each = 2 if small else 3  # its label, its box and, where there is room, a gap
            free = max(free // 3, free - each * len(form.fields), 2)
        text.show(review.lines(width, self._above, rows=free, marked=self.app.no_color))
        overflows = len(text.lines) > free
        # A form has rows to spare for the line that says how many more there are.
        text.styles.height = min(len(text.lines), free if form is not None else max(free - overflows, 1))
        self._has_more = overflows
        self.show_more()
        self.call_after_refresh(self.show_more)  # the text may be higher only then
        above = self.query_one("#card-label", LineView)
        above.show(label)
        above.styles.height = len(label)
        self._show_note()

    def show_more(self) -> None:
        """Show how many lines of the subject are below its visible part, and the key that leads there."""
        more = self.query_one("#card-more", LineView)
        here, beside = (
            _rows_below(self.query_one("#card-text", LineView)),
            self._lines_beside,
        )
        subject = sanitise_line(self._review.request.subject or "the payload", _NODE)
        below = words_below(
            here, beside, subject, self._review.keymap.shown("list.page_down"), self._wrapped_for
        )
        words = below or ("end of the text" if self._has_more else "")
        shown = bool(words) or self._has_more
        self._has_more = self._has_more or bool(beside)
        more.display = shown
        more.styles.height = 1
        if shown and list(more.lines) != [(Span(words, "accent"),)]:
            more.show([(Span(words, "accent" if below else "dim"),)])

    @property
    def _lines_beside(self) -> int:
        """Number of lines of the subject that are below its visible part."""
        pane, subject = self._beside, self._review.request.subject
        seen = rows_on_screen(pane)
        shown = self._review.beside is not None or (subject and pane.text and pane.text.channel == subject)
        if not shown or not seen:
            return 0
        return max(len(pane.lines) - round(pane.scroll_y) - seen.stop, 0)

    @on(LineView.Widened, "#card-text")
    def _lay_out_again(self, event: LineView.Widened) -> None:
        """Lay out again: the first layout may have changed the available room."""
        if event.view.scrollable_content_region.width != self._wrapped_for:
            self._lay_out(anew=True)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap again."""
        self._lay_out(anew=True)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Make the key that closes the card lead from a text back to the choices."""
        typing = isinstance(event.widget, ReasonField) or self.query_one(AnswerForm) in event.widget.ancestors
        self.query_one(Choices).take_keys_from(() if typing else ("app.back",))

    # Keys that move around on the card.

    @on(AnswerForm.Left)
    @on(ReasonField.Left)
    def _text_left(self) -> None:
        review = self.review
        self.focus_choices()
        if review.state == "open":
            self._do(())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the key of the reason if none can be given."""
        keys = keymap_of(self.app).bindings
        return action == "scroll_text" or not parameters or bool(keys[str(parameters[0])])

    def action_scroll_text(self, by: int) -> None:
        """Scroll the request; once at its end, scroll its subject beside it."""
        text = self.query_one("#card-text", LineView)
        at_end = round(text.scroll_y) >= text.max_scroll_y if by > 0 else round(text.scroll_y) <= 0
        if at_end:
            self._beside.turn_pages(by)
        else:
            text.turn_pages(by, kept=1)

    def action_type_reason(self, action_id: str) -> None:
        """Move to the reason, or to the answer."""
        if self._review.draft.form is not None:
            self.query_one(AnswerForm).focus_first()
        else:
            self.query_one(ReasonField).focus()

    @decides
    def action_claim(self) -> None:
        """Claim the request for a while, or release it."""
        self._host.play_about_card("claim")

    def action_hand_over(self) -> None:
        """Hand the request over."""
        self._host.play_about_card("hand-over")

    def action_comment(self) -> None:
        """Comment on a passage."""
        self.comment()

    def action_uncomment(self) -> None:
        """Undo the last comment."""
        self.uncomment()

    def action_read(self) -> None:
        """Read the subject alone."""
        self._host.read_asked()

    def action_allow(self) -> None:
        """Allow the requested call, and others like it."""
        self._host.play_about_card("allow")

    def action_other(self, action_id: str) -> None:
        """Show another of the waiting requests."""
        self._host.other_request(1 if action_id == "card.next" else -1)


def _prepare_to_read() -> None:
    """Load the parser of Markdown while the card is read, so that the reader opens at once."""
    from hitl_tui.view.document import markdown_blocks

    markdown_blocks("")


def words_below(here: int, beside: int, subject: str, key: str, width: int) -> str:
    """Return how many lines are below the screen, as fully as a width allows; "" for none.

    Args:
        here: lines of the card.
        beside: lines of the subject's pane.
        key: the key that leads there.
    """
    parts = [f"{count(here, 'more line')} here"] if here else []
    if beside:
        parts.append(f"{beside:,} of {subject}" if here else f"{count(beside, 'more line')} of {subject}")
    if not parts:
        return ""
    words = f"{key}: {', '.join(parts)}"
    return words if len(words) <= width else f"{key}: {count(here + beside, 'more line')}"


def _rows_below(view: LineView) -> int:
    """Return how many rows of a text are below those on screen."""
    seen = rows_on_screen(view)
    return max(len(view.lines) - round(view.scroll_y) - seen.stop, 0) if seen else len(view.lines)
