"""Comments pinned on screen: on a sentence by keys, on what the mouse selected, kept, shown and sent."""

from __future__ import annotations

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.engine.commands import Answer
from hitl_tui.errors import AnswerRefused
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.comments import pin
from hitl_tui.view.review import GRACE, UNDO
from hitl_tui.view.spans import plain_text
from tests.support import tape as tapes
from tests.ui.harness import Screen, desk, live


@pytest.mark.slow
async def test_a_comment_is_pinned_to_a_sentence_shown_on_the_card_and_goes_with_the_answer():
    async with desk(size=(120, 50)) as it:
        await it.press("d")
        await it.shows("advisor: ", "keys work in half")
        it.clock.advance(GRACE + 0.01)
        await it.shows("undoes it")
        await it.press("c")
        await it.shows("your comment", "▌ Picture a lunch box")
        await it.press("up", "down", "shift+down", *"keep one", "enter")
        await it.shows("Your comments", "1 keep one", "lunch")
        await it.press("c", "up", "pagedown", "pageup", *"whose", "enter")
        await it.shows("1 whose", "2 keep one")
        it.driver.results["answer"] = AnswerRefused("too late", "look again")
        await it.press("r", "enter", "enter")
        await it.shows("send it now")
        it.clock.advance(UNDO + 0.01)
        await it.shows("not accepted: too late", "1 whose", "2 keep one")
        await it.press("escape", "d")
        await it.shows("1 whose", "2 keep one")
        (sent,) = [command for command in it.driver.commands if isinstance(command, Answer)]
        assert [comment.text for comment in sent.comments] == ["whose", "keep one"]
        assert sent.comments[1].quote in tapes.DRAFT_2
        assert tapes.DRAFT_2[sent.comments[1].offset :].startswith(sent.comments[1].quote)


def value_rows(it: Screen) -> list[str]:
    pane = it.run.query_one(ValuePane)
    return [plain_text(pane.line(row)).rstrip() for row in range(len(pane.lines))]


SHOWN = (((200, 60), "", "1"), ((120, 40), "1", "D"), ((80, 24), "", "1"))
"""The combinations of size, NO_COLOR and mode in the core suite; the slow one has them all."""


@pytest.mark.parametrize(
    ("size", "no_color", "mode"),
    [
        pytest.param(
            size,
            no_color,
            mode,
            id=f"{size[0]}x{size[1]}-NO_COLOR={no_color}-{mode}",
            marks=() if (size, no_color, mode) in SHOWN else pytest.mark.slow,
        )
        for size in ((200, 60), (120, 40), (80, 24))
        for no_color in ("", "1")
        for mode in ("1", "D")
    ],
)
@pytest.mark.slow
async def test_a_comment_is_numbered_at_its_passage_and_shown_below_the_value(
    size: tuple[int, int], no_color: str, mode: str, monkeypatch: pytest.MonkeyPatch
):
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    async with desk(size=size) as it:
        await it.press(mode, "d")
        await it.shows("keys work in half")
        it.clock.advance(GRACE + 0.01)
        await it.until(lambda: it.card.review.state == "open", "the moment to read being over")
        await it.press("c")
        await it.shows("your comment")
        await it.press(*"which lunch", "enter")
        await it.until(lambda: any("1 which lunch" in row for row in value_rows(it)), "the comment")
        numbered = [row for row in value_rows(it) if row.endswith(" 1")]
        assert len(numbered) == 1
        assert "Picture a" in numbered[0]
        await it.press("C")
        await it.until(lambda: not any("which lunch" in row for row in value_rows(it)), "no comment")
        assert not any("Picture a" in row and row.endswith(" 1") for row in value_rows(it))
        await it.press("C")
        await it.shows("there is no comment to undo")


