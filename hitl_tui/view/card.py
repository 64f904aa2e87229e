"""The review card: a request's question, its subject, its choices, and the answer so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from hitl_tui.drivers.unsent_answers import UnsentAnswer
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.engine.log.requests import Choice, Request, Vote
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.approval_formats import ToolAction, actions_of, choices_of
from hitl_tui.engine.thread.comments import Comment, comment_words, comments_of
from hitl_tui.engine.thread.interrupts import is_deadlocked
from hitl_tui.errors import UsageError
from hitl_tui.view.asked import asked_rows, danger_lines, is_beside
from hitl_tui.view.comments import comment_lines
from hitl_tui.view.form import Form, Path, form_of, form_of_value
from hitl_tui.view.format import (
    PRIVATE_TEXT,
    NotJson,
    count,
    duration,
    identity,
    inline,
    kind,
    read_json,
    size,
    tokens,
)
from hitl_tui.view.presence import attending_words
from hitl_tui.view.revision import Revision, revision
from hitl_tui.view.run_view import RunView
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, trusted, untrusted
from hitl_tui.view.taint import taint_words
from hitl_tui.view.terms import term_lines, term_rows
from hitl_tui.view.value_lines import laid_out, value_lines

if TYPE_CHECKING:
    from hitl_tui.view.session import ViewSession

_REFUSALS: Final = frozenset(
    {"reject", "revise", "refuse", "deny", "decline", "disapprove", "no", "redo", "rework", "stop", "abort"}
)
"""Answers that by their name refuse what was asked for, so a reason is wanted."""


def choice_answer(choice: Choice | ChoiceView, words: str | None, *, commented: bool = False) -> Any:
    """Return the answer for a choice, with the person's text if the choice takes one.

    Raises:
        UsageError: the choice needs a text and there is none; comments count as text.
    """
    if choice.text == "required" and not (words or "").strip() and not commented:
        raise UsageError(f"the answer {choice.id!r} needs a comment", 'add one: --note "…"')
    return {"choice": choice.id, "text": words} if words and choice.text != "none" else choice.id


def refuses(choice: ChoiceView) -> bool:
    """Whether a choice by its name refuses what was asked for: the safe answer."""
    return choice.id.lower() in _REFUSALS


def words_first(choice: ChoiceView) -> bool:
    """Whether a text is asked for before a choice is taken: if it needs one, or if it refuses."""
    return choice.text == "required" or (choice.text == "optional" and refuses(choice))


def value_answer(request: Request, word: str) -> Any:
    """Return the answer for a typed value: text if the request wants text, else JSON.

    Raises:
        UsageError: it is not JSON; the message says where.
    """
    if wants_text(request.schema):
        return word
    try:
        return read_json(word)
    except NotJson as error:
        raise UsageError(
            f"the answer to {request.title!r} must be JSON: {error}",
            "write a text in quotation marks, as '\"a text\"'",
        ) from None


def wants_text(schema: Mapping[str, Any] | None) -> bool:
    """Whether a free answer is a text: if its schema says so, or there is none."""
    return not schema or schema.get("type") == "string"


def looks_like_json(word: str) -> bool:
    """Whether a text is a JSON object or list, which may not be meant as text."""
    if not word.startswith(("{", "[")):
        return False
    try:
        read_json(word)
    except NotJson:
        return False
    return True


EDIT = "edit"
"""The choice of an action that takes changed arguments."""


def actions(request: Request) -> tuple[ToolAction, ...]:
    """Return the actions that a request asks to approve, in order; none for other requests."""
    return actions_of(request.shape, request.payload)


def answer_form(request: Request) -> Form | None:
    """Return the form of a free answer; None for a choice, an edit, a text or any JSON."""
    if request.choices or request.shape or request.kind == "edit":
        return None
    return form_of(request.schema)


def edit_form(request: Request, action: ToolAction | None = None) -> Form | None:
    """Return the form to edit an action's arguments, or the payload to edit; None for a text."""
    schema, value = (action.schema, action.args) if action else (request.schema, request.payload)
    return form_of(schema, value) or form_of_value(value)


_KNOWN: Final = frozenset({"verdict", "feedback", "draft", "round", "rounds", "agent"})
_NAME: Final = 40
_TITLE: Final = 80
_WIDE: Final = 240
_ROW: Final = 100
"""Cells of a row of the payload where the width is not known."""
_KEY: Final = 12
_WORDS: Final = 500
_MODELS: Final = 3
_SHORTEST: Final = 100_000
"""Microseconds below which the duration of a step is not shown."""


