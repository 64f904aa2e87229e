"""The sanitiser: nothing that steers a terminal or deceives a reader gets through."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import plain_text, untrusted

ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.text(
    st.sampled_from(
        "a1#\n\t\r\x1b\x9b\u202e\u200d\u200c\ufe0f\ufe0e\u20e3\u0301\u0489❤👩🏽♂\ud800\ue000\u115f⟨"
    )
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain – “text”\n\tв 漢字 é ½ → ┌ ✔ 🙂", None, id="clean text in any script is kept"),
        pytest.param("[bold]x[/] & <b>", None, id="markup is kept, for nobody parses it"),
        pytest.param("\x1b[31m\x00\x07\x7f", "␛[31m␀␇␡", id="control characters become their pictures"),
        pytest.param("a\r\nb\rc", "a\nb␍c", id="a CR goes before a newline and shows elsewhere"),
        pytest.param("\x9b1m\x85", "⟨U+009B⟩1m⟨U+0085⟩", id="C1 controls are named"),
        pytest.param("a\u202eb\u2066\u200f", "a⟨U+202E⟩b⟨U+2066⟩⟨U+200F⟩", id="bidi controls are named"),
        pytest.param(
            "\u200b\u200c\ufeff\u00ad\u2060", "⟨U+200B⟩⟨U+200C⟩⟨U+FEFF⟩⟨U+00AD⟩⟨U+2060⟩", id="invisible"
        ),
        pytest.param("\U000e0041\u3164", "⟨U+E0041⟩⟨U+3164⟩", id="tags and fillers are named"),
        pytest.param("a\u2800\u2801", "a⟨U+2800⟩\u2801", id="an empty braille cell is named"),
        pytest.param("\u2028\u2029", "⟨U+2028⟩⟨U+2029⟩", id="line and paragraph separators are named"),
        pytest.param(
            "\ud83d\ue000\u0378", "⟨U+D83D⟩⟨U+E000⟩⟨U+0378⟩", id="surrogate, private use, unassigned"
        ),
        pytest.param("👩🏽‍🍳 ❤️ 👨‍👩‍👧 1️⃣", None, id="joined emoji stay whole"),
        pytest.param("a\u200db\ufe0f", "a⟨U+200D⟩b⟨U+FE0F⟩", id="a joiner outside an emoji is named"),
        pytest.param(
            "a\u180bb\u034fc", "a⟨U+180B⟩b⟨U+034F⟩c", id="selectors and joiners of scripts are named"
        ),
        pytest.param("👩\u200dx", "👩⟨U+200D⟩x", id="a joiner of an emoji and a letter is named"),
        pytest.param("❤\ufe0f\ufe0f", "❤\ufe0f⟨U+FE0F⟩", id="a second selector is named"),
        pytest.param("a" + "\u0301" * 9, "a" + "\u0301" * 4 + "⟨+5 marks⟩", id="a pile of marks is cut"),
        pytest.param("a\n\u0301b", "a\n◌\u0301b", id="a mark at the start of a line stands on a circle"),
        pytest.param("", None, id="nothing stays nothing"),
    ],
)
def test_sanitised_text(text: str, shown: str | None) -> None:
    assert sanitise(text) == (text if shown is None else shown)


@given(ANY_TEXT)
def test_no_text_gets_a_forbidden_character_through(text: str) -> None:
    shown = sanitise(text)
    for at, char in enumerate(shown):
        joined = char in "\u200d\ufe0e\ufe0f" and at > 0 and ord(shown[at - 1]) > 0x22
        assert (
            char in "\n\t"
            or joined
            or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        )
    shown.encode()


@given(ANY_TEXT)
def test_a_second_run_changes_nothing(text: str) -> None:
    once = sanitise(text)
    assert sanitise(once) == once
    line = sanitise(text, multiline=False)
    assert sanitise(line, multiline=False) == line


@given(ANY_TEXT, st.integers(min_value=-1, max_value=30))
def test_a_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = sanitise_line(text, limit)
    assert len(line) <= max(limit, 0)
    assert not re.search(r"[\n\t\x1b\x9b]", line)
    assert plain_text((untrusted(text, limit=limit),)) == line


def test_a_short_text_is_not_cut() -> None:
    assert sanitise_line("a\nb", 3) == "a⏎b"
    assert sanitise_line("abcd", 3) == "ab…"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("hello world, all is well\n" * 40_000, id="plain"),
        pytest.param("\x1b[31mred\x1b[0m" * 80_000, id="escape codes"),
        pytest.param("Füße – “quoted” 漢字\n" * 50_000, id="many scripts"),
        pytest.param("abc\u202e" * 250_000, id="bidi"),
    ],
)
def test_a_megabyte_is_sanitised_whole(text: str) -> None:
    shown = sanitise(text)
    assert len(shown) >= len(text)
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_preview_of_a_huge_text_is_cut() -> None:
    shown = sanitise_line("\u202ex" * 5_000_000, 40)
    assert shown.endswith("…")
    assert len(shown) < 100


def test_a_line_is_never_cut_after_a_joiner() -> None:
    assert sanitise_line("👩\u200d👩x", 3) == "👩…"
