"""Whatever a model or a file says, no control character leaves the app, and markup stays text."""

from __future__ import annotations

import unicodedata

import pytest

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.errors import StoreUnusable
from hitl_tui.ui.screens.page import failure_words
from hitl_tui.view.value_source import draft_of, read_draft
from tests.support import tape as tapes
from tests.ui.harness import Desk, desk

KEYS = (["d"], ["escape", "e"], ["escape", "t"], ["escape", "f"], ["escape", "0"], ["3"], ["4"], ["1"])


def assert_clean(it: Desk) -> None:
    strips = it.app.screen._compositor.render_strips()
    for strip in strips:
        for segment in strip:
            bad = [
                char for char in segment.text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn")
            ]
            assert not bad, f"{bad!r} in {segment.text!r}"


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
@pytest.mark.slow
async def test_no_control_character_reaches_the_screen(size: tuple[int, int]):
    async with desk(tapes.hostile_tape(), size=size, ready="WAITING") as it:
        await it.shows("latest_draft")
        assert_clean(it)
        for keys in KEYS:
            await it.press(*keys)
            await it.pilot.pause()
            assert_clean(it)


@pytest.mark.slow
async def test_markup_is_shown_as_it_is():
    tape = tapes.advisor_tape(drafts=("[/] [red]x[/red]", "[bold]y [/"), feedback=("[/", "[link=x]"))
    async with desk(tape) as it:
        await it.shows("[bold]y [/")
        await it.press("d")
        await it.shows("[link=x]")


def test_texts_with_controls_are_edited_as_json():
    draft = draft_of("a\x1b[2Jb\u202ec", "text")
    assert draft.as_json
    assert "\x1b" not in draft.text
    assert read_draft(draft.text, as_json=True) == "a\x1b[2Jb\u202ec"


async def test_without_colour_everything_is_still_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with desk() as it:
        await it.shows("‖ WAITING", "+ Picture a lunch box", "- Technically", "▶advisor")
        colours = {
            segment.style.color.triplet
            for strip in it.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style and segment.style.color and segment.style.color.triplet
        }
        assert it.app.no_color or not colours


@pytest.mark.parametrize("error", [StoreUnusable("a\x1b[2J", "b\x9bc"), OSError("a\x1b]52;")])
def test_an_error_that_quotes_a_store_or_a_file_has_no_control_characters(error: Exception) -> None:
    assert not [char for char in failure_words(error) if unicodedata.category(char) == "Cc"]


@pytest.mark.parametrize(("kind", "as_json"), [("text", False), ("object", True), ("", False)])
def test_a_private_value_is_edited_by_writing_a_new_one(kind: str, as_json: bool) -> None:
    draft = draft_of(PRIVATE, kind)
    assert (draft.text, draft.as_json) == ("", as_json)
    assert draft.why.startswith("private: ")