class Version(msgspec.Struct, frozen=True):
    """A version of the subject: the step that wrote it, the writer, and the raw value.

    `became` is how it changed in the version that is decided about, if already computed.
    """

    step: int
    who: str
    value: Any
    became: Revision | None = None


async def newest_versions(
    session: ViewSession, channel: str, step: int
) -> tuple[Version | None, Version | None]:
    """Return a channel's newest two versions up to a step, if the last steps have them."""
    found = (await session.versions(channel, step, 2)).found
    version, previous = (*(Version(point.step, who, value) for point, who, value in found), None, None)[:2]
    return version, previous


class ChoiceView(msgspec.Struct, frozen=True):
    """One allowed answer: `key` is the key to press, `text` whether it takes a text."""

    id: str
    key: str
    label: str
    text: Literal["none", "optional", "required"]
    recommended: bool


class ReviewCard(msgspec.Struct, frozen=True):
    """A request as drawn.  `seen` goes to `Driver.answer` with the answer.

    Args:
        title: what is asked, such as "Approve this draft?".
        badge: a verdict, such as "advisor: REVISE", or None; `badge_role` is its meaning.
        facts: "round 2 of 3 · opus · 214 tok".
        words: the asker's text, or an unknown payload as JSON.
        why: the asking step's own explanation, such as how it read a reply.
        about: the subject, its size and how much it changed.
        revised: the changes since its last version, if it had one.
        votes: who has voted so far, if several must.
        calls: the waiting calls by name, with what was decided about each.
        dangers: what to look at twice in the payload or the call.
        before: the last decision at this node, by whom and why; () if there was none.
        terms: who may answer, how many must agree, and until when, if the request says so.
        rows: the terms with the votes, as rows of a label and what it says.
        signing: what will sign the answer, or that a required key is missing.
        attending: who owns it, who has claimed it and who has it open elsewhere.
        bound: "about step 4 · 5e431cea".
    """

    request: Request
    title: str
    badge: str | None
    badge_role: Role
    facts: Line
    words: tuple[Line, ...]
    why: tuple[Line, ...]
    about: tuple[Line, ...]
    revised: Revision | None
    votes: tuple[Line, ...]
    calls: tuple[Line, ...]
    dangers: tuple[Line, ...]
    before: tuple[Line, ...]
    terms: tuple[Line, ...]
    rows: tuple[tuple[str, Line], ...]
    signing: Line
    choices: tuple[ChoiceView, ...]
    attending: tuple[Line, ...]
    bound: str
    seen: bytes
    high_risk: bool


def review_card(
    request: Request,
    view: RunView,
    values: Mapping[str, Any],
    *,
    version: Version | None = None,
    previous: Version | None = None,
    decided: Sequence[tuple[str, Any]] = (),
    edited: tuple[Any] | None = None,
    reader: str = "",
    beside: bool = False,
) -> ReviewCard:
    """Return the card of a request.

    Args:
        values: the channel values at the request's step.
        version: the subject's version at that step.
        previous: the version before it, to show changes.
        decided: the decisions so far about the first of several actions: as text, with edited arguments.
        reader: the person who reads it.
        beside: whether a payload is shown beside the card, not on it.
        edited: what will be sent instead of the proposed value, if a person has edited that.
    """
    payload: Mapping[str, Any] = request.payload if isinstance(request.payload, Mapping) else {}
    verdict = payload.get("verdict") if isinstance(payload.get("verdict"), str) else None
    checkpoint = view.checkpoint(request.step)
    seen = checkpoint.state_hash if checkpoint else b""
    asker = sanitise_line(str(payload.get("agent") or request.node), _NAME)
    title = sanitise_line(request.title, _TITLE) or f"Your answer to {asker}?"
    sha = f" · {seen[:4].hex()}" if seen else ""
    value = _subject(request, view, values)
    votes = _votes(request)
    revised = previous.became if previous else None
    if previous is not None and revised is None and value is not PRIVATE:
        revised = revision(previous.value, value)
    return ReviewCard(
        request=request,
        title=title,
        badge=f"{asker}: {sanitise_line(verdict, _NAME).upper()}" if verdict else None,
        badge_role="ok" if verdict and verdict.strip().lower() == "approved" else "accent",
        facts=_facts(request, payload, checkpoint),
        why=_why(request, checkpoint),
        words=(
            _edited(*edited)
            if edited
            else _words(request, payload, verdict is not None)
            if not is_beside(request)
            else tuple(() if beside else asked_rows(request, len(decided), _ROW))
        ),
        calls=_actions(request, decided),
        dangers=tuple(danger_lines(request, len(decided))),
        about=(*_notes(request), *_about(request, value, version, previous, revised)),
        revised=revised if value is not PRIVATE else None,
        votes=votes,
        before=_before(request, view.ledger),
        terms=tuple(term_lines(request, reader)),
        rows=tuple(term_rows(request, reader, asker, votes)),
        signing=signing_line(request, view.signing_key),
        attending=tuple(
            (untrusted(words, "human"),) for words in attending_words(request, view.attending, reader)
        ),
        choices=tuple(choice_view(choice, request.recommended) for choice in request.choices),
        bound=(
            f"about step {request.thread_step} of {sanitise_line(request.thread, _TITLE)}"
            if request.thread
            else f"about step {request.step}{sha}"
        ),
        seen=seen,
        high_risk=request.risk == "high",
    )


