"""An answer to a LangGraph graph's question applies only to what the person was asked."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeInterrupt
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from msgspec.structs import replace

from hitl_tui.engine.commands import Answer, Start, UpdateState
from hitl_tui.engine.log.records import LedgerEntry
from tests.drivers.langgraph import graphs
from tests.drivers.langgraph.conftest import Hubs
from tests.engine.audit.test_gates_answered import forge
from tests.support.watching import Watcher


async def started(hubs: Hubs, app: Any) -> Watcher:
    watcher = await hubs.watch(app)
    await watcher.driver.execute(Start({"log": []}, actor="ann"))
    await watcher.run()
    return watcher


async def answer(watcher: Watcher, value: Any, title: str = "") -> Any:
    """Answer the one question that waits, or the one with a title; gives it as it waits after the run."""
    view = await watcher.check()
    (request,) = [each for each in view.progress.pending if title in each.title]
    await watcher.driver.execute(Answer(request.id, value, request.step, "ann"))
    await watcher.run()
    waiting = (await watcher.check()).progress.pending
    return waiting[0] if waiting else None


def asks_of(saver: Any, names: list[str], *, awaited: bool = False) -> tuple[list[Any], Any]:
    """A graph whose node asks about each of some files and deletes those it may, and what it deleted."""
    deleted: list[Any] = []

    def delete(_state: Any) -> dict[str, Any]:
        answers = [(name, interrupt({"question": f"Delete {name}?", "file": name})) for name in list(names)]
        deleted.extend(name for name, may in answers if may == "yes")
        return {"log": [f"{name}: {may}" for name, may in answers]}

    async def delete_later(state: Any) -> dict[str, Any]:
        return delete(state)

    graph = StateGraph(graphs.State).add_node("delete", delete_later if awaited else delete)
    return deleted, graph.add_edge(START, "delete").compile(checkpointer=saver)


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_node_that_asks_something_else_when_it_runs_again_does_not_get_the_answer(
    saver: Any, hubs: Hubs, awaited: bool
) -> None:
    names = ["a.txt"]
    deleted, app = asks_of(saver, names, awaited=awaited)
    watcher = await started(hubs, app)
    names[:] = ["b.txt"]
    asked = await answer(watcher, "yes")
    assert deleted == []
    assert asked.title == "Delete b.txt?"
    assert asked.notes == (
        "ann answered yes to question Delete a.txt?, file a.txt; "
        "now it asks about question Delete b.txt?, file b.txt.",
    )
    (unused,) = [entry for entry in watcher.view.ledger if entry.kind == "unused"]
    assert "“Delete a.txt?” was not used" in (unused.note or "")
    assert await answer(watcher, "no") is None
    assert (deleted, watcher.view.values["log"]) == ([], ["b.txt: no"])
    assert (await watcher.driver.check("strict", lambda *_: None)).mismatches == ()


async def test_each_question_of_a_node_gets_its_own_answer_in_whatever_order_they_come(
    saver: Any, hubs: Hubs
) -> None:
    names = ["a", "b", "c"]
    _deleted, app = asks_of(saver, names)
    watcher = await started(hubs, app)
    await answer(watcher, "yes", "Delete a?")
    names[:] = ["b", "c", "a"]
    assert (await answer(watcher, "no", "Delete b?")).title == "Delete c?"
    assert await answer(watcher, "yes", "Delete c?") is None
    assert watcher.view.values["log"] == ["b: no", "c: yes", "a: yes"]
    assert [entry for entry in watcher.view.ledger if entry.kind == "unused"] == []


async def test_an_earlier_question_that_has_changed_is_asked_before_the_later_ones(
    saver: Any, hubs: Hubs
) -> None:
    names = ["a", "b"]
    _deleted, app = asks_of(saver, names)
    watcher = await started(hubs, app)
    await answer(watcher, "yes", "Delete a?")
    names[:] = ["a2", "b"]
    assert (await answer(watcher, "no", "Delete b?")).title == "Delete a2?"
    assert await answer(watcher, "no", "Delete a2?") is None, "b was answered, and asks the same"
    assert watcher.view.values["log"] == ["a2: no", "b: no"]


async def test_the_same_question_twice_takes_two_answers(saver: Any, hubs: Hubs) -> None:
    _deleted, app = asks_of(saver, ["a", "a"])
    watcher = await started(hubs, app)
    await answer(watcher, "first")
    assert await answer(watcher, "second") is None
    assert watcher.view.values["log"] == ["a: first", "a: second"]


def stamped(saver: Any, binds: tuple[str, ...]) -> Any:
    """A graph whose question has a number that is another one whenever it is asked."""
    numbers = iter(range(100))

    def pay(_state: Any) -> dict[str, Any]:
        asked = {"question": "Pay?", "amount": 10, "number": next(numbers)}
        return {"log": [interrupt({**asked, "binds": list(binds)} if binds else asked)]}

    return StateGraph(graphs.State).add_node("pay", pay).add_edge(START, "pay").compile(checkpointer=saver)


async def test_a_payload_names_the_parts_that_count(saver: Any, hubs: Hubs) -> None:
    watcher = await started(hubs, stamped(saver, ("question", "amount")))
    assert await answer(watcher, "yes") is None
    assert watcher.view.values["log"] == ["yes"]


async def test_a_question_that_always_changes_says_how_to_fix_it(saver: Any, hubs: Hubs) -> None:
    watcher = await started(hubs, stamped(saver, ()))
    await answer(watcher, "yes")
    asked = await answer(watcher, "yes")
    assert "because of number, which differs each time" in asked.notes[-1]
    assert 'in the payload, "binds": ["question", "amount"]' in asked.notes[-1]


async def test_a_question_asked_again_after_an_edit_says_what_it_asked_before(saver: Any, hubs: Hubs) -> None:
    def pay(state: Any) -> dict[str, Any]:
        amount = len(state["log"])
        return {"log": [f"paid {amount}: {interrupt({'question': 'Pay?', 'amount': amount})}"]}

    graph = StateGraph(graphs.State).add_node("pay", pay).add_edge(START, "pay")
    watcher = await started(hubs, graph.compile(checkpointer=saver))
    (request,) = (await watcher.check()).progress.pending
    await watcher.driver.execute(Answer(request.id, "yes", request.step, "ann"))
    await watcher.driver.execute(UpdateState({"log": ["x"] * 9}, expected_step=request.step, actor="eve"))
    await watcher.run()
    (asked,) = (await watcher.check()).progress.pending
    assert asked.notes == ("ann answered yes to amount 0; now it asks about amount 9.",)
    assert await answer(watcher, "no") is None
    assert watcher.view.values["log"][-1] == "paid 9: no"


async def test_a_question_in_a_later_round_does_not_mention_the_round_before(saver: Any, hubs: Hubs) -> None:
    def ask(state: Any) -> dict[str, Any]:
        return {"log": [interrupt(f"round {len(state['log'])}?")]}

    graph = StateGraph(graphs.State).add_node("ask", ask).add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda state: "ask" if len(state["log"]) < 2 else "__end__")
    watcher = await started(hubs, graph.compile(checkpointer=saver))
    asked = await answer(watcher, "one")
    assert (asked.title, asked.notes) == ("round 1?", ())


async def test_a_strict_check_finds_answers_to_something_else(
    hubs: Hubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = await started(hubs, graphs.two_reviews([]).compile(checkpointer=InMemorySaver()))
    hashes = [bytes.fromhex(each.request_hash[7:]) for each in watcher.view.progress.pending]

    def swapped(entry: LedgerEntry) -> LedgerEntry:
        if entry.kind != "answer":
            return entry
        return replace(entry, request_hash=hashes[entry.request_hash == hashes[0]])

    forge(monkeypatch, swapped)
    for node, value in (("legal", "yes"), ("style", {"approved": True, "why": "fine"})):
        (request,) = [each for each in watcher.view.progress.pending if each.node == node]
        await watcher.driver.execute(Answer(request.id, value, request.step, "ann"))
        await watcher.check()
    await watcher.run()
    assert (await watcher.driver.check("log", lambda *_: None)).mismatches == ()
    found = (await watcher.driver.check("strict", lambda *_: None)).mismatches
    assert [(each.kind, each.field) for each in found] == [("gate", "request_hash")] * 2


async def test_a_strict_check_finds_nothing_where_several_nodes_ran_at_once(hubs: Hubs) -> None:
    watcher = await started(hubs, graphs.two_reviews([]).compile(checkpointer=InMemorySaver()))
    for node, value in (("legal", "yes"), ("style", {"approved": True, "why": "fine"})):
        (request,) = [each for each in watcher.view.progress.pending if each.node == node]
        await watcher.driver.execute(Answer(request.id, value, request.step, "ann"))
        await watcher.check()
    await watcher.run()
    assert (await watcher.driver.check("strict", lambda *_: None)).mismatches == ()


@pytest.mark.filterwarnings("ignore:.*NodeInterrupt")
async def test_two_interrupts_in_one_step_are_separate_requests(hubs: Hubs) -> None:
    def raising(name: str) -> Any:
        def node(state: Any) -> dict[str, Any]:
            if "ready" not in state["log"]:
                raise NodeInterrupt(f"{name} waits")
            return {"log": [name]}

        return node

    graph = StateGraph(graphs.State).add_node("a", raising("a")).add_node("b", raising("b"))
    graph.add_edge(START, "a").add_edge(START, "b")
    watcher = await started(hubs, graph.compile(checkpointer=InMemorySaver()))
    first, second = (await watcher.check()).progress.pending
    assert [first.title, second.title] == ["a waits", "b waits"]
    assert first.id != second.id
    for request in (first, second):
        await watcher.driver.execute(Answer(request.id, "go on", request.step, "ann"))
    await watcher.run()
    again = (await watcher.check()).progress.pending
    assert [each.id for each in again] == [first.id, second.id], "an answer does not let such a node pass"
