"""Commands of people on a thread, except answers: input, edits, limits, cancel.

Each command is one commit; the session must be held for writing.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from hitl_tui.engine.commands.command import Cancel, ExtendLimits, Start, UpdateState
from hitl_tui.engine.commands.guarding import refuse_skipping
from hitl_tui.engine.graph.limits import with_limits
from hitl_tui.engine.log.records import END, ROLLBACK, START, Checkpoint, Cursor, LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.nodes.branches import branches_after_edit
from hitl_tui.engine.nodes.children import abandon
from hitl_tui.engine.nodes.results import unused_answers
from hitl_tui.engine.state.changes import Change, after, reduce_updates, set_values
from hitl_tui.engine.state.channel import RUN_INPUTS
from hitl_tui.engine.state.values import normalise
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.canaries import refuse_canary
from hitl_tui.engine.thread.interrupts import unused_entry
from hitl_tui.engine.thread.journal import StepFacts, with_branches
from hitl_tui.engine.thread.reopening import with_reopened
from hitl_tui.engine.thread.run_inputs import INPUT, check_same_context, checked_context, context_facts
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, StaleWriter, UsageError, in_words

CHECKPOINT: Final = "checkpoint"
"""Key in the data of a decision: the LangGraph checkpoint that it is about or starts from.
"""


def origin_of(point: Checkpoint | None) -> dict[str, str]:
    """Return the data of a decision about a step of another engine; {} for a step of ours."""
    return {CHECKPOINT: point.origin} if point is not None and point.origin else {}


def head_origin(session: Session) -> dict[str, str]:
    """Return the data of a decision about a thread's head, like `origin_of`."""
    if session.store is None or session.cursor.head < 0:
        return {}
    return origin_of(session.store.checkpoint(session.thread_id, session.cursor.head))


def decision_entry(
    session: Session,
    written: Sequence[LedgerEntry],
    kind: str,
    *,
    request: Request | None = None,
    request_id: str | None = None,
    **facts: Any,
) -> LedgerEntry:
    """Make the ledger entry that comes after those already `written` for the same commit.

    Args:
        request, request_id, facts: as `journal.ledger_entry` takes them.
    """
    cursor = journal.after_entries(session.cursor, written)
    return journal.ledger_entry(
        cursor,
        kind,
        at=session.clock(),
        request=request,
        request_id=request_id,
        signer=session.signer,
        **facts,
    )


def read_input(
    session: Session, inputs: Mapping[str, Any] | None, tainted: Mapping[str, Lineage] | None = None
) -> tuple[dict[str, Any], list[Change]]:
    """Return the run's own inputs (goal, constraints), and the changes that the other inputs make.

    Args:
        tainted: inputs with untrusted data, and where that comes from.

    Raises:
        UsageError: no such input.
        ValueRejected, SchemaMismatch, ReducerError: a value that does not fit.
    """
    given = dict(inputs or {})
    run_inputs = {
        name: normalise(given.pop(name), what=f"the input {name!r}") for name in RUN_INPUTS if name in given
    }
    updates = [pair for name, value in given.items() for pair in _updates(session, name, value)]
    changes = reduce_updates(session.state, session.graph.channels, updates)
    if tainted:
        marks = [tainted.get(change.channel.name) for change in changes]
        changes = [
            replace(change, tainted=True, lineage=mark) if mark else change
            for change, mark in zip(changes, marks, strict=True)
        ]
    return run_inputs, changes


def _updates(session: Session, name: str, value: Any) -> list[tuple[str, Any]]:
    channel = next((item.channel for item in session.graph.inputs if item.name == name), name)
    known = session.graph.channels.get(channel)
    if known is None:
        fields = [item.name for item in session.graph.inputs]
        names = ", ".join(dict.fromkeys([*fields, *session.graph.channels, *RUN_INPUTS]))
        raise UsageError(f"the graph {session.graph.name!r} takes no input {name!r}", f"inputs: {names}")
    splice = known.reducer.kind == "element" and isinstance(value, (list, tuple))
    return [(channel, item) for item in value] if splice else [(channel, value)]


