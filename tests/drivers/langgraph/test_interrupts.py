"""A LangGraph graph's questions as requests, and answers to them, on real graphs and checkpointers."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from hitl_tui.drivers.langgraph.interrupts import (
    AskedInterrupt,
    asked_by,
    kept_answers,
    refusal_of,
    repeats_of_answer,
    request_of,
    resume,
    stops_compiled_in,
    without_answers,
)
from hitl_tui.drivers.langgraph.pregel import App, Saved, saved_of
from hitl_tui.engine.graph.description import GraphInfo, NodeInfo
from hitl_tui.engine.log.outcomes import BranchState, KeptAnswer
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.interrupts import checked_value
from hitl_tui.errors import AnswerRefused, UsageError
from tests.drivers.langgraph import graphs
from tests.drivers.langgraph.graphs import HAS_SCHEMAS

CONFIG: Any = {"configurable": {"thread_id": "t"}}
needs_schemas = pytest.mark.skipif(not HAS_SCHEMAS, reason="this LangGraph knows no response_schema")


class Opened:
    """A graph run to its first questions."""

    def __init__(self, graph: StateGraph[Any], ran: list[str], **compiled: Any) -> None:
        self.ran = ran
        self.app = graph.compile(checkpointer=InMemorySaver(), **compiled)
        self.app.invoke({"log": []}, CONFIG)

    @property
    def asked(self) -> tuple[AskedInterrupt, ...]:
        return asked_by(self.saved)

    @property
    def saved(self) -> Saved:
        saved = saved_of(self.app.get_state(CONFIG, subgraphs=True))
        assert saved is not None
        return saved

    def requests(self) -> list[Request]:
        return [request_of(asked, step=1, now=7) for asked in self.asked]

    def answer(self, answers: dict[str, Any]) -> Any:
        self.ran.clear()
        return self.app.invoke(resume(answers, self.asked), CONFIG)


def opened(name: str) -> Opened:
    ran: list[str] = []
    return Opened(getattr(graphs, name)(ran), ran)


def ask(payload: Any, **terms: Any) -> Request:
    """The request of a graph whose one node asks this."""
    graph = StateGraph(graphs.State)
    graph.add_node("ask", lambda _state: {"log": [str(interrupt(payload, **terms))]})
    graph.add_edge(START, "ask")
    return Opened(graph, []).requests()[0]


def test_each_interrupt_is_a_request_under_its_own_id() -> None:
    legal, style = opened("two_reviews").requests()
    assert (legal.node, legal.title, legal.payload) == ("legal", "is it legal?", {"question": "is it legal?"})
    assert (style.node, style.title, style.path) == ("style", "is it good style?", "legal+style/style")
    assert legal.id != style.id
    assert {legal.when, legal.kind} == {"inside", "ask"}


@needs_schemas
def test_a_response_schema_checks_an_answer_before_the_graph_is_run() -> None:
    _, style = opened("two_reviews").requests()
    assert checked_value(style, {"approved": True, "why": "fine"}) == {"approved": True, "why": "fine"}
    with pytest.raises(AnswerRefused, match="approved"):
        checked_value(style, {"why": "fine"})


def test_an_invalid_schema_accepts_any_answer() -> None:
    if HAS_SCHEMAS:
        request = ask("?", response_schema={"type": "strange"})
        assert request.schema is None
        assert checked_value(request, 5) == 5


@pytest.mark.parametrize(
    ("payload", "shape", "answer", "expected"),
    [
        (
            [
                {
                    "action_request": {"action": "mail", "args": {"to": "ann"}},
                    "config": {"allow_accept": True, "allow_ignore": True},
                }
            ],
            "agent_inbox",
            "approve",
            [{"type": "accept", "args": None}],
        ),
        (
            {
                "action_requests": [{"name": "mail", "args": {}}, {"name": "pay", "args": {}}],
                "review_configs": [{"action_name": "mail", "allowed_decisions": ["approve", "reject"]}],
            },
            "hitl_middleware",
            ["approve", {"choice": "reject", "text": "too much"}],
            {"decisions": [{"type": "approve"}, {"type": "reject", "message": "too much"}]},
        ),
        (
            {"type": "tool_approval", "name": "mail", "args": {"to": "ann"}},
            "tool_approval",
            "approve",
            {"type": "approve"},
        ),
    ],
)
def test_approvals_are_answered_in_their_own_format(
    payload: Any, shape: str, answer: Any, expected: Any
) -> None:
    request = ask(payload)
    assert (request.shape, request.kind) == (shape, "approve")
    assert request.choices
    assert checked_value(request, answer) == expected


def test_an_unknown_payload_is_kept_as_json() -> None:
    request = ask({"rows": [1, 2], "by": "cost"})
    assert (request.title, request.payload, request.choices) == (
        "Review rows and by?",
        {"rows": [1, 2], "by": "cost"},
        (),
    )


def test_tasks_of_a_fan_out_are_distinguished() -> None:
    asked = opened("fan_out").asked
    assert [each.path for each in asked] == ["look[0]", "look[1]", "look[2]"]
    assert len({each.id for each in asked}) == 3


def test_a_question_inside_a_subgraph_names_its_place_once() -> None:
    (asked,) = opened("team_of").asked
    assert (asked.node, asked.path) == ("team", "team/ask")


def test_an_answer_goes_to_the_interrupt_it_names_and_the_others_stay_open() -> None:
    graph = opened("two_reviews")
    legal, style = graph.asked
    graph.answer({legal.id: "yes"})
    assert [asked.id for asked in graph.asked] == [style.id]
    assert "publish" not in graph.ran
    result = graph.answer({style.id: {"approved": True, "why": "ok"}})
    assert "legal yes" in result["log"]
    assert graph.ran == ["style", "publish"]


def test_a_named_checkpoint_asks_only_what_nobody_has_answered() -> None:
    graph = opened("two_reviews")
    legal, style = graph.asked
    graph.answer({legal.id: "yes"})
    pinned = saved_of(graph.app.get_state(graph.app.get_state(CONFIG).config, subgraphs=True))
    assert pinned is not None
    assert [asked.id for asked in asked_by(pinned)] == [style.id]


def test_the_announced_nodes_run_again() -> None:
    graph = opened("two_reviews")
    info = GraphInfo("g", (NodeInfo("legal", ("*",), ("*",), tools=("lookup",)),), (), (), ())
    repeats = repeats_of_answer(graph.saved, Cursor("t", head=4), info)
    assert repeats is not None
    assert [(each.node, each.outside) for each in repeats.nodes] == [
        ("legal", ("calls lookup",)),
        ("style", ()),
    ]
    graph.answer({graph.asked[0].id: "yes"})
    assert sorted(graph.ran) == ["legal", "style"], "the one that was not answered, too"


def test_inside_a_subgraph_only_the_node_that_asks_runs_again() -> None:
    graph = opened("team_of")
    repeats = repeats_of_answer(graph.saved, Cursor("t"), GraphInfo("g", (), (), (), ()), whole={"team"})
    assert repeats is not None
    assert [each.node for each in repeats.nodes] == ["team/ask"]
    graph.answer({graph.asked[0].id: "yes"})
    assert graph.ran == ["ask"]


def test_where_nothing_asked_nothing_runs_again() -> None:
    graph = Opened(graphs.routed([]), [], interrupt_before=["write"])
    assert repeats_of_answer(graph.saved, Cursor("t"), GraphInfo("g", (), (), (), ())) is None


def test_an_empty_or_unknown_answer_is_refused() -> None:
    graph = opened("two_reviews")
    with pytest.raises(UsageError, match="nothing was answered"):
        resume({}, graph.asked)
    with pytest.raises(AnswerRefused, match="no longer waits"):
        resume({"0" * 32: "yes"}, graph.asked)


def test_after_an_edit_the_old_answer_is_refused_until_it_is_asked_again() -> None:
    """The trap: LangGraph takes a bare resume here, and answers what nobody has seen."""
    graph = opened("team_of")
    (before,) = graph.asked
    graph.app.update_state(CONFIG, {"draft": "edited"}, as_node="before")
    assert graph.asked == ()
    with pytest.raises(AnswerRefused, match="asked again"):
        resume({before.id: "yes"}, graph.asked)
    graph.app.invoke(None, CONFIG)
    assert len(graph.asked) == 1
    assert graph.asked[0].id != before.id


async def test_two_questions_of_one_node_never_share_an_id() -> None:
    run = Opened(graphs.asks_twice(), [])
    (first,) = run.asked
    run.answer({first.id: "ann"})
    app = App(run.app)
    saved = await app.state(CONFIG, subgraphs=True)
    app.close()
    assert saved is not None
    (second,) = asked_by(saved)
    assert second.id != first.id
    assert run.app.invoke(resume({second.id: "bo"}, [second]), CONFIG)["log"] == ["ann bo"]


@needs_schemas
def test_an_answer_that_the_graph_refuses_is_explained_and_the_request_stays_open() -> None:
    graph = opened("two_reviews")
    style = graph.asked[1]
    with pytest.raises(Exception, match="approved") as raised:
        graph.answer({style.id: {"approved": "perhaps"}})
    refusal = refusal_of(raised.value)
    assert refusal is not None
    assert "approved: " in refusal.message
    assert "why: Field required" in refusal.message
    assert [asked.id for asked in graph.asked] == [asked.id for asked in (graph.asked[0], style)]


def test_other_errors_are_not_reported_as_refusals() -> None:
    assert refusal_of(ValueError("no")) is None


def test_compiled_interrupts_are_reported() -> None:
    graph = Opened(graphs.routed([]), [], interrupt_before=["revise"])
    saved = graph.saved
    declared = graph.app.interrupt_before_nodes
    assert stops_compiled_in(["write"], saved, declared, ()) == ("stopped before revise",)
    assert stops_compiled_in(["write"], saved, "*", ["publish"]) == ("stopped before revise",)
    assert stops_compiled_in(["write"], saved, ["publish"], ["write"]) == ("stopped after write",)
    assert stops_compiled_in(["write"], saved, ["publish"], []) == ()


def test_a_task_that_asks_has_passed_the_stop_before_it() -> None:
    graph = opened("two_reviews")
    assert stops_compiled_in(["plan"], graph.saved, "*", "*") == ()


def test_answers_are_kept_until_they_were_handed_over() -> None:
    kept = Cursor(
        "t",
        answers=(KeptAnswer("of x", 1, 1, "x"), KeptAnswer("of z", 2, 2, "z")),
        branches=(BranchState("look[0]", answers=(KeptAnswer("of y", 3, 3, "y"),)),),
    )
    assert kept_answers(kept) == {"x": 1, "z": 2, "y": 3}
    rest = without_answers(kept, {"x", "y"})
    assert kept_answers(rest) == {"z": 2}
    assert rest.answers == (KeptAnswer("of z", 2, 2, "z"),)


def test_an_answer_of_nothing_is_an_answer() -> None:
    graph = opened("fan_out")
    ids = [asked.id for asked in graph.asked]
    result = graph.answer(dict.fromkeys(ids))
    assert result["log"][1:] == ["a: None", "b: None", "c: None"]
