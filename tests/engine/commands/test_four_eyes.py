"""Where a gate wants four eyes, nobody answers what they gave or edited themselves."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import AnswerRefused, GraphInvalid, GraphRunner
from hitl_tui.engine.commands import Fork, Start, UpdateState
from hitl_tui.errors import GateUnanswered
from hitl_tui.stores import Checkpointer, MemoryCheckpointer
from hitl_tui.view.terms import not_yours
from tests.engine.audit.test_gates_answered import answer, findings, gated
from tests.support.flows import Desk, check_log
from tests.support.spec import spec

pytestmark = spec("11")


def started(store: Checkpointer, by: str = "ann", **terms: Any) -> GraphRunner:
    made = gated(store, four_eyes=True, **terms)
    Desk(made, "t").do(Start({"log": "go"}, actor=by))
    made.invoke(thread_id="t")
    return made


def other_account(monkeypatch: pytest.MonkeyPatch, name: str = "other@box") -> None:
    for module in ("thread.journal", "commands.answering"):
        monkeypatch.setattr(f"hitl_tui.engine.{module}.account", lambda: name)


def refused(made: GraphRunner, actor: str | None, match: str) -> None:
    waits = made.open("t").cursor.pending[0]
    with pytest.raises(AnswerRefused, match=match):
        made.answer("t", waits.id, "approve", step=waits.step, actor=actor)
    assert made.store is not None
    assert made.store.ledger("t")[-1].kind == "refused"


def test_who_gave_the_input_may_not_answer(store: Checkpointer, monkeypatch: pytest.MonkeyPatch) -> None:
    made = started(store)
    other_account(monkeypatch)
    (waits,) = made.open("t").cursor.pending
    assert (waits.four_eyes, waits.authors) == (True, ("ann",))
    assert "somebody else must answer" in not_yours(waits, "ann")
    assert not_yours(waits, "bob") == ""
    refused(made, "ann", "ann has given or edited what 'send it\\?' asks about")
    refused(made, None, "needs an answer by name")
    answer(made, "bob")
    assert made.open("t").cursor.status == "completed"
    check_log(made, "t")
    assert findings(made) == []


def test_another_name_of_the_same_account_does_not_help(store: Checkpointer) -> None:
    refused(started(store), "bob", "the account .* has given or edited")
    if isinstance(store, MemoryCheckpointer):
        shared = started(MemoryCheckpointer(), one_account=True)
        answer(shared, "bob")
        assert shared.open("t").cursor.status == "completed"


def test_who_edits_may_not_answer_any_more(store: Checkpointer, monkeypatch: pytest.MonkeyPatch) -> None:
    made = started(store, subject="ok")
    other_account(monkeypatch)
    Desk(made, "t").do(UpdateState({"ok": True}, actor="bob"))
    assert made.open("t").cursor.pending[0].authors == ("ann", "bob")
    refused(made, "bob", "bob has given or edited")
    Desk(made, "t").do(UpdateState({"log": ["other"]}, actor="cy"))  # the request stays as it is
    refused(made, "cy", "cy has given or edited")
    other_account(monkeypatch, "third@box")
    answer(made, "dan")
    assert findings(made) == []


def test_a_fork_keeps_the_authors_of_its_parent(store: Checkpointer, monkeypatch: pytest.MonkeyPatch) -> None:
    made = started(store)
    other_account(monkeypatch)
    Desk(made, "t").do(Fork(1, "f", actor="bob", changes={"ok": True}))
    made.invoke(thread_id="f")
    (waits,) = made.open("f").cursor.pending
    for author in ("ann", "bob"):
        with pytest.raises(AnswerRefused, match=f"{author} has given"):
            made.answer("f", waits.id, "approve", step=waits.step, actor=author)
    other_account(monkeypatch, "third@box")
    answer(made, "cy", thread="f")
    assert findings(made, "f") == []


def test_an_edit_after_the_answer_does_not_undo_it(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = started(store)
    other_account(monkeypatch)
    (waits,) = made.open("t").cursor.pending
    made.answer("t", waits.id, "approve", step=waits.step, actor="bob")
    Desk(made, "t").do(UpdateState({"log": ["later"]}, actor="bob"))
    made.invoke(thread_id="t")
    assert made.open("t").cursor.status == "completed"
    assert findings(made) == []


def test_a_node_asks_for_four_eyes(store: Checkpointer, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.flows import line, say

    def asks(_state: Any, config: Any) -> dict[str, Any]:
        return {"log": [config.interrupt({"kind": "approve", "title": "pay?", "four_eyes": True})]}

    made = line(store, asks, say("after"))
    Desk(made, "t").do(Start({"draft": "x"}, actor="ann"))
    made.invoke(thread_id="t")
    other_account(monkeypatch)
    assert made.open("t").cursor.pending[0].authors == ("ann",)
    refused(made, "ann", "ann has given or edited")
    answer(made, "bob")
    assert made.verify("t", strict=True).mismatches == ()


def test_the_gate_cannot_be_passed_without_an_answer(store: Checkpointer) -> None:
    made = started(store)
    with pytest.raises(GateUnanswered) as refusal:
        Desk(made, "t").do(UpdateState({}, actor="ann", as_node="send"))
    assert "anyone but its authors may answer it" in refusal.value.hint


def test_verify_finds_an_answer_by_an_author(monkeypatch: pytest.MonkeyPatch) -> None:
    made = started(MemoryCheckpointer())
    other_account(monkeypatch)
    monkeypatch.setattr("hitl_tui.engine.thread.interrupts.check_author", lambda *_: None)
    answer(made, "ann")
    assert findings(made) == [(3, "author", "somebody else", "ann")]


def test_verify_finds_an_answer_from_the_account_of_an_author(monkeypatch: pytest.MonkeyPatch) -> None:
    made = started(MemoryCheckpointer())
    monkeypatch.setattr("hitl_tui.engine.thread.interrupts.check_author", lambda *_: None)
    answer(made, "bob")
    assert findings(made) == [(3, "author", "somebody else", "bob")]


@pytest.mark.parametrize("given", ["yes", 1, None, ["ann"]])
def test_a_gate_takes_only_a_flag(given: Any) -> None:
    with pytest.raises(GraphInvalid, match="four_eyes"):
        gated(MemoryCheckpointer(), four_eyes=given)
