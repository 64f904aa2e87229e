"""Many decisions at once: what would be decided and why the rest not, and what becomes of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.policies import read_policy
from hitl_tui.engine.commands import UpdateState
from hitl_tui.engine.log.requests import Choice, Vote
from hitl_tui.loading.sources import reopen_graph
from hitl_tui.view.batch import Decider, answers_of, plan, plan_by, plan_words, planned, result_words
from hitl_tui.view.queue import QueueRow, rows_of
from tests.support import rich_queue
from tests.support.decisions import decide
from tests.view.test_queue import MINUTE, NOW, ROWS, YES, row, there

ME = Decider("me", "me@box")
REDO = Choice("redo", "once more", text="required")


def why(shown: QueueRow, wanted: str = "approve", by: Decider = ME, **now: Any) -> str:
    """Why a row would not be decided, "" where it would."""
    current = now.get("current", shown)
    return planned(shown, wanted, by, NOW, current=current).why


def test_what_would_be_decided_is_a_command_about_the_state_that_was_read() -> None:
    shown = row("t", choices=(YES, REDO))
    would = planned(shown, "redo", replace(ME, note="shorter"), NOW, current=shown)
    assert (would.would, would.label) == (True, "once more")
    command = would.command("me")
    assert (command.request_id, command.step, command.seen) == ("r", 3, b"state of t")
    assert (command.value, command.note) == ({"choice": "redo", "text": "shorter"}, "shorter")


def test_the_rest_says_why_not() -> None:
    request = row().request
    assert request is not None
    assert why(row(), current=row()) == ""
    assert why(ROWS[-1]) == "it only stopped; nothing is asked"
    assert why(row(), current=None) == "it no longer waits"
    assert why(row(), current=replace(row(), seen=b"other")) == "it has changed since you saw it"
    assert why(row(), current=replace(row(), request=replace(request, id="s"))).startswith(
        "what it is about has changed"
    )
    assert why(row(risk="high")) == "high risk: decide it by itself"
    assert why(row(attending=(there("ann", claims=True),))) == "claimed by ann, 9 m left"
    assert why(row(attending=(there("me", claims=True), there("ben")))) == ""
    assert why(row(signed=True)) == "it must be signed, and you have no signing key"
    assert why(row(signed=True), by=replace(ME, signs=True)) == ""
    assert why(row(choices=())) == "it asks for a text"
    assert why(ROWS[3]) == "it asks for a form with 1 field"
    assert why(row(choices=(YES, REDO)), "redo") == "the answer 'redo' needs a comment"
    assert why(row(), "redo") == "'redo' is not an allowed answer (allowed: approve)"
    assert why(row(choices=(REDO,))) == "none of its answers clearly approves (redo)"
    assert why(row(reviewers=("ann",))) == "me may not answer 'Ship it?'"
    assert why(row(quorum=2, votes=(Vote("me", "approve", NOW),))) == "me has answered 'Ship it?' already"
    assert why(row(deadline=NOW - MINUTE)) == "'Ship it?' has expired"


def test_those_that_would_be_decided_come_first_and_answers_by_how_many_allow_them() -> None:
    yes = Choice("yes", "y")
    rows = [row("a", risk="high"), row("b"), row("c", choices=(YES, REDO)), row("d", choices=(yes,))]
    plans = plan(rows, "approve", ME, NOW, {shown.key: shown for shown in rows})
    assert [plan.thread for plan in plans] == ["b", "c", "d", "a"]
    assert plan_words(plans) == "3 would be decided, 1 not"
    assert [(name, times) for name, _, times in answers_of(rows)] == [("approve", 3), ("redo", 1), ("yes", 1)]


def test_an_answer_whose_label_differs_between_threads_is_named_by_its_id() -> None:
    wordings = ("agree: approve", "agree: send it back")
    rows = [row(wording, choices=(Choice("accept", wording), REDO)) for wording in wordings]
    labels = {name: label for name, label, _ in answers_of(rows)}
    assert (labels["accept"], labels["redo"]) == ("accept", REDO.label)


@pytest.fixture
def store(tmp_path: Path) -> SQLiteCheckpointer:
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    rich_queue.fill(store)
    return store


@pytest.mark.slow
async def test_each_decision_of_a_batch_is_its_own_entry_and_moved_threads_are_refused(
    store: SQLiteCheckpointer,
) -> None:
    hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))
    by = Decider("tester", "tester@box")
    rows = rows_of(await hub.waiting(100))
    known = {shown.key: shown for shown in rows}
    plans = plan(rows, "approve", by, NOW, known)
    assert {plan.thread for plan in plans if plan.would} == rich_queue.APPROVABLE
    entries = {name: len(store.ledger(name)) for name in rich_queue.APPROVABLE}

    async with hub.borrow("memo-42") as driver:
        moved = next(plan for plan in plans if plan.thread == "memo-42")
        await driver.execute(replace(moved.command("ann"), value={"choice": "revise", "text": "no"}))
    async with hub.borrow("blog-joins") as driver:
        await driver.execute(UpdateState({"latest_draft": "another one"}, None, None, "ann", None))

    results = await decide(hub, plans, "tester")
    outcomes = {result.thread: result.outcome for result in results}
    refused = {"memo-42", "blog-joins"}
    assert {name for name, outcome in outcomes.items() if outcome == "refused"} == refused
    why = {result.thread: result.why for result in results if result.outcome == "refused"}
    assert "has been answered already" in why["memo-42"]
    assert "asked again under a new id" in why["blog-joins"]
    assert {outcomes[name] for name in rich_queue.APPROVABLE - refused} == {"decided"}
    for name in rich_queue.APPROVABLE - refused:
        new = store.ledger(name)[entries[name] :]
        answers = [entry for entry in new if entry.kind == "answer"]
        seen = next(shown.seen for shown in rows if shown.name == name)
        assert [(entry.actor, entry.seen) for entry in answers] == [("tester", seen)]
    assert result_words(results) == "7 decided, 2 refused"
    await hub.close()


@pytest.mark.slow
async def test_a_policy_reports_the_requests_that_were_asked_again_since_they_were_listed(
    store: SQLiteCheckpointer, tmp_path: Path
) -> None:
    (tmp_path / "policy.toml").write_text('[[rule]]\nwhen = "True"\nanswer = "approve"\n')
    hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))
    listed = [shown for shown in rows_of(await hub.waiting(100)) if shown.name in ("memo-42", "blog-joins")]
    async with hub.borrow("memo-42") as driver:
        await driver.execute(UpdateState({"text": "another"}, None, None, "ann", None))
    current = {shown.key: shown for shown in rows_of(await hub.waiting(100))}
    plans = await plan_by(read_policy(tmp_path / "policy.toml"), hub, listed, ME, NOW, current=current)
    assert [(plan.thread, plan.outcome) for plan in plans] == [("blog-joins", "would"), ("memo-42", "left")]
    assert plans[1].why.startswith("what it is about has changed, so it is asked again")
    await hub.close()


@pytest.mark.slow
async def test_a_vote_that_does_not_settle_says_what_it_waits_for(store: SQLiteCheckpointer) -> None:
    hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))
    (recall,) = [shown for shown in rows_of(await hub.waiting(100)) if shown.name == "recall-k2"]
    against = Decider("tester", "", note="it is fine")
    (result,) = await decide(hub, [planned(recall, "reject", against, NOW, current=recall)], "tester")
    assert result.outcome == "voted"
    assert result.why == "your vote counts: 2 of 2; it waits for another reviewer"
    assert result_words([result]) == "1 vote given"
    await hub.close()
