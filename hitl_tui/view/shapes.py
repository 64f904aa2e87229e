"""The fields of the documents of `--json`, version 1; their JSON Schema is made from these classes.

A struct appears in a document as it declares itself: fields with an `about` text, under the names given
there.  `@shows` registers a struct that needs other fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from hitl_tui.drivers.protocol import Unfinished
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate, Progress
from hitl_tui.engine.log.jobs import WorkerJob
from hitl_tui.engine.log.outcomes import StreamedText
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry, Operation, Source, Status
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.log.threads import Owner, ThreadSummary
from hitl_tui.engine.log.units import Inline, Maybe, Time, about
from hitl_tui.engine.thread.agent_settings import AgentInfo

T = TypeVar("T")


class From(NamedTuple):
    """The source of a field's value: another attribute, as `info.thread_id`, or a function of the fact."""

    source: str | Callable[[Any], Any]


SHAPES: Final[dict[type, type]] = {}
"""The shape in which each fact is shown that is not shown as it is."""


def shows(fact: type) -> Callable[[type[T]], type[T]]:
    """Register the decorated class as the shape of a fact."""

    def register(shape: type[T]) -> type[T]:
        SHAPES[fact] = shape
        return shape

    return register


def _public(field: str) -> From:
    """Return where a field of an update comes from, masked for a private channel."""
    return From(lambda update: PRIVATE if update.visibility == "private" else getattr(update, field))


@shows(AppliedUpdate)
class UpdateShape(msgspec.Struct):
    """An update of a channel, and the value that its reducer made of it."""

    channel: Annotated[str, about("The channel.")]
    op: Annotated[Operation, about("The operation: `reduce`, or `set` for an edit.")]
    reducer: Annotated[str, about("The reducer, such as `append`.")]
    source: Annotated[Source, about("The writer: a node or a person.")]
    before: Annotated[Any, about("The value before."), _public("before")]
    update: Annotated[Any, about("The update that was written."), _public("update")]
    after: Annotated[Any, about("The value after the reducer."), _public("after")]
    changed: Annotated[
        bool | Literal["[private]"],
        about("Whether the value changed; `[private]` for a private channel."),
        _public("changed"),
    ]
    actor: Annotated[str | None, about("The person who wrote it.")]
    note: Annotated[str | None, about("The reason given.")]
    path: Annotated[Maybe, about("The branch that wrote it.")]
    tainted: Annotated[bool, about("Whether the channel is tainted afterwards.")]
    lineage: Annotated[Lineage | None, about("The untrusted sources of the update.")]


@shows(ThreadSummary)
class ThreadSummaryShape(msgspec.Struct):
    """A thread in a list."""

    thread: Annotated[str, about("The thread."), From("info.thread_id")]
    graph: Annotated[str, about("Its graph's name."), From("info.graph_name")]
    status: Annotated[Status, about("The thread's position.")]
    reason: Annotated[str, about("The reason for its status; empty while it runs.")]
    step: Annotated[int, about("The newest step; 0 for the input, -1 before it."), From("head")]
    next: Annotated[
        str | None,
        about("The node that runs next; null if the thread has ended or a route decides it."),
        From("next_node"),
    ]
    waiting_for: Annotated[Maybe, about("The question, or what the thread waits for.")]
    waiting_since: Annotated[Time | None, about("When it began to wait.")]
    last_writer: Annotated[Maybe, about("The node or person that wrote the newest step.")]
    held_by: Annotated[str | None, about("Who runs it now: user, host and process.")]
    parent: Annotated[str | None, about("The thread it was forked from."), From("info.parent")]
    fork_step: Annotated[
        int | None,
        about("The step it was forked at."),
        From(lambda summary: summary.info.fork_step if summary.info.parent else None),
    ]
    owner: Annotated[
        Owner | None,
        about("For a subgraph's thread: the thread and node that it runs for."),
        From("info.owner"),
    ]
    inside: Annotated[
        int | None,
        about("The number of subgraph threads directly inside it; null in a search by name."),
    ]
    job: Annotated[WorkerJob | None, about("Its job for workers; null for none.")]
    created_at: Annotated[Time, about("When the thread started."), From("info.created_at")]
    updated_at: Annotated[Time, about("When it last changed.")]


# Events that are shown with other fields.


class Child(msgspec.Struct):
    """The progress of the thread of a subgraph."""

    thread: Annotated[str, about("The thread.")]
    progress: Inline[Progress]


def _child(event: ev.ChildMoved) -> Child:
    return Child(event.thread_id, event.progress)


