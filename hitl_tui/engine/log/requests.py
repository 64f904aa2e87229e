"""Requests to humans, with their possible answers and their votes.

Times are microseconds since the Unix epoch, UTC.

Specified in docs/spec/threads.md.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from hitl_tui.engine.log.units import MAYBE, Maybe, Time, about

RequestKind = Literal["approve", "edit", "choose", "ask"]
When = Literal["before", "after", "inside"]
Shape = Literal["", "agent_inbox", "hitl_middleware", "tool_approval"]

BREAKPOINT: Final = "breakpoint"
"""The key of a breakpoint before a branch; the key of one before a call begins with this and a colon."""


class Choice(msgspec.Struct, frozen=True):
    """One possible answer to a request.

    Args:
        id: the name used in answers, such as "accept".
        label: the text on screen, such as "approve the draft".
        key: the suggested key on screen.
        text: whether the answer takes a text by the person.
    """

    id: Annotated[str, about("The id to answer with.")]
    label: Annotated[str, about("The label for people.")]
    key: Annotated[str, about("The suggested key; empty for none.")] = ""
    text: Annotated[Literal["none", "optional", "required"], about("Whether the answer takes a text.")] = (
        "optional"
    )


class Vote(msgspec.Struct, frozen=True):
    """One reviewer's answer to a request that needs several (quorum).

    `account` is the operating system account and host that it came from, `login` the database login.
    """

    actor: Annotated[str, about("The person.")]
    answer: Annotated[Any, about("The answer.")]
    at: Annotated[Time, about("When.")]
    note: Annotated[str | None, about("The reason they gave.")] = None
    account: Annotated[str, about("The account and host it came from, as ann@box.")] = ""
    login: Annotated[Maybe, about("The database login it came from.")] = ""


class HandedOn(msgspec.Struct, frozen=True):
    """A request handed over to somebody, by whom and why; others can still answer it."""

    to: Annotated[str, about("The person who is to decide.")]
    by: Annotated[str, about("The person who handed it over.")]
    note: Annotated[str | None, about("The note to them.")]
    at: Annotated[Time, about("When.")]


class Terms(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the hash of a request covers besides its visible fields.

    Args:
        deadline, escalate_after: seconds after the request was made.
        binds: the parts of the payload that the hash covers; () for all.
        item: the hex digest of the item of a map's branch.
        index: the number of identical requests that the same attempt made before.
    """

    deadline: float | None = None
    escalate_after: float | None = None
    binds: tuple[str, ...] = ()
    item: str = ""
    index: int = 0


