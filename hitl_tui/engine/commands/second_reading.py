"""Second readings: another person decides a sample of answered requests again, and nothing runs on it.

Each function is one commit; the session must be held for writing.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from hitl_tui.engine.commands.command import ReadAgain
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.thread.interrupts import check_reviewer, checked_value
from hitl_tui.engine.thread.journal import account
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.engine.thread.measures import check_scores, measured_facts
from hitl_tui.engine.thread.second_readings import READ_AGAIN, SecondReading, second_readings
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import AnswerRefused


def read_again(session: Session, command: ReadAgain) -> None:
    """Carry out `ReadAgain`."""
    ledger = decisions(session.store, session.thread_id) if session.store else []
    reading = _reading(ledger, session.thread_id, command.request_id)
    request = reading.request
    check_reviewer(request, command.actor)
    _check_is_another(reading, command.actor)
    value = checked_value(request, command.value)
    check_scores(request, command.scores)
    data = {"answer": value, **measured_facts(command.reasons, command.scores)}
    entry = decision_entry(
        session, [], READ_AGAIN, step=request.step, request_id=request.id, actor=command.actor,
        note=command.note, seen=command.seen, data=data,
    )  # fmt: skip
    session.commit_cursor(session.cursor, [entry])


def _reading(ledger: list[LedgerEntry], thread_id: str, request_id: str) -> SecondReading:
    """Return what waits for a second reading.

    Raises:
        AnswerRefused: the request is not in the sample, has no answer yet, or was read again already.
    """
    known = second_readings(ledger, thread_id)
    reading = next((each for each in known if each.request.id == request_id), None)
    waiting = ", ".join(each.request.id for each in known if each.second is None) or "none"
    if reading is None:
        raise AnswerRefused(
            f"request {request_id!r} needs no second reading", f"requests that need one: {waiting}"
        )
    if reading.second is not None:
        raise AnswerRefused(
            f"{reading.request.title!r} has been read again by {reading.second.actor}",
            f"requests that need one: {waiting}",
        )
    return reading


def _check_is_another(reading: SecondReading, actor: str) -> None:
    """Refuse the people who gave the first answer, under any name of their account."""
    request = reading.request
    if actor in reading.people:
        raise AnswerRefused(f"{actor} has decided {request.title!r} already", "another person must read it")
    if account() in reading.accounts and not request.one_account:
        raise AnswerRefused(
            f"the account {account()} has decided {request.title!r} already",
            "another person must read it, from their own account; one_account=True in the gate allows it",
        )
