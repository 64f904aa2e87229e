"""The records about the queue in JSON documents: waiting requests, and planned or made decisions.

They have their own module because the code that computes them would slow down every command that writes
JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from hitl_tui.engine.log.requests import RequestKind, Vote
from hitl_tui.engine.log.units import Maybe, Time, about

if TYPE_CHECKING:
    from hitl_tui.engine.commands import Answer

Outcome = Literal["would", "left", "decided", "voted", "refused"]


class WaitingRequest(msgspec.Struct, frozen=True):
    """A waiting request as a row of the queue."""

    source: Annotated[Maybe, about("Which source of the inbox has it; null for a single store.")]
    thread: Annotated[str, about("The thread.")]
    graph: Annotated[str, about("Its graph's name.")]
    goal: Annotated[Maybe, about("The goal of its run.")]
    request: Annotated[
        Maybe, about("The request's id, as `answer` takes it; null if the thread only stopped.")
    ]
    request_kind: Annotated[RequestKind | None, about("The kind of answer; null if nothing is asked.")]
    step: Annotated[int, about("The step it is about, as `--step` takes it.")]
    title: Annotated[str, about("The title, as in the queue.")]
    words: Annotated[
        Maybe, about("What it is about: the first words of its subject, or its arguments.", name="about")
    ]
    version: Annotated[int, about("Which version of its subject it is; 0 without one.")]
    back_from: Annotated[Maybe, about("Who sent the last version back.")]
    new: Annotated[bool, about("Whether it was asked, or handed to you, since you last left the queue.")]
    since: Annotated[Time, about("When it began to wait.")]
    deadline: Annotated[Time | None, about("The deadline, at which it is answered automatically.")]
    expired: Annotated[bool, about("Whether the deadline has passed.")]
    risk: Annotated[Literal["normal", "high"], about("`high` needs `--yes`, and is decided one at a time.")]
    quorum: Annotated[int, about("How many people must agree.")]
    votes: Annotated[tuple[Vote, ...], about("Who has answered so far.")]
    claimed_by: Annotated[Maybe, about("Who has claimed it.")]
    claimed_until: Annotated[Time | None, about("When the claim ends.")]
    handed_to: Annotated[Maybe, about("Who it was handed over to.")]
    looking: Annotated[tuple[str, ...], about("Who has it open.")]
    orphan: Annotated[bool, about("Whether it was left to workers, none of which has its graph.")]


class Planned(msgspec.Struct, frozen=True):
    """What would happen, or happened, to one request in a batch; its fields are those of a document.

    Args:
        answer: the answer that would be given, None for none.
        seen: the hash of the state that the decision is about.
        note: the reason recorded with it.
        policy: what the ledger records about the rule that answers (see `Answer`).
    """

    thread: Annotated[str, about("The thread.")]
    graph: Annotated[str, about("Its graph's name.")]
    request: Annotated[Maybe, about("The request's id; null if the thread only stopped.")]
    step: Annotated[int, about("The step it is about.")]
    title: Annotated[str, about("The question.")]
    risk: Annotated[Literal["normal", "high"], about("`high` is decided one at a time.")]
    outcome: Annotated[
        Outcome,
        about("What would happen, or happened: `would`, `left`, `decided`, `voted`, `refused`."),
    ] = "left"
    answer: Annotated[Any, about("The answer; null for none.")] = None
    why: Annotated[Maybe, about("Why it is left or was refused, or which votes are still missing.")] = ""
    rule: Annotated[Maybe, about("The policy rule that answers.")] = ""
    label: str = ""
    note: str | None = None
    seen: bytes = b""
    policy: Mapping[str, str] = {}
    source: Annotated[Maybe, about("Which source of the inbox has it; null for a single store.")] = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """A unique key, as `QueueRow.key`."""
        return self.source, self.thread, self.request

    @property
    def would(self) -> bool:
        """Whether the request would be decided."""
        return self.outcome == "would"

    def command(self, actor: str) -> Answer:
        """Return the command that decides it."""
        from hitl_tui.engine.commands import Answer

        return Answer(self.request, self.answer, self.step, actor, self.note, self.seen, policy=self.policy)
