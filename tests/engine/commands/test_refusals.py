"""Answers that come too late, to the wrong thing or from the wrong person.

Each is refused, recorded and shown, and changes nothing else.
"""

from __future__ import annotations

import os
import pwd
import socket
from typing import Any

import msgspec
import pytest

from hitl_tui import AnswerRefused, Gate, GateChoice, GraphRunner
from hitl_tui.engine.commands import Answer
from hitl_tui.engine.log.events import LedgerWritten
from hitl_tui.engine.state.canonical import state_hash
from hitl_tui.engine.thread.hashes import ledger_hash
from hitl_tui.stores import Checkpointer
from tests.support.flows import Desk, check_log, ledger_of, pending_id, review_loop
from tests.support.spec import spec

pytestmark = spec("11")


def gate(**more: Any) -> Gate:
    choices = [GateChoice("accept", "accept"), GateChoice("approve", "ok", values={"verdict": "approved"})]
    return Gate("check", title="verdict", choices=choices, **more)


def at_gate(store: Checkpointer, **more: Any) -> GraphRunner:
    runner = review_loop(store, interrupt_after=[gate(**more)])
    runner.invoke({}, thread_id="t")
    return runner


def refuse(runner: GraphRunner, request: str, value: Any, match: str, **options: Any) -> None:
    """Answer, see it refused, and see that the ledger's new entry is all that changed."""
    store = runner.store
    assert store is not None
    options = {"step": runner.open("t").cursor.head, "actor": "ann", "note": "why not", **options}
    before, ledger = store.cursor("t"), list(store.ledger("t"))
    assert before is not None
    with pytest.raises(AnswerRefused, match=match):
        runner.answer("t", request, value, **options)
    entry = store.ledger("t")[-1]
    assert store.ledger("t")[:-1] == ledger
    assert (entry.kind, entry.request_id, entry.actor, entry.note) == (
        "refused", request, options["actor"], "why not",
    )  # fmt: skip
    assert (entry.data["answer"], entry.data["answered_step"]) == (value, options["step"])
    assert entry.data["why"]
    now = store.cursor("t")
    assert now is not None
    changed = {
        "version": now.version,
        "ledger_n": entry.n,
        "ledger_hash": entry.hash,
        "updated_at": now.updated_at,
    }
    assert msgspec.structs.replace(before, **changed) == now
    check_log(runner, "t")


def test_an_unknown_request(store: Checkpointer) -> None:
    refuse(at_gate(store), "nonesuch", "approve", "no request 'nonesuch' waits")


def test_a_second_answer_to_the_same_request(store: Checkpointer) -> None:
    runner = at_gate(store)
    wanted = pending_id(runner, "t")
    runner.answer("t", wanted, "accept", step=2, actor="bob")
    refuse(runner, wanted, "approve", "answered already")
    assert runner.get_state("t")["verdict"] == "revise"
    assert runner.invoke(thread_id="t")["n"] == 2
    refuse(runner, wanted, "approve", "answered already")


def test_an_answer_about_an_older_step_after_an_edit(store: Checkpointer) -> None:
    runner = at_gate(store, subject="draft")
    wanted = pending_id(runner, "t")
    runner.update_state("t", {"draft": "another"}, actor="bob")
    refuse(runner, wanted, "approve", "asked again", step=2)
    again = pending_id(runner, "t")
    assert again != wanted
    refuse(runner, again, "approve", "about step 2, but 'verdict' is about step 3", step=2)
    assert runner.answer("t", again, "approve", step=3, actor="ann") == 4


def test_an_answer_about_a_future_step_is_refused(store: Checkpointer) -> None:
    runner = at_gate(store)
    refuse(runner, pending_id(runner, "t"), "approve", "about step 9", step=9)


def test_an_answer_about_another_state_is_refused(store: Checkpointer) -> None:
    runner = at_gate(store)
    desk = Desk(runner, "t")
    seen = state_hash(desk.session.state.digests)
    wanted = pending_id(runner, "t")
    with pytest.raises(AnswerRefused, match="another state"):
        desk.do(Answer(wanted, "approve", step=2, seen=b"x" * 32))
    assert store.ledger("t")[-1].seen == b"x" * 32
    desk.do(Answer(wanted, "approve", step=2, seen=seen, actor="ann"))
    assert store.ledger("t")[-1].seen == seen


def test_only_reviewers_may_answer(store: Checkpointer) -> None:
    runner = at_gate(store, reviewers=["rita", "ron"])
    wanted = pending_id(runner, "t")
    refuse(runner, wanted, "approve", "ann may not answer")
    refuse(runner, wanted, "approve", "unnamed person may not", actor=None)
    assert runner.answer("t", wanted, "approve", step=2, actor="rita") == 3


