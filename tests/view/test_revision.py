"""What became of a text: words, moved paragraphs, both versions side by side; and what it costs at most."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui.view.diff_lines import excerpt
from hitl_tui.view.revision import Revision, revision
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import plain_text
from hitl_tui.view.word_diff import Fragments, compare_words, cut_unchanged, fragment_spans

CLOSURE = "A closure is a function together with the variables it can see. It keeps a reference to its scope."
KITCHEN = "In a kitchen you might say that a recipe is a function, and that a closure is a recipe."
TRAVEL = "This matters because functions travel. They are returned, stored and handed to other code."
WORDS = st.text(st.sampled_from("ab ,.\n\u0301"), max_size=40)


def lines(found: Revision) -> list[tuple[str, str]]:
    return [(line.kind, line.text) for line in found]


def said(parts: Fragments) -> str:
    return "".join(part.text for part in parts)


def test_changed_words_are_shown_in_their_line() -> None:
    found = revision(CLOSURE, CLOSURE.replace("a reference to its scope", "what it needs of its scope"))
    assert lines(found) == [
        (
            "changed",
            "A closure is a function together with the variables it can see. "
            "It keeps [-a reference to-] {+what it needs of+} its scope.",
        )
    ]
    assert found.summary() == "4 words changed"


def test_a_paragraph_elsewhere_is_shown_as_moved() -> None:
    found = revision("\n\n".join((CLOSURE, KITCHEN, TRAVEL)), "\n\n".join((TRAVEL, CLOSURE, KITCHEN)))
    assert lines(found) == [
        ("moved", "↑ moved up to here"),
        ("same", TRAVEL),
        ("same", ""),
        ("same", CLOSURE),
        ("same", ""),
        ("same", KITCHEN),
        ("moved", "↑ moved up: “This matters because functions travel. …”"),
    ]
    assert found.summary() == "1 paragraph moved up"
    down = revision(f"{TRAVEL}\n\n{CLOSURE}\n\n{KITCHEN}", f"{CLOSURE}\n\n{KITCHEN}\n\n{TRAVEL}")
    assert "↓ moved down to here" in [line.text for line in down]


def test_a_paragraph_whose_lines_are_broken_otherwise_has_not_changed_but_for_its_words() -> None:
    found = revision(
        "Lines of a\nparagraph that\nsays something.", "Lines of a long\nparagraph that says\nsomething."
    )
    assert [line.text for line in found] == ["Lines of a {+long+}", "paragraph that says", "something."]
    assert found.summary() == "1 word changed"


def test_a_line_of_code_that_went_is_a_line() -> None:
    found = revision("def f(x):\n    y = 1\n    return x\n", "def f(x, z):\n    return x + z\n")
    assert lines(found) == [
        ("changed", "def f(x{+, z+}):"),
        ("removed", "    y = 1"),
        ("changed", "    return x {++ z+}"),
        ("same", ""),
    ]


def test_a_replaced_text_is_not_shown_as_changed_words() -> None:
    assert lines(revision("one two three", "four five six seven")) == [
        ("removed", "one two three"),
        ("added", "four five six seven"),
    ]


def test_an_item_moves_in_a_list_and_a_comma_is_no_change() -> None:
    items = ["send the first letter", "call them on the phone", "wait for what they say"]
    found = revision(items, [items[2], items[0], items[1]])
    assert [line.text for line in found if line.kind != "same"] == [
        "↑ moved up to here",
        '↑ moved up: “"wait for what they say"”',
    ]


@given(WORDS, WORDS)
def test_a_revision_has_every_word_of_both_texts(old: str, new: str) -> None:
    found = compare_words(old, new)
    assert said(found.old) == old
    assert said(found.new) == new
    kept = [part for part in found.merged if part.kind != "removed"]
    assert said(tuple(kept)) == new


@given(WORDS, WORDS)
def test_each_side_has_every_line_of_its_version(old: str, new: str) -> None:
    pairs = [*revision(old, new).pairs]
    for side, text in ((0, old), (1, new)):
        rows = [(pair.left, pair.right)[side] for pair in pairs]
        sides = [said(tuple(p for p in row if p.kind != "note")) for row in rows if row is not None]
        assert [row for row in sides if row.strip()] == [
            line for line in sanitise(text).split("\n") if line.strip()
        ]


@given(WORDS, WORDS)
def test_what_is_said_of_the_lines_is_so(old: str, new: str) -> None:
    found = revision(old, new)
    assert [*found.kinds] == [line.kind for line in found]
    assert found.changed == [at for at, line in enumerate(found) if line.kind != "same"]
    assert [*found.texts(marked=True)] == [line.text for line in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("x" * 1_000_000, "y" * 1_000_000, id="a word of a megabyte"),
        pytest.param("ab " * 333_333, "ba " * 333_333, id="a line of a megabyte"),
        pytest.param("\n" * 1_000_000, "\n" * 999_000, id="a megabyte of newlines"),
        pytest.param("a\n" * 500_000, "b\n" * 500_000, id="a megabyte of lines"),
        pytest.param("a b\n" * 20_000, "b a\n" * 20_000, id="the same lines again and again"),
        pytest.param(
            "\n\n".join(["a b c d e"] * 20_000), "\n\n".join(["b c d e f"] * 20_000), id="paragraphs"
        ),
        pytest.param(["a " * 20] * 5_000, ["b " * 20] * 5_000, id="items"),
    ],
)
def test_comparison_by_words_is_bounded(old: Any, new: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    def counted(*texts: str) -> Any:
        found = compare_words(*texts)
        steps.append(found.steps)
        return found

    monkeypatch.setattr("hitl_tui.view.revision.compare_words", counted)
    found = revision(old, new)
    assert len(found) > 0
    assert sum(steps) < 1_000_000
    assert all(len(plain_text(line)) < 2_000 for line in excerpt(found, 6, marked=True))


def test_a_word_in_a_line_of_a_megabyte_is_found() -> None:
    text = "words and more " * 70_000
    found = revision(f"{text}the end{text}", f"{text}another end{text}")
    (line,) = excerpt(found, 3, marked=True)
    assert "[-the-] {+another+}" in plain_text(line)
    assert len(plain_text(line)) < 200


def test_what_is_far_from_a_change_is_left_out() -> None:
    both = compare_words("a " * 300 + "old " + "b " * 300, "a " * 300 + "new " + "b " * 300)
    shown = plain_text(fragment_spans(cut_unchanged(both.merged, 10), marked=True))
    assert shown == "… a a a a [-old-] {+new+} b b b b b …"


def test_both_versions_are_sanitised() -> None:
    for line in revision("a word\x1b[2J here", "a word\u202e here"):
        assert "\x1b" not in line.text
        assert "\u202e" not in line.text
