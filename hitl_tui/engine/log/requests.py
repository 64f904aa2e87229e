"""What waits for a human: requests, the answers that they allow, the votes that they have (SPEC 11).

Times are microseconds since the Unix epoch, UTC.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from hitl_tui.engine.log.units import Maybe, Time, about

RequestKind = Literal["approve", "edit", "choose", "ask"]
When = Literal["before", "after", "inside"]
Shape = Literal["", "agent_inbox", "hitl_middleware", "tool_approval"]

DEADLINE_PASSED: Final = "deadline passed"
"""The note of an answer that nobody gave, but the deadline of its request."""


class Choice(msgspec.Struct, frozen=True):
    """One allowed answer of a request.

    Args:
        id: what an answer names, as in "accept".
        label: what a person reads, as in "approve anyway".
        key: the key suggested for it on screen.
        text: whether the answer carries words of the person's own.
    """

    id: Annotated[str, about("What an answer names.")]
    label: Annotated[str, about("What a person reads.")]
    key: Annotated[str, about("The key suggested for it on screen; empty for none.")] = ""
    text: Annotated[Literal["none", "optional", "required"], about("Whether the answer carries words.")] = (
        "optional"
    )


class Vote(msgspec.Struct, frozen=True):
    """One reviewer's answer to a request that wants several (quorum).

    `account` is the operating system's account and host that it came from.
    """

    actor: Annotated[str, about("Who.")]
    answer: Annotated[Any, about("The answer.")]
    at: Annotated[Time, about("When.")]
    note: Annotated[str | None, about("Why.")] = None
    account: Annotated[str, about("The account and host that it came from, as ann@box.")] = ""


class Request(msgspec.Struct, frozen=True):
    """What waits for a human (SPEC 11).

    Args:
        step: the step the request is bound to; an answer must name it.
        subject: the channel that is decided about, None where there is none.
        choices: the allowed answers; empty where any value that fits `schema` is one.
        recommended: the choice that keeps things as they are (what enter takes).
        breakpoint: a plain `interrupt_before` / `interrupt_after`: resuming the thread passes it.
        order: place among the interrupts inside one run of a node.
        key: what the answer is kept under instead, where the order may differ between runs of the node.
        deadline: when it expires; None waits for ever.
        on_timeout: the answer applied then, or None to fail the thread with reason "deadline".
        risk: "high" wants a second key press on screen.
        shape: the contract of another tool that payload and answer keep to, "" for none (see
            `thread.approval_formats`).
        path: the branch that asks; "" for a node as a whole.
        thread: the thread of a subgraph that asks; the answer goes there.
        thread_step: the step of that thread which the request is bound to.
        one_account: whether one account of the operating system may give several votes.
        signed: whether only a decision signed with a person's key is an answer.
        policy: "on_taint" where the node's policy asks, before it reads what is tainted (SPEC 8).
    """

    id: str
    kind: RequestKind
    node: str
    when: When
    step: int
    title: str
    payload: Any = None
    subject: str | None = None
    schema: dict[str, Any] | None = None
    choices: tuple[Choice, ...] = ()
    recommended: str | None = None
    breakpoint: bool = False
    order: int = 0
    reviewers: tuple[str, ...] = ()
    quorum: int = 1
    votes: tuple[Vote, ...] = ()
    deadline: Time | None = None
    on_timeout: Any = None
    risk: Literal["normal", "high"] = "normal"
    asked_at: Time = 0
    shape: Shape = ""
    path: Maybe = ""
    thread: Maybe = ""
    thread_step: int = -1
    policy: Literal["", "on_taint"] = ""
    key: str = ""
    one_account: bool = False
    signed: bool = False