def unsent_text(answer: UnsentAnswer) -> str:
    """Return everything that a person has written for a request, as one text; "" for nothing."""
    decided = "\n".join(f"{number}. {label}" for number, (_, label, _) in enumerate(answer.decided, 1))
    typed = "\n".join(f"{'.'.join(path)}: {text}" for path, text in answer.fields)
    comments = comment_words("", answer.comments)
    return "\n".join(part for part in (decided, typed, answer.words.strip(), comments) if part)


def choice_view(choice: Choice, recommended: str | None) -> ChoiceView:
    """Return a choice as drawn; `recommended` is the id of the one that enter takes."""
    return ChoiceView(
        id=choice.id,
        key=sanitise_line(choice.key, _KEY),
        label=sanitise_line(choice.label or choice.id, _TITLE),
        text=choice.text,
        recommended=choice.id == recommended,
    )


def _notes(request: Request) -> tuple[Line, ...]:
    """Return notes on a request, such as an earlier answer at the same place."""
    return tuple((untrusted(note, "accent", _WORDS),) for note in request.notes)


def _votes(request: Request) -> tuple[Line, ...]:
    lines = tuple(_vote(request, vote) for vote in request.votes)
    if is_deadlocked(request):
        split = f"they disagree, and {request.quorum} equal votes are needed: each may change their vote"
        return (*lines, (trusted(split, "accent"),))
    return lines


def _vote(request: Request, vote: Vote) -> Line:
    chosen, said = vote.answer, vote.note
    if request.choices and isinstance(chosen, Mapping) and "choice" in chosen:
        chosen, said = chosen["choice"], chosen.get("text") or said
    label = next((choice.label for choice in request.choices if choice.id == chosen), None)
    words = trusted(f" says {sanitise_line(label, _TITLE) if label else inline(chosen, _TITLE)}")
    note = (trusted("  "), untrusted(str(said), "human", _WIDE)) if said else ()
    return (trusted(identity(vote.actor, vote.login), "human"), words, *note)


def vote_given(request: Request) -> str:
    """Return the message after a vote that does not decide a request alone."""
    return f"your vote counts: {len(request.votes)} of {request.quorum}; it waits for {yet_to_vote(request)}"


def yet_to_vote(request: Request) -> str:
    """Return who may still vote, by name if reviewers are named."""
    voted = {vote.actor for vote in request.votes}
    left = ", ".join(sanitise_line(name, _NAME) for name in request.reviewers if name not in voted)
    return left or "another reviewer"


def signing_line(request: Request, key: str) -> Line:
    """Return what will sign the answer, or that a key is missing; () if no signature is involved."""
    if key:
        # A narrow card would cut the end of a long path, which is what distinguishes keys.
        return (trusted(f"your decision is signed with {sanitise_line(PurePath(key).name, _WIDE)}", "dim"),)
    if request.signed:
        words = "it must be signed, and you have no signing key: name one as signing_key in config.toml"
        return (trusted(words, "error"),)
    return ()


