"""Reads what is measured about reviews from the ledgers of a store: decisions, second readings, canaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadSummary
from hitl_tui.engine.thread.canaries import wrong_answer
from hitl_tui.engine.thread.measures import reasons_of, scores_of
from hitl_tui.engine.thread.second_readings import second_readings

_PAGE: Final = 200
_DECIDES: Final = ("answer", "vote")


class Measured(NamedTuple):
    """A decision of a person, as it is counted; times are microseconds.

    Args:
        answer: the id of the choice, "edit" for changed arguments, "answer" for any other answer.
        took: from the question to the decision.
        edited: the person changed what was decided about, before or with the answer.
    """

    thread: str
    graph: str
    person: str
    request: str
    answer: str
    at: int
    took: int
    edited: bool
    reasons: tuple[str, ...] = ()
    scores: Mapping[str, int] = {}


class MeasuredReading(NamedTuple):
    """An answered request of the sample that is read again.

    Args:
        people: who gave the first answer.
        second: the answer of the second reading, "" for none yet.
        person: who gave that.
        at: when it was answered first.
    """

    thread: str
    graph: str
    request: str
    title: str
    people: frozenset[str]
    first: str
    second: str
    person: str
    at: int


class Canary(NamedTuple):
    """The answer of a person to a canary.

    Args:
        caught: it was not the wrong answer.
    """

    thread: str
    graph: str
    person: str
    caught: bool
    at: int


class Reviews(NamedTuple):
    """What is measured about the reviews in a store."""

    decisions: list[Measured]
    readings: list[MeasuredReading]
    canaries: list[Canary]


def reviews(store: Store) -> Reviews:
    """Read all threads of a store.

    A request of a subgraph is counted once, and what a fork shares with its parent only for the parent. A
    canary counts as nothing else.
    """
    found, seen = Reviews([], [], []), set[tuple[str, str]]()
    for thread in _threads(store):
        name = thread.info.thread_id
        ledger = store.ledger(name, call_data=False)
        decisions = _decisions(thread, ledger)
        if wrong := wrong_answer(ledger, name):
            found.canaries.extend(
                Canary(name, each.graph, each.person, each.answer != wrong, each.at) for each in decisions
            )
            continue
        for decision in decisions:
            if (decision.request, decision.person) not in seen:
                seen.add((decision.request, decision.person))
                found.decisions.append(decision)
        found.readings.extend(_readings(thread, ledger))
    return found


def _threads(store: Store) -> Iterator[ThreadSummary]:
    after = None
    while page := store.threads("", _PAGE, after):
        yield from page
        after = page[-1]


def _readings(thread: ThreadSummary, ledger: Sequence[LedgerEntry]) -> Iterator[MeasuredReading]:
    for reading in second_readings(ledger, thread.info.thread_id):
        second = reading.second
        yield MeasuredReading(
            thread.info.thread_id, thread.info.graph_name, reading.request.id, reading.request.title,
            reading.people, chosen_of(_data(reading.first).get("answer")),
            chosen_of(_data(second).get("answer")) if second else "",
            (second.actor or "") if second else "", reading.first.at,
        )  # fmt: skip


def _decisions(thread: ThreadSummary, ledger: Sequence[LedgerEntry]) -> Iterator[Measured]:
    name, graph = thread.info.thread_id, thread.info.graph_name
    asked: dict[str, LedgerEntry] = {}
    editors: set[str] = set()
    for entry in ledger:
        data = _data(entry)
        if entry.kind == "request" and entry.request_id:
            asked[entry.request_id] = entry
        elif entry.kind == "update_state" and entry.actor and entry.thread_id == name:
            editors.add(entry.actor)
        elif entry.kind in _DECIDES and entry.made_by == "person" and entry.thread_id == name:
            request = asked.get(entry.request_id or "")
            if request is None or not entry.actor or _data(request).get("breakpoint"):
                continue
            chosen = chosen_of(data.get("answer"))
            yield Measured(
                name, graph, entry.actor, entry.request_id or "", chosen, entry.at,
                max(entry.at - request.at, 0), entry.actor in editors or chosen == "edit",
                reasons_of(data), scores_of(data),
            )  # fmt: skip
            if entry.kind == "answer":
                editors.clear()


def _data(entry: LedgerEntry) -> Mapping[str, Any]:
    return entry.data if isinstance(entry.data, Mapping) else {}


def chosen_of(answer: Any) -> str:
    """Return what an answer decides, to be counted."""
    if isinstance(answer, str):
        return answer if len(answer) <= 40 and answer.isprintable() else "answer"
    if isinstance(answer, Mapping):
        choice = answer.get("choice")
        return choice if isinstance(choice, str) else "answer"
    if isinstance(answer, Sequence):
        choices = {chosen_of(each) for each in answer}
        return choices.pop() if len(choices) == 1 else "edit" if "edit" in choices else "answer"
    return "answer"
