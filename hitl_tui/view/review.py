"""The review card as a state machine: what each key and choice does, what is shown, and what is sent.

Letters decide nothing for the first `GRACE` seconds, high risk needs a second key, and a decision can be
undone for `UNDO` seconds.  The caller passes the time, in seconds of any clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec.structs import replace

from hitl_tui.drivers.protocol import command_refusal
from hitl_tui.drivers.unsent_answers import UnsentAnswer, UnsentAnswers
from hitl_tui.engine.commands import UpdateState
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.approval_formats import choices_of
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.engine.thread.measures import Reason
from hitl_tui.errors import AnswerRefused, HitlError, UsageError
from hitl_tui.view.asked import is_beside, is_safe
from hitl_tui.view.card import (
    EDIT,
    AnswerDraft,
    ChoiceView,
    ReviewCard,
    Version,
    choice_answer,
    how_it_went,
    looks_like_json,
    refuses,
    review_card,
    unsent_text,
    value_answer,
    wants_text,
    words_first,
)
from hitl_tui.view.cells import cells
from hitl_tui.view.comments import comment_lines, destination, in_order
from hitl_tui.view.diff_lines import excerpt
from hitl_tui.view.form import Form, Path, Reading, mismatch, read_form
from hitl_tui.view.format import local_time, writer
from hitl_tui.view.keymap import Keymap, Option
from hitl_tui.view.keys import written
from hitl_tui.view.reasons import read_scores, reason_lines, reason_words, score_words
from hitl_tui.view.repeats import repeat_lines
from hitl_tui.view.revision import revision
from hitl_tui.view.rows import wrap_rich, wrapped
from hitl_tui.view.run_view import RunView
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, plain_text, trusted, untrusted
from hitl_tui.view.terms import not_yours

GRACE: Final = 0.5
UNDO: Final = 4.0
State = Literal["grace", "open", "confirm", "sending", "sent", "over"]
_HARMLESS: Final = ("card.reason", "card.next", "card.previous")
"""Keys that decide nothing."""
_LEADING_ELSEWHERE: Final = frozenset(
    {"_undo", "_later", "_edit", "_inside", "_write", "_untake", "_back", "_score", "_allow"}
)
"""Options that decide nothing."""
_APPROVE: Final = "approve"
_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DECIDED: Final = ("confirm", "sending", "sent")
_NAME: Final = 40
_DIGITS: Final = 9
"""The digits 1 to 9 pick reasons."""
_ROOMY: Final = 16
"""Rows from which the terms have a blank row above them."""
_NOTE: Final = 4_000
_CHANGES: Final = 6
"""Most lines of changes on the card."""
_NOTE_PART: Final = 4
"""The note gets at most this part of the height."""
_BADGES: Final[Mapping[str, Role]] = {"ok": "badge-ok", "error": "badge-error", "accent": "badge"}
_LATER: Final = Option("_later", "app.back", "later")
_SENDING: Final = (
    Option("_undo", "card.undo", "undo it"),
    Option("_now", "ask.take", "send it now"),
    Option("_next", "app.next", "send it, on to the next thread"),
)
_OVER: Final = (Option("_later", "ask.take", "close this", also=("app.back",)),)
"""The outcome of a request that somebody else decided first."""


_LEADS: Final[Mapping[str, Literal["next", "later", "edit", "score", "allow"]]] = {
    "_next": "next", "_later": "later", "_edit": "edit", "_inside": "edit",
    "_score": "score", "_allow": "allow",
}  # fmt: skip
"""Options that only lead somewhere."""


class Decision(msgspec.Struct, frozen=True):
    """An answer with its label for people, bound to what was on screen."""

    request: Request
    label: str
    answer: Any
    note: str | None
    seen: bytes
    actor: str
    comments: tuple[Comment, ...] = ()
    reasons: tuple[str, ...] = ()
    scores: Mapping[str, int] = {}


class Send(msgspec.Struct, frozen=True):
    """Send a decision to the driver; an error goes to `refuse`."""

    decision: Decision


class Write(msgspec.Struct, frozen=True):
    """Open an editor on a value; the result goes to `written`.  `text` says that it is not JSON."""

    title: str
    value: Any
    schema: Mapping[str, Any] | None
    text: bool


class Since(msgspec.Struct, frozen=True):
    """Load what has changed since a request's step; the result goes to `show_since`."""

    request: Request


Effect = (
    Send
    | Write
    | Since
    | Reading
    | Literal["load", "choices", "reason", "form", "next", "later", "edit", "score", "allow"]
)
"""An effect that the card's owner must carry out.

A `Reading` is shown at the fields of the form. "load" fetches versions and `destinations`; "choices",
"reason" and "form" get the focus; "next" opens the next waiting thread, "later" closes the card, "edit"
edits the value that is decided about, "score" asks for scores, "allow" which calls to allow from now on.
"""
Effects = tuple[Effect, ...]


class ReviewedThread(Protocol):
    """The current state of the thread that asks."""

    @property
    def thread_id(self) -> str: ...
    @property
    def view(self) -> RunView: ...
    @property
    def requests(self) -> Sequence[Request]: ...