def _before(request: Request, ledger: Sequence[LedgerEntry]) -> tuple[Line, ...]:
    """Return a person's answer to this node's last request."""
    asked = {
        entry.request_id: entry
        for entry in ledger
        if entry.kind == "request"
        and isinstance(entry.data, Mapping)
        and entry.data.get("node") == request.node
    }
    for entry in reversed(ledger):
        if entry.kind == "answer" and entry.actor and entry.request_id in asked:
            answer = entry.data.get("answer") if isinstance(entry.data, Mapping) else None
            said = answer if isinstance(answer, Mapping) else {"choice": answer}
            label = _label_then(asked[entry.request_id], said.get("choice"))
            what = f"chose “{sanitise_line(label, _TITLE)}”" if label else "answered"
            comments = comments_of(entry.data)
            # The answer's text quotes the comments, which are shown separately.
            words = entry.note or ("" if comments else said.get("text"))
            note = f": “{sanitise_line(str(words), _WIDE)}”" if words else ""
            who = identity(entry.actor, entry.login)
            decided: Line = (trusted(f"{who} {what} at step {entry.step}{note}", "human"),)
            return decided, *comment_lines(comments)
    return ()


def _label_then(asked: LedgerEntry, chosen: Any) -> str:
    """Return the label that a choice had when it was asked; a later question may word it differently."""
    labels = asked.data.get("labels", {}) if isinstance(asked.data, Mapping) else {}
    return str(labels.get(chosen, chosen if isinstance(chosen, str) else ""))


def how_it_went(ledger: Sequence[LedgerEntry], request_id: str) -> str:
    """Return why a request no longer waits, for a person who was about to answer it."""
    for entry in reversed(ledger):
        if entry.request_id == request_id and entry.kind == "answer":
            note = f" (“{sanitise_line(entry.note, _WIDE)}”)" if entry.note else ""
            return f"{identity(entry.actor, entry.login)} decided first{note}"
        if entry.request_id == request_id and entry.kind == "timeout":
            return "its deadline has passed"
    return "this no longer waits"


def _facts(request: Request, payload: Mapping[str, Any], checkpoint: Checkpoint | None) -> Line:
    """Return the request's place inside the node, and the asking step's round, model and use."""
    facts: list[str] = []
    if request.thread:
        inner = request.path.partition("/")[2]
        facts.append(f"node {sanitise_line(inner, _NAME)} of thread {sanitise_line(request.thread, _TITLE)}")
    elif request.path and request.path not in request.title:
        facts.append(f"branch {sanitise_line(request.path, _NAME)}")
    turn, turns = payload.get("round"), payload.get("rounds")
    if kind(turn) == "number":
        of = f" of {inline(turns, 12)}" if kind(turns) == "number" else ""
        facts.append(f"round {inline(turn, 12)}{of}")
    if checkpoint and checkpoint.node == request.node:
        models = dict.fromkeys(sanitise_line(use.model, _NAME) for use in checkpoint.uses)
        facts += [model for model in models if model][:_MODELS]
        used = checkpoint.tokens_in + checkpoint.tokens_out
        facts += [tokens(used)] if used else []
        facts += [duration(checkpoint.duration)] if checkpoint.duration >= _SHORTEST else []
    return (trusted(" · ".join(facts), "dim"),) if facts else ()


def _why(request: Request, checkpoint: Checkpoint | None) -> tuple[Line, ...]:
    if checkpoint is None or checkpoint.node != request.node or not checkpoint.text:
        return ()
    return ((untrusted(checkpoint.text, "dim", _WIDE),),)


def _words(request: Request, payload: Mapping[str, Any], known: bool) -> tuple[Line, ...]:
    """Return the asker's text; a payload of another shape as JSON, so that nothing is hidden."""
    if request.policy == "on_taint":
        values = payload.get("values")
        return (*taint_words(payload), *(_parts(values) if isinstance(values, Mapping) else ()))
    feedback = payload.get("feedback")
    if known and (feedback is None or isinstance(feedback, str)):
        lines: Sequence[str] = value_lines(feedback, "text") if feedback else ()
        extra = {name: value for name, value in payload.items() if name not in _KNOWN}
        lines = (*lines[:_WORDS], *(_json(extra) if extra else ()))
    elif request.payload is None:
        lines = ()
    elif isinstance(request.payload, str):
        # A text that equals the title is not repeated.
        lines = value_lines(request.payload, "text")[:_WORDS] if request.payload != request.title else ()
    elif request.thread and payload and all(isinstance(value, str) for value in payload.values()):
        return _parts(payload)
    else:
        lines = _json(request.payload)
    return tuple((trusted(line, "value"),) for line in lines)


