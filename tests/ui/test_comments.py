"""Comments pinned on screen: on a sentence by keys, on what the mouse selected, kept, shown and sent."""

from __future__ import annotations

import pytest

from hitl_tui.engine.commands import Answer
from hitl_tui.errors import AnswerRefused
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.review import GRACE, UNDO
from hitl_tui.view.spans import plain_text
from tests.support import tape as tapes
from tests.ui.harness import Screen, desk


async def test_a_comment_is_pinned_to_a_sentence_shown_on_the_card_and_goes_with_the_answer():
    async with desk(size=(120, 50)) as it:
        await it.press("d")
        await it.shows("The advisor says", "a moment to read")
        it.clock.advance(GRACE + 0.01)
        await it.shows("takes it back")
        await it.press("c")
        await it.shows("what you say about it", "▌ Picture a lunch box")
        await it.press("up", "down", "shift+down", *"keep one", "enter")
        await it.shows("Your comments", "1 keep one", "lunch")
        await it.press("c", "up", "up", *"whose", "enter")
        await it.shows("1 whose", "2 keep one")
        it.driver.results["answer"] = AnswerRefused("too late", "look again")
        await it.press("r")
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


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)], ids=["200x60", "120x40", "80x24"])
@pytest.mark.parametrize("no_color", ["", "1"], ids=["colours", "none"])
@pytest.mark.parametrize("mode", ["1", "D"], ids=["text", "diff"])
async def test_a_comment_has_its_number_beside_its_passage_and_stands_below_the_value(
    size: tuple[int, int], no_color: str, mode: str, monkeypatch: pytest.MonkeyPatch
):
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    async with desk(size=size) as it:
        await it.press(mode, "d")
        await it.shows("a moment to read")
        it.clock.advance(GRACE + 0.01)
        await it.until(lambda: it.card.review.state == "open", "the moment to read being over")
        await it.press("c")
        await it.shows("what you say about it")
        await it.press(*"which lunch", "enter")
        await it.until(lambda: any("1 which lunch" in row for row in value_rows(it)), "the comment")
        numbered = [row for row in value_rows(it) if row.endswith(" 1")]
        assert len(numbered) == 1
        assert "Picture a" in numbered[0]
        await it.press("C")
        await it.until(lambda: not any("which lunch" in row for row in value_rows(it)), "no comment")
        assert not any(row.endswith(" 1") for row in value_rows(it))
        await it.press("C")
        await it.shows("there is no comment to take back")


async def test_comments_leave_the_value_with_the_card():
    async with desk(size=(120, 40)) as it:
        await it.press("d")
        await it.shows("a moment to read")
        it.clock.advance(GRACE + 0.01)
        await it.until(lambda: it.card.review.state == "open", "the moment to read being over")
        await it.press("c")
        await it.shows("what you say about it")
        await it.press(*"hm", "enter")
        await it.until(lambda: any("1 hm" in row for row in value_rows(it)), "the comment")
        await it.press("escape")
        await it.until(lambda: not any("1 hm" in row for row in value_rows(it)), "no comment")
        await it.press("d")
        await it.until(lambda: any("1 hm" in row for row in value_rows(it)), "the comment")
