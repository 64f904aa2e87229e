"""Anything people may do in any order, on both stores: the log always rebuilds the live state."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from hitl_tui import (
    AnswerRefused,
    Gate,
    GateChoice,
    NodeFailed,
    StaleWriter,
    UsageError,
)
from hitl_tui.engine.log.records import Limits
from hitl_tui.stores import Checkpointer
from tests.support.any_order import AnyOrder, run_in_any_order
from tests.support.flows import check_log, head_hash, review_loop
from tests.support.spec import spec

pytestmark = spec("10")

TEXTS = st.text(alphabet="ab\u00e9\u2028", max_size=4)


class People(AnyOrder):
    """Runs, edits, answers, forks and failures of a family of threads."""

    @initialize(memory=st.booleans())
    def begin(self, memory: bool) -> None:
        self.open_new(memory)
        gate = Gate(
            "check",
            title="verdict",
            quorum=1,
            choices=[
                GateChoice("accept", "ok"),
                GateChoice("approve", "ok", values={"verdict": "approved"}),
                GateChoice("words", "words", text="required", values=lambda state, text: {"draft": text}),
            ],
        )

        def write(state: Any, config: Any) -> dict[str, Any]:
            if self.broken:
                raise ValueError("broken")
            note = config.interrupt("a word?") if state["n"] % 3 == 2 else ""
            return {"log": ["write", note], "n": state["n"] + 1, "draft": f"draft {state['n']}"}

        self.runner = review_loop(
            self.store,
            {"write": write},
            interrupt_after=[gate],
            interrupt_before=["check"],
            limits=Limits(max_iterations=100),
        )
        self.runner.invoke({"log": "go"}, thread_id="t")

    @rule(pick=st.integers(0, 9), once=st.booleans())
    def run(self, pick: int, once: bool) -> None:
        thread = self.threads[pick % len(self.threads)]
        try:
            if once:
                self.runner.step(thread_id=thread)
            else:
                self.runner.invoke(thread_id=thread)
        except NodeFailed:
            assert self.broken

    @rule(
        pick=st.integers(0, 9),
        text=TEXTS,
        stale=st.booleans(),
        as_node=st.sampled_from([None, "write", "check"]),
    )
    def edit(self, pick: int, text: str, stale: bool, as_node: str | None) -> None:
        thread = self.threads[pick % len(self.threads)]
        head = self.runner.open(thread).cursor.head
        expected = head - 1 if stale else head
        try:
            step = self.runner.update_state(
                thread,
                {"draft": text, "log": [text]},
                expected_step=expected,
                as_node=as_node,
                actor=text.strip() or None,
            )
            assert step == head + 1
            assert not stale
        except StaleWriter:
            assert stale
            assert self.runner.open(thread).cursor.head == head

    @rule(
        pick=st.integers(0, 9),
        choice=st.sampled_from(["accept", "approve", "words", "no"]),
        late=st.booleans(),
    )
    def answer(self, pick: int, choice: str, late: bool) -> None:
        thread = self.threads[pick % len(self.threads)]
        cursor = self.runner.open(thread).cursor
        request = cursor.pending[0] if cursor.pending else None
        wanted = request.id if request else "none"
        value: Any = {"choice": choice, "text": "t"} if choice == "words" else choice
        refusals = [one for one in self.store.ledger(thread) if one.kind == "refused"]
        try:
            self.runner.answer(thread, wanted, value, step=cursor.head - late, actor="ann")
        except AnswerRefused:
            assert (
                len([one for one in self.store.ledger(thread) if one.kind == "refused"]) == len(refusals) + 1
            )
            assert self.runner.open(thread).cursor.head == cursor.head
        else:
            assert request is not None
            assert not late

    @rule(
        pick=st.integers(0, 9), back=st.integers(0, 9), verdict=st.sampled_from([None, "approved", "revise"])
    )
    def fork(self, pick: int, back: int, verdict: str | None) -> None:
        if len(self.threads) >= 6:
            return
        parent = self.threads[pick % len(self.threads)]
        before = (self.store.cursor(parent), self.store.ledger(parent), head_hash(self.runner, parent))
        head = self.runner.open(parent).cursor.head
        step = max(0, head - back)
        child = f"t{len(self.threads)}"
        self.runner.fork(parent, step, child, changes={"verdict": verdict} if verdict else None, actor="ann")
        self.threads.append(child)
        if not verdict:
            assert self.runner.get_state(child) == self.runner.get_state(parent, step)
        assert before == (
            self.store.cursor(parent),
            self.store.ledger(parent),
            head_hash(self.runner, parent),
        )

    @rule(pick=st.integers(0, 9), text=TEXTS, entry=st.booleans())
    def give(self, pick: int, text: str, entry: bool) -> None:
        thread = self.threads[pick % len(self.threads)]
        length = len(self.runner.get_state(thread)["log"])
        try:
            result = self.runner.invoke(
                {"log": text}, thread_id=thread, resume="entry" if entry else "cursor"
            )
            assert result["log"][length] == text
        except NodeFailed:
            assert self.broken

    @rule(pick=st.integers(0, 9))
    def cancel(self, pick: int) -> None:
        thread = self.threads[pick % len(self.threads)]
        status = self.runner.open(thread).cursor.status
        try:
            self.runner.cancel(thread)
        except UsageError:
            assert status in ("completed", "cancelled")


@pytest.mark.slow
def test_any_order(tmp_path: Path) -> None:
    run_in_any_order(People, tmp_path, examples=25, steps=20)


@pytest.mark.parametrize("seed", range(2))
def test_a_long_thread_with_snapshots_is_the_same_at_every_step(store: Checkpointer, seed: int) -> None:
    """Large values, so that snapshots are written; each step is rebuilt from one and from none."""
    dice = random.Random(seed)

    def write(state: Any, config: Any) -> dict[str, Any]:
        text = dice.choice("abc") * dice.randint(1, 6000)
        return {"log": text, "draft": text[:3000], "n": state["n"] + 1}

    runner = review_loop(store, {"write": write}, limits=Limits(max_iterations=None))
    states = {1: dict(runner.step({"log": "go"}, thread_id="t").state)}
    while len(states) < 40:
        if dice.random() < 0.2:
            runner.update_state("t", {"log": [dice.choice("xyz") * 500]})
        else:
            runner.step(thread_id="t")
        states[len(states) + 1] = runner.get_state("t")
    assert store.snapshot("t", 99) is not None
    head = runner.open("t").cursor.head
    for step, state in states.items():
        assert runner.get_state("t", step) == state
    check_log(runner, "t")
    runner.fork("t", head - 7, "f")
    check_log(runner, "f")
