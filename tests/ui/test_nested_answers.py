"""What a thread inside asks, answered on the screen of the thread above it, whatever the kind of question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.commands import UpdateState
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer
from tests.support import nested
from tests.support.spec import spec
from tests.ui.real import answer, asked, real

pytestmark = [spec("7"), spec("11")]

SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
QUESTIONS: dict[str, tuple[dict[str, Any], list[str], Any]] = {
    "approve": ({"kind": "approve", "title": "May it go out?"}, ["a"], "approve"),
    "choose": (
        {"kind": "choose", "title": "Which one?", "choices": ["left", "right"]},
        ["down", "enter"],
        "right",
    ),
    "edit": ({"kind": "edit", "title": "All right so?", "payload": "a moss"}, ["u"], "a moss"),
    "ask a form": (
        {"kind": "ask", "title": "Where to?", "schema": SCHEMA},
        ["w", "o", "o", "d", "enter", "enter"],
        {"place": "wood"},
    ),
    "ask a text": (
        {"kind": "ask", "title": "Your name?", "schema": {"type": "string"}},
        ["a", "n", "n", "enter", "enter"],
        "ann",
    ),
}


def asking(question: dict[str, Any], deeper: bool) -> Callable[[Checkpointer], GraphRunner]:
    """A graph whose inner graph, or the one inside that, asks a question and keeps the answer."""
    channels = {"question": Channel(""), "draft": Channel(None)}

    def build(store: Checkpointer) -> GraphRunner:
        graph = StateGraph(channels, name="inner").add_node(
            "ask", lambda _state, config: {"draft": config.interrupt(question)}
        )
        graph = graph.add_edge(START, "ask").add_edge("ask", END)
        if deeper:
            graph = (
                StateGraph(channels, name="middle")
                .add_subgraph("desk", graph, inputs={"question": "question"}, outputs={"draft": "draft"})
                .add_edge(START, "desk")
                .add_edge("desk", END)
            )
        return (
            StateGraph({"results": Channel([], reducer="append")}, name="outer")
            .add_subgraph("team", graph, inputs={}, outputs={"draft": "results"})
            .add_edge(START, "team")
            .add_edge("team", END)
            .compile(checkpointer=store)
        )

    return build


@pytest.mark.parametrize(
    ("kind", "deeper"),
    [
        pytest.param(
            kind,
            deeper,
            id=f"{kind}, {'two' if deeper else 'one'} deep",
            marks=pytest.mark.slow if deeper and kind != "ask a form" else (),
        )
        for kind in QUESTIONS
        for deeper in (False, True)
    ],
)
@pytest.mark.slow
async def test_a_question_inside_is_answered_from_the_screen_above(kind: str, deeper: bool):
    question, keys, expected = QUESTIONS[kind]
    async with real(asking(question, deeper)) as it:
        await it.press("c")
        await asked(it, question["title"], f"node {'desk/ask' if deeper else 'ask'} of thread t/team#1")
        await answer(it, *keys)
        await it.shows("DONE")
        session = it.session
        assert session.view.values["results"] == [expected]


@pytest.mark.parametrize(
    "deeper",
    [pytest.param(False, id="one deep"), pytest.param(True, marks=pytest.mark.slow, id="two deep")],
)
@pytest.mark.slow
async def test_a_gate_in_a_subgraph_is_answered_from_the_parent_while_its_thread_is_open(deeper: bool):
    """All threads on the way are open then, and each looks at what the others do."""
    async with real(lambda store: nested.team(store, deeper=deeper)) as it:
        await it.press("s")
        await it.shows("WAITING")
        for where in ["t › team#1", "t › team#1 › desk#1"][: 1 + deeper]:
            await it.press("I")
            await it.shows(where)
        for _ in range(1 + deeper):
            await it.press("escape")
        await it.gone("inside ")
        await it.press("d")
        await asked(it, "is it good?")
        await answer(it, "a")
        await it.shows("PAUSED")
        await it.press("c")
        await it.shows("DONE", "all about moss")


@pytest.mark.slow
async def test_a_question_that_comes_up_inside_again_is_asked_above_again():
    async with real(nested.again) as it:
        await it.press("c")
        await asked(it, "is it good?", "all about moss")
        await answer(it, "r", "enter", "enter")
        await asked(it, "is it good?", "all about moss, again")
        await answer(it, "a")
        await it.shows("DONE", "all about moss, again")


@pytest.mark.slow
async def test_an_answer_inside_a_subgraph_withdraws_the_parents_request():
    async with real(nested.again) as it:
        await it.press("s")
        await it.shows("WAITING")
        await it.press("I")
        await it.shows("inside team of t")
        await it.press("d")
        await asked(it, "is it good?")
        await answer(it, "r", "enter", "enter")
        await it.press("s")
        await it.shows("WAITING", "again")
        await it.press("escape")
        await it.gone("inside team of t")
        await it.shows("your turn, press d")
        await it.press("d")
        await asked(it, "is it good?", "all about moss, again")
        await answer(it, "a")
        await it.press("c")
        await it.shows("DONE", "all about moss, again")


@pytest.mark.slow
async def test_from_the_card_one_goes_inside_to_edit_and_comes_back_to_the_card():
    async with real(nested.again, size=(80, 24)) as it:
        await it.press("c")
        await asked(it, "is it good?", "edit it in its own thread")
        await it.press("e")
        await it.shows("team#1", "esc back to t")
        session = it.session
        await session.driver.execute(UpdateState({"draft": "mine"}, expected_step=session.view.progress.head))
        await it.press("escape")
        await asked(it, "is it good?", "mine")
        await answer(it, "a")
        await it.shows("DONE")
