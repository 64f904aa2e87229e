"""What many threads of a LangGraph graph ask is decided from the queue, alike or by the rules of a policy."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.drivers.policies import read_policy
from hitl_tui.view.batch import Decider, plan, plan_by
from hitl_tui.view.continuing import run_on
from hitl_tui.view.queue import QueueRow, rows_of
from tests.drivers.langgraph.conftest import Hubs
from tests.support.decisions import decide
from tests.support.watching import Watcher

ANN = Decider("ann", "ann@box", note="reads well")
POLICY = """
[[rule]]
name = "not to bob"
when = "tools[0]['args']['to'] == 'bob'"
answer = "ignore"

[[rule]]
name = "small ones"
when = "tools[0]['args']['amount'] < 100"
answer = "approve"
"""


class Payment(TypedDict, total=False):
    to: str
    amount: int
    log: Annotated[list[Any], operator.add]


def pay(state: Payment) -> Payment:
    arguments = {"to": state["to"], "amount": state["amount"]}
    config = {"allow_accept": True, "allow_ignore": True}
    return {"log": interrupt([{"action_request": {"action": "pay", "args": arguments}, "config": config}])}


def paying(saver: Any) -> Any:
    """A node that wants a payment approved, in threads that another program has run: ann, bob and cy."""
    graph = StateGraph(Payment)
    graph.add_node("pay", pay)
    graph.add_edge(START, "pay")
    compiled = graph.compile(checkpointer=saver)
    for to, amount in (("ann", 10), ("bob", 20), ("cy", 1_000)):
        compiled.invoke({"to": to, "amount": amount}, config(to))
    return compiled


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


async def rows(hub: LangGraphHub) -> list[QueueRow]:
    return sorted(rows_of(await hub.waiting(50)), key=lambda row: row.name)


def answers(graph: Any) -> dict[str, Any]:
    """What the graph has got, by thread; None where it still asks."""
    return {to: (graph.get_state(config(to)).values.get("log") or [None])[0] for to in ("ann", "bob", "cy")}


ACCEPTED, IGNORED = {"type": "accept", "args": None}, {"type": "ignore", "args": None}


async def test_one_answer_reaches_each_graph_that_asked_but_one_that_has_moved(
    saver: Any, hubs: Hubs
) -> None:
    graph = paying(saver)
    hub = hubs.over(graph)
    marked = await rows(hub)
    plans = plan(marked, "approve", ANN, hub.now(), {row.key: row for row in marked})
    graph.invoke(Command(resume=[IGNORED]), config("bob"))
    results = {each.thread: each for each in await decide(hub, plans, "ann")}
    assert {name: result.outcome for name, result in results.items()} == {
        "ann": "decided",
        "bob": "refused",
        "cy": "decided",
    }
    assert "waits in thread 'bob'" in (results["bob"].why or "")
    for name in ("ann", "cy"):
        await run_on(hub, name)
    assert answers(graph) == {"ann": ACCEPTED, "bob": IGNORED, "cy": ACCEPTED}
    for name in ("ann", "cy"):
        watcher = await Watcher.open(await hub.open(name))
        (entry,) = (entry for entry in watcher.view.ledger if entry.kind == "answer")
        assert (entry.actor, entry.note, bool(entry.seen)) == ("ann", "reads well", True)
        assert (await watcher.check()).progress.status == "completed"


async def test_the_rules_of_a_policy_answer_what_a_graph_asks_and_are_named(
    saver: Any, hubs: Hubs, tmp_path: Path
) -> None:
    (tmp_path / "payments.toml").write_text(POLICY)
    graph = paying(saver)
    hub = hubs.over(graph)
    policy = read_policy(tmp_path / "payments.toml")
    waiting = await rows(hub)
    plans = await plan_by(policy, hub, waiting, ANN, hub.now(), current={row.key: row for row in waiting})
    assert {each.thread: (each.outcome, each.rule) for each in plans} == {
        "ann": ("would", "small ones"),
        "bob": ("would", "not to bob"),
        "cy": ("left", ""),
    }
    decided = await decide(hub, plans, "ann")
    assert {each.outcome for each in decided} == {"decided"}
    for each in decided:
        await run_on(hub, each.thread)
    assert answers(graph) == {"ann": ACCEPTED, "bob": IGNORED, "cy": None}
    watcher = await Watcher.open(await hub.open("bob"))
    (entry,) = (entry for entry in watcher.view.ledger if entry.kind == "answer")
    assert entry.data["policy"]["rule"] == "not to bob"


@pytest.mark.parametrize("kept", [True, False], ids=["opened meanwhile", "given back"])
async def test_a_thread_that_was_borrowed_is_the_one_that_is_opened_meanwhile(
    saver: Any, hubs: Hubs, kept: bool
) -> None:
    hub = hubs.over(paying(saver))
    async with hub.borrow("ann") as lent:
        opened = await hub.open("ann") if kept else lent
        assert opened is lent
    again = await hub.open("ann")
    assert (again is lent) is kept
    assert (await again.snapshot()).progress.pending
