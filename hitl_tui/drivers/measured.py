"""Reads what is measured about reviews from the ledgers of a store: decisions, second readings, canaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadSummary
from hitl_tui.engine.thread.measures import reasons_of, scores_of

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


def measured(store: Store, query: str = "") -> Iterator[Measured]:
    """Yield the decisions of people in the threads of a store.

    A request of a subgraph is counted once, and what a fork shares with its parent only for the parent.

    Args:
        query: a part of the thread id.
    """
    seen: set[tuple[str, str]] = set()
    for thread in threads(store, query):
        for decision in _of_thread(thread, store.ledger(thread.info.thread_id, call_data=False)):
            if (decision.request, decision.person) not in seen:
                seen.add((decision.request, decision.person))
                yield decision


def threads(store: Store, query: str = "") -> Iterator[ThreadSummary]:
    """Yield all threads of a store."""
    after = None
    while page := store.threads(query, _PAGE, after):
        yield from page
        after = page[-1]


def _of_thread(thread: ThreadSummary, ledger: Sequence[LedgerEntry]) -> Iterator[Measured]:
    name, graph = thread.info.thread_id, thread.info.graph_name
    asked: dict[str, LedgerEntry] = {}
    editors: set[str] = set()
    for entry in ledger:
        data = entry.data if isinstance(entry.data, Mapping) else {}
        if entry.kind == "request" and entry.request_id:
            asked[entry.request_id] = entry
        elif entry.kind == "update_state" and entry.actor and entry.thread_id == name:
            editors.add(entry.actor)
        elif entry.kind in _DECIDES and entry.made_by == "person" and entry.thread_id == name:
            request = asked.get(entry.request_id or "")
            if request is None or not entry.actor or _is_breakpoint(request):
                continue
            chosen = chosen_of(data.get("answer"))
            yield Measured(
                name, graph, entry.actor, entry.request_id or "", chosen, entry.at,
                max(entry.at - request.at, 0), entry.actor in editors or chosen == "edit",
                reasons_of(data), scores_of(data),
            )  # fmt: skip
            if entry.kind == "answer":
                editors.clear()


def _is_breakpoint(request: LedgerEntry) -> bool:
    return isinstance(request.data, Mapping) and bool(request.data.get("breakpoint"))


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
