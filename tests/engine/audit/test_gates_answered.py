"""A strict check wants an answer in the ledger for every gate that a thread has passed.

Forged threads are written with chains that agree: nothing but what the decisions say gives them away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hitl_tui import END, START, AnswerRefused, Channel, GraphRunner, StateGraph, append
from hitl_tui.engine.commands.answering import expire
from hitl_tui.engine.graph.gates import Gate, GateChoice
from hitl_tui.engine.log.outcomes import HASHED
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.state.canonical import show_hash
from hitl_tui.engine.thread.binding import logged_hash
from hitl_tui.engine.thread.hashes import ledger_hash, pending_hash
from hitl_tui.engine.thread.session import Session
from hitl_tui.stores import Checkpointer, MemoryCheckpointer
from tests.engine.audit.rich import fill
from tests.engine.audit.rich import runner as rich_runner
from tests.support.spec import spec

pytestmark = [spec("10"), spec("12")]

Forge = Callable[[LedgerEntry], LedgerEntry | None]
Place = str
CHOICES = [
    GateChoice("approve", "send it", values={"ok": True}),
    GateChoice("revise", "again", values={"ok": False}),
]


def gated(store: Checkpointer, place: Place = "after draft", **terms: Any) -> GraphRunner:
    """START -> draft -> send -> END, with a gate between the two."""
    when, _, node = place.partition(" ")
    graph = (
        StateGraph({"ok": Channel(False), "log": Channel([], reducer=append())}, name="letter")
        .add_node("draft", lambda _state: {"log": "draft"})
        .add_node("send", lambda _state: {"log": "send"})
        .add_edge(START, "draft")
        .add_edge("draft", "send")
        .add_edge("send", END)
    )
    gate = Gate(node, "send it?", CHOICES, risk="high", **terms)
    stops = {"interrupt_after" if when == "after" else "interrupt_before": [gate]}
    return graph.compile(checkpointer=store, **stops)


def asking(store: Checkpointer, policy: Any = "allow") -> GraphRunner:
    """START -> fetch (from the web) -> send, which asks a person or whose policy does -> END."""

    def send(_state: Any, config: Any) -> dict[str, Any]:
        if policy == "allow":
            config.interrupt({"kind": "approve", "title": "delete it?", "quorum": 1})
        return {"log": "sent"}

    return (
        StateGraph({"page": Channel(""), "log": Channel([], reducer=append())})
        .add_node("fetch", lambda _state: {"page": "<b>"}, external="web")
        .add_node("send", send, reads=["page"], writes=["log"], on_taint=policy)
        .add_edge(START, "fetch")
        .add_edge("fetch", "send")
        .add_edge("send", END)
        .compile(checkpointer=store)
    )


def answer(made: GraphRunner, *people: str, choice: str = "approve", thread: str = "t") -> None:
    """What waits is answered by each, and the thread goes on."""
    for person in people:
        waits = made.open(thread).cursor.pending[0]
        made.answer(thread, waits.id, choice, step=waits.step, actor=person)
    made.invoke(thread_id=thread)


def forge(monkeypatch: pytest.MonkeyPatch, change: Forge, decision: str = "") -> None:
    """Change each decision that is written from here on, or leave it out, with chains that agree."""
    step, cursor = Session.commit_step, Session.commit_cursor

    def forged(session: Session, ledger: Any) -> list[LedgerEntry]:
        entries: list[LedgerEntry] = []
        for entry in ledger:
            changed = change(entry)
            if changed is None:
                continue
            last = (entries[-1].n, entries[-1].hash) if entries else None
            n, link = last or (session.cursor.ledger_n, session.cursor.ledger_hash)
            changed = replace(changed, n=n + 1, prev_hash=link)
            entries.append(replace(changed, hash=ledger_hash(changed)))
        return entries

    def commit_step(self: Session, after: Any, changes: Any, made: Any, **rest: Any) -> None:
        ledger = forged(self, rest.pop("ledger", ()))
        if decision and made.decision:
            made = replace(made, decision=decision)
        step(self, after, changes, made, ledger=ledger, **rest)

    monkeypatch.setattr(Session, "commit_step", commit_step)
    monkeypatch.setattr(
        Session,
        "commit_cursor",
        lambda self, at, ledger=(), **given: cursor(self, at, forged(self, ledger), **given),
    )


def findings(made: GraphRunner, thread: str = "t") -> list[tuple[int | None, str, Any, Any]]:
    """What a strict check finds; without it, the chains agree."""
    assert made.verify(thread).mismatches == ()
    found = made.verify(thread, strict=True).mismatches
    assert {one.kind for one in found} <= {"gate"}
    return [(one.step, one.field, one.expected, one.actual) for one in found]


def without(*kinds: str) -> Forge:
    return lambda entry: None if entry.kind in kinds else entry


def other(kind: str, /, **facts: Any) -> Forge:
    return lambda entry: replace(entry, **facts) if entry.kind == kind else entry


@pytest.mark.parametrize("kinds", [["answer"], ["request", "answer"]], ids=["answer", "request too"])
@pytest.mark.parametrize("place", ["after draft", "before send"])
def test_an_answer_that_is_gone_from_the_ledger(
    monkeypatch: pytest.MonkeyPatch, place: Place, kinds: list[str]
) -> None:
    made = gated(MemoryCheckpointer(), place)
    if "request" in kinds:
        # What waits keeps to its request while it waits; of an answered one nothing is left.
        monkeypatch.setattr(Session, "_with_request_hashes", lambda _self, _pending, ledger, _now: ledger)
        monkeypatch.setattr("hitl_tui.engine.thread.logged.check_requests", lambda *_: None)
    forge(monkeypatch, without(*kinds))
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann")
    assert findings(made) == [
        (2, "decision", None, "approve"),
        (3, "answer", f"an answer to 'send it?' ({place})", None),
    ]


def test_a_thread_that_continued_after_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gated(MemoryCheckpointer())
    forge(monkeypatch, other("answer", data={"answer": "revise"}))
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann")
    assert findings(made) == [(2, "decision", "revise", "approve")]


def test_a_refusal_that_set_what_an_approval_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gated(MemoryCheckpointer())
    forge(monkeypatch, other("answer", data={"answer": "revise"}), decision="revise")
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann")
    assert findings(made) == [(2, "ok", False, True)]


def test_an_answer_by_somebody_else_than_the_step_names(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gated(MemoryCheckpointer(), reviewers=["ann"])
    forge(monkeypatch, other("answer", actor="eve"))
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann")
    assert findings(made) == [(2, "actor", "eve", "ann"), (3, "reviewer", "ann", "eve")]


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (other("vote", kind="rebound", data=None), ("votes", 2, 1)),
        (other("vote", actor="bob"), ("votes", 2, 1)),
        (other("vote", data={"answer": "revise"}), ("votes", 2, 1)),
        (other("vote", account="same@box"), None),
    ],
    ids=[
        "one vote is missing",
        "the same person twice",
        "a vote for something else",
        "the account of others",
    ],
)
def test_votes_that_make_no_quorum(
    monkeypatch: pytest.MonkeyPatch, change: Forge, finding: tuple[str, int, int] | None
) -> None:
    made = gated(MemoryCheckpointer(), quorum=2, one_account=True)
    forge(monkeypatch, change)
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann", "bob")
    assert findings(made) == ([(3, *finding)] if finding else [])


def test_one_account_that_votes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gated(MemoryCheckpointer(), quorum=2)
    made.invoke({"log": "go"}, thread_id="t")
    accounts = iter(["ann@box", "bob@box"] * 4)
    monkeypatch.setattr("hitl_tui.engine.commands.answering.account", lambda: next(accounts))
    forge(monkeypatch, lambda entry: replace(entry, account="eve@box"))
    waits = made.open("t").cursor.pending[0]
    made.answer("t", waits.id, "approve", step=waits.step, actor="ann")
    monkeypatch.setattr("hitl_tui.engine.commands.answering.account", lambda: "other@box")
    answer(made, "bob")
    assert findings(made) == [(3, "accounts", 2, 1)]


def test_a_timeout_that_the_gate_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gated(MemoryCheckpointer())
    forge(monkeypatch, other("answer", kind="timeout"))
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann")
    passed, early = findings(made)
    assert passed == (3, "on_timeout", None, "approve")
    assert early[1:3] == ("deadline", None)


@pytest.mark.parametrize("terms", [{"on_timeout": "approve"}, {}], ids=["goes on", "fails"])
def test_a_deadline_that_had_not_passed(monkeypatch: pytest.MonkeyPatch, terms: dict[str, Any]) -> None:
    store = MemoryCheckpointer()
    made = gated(store, deadline=3600, **terms)
    made.invoke({"log": "go"}, thread_id="t")
    waits = made.open("t").cursor.pending[0]
    assert waits.deadline is not None
    if terms:
        forge(monkeypatch, other("answer", kind="timeout", actor=None))
        answer(made, "ann")
    else:
        past, now = waits.deadline + 1, time.time_ns() // 1000
        forge(monkeypatch, other("timeout", at=now))
        session = Session.open(made.graph, store, "t", clock=lambda: past)
        with session.writing():
            assert expire(session)
    found = findings(made)
    assert [(field, due) for _, field, due, _ in found if field == "deadline"] == [
        ("deadline", waits.deadline)
    ]


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"request_id": "0123456789ab"}, "answer"),
        ({"request_hash": b"\1" * 32}, "request_hash"),
        ({"pending_hash": b"\1" * 32}, "request"),
    ],
)
def test_an_answer_to_something_else(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], field: str
) -> None:
    made = gated(MemoryCheckpointer())
    forge(monkeypatch, other("answer", **facts))
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann")
    assert [(step, name) for step, name, *_ in findings(made)] == [(3, field)]


@pytest.mark.parametrize("policy", ["allow", "approve"], ids=["its own question", "policy on taint"])
def test_a_node_whose_question_nobody_answered(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    made = asking(MemoryCheckpointer(), policy)
    forge(monkeypatch, without("answer"))
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann")
    assert [(step, name) for step, name, *_ in findings(made)] == [(2, "answer")]


def test_a_policy_on_taint_that_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = asking(MemoryCheckpointer(), "approve")
    forge(monkeypatch, other("answer", data={"answer": "reject"}))
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann")
    assert findings(made) == [(2, "choice", "approve", "reject")]


def test_a_thread_past_a_gate_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gated(MemoryCheckpointer(), "after send")
    forge(monkeypatch, without("answer"))
    made.invoke({"log": "go"}, thread_id="t")
    answer(made, "ann")
    assert made.open("t").cursor.status == "completed"
    assert [(step, name) for step, name, *_ in findings(made)] == [(3, "decision"), (3, "answer")]


# -- answers to something else ------------------------------------------------------------------------


def of_amount(store: Checkpointer, place: Place = "before send", **terms: Any) -> GraphRunner:
    """START -> draft -> send -> END, with a gate about the amount."""
    graph = (
        StateGraph({"amount": Channel(0), "log": Channel([], reducer=append())}, name="letter")
        .add_node("draft", lambda _state: {"log": "draft"})
        .add_node("send", lambda state: {"log": f"sent {state['amount']}"})
        .add_edge(START, "draft")
        .add_edge("draft", "send")
        .add_edge("send", END)
    )
    when, _, node = place.partition(" ")
    choices = [GateChoice("approve", "yes"), GateChoice("revise", "no")]
    gate = Gate(node, "send it?", choices, subject="amount", **terms)
    return graph.compile(
        checkpointer=store,
        **{f"interrupt_{when}": [gate]},  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("place", ["after draft", "before send"])
def test_a_step_on_an_answer_about_another_value(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    made = of_amount(MemoryCheckpointer(), place)
    made.invoke({"amount": 10}, thread_id="t")
    waits = made.open("t").cursor.pending[0]
    made.answer("t", waits.id, "approve", step=waits.step, actor="ann")
    made.update_state("t", {"amount": 10000}, actor="eve")
    monkeypatch.setattr("hitl_tui.engine.run.loop.unanswered_request", lambda *_: None)
    assert made.invoke(thread_id="t")["log"][-1] == "sent 10000"
    assert [(name, actual) for _, name, _, actual in findings(made)] == [
        ("amount", "changed since the answer")
    ]


@pytest.mark.parametrize("place", ["after draft", "before send"])
@pytest.mark.parametrize("given", [{}, {"amount": 10}])
def test_an_edit_after_an_answer_is_no_fault_while_nothing_has_run(
    place: Place, given: dict[str, int]
) -> None:
    made = of_amount(MemoryCheckpointer(), place)
    made.invoke(given, thread_id="t")
    waits = made.open("t").cursor.pending[0]
    made.answer("t", waits.id, "approve", step=waits.step, actor="ann")
    made.update_state("t", {"amount": 10000}, actor="eve")
    assert findings(made) == []


@pytest.mark.parametrize("place", ["after draft", "before send"])
@pytest.mark.parametrize("given", [{}, {"amount": 10}])
def test_an_edit_that_was_undone_leaves_the_answer_valid(place: Place, given: dict[str, int]) -> None:
    made = of_amount(MemoryCheckpointer(), place)
    made.invoke(given, thread_id="t")
    waits = made.open("t").cursor.pending[0]
    made.answer("t", waits.id, "approve", step=waits.step, actor="ann")
    before = made.get_state("t")["amount"]
    for amount in (10000, before):
        made.update_state("t", {"amount": amount}, actor="eve")
    assert made.invoke(thread_id="t")["log"][-1] == f"sent {before}"
    assert findings(made) == []


def test_an_answer_to_the_request_before_does_not_count_for_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = of_amount(MemoryCheckpointer())
    made.invoke({"amount": 10}, thread_id="t")
    waits = made.open("t").cursor.pending[0]
    made.answer("t", waits.id, "approve", step=waits.step, actor="ann")
    made.update_state("t", {"amount": 10000}, actor="eve")
    made.invoke(thread_id="t")
    forge(monkeypatch, without("answer"))
    answer(made, "ann")
    assert "answer" in [field for _, field, *_ in findings(made)]


def asks_in_branches(store: Checkpointer) -> GraphRunner:
    """A map of two branches that each ask whether to pay."""

    def pay(_state: Any, config: Any) -> dict[str, Any]:
        question = {"kind": "approve", "title": f"pay {config.item}?", "payload": config.item}
        return {"log": f"{config.item} {config.interrupt(question)}"}

    return (
        StateGraph(
            {"amounts": Channel([10, 10000], reducer="overwrite"), "log": Channel([], reducer=append())}
        )
        .add_map("pay", over="amounts", node=pay)
        .add_edge(START, "pay")
        .add_edge("pay", END)
        .compile(checkpointer=store)
    )


@pytest.mark.parametrize("both", [False, True], ids=["one answer is moved", "two are exchanged"])
@pytest.mark.parametrize("hides", [False, True], ids=["as it was", "with the hash of what waited"])
def test_answers_that_were_given_to_other_requests(
    monkeypatch: pytest.MonkeyPatch, both: bool, hides: bool
) -> None:
    made = asks_in_branches(MemoryCheckpointer())
    made.invoke(thread_id="t")
    first, second = made.open("t").cursor.pending
    other_of = {first.id: second, **({second.id: first} if both else {})}

    def swapped(entry: LedgerEntry) -> LedgerEntry:
        request = other_of.get(entry.request_id or "") if entry.kind == "answer" else None
        if request is None:
            return entry
        hashes = {"pending_hash": pending_hash(request)} if hides else {}
        return replace(entry, request_id=request.id, **hashes)

    monkeypatch.setattr("hitl_tui.engine.thread.logged.check_requests", lambda *_: None)
    forge(monkeypatch, swapped)
    for waits, choice in ((first, "approve"), (second, "reject")):
        made.answer("t", waits.id, choice, step=waits.step, actor="ann")
    made.invoke(thread_id="t")
    found = [field for _, field, *_ in findings(made)]
    assert found == (["request_hash", "request_hash"] if both else found)
    assert found
    assert set(found) <= {"request_hash", "answer"}


# -- what is no finding ---------------------------------------------------------------------------


def _hash_of(entry: LedgerEntry) -> bytes:
    return bytes.fromhex(logged_hash(entry.note, entry.data).partition(":")[2])


@pytest.mark.parametrize("place", ["after draft", "before send", "inside send"])
@pytest.mark.parametrize("changed", ["payload", "title", "hash", "payload and hash", "what the hash covers"])
def test_a_request_that_asks_something_else_than_its_hash_says(
    monkeypatch: pytest.MonkeyPatch, place: Place, changed: str
) -> None:
    hashes = {"was": b"", "is": b""}

    def forged(entry: LedgerEntry) -> LedgerEntry:
        if entry.kind == "request":
            hashes["was"] = entry.request_hash
            if "payload" in changed:
                entry = replace(entry, data={**entry.data, "payload": {"amount": 9999}})
            elif changed == "title":
                entry = replace(entry, note="something else?")
            elif changed == "what the hash covers":
                entry = replace(
                    entry, data={name: part for name, part in entry.data.items() if name != HASHED}
                )
            if changed == "payload and hash":
                entry = replace(entry, request_hash=_hash_of(entry))
            elif changed == "hash":
                entry = replace(entry, request_hash=b"1" * 32)
            hashes["is"] = entry.request_hash
        elif entry.kind == "answer" and changed == "hash":  # the answer names the forged hash, too
            entry = replace(entry, request_hash=hashes["is"])
        return entry

    store = MemoryCheckpointer()
    made = (
        asking(store)
        if place == "inside send"
        else gated(store, place, payload=lambda _state: {"amount": 10})
    )
    monkeypatch.setattr("hitl_tui.engine.thread.logged.check_requests", lambda *_: None)
    forge(monkeypatch, forged)
    made.invoke({}, thread_id="t")
    answer(made, "ann")
    found = findings(made)
    assert {field for _, field, _, _ in found} == {"request_hash"}
    if changed == "payload and hash":
        shown = show_hash(hashes["is"]), show_hash(hashes["was"])
        assert [(expected, actual) for _, _, expected, actual in found] == [shown]


@pytest.mark.parametrize("place", ["after draft", "before send"])
def test_the_allowed_paths_past_a_gate(place: Place) -> None:
    store = MemoryCheckpointer()
    made = gated(store, place)
    for thread in ("answered", "edited", "again", "kept", "undone"):
        made.invoke({"log": "go"}, thread_id=thread)
    answer(made, "ann", thread="answered")
    made.update_state("edited", {"ok": True}, as_node="send", actor="ann")
    made.invoke(thread_id="edited")
    made.invoke(thread_id="again", resume="entry")
    answer(made, "ann", thread="again")
    made.update_state("kept", {"log": ["x"]}, actor="ann")
    answer(made, "bob", choice="revise", thread="kept")
    made.rollback("undone", actor="ann", note="wrong")
    made.invoke({"log": "anew"}, thread_id="undone")
    answer(made, "ann", thread="undone")
    for step in range(4):
        made.fork("answered", step, f"fork{step}", actor="eve")
        made.fork("answered", step, f"changed{step}", changes={"ok": True}, actor="eve")
        for thread in (f"fork{step}", f"changed{step}"):
            made.invoke(thread_id=thread)
            if made.open(thread).cursor.pending:
                assert findings(made, thread) == []
                answer(made, "ann", thread=thread)
    for row in store.threads("", 99):
        thread = row.info.thread_id
        assert (thread, row.status, findings(made, thread)) == (thread, "completed", [])


def test_a_node_that_runs_again_after_each_answer_to_its_later_question() -> None:
    gate = Gate("draft", "good?", CHOICES)
    made = (
        StateGraph({"ok": Channel(False), "log": Channel([], reducer=append())})
        .add_node("draft", lambda _state: {"log": "draft"})
        .add_edge(START, "draft")
        .add_conditional_edge("draft", lambda state: state["ok"], {"true": END, "false": "draft"})
        .compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
    )
    made.invoke({"log": "go"}, thread_id="t")
    for choice in ("revise", "revise", "approve"):
        assert findings(made) == []
        answer(made, "ann", choice=choice)
    assert made.get_state("t")["log"] == ["go", "draft", "draft", "draft"]
    assert findings(made) == []


def test_a_deadline_that_has_an_answer_and_one_that_is_asked_again() -> None:
    for more in ({"on_timeout": "approve"}, {}):
        store = MemoryCheckpointer()
        late = gated(store, deadline=1e-6, **more)
        late.invoke({"log": "go"}, thread_id="t")
        late.invoke(thread_id="t")
        made = late
        if not more:
            assert late.open("t").cursor.reason == "deadline"
            made = gated(store)
            made.invoke(thread_id="t")
            answer(made, "ann")
        assert made.open("t").cursor.status == "completed"
        assert findings(made) == []


def test_a_gate_that_the_graph_lost_or_got_while_it_waited() -> None:
    store = MemoryCheckpointer()
    made = gated(store)
    made.invoke({"log": "go"}, thread_id="t")
    moved = gated(store, "before send", quorum=2, one_account=True)
    waits = made.open("t").cursor.pending[0]
    with pytest.raises(AnswerRefused, match="withdrawn"):
        moved.answer("t", waits.id, "approve", step=waits.step, actor="ann")
    moved.invoke(thread_id="t")
    answer(moved, "ann", "bob")
    assert moved.open("t").cursor.status == "completed"
    assert findings(moved) == []
    assert [entry.kind for entry in store.ledger("t")].count("graph") == 1


def test_nothing_is_found_in_threads_of_every_kind() -> None:
    store = MemoryCheckpointer()
    fill(store)
    made = rich_runner(store)
    for row in store.threads("", 99):
        assert (row.info.thread_id, findings(made, row.info.thread_id)) == (row.info.thread_id, [])