def _edited(value: Any) -> tuple[Line, ...]:
    """Return the value that a person sends instead of the proposed one."""
    lines = value_lines(value, "text")[:_WORDS] if isinstance(value, str) else _json(value)
    return ((trusted("Your version", "human"),), *((trusted(line, "value"),) for line in lines))


def _parts(payload: Mapping[str, Any]) -> tuple[Line, ...]:
    """Return the values of a subgraph's thread, whose channels this thread lacks, each below its name."""
    lines: list[Line] = []
    for name, value in payload.items():
        length = count(len(value), "character") if isinstance(value, str) else size(value)
        lines.append((untrusted(name, "name", _TITLE), trusted(f", {length}" if length else "", "dim")))
        shown = value_lines(value, "text")[:_WORDS] if isinstance(value, str) else _json(value)
        lines += [(trusted(line, "value"),) for line in shown]
    return tuple(lines)


def _actions(request: Request, decided: Sequence[tuple[str, Any]]) -> tuple[Line, ...]:
    """Return the waiting actions by name, with what was decided about each; beside it are their arguments."""
    asked = actions_of(request.shape, request.payload)
    lines: list[Line] = []
    for place, action in enumerate(asked):
        number = f"{place + 1} of {len(asked)}  " if len(asked) > 1 else ""
        name = untrusted(action.name, "name", _TITLE)
        if place < len(decided):
            label, args = decided[place]
            lines.append((trusted(number, "dim"), name, trusted(f"  {sanitise_line(label, _WIDE)}", "ok")))
            shown = _json(args) if args is not None else ()
            lines += [(trusted(line, "human"),) for line in shown]
        elif place > len(decided):
            lines.append((trusted(number, "dim"), name, trusted("  not decided yet", "dim")))
        elif number:
            lines.append((trusted(number, "dim"), name, trusted("  now", "accent")))
    return tuple(lines)


def _json(value: Any) -> Sequence[str]:
    """Return JSON for people: texts keep their line breaks."""
    lines = laid_out(value)
    more = len(lines) - _WORDS
    return (*lines[:_WORDS], f"… {count(more, 'more line')}") if more > 0 else lines[:_WORDS]


def _subject(request: Request, view: RunView, values: Mapping[str, Any]) -> Any:
    """Return the value that is decided about."""
    channel = next((channel for channel in view.graph.channels if channel.name == request.subject), None)
    hidden = channel is not None and channel.visibility == "private"
    return PRIVATE if hidden else values.get(request.subject or "")


def _about(
    request: Request, value: Any, version: Version | None, previous: Version | None, revised: Revision | None
) -> tuple[Line, ...]:
    if request.subject is None:
        return ()
    what: list[Span] = [untrusted(request.subject, "name", _TITLE)]
    if version:
        by = sanitise_line(version.who, _NAME)
        what.append(trusted(f" of step {version.step}{' by ' + by if by else ''}", "dim"))
    length = count(len(value), "character") if isinstance(value, str) else size(value)
    shown = PRIVATE_TEXT if value is PRIVATE else length or inline(value, _TITLE)
    what.append(trusted(f", {shown}", "private" if value is PRIVATE else "dim"))
    if previous is None or revised is None or value is PRIVATE:
        return (tuple(what),)
    change = revised.summary() or "unchanged"
    return tuple(what), (trusted(f"{change} since step {previous.step}", "dim"),)


_NOT_YET: Final = object()
Decided = tuple[str, Any]
"""What was decided about an action, in words, and its arguments where they were edited."""


