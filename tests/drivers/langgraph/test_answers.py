"""What a LangGraph graph asks, answered over its driver: by id, in part, refused, asked anew, withdrawn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from hitl_tui.engine.commands import Answer, Run, Start
from hitl_tui.errors import AnswerRefused
from tests.drivers.langgraph import graphs
from tests.drivers.langgraph.conftest import Hubs
from tests.support.watching import Watcher

CONFIG: Any = {"configurable": {"thread_id": "t"}}
FINE = {"approved": True, "why": "fine"}


async def started(hubs: Hubs, app: Any, mirror: str = "memory:") -> Watcher:
    """A thread run to its first questions."""
    watcher = await hubs.watch(app, mirror=mirror)
    await watcher.driver.execute(Start({"log": []}, actor="ann"))
    await watcher.run()
    return watcher


async def answer(watcher: Watcher, node: str, value: Any) -> None:
    view = await watcher.check()
    (request,) = [each for each in view.progress.pending if each.node == node]
    await watcher.driver.execute(Answer(request.id, value, request.step, "ann", "because"))


def kinds(watcher: Watcher) -> list[str]:
    return [entry.kind for entry in watcher.view.ledger]


async def test_several_questions_wait_and_are_answered_one_by_one(saver: Any, hubs: Hubs) -> None:
    ran: list[str] = []
    watcher = await started(hubs, graphs.two_reviews(ran).compile(checkpointer=saver))
    assert [each.title for each in watcher.view.progress.pending] == ["is it legal?", "is it good style?"]
    await answer(watcher, "legal", "yes")
    ran.clear()
    await watcher.run()
    assert sorted(ran) == ["legal", "style"], "LangGraph runs the one that was not answered again, too"
    assert [each.node for each in (await watcher.check()).progress.pending] == ["style"]
    await answer(watcher, "style", FINE)
    await watcher.run()
    view = await watcher.check()
    assert view.progress.status == "completed"
    assert view.values["log"][1] == "legal yes"
    assert kinds(watcher).count("request") == 2
    assert kinds(watcher).count("answer") == 2


async def test_answers_gathered_before_a_run_are_handed_over_at_once(saver: Any, hubs: Hubs) -> None:
    ran: list[str] = []
    watcher = await started(hubs, graphs.two_reviews(ran).compile(checkpointer=saver))
    ran.clear()
    await answer(watcher, "legal", "yes")
    await answer(watcher, "style", FINE)
    await watcher.run()
    assert sorted(ran) == ["legal", "publish", "style"], "each ran again once"


async def test_the_nodes_that_an_answer_re_runs_are_shown_before_it(saver: Any, hubs: Hubs) -> None:
    watcher = await started(hubs, graphs.two_reviews([]).compile(checkpointer=saver))
    repeats = (await watcher.driver.preview(Run())).repeats
    assert repeats is not None
    assert [each.node for each in repeats.nodes] == ["legal", "style"]
    await answer(watcher, "legal", "yes")
    await answer(watcher, "style", FINE)
    await watcher.run()
    assert (await watcher.driver.preview(Run())).repeats is None


@pytest.mark.skipif(not graphs.HAS_SCHEMAS, reason="this LangGraph knows no response_schema")
async def test_an_answer_that_the_schema_refuses_never_reaches_the_graph(saver: Any, hubs: Hubs) -> None:
    ran: list[str] = []
    watcher = await started(hubs, graphs.two_reviews(ran).compile(checkpointer=saver))
    ran.clear()
    with pytest.raises(AnswerRefused, match="approved"):
        await answer(watcher, "style", {"why": "no"})
    assert ran == []
    assert len((await watcher.check()).progress.pending) == 2


@pytest.mark.skipif(not graphs.HAS_SCHEMAS, reason="this LangGraph knows no response_schema")
async def test_a_request_whose_answer_the_graph_refuses_stays_open(saver: Any, hubs: Hubs) -> None:
    watcher = await started(hubs, graphs.picky().compile(checkpointer=saver))
    (request,) = watcher.view.progress.pending
    await answer(watcher, "ask", {"size": 7})
    await watcher.run()
    view = await watcher.check()
    assert (view.progress.status, [each.id for each in view.progress.pending]) == ("waiting", [request.id])
    (refused,) = [entry for entry in view.ledger if entry.kind == "refused"]
    assert "size must be even" in refused.data["why"]
    await answer(watcher, "ask", {"size": 8})
    await watcher.run()
    assert (await watcher.check()).progress.status == "completed"


@pytest.mark.slow
async def test_an_edit_by_another_program_withdraws_the_question(saver: Any, hubs: Hubs) -> None:
    app = graphs.team_of([]).compile(checkpointer=saver)
    watcher = await started(hubs, app, "mirror.db")
    await answer(watcher, "team", "yes")
    app.update_state(CONFIG, {"draft": "edited elsewhere"}, as_node="before")
    await hubs.close()
    again = await hubs.watch(app, mirror="mirror.db")
    assert again.view.progress.pending == ()
    assert again.view.values["draft"] == "edited elsewhere"
    await again.run()
    view = await again.check()
    assert [each.title for each in view.progress.pending] == ["inside?"], "it is asked anew, not answered"
    assert "ask yes" not in view.values["log"]
    (withdrawn,) = [entry for entry in view.ledger if entry.kind == "withdrawn"]
    assert "was not handed over" in (withdrawn.note or "")


async def test_a_fan_out_asks_for_each_item_by_its_branch(saver: Any, hubs: Hubs) -> None:
    watcher = await started(hubs, graphs.fan_out([]).compile(checkpointer=saver))
    requests = watcher.view.progress.pending
    assert [each.path for each in requests] == ["look[0]", "look[1]", "look[2]"]
    for request in requests:
        await watcher.driver.execute(Answer(request.id, request.payload.upper(), request.step, "ann"))
    await watcher.run()
    assert (await watcher.check()).values["log"] == ["start", "a: A", "b: B", "c: C"]


@pytest.mark.parametrize(
    ("compiled", "title"),
    [
        ({"interrupt_before": ["revise"]}, "stopped before revise"),
        ({"interrupt_after": "*"}, "stopped after write"),
    ],
)
async def test_a_compiled_interrupt_is_passed_by_resuming(
    saver: Any, hubs: Hubs, compiled: dict[str, Any], title: str
) -> None:
    watcher = await started(hubs, graphs.routed([]).compile(checkpointer=saver, **compiled))
    (request,) = (await watcher.check()).progress.pending
    assert (request.title, request.breakpoint) == (title, True)
    await watcher.step()
    view = await watcher.check()
    assert view.values["log"] == ["write", "revise"]


async def test_a_stop_made_elsewhere_is_seen_when_the_thread_is_opened(saver: Any, hubs: Hubs) -> None:
    app = graphs.routed([]).compile(checkpointer=saver, interrupt_before=["revise"])
    app.invoke({"log": []}, CONFIG)
    watcher = await hubs.watch(app)
    (request,) = watcher.view.progress.pending
    assert request.title == "stopped before revise"


async def test_a_node_that_asks_twice_gets_each_answer_once(saver: Any, hubs: Hubs) -> None:
    watcher = await started(hubs, graphs.asks_twice().compile(checkpointer=saver))
    await answer(watcher, "ask", "ann")
    await watcher.run()
    assert (await watcher.check()).progress.status == "waiting"
    await answer(watcher, "ask", "bo")
    await watcher.run()
    assert (await watcher.check()).values["log"] == ["ann bo"]


def pays(saver: Any) -> tuple[list[int], list[tuple[int, Any]], Any]:
    """The amount that a node asks to pay, what was paid, and the graph; another node asks if it is legal."""
    amounts, paid = [10], []

    def pay(_state: Any) -> dict[str, Any]:
        amount = amounts[0]
        paid.append((amount, interrupt(f"Pay {amount}?")))
        return {"log": [f"paid {amount}"]}

    def legal(_state: Any) -> dict[str, Any]:
        return {"log": [str(interrupt("Is it legal?"))]}

    graph = StateGraph(graphs.State).add_node("pay", pay).add_node("legal", legal)
    graph.add_edge(START, "pay").add_edge(START, "legal")
    return amounts, paid, graph.compile(checkpointer=saver)


async def answer_legal_elsewhere(app: Any) -> None:
    """Another program answers the other question, so that LangGraph runs both nodes again."""
    # The savers of files know the synchronous methods alone.
    state = await asyncio.to_thread(app.get_state, CONFIG)
    (other,) = [each for each in state.interrupts if each.value == "Is it legal?"]
    await asyncio.to_thread(app.invoke, Command(resume={other.id: "legal"}), CONFIG)


async def test_an_answer_is_not_handed_to_an_interrupt_that_asks_something_else_under_its_id(
    saver: Any, hubs: Hubs
) -> None:
    amounts, paid, app = pays(saver)
    watcher = await started(hubs, app)
    await answer(watcher, "pay", "yes")
    amounts[0] = 10000
    await answer_legal_elsewhere(app)
    with suppress(AnswerRefused):
        await watcher.run()
    assert paid == []
    await answer(watcher, "pay", "no")
    await watcher.run()
    assert paid == [(10000, "no")]


async def test_a_card_that_was_read_before_the_question_changed_answers_nothing(
    saver: Any, hubs: Hubs
) -> None:
    amounts, paid, app = pays(saver)
    watcher = await started(hubs, app)
    (card,) = [each for each in watcher.view.progress.pending if each.node == "pay"]
    amounts[0] = 10000
    await answer_legal_elsewhere(app)
    with pytest.raises(AnswerRefused):
        await watcher.driver.execute(Answer(card.id, "yes", card.step, "ann"))
    assert paid == []
    view = await watcher.check()
    (asked,) = [each for each in view.progress.pending if each.node == "pay"]
    assert (asked.title, asked.step) == ("Pay 10000?", card.step)
