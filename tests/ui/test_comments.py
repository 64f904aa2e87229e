"""Comments pinned on screen: on a sentence by keys, on what the mouse selected, kept, shown and sent."""

from __future__ import annotations

from hitl_tui.engine.commands import Answer
from hitl_tui.errors import AnswerRefused
from hitl_tui.view.review import GRACE, UNDO
from tests.support import tape as tapes
from tests.ui.harness import desk


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