class AnswerDraft:
    """The unsent answer to one request: what was chosen and typed so far.

    Attributes:
        form: the form that is being filled in, None if there is none.
        editing: whether that form (or the editor) is about the arguments of the current action.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.actions = actions(request)
        self.form: Form | None = answer_form(request)
        self.editing = False
        self.outgoing: tuple[Decided, ...] = ()
        """The decision about each of several actions, just before it is sent."""
        self.comments: tuple[Comment, ...] = ()
        """The comments on passages, in the order they were made."""
        self.reasons: tuple[str, ...] = ()
        """The ids of the picked reasons."""
        self.scores: dict[str, int] = {}
        """The scores by criterion of the rubric."""
        self._decided: list[Any] = []
        self.labels: tuple[Decided, ...] = ()
        """The labels of the decisions about the previous actions."""
        self.filled = False
        """Whether the form has texts that were typed before it was shown."""
        self._value: Any = _NOT_YET

    def restore(self, kept: UnsentAnswer) -> None:
        """Continue an answer that was not sent; what was decided about another question is left out."""
        self.comments, self.reasons = kept.comments, kept.reasons
        self.scores = {name: kept.scores[name] for name in self.request.rubric if name in kept.scores}
        if kept.asked == self.request.request_hash:
            known = kept.decided[: max(len(self.actions) - 1, 0)]
            self._decided = [answer for answer, _, _ in known]
            self.labels = tuple((label, args) for _, label, args in known)
            if kept.value:
                self._value = kept.value[0]
            if kept.editing and self.action is not None:
                self.begin_edit()
        if self.form is not None and kept.fields:
            self.fill(dict(kept.fields))

    def fill(self, texts: Mapping[Path, str]) -> None:
        """Show the form with these texts in its fields."""
        assert self.form is not None
        fields = (replace(field, text=texts.get(field.path, field.text)) for field in self.form.fields)
        self.form, self.filled = replace(self.form, fields=tuple(fields)), True

    def unsent(self, thread: str, words: str, texts: Mapping[Path, str] | None) -> UnsentAnswer:
        """Return what is kept of it until it is sent.

        Args:
            texts: the texts of the form's fields, None if nobody has typed there.
        """
        labels = zip(self._decided, self.labels, strict=True)
        return UnsentAnswer(
            thread, self.request.id, self.request.title, self.request.request_hash, words,
            fields=tuple(texts.items()) if texts is not None and self.form is not None else (),
            comments=self.comments,
            decided=tuple((thaw(answer), label, thaw(args)) for answer, (label, args) in labels),
            editing=self.editing,
            value=(thaw(self._value),) if self.edited else (),
            reasons=self.reasons,
            scores=dict(self.scores),
        )  # fmt: skip

    @property
    def part(self) -> int:
        """The index of the action that is decided about."""
        return len(self._decided)

    @property
    def action(self) -> ToolAction | None:
        """The action that is decided about, None for other requests."""
        return self.actions[self.part] if self.part < len(self.actions) else None

    @property
    def edited(self) -> bool:
        """Whether there is a value from the editor."""
        return self._value is not _NOT_YET

    @property
    def choices(self) -> tuple[ChoiceView, ...]:
        """The choices that are available now."""
        action = self.action
        choices = self.request.choices if action is None else choices_of([action])
        return tuple(choice_view(choice, self.request.recommended) for choice in choices)

    @property
    def value(self) -> Any:
        """The editor's initial value: its last result, else the proposed value."""
        if self.edited:
            return self._value
        if self.editing and self.action is not None:
            return thaw(self.action.args)
        return thaw(self.request.payload) if self.request.kind == "edit" else None

    def take(self, value: Any) -> None:
        """Keep a value from the editor."""
        self._value = value

    def begin_edit(self) -> bool:
        """Start to edit the current action's arguments; returns whether there is a form for it."""
        self.editing = True
        assert self.action is not None
        self.form, self.filled = edit_form(self.request, self.action), False
        return self.form is not None

    def end_edit(self) -> None:
        """Return to the choices."""
        self.editing, self.form, self._value, self.filled = False, None, _NOT_YET, False

    def decide(self, choice: ChoiceView, words: str, args: Any = None) -> tuple[str, Any] | None:
        """Decide the current action; returns the label and the answer once all are decided, else None."""
        answer = {"choice": EDIT, "args": args} if choice.id == EDIT else choice_answer(choice, words)
        self._decided.append(answer)
        # The reason field is emptied for the next action, so that the reason is shown with the decision.
        why = f": “{words}”" if words and choice.text != "none" and len(self.actions) > 1 else ""
        self.labels = (*self.labels, (f"{choice.label}{why}", args if choice.id == EDIT else None))
        self.end_edit()
        if self.part < len(self.actions):
            return None
        label, whole = ", ".join(words for words, _ in self.labels), list(self._decided)
        self.outgoing = self.labels
        self.back()
        return label, whole

    def back(self) -> None:
        """Undo the last decision about an action."""
        self._decided.pop()
        self.labels = self.labels[:-1]