@pytest.mark.slow
async def test_comments_leave_the_value_with_the_card():
    async with desk(size=(120, 40)) as it:
        await it.press("d")
        await it.shows("keys work in half")
        it.clock.advance(GRACE + 0.01)
        await it.until(lambda: it.card.review.state == "open", "the moment to read being over")
        await it.press("c")
        await it.shows("your comment")
        await it.press(*"hm", "enter")
        await it.until(lambda: any("1 hm" in row for row in value_rows(it)), "the comment")
        await it.press("escape")
        await it.until(lambda: not any("1 hm" in row for row in value_rows(it)), "no comment")
        await it.press("d")
        await it.until(lambda: any("1 hm" in row for row in value_rows(it)), "the comment")


@pytest.mark.slow
async def test_what_the_mouse_has_selected_is_the_passage():
    async with desk(size=(120, 50)) as it:
        await it.press("1", "d")
        await it.shows("keys work in half")
        it.clock.advance(GRACE + 0.01)
        await it.until(lambda: it.card.review.state == "open", "the moment to read being over")
        rows = it.text().splitlines()
        y = next(at for at, row in enumerate(rows) if "the variables are packed" in row)
        x = rows[y].index("the variables are packed")
        await it.pilot.mouse_down(offset=(x, y))
        await it.pilot.hover(offset=(x + len("the variables"), y))
        await it.pilot.mouse_up(offset=(x + len("the variables"), y))
        await it.press("c")
        await it.shows("your comment", "▌ the variables")
        await it.press(*"which", "enter")
        await it.until(lambda: bool(it.card.review.comments), "the comment")
        (comment,) = it.card.review.comments
        assert (comment.quote, comment.text) == ("the variables", "which")
        assert tapes.DRAFT_2[comment.offset :].startswith("the variables are packed")


def long_draft(store: MemoryCheckpointer) -> GraphRunner:
    """A draft of more lines than are laid out at once, written twice."""
    texts = [[f"line {at} of the draft" for at in range(3_000)] for _ in range(2)]
    texts[1][2_100] = "a line of the second draft alone"
    choices = [GateChoice("approve", "approve", "a"), GateChoice("revise", "send back", "r", "required")]
    graph = StateGraph({"draft": Channel(""), "n": Channel(0, reducer="sum")}, name="long")
    graph.add_node("write", lambda state: {"draft": "\n".join(texts[min(state["n"], 1)]), "n": 1})
    graph.add_node("judge", lambda state: {})
    graph.add_edge(START, "write").add_edge("write", "judge")
    ways = {"on": END, "again": "write"}
    graph.add_conditional_edge("judge", lambda state: "on" if state["n"] > 1 else "again", ways)
    gate = Gate("judge", "Good?", choices, subject="draft")
    return graph.compile(checkpointer=store, interrupt_after=[gate])


@pytest.mark.parametrize("mode", ["1", "D"], ids=["text", "diff"])
@pytest.mark.slow
async def test_comment_numbers_are_shown_in_large_values_and_older_versions(mode: str):
    runner = long_draft(MemoryCheckpointer())
    (request,) = runner.invoke({}, thread_id="t").pending
    runner.answer("t", request.id, {"choice": "revise", "text": "again"}, step=request.step)
    runner.invoke(thread_id="t")

    def numbered(it: Screen) -> dict[str, str]:
        rows = [row.rsplit(maxsplit=1) for row in value_rows(it) if row.endswith((" 1", " 2"))]
        return {number: words for words, number in rows if "line" in words}

    async with live(runner, ready="WAITING") as it:
        await it.press(mode, "d")
        await it.until(lambda: it.run.card_open and it.card.review.state == "open", "the card")
        value = it.session.view.values["draft"]
        for quote in ("line 2050 of", "line of the second draft"):
            it.card.add_comment(pin("draft", value, quote, "why"))
        await it.until(lambda: numbered(it).keys() == {"1", "2"}, "both numbers")
        assert "line 2050" in numbered(it)["1"]
        assert "second draft" in numbered(it)["2"]
        for _ in range(3):
            it.run.action_do("travel.back")  # its key is none of the card's
        await it.until(lambda: numbered(it).keys() == {"1"}, "the number of what stands in both")
        assert "line 2050" in numbered(it)["1"]
