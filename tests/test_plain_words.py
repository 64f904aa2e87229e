"""The guides are in plain English, and the check finds what is not; `.ci/run` also checks the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools import plain_words, ui_strings


def test_the_guides_are_in_plain_english() -> None:
    assert [finding for finding in plain_words.guide_findings() if not finding.is_excepted] == []


@pytest.mark.parametrize(
    ("place", "text", "said"),
    [
        (plain_words.GUIDES, "The run goes on behind the gate.", ["goes on", "behind"]),
        (plain_words.GUIDES, "The run continues after the gate.", []),
        (plain_words.MESSAGES, "the answer needs words of yours", ["words of yours"]),
        (plain_words.TEST_NAMES, "test what was told is mended", ["told", "mended"]),
        (plain_words.DOCSTRINGS, "At whoever of whom is there.", ["whoever"]),
    ],
)
def test_banned_words_are_found(place: str, text: str, said: list[str]) -> None:
    assert [found for found, _ in plain_words.words_in(place, text)] == said


@pytest.mark.parametrize(
    ("name", "line", "empty"),
    [
        ("update_lines", "The lines of an update.", True),
        ("update_lines", "Return how a pane shows it.", False),
    ],
)
def test_a_docstring_that_repeats_its_name_says_nothing(name: str, line: str, empty: bool) -> None:
    assert plain_words.says_nothing(name, line) is empty


def test_prose_is_separated_from_code_tables_and_pictures() -> None:
    parts = [
        "# Title",
        "One `a b` two.",
        "```bash\ncode\n```",
        "| a | b |",
        "![x](y)",
        "- An item.\n- [A link](y).",
    ]
    page = "\n\n".join(parts)
    assert list(plain_words.paragraphs(page)) == ["One CODE two.", "An item.", "[A link]."]


def test_texts_of_errors_and_help_are_listed_but_not_docstrings(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ui_strings.PACKAGE / "engine/graph/retry.py"
    texts = [text.text for text in ui_strings.ui_texts(path)]
    assert any("a retry needs a whole number of max_attempts" in text for text in texts)
    assert "Try a failing node again." not in texts
    assert any(
        text.text == "there is no limit {}" for text in ui_strings.ui_texts(Path(path.parent / "limits.py"))
    )
