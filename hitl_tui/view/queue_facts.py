"""What documents tell of the queue: what waits, and what is decided of it.

They stand apart from what makes them up, which would slow down every command that writes JSON.
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
    """A row of the queue of what waits for a human."""

    thread: Annotated[str, about("The thread.")]
    graph: Annotated[str, about("Its graph's name.")]
    goal: Annotated[Maybe, about("What its run is for.")]
    request: Annotated[Maybe, about("What `answer` names; null where it only stopped.")]
    request_kind: Annotated[RequestKind | None, about("What is wanted; null where nothing is asked.")]
    step: Annotated[int, about("The step it is about: what `--step` names.")]
    title: Annotated[str, about("What is asked, as the queue says it.")]
    since: Annotated[Time, about("Since when it waits.")]
    deadline: Annotated[Time | None, about("When it answers itself.")]
    expired: Annotated[bool, about("Whether that has passed.")]
    risk: Annotated[Literal["normal", "high"], about("High wants `--yes`, and is decided one by one.")]
    quorum: Annotated[int, about("How many must agree.")]
    votes: Annotated[tuple[Vote, ...], about("Who has answered so far.")]
    claimed_by: Annotated[Maybe, about("Who has claimed it.")]
    claimed_until: Annotated[Time | None, about("Until when.")]
    looking: Annotated[tuple[str, ...], about("Who has it open.")]
    orphan: Annotated[bool, about("Whether it is left to workers, of whom none has its graph.")]


class Planned(msgspec.Struct, frozen=True):
    """What would become, or became, of one request; its fields are those of a document.

    Args:
        answer: what would be answered, None where nothing would.
        seen: the hash of the state that it is decided on.
        note: the words that go with it, for the record.
        policy: what the ledger keeps of the rule that answers (see `Answer`).
    """

    thread: Annotated[str, about("The thread.")]
    graph: Annotated[str, about("Its graph's name.")]
    request: Annotated[Maybe, about("The request; null where it only stopped.")]
    step: Annotated[int, about("The step it is about.")]
    title: Annotated[str, about("What is asked.")]
    risk: Annotated[Literal["normal", "high"], about("High is decided one by one.")]
    outcome: Annotated[
        Outcome,
        about("What would be done, or was: `would`, `left`, `decided`, `voted`, `refused`."),
    ] = "left"
    answer: Annotated[Any, about("The answer; null where none would be given.")] = None
    why: Annotated[Maybe, about("Why it is left or was refused; what a vote still waits for.")] = ""
    rule: Annotated[Maybe, about("The rule of a policy that answers.")] = ""
    label: str = ""
    note: str | None = None
    seen: bytes = b""
    policy: Mapping[str, str] = {}

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others, as `QueueRow.key`."""
        return self.thread, self.request

    @property
    def would(self) -> bool:
        """Whether it would be decided."""
        return self.outcome == "would"

    def command(self, actor: str) -> Answer:
        """The command that decides it."""
        from hitl_tui.engine.commands import Answer

        return Answer(self.request, self.answer, self.step, actor, self.note, self.seen, policy=self.policy)
