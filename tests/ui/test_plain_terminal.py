"""Terminals that show ASCII only, or little more: nothing else is sent, and nothing moves."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from hitl_tui.ui.terminal import shown_encoding
from hitl_tui.ui.theme import Look
from hitl_tui.view.glyphs import plain_chars
from tests.support import tape as tapes
from tests.ui.harness import desk


@pytest.mark.parametrize(
    ("environ", "encoding"),
    [
        ({}, "utf-8"),
        ({"LANG": "en_GB.UTF-8"}, "utf-8"),
        ({"LANG": "en_GB"}, "utf-8"),
        ({"LANG": "de_DE.ISO-8859-1"}, "iso8859-1"),
        ({"LANG": "de_DE.ISO-8859-15@euro"}, "iso8859-15"),
        ({"LC_ALL": "C", "LANG": "en_GB.UTF-8"}, "ascii"),
        ({"LC_ALL": "POSIX"}, "ascii"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "ascii"),
        ({"LC_CTYPE": "C.UTF-8"}, "utf-8"),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "utf-8"),
        ({"LANG": "x.no-such-codec"}, "utf-8"),
        ({"LANG": "en_GB.UTF-8", "PYTHONIOENCODING": "latin-1:replace"}, "iso8859-1"),
        ({"LANG": "en_GB.UTF-8", "PYTHONIOENCODING": ":strict"}, "utf-8"),
    ],
)
def test_the_locale_says_what_is_shown(environ: dict[str, str], encoding: str):
    assert shown_encoding(environ) == encoding


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("╭─ a ─╮", "ascii", "+- a -+"),
        ("○ input ──● worker ──◉ advisor ‖ you", "ascii", "o input --* worker --@ advisor | you"),
        ("“für” 漢 e\u0301", "ascii", '"f?r" ?? e'),
        ("“für” 漢", "iso8859-1", '"für" ??'),
        ("“für” 漢", "utf-8", '"für" 漢'),
    ],
)
def test_each_character_has_a_twin_of_its_width(text: str, encoding: str, shown: str):
    assert plain_chars(text, encoding) == shown
    assert cell_len(shown) == cell_len(text)


@pytest.mark.slow
async def test_every_screen_keeps_to_ascii(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LC_ALL", "C")
    async with desk() as it:
        for key in ("", "e", "t", "question_mark", "ctrl+p", "x", "d"):
            before = it.text()
            if key:
                await it.press(key)
                await it.until(lambda before=before: it.text() != before, f"what {key} opens")
            assert it.text().isascii()
            assert {cell_len(row) for row in it.text().splitlines()} == {120}
            if key:
                await it.press("escape")
                await it.until(lambda: it.app.screen is it.run, f"the run after {key}")


async def test_hostile_text_keeps_to_ascii_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LC_ALL", "C")
    async with desk(tapes.hostile_tape(), ready="") as it:
        await it.shows("WAITING")
        assert it.text().isascii()


@pytest.mark.slow
async def test_it_can_be_wished_for_and_refused(monkeypatch: pytest.MonkeyPatch):
    async with desk(look=Look(ascii=True)) as it:
        await it.shows("+- Timeline -", "o input --* worker")
    monkeypatch.setenv("LC_ALL", "C")
    async with desk(look=Look(ascii=False)) as it:
        await it.shows("╭─ Timeline ─", "○ input ──● worker")