class Review:
    """A review card for one request at a time; typing never decides.

    Its owner keeps `words`, `texts` and `changed` up to date with what is typed before each call, shows
    `words` afterwards, and carries out the returned effects.

    Attributes:
        words: the text in the field for the reason.
        texts: the texts in the fields of the form; `changed` says whether they differ from the initial ones.
        card: the request as drawn, updated whenever it changes.
        bound: the request's number and count, and what the answer is bound to.
        destinations: where each choice would lead, as far as known.
        refused: why the last answer was refused, "" if none was.
        suggested: the answer that enter takes instead of the recommended one.
        since: what has changed since the step of a refused answer.
        repeats: what runs again after the answer.
        summoned: a person opened the card with a key, so what they type next is meant for it.
    """

    def __init__(
        self,
        thread: ReviewedThread,
        request: Request,
        actor: str,
        keymap: Keymap,
        now: float,
        *,
        summoned: bool = False,
        unsent: UnsentAnswers | None = None,
        reasons: Sequence[Reason] = (),
    ) -> None:
        self.summoned = summoned
        self._unsent = unsent
        self._reasons = tuple(reasons)
        self._kept: UnsentAnswer | None = None
        self.keymap = keymap
        self.words = ""
        self.texts: Mapping[Path, str] = {}
        self.changed = False
        self.refused = ""
        self.suggested = ""
        self.since: tuple[Line, ...] = ()
        self._thread = thread
        self.actor = actor
        self._problem = ""
        self._aside: dict[tuple[str, str], tuple[AnswerDraft, str]] = {}
        self._form: Form | None = None
        self.draft = AnswerDraft(request)
        self._restore()
        self.begin(now)

    # The request.

    def begin(self, now: float) -> Effects:
        """Start the moment to read, in which no key decides; called when the card becomes visible."""
        self.state: State = "grace"
        self.decision: Decision | None = None
        self.destinations: dict[str, str] = {}
        self.repeats: Repeats | None = None
        self._versions: tuple[Version | None, Version | None] = (None, None)
        self._wanted: ChoiceView | None = None
        self._rest_from: int | None = None
        self._pressed = ""
        self._problem = ""
        self._due = now + GRACE
        self._decided_at = self._typed_until = now - GRACE
        self._make_card()
        return "choices", "load"

    @property
    def thread(self) -> ReviewedThread:
        """The thread of the request."""
        return self._thread

    @property
    def request(self) -> Request:
        """The current request."""
        return self.draft.request

    @property
    def reason(self) -> str:
        """The reason so far: what was picked from the list, then what was typed."""
        return reason_words(self.picked, self.words)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons to pick from: with an answer that takes a comment."""
        request = self.request
        one = len(self.draft.actions) <= 1  # several calls have a reason each
        return self._reasons if one and self.takes_words and (request.choices or request.shape) else ()

    @property
    def picked(self) -> tuple[Reason, ...]:
        """The picked reasons, in their order."""
        return tuple(reason for reason in self.reasons if reason.id in self.draft.reasons)

    def pick(self, digit: str) -> bool:
        """Pick the reason of a number, or drop it if it is picked; False if there is none.

        An answer being sent is undone.
        """
        place = int(digit) - 1 if digit.isascii() and digit.isdigit() else -1
        if not 0 <= place < len(self.reasons) or self.state in ("sent", "over"):
            return False
        self.take_back()
        named, known = self.reasons[place].id, self.draft.reasons
        others = tuple(reason for reason in known if reason != named)
        self.draft.reasons = others if named in known else (*known, named)
        self._problem = ""
        return True

    def score(self, typed: Mapping[str, str]) -> str:
        """Take the typed scores by criterion, empty for none; return why they can't be taken, "" if they are.

        An answer being sent is undone.
        """
        rubric = self.request.rubric
        given = [f"{name}={typed[name].strip()}" for name in rubric if typed.get(name, "").strip()]
        try:
            scores = read_scores(rubric, given)
        except UsageError as error:
            return f"{error.message}; {error.hint}"
        self.take_back()
        self.draft.scores = scores
        return ""

    def reason_lines(self, width: int) -> list[Line]:
        """Return the reasons to pick from with their numbers, as rows; picked ones are marked."""
        if not self.reasons:
            return []
        rows: list[Line] = []
        for number, (reason, words) in enumerate(
            zip(self.reasons, reason_lines(self.reasons), strict=True), 1
        ):
            is_picked = reason.id in self.draft.reasons
            key = str(number) if number <= _DIGITS else " "
            shown: Line = (
                trusted(f"{key} ", "name" if number <= _DIGITS else "dim"),
                trusted(f"{'[x] ' if is_picked else ''}{words}", "accent" if is_picked else "value"),
            )
            beside: Line = (*rows[-1], trusted("   ", "dim"), *shown) if rows else ()
            if beside and cells(plain_text(beside)) <= width:
                rows[-1] = beside
            else:
                rows.append(shown)
        return [row for line in rows for row in wrap_rich(line, width)]

    def ask(
        self, thread: ReviewedThread, request: Request, actor: str, now: float, *, summoned: bool = False
    ) -> Effects:
        """Switch to a request; the unsent answer to the other one is kept until it is shown again."""
        self.summoned = summoned
        draft: AnswerDraft | None = self.draft
        if (thread.thread_id, request.id) != (self._thread.thread_id, self.request.id):
            self._put_aside()
            draft, self.words = self._aside.pop((thread.thread_id, request.id), (None, ""))
            self.since, self.refused, self.suggested = (), "", ""
        self._thread, self.actor = thread, actor
        if draft is not None and draft.request.payload == request.payload:
            draft.request, self.draft = request, draft
        else:
            self.keep()
            self.draft = AnswerDraft(request)
            self._restore()
            if draft is not None and not self.draft.comments:
                self.draft.comments = draft.comments
        return self.begin(now)

    def _put_aside(self) -> None:
        if self.state != "sent":
            self.keep()
            if self.draft.form is not None and self.changed:
                self.draft.fill(self.texts)
            self._aside[self._thread.thread_id, self.request.id] = (self.draft, self.words)

    # What is kept in a file until it is sent.

    def _restore(self) -> None:
        """Continue an answer that an earlier session has not sent."""
        self._kept = None
        if self._unsent is not None:
            self._kept = kept = self._unsent.load(self._thread.thread_id, self.request.id)
            if kept is not None:
                self.words = self.words or kept.words
                self.draft.restore(kept)

    @property
    def keeps(self) -> bool:
        """Whether an unsent answer is kept in a file."""
        return self._unsent is not None and not self._unsent.problem

    def keep(self) -> str:
        """Keep the answer in a file until it is sent; return why that is not possible, "" if it is.

        A reason is said once.
        """
        if self._unsent is None or self.state in ("sent", "over"):
            return ""
        answer = self._answer
        if answer == self._kept or (self._kept is None and answer.is_empty):
            return ""
        known, self._kept = self._unsent.problem, answer
        self._unsent.save(answer)
        return "" if known else self._unsent.problem

    def drop_kept(self, request: Request) -> None:
        """Remove the kept answer to a request: it was sent, or was closed after its request had gone."""
        if self._unsent is not None:
            self._unsent.remove(self._thread.thread_id, request.id)
            if request.id == self.request.id:
                self._kept = self._answer

    @property
    def _answer(self) -> UnsentAnswer:
        texts = self.texts if self.changed or self.draft.filled else None
        return self.draft.unsent(self._thread.thread_id, self.words, texts)

    def attend(self, thread: ReviewedThread) -> None:
        """Update who attends to the request; the unsent answer stays."""
        self._thread = thread
        self.draft.request = next(
            (asked for asked in thread.requests if asked.id == self.request.id), self.request
        )
        self._make_card()

    def follow(self, thread: ReviewedThread, request: Request, now: float) -> Effects:
        """Follow the moved thread: show the next request, or the same one with its new step or votes."""
        known = self.request
        if (known.id, known.step, known.votes) == (request.id, request.step, request.votes):
            return ()
        taken_back, refused = self.unsent, self.refused if known.id == request.id else ""
        self.take_back()
        effects = self.ask(thread, request, self.actor, now)
        if taken_back:
            refused = "what you decided about has changed; your decision was not sent"
            effects = (*effects, Since(known))
        self._problem = self.refused = refused
        if not taken_back and (changed := self._changed_since(known)):
            self.since = (changed,)
        return effects

    def _changed_since(self, known: Request) -> Line:
        """Return who else has edited what the request asks about since the card showed it; () for nobody."""
        if known.node != self.request.node or known.step == self.request.step:
            return ()
        edits = [
            point
            for point in self._thread.view.checkpoints
            if known.step < point.step <= self.request.step
            and point.source == "human"
            and point.actor != self.actor
        ]
        if not edits:
            return ()
        words = f"{writer(edits[-1])} has just edited this, at step {edits[-1].step}: read it again"
        return (trusted(words, "warning"),)

    def survives_refresh(self) -> bool:
        """Whether the card stays although its request has gone: it has a refused answer or unsent text."""
        if self.state != "over" and (self.unsent or self.unapplied[0] or self.refused):
            gone = how_it_went(self._thread.view.ledger, self.request.id)
            why = self.refused or f"{gone}; nothing of yours was sent"
            self.state, self.decision, self._wanted = "over", None, None
            self._problem = f"{why}. Your text stays here until you close this"
        return self.state == "over"

    # Time and keys.

    @property
    def beside(self) -> tuple[Request, int] | None:
        """What is shown beside the card: the request and the index of its current action, if anything."""
        request = self.request
        return (request, self.draft.part) if is_beside(request) else None

    @property
    def timed(self) -> bool:
        """Whether time alone changes it, so that `tick` must be called."""
        return self.state in ("grace", "sending")

    def tick(self, now: float) -> Effects:
        """End the moment to read, or the seconds to undo a decision, if their time is over."""
        if now < self._due:
            return ()
        if self.state == "grace":
            self._move("open")
            return ("form",) if self.draft.form is not None else ()
        return self._send() if self.state == "sending" else ()

    def hold(self, now: float) -> None:
        """Restart the seconds to undo: they count only while the person can see how to undo."""
        if self.state == "sending":
            self._due = now + UNDO

    def swallows(self, key: str, *, printable: bool, typing: bool, now: float) -> bool:
        """Whether a key is ignored: whatever was typed before the card could be read decides nothing.

        Such a key restarts the moment to read, since more of the same sentence may follow. `typing` says
        that the key goes into a text field.
        """
        bindings = self.keymap.bindings
        harmless = any(key in bindings[name] for name in _HARMLESS)
        takes = printable or key in bindings["ask.take"]
        text = printable and self.wants_only_text
        swallowed = self.state in ("grace", "sent") and takes and not (typing or harmless or text)
        if swallowed:
            self._due = now + GRACE
        elif takes and not typing and now < self._typed_until:
            self._typed_until = now + GRACE
            return True
        return swallowed

    def knows(self, key: str, character: str | None) -> bool:
        """Whether a key does something on the card: an option, or one of the card's actions."""
        bindings = self.keymap.bindings
        keys = {key for option in self.options for key in option.keys(self.keymap)}
        keys |= {
            key
            for name, bound in bindings.items()
            if self.keymap.actions[name].works_on_card
            for key in bound
        }
        return key in keys or character in keys

    def has_opened(self, key: str) -> bool:
        """Whether a key opens the card, which may have just opened by itself, and does nothing else.

        After a choice, the key may be the second letter of a text, so the choice is undone.
        """
        options = {key for option in self.options for key in option.keys(self.keymap)}
        return self.state == "open" and key in self.keymap.bindings["change.decide"] and key not in options

    @property
    def wants_only_text(self) -> bool:
        """Whether only a text can be given, so that every letter belongs to it."""
        request = self.request
        chooses = bool(request.choices or request.shape or request.kind == "edit")
        listens = self.state == "open" or (self.state == "grace" and self.summoned)
        return listens and self.takes_words and not chooses and wants_text(request.schema)

    def is_text(self, key: str, character: str | None) -> bool:
        """Whether a key belongs to the wanted text: each letter does, even if it is the key of an action."""
        is_letter = character is not None and (character.isalnum() or character.isspace())
        return self.wants_only_text and (is_letter or not self.knows(key, character))

    def typed_on(self, now: float) -> None:
        """Note that a person is typing: nothing is decided until they stop, not even by the first letter."""
        if self.state in ("sending", "confirm") and now < self._decided_at + GRACE:
            self.take_back()
        self._typed_until = now + GRACE

    def choose(self, option: str, now: float, *, by_letter: bool = False, refusal: str = "") -> Effects:
        """Take one of the shown options by its id.

        Args:
            by_letter: its own key was pressed: one that asks for words first always leads to their field.
            refusal: why the key or click may decide nothing; what decides nothing may still be done.
        """
        if self.state == "grace" or (self.state == "sent" and option != "_next"):
            return ()
        if now < self._typed_until:
            self._typed_until = now + GRACE
            return ()
        against = self._refusal(option, refusal, by_letter=by_letter)
        if against:
            self._problem = f"nothing was decided: {against}"
            return ()
        self._pressed = option
        if option in _LEADS:
            return (_LEADS[option],)
        match option:
            case "_undo":
                self.take_back()
                return ()
            case "_now":
                return self._send() if now >= self._due - UNDO + GRACE else ()
            case "_rest":
                return self._decide_rest(now)
            case "_free":
                return self._decide_freely(now)
            case "_form" | "_take":
                return self._decide_by_form(now)
            case "_write":
                return self._write()
            case "_value" | "_same":
                return self._prepare("your version", self.draft.value, now=now)
            case "_untake":
                return self._stop_edit()
            case "_back":
                return self.step_back()
            case _:
                return self._decide(option, now, by_letter=by_letter)

    def _refusal(self, option: str, refusal: str, *, by_letter: bool) -> str:
        """Return why an option can't be taken, "" if it can."""
        theirs = not_yours(self.request, self.actor)
        if theirs and option not in _LEADING_ELSEWHERE:  # before they write a reason in vain
            return theirs
        return "" if self._is_harmless(option, by_letter=by_letter) else refusal

    def _is_harmless(self, option: str, *, by_letter: bool) -> bool:
        """Whether an option decides and sends nothing."""
        choice = next((choice for choice in self.draft.choices if choice.id == option), None)
        return option in _LEADING_ELSEWHERE or (
            choice is not None and self._asks_for_words(choice, by_letter=by_letter)
        )

    def _asks_for_words(self, choice: ChoiceView, *, by_letter: bool) -> bool:
        """Whether taking a choice leads to the field for words instead of deciding."""
        enough = choice.text == "optional" or bool(self.draft.comments)
        again = self._wanted == choice and enough
        return words_first(choice) and self.takes_words and (by_letter or not (self.reason or again))

    def written(self, value: tuple[Any] | None, now: float) -> Effects:
        """Take the result of the editor, None for nothing."""
        draft = self.draft
        if value is None:
            draft.end_edit()
        elif draft.editing:
            return self._decide_action(self._edit_choice, now, value[0])
        else:
            draft.take(value[0])
        return self._go_on()

    def step_back(self) -> Effects:
        """Go back to the previously decided action."""
        if not self.draft.part or self.unsent:
            return ()
        self.draft.back()
        return self._stop_edit()

    def take_back(self) -> None:
        """Undo the decision before it is sent; the text stays."""
        if self.state in ("sending", "confirm"):
            self.decision = None
            while self._rest_from is not None and self.draft.part > self._rest_from:
                self.draft.back()
            self._rest_from = None
            self._move("open")

    def send_at_once(self) -> Decision | None:
        """Return the decision that could still be undone, to send it at once; None if there is none."""
        if self.state != "sending":
            return None
        self._move("sent")
        return self.decision

    def refuse(self, error: HitlError) -> Effects:
        """Show that the decision was refused; the text stays."""
        request = self.request
        self.decision = None
        hint = f" — {error.hint}" if error.hint else ""
        title = "" if isinstance(error, AnswerRefused) else f"{error.title}: "
        self._problem = self.refused = f"not accepted: {title}{error.message}{hint}"
        self._move("open")
        return (Since(request),) if isinstance(error, AnswerRefused) else ()

    def show_since(self, request: Request, lines: tuple[Line, ...], problem: str = "") -> None:
        """Show what has changed since the step of a refused answer; `problem` says why that is unknown.

        Args:
            problem: why that is unknown.
        """
        if not self.refused or request.id != self.request.id:
            return
        words = f"see above what has changed since ({self._scrolling})" if lines else ""
        words = f"what changed is unknown: {problem}" if problem else words
        self._problem = self.refused = f"{self.refused}; {words}" if words else self.refused
        self.since = lines

    def show_repeats(self, repeats: Repeats) -> None:
        """Show what runs again after the answer."""
        self.repeats = repeats

    def comment(self, comment: Comment) -> None:
        """Add a comment on a passage; it is sent with the answer, so an answer being sent is undone."""
        self.take_back()
        self.draft.comments = (*self.draft.comments, comment)
        self._problem = ""

    def drop_comment(self) -> bool:
        """Remove the newest comment, and undo an answer being sent; False if there is no comment."""
        if not self.draft.comments or self.state in ("sent", "over"):
            return False
        self.take_back()
        self.draft.comments = self.draft.comments[:-1]
        return True

    @property
    def comments(self) -> tuple[Comment, ...]:
        """The comments on passages, in the order of the text."""
        return in_order(self.draft.comments)

    def show_versions(self, version: Version | None, previous: Version | None) -> None:
        """Show the newest two versions of the subject, which are loaded now."""
        if previous is not None and previous.became is None and version is not None:
            # Loaded once, not whenever the card changes.
            previous = replace(previous, became=revision(previous.value, version.value))
        self._versions = version, previous
        self._make_card()

    # The steps from a choice to a decision.

    def _move(self, state: State) -> None:
        self.state = state
        if self.draft.actions:  # the card shows what is about to be sent
            self._make_card()

    def _make_card(self) -> None:
        thread, draft, request = self._thread, self.draft, self.request
        if draft.form is not self._form:
            self._form, self.changed = draft.form, False
            self.texts = draft.form.texts if draft.form else {}
        version, previous = self._versions
        self.card: ReviewCard = review_card(
            request, thread.view, thread.view.values, version=version, previous=previous,
            decided=draft.outgoing if self.state in _DECIDED else draft.labels,
            edited=(draft.value,) if draft.edited and not draft.editing else None,
            reader=self.actor, beside=True,
        )  # fmt: skip
        waiting = [asked.id for asked in thread.requests]
        self.bound = untrusted(self.card.bound).text
        if len(waiting) > 1 and request.id in waiting:
            key = self.keymap.shown("card.next")
            way = f", {key} next" if key else ""
            self.bound = f"{waiting.index(request.id) + 1} of {len(waiting)}{way} · {self.bound}"

    def _go_on(self) -> Effects:
        """Show the next part of the answer, with other text and choices."""
        self._wanted, self._problem = None, ""
        self._make_card()
        return ("choices",)

    def _stop_edit(self) -> Effects:
        self.draft.end_edit()
        return self._go_on()

    def _decide(self, chosen: str, now: float, *, by_letter: bool) -> Effects:
        draft = self.draft
        choice = next((choice for choice in draft.choices if choice.id == chosen), None)
        if choice is None:
            return ()
        if draft.action is not None and choice.id == EDIT:
            return (*self._go_on(), "form") if draft.begin_edit() else self._write()
        if self._asks_for_words(choice, by_letter=by_letter):
            self._wanted, self._problem = choice, ""
            return ("reason",)
        if draft.action is not None:
            return self._decide_action(choice, now)
        answer = choice_answer(choice, self.reason, commented=bool(draft.comments))
        return self._prepare(choice.label, answer, self.reason, now=now, twice=not refuses(choice))

    def _decide_action(self, choice: ChoiceView, now: float, args: Any = None) -> Effects:
        """Decide one action, then ask about the next one or send the decisions on all."""
        whole = self.draft.decide(choice, self.reason, args)
        if whole is None:
            self.words = ""
            return self._go_on()
        note = self.reason if len(self.draft.actions) == 1 else ""
        focus = self._go_on()
        return (*focus, *self._prepare(*whole, note, now=now))

    def _decide_rest(self, now: float) -> Effects:
        """Approve the calls that are not decided yet; to undo it leads back to the first of them."""
        draft = self.draft
        self._rest_from = draft.part
        whole = None
        while whole is None:
            choice = next(choice for choice in draft.choices if choice.id == _APPROVE)
            whole = draft.decide(choice, "")
        return (*self._go_on(), *self._prepare(*whole, now=now))

    def _decide_by_form(self, now: float) -> Effects:
        assert self.draft.form is not None
        reading = read_form(self.draft.form, self.texts)
        whole = reading.problems.get((), "")
        self._problem = f"the answer: {whole}" if whole else ""
        if reading.problems:
            return (reading,)
        if self.draft.editing:
            return (reading, *self._decide_action(self._edit_choice, now, reading.value))
        return (reading, *self._prepare("the answer", reading.value, now=now))

    @property
    def _edit_choice(self) -> ChoiceView:
        return next(choice for choice in self.draft.choices if choice.id == EDIT)

    def _write(self) -> Effects:
        draft, request = self.draft, self.request
        if draft.editing:
            return (Write(request.title, draft.value, None, text=False),)
        return (Write(request.title, draft.value, request.schema, text=wants_text(request.schema)),)

    def _decide_freely(self, now: float) -> Effects:
        try:
            answer = value_answer(self.request, self.reason)
        except UsageError as error:
            self._problem = f"{error.message}; {error.hint}"
            return ()
        wrong = mismatch(self.request.schema or {}, answer)
        if wrong:
            self._problem = wrong
            return ()
        return self._prepare("the answer as a text" if self._json_as_text else "the answer", answer, now=now)

    @property
    def _json_as_text(self) -> bool:
        """Whether the typed text looks like JSON but is sent as text."""
        choices = self.request.choices or self.request.shape
        return not choices and wants_text(self.request.schema) and looks_like_json(self.reason)

    def _prepare(self, label: str, answer: Any, note: str = "", *, now: float, twice: bool = True) -> Effects:
        """Choose an answer, a high-risk one twice unless it refuses; then start the seconds to undo it."""
        decision = Decision(
            self.card.request,
            label,
            answer,
            note or None,
            self.card.seen,
            self.actor,
            self.comments,
            tuple(reason.id for reason in self.picked),
            dict(self.draft.scores),
        )
        self._problem = self.refused = ""
        self._decided_at = now
        self.since = ()
        if self.card.high_risk and twice and self.decision != decision:
            self.decision = decision
            self._move("confirm")
        else:
            self.decision, self._due = decision, now + UNDO
            self._move("sending")
        return ()

    def _send(self) -> Effects:
        decision = self.send_at_once()
        return (Send(decision),) if decision is not None else ()

    # The card's contents.

    @property
    def unsent(self) -> str:
        """Describe the decision that can still be undone."""
        return self.decision.label if self.decision is not None and self.state == "sending" else ""

    @property
    def unapplied(self) -> tuple[str, str]:
        """Return the text typed so far and its name; "" for nothing."""
        return unsent_text(self._answer), f"what you wrote about {self.request.title!r}"

    @property
    def armed(self) -> bool:
        """Whether the options can be taken."""
        return self.state != "grace"

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that can be chosen."""
        if self.state in ("sending", "sent"):
            return _SENDING
        if self.state == "over":
            return _OVER
        draft, request = self.draft, self.request
        if draft.editing:
            return (
                Option("_take", "ask.take", "use these arguments"),
                Option("_untake", "app.back", "back to the choices"),
            )
        options = self._answers()
        taken = {key for option in options for key in (option.key, *option.also)}
        free = not taken & {"card.edit", *map(written, self.keymap.bindings["card.edit"])}
        if request.subject and free and not command_refusal(self._thread.view.refusals, UpdateState):
            options.append(
                Option("_edit", "card.edit", f"edit {sanitise_line(request.subject, _NAME)} first")
            )
        if request.rubric:
            scores = score_words(request.rubric, self.draft.scores)
            options.append(Option("_score", "card.score", f"score: {scores}"))
        if request.thread and request.choices and free:
            options.append(Option("_inside", "card.edit", "edit it in its own thread"))
        return (*options, _later(request))

    def _answers(self) -> list[Option]:
        draft, request = self.draft, self.request
        if request.choices or request.shape:
            options = []
            for choice in draft.choices:
                key, also = ("ask.take", (choice.key,)) if choice.recommended else (choice.key, ())
                destination = "" if self._next_node else self.destinations.get(choice.id, "")
                risk = "" if refuses(choice) else self._risk
                options.append(Option(choice.id, key, choice.label, destination, also, risk))
            back = Option("_back", "card.back", f"back to action {draft.part}")
            return [*options, *self._at_no_risk(), *([back] if draft.part else [])]
        again = Option("_write", "card.edit", "edit it again")
        if request.kind == "edit":
            if draft.edited:
                return [Option("_value", "ask.take", "send your version"), again]
            return [
                Option("_write", "ask.take", "edit it", also=("card.edit",)),
                Option("_same", "u", "send it unchanged"),
            ]
        if draft.form is not None:
            return [Option("_form", "ask.take", "send the answer", risk=self._risk)]
        if draft.edited:
            return [Option("_value", "ask.take", "send the answer"), again]
        send = Option("_free", "ask.take", "send the answer", risk=self._risk)
        in_editor = Option("_write", "card.edit", "write it in an editor")
        return [send] if wants_text(request.schema) else [send, in_editor]

    def _at_no_risk(self) -> list[Option]:
        """Return what else can be done with calls where nothing is known to be at risk."""
        draft = self.draft
        if draft.action is None or not any(choice.id == _APPROVE for choice in draft.choices):
            return []
        options, left = [], draft.actions[draft.part :]
        names = {choice.id for choice in choices_of(left)} if len(left) > 1 else ()
        if _APPROVE in names and is_safe(self.request, left):
            number = _NUMBERS[len(left)] if len(left) < len(_NUMBERS) else str(len(left))
            which = "all" if not draft.part else "the remaining"
            options.append(Option("_rest", "A", f"approve {which} {number}"))
        if is_safe(self.request, left[:1]):
            options.append(Option("_allow", "card.allow", "don't ask again for calls like this"))
        return options

    @property
    def _risk(self) -> str:
        """Return the warning beside each answer of a high-risk request."""
        return "high risk" if self.card.high_risk else ""

    @property
    def cursor(self) -> int | None:
        """The index of the option that enter takes; None if no option is marked.

        That is the option to press again, else the one that asked for a reason, else the recommended one.
        """
        if self.state in ("sending", "sent"):
            return None
        wanted = self._pressed if self.state == "confirm" else self._wanted.id if self._wanted else ""
        options = self.options
        places = {option.id: place for place, option in enumerate(options)}
        recommended = next((place for place, option in enumerate(options) if option.key == "ask.take"), 0)
        return places.get(wanted, places.get(self.suggested, recommended))

    @property
    def chosen(self) -> str:
        """The engine's id of the answer under the cursor; "" if it is no choice."""
        cursor, ids = self.cursor, {choice.id for choice in self.draft.choices}
        at = self.options[cursor].id if cursor is not None else ""
        return at if at in ids else ""

    @property
    def takes_words(self) -> bool:
        """Whether there is a field for a reason or for an answer as text."""
        document = self.draft.edited or (self.request.kind == "edit" and not self.request.choices)
        return self.draft.form is None and not document

    @property
    def label(self) -> str:
        """The label above the input field."""
        draft, request = self.draft, self.request
        key = self.keymap.shown("card.reason")
        way = f" ({key})" if key else ""
        if draft.form is not None:
            return f"Arguments{way}" if draft.editing else f"Your answer{way}, * must be given"
        if draft.edited:
            return "Your version is above"
        if request.kind == "edit" and not request.choices:
            return "Edit what is shown above"
        if request.choices or request.shape:
            way = f" ({key}, numbers)" if key and self.reasons else way
            return f"Your reason{way}, kept in the log"
        return f"Your answer{way}" if wants_text(request.schema) else f"Your answer as JSON{way}"

    def lines(
        self, width: int, above: tuple[Line, ...] = (), *, rows: int = 0, marked: bool = False
    ) -> list[Line]:
        """Return the card's text for a width, below the lines `above` it and the changes `since`.

        `rows` is how many fit on screen: if too few for all, a short note on what runs again and the
        changes come first. `marked` is as for `fragment_spans`.
        """
        card = self.card
        first = (*above, *self.since)
        lines: list[Line] = [*_wrapped(first, width), ()] if first else []
        badge = trusted(f" {card.badge} ", _BADGES.get(card.badge_role, "badge-dim"))
        lines.append((untrusted(card.title, "title"), *((trusted("  "), badge) if card.badge else ())))
        if card.facts:
            lines += _wrapped((card.facts,), width)
        lines += [()] if rows >= _ROOMY else []
        lines += [
            *self._terms(width, brief=0 < rows < _ROOMY),
            *_wrapped((*card.dangers, *card.attending), width),
        ]
        head, body = lines, self._text(width, rows - len(lines), marked=marked)
        again = self._again(width)
        if again and rows and len(head) + len(body) + len(again) + 2 > rows:
            again = self._again(width, brief=True)
            lines = [*head, *again, *self._text(width, rows - len(head) - len(again), marked=marked)]
        elif again:
            lines = [*head, *body, (), (Span("After your answer", "dim"),), *again]
        else:
            lines = [*head, *body]
        if card.before:
            lines += [(), (Span("Last time", "dim"),), *_wrapped(card.before, width)]
        if card.signing:
            lines += [(), *_wrapped((card.signing,), width)]
        return [*lines, ()]

    def _terms(self, width: int, *, brief: bool) -> list[Line]:
        """Return the terms as aligned rows.

        Args:
            brief: leave out who asks and what runs next.
        """
        rows = [*self.card.rows, *([("then runs", (trusted(self._next_node),))] if self._next_node else [])]
        rows = rows[1 : len(self.card.rows)] if brief else rows
        column = max((len(label) for label, _ in rows), default=0) + 2
        lines: list[Line] = []
        for label, said in rows:
            lines += wrap_rich((trusted(f"{label:<{column}}", "dim"), *said), width, " " * column)
        return lines

    @property
    def _next_node(self) -> str:
        """Return the node that runs next whatever is answered; "" if it depends, or is not known."""
        known = set(self.destinations.values())
        ids = {choice.id for choice in self.card.choices}
        node = next(iter(known), "").removeprefix("→ ") if len(known) == 1 else ""
        if not node or ids - self.destinations.keys():
            return ""
        return f"{node}, from its start" if node == self.request.node else node

    def _again(self, width: int, *, brief: bool = False) -> list[Line]:
        """Return lines on what runs again after the answer."""
        lines = repeat_lines(self.repeats, brief=brief) if self.repeats is not None else []
        return _wrapped(tuple((Span(words, "accent"),) for words in lines), width)

    def _text(self, width: int, rows: int, *, marked: bool) -> list[Line]:
        """Return the subject with everything said about it; changes come first if `rows` are too few."""
        card = self.card
        words: list[Line] = []
        if self.draft.comments:
            where = Span(f"Your comments: {destination(self.request)}", "dim")
            words += [(), *_wrapped(((where,), *comment_lines(self.comments)), width)]
        words += [(), *_wrapped(card.calls, width)] if card.calls else []
        words += [(), *_wrapped(card.words, width)] if card.words else []
        if card.why:
            words += [(), *_wrapped(card.why, width)]
        about: list[Line] = []
        if card.about:
            about += [(), (Span("About", "dim"),), *_wrapped(card.about, width)]
        if card.revised is None or not card.revised.changed:
            return [*words, *about]
        changed = _wrapped(excerpt(card.revised, _CHANGES, marked=marked), width)
        if len(words) + len(about) + len(changed) <= rows:
            return [*words, *about, *changed]
        return [*changed[: max(rows, _CHANGES)], *words, *about]

    def note(self, now: float) -> tuple[str, Role]:
        """The note below the options: the state, an error, or the text that is wanted."""
        label = self.decision.label if self.decision else ""
        if self._wanted is not None and self.state == "open" and not self.reason and not self._problem:
            keys = f"{self.keymap.shown('reason.leave')}, then {self.keymap.shown('ask.take')}"
            words = "say what to change" if self._wanted.text == "required" else "say why, or not"
            return f"{words}; {keys} for “{self._wanted.label}”", "accent"
        if self._problem:
            return self._problem, "error"
        match self.state:
            case "grace":
                return "keys work in half a second", "dim"
            case "confirm":
                return f"high risk: press again for “{label}”", "accent"
            case "sending":
                return f"sending “{label}” in {max(1, round(self._due - now + 0.49))}…", "accent"
            case "sent":
                return "sent", "dim"
        if self._json_as_text:
            return "sent as a text: the request does not ask for JSON", "accent"
        if self.card.high_risk:
            return "high risk: press the key twice", "accent"
        undo = self.keymap.key_hint("card.undo")
        return f"you are {self.actor}; {undo} undoes it within {UNDO:.0f} s", "dim"

    def note_lines(self, now: float, width: int, height: int) -> tuple[list[Line], tuple[Line, ...]]:
        """Return the note as rows, and the part of a long note that goes into the text above.

        `height` is the number of rows of the whole card.
        """
        words, role = self.note(now)
        lines = _note_rows(words, role, width)
        if len(lines) <= max(2, height // _NOTE_PART):
            return lines, ()
        return _note_rows(f"see above ({self._scrolling}): {words}", role, width)[:1], (*lines, ())

    @property
    def _scrolling(self) -> str:
        """Name the keys that scroll the text."""
        return f"{self.keymap.shown('list.page_down')}, {self.keymap.shown('list.page_up')}"


def _note_rows(words: str, role: Role, width: int) -> list[Line]:
    """Wrap a note, which may contain untrusted text; one row if `width` is 0."""
    return wrapped(sanitise_line(words, _NOTE), width, role)


def _later(request: Request) -> Option:
    """Return the option to decide later, with its deadline."""
    if request.deadline is None:
        return _LATER
    return replace(_LATER, label=f"later, but by {local_time(request.deadline)}")


def _wrapped(lines: tuple[Line, ...], width: int) -> list[Line]:
    return [row for line in lines for row in wrap_rich(line, width)]
