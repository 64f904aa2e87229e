"""What lists show of a request: the first words of its subject, its version, the answer before."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.engine.commands import UpdateState
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.listed import EXCERPT, first_words


def newsroom(**draft: Any) -> GraphRunner:
    """A draft with one more word in each round, until it is approved."""
    choices = [
        GateChoice("approve", "publish it", values={"ok": True}),
        GateChoice("revise", "send back", text="required", values={"ok": False}),
    ]
    return (
        StateGraph({"draft": Channel("", **draft), "ok": Channel(default=False)}, name="newsroom")
        .add_node("write", lambda state: {"draft": f"The harbour crane.{state['draft'][18:]} More."})
        .add_edge(START, "write")
        .add_conditional_edge("write", lambda state: state["ok"], {True: END, False: "write"})
        .compile(
            checkpointer=MemoryCheckpointer(),
            interrupt_after=[Gate("write", "Publish it?", choices, "approve", "draft")],
        )
    )


def pending(runner: GraphRunner) -> Request:
    (request,) = runner.open("t").cursor.pending
    return request


def send_back(runner: GraphRunner, actor: str = "ann") -> Request:
    request = pending(runner)
    words = {"choice": "revise", "text": "numbers first"}
    runner.answer("t", request.id, words, step=request.step, actor=actor)
    runner.invoke(thread_id="t")
    return pending(runner)


def test_a_request_has_the_first_words_of_its_subject_and_its_version() -> None:
    runner = newsroom()
    runner.invoke(thread_id="t")
    request = pending(runner)
    assert (request.excerpt, request.version) == ("The harbour crane. More.", 1)
    assert request.last_answer is None


def test_the_next_version_says_who_sent_the_last_one_back_and_why() -> None:
    runner = newsroom()
    runner.invoke(thread_id="t")
    send_back(runner)
    request = send_back(runner, "bob")
    assert (request.excerpt, request.version) == ("The harbour crane. More. More. More.", 3)
    assert request.last_answer is not None
    assert request.last_answer.actor == "bob"
    assert request.last_answer.answer == {"choice": "revise", "text": "numbers first"}


def test_an_edit_of_the_subject_is_a_new_version() -> None:
    runner = newsroom()
    runner.invoke(thread_id="t")
    runner._execute("t", UpdateState({"draft": "Mine."}, actor="ann"))
    request = pending(runner)
    assert (request.excerpt, request.version, request.last_answer) == ("Mine.", 2, None)


def test_a_fork_keeps_the_version_of_the_step_it_starts_from() -> None:
    runner = newsroom()
    runner.invoke(thread_id="t")
    second = send_back(runner)
    runner.fork("t", second.step, "fork")
    (request,) = runner.open("fork").cursor.pending
    assert (request.excerpt, request.version) == (second.excerpt, 2)
    assert request.last_answer is not None
    assert request.last_answer.actor == "ann"


def test_nothing_of_a_private_subject_is_kept() -> None:
    runner = newsroom(visibility="private")
    runner.invoke(thread_id="t")
    assert (pending(runner).excerpt, pending(runner).version) == ("", 1)


def test_a_log_with_versions_passes_its_checks() -> None:
    runner = newsroom()
    runner.invoke(thread_id="t")
    send_back(runner)
    assert runner.verify("t").ok


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("  \n# Tea\n\nThe workers", "# Tea\n\nThe workers"),
        ({"to": "Hansen", "lines": ["a", "b"], "none": None}, "to Hansen, lines 1 a, lines 2 b"),
        (["only"], "only"),
        (7, "7"),
        (None, ""),
        ("x" * 9999, "x" * EXCERPT),
        (list(range(100_000)), ", ".join(f"{n} {n - 1}" for n in range(1, 38))),
    ],
)  # fmt: skip
def test_first_words(value: Any, words: str) -> None:
    assert first_words(value) == words