@shows(ev.ChildMoved)
class ChildMovedEvent(msgspec.Struct):
    """The thread of a subgraph has moved."""

    node: Annotated[str, about("The node.")]
    path: Annotated[str, about("The branch.")]
    running: Annotated[Maybe, about("The node that runs in the subgraph's thread.")]
    child: Annotated[Child, about("The position of that thread."), From(_child)]


@shows(ev.StepCommitted)
class StepCommittedEvent(msgspec.Struct):
    """A step is in the log: its checkpoint and every update of it."""

    checkpoint: Annotated[Checkpoint, about("The step.")]
    updates: Annotated[tuple[AppliedUpdate, ...], about("The channels that it changed.")]


# What no fact holds as a document shows it.


class LoggedStep(msgspec.Struct):
    """A committed step with its updates."""

    checkpoint: Inline[Checkpoint]
    updates: Annotated[tuple[AppliedUpdate, ...], about("The updates, in the order they were reduced.")]


# The documents.  Each one's tag is its kind.


class Document(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag=lambda name: name.removesuffix("Document").lower(),
):
    """One line of what a command writes."""


class EventDocument(Document, frozen=True):
    """`run`, `resume`, `step`, `rollback`: each event as it happens."""

    thread: Annotated[str, about("The thread.")]
    event: ev.Event


class ResultDocument(Document, frozen=True):
    """`run`, `resume`, `step` last; `answer`, `approve`, `revise`, `update-state`, `declassify`, `extend`,
    `cancel`, `pause`: the state of the thread afterwards."""

    thread: Annotated[str, about("The thread.")]
    progress: Inline[Progress]
    state: Annotated[Mapping[str, Any], about("Every channel with its value; `[private]` for private ones.")]
    exit_code: Annotated[int, about("The exit code of the command.")]
    made_step: Annotated[
        int | UnsetType, about("The step that the command made, for `update-state` and `declassify`.")
    ] = UNSET


class ThreadDocument(Document, frozen=True):
    """`show`: a thread at a step."""

    thread: Annotated[str, about("The thread.")]
    graph: Annotated[str, about("Its graph's name.")]
    parent: Annotated[str | None, about("The thread it was forked from.")]
    fork_step: Annotated[int | None, about("The step it was forked at.")]
    owner: Annotated[Owner | None, about("For a subgraph's thread: the thread and node that it runs for.")]
    unfinished: Annotated[
        Unfinished | None, about("What is kept of a node with branches that has not finished.")
    ]
    held_by: Annotated[Maybe, about("Who runs it now: user, host and process.")]
    standing: Annotated[Progress, about("The thread's current position, whichever step is shown.")]
    step: Annotated[int, about("The number of the shown step.")]
    checkpoint: Annotated[Checkpoint, about("The shown step.")]
    state: Annotated[Mapping[str, Any], about("Every channel with its value; `[private]` for private ones.")]
    updates: Annotated[tuple[AppliedUpdate, ...], about("The updates of the step.")]
    streamed: Annotated[tuple[StreamedText, ...], about("The recorded output of the step.")]
    notes: Annotated[tuple[LedgerEntry, ...], about("The notes of people on the step.")]


class LogDocument(Document, frozen=True):
    """`log`, oldest first."""

    thread: Annotated[str, about("The thread.")]
    checkpoints: Annotated[tuple[LoggedStep, ...], about("The steps.")]
    decisions: Annotated[tuple[LedgerEntry, ...], about("The decision ledger.")]


class RepeatsDocument(Document, frozen=True):
    """`fork`, `rerun` and `resume` with `--dry-run`."""

    thread: Annotated[str, about("The thread.")]
    repeats: Annotated[Repeats | None, about("What would run again; null for nothing.")]
    moves: Annotated[
        str | None,
        about(
            "The LangGraph thread whose next turn in another program continues from the fork; null for none."
        ),
    ] = None


class ForkDocument(Document, frozen=True):
    """`fork`, and `rerun` before it runs the fork."""

    thread: Annotated[str, about("The new thread.")]
    parent: Annotated[str, about("The thread it was forked from.")]
    step: Annotated[int, about("The step it was forked at.")]


class AgentsDocument(Document, frozen=True):
    """`agents`, `change-agent`, `clear-turns`."""

    thread: Annotated[str, about("The thread.")]
    agents: Annotated[tuple[AgentInfo, ...], about("The agents of the thread.")]


class ErrorDocument(Document, frozen=True):
    """Any command that fails and prints no other document about it."""

    error: Annotated[str, about("The name of the error.")]
    title: Annotated[str, about("The kind of error.")]
    message: Annotated[str, about("What went wrong, and where.")]
    hint: Annotated[str, about("How to fix it; empty if there is nothing to say.")]
    details: Annotated[str, about("A traceback of your code, or what has changed since the run.")]
    exit_code: Annotated[int, about("The exit code of the command.")]
