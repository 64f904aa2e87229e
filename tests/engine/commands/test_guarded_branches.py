"""A gate on one of several branches, in a loop, or asked by a node guards its route as any other does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.engine.commands import Fork, Start, execute
from hitl_tui.engine.graph.guards import is_asked_again, passed_from
from hitl_tui.engine.log.records import Cursor
from hitl_tui.errors import GateUnanswered, HitlError
from tests.support.spec import spec

pytestmark = spec("11")

CHOICES = [GateChoice("yes", "yes"), GateChoice("no", "no")]
TERMS: dict[str, Any] = {"reviewers": ["boss"]}
PLACES = ("after", "before", "inside", "in a subgraph", "inside a subgraph", "in a map")


class Office:
    """START -> triage -> large or small -> book -> pay -> triage or END; `large` has a question for the boss.

    Args:
        place: where the question is: after or before `large`, or inside it.
        branch: where `triage` leads.
        small: False leaves out that branch, so that every path has the question.
        rounds: how often it pays.
    """

    def __init__(self, place: str, *, branch: str = "large", small: bool = True, rounds: int = 1) -> None:
        self.store = MemoryCheckpointer()
        self.place = place
        self.branch = branch
        self.small = small
        self.rounds = rounds
        self.paid: list[str] = []
        self.runner = self._graph()

    def _graph(self) -> GraphRunner:
        def pay(state: Any) -> dict[str, Any]:
            self.paid.append(state["draft"])
            return {}

        channels = {"draft": Channel("pay 10"), "items": Channel([1, 2], reducer="overwrite")}
        graph = StateGraph(channels, name="office")
        graph.add_node("triage", lambda _state: {})
        if self.place.endswith("a subgraph"):
            graph.add_subgraph("large", self._inner(), inputs={"draft": "draft"}, outputs={})
        elif self.place == "in a map":
            graph.add_map("large", over="items", node=_ask)
        else:
            graph.add_node("large", _ask if self.place == "inside" else lambda _state: {})
        if self.small:
            graph.add_node("small", lambda _state: {}).add_edge("small", "book")
        graph.add_node("book", lambda _state: {}).add_node("pay", pay)
        graph.add_edge(START, "triage")
        branches = ["large", "small"] if self.small else ["large"]
        graph.add_conditional_edge("triage", lambda _state: self.branch, branches)
        graph.add_edge("large", "book").add_edge("book", "pay")
        graph.add_conditional_edge(
            "pay", lambda _state: "triage" if len(self.paid) < self.rounds else END, ["triage", END]
        )
        gates: list[Any] = [Gate("large", "Pay it?", CHOICES, subject="draft", **TERMS)]
        return graph.compile(
            checkpointer=self.store,
            interrupt_before=gates if self.place == "before" else [],
            interrupt_after=gates if self.place == "after" else [],
        )

    def _inner(self) -> GraphRunner:
        graph = StateGraph({"draft": Channel("")}, name="inner")
        inside = self.place == "inside a subgraph"
        graph.add_node("look", _ask if inside else lambda _state: {}).add_edge(START, "look").add_edge(
            "look", END
        )
        gate = Gate("look", "Pay it?", CHOICES, **TERMS)
        return graph.compile(checkpointer=self.store, interrupt_after=[] if inside else [gate])

    @property
    def head(self) -> int:
        return self.runner.open("t").cursor.head

    def answer(self) -> None:
        """The boss answers all that waits."""
        while waits := self.runner.open("t").cursor.pending:
            choice = (
                {"choice": "approve"}
                if waits[0].when == "inside" and self.place != "in a subgraph"
                else "yes"
            )
            self.runner.answer("t", waits[0].id, choice, step=waits[0].step, actor="boss")

    def edit(self, as_node: str, thread: str = "t") -> None:
        self.runner.update_state(thread, {"draft": "pay 99"}, as_node=as_node, actor="mallory")

    def fork(self, step: int, as_node: str | None = None, changes: Any = None) -> None:
        execute(self.runner.open("t"), Fork(step, "f", changes, as_node=as_node, actor="mallory"))

    def run_all(self) -> None:
        for thread in ("t", "f"):
            if self.store.info(thread):
                with suppress(HitlError):
                    self.runner.invoke(thread_id=thread)

    def findings(self, thread: str) -> set[str]:
        return {each.kind for each in self.runner.verify(thread, strict=True).mismatches}


def _ask(_state: Any, config: Any) -> dict[str, Any]:
    config.interrupt({"kind": "approve", "title": "Pay it?", **TERMS})
    return {}


def start_and_skip(office: Office, as_node: str) -> None:
    office.edit("START")
    office.edit(as_node)


WAITING: dict[str, Callable[[Office], None]] = {
    "an edit as the node after both branches": lambda office: office.edit("book"),
    "an edit as the other branch": lambda office: office.edit("small"),
    "an edit as the last node": lambda office: office.edit("pay"),
    "an edit as START, then as the other branch": lambda office: start_and_skip(office, "small"),
    "an edit as START, then as a later node": lambda office: start_and_skip(office, "book"),
    "a fork as the node after both branches": lambda office: office.fork(
        office.head, "book", {"draft": "pay 99"}
    ),
    "a fork as the other branch": lambda office: office.fork(office.head, "small"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("path", WAITING)
def test_no_path_bypasses_the_question_of_a_branch(path: str, place: str) -> None:
    office = Office(place)
    office.runner.invoke({}, thread_id="t")
    assert office.runner.open("t").cursor.pending
    with pytest.raises(GateUnanswered) as refused:
        WAITING[path](office)
    assert "boss" in refused.value.hint
    office.run_all()
    assert office.paid == []
    assert office.findings("t") == set()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("path", WAITING)
def test_a_strict_check_finds_a_bypassed_branch(
    monkeypatch: pytest.MonkeyPatch, path: str, place: str
) -> None:
    for module in ("decisions", "forking"):
        monkeypatch.setattr(f"hitl_tui.engine.commands.{module}.refuse_skipping", lambda *_, **__: None)
    office = Office(place)
    office.runner.invoke({}, thread_id="t")
    WAITING[path](office)
    thread = "f" if "fork" in path else "t"
    assert office.findings(thread) == {"gate"}
    office.run_all()
    assert office.findings(thread) == {"gate"}


def fork_and_skip(office: Office) -> None:
    """A fork before the question, which has no decision that tells of it, then an edit as a later node."""
    office.fork(1)
    office.edit("book", "f")


def run_again(office: Office) -> None:
    """A new run up to the choice of the branch, then an edit as a later node."""
    session = office.runner.open("t")
    with session.writing():
        execute(session, Start({}, "mallory", from_entry=True))
    office.runner.step(thread_id="t")
    office.edit("book")


ANSWERED: dict[str, Callable[[Office], None]] = {
    "a fork of an earlier step as a later node": lambda office: office.fork(1, "book", {"draft": "pay 99"}),
    "a fork of the input as a later node": lambda office: office.fork(0, "book", {"draft": "pay 99"}),
    "a fork, then an edit as a later node": fork_and_skip,
    "a new run, then an edit as a later node": run_again,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("path", ANSWERED)
@pytest.mark.parametrize("refuses", [True, False], ids=["refused", "found"])
def test_an_answer_counts_for_one_pass_of_the_route(
    monkeypatch: pytest.MonkeyPatch, path: str, place: str, *, refuses: bool
) -> None:
    office = Office(place, small=False)
    office.runner.invoke({}, thread_id="t")
    office.answer()
    assert office.runner.invoke(thread_id="t").status == "completed"
    thread = "f" if "fork" in path else "t"
    if refuses:
        with pytest.raises(GateUnanswered) as refused:
            ANSWERED[path](office)
        assert "boss" in refused.value.hint
        office.run_all()
        assert office.paid == ["pay 10"]
        assert office.findings("t") == set()
    else:
        for module in ("decisions", "forking"):
            monkeypatch.setattr(f"hitl_tui.engine.commands.{module}.refuse_skipping", lambda *_, **__: None)
        ANSWERED[path](office)
        assert office.findings(thread) == {"gate"}
        office.run_all()
        assert office.paid[1:]
        assert office.findings(thread) == {"gate"}


@pytest.mark.parametrize("place", PLACES)
def test_each_round_of_a_loop_is_guarded(place: str) -> None:
    office = Office(place, small=False, rounds=2)
    office.runner.invoke({}, thread_id="t")
    office.answer()
    while office.paid == []:
        office.runner.step(thread_id="t")
    office.runner.step(thread_id="t")  # triage, for the second time
    with pytest.raises(GateUnanswered):
        office.edit("book")
    office.run_all()
    assert office.paid == ["pay 10"]
    office.answer()
    assert office.runner.invoke(thread_id="t").status == "completed"
    assert office.findings("t") == set()


@pytest.mark.parametrize("place", PLACES)
def test_steps_before_a_question_or_after_its_answer_can_be_edited(place: str) -> None:
    office = Office(place)
    office.runner.invoke({}, thread_id="t")
    office.edit("triage")
    office.runner.invoke(thread_id="t")
    office.answer()
    office.runner.step(thread_id="t")
    while office.runner.open("t").cursor.position != "node:pay":
        office.runner.step(thread_id="t")
    office.edit("book")  # it has just run
    assert office.runner.invoke(thread_id="t").status == "completed"
    assert office.paid == ["pay 99"]
    office.fork(office.head - 1, "book")
    assert office.findings("t") == office.findings("f") == set()


def test_the_other_branch_can_be_edited_when_nothing_waits() -> None:
    office = Office("after", branch="small")
    office.runner.invoke({}, thread_id="t")
    office.edit("small")
    office.edit("book")
    office.fork(0, "small")
    office.run_all()
    assert office.paid == ["pay 10", "pay 99", "pay 10"]
    assert office.findings("t") == office.findings("f") == set()


def forge_fork(monkeypatch: pytest.MonkeyPatch, office: Office) -> str:
    monkeypatch.setattr("hitl_tui.engine.commands.forking.past_position", lambda *_, **__: "node:pay")
    office.fork(1)
    return "f"


def forge_edit(monkeypatch: pytest.MonkeyPatch, office: Office) -> str:
    def moved(_session: Any, cursor: Cursor, *_rest: Any, **_options: Any) -> Cursor:
        return replace(cursor, position="node:pay", pending=(), status="waiting", reason="paused")

    monkeypatch.setattr("hitl_tui.engine.commands.decisions.with_reopened", moved)
    office.runner.update_state("t", {"draft": "pay 99"}, actor="mallory")
    return "t"


@pytest.mark.parametrize("place", ["before", "inside", "in a subgraph", "inside a subgraph", "in a map"])
@pytest.mark.parametrize("forge", [forge_fork, forge_edit])
def test_a_strict_check_finds_a_thread_that_no_decision_placed_elsewhere(
    monkeypatch: pytest.MonkeyPatch, forge: Callable[..., str], place: str
) -> None:
    office = Office(place)
    office.runner.invoke({}, thread_id="t")
    thread = forge(monkeypatch, office)
    found = office.runner.verify(thread, strict=True).mismatches
    assert ("gate", "position", "node:pay") in [(each.kind, each.field, each.actual) for each in found]
    office.runner.invoke(thread_id=thread)
    assert office.paid
    assert "gate" in office.findings(thread)


def test_which_nodes_are_on_every_path_from_a_position() -> None:
    info = Office("after").runner.graph.info
    assert passed_from(info, "node:triage", "book") == {"triage", "book"}
    assert passed_from(info, "route:triage", "pay") == {"book", "pay"}
    assert passed_from(info, "node:large", "pay") == {"large", "book", "pay"}
    assert passed_from(info, "node:large", "small") == {"large", "book", "pay", "triage", "small"}
    assert passed_from(info, "end", "pay") == frozenset()
    assert passed_from(info, "rollback", "triage") == {"triage"}


@pytest.mark.parametrize(
    ("as_node", "when", "again"),
    [
        ("START", "before", True),
        ("triage", "before", True),
        ("large", "after", True),
        ("large", "before", False),
        ("small", "before", False),
        ("book", "after", False),
    ],
)
def test_whether_a_question_is_asked_again(as_node: str, when: str, *, again: bool) -> None:
    info = Office("after").runner.graph.info
    assert is_asked_again(info, START if as_node == "START" else as_node, "large", when) is again