def test_a_quorum_needs_different_people_who_agree(store: Checkpointer) -> None:
    runner = at_gate(store, quorum=2, one_account=True, reviewers=["ann", "bob", "cy"])
    wanted = pending_id(runner, "t")
    assert runner.answer("t", wanted, {"choice": "approve", "text": "fine"}, step=2, actor="ann") == 2
    refuse(runner, wanted, "approve", "ann has answered")
    assert runner.answer("t", wanted, "accept", step=2, actor="bob") == 2
    assert runner.invoke(thread_id="t").status == "waiting"
    votes = runner.open("t").cursor.pending[0].votes
    assert [(vote.actor, vote.answer) for vote in votes] == [
        ("ann", {"choice": "approve", "text": "fine"}),
        ("bob", "accept"),
    ]
    assert runner.answer("t", wanted, "approve", step=2, actor="cy") == 3
    assert runner.get_state("t")["verdict"] == "approved"
    assert [entry.actor for entry in ledger_of(store, "t", "vote")] == ["ann", "bob"]
    assert [entry.actor for entry in ledger_of(store, "t", "answer")] == ["cy"]
    check_log(runner, "t")


def test_a_quorum_needs_names(store: Checkpointer) -> None:
    runner = at_gate(store, quorum=2, one_account=True)
    refuse(runner, pending_id(runner, "t"), "approve", "needs 2 reviewers by name", actor=None)


def test_a_changed_vote_counts_once_and_as_it_is_now(store: Checkpointer) -> None:
    runner = at_gate(store, quorum=3, one_account=True, reviewers=["ann", "bob", "cy"])
    wanted = pending_id(runner, "t")
    for actor, answer in [
        ("ann", "approve"),
        ("bob", "accept"),  # they can't be of one mind any more, so votes may change
        ("ann", "accept"),
        ("cy", "approve"),
        ("ann", "approve"),
    ]:
        assert runner.answer("t", wanted, answer, step=2, actor=actor) == 2
    votes = {vote.actor: vote.answer for vote in runner.open("t").cursor.pending[0].votes}
    assert votes == {"ann": "approve", "bob": "accept", "cy": "approve"}
    assert runner.answer("t", wanted, "approve", step=2, actor="bob") == 3


def test_votes_on_what_was_there_before_an_edit_do_not_count_for_the_new_state(store: Checkpointer) -> None:
    runner = at_gate(store, quorum=2, one_account=True, subject="draft")
    runner.answer("t", pending_id(runner, "t"), "approve", step=2, actor="ann")
    runner.update_state("t", {"draft": "another"}, actor="cy")
    wanted = pending_id(runner, "t")
    assert runner.answer("t", wanted, "approve", step=3, actor="bob") == 3
    assert runner.get_state("t")["verdict"] == "revise"
    assert runner.answer("t", wanted, "approve", step=3, actor="ann") == 4
    assert runner.get_state("t")["verdict"] == "approved"


def test_a_refusal_is_emitted_to_watchers(store: Checkpointer) -> None:
    desk = Desk(at_gate(store), "t")
    with pytest.raises(AnswerRefused):
        desk.do(Answer("nonesuch", "approve", step=2))
    assert [event.entry.kind for event in desk.events_of(LedgerWritten)] == ["refused"]


def test_an_answer_to_a_finished_and_to_a_cancelled_thread(store: Checkpointer) -> None:
    runner = at_gate(store)
    wanted = pending_id(runner, "t")
    runner.answer("t", wanted, "approve", step=2, actor="bob")
    runner.invoke(thread_id="t")
    refuse(runner, wanted, "accept", "answered already")
    other = review_loop(store, interrupt_after=[gate()])
    other.invoke({}, thread_id="u")
    late = pending_id(other, "u")
    other.cancel("u")
    with pytest.raises(AnswerRefused, match="no request"):
        other.answer("u", late, "approve", step=2)
    assert other.get_state("u")["verdict"] == "revise"


def test_an_answer_to_a_withdrawn_request(store: Checkpointer) -> None:
    runner = at_gate(store)
    wanted = pending_id(runner, "t")
    runner.update_state("t", {}, as_node="write")
    refuse(runner, wanted, "approve", "withdrawn")


def test_one_account_gives_one_vote_whatever_names_it_claims(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = at_gate(store, quorum=2)
    wanted = pending_id(runner, "t")
    runner.answer("t", wanted, "approve", step=2, actor="ann")
    refuse(runner, wanted, "approve", r"the account .* has answered .* already, as ann", actor="bob")
    monkeypatch.setattr("hitl_tui.engine.commands.answering.account", lambda: "bob@elsewhere")
    assert runner.answer("t", wanted, "approve", step=2, actor="bob") == 3
    check_log(runner, "t")


def test_the_ledger_keeps_the_system_s_account_and_host_in_its_chain(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "mallory")
    monkeypatch.setenv("USER", "mallory")
    runner = at_gate(store)
    runner.answer("t", pending_id(runner, "t"), "approve", step=2, actor="ann")
    (entry,) = ledger_of(store, "t", "answer")
    assert entry.account == f"{pwd.getpwuid(os.geteuid()).pw_name}@{socket.gethostname()}"
    assert ledger_hash(entry) == entry.hash
    assert ledger_hash(msgspec.structs.replace(entry, account="root@other")) != entry.hash
