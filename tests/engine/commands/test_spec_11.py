"""What docs/spec/threads.md says of requests and answers; each test's id is the sentence that it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import AnswerRefused, Gate, GateChoice, GraphRunner, NodeFailed
from hitl_tui.engine.commands import Answer, Start
from hitl_tui.engine.thread.interrupts import is_deadlocked
from hitl_tui.stores import Checkpointer
from tests.support.flows import Desk, check_log, ledger_of, line, pending_id, say
from tests.support.spec import spec

pytestmark = spec("11")

Sentence = Callable[[Checkpointer], None]
SENTENCES: dict[str, Sentence] = {}


def sentence(words: str) -> Callable[[Sentence], Sentence]:
    """Register what shows a sentence."""

    def register(shows: Sentence) -> Sentence:
        assert words not in SENTENCES
        SENTENCES[words] = shows
        return shows

    return register


def ask(*questions: Any) -> Any:
    return lambda state, config: {"log": [config.interrupt(question) for question in questions]}


def asked(store: Checkpointer, question: Any) -> GraphRunner:
    runner = line(store, ask(question), say("after"))
    assert runner.invoke({}, thread_id="t").status == "waiting"
    return runner


def gate(node: str = "a", **more: Any) -> Gate:
    choices = [GateChoice("yes", "yes", values={"draft": "yes"}), GateChoice("no", "no")]
    return Gate(node, title="well?", choices=choices, **more)


def refused(runner: GraphRunner, match: str, value: Any = "yes", **options: Any) -> None:
    """The answer is refused, recorded with its words, and nothing else changes."""
    assert runner.store is not None
    before = runner.open("t").cursor
    request = options.pop("request", None) or before.pending[0].id
    with pytest.raises(AnswerRefused, match=match):
        runner.answer("t", request, value, **{"step": before.head, **options})
    last = runner.store.ledger("t")[-1]
    assert (last.kind, last.request_id, last.data["answer"]) == ("refused", request, value)
    now = runner.open("t").cursor
    assert (now.head, now.pending, now.status) == (before.head, before.pending, before.status)


@sentence("interrupt_before takes names")
def _(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_before=["b"])
    result = runner.invoke({}, thread_id="t")
    assert (result.pending[0].node, result.pending[0].when, list(result["log"])) == ("b", "before", ["one"])
    assert list(runner.invoke(thread_id="t")["log"]) == ["one", "two"]


@sentence("interrupt_after takes a star")
def _(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after="*")
    stops = [runner.invoke({}, thread_id="t"), runner.invoke(thread_id="t"), runner.invoke(thread_id="t")]
    assert [(one.status, [r.node for r in one.pending]) for one in stops] == [
        ("waiting", ["a"]), ("waiting", ["b"]), ("completed", []),
    ]  # fmt: skip


@sentence("inside a node config.interrupt asks and returns the answer")
def _(store: Checkpointer) -> None:
    runner = asked(store, "name?")
    runner.answer("t", pending_id(runner, "t"), "bo", step=0)
    assert list(runner.invoke(thread_id="t")["log"]) == [["bo"], "after"]


@sentence(
    "a request has an id, kind, payload, schema, allowed answers, reviewers, quorum, deadline, on_timeout"
)
def _(store: Checkpointer) -> None:
    question = {
        "kind": "choose", "title": "which?", "payload": {"a": 1}, "choices": ["x", "y"], "quorum": 2,
        "reviewers": ["ann", "bob"], "deadline": 60, "on_timeout": "x",
    }  # fmt: skip
    request = asked(store, question).open("t").cursor.pending[0]
    assert request.id
    assert (request.kind, request.payload, [one.id for one in request.choices]) == (
        "choose", {"a": 1}, ["x", "y"],
    )  # fmt: skip
    assert (request.reviewers, request.quorum, request.on_timeout) == (("ann", "bob"), 2, "x")
    assert request.deadline == request.asked_at + 60_000_000
    entry = ledger_of(store, "t", "request")[0]
    assert (entry.request_id, entry.note, entry.data["payload"]) == (request.id, "which?", {"a": 1})


@sentence("approve without choices takes approve or reject, with words")
def _(store: Checkpointer) -> None:
    runner = asked(store, {"kind": "approve", "payload": "drop the table?"})
    refused(runner, "not an allowed answer", "maybe")
    runner.answer("t", pending_id(runner, "t"), {"choice": "reject", "text": "no backup"}, step=0)
    assert runner.invoke(thread_id="t")["log"][0] == [{"choice": "reject", "text": "no backup"}]


@sentence("edit takes a value of the payload's type")
def _(store: Checkpointer) -> None:
    for payload, wrong, right in (
        ("text", 3, "other"), ({"a": 1}, "x", {"b": 2}), ([1], {}, [2]), (1, "1", 2.5), (True, 1, False),
    ):  # fmt: skip
        runner = line(store, ask({"kind": "edit", "payload": payload}))
        thread = repr(payload)
        (request,) = runner.invoke({}, thread_id=thread).pending
        with pytest.raises(AnswerRefused):
            runner.answer(thread, request.id, wrong, step=0)
        runner.answer(thread, request.id, right, step=0)
        assert list(runner.invoke(thread_id=thread)["log"]) == [[right]]


@sentence("choose must say its choices")
def _(store: Checkpointer) -> None:
    with pytest.raises(NodeFailed, match="no choices"):
        line(store, ask({"kind": "choose", "title": "which?"})).invoke({}, thread_id="t")


@sentence("ask takes anything, or what its schema says")
def _(store: Checkpointer) -> None:
    runner = asked(store, {"kind": "ask", "schema": {"type": "integer", "minimum": 3}})
    refused(runner, "minimum", 2)
    runner.answer("t", pending_id(runner, "t"), 3, step=0)
    assert runner.invoke(thread_id="t")["log"][0] == [3]


@sentence("the first valid answer wins")
def _(store: Checkpointer) -> None:
    runner = line(store, say("one"), interrupt_after=[gate()])
    wanted = runner.invoke({}, thread_id="t").pending[0].id
    runner.answer("t", wanted, "yes", step=1, actor="ann")
    with pytest.raises(AnswerRefused, match="answered already"):
        runner.answer("t", wanted, "no", step=2, actor="bob")
    assert runner.get_state("t")["draft"] == "yes"


@sentence("an unauthorised answer is refused and recorded")
def _(store: Checkpointer) -> None:
    runner = line(store, say("one"), interrupt_after=[gate(reviewers=["rita"])])
    runner.invoke({}, thread_id="t")
    refused(runner, "ann may not answer", actor="ann")


@sentence("an unknown request's answer is refused and recorded")
def _(store: Checkpointer) -> None:
    runner = line(store, say("one"), interrupt_after=[gate()])
    runner.invoke({}, thread_id="t")
    refused(runner, "no request 'nonesuch'", request="nonesuch")


@sentence("a late answer is refused, and finds the thread gone on without it")
def _(store: Checkpointer) -> None:
    desk = Desk(
        line(store, say("one"), say("two"), interrupt_after=[gate(deadline=60, on_timeout="no")]), "t"
    )
    desk.do(Start({}))
    desk.run()
    wanted = desk.session.cursor.pending[0].id
    desk.clock.advance(61)
    with pytest.raises(AnswerRefused, match="expired"):
        desk.do(Answer(wanted, "yes", step=1, actor="ann"))
    assert [entry.kind for entry in store.ledger("t")] == ["request", "timeout", "refused"]
    assert (desk.session.cursor.pending, desk.session.state.values["draft"]) == ((), "")
    assert desk.run().cursor.status == "completed"


@sentence("an answer to a withdrawn request is refused and says so")
def _(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after=[gate()])
    wanted = runner.invoke({}, thread_id="t").pending[0].id
    runner.update_state("t", {}, as_node="b")
    with pytest.raises(AnswerRefused, match="withdrawn"):
        runner.answer("t", wanted, "yes", step=2)


@sentence("an unrelated edit keeps the request valid; a related one asks it again under a new id")
def _(store: Checkpointer) -> None:
    runner = line(store, say("one"), interrupt_after=[gate(subject="draft")])
    wanted = runner.invoke({}, thread_id="t").pending[0].id
    runner.update_state("t", {"n": 7})
    (request,) = runner.open("t").cursor.pending
    assert (request.id, request.step) == (wanted, 1)
    runner.update_state("t", {"draft": "edited"})
    (again,) = runner.open("t").cursor.pending
    assert (again.id != wanted, again.step) == (True, 3)
    refused(runner, "about step 1, but 'well\\?' is about step 3", step=1)


@sentence("resuming without an answer neither re-runs the gate nor moves its deadline")
def _(store: Checkpointer) -> None:
    made: list[int] = []

    def payload(state: Any) -> int:
        made.append(1)
        return len(made)

    runner = line(store, say("one"), interrupt_after=[gate(deadline=3600, payload=payload)])
    first = runner.invoke({}, thread_id="t").pending
    assert runner.invoke(thread_id="t").pending == first
    assert (len(made), list(runner.get_state("t")["log"])) == (1, ["one"])


@sentence("one interrupt stops a node at most once per answer, and earlier answers are served by order")
def _(store: Checkpointer) -> None:
    runner = line(store, ask("one?", "two?"))
    runner.invoke({}, thread_id="t")
    for answer in ("first", "second"):
        runner.answer("t", pending_id(runner, "t"), answer, step=0)
        result = runner.invoke(thread_id="t")
    assert list(result["log"]) == [["first", "second"]]
    assert len(ledger_of(store, "t", "request")) == 2


@sentence("reviewers who disagree for good may change their votes")
def _(store: Checkpointer) -> None:
    runner = line(
        store, say("one"), interrupt_after=[gate(reviewers=["ann", "bob"], quorum=2, one_account=True)]
    )
    wanted = runner.invoke({}, thread_id="t").pending[0].id
    runner.answer("t", wanted, "yes", step=1, actor="ann")
    refused(runner, "ann has answered", "no", actor="ann")
    runner.answer("t", wanted, "no", step=1, actor="bob")
    (request,) = runner.open("t").cursor.pending
    assert is_deadlocked(request)
    assert [entry.data.get("deadlocked") for entry in ledger_of(store, "t", "vote")] == [None, True]
    assert runner.invoke(thread_id="t").status == "waiting"
    assert runner.answer("t", wanted, "yes", step=1, actor="bob") == 2
    assert runner.get_state("t")["draft"] == "yes"
    check_log(runner, "t")


@sentence("a quorum that somebody can still reach is not given up")
def _(store: Checkpointer) -> None:
    runner = line(
        store, say("one"), interrupt_after=[gate(reviewers=["ann", "bob", "cy"], quorum=2, one_account=True)]
    )
    wanted = runner.invoke({}, thread_id="t").pending[0].id
    runner.answer("t", wanted, "yes", step=1, actor="ann")
    runner.answer("t", wanted, "no", step=1, actor="bob")
    assert not is_deadlocked(runner.open("t").cursor.pending[0])
    refused(runner, "bob has answered", "yes", actor="bob")
    assert runner.answer("t", wanted, "no", step=1, actor="cy") == 2


@sentence("an answer for the deadline that can't be applied fails the thread and says why")
def _(store: Checkpointer) -> None:
    bad = Gate(
        "a", title="well?", deadline=60, on_timeout="go",
        choices=[GateChoice("go", "go", values={"verdict": "nonsense"})],
    )  # fmt: skip
    desk = Desk(line(store, say("one"), interrupt_after=[bad]), "t")
    desk.do(Start({}))
    desk.run()
    desk.clock.advance(61)
    cursor = desk.run().cursor
    assert (cursor.status, cursor.reason, cursor.pending) == ("failed", "deadline", ())
    assert "verdict" in (ledger_of(store, "t", "timeout")[0].note or "")


@pytest.mark.parametrize("shows", SENTENCES.values(), ids=SENTENCES.keys())
def test_spec_11(store: Checkpointer, shows: Sentence) -> None:
    shows(store)