DONE = ("completed", "cancelled")
UPDATE_STATE = "update_state"
"""The kind of the ledger's entry for an edit."""


def start(
    session: Session,
    command: Start,
    tainted: Mapping[str, Lineage] | None = None,
    private_context: Sequence[str] = (),
) -> int:
    """Carry out `Start`.

    Args:
        tainted: inputs with untrusted data, and where that comes from.
        private_context: names in the context whose values are private, besides those that the graph declares.
    """
    cursor, actor = session.cursor, command.actor
    refuse_canary(session.store, session.info)
    if not command.from_entry:
        refuse_rolling_back(session)
    begins = cursor.head < 0 or cursor.status in DONE or command.from_entry or _ends_at_once(session)
    context = _context_fields(session, command, begins=begins, private=private_context)
    run_inputs, changes = read_input(session, command.inputs, tainted)
    ledger: list[LedgerEntry] = []
    if begins:
        cursor = _moved_cursor(session, f"node:{session.graph.entry}", ledger, actor)
        cursor = replace(cursor, status="pending", reason="", invocation=cursor.invocation + 1, iteration=0)
    step = session.cursor.head + 1
    if run_inputs or context or session.graph.four_eyes:
        facts = context_facts(**context) if context else {}
        entry = decision_entry(session, ledger, INPUT, step=step, actor=actor, data={**run_inputs, **facts})
        ledger.append(entry)
    cursor = replace(cursor, **run_inputs, **context)
    if cursor.pending:
        cursor = with_reopened(session, cursor, after(session.state, changes), ledger, step=step, actor=actor)
    session.commit_step(
        cursor, changes, StepFacts(source="input", actor=actor, made_by="person"), ledger=ledger
    )
    return step


def _ends_at_once(session: Session) -> bool:
    """Whether a paused run would end at once by its termination condition.

    That is so for a fork from the last step of a run that ended by it.
    """
    cursor = session.cursor
    is_paused = (cursor.status, cursor.reason) == ("waiting", "paused")
    if session.graph.termination is None or not is_paused or cursor.branches or cursor.answers:
        return False
    try:
        return bool(session.terminated())
    except HitlError:  # the run will report the error
        return False


def _context_fields(
    session: Session, command: Start, *, begins: bool, private: Sequence[str]
) -> dict[str, Any]:
    """Return the cursor's fields for a new context; {} if the context does not change."""
    cursor, given = session.cursor, command.context
    if not begins:
        if given is not None:
            check_same_context(cursor, given)
        return {}
    if given is None and cursor.head < 0:
        given = cursor.context
    marked = {*session.graph.private_context, *private}
    context = checked_context({} if given is None else given, marked)
    if not context and (cursor.head < 0 or not cursor.context):
        return {}
    return {"context": context, "private_context": tuple(sorted(marked & context.keys()))}


def refuse_rolling_back(session: Session) -> None:
    """Refuse to continue a thread whose rollback is not finished.

    The rollback can be continued, or a command can name another place to continue at.
    """
    cursor = session.cursor
    if cursor.position == ROLLBACK and cursor.status not in DONE:
        raise UsageError(
            f"thread {session.thread_id!r} is being rolled back",
            "roll back the rest with `hitl-tui rollback THREAD`, from Python with rollback(); or leave it "
            'undone with resume="entry" or an edit with as_node',
        )


def update_state(session: Session, command: UpdateState) -> int:
    """Carry out `UpdateState`."""
    values, expected_step, as_node = command.values, command.expected_step, command.as_node
    actor, note = command.actor, command.note
    if not isinstance(values, Mapping):
        raise UsageError(f"the values of an edit are {in_words(values)}", 'give a dict, as {"draft": "…"}')
    cursor = session.cursor
    if cursor.head < 0:
        raise UsageError(
            f"thread {session.thread_id!r} has no step to edit yet", "start it with an input first"
        )
    if expected_step is not None and expected_step != cursor.head:
        raise StaleWriter(
            f"thread {session.thread_id!r} is at step {cursor.head}, the edit was made on {expected_step}",
            "look at what changed, then edit again",
        )
    changes = set_values(session.state, session.graph.channels, values)
    step = cursor.head + 1
    data = {"channels": sorted(values), "as_node": as_node}
    seen = command.seen
    ledger = [
        decision_entry(session, [], UPDATE_STATE, step=step, actor=actor, note=note, seen=seen, data=data)
    ]
    if as_node is not None:
        refuse_canary(session.store, session.info)
        position = position_after(session, as_node)
        refuse_skipping(session, as_node, state=after(session.state, changes), passed=cursor.passed)
        cursor = _moved_cursor(session, position, ledger, actor)
        cursor = replace(cursor, status="waiting", reason="paused")
    else:
        cursor = with_reopened(session, cursor, after(session.state, changes), ledger, step=step, actor=actor)
        cursor = replace(cursor, branches=branches_after_edit(cursor.branches))
    session.commit_step(
        cursor, changes, StepFacts(source="human", actor=actor, note=note, made_by="person"), ledger=ledger
    )
    return step


