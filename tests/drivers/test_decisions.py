"""Searching the decisions of a store: what is searched, and what never is."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
from hitl_tui.drivers import decided
from hitl_tui.drivers.decided import DecisionFilter, DecisionSearch, Wanted
from hitl_tui.engine.commands import Answer, Start, UpdateState
from hitl_tui.engine.log.threads import Deletion
from hitl_tui.stores import Checkpointer
from tests.support.flows import Clock, Desk

CHOICES = [
    GateChoice("approve", "take it", "a"),
    GateChoice("revise", "again", "r", text="required", values=lambda state, text: {}),
]


def asking(store: Checkpointer, subject: str) -> Desk:
    """A thread that asks about a channel: `draft`, or `key`, which is private."""
    channels = {"draft": Channel(""), "key": Channel("", visibility="private"), "n": Channel(0)}
    graph = StateGraph(channels, name="desk").add_node(
        "write", lambda state: {"draft": f"a Lighthouse {state['n']}", "key": "sesame", "n": state["n"] + 1}
    )
    graph.add_edge("START", "write").add_edge("write", "END")
    gate = Gate("write", title="Is it good?", subject=subject, choices=CHOICES)
    desk = Desk(graph.compile(checkpointer=store, interrupt_after=[gate]), subject, Clock(store.now()))
    desk.do(Start({}, "ann"))
    desk.run()
    return desk


def answer(desk: Desk, value: Any, actor: str, note: str | None = None) -> None:
    (request,) = desk.session.cursor.pending
    desk.do(Answer(request.id, value, request.step, actor, note))


def found(store: Checkpointer, *words: str, **options: Any) -> list[tuple[str, str]]:
    """The kind and the person of each decision, newest first; a word after "-" must not be there."""
    wanted = tuple(Wanted(word.removeprefix("-"), word.startswith("-")) for word in words)
    search = DecisionSearch(store, DecisionFilter(wanted, **options))
    rows = [(row.entry.kind, row.entry.actor or "") for row in search.all(100)]
    assert search.ended
    return rows


@pytest.fixture
def store() -> MemoryCheckpointer:
    return MemoryCheckpointer()


def test_the_text_is_searched_as_it_was_decided_about(store: MemoryCheckpointer) -> None:
    desk = asking(store, "draft")
    answer(desk, {"choice": "revise", "text": "too tall"}, "ann")
    desk.do(UpdateState({"draft": "a barn"}, None, actor="bob"))
    assert found(store, "lighthouse") == [("answer", "ann")]
    assert found(store, "barn") == [("update_state", "bob")]
    assert found(store, "is it good", "tall") == [("answer", "ann")]
    assert found(store, "a", "-tall") == [("update_state", "bob")]
    assert found(store, "castle") == []


def test_private_values_are_never_searched(store: MemoryCheckpointer) -> None:
    desk = asking(store, "key")
    answer(desk, "approve", "ann", "fine")
    assert found(store, "fine") == [("answer", "ann")]
    assert found(store, "sesame") == []


def test_a_page_of_a_long_search_ends_early(
    store: MemoryCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decided, "_AT_ONCE", 2)
    desk = asking(store, "draft")
    for number in range(5):
        desk.do(UpdateState({"draft": f"version {number}"}, None, actor="bob"))
    search = DecisionSearch(store, DecisionFilter((Wanted("version 0"),)))
    pages = [search.page(10) for _ in range(3)]
    assert [len(page) for page in pages] == [0, 0, 1]
    assert (search.looked, search.ended) == (5, True)
    assert pages[2][0].found == ("draft", "", "version 0", "")


def test_what_followed_ends_at_the_next_question(store: MemoryCheckpointer) -> None:
    desk = asking(store, "draft")
    desk.do(UpdateState({"draft": "x"}, None, actor="bob"))
    answer(desk, "approve", "ann")
    desk.run()
    approved, edited = DecisionSearch(store, DecisionFilter()).all(9)
    assert [entry.kind for entry in edited.ledger if entry.kind == "request"] == ["request"]
    assert (approved.status, [point.step for point in approved.points]) == ("completed", [2, 3])
    assert edited.points[0].step == 2


def test_a_thread_that_was_deleted_meanwhile_is_left_out(store: MemoryCheckpointer) -> None:
    answer(asking(store, "draft"), "approve", "ann")
    answer(asking(store, "key"), "approve", "ann")
    search = DecisionSearch(store, DecisionFilter())
    (first,) = search.page(1)
    other = ({"draft", "key"} - {first.thread}).pop()
    cursor = store.cursor(other)
    assert cursor is not None
    store.delete(Deletion({other: cursor.version}, "ann", None, 1, force=True))
    assert search.page(1) == ()
    assert search.ended
