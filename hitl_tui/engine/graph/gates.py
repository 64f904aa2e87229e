"""Gates: a person's decision after (or before) a node, with what each answer does to the state.

A gate turns an interrupt into a request with named answers. The values of the answer are written as an
`update_state` checkpoint, and the route is chosen on the state after that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from hitl_tui.declared import Declaration
from hitl_tui.engine.graph.description import GateInfo
from hitl_tui.engine.graph.functions import check_arguments, takes_second
from hitl_tui.engine.log.requests import Choice, RequestKind
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.state.values import is_name, normalise
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.errors import AnswerRefused, GraphInvalid, HitlError, UsageError, in_words

LONGEST_DEADLINE = 100 * 366 * 86_400
"""Seconds."""
_MOST_CRITERIA = 20
_LONGEST_CRITERION = 40
TextUse = Literal["none", "optional", "required"]


class GateChoice(Declaration, frozen=True):
    """One answer of a gate.

    Attributes:
        id: what an answer names.
        label: what a person reads.
        label_for: `(state) -> text`, read instead of `label` where the effect of the choice depends on the
            state.
        key: the key suggested on screen.
        text: whether the person may or must add a comment.
        values: what it sets: a mapping, or a function `(state, text) -> mapping`; nothing by default. The
            function may leave the text out; a second parameter with a default gets it only if it is called
            `text`.
    """

    id: str
    label: str
    key: str = ""
    text: TextUse = "optional"
    values: Mapping[str, Any] | Callable[..., Mapping[str, Any]] = {}  # noqa: RUF012 (a struct copies it)
    label_for: Callable[[WorkflowState], str] | None = None

    def check(self) -> None:
        """Refuse an id that no answer can name, and values that no channel can hold."""
        if not is_name(self.id):
            raise GraphInvalid(
                f"GateChoice: the id {self.id!r} is not allowed", "give text, as an answer names it"
            )
        if self.label_for is not None:
            check_arguments(f"label_for of {self.label_in_errors()}", self.label_for, "state")
        if callable(self.values):
            arguments = ("state", "text") if takes_second(self.values, "text") else ("state",)
            check_arguments(f"the values of {self.label_in_errors()}", self.values, *arguments)
            return
        for name, value in self.values.items():
            try:
                normalise(value, name)
            except HitlError as error:
                raise GraphInvalid(f"{self.label_in_errors()}: values: {error.message}", error.hint) from None

    def values_for(self, state: WorkflowState, text: str) -> Mapping[str, Any]:
        """Return the channel values that this answer sets."""
        if not callable(self.values):
            return self.values
        return self.values(state, text) if takes_second(self.values, "text") else self.values(state)

    @property
    def choice(self) -> Choice:
        """The answer as data, with the label that holds in any state."""
        return Choice(self.id, self.label, self.key, self.text)

    def choice_in(self, state: WorkflowState) -> Choice:
        """Return the answer as a person sees it; raises `UsageError` if `label_for` returns no text."""
        if self.label_for is None:
            return self.choice
        label = self.label_for(state)
        if not is_name(label):
            raise UsageError(
                f"label_for of {self.label_in_errors()} returned {label!r:.60}", "return what a person reads"
            )
        return Choice(self.id, label, self.key, self.text)


class Gate(Declaration, frozen=True):
    """A request to a person at a node.

    Attributes:
        node: the node after which (`interrupt_after`) or before which (`interrupt_before`) it asks.
        title: the question, such as "Approve this draft?".
        choices: the allowed answers.
        subject: the channel that the decision is about; a private one shows as [private] until it is
            revealed.
        payload: `(state) -> JSON`, shown with the question; public, whatever it was made from.
        recommended: the id of the answer that keeps things as they are.
        reviewers: who may answer; empty for anyone.
        quorum: how many different people must give the same answer.
        one_account: whether one account of the operating system may give several of a quorum's votes under
            different names, for people who share a machine.
        logins: users or groups of the database. Whoever answers must be logged in there as one of them,
            whatever name they give, and a quorum needs as many different logins. Needs a store in PostgreSQL.
        signed: whether an answer counts only if it is signed with the key of the person who decides.
        four_eyes: nobody may answer who has given the thread an input or edited it, under any name of the
            same account (unless `one_account`) or login; an answer takes a name.
        rubric: criteria that a person may score from 1 to 5 with the answer.
        second_reading: the share of its answered requests, from 0 to 1, that another person reads again
            without seeing the answer, to measure how far people agree. Nothing waits for that.
        deadline: seconds until it expires; None waits for ever.
        on_timeout: the answer then; None fails the thread with reason "deadline".
        escalate_to: who may answer besides the reviewers once it has waited for `escalate_after`; needs
            reviewers.
        escalate_after: seconds until then; below 0, so many seconds before the deadline.
        risk: "high" asks for a second key press on screen.
        binds: the parts of the payload that an answer is about, by name, dotted for nested parts; all by
            default. Leave out what is never the same twice, such as a time or a random id.
    """

    node: str
    title: str
    choices: Sequence[GateChoice]
    kind: RequestKind = "choose"
    subject: str | None = None
    payload: Callable[[WorkflowState], Any] | None = None
    recommended: str | None = None
    reviewers: Sequence[str] = ()
    quorum: int = 1
    one_account: bool = False
    logins: Sequence[str] = ()
    signed: bool = False
    four_eyes: bool = False
    rubric: Sequence[str] = ()
    second_reading: float = 0.0
    deadline: float | None = None
    on_timeout: Any = None
    escalate_to: Sequence[str] = ()
    escalate_after: float | None = None
    risk: Literal["normal", "high"] = "normal"
    binds: Sequence[str] = ()

    def label_in_errors(self) -> str:
        """The gate, as errors name it."""
        return f"gate at {self.node!r:.60}" if isinstance(self.node, str) else "gate"

    def check(self) -> None:
        """Refuse choices and conditions under which nobody could answer; raises `GraphInvalid`."""
        for choice in self.choices:
            if not isinstance(choice, GateChoice):
                raise GraphInvalid(
                    f"gate at {self.node!r}: the choice {choice!r:.60} is {in_words(choice)}",
                    'write GateChoice("approve", "send it", "a", values={"channel": value})',
                )
        if not is_name(self.title):
            raise GraphInvalid(
                f"gate at {self.node!r}: the title {self.title!r} asks nothing", "write a question"
            )
        if self.payload is not None:
            check_arguments(f"the payload of the gate at {self.node!r}", self.payload, "state")
        ids = [choice.id for choice in self.choices]
        if not ids or len(set(ids)) != len(ids):
            raise GraphInvalid(f"gate at {self.node!r}: it needs choices with different ids, not {ids}")
        keys = [choice.key for choice in self.choices if choice.key]
        if len(set(keys)) != len(keys):
            raise GraphInvalid(
                f"gate at {self.node!r}: two choices have one key: {keys}", "give each its own"
            )
        if self.recommended is not None and self.recommended not in ids:
            raise GraphInvalid(f"gate at {self.node!r}: recommended {self.recommended!r} is none of {ids}")
        try:
            check_binds(self.binds)
            check_rubric(self.rubric)
            check_second_reading(self.second_reading)
            check_terms(self.reviewers, self.quorum, self.deadline, self.logins)
            check_escalation(self.reviewers, self.escalate_to, self.escalate_after, self.deadline)
            if self.on_timeout is not None:
                check_choice(self.choices, self.on_timeout)
        except HitlError as error:
            raise GraphInvalid(f"gate at {self.node!r}: {error.message}", error.hint) from None

    @property
    def channels(self) -> list[str]:
        """The channels that it is known to be about or to set."""
        about = [self.subject.partition(".")[0]] if self.subject else []
        set_by = [choice.values for choice in self.choices if isinstance(choice.values, Mapping)]
        return [*about, *(name for values in set_by for name in values)]

    def info(self, when: Literal["before", "after"], channels: Mapping[str, BoundChannel]) -> GateInfo:
        """Return the gate as data.

        Args:
            channels: those of the graph.
        """
        return GateInfo(
            node=self.node,
            when=when,
            title=self.title,
            kind=self.kind,
            choices=tuple(choice.choice for choice in self.choices),
            sets={
                choice.id: values
                for choice in self.choices
                if (values := _plain_values(choice, channels)) is not None
            },
            subject=self.subject,
            recommended=self.recommended,
            reviewers=tuple(self.reviewers),
            quorum=self.quorum,
            one_account=self.one_account,
            logins=tuple(self.logins),
            signed=self.signed,
            four_eyes=self.four_eyes,
            rubric=tuple(self.rubric),
            second_reading=float(self.second_reading),
            deadline=None if self.deadline is None else float(self.deadline),
            on_timeout="" if self.on_timeout is None else read_choice(self.on_timeout)[0],
            escalate_to=tuple(self.escalate_to),
            escalate_after=None if self.escalate_after is None else float(self.escalate_after),
            risk=self.risk,
            binds=tuple(self.binds),
        )

    def choose(self, answer: Any) -> tuple[GateChoice, str]:
        """Return the choice that an answer names and its comment; raises `AnswerRefused`."""
        chosen, text = read_choice(answer)
        for choice in self.choices:
            if choice.id == chosen:
                return choice, text
        raise AnswerRefused(f"{chosen!r} is not one of the answers to {self.title!r}", _known(self.choices))


def _plain_values(choice: GateChoice, channels: Mapping[str, BoundChannel]) -> dict[str, Any] | None:
    """Return what an answer sets, as JSON; None if a function decides it, or if it sets a private channel."""
    if callable(choice.values):
        return None
    values: dict[str, Any] = {}
    for name, value in choice.values.items():
        channel = channels.get(name)
        if channel is None or channel.visibility == "private":
            return None
        try:
            values[name] = thaw(channel.replace(value))
        except HitlError:
            return None  # reported when it is chosen
    return values


def check_binds(binds: object) -> None:
    """Check names of payload parts; raises `GraphInvalid`."""
    if isinstance(binds, str) or not isinstance(binds, Sequence):
        raise GraphInvalid(f"binds is {in_words(binds)}", 'give a list of names, as binds=["amount"]')
    for name in binds:
        if not isinstance(name, str) or not name:
            raise GraphInvalid(f"binds has {in_words(name)}", 'give a list of names, as binds=["amount"]')


def check_rubric(rubric: object) -> None:
    """Check the criteria of a rubric; raises `GraphInvalid`."""
    hint = 'give a list of names, as rubric=["accuracy", "tone"]'
    if isinstance(rubric, str) or not isinstance(rubric, Sequence):
        raise GraphInvalid(f"rubric is {in_words(rubric)}", hint)
    for name in rubric:
        if not is_name(name) or not name.isprintable() or "=" in name or len(name) > _LONGEST_CRITERION:
            raise GraphInvalid(
                f"rubric has {name!r:.60}", f"{hint}: one line each, at most 40 characters, without ="
            )
    if len(set(rubric)) != len(rubric) or len(rubric) > _MOST_CRITERIA:
        raise GraphInvalid(f"rubric has {len(rubric)} criteria", f"give each once, at most {_MOST_CRITERIA}")


def check_second_reading(rate: float) -> None:
    """Check the share of requests that are read again; raises `GraphInvalid`."""
    if not 0 <= rate <= 1:  # nan, too
        raise GraphInvalid(f"second_reading={rate:g} is no share", "give a number from 0 to 1, as 0.1")


def check_terms(
    reviewers: Sequence[str], quorum: int, deadline: float | None, logins: Sequence[str] = ()
) -> None:
    """Check that a request can be answered at all; raises `GraphInvalid`."""
    for name, people in (("reviewers", reviewers), ("logins", logins)):
        if isinstance(people, str):
            raise GraphInvalid(f"{name}={people!r} is a text", f"give a list: [{people!r}]")
    if quorum < 1 or (reviewers and quorum > len(set(reviewers))):
        who = f" of {len(set(reviewers))} reviewers" if reviewers else ""
        raise GraphInvalid(
            f"quorum={quorum}{who} can't be reached", "give at least 1, at most one per reviewer"
        )
    if deadline is not None and not 0 < deadline <= LONGEST_DEADLINE:  # nan, too
        raise GraphInvalid(
            f"deadline={deadline:g}: give seconds above 0, at most 100 years", "leave it out to wait for ever"
        )


def check_escalation(
    reviewers: Sequence[str], to: Sequence[str], after: float | None, deadline: float | None
) -> None:
    """Check that a request can be escalated as it says; raises `GraphInvalid`."""
    if isinstance(to, str):
        raise GraphInvalid(f"escalate_to={to!r} is a text", f"give a list: [{to!r}]")
    if not to and after is None:
        return
    if not to or after is None:
        missing = "escalate_after" if to else "escalate_to"
        raise GraphInvalid(
            f"{missing} is missing", "escalate_to says to whom, escalate_after when, in seconds"
        )
    if not reviewers:
        raise GraphInvalid(
            "escalate_to adds to the reviewers, and there are none: anybody may answer", "name reviewers"
        )
    if after < 0 and deadline is None:
        raise GraphInvalid(
            f"escalate_after={after:g} is before the deadline, and there is none", "give seconds above 0"
        )
    waits = after if after > 0 or deadline is None else deadline + after
    if waits <= 0 or (deadline is not None and waits >= deadline):
        raise GraphInvalid(
            f"escalate_after={after:g} is not between the question and its deadline",
            "give seconds after the question, or below 0 before the deadline",
        )


def escalates_at(after: float | None, deadline: float | None, now: int) -> int | None:
    """Return when a request made now escalates (us); None for never.

    Args:
        after: seconds from now; if below 0, seconds before the deadline.
        deadline: seconds from now.
    """
    if after is None:
        return None
    return now + int((after if after > 0 or deadline is None else deadline + after) * 1e6)


def read_choice(answer: Any) -> tuple[str, str]:
    """Return `(choice id, comment)` of an answer: "approve" or {"choice": "approve", "text": "…"}."""
    if isinstance(answer, str):
        return answer, ""
    if isinstance(answer, Mapping) and isinstance(answer.get("choice"), str):
        return answer["choice"], str(answer.get("text") or "")
    raise AnswerRefused(
        "the answer names no choice",
        'answer with a choice, as "approve" or {"choice": "revise", "text": "…"}',
    )


def check_choice(choices: Sequence[Choice | GateChoice], answer: Any) -> None:
    """Check that an answer is one of the choices, with the comment it needs; raises `AnswerRefused`."""
    chosen, text = read_choice(answer)
    for choice in choices:
        if choice.id == chosen:
            if choice.text == "required" and not text.strip():
                raise AnswerRefused(f"the answer {chosen!r} needs a comment", "say what should change")
            return
    raise AnswerRefused(f"{chosen!r} is not an allowed answer", _known(choices))


def _known(choices: Sequence[Choice | GateChoice]) -> str:
    return "allowed: " + ", ".join(choice.id for choice in choices)