class Request(msgspec.Struct, frozen=True):
    """A request that waits for a human's answer.

    Args:
        recommended: the choice that keeps things as they are (enter takes it).
        breakpoint: a plain `interrupt_before` / `interrupt_after`: resuming the thread passes it.
        key: its own name among the requests of the node, "" if it has none.
        on_timeout: the answer applied at the deadline, or None to fail the thread with reason "deadline".
        escalate_to: who may also answer from `escalate_at` on; they are then added to `reviewers`.
        risk: "high" needs a second key press on screen.
        shape: the format of another tool that payload and answer follow, "" for none (see
            `thread.approval_formats`).
        thread_step: for a request inside a subgraph, the step of the subgraph's thread that it is bound to.
        one_account: whether one account of the operating system may give several votes.
        logins: users and groups of the database: the answerer must be logged in as one of them, whatever
            name they give.
        policy: "on_taint" if the node's policy asks before the node reads tainted channels.
        differs: the parts of the payload that differ from the answered request at the same place.
        excerpt: the first words of its subject, for lists; "" without one, or if it is private.
        version: the number of the subject's versions that were asked about here; 0 without a subject.
        last_answer: a person's answer to the last request at the same place, if there is one.
        request_hash: of the request (see `thread.binding`): answers with another hash do not apply to it.
        about_hash: of the values that it is about.
    """

    id: Annotated[str, about("The request's id, as `answer` takes it.")]
    kind: Annotated[RequestKind, about("The kind of answer.", name="request_kind")]
    node: Annotated[str, about("The node that asks.")]
    when: Annotated[When, about("Whether it asks before, after or inside the node.")]
    step: Annotated[int, about("The step it is about, as `--step` takes it.")]
    title: Annotated[str, about("The question.")]
    payload: Annotated[Any, about("The data shown with the question.")] = None
    subject: Annotated[str | None, about("The channel that the decision is about.")] = None
    schema: Annotated[
        dict[str, Any] | None, about("JSON Schema of the answer; null for a choice or a text.")
    ] = None
    choices: Annotated[tuple[Choice, ...], about("The allowed answers; empty if a value is asked for.")] = ()
    recommended: Annotated[str | None, about("The recommended choice.")] = None
    breakpoint: Annotated[bool, about("Whether it only stops the thread; `resume` continues.")] = False
    reviewers: Annotated[tuple[str, ...], about("Who may answer; empty for anyone.")] = ()
    quorum: Annotated[int, about("How many people must agree.")] = 1
    votes: Annotated[tuple[Vote, ...], about("Who has answered so far.")] = ()
    deadline: Annotated[Time | None, about("The deadline, at which it is answered automatically.")] = None
    on_timeout: Any = None
    escalate_to: Annotated[tuple[str, ...], about("Who may also answer once it escalates.")] = ()
    escalate_at: Annotated[Time | None, about("When it escalates; null if it has, or never does.")] = None
    handed: Annotated[HandedOn | None, about("Who must decide it now.")] = None
    risk: Annotated[Literal["normal", "high"], about("A decision of `high` risk needs `--yes`.")] = "normal"
    asked_at: Annotated[Time, about("When it was asked.")] = 0
    shape: Shape = ""
    path: Annotated[Maybe, about("The branch that asks.")] = ""
    thread: Annotated[Maybe, about("The subgraph's thread that asks; the answer goes there.")] = ""
    thread_step: int = -1
    policy: Annotated[Literal["", "on_taint"], MAYBE, about("The policy that asks, such as `on_taint`.")] = ""
    key: str = ""
    one_account: bool = False
    logins: Annotated[
        tuple[str, ...], about("Database users or groups who may answer; empty for anyone.")
    ] = ()
    signed: Annotated[bool, about("Whether an answer must be signed.")] = False
    rubric: Annotated[tuple[str, ...], about("The criteria to score from 1 to 5 with the answer.")] = ()
    second_reading: Annotated[float, about("The share of such requests that another person reads again.")] = (
        0.0
    )
    four_eyes: Annotated[bool, about("Whether its authors may not answer.")] = False
    authors: Annotated[
        tuple[str, ...], about("Who gave or edited what it asks about, if they may not answer.")
    ] = ()
    tainted: Annotated[bool, about("Whether it may be based on untrusted data.")] = False
    notes: Annotated[
        tuple[str, ...],
        about("Facts about the question, such as an earlier answer to another one at its place."),
    ] = ()
    differs: tuple[str, ...] = ()
    excerpt: Annotated[Maybe, about("The first words of the value it is about.")] = ""
    version: Annotated[int, about("Which version of that value it is; 0 if it is about none.")] = 0
    last_answer: Annotated[
        Vote | None, about("The last answer at the same place, to an earlier version.")
    ] = None
    request_hash: str = ""
    about_hash: str = ""
    terms: Terms = Terms()

    def due(self, now: int) -> bool:
        """Whether its deadline or its time of escalation has passed."""
        escalates = self.escalate_at is not None and now >= self.escalate_at
        return escalates or (self.deadline is not None and now > self.deadline)

    @property
    def next_due(self) -> int | None:
        """The next time at which it escalates or its deadline passes; None for never."""
        times = [at for at in (self.deadline, self.escalate_at) if at is not None]
        return min(times, default=None)
