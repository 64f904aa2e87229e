"""A node's `on_taint`: allow, warn, block, or ask a human about exactly what it would read."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import AnswerRefused, Channel, Gate, GateChoice, GraphInvalid, StateGraph, UsageError
from hitl_tui.engine.commands import Answer, execute
from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.log.events import TaintRead
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.thread.taint_policy import TaintBlocked
from hitl_tui.stores import Checkpointer
from tests.support.flows import pending_id
from tests.support.spec import spec

pytestmark = spec("8")

CHANNELS = {
    "page": Channel(None),
    "plan": Channel({"steps": ["a"], "owner": "ann"}),
    "other": Channel(None),
    "sent": Channel([], reducer="append"),
}


def fetch(state: Any, config: Any) -> dict[str, Any]:
    return {"page": "from the web", "plan": {"steps": ["web"], "owner": "eve"}}


def send(state: Any, config: Any) -> dict[str, Any]:
    return {"sent": state.get("page") if "page" in state else "nothing"}


def mailing(policy: Any, reads: list[str] | None = None, **options: Any) -> StateGraph:
    """A page from the web, then a node that sends it."""
    graph = StateGraph(CHANNELS)
    graph.add_node("fetch", fetch, external="web")
    graph.add_node("send", send, reads=["page"] if reads is None else reads, on_taint=policy, **options)
    return graph.add_edge("START", "fetch").add_edge("fetch", "send").add_edge("send", "END")


def runner_of(
    store: Checkpointer, policy: Any, reads: list[str] | None = None, **options: Any
) -> GraphRunner:
    return mailing(policy, reads, **options).compile(checkpointer=store)


def sent(runner: GraphRunner) -> list[Any]:
    return list(runner.get_state("t")["sent"])


def test_an_unknown_policy_is_an_error_when_built() -> None:
    with pytest.raises(GraphInvalid, match="on_taint 'ask' is not known") as caught:
        mailing("ask")
    assert "allow, warn, block, approve" in caught.value.hint


def test_asking_needs_a_store_to_run() -> None:
    with pytest.raises(UsageError, match=r"on_taint='approve' of node .* needs a store"):
        mailing("approve").compile().invoke()


@pytest.mark.parametrize("external", ["", " ", 1, None], ids=repr)
def test_external_is_true_or_a_source(external: Any) -> None:
    with pytest.raises(GraphInvalid, match="external is"):
        StateGraph(CHANNELS).add_node("n", fetch, external=external)


@pytest.mark.parametrize("policy", ["warn", "block", "approve"])
@pytest.mark.parametrize("reads", [["other"], ["sent", "other"], []], ids=repr)
def test_a_node_that_may_not_read_what_is_tainted_just_runs(
    store: Checkpointer, policy: str, reads: list[str]
) -> None:
    runner = runner_of(store, policy, reads)
    assert runner.invoke(thread_id="t").status == "completed"
    assert store.ledger("t") == []


@pytest.mark.parametrize(
    "reads",
    [["page"], ["*"], ["plan.steps"], ["other", "plan"]],
    ids=["named", "*", "a leaf", "among others"],
)
def test_only_channels_that_a_node_may_read_count(store: Checkpointer, reads: list[str]) -> None:
    assert runner_of(store, "approve", reads).invoke(thread_id="t").status == "waiting"


def test_a_node_without_declared_reads_may_read_everything(store: Checkpointer) -> None:
    graph = (
        StateGraph(CHANNELS).add_node("fetch", fetch, external=True).add_node("send", send, on_taint="block")
    )
    graph.add_edge("START", "fetch").add_edge("fetch", "send").add_edge("send", "END")
    with pytest.raises(TaintBlocked):
        graph.compile(checkpointer=store).invoke(thread_id="t")


def test_allow_asks_nothing(store: Checkpointer) -> None:
    runner = runner_of(store, "allow")
    assert runner.invoke(thread_id="t").status == "completed"
    assert store.ledger("t") == []


def test_warn_reports_and_logs_the_taint_and_continues(store: Checkpointer) -> None:
    events: list[Any] = []
    runner = runner_of(store, "warn")
    assert runner.invoke(thread_id="t", on_event=events.append).status == "completed"
    (warning,) = [event for event in events if isinstance(event, TaintRead)]
    assert (warning.node, [one.channel for one in warning.tainted]) == ("send", ["page"])
    (entry,) = store.ledger("t")
    assert (entry.kind, entry.note) == ("taint", "page (web, since step 1, fetch)")
    assert entry.data == {"node": "send", "channels": ["page"]}


class TestBlock:
    def test_the_run_fails_by_policy_before_the_node(self, store: Checkpointer) -> None:
        runner = runner_of(store, "block", retry=RetryPolicy(3, wait=0))
        with pytest.raises(TaintBlocked, match=r"'send' was not run: .* page \(web, since step 1, fetch\)"):
            runner.invoke(thread_id="t")
        cursor = store.cursor("t")
        assert cursor
        assert (cursor.status, cursor.reason, cursor.head, cursor.retries) == ("failed", "policy", 1, 0)
        assert sent(runner) == []

    def test_the_error_says_how_to_fix_it(self, store: Checkpointer) -> None:
        with pytest.raises(TaintBlocked) as caught:
            runner_of(store, "block").invoke(thread_id="t")
        assert "declassify page" in caught.value.hint

    def test_after_declassification_the_thread_continues_there(self, store: Checkpointer) -> None:
        runner = runner_of(store, "block")
        with pytest.raises(TaintBlocked):
            runner.invoke(thread_id="t")
        runner.declassify("t", "page", actor="ann", reason="read it")
        assert runner.invoke(thread_id="t").status == "completed"
        assert sent(runner) == ["from the web"]


class TestApprove:
    def asked(self, store: Checkpointer, reads: list[str] | None = None) -> tuple[GraphRunner, Any]:
        runner = runner_of(store, "approve", reads)
        waits = runner.invoke(thread_id="t")
        assert (waits.status, waits.reason) == ("waiting", "approval")
        return runner, waits

    def test_the_thread_waits_before_the_node(self, store: Checkpointer) -> None:
        runner, waits = self.asked(store)
        (request,) = waits.pending
        assert (request.kind, request.node, request.when, request.risk) == (
            "approve",
            "send",
            "before",
            "high",
        )
        assert request.policy == "on_taint"
        assert request.subject == "page"
        assert request.payload["channels"] == [
            {"channel": "page", "sources": ["web"], "since": 1, "by": "fetch"}
        ]
        assert sent(runner) == []

    def test_resuming_without_an_answer_keeps_waiting(self, store: Checkpointer) -> None:
        runner, waits = self.asked(store)
        assert runner.invoke(thread_id="t").pending == waits.pending

    def test_approved_the_node_runs_once_and_is_asked_again_next_time(self, store: Checkpointer) -> None:
        runner, waits = self.asked(store)
        runner.answer("t", waits.pending[0].id, "approve", step=1, actor="ann")
        assert runner.invoke(thread_id="t").status == "completed"
        assert sent(runner) == ["from the web"]
        again = runner.invoke(thread_id="t", resume="entry")
        assert again.status == "waiting"
        assert again.pending[0].id != waits.pending[0].id

    def test_a_loop_that_reads_the_same_page_again_asks_again(self, store: Checkpointer) -> None:
        graph = StateGraph(CHANNELS).add_node("fetch", fetch, external="web")
        graph.add_node("send", send, reads=["page"], on_taint="approve").add_edge("START", "fetch")
        graph.add_edge("fetch", "send")
        graph.add_conditional_edge("send", lambda s: len(s["sent"]) < 2, {True: "send", False: "END"})
        runner = graph.compile(checkpointer=store)
        for times in (0, 1):
            waits = runner.invoke(thread_id="t")
            assert (waits.status, len(sent(runner))) == ("waiting", times)
            runner.answer("t", waits.pending[0].id, "approve", step=waits.step, actor="ann")
        assert runner.invoke(thread_id="t").status == "completed"
        assert len(sent(runner)) == 2

    def test_rejected_the_thread_is_cancelled(self, store: Checkpointer) -> None:
        runner, waits = self.asked(store)
        runner.answer("t", waits.pending[0].id, "reject", step=1, actor="ann", note="spam")
        cursor = store.cursor("t")
        assert cursor
        assert (cursor.status, cursor.reason, cursor.pending) == ("cancelled", "rejected", ())
        assert runner.invoke(thread_id="t").status == "cancelled"
        assert sent(runner) == []

    @pytest.mark.parametrize(
        ("reads", "edit"),
        [
            (["page"], {"page": "other"}),
            (["plan.steps"], {"plan": {"steps": ["b"], "owner": "eve"}}),
            (["page", "other"], {"other": 1}),
        ],
        ids=["the tainted channel", "the leaf it reads", "another channel it reads"],
    )
    def test_editing_what_the_node_would_read_asks_again(
        self, store: Checkpointer, reads: list[str], edit: dict[str, Any]
    ) -> None:
        runner, waits = self.asked(store, reads)
        runner.answer("t", waits.pending[0].id, "approve", step=1, actor="ann")
        runner.update_state("t", edit, actor="bob")
        again = runner.invoke(thread_id="t")
        assert again.status == "waiting"
        assert again.pending[0].id != waits.pending[0].id
        assert sent(runner) == []

    @pytest.mark.parametrize(
        ("reads", "edit"),
        [
            (["page"], {"other": 1}),
            (["plan.steps"], {"plan": {"steps": ["web"], "owner": "bob"}}),
            (["page"], {"page": "from the web"}),
        ],
        ids=["a channel it does not read", "another leaf", "to the same value"],
    )
    def test_an_edit_of_something_else_keeps_the_approval(
        self, store: Checkpointer, reads: list[str], edit: dict[str, Any]
    ) -> None:
        runner, waits = self.asked(store, reads)
        runner.answer("t", waits.pending[0].id, "approve", step=1, actor="ann")
        runner.update_state("t", edit, actor="bob")
        assert runner.invoke(thread_id="t").status == "completed"

    @pytest.mark.parametrize("given", [{"goal": "spam all"}, {"constraints": ["none"]}], ids=str)
    def test_another_goal_or_constraint_asks_again(self, store: Checkpointer, given: dict[str, Any]) -> None:
        runner, waits = self.asked(store)
        runner.answer("t", waits.pending[0].id, "approve", step=1, actor="ann")
        assert runner.invoke(given, thread_id="t").status == "waiting"
        assert sent(runner) == []

    def test_an_answer_made_before_an_edit_is_refused(self, store: Checkpointer) -> None:
        runner, waits = self.asked(store)
        runner.update_state("t", {"page": "other"}, actor="bob")
        with pytest.raises(AnswerRefused, match="asked again under a new id"):
            runner.answer("t", waits.pending[0].id, "approve", step=1, actor="ann")
        runner.answer("t", pending_id(runner, "t"), "approve", step=2, actor="ann")
        assert runner.invoke(thread_id="t").status == "completed"
        assert sent(runner) == ["other"]

    def test_declassifying_all_it_would_read_withdraws_the_question(self, store: Checkpointer) -> None:
        runner, waits = self.asked(store)
        runner.declassify("t", "page", actor="ann", reason="read it")
        kinds = [(entry.kind, entry.request_id) for entry in store.ledger("t")]
        assert kinds[1:] == [("declassify", None), ("withdrawn", waits.pending[0].id)]
        assert runner.invoke(thread_id="t").status == "completed"

    def test_declassifying_a_part_of_it_keeps_the_question(self, store: Checkpointer) -> None:
        runner, _ = self.asked(store, ["page", "plan"])
        runner.declassify("t", "page", actor="ann", reason="read it")
        (request,) = runner.invoke(thread_id="t").pending
        runner.answer("t", request.id, "approve", step=2, actor="ann")
        assert runner.invoke(thread_id="t").status == "completed"

    def test_a_fork_is_asked_for_itself(self, store: Checkpointer) -> None:
        runner, waits = self.asked(store)
        runner.answer("t", waits.pending[0].id, "approve", step=1, actor="ann")
        runner.fork("t", 1, "f")
        forked = runner.invoke(thread_id="f")
        assert forked.status == "waiting"
        assert forked.pending[0].id != waits.pending[0].id

    def test_a_gate_before_the_node_is_asked_first_and_each_is_answered_for_itself(
        self, store: Checkpointer
    ) -> None:
        gate = Gate("send", "Send it?", [GateChoice("yes", "yes")])
        runner = mailing("approve").compile(checkpointer=store, interrupt_before=[gate])
        first = runner.invoke(thread_id="t")
        assert first.pending[0].title == "Send it?"
        step = runner.answer("t", first.pending[0].id, "yes", step=1)
        second = runner.invoke(thread_id="t")
        assert second.pending[0].policy == "on_taint"
        runner.answer("t", second.pending[0].id, "approve", step=step)
        assert runner.invoke(thread_id="t").status == "completed"

    def test_the_answer_stays_valid_while_the_node_is_retried(self, store: Checkpointer) -> None:
        calls: list[int] = []

        def flaky(state: Any, config: Any) -> dict[str, Any]:
            calls.append(1)
            if len(calls) == 1:
                raise ValueError("no line")
            return {"sent": state["page"]}

        graph = StateGraph(CHANNELS).add_node("fetch", fetch, external=True)
        graph.add_node("send", flaky, reads=["page"], on_taint="approve")
        graph.add_edge("START", "fetch").add_edge("fetch", "send").add_edge("send", "END")
        runner = graph.compile(checkpointer=store)
        waits = runner.invoke(thread_id="t")
        runner.answer("t", waits.pending[0].id, "approve", step=1)
        with pytest.raises(Exception, match="no line"):
            runner.invoke(thread_id="t")
        assert runner.invoke(thread_id="t").status == "completed"

    def test_no_hash_of_a_private_value_is_emitted(self, store: Checkpointer) -> None:
        events: list[Any] = []
        runner = runner_of(store, "approve")
        waits = runner.invoke(thread_id="t", on_event=events.append)
        session = runner.open("t", events.append)
        with session.writing():
            execute(session, Answer(waits.pending[0].id, "approve", step=1))
        assert session.cursor.passed[0].holds.startswith("sha256:")
        assert session.state.digests["page"].hex() not in repr(events)
