"""A gate guards its route whichever command places a thread on it: it asks, or the command is refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    MemoryCheckpointer,
    StateGraph,
    append,
    open_store,
)
from hitl_tui.engine.commands import ExtendLimits, Fork, Start, UpdateState, execute
from hitl_tui.engine.commands.forking import fork
from hitl_tui.engine.commands.preview import preview
from hitl_tui.engine.graph.guards import always_passed, guards_of, who_may_answer
from hitl_tui.engine.graph.limits import Limits
from hitl_tui.errors import GateUnanswered, HitlError
from hitl_tui.stores import Checkpointer
from tests.support.spec import spec

pytestmark = spec("11")

TERMS: dict[str, dict[str, Any]] = {
    "reviewers": {"reviewers": ["boss", "ceo"]},
    "quorum": {"quorum": 2, "one_account": True},
    "signed": {"reviewers": ["boss"], "signed": True},
    "all": {"reviewers": ["boss", "ceo"], "quorum": 2, "signed": True},
}
PLACES = ("after write", "before check", "inside ask", "in a subgraph")
CHOICES = [GateChoice("yes", "yes", values={"ok": True}), GateChoice("no", "no")]


class Desk:
    """START -> write -> ask -> check -> pay -> log -> END, with a gate on the way from `write` to `check`.

    Args:
        routed: `write` has a conditional edge.
    """

    def __init__(
        self, store: Checkpointer, place: str, terms: dict[str, Any], *, routed: bool = False
    ) -> None:
        self.store = store
        self.place = place
        self.terms = terms
        self.routed = routed
        self.paid: list[str] = []
        self.runner = self.graph()

    def graph(self, *, gated: bool = True, stops: bool = False, **limits: Any) -> GraphRunner:
        def ask(_state: Any, config: Any) -> dict[str, Any]:
            if gated and self.place == "inside ask":
                config.interrupt({"kind": "approve", "title": "Pay it?", **self.terms})
            return {"log": "asked"}

        def pay(state: Any) -> dict[str, Any]:
            self.paid.append(state["draft"])
            return {"log": "paid"}

        graph = StateGraph(
            {"draft": Channel(""), "ok": Channel(False), "log": Channel([], reducer=append())}, name="pay"
        )
        graph.add_node("write", lambda _state: {"draft": "pay 10"})
        if self.place == "in a subgraph":
            graph.add_subgraph("ask", self._inside(gated), inputs={"draft": "draft"}, outputs={"ok": "ok"})
        else:
            graph.add_node("ask", ask)
        graph.add_node("check", lambda _state: {"log": "checked"}).add_node("pay", pay)
        graph.add_node("log", lambda _state: {"log": "logged"})
        graph.add_edge(START, "write")
        if self.routed:
            graph.add_conditional_edge("write", lambda _state: "ask", ["ask"])
        else:
            graph.add_edge("write", "ask")
        for source, target in (("ask", "check"), ("check", "pay"), ("pay", "log"), ("log", END)):
            graph.add_edge(source, target)
        when, _, node = self.place.partition(" ")
        gate = Gate(node, "Pay it?", CHOICES, subject="draft", **self.terms)
        before: list[Any] = [gate] if gated and when == "before" else []
        after: list[Any] = [gate] if gated and when == "after" else []
        return graph.compile(
            checkpointer=self.store,
            interrupt_before=before + (["write"] if stops else []),
            interrupt_after=after,
            limits=Limits(**limits),
        )

    def _inside(self, gated: bool) -> GraphRunner:
        graph = StateGraph({"draft": Channel(""), "ok": Channel(False)}, name="inner")
        graph.add_node("look", lambda _state: {}).add_edge(START, "look").add_edge("look", END)
        gate = Gate("look", "Pay it?", CHOICES, subject="draft", **self.terms)
        return graph.compile(checkpointer=self.store, interrupt_after=[gate] if gated else [])

    def edit(self, as_node: str | None, thread: str = "t", runner: GraphRunner | None = None) -> None:
        (runner or self.runner).update_state(thread, {"draft": "pay 99"}, as_node=as_node, actor="mallory")

    def fork(self, step: int, runner: GraphRunner | None = None, **options: Any) -> None:
        session = (runner or self.runner).open("t")
        execute(session, Fork(step, "f", options.pop("changes", None), actor="mallory", **options))

    @property
    def head(self) -> int:
        return self.runner.open("t").cursor.head


def rerun(desk: Desk) -> None:
    """What `rerun` does where the route after the kept step has changed."""
    fork(desk.runner.open("t"), Fork(1, "f", actor="mallory"), rerouted=True)


def start_again(desk: Desk) -> None:
    """A new invocation that is not run, then an edit as a node after the gate."""
    session = desk.runner.open("t")
    with session.writing():
        execute(session, Start({}, "mallory", from_entry=True))
    desk.edit("check")


def leave_and_skip(desk: Desk) -> None:
    """The question is withdrawn by an edit, then skipped by another one."""
    desk.edit("START")
    desk.edit("check")


def extend(desk: Desk) -> None:
    session = desk.runner.open("t")
    with session.writing():
        execute(session, ExtendLimits({"max_iterations": 99}, actor="mallory"))


def cancel_and_skip(desk: Desk) -> None:
    desk.runner.cancel("t", actor="mallory")
    desk.edit("check")


def roll_back_and_skip(desk: Desk) -> None:
    desk.runner.rollback("t", actor="mallory")
    desk.edit("check")


def run_ungated(desk: Desk) -> None:
    """Run on with a version of the graph that has no gate."""
    desk.graph(gated=False).invoke(thread_id="t")


def edit_ungated(desk: Desk) -> None:
    """Edit with a version of the graph that has no gate, then run it."""
    desk.edit(None, runner=desk.graph(gated=False))
    run_ungated(desk)


def answer_as_stranger(desk: Desk) -> None:
    cursor = desk.runner.open("t").cursor
    desk.runner.answer("t", cursor.pending[0].id, "yes", step=cursor.head, actor="mallory")


PATHS: dict[str, Callable[[Desk], object]] = {
    "nothing but resuming": lambda desk: None,
    "an edit": lambda desk: desk.edit(None),
    "an edit as the node before": lambda desk: desk.edit("write"),
    "an edit as the node that asks": lambda desk: desk.edit("ask"),
    "an edit as the next node": lambda desk: desk.edit("check"),
    "an edit as a later node": lambda desk: desk.edit("pay"),
    "an edit as START, then as a later node": leave_and_skip,
    "an edit as a later node, on another graph version": lambda desk: desk.edit(
        "check", runner=desk.graph(gated=False)
    ),
    "a fork": lambda desk: desk.fork(desk.head),
    "a fork with changes": lambda desk: desk.fork(desk.head, changes={"draft": "pay 99"}),
    "a fork as the node before": lambda desk: desk.fork(desk.head, as_node="write"),
    "a fork as the node that asks": lambda desk: desk.fork(desk.head, as_node="ask"),
    "a fork as a later node": lambda desk: desk.fork(1, as_node="check"),
    "a fork of the input as a later node": lambda desk: desk.fork(0, as_node="check", changes={"ok": True}),
    "a fork on another graph version": lambda desk: desk.fork(desk.head, desk.graph(gated=False)),
    "a rerun": rerun,
    "resume at entry": lambda desk: desk.runner.invoke(thread_id="t", resume="entry"),
    "resume at entry, then an edit as a later node": start_again,
    "extended limits": extend,
    "cancelled, then an edit as a later node": cancel_and_skip,
    "rolled back, then an edit as a later node": roll_back_and_skip,
    "another graph version": run_ungated,
    "an edit on another graph version": edit_ungated,
    "an answer of somebody else": answer_as_stranger,
    "new input": lambda desk: desk.runner.invoke({"draft": "pay 99"}, thread_id="t"),
}


UNGATED = ("another graph version", "an edit on another graph version", "a fork on another graph version")


def tries(desk: Desk, act: Callable[[Desk], object]) -> HitlError | None:
    """The refusal of a path past the gate, None where it was taken; the threads are run as far as they go."""
    refusal = None
    try:
        act(desk)
    except HitlError as error:
        refusal = error
    for thread in ("t", "f"):
        for _ in range(2):
            if desk.store.info(thread):
                with suppress(HitlError):
                    desk.runner.invoke(thread_id=thread)
    return refusal


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("path", PATHS)
def test_no_path_passes_a_gate(path: str, place: str) -> None:
    if place == "inside ask" and path in UNGATED:
        return  # what a node asks is for its code to say
    desk = Desk(MemoryCheckpointer(), place, TERMS["all"])
    desk.runner.invoke({}, thread_id="t")
    assert desk.runner.open("t").cursor.pending
    check(desk, tries(desk, PATHS[path]))


@pytest.mark.parametrize("routed", [False, True], ids=["an edge", "a route"])
@pytest.mark.parametrize("terms", TERMS)
def test_no_edit_passes_a_gate_whatever_its_terms(terms: str, *, routed: bool) -> None:
    for path in ("an edit as the node before", "an edit as the next node", "a fork as a later node"):
        desk = Desk(MemoryCheckpointer(), "after write", TERMS[terms], routed=routed)
        desk.runner.invoke({}, thread_id="t")
        check(desk, tries(desk, PATHS[path]))


def check(desk: Desk, refusal: HitlError | None) -> None:
    """Nothing was paid, a strict check finds nothing, and a refusal names who may answer."""
    assert desk.paid == [], refusal
    for thread in ("t", "f"):
        if desk.store.info(thread):
            assert desk.runner.verify(thread, strict=True).mismatches == ()
    if isinstance(refusal, GateUnanswered):
        assert "boss" in refusal.hint or "2 people must answer it alike" in refusal.hint


@pytest.mark.parametrize("path", ["an edit as the node that asks", "a fork as a later node", "a fork"])
@pytest.mark.parametrize("place", PLACES)
def test_no_path_passes_a_gate_in_a_database_file(store: Checkpointer, place: str, path: str) -> None:
    desk = Desk(store, place, TERMS["all"])
    desk.runner.invoke({}, thread_id="t")
    check(desk, tries(desk, PATHS[path]))


ON_A_SERVER = (
    "an edit as the node that asks",
    "an edit on another graph version",
    "a fork as a later node",
    "a rerun",
    "resume at entry",
    "extended limits",
)


@pytest.mark.integration
@pytest.mark.parametrize("path", ON_A_SERVER)
def test_no_path_passes_a_gate_on_a_database_server(postgres_url: str, path: str) -> None:
    with closing(open_store(postgres_url, "none")) as store:
        desk = Desk(store, "after write", TERMS["all"])
        desk.runner.invoke({}, thread_id="t")
        check(desk, tries(desk, PATHS[path]))


@pytest.mark.parametrize("place", [place for place in PLACES if place != "inside ask"])
@pytest.mark.parametrize(
    "path", ["an edit as the next node", "an edit as a later node", "a fork of the input as a later node"]
)
def test_a_gate_that_was_never_asked_is_not_passed(path: str, place: str) -> None:
    desk = Desk(MemoryCheckpointer(), place, TERMS["all"])
    desk.graph(stops=True).invoke({}, thread_id="t")
    refusal = tries(desk, PATHS[path])
    assert isinstance(refusal, GateUnanswered)
    check(desk, refusal)


def give(desk: Desk, *people: str, thread: str = "t") -> None:
    """Answer the open requests as each person, and run on."""
    for person in people:
        waits = desk.runner.open(thread).cursor.pending[0]
        desk.runner.answer(thread, waits.id, "yes", step=waits.step, actor=person)


BOTH: dict[str, Any] = {"reviewers": ["boss", "ceo"], "quorum": 2, "one_account": True}


@pytest.mark.parametrize("place", PLACES)
def test_an_edit_as_a_later_node_passes_a_gate_that_was_answered(place: str) -> None:
    if place == "inside ask":
        return
    desk = Desk(MemoryCheckpointer(), place, BOTH)
    desk.runner.invoke({}, thread_id="t")
    give(desk, "boss", "ceo")
    for _ in range(2 if place == "after write" else 1):
        desk.runner.step(thread_id="t")
    desk.runner.update_state("t", {"log": ["by hand"]}, as_node="check", actor="ann")
    assert desk.runner.invoke(thread_id="t").status == "completed"
    assert desk.paid == ["pay 10"]
    assert desk.runner.verify("t", strict=True).mismatches == ()


@pytest.mark.parametrize("place", ["after write", "before check"])
def test_an_answer_about_something_else_does_not_let_an_edit_pass(place: str) -> None:
    desk = Desk(MemoryCheckpointer(), place, BOTH)
    desk.runner.invoke({}, thread_id="t")
    give(desk, "boss", "ceo")
    with pytest.raises(GateUnanswered, match="which was answered about something else"):
        desk.edit("check")
    desk.runner.update_state("t", {"log": ["by hand"]}, as_node="check", actor="ann")
    desk.runner.invoke(thread_id="t")
    assert desk.paid == ["pay 10"]
    assert desk.runner.verify("t", strict=True).mismatches == ()


def test_a_gate_that_another_graph_version_adds_is_asked_on_the_route_that_the_thread_is_on() -> None:
    desk = Desk(MemoryCheckpointer(), "after write", BOTH)
    ungated = desk.graph(gated=False)
    ungated.step({}, thread_id="t")
    assert ungated.open("t").cursor.position == "node:ask"
    assert desk.runner.invoke(thread_id="t").pending[0].title == "Pay it?"
    assert desk.runner.verify("t", strict=True).mismatches == ()
    give(desk, "boss", "ceo")
    assert desk.runner.invoke(thread_id="t").status == "completed"
    assert desk.runner.verify("t", strict=True).mismatches == ()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("path", ["an edit as the next node", "a fork as a later node"])
def test_a_strict_check_finds_a_gate_that_was_bypassed(
    monkeypatch: pytest.MonkeyPatch, path: str, place: str
) -> None:
    for module in ("decisions", "forking"):
        monkeypatch.setattr(f"hitl_tui.engine.commands.{module}.refuse_skipping", lambda *_, **__: None)
    if (path, place) == ("a fork as a later node", "inside ask"):
        return  # the fork shares no decision that tells of the question
    desk = Desk(MemoryCheckpointer(), place, TERMS["all"])
    desk.runner.invoke({}, thread_id="t")
    PATHS[path](desk)
    thread = "f" if "fork" in path else "t"
    assert "gate" in {one.kind for one in desk.runner.verify(thread, strict=True).mismatches}
    desk.runner.invoke(thread_id=thread)
    assert desk.paid
    assert "gate" in {one.kind for one in desk.runner.verify(thread, strict=True).mismatches}


def test_a_preview_says_why_an_edit_as_a_node_is_refused() -> None:
    desk = Desk(MemoryCheckpointer(), "after write", TERMS["all"])
    desk.runner.invoke({}, thread_id="t")
    for step in (0, 1):
        previewed = preview(desk.runner.open("t"), UpdateState({"draft": "x"}, step, "check"))
        assert "boss and ceo must answer it alike, signed" in previewed.problems[""]


def test_the_gates_on_every_path_to_a_node() -> None:
    desk = Desk(MemoryCheckpointer(), "before check", TERMS["all"])
    info = desk.runner.graph.info
    assert always_passed(info, "check") == {"write", "ask", "check"}
    assert always_passed(info, END) == {"write", "ask", "check", "pay", "log", END}
    assert [guard.gate.node for guard in guards_of(info, "check")] == ["check"]
    assert list(guards_of(info, "ask")) == []


@pytest.mark.parametrize(
    ("terms", "who"),
    [
        (((), 1, ()), "anyone may answer it"),
        ((("ann",), 1, ()), "ann may answer it"),
        ((("ann", "bob", "eve"), 1, ()), "ann, bob or eve may answer it"),
        ((("ann", "bob", "eve"), 2, ()), "2 of ann, bob, eve must answer it alike"),
        (((), 2, ("desk",)), "2 people must answer it alike, from the database login desk"),
    ],
)
def test_who_may_answer_is_named(terms: tuple[Any, Any, Any], who: str) -> None:
    assert who_may_answer(*terms, signed=False) == who
    assert who_may_answer(*terms, signed=True) == f"{who}, signed"