def _moved_cursor(session: Session, position: str, ledger: list[LedgerEntry], actor: str | None) -> Cursor:
    """Return the cursor moved to a position, as if nothing had been tried or asked there.

    Withdraw its requests.
    """
    abandon(session)
    for request in session.cursor.pending:
        ledger.append(decision_entry(session, ledger, "withdrawn", request=request, actor=actor))
    cursor = session.cursor
    kept = (*cursor.answers, *(answer for state in cursor.branches for answer in state.answers))
    for answer in unused_answers(kept, ()):
        at = journal.after_entries(cursor, ledger)
        ledger.append(unused_entry(session, at, answer, cursor.position.partition(":")[2]))
    return replace(
        with_branches(session.cursor),
        position=position,
        attempt=1,
        passed=(),
        answers=(),
        first_call=0,
        counted=0,
        pending=(),
        error=None,
    )


def position_after(session: Session, as_node: str) -> str:
    """Return the position of a thread whose last node is `as_node`."""
    graph = session.graph
    if as_node == START:
        return f"node:{graph.entry}"
    if as_node not in graph.nodes:
        raise UsageError(
            f"as_node names an unknown node {as_node!r}", f"nodes: {', '.join(graph.nodes)}, START"
        )
    if as_node in graph.edges and graph.after.get(as_node) is None:
        target = graph.edges[as_node]
        return "end" if target == END else f"node:{target}"
    return f"route:{as_node}"


def past_position(session: Session, checkpoint: Checkpoint, *, edited: bool) -> str:
    """Return where a thread continues from a past step.

    After an edit there, the route of its node is chosen again.
    """
    if checkpoint.position == ROLLBACK:
        # After a rollback the graph starts again.
        return f"node:{session.graph.entry}"
    if edited and checkpoint.node in session.graph.routes:
        return f"route:{checkpoint.node}"
    return checkpoint.position


def extend_limits(session: Session, command: ExtendLimits) -> None:
    """Carry out `ExtendLimits`."""
    known, limits = session.cursor.limits, command.limits
    cursor = replace(session.cursor, limits=with_limits(known, limits))
    if cursor.reason == "limit":
        cursor = replace(cursor, status="waiting", reason="paused")
    data = {name: [getattr(known, name), value] for name, value in limits.items()}
    seen = command.seen
    entry = decision_entry(
        session, [], "extend", actor=command.actor, note=command.note, seen=seen, data=data
    )
    session.commit_cursor(cursor, [entry])


def note_pause(session: Session, *, actor: str | None, note: str | None) -> None:
    """Record who has paused a thread from another process."""
    session.commit_cursor(session.cursor, [decision_entry(session, [], "pause", actor=actor, note=note)])


def cancel(session: Session, command: Cancel) -> None:
    """Carry out `Cancel`."""
    cursor = session.cursor
    if cursor.status in DONE:
        raise UsageError(
            f"thread {session.thread_id!r} is {cursor.status} already", "fork it to continue from it"
        )
    abandon(session)
    seen = command.seen
    entry = decision_entry(
        session, [], "cancel", actor=command.actor, note=command.note, seen=seen,
        data=head_origin(session) or None,
    )  # fmt: skip
    session.commit_cursor(replace(cursor, status="cancelled", reason="user", pending=()), [entry])
