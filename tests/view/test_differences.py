"""Wherever a difference is shown the words that differ stand out in their line: one module finds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hitl_tui
from hitl_tui.view.copying import diff_copy
from hitl_tui.view.diff_lines import compare_states, diff_text, side_by_side
from hitl_tui.view.revision import revision

ROOT = Path(hitl_tui.__file__).parent
OLD = "An index is a structure that the database keeps beside the table."
NEW = "An index is a phone book that the database keeps beside the table."
SHOWS = {
    "cli/inspect.py": "diff_text",  # diff, also what a rerun made of it
    "cli/decide.py": "changed_since",  # a decision about a step that has moved
    "cli/change.py": "changed_since",
    "plain/deciding.py": "revision",  # an edit before it is made, in lines
    "ui/screens/compare.py": "side_by_side",  # two steps, threads or forks, also behind a rerun
    "ui/screens/edit.py": "revision",  # an edit before it is made
    "view/copying.py": "revision",  # what is copied
    "view/card.py": "revision",  # the draft beside its last version
    "view/queue_lines.py": "revision",  # the preview of the queue
    "view/report.py": "revision",  # exports in Markdown and HTML
    "view/request_lines.py": "changes",  # the card in lines, and in the document of a notice
    "view/review.py": "revision",  # what the card says of what it asks about
    "view/session.py": "diff_lines",  # a decision that was refused since its thread has moved
    "view/value_source.py": "revision",  # the value's pane, with the steps' differences
}


def imported(file: Path) -> Iterator[tuple[str, str]]:
    """The modules and names that a module imports."""
    text = file.read_text(encoding="utf-8")
    if "view" not in text and "difflib" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, name.name) for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names)


@pytest.mark.slow
def test_each_place_that_shows_a_difference_has_it_by_words_and_no_other_finds_any() -> None:
    modules = {file.relative_to(ROOT).as_posix(): set(imported(file)) for file in ROOT.rglob("*.py")}
    for place, name in SHOWS.items():
        names = {known for module, known in modules[place] if module.startswith("hitl_tui.view.")}
        assert name in names, place
    by_lines = {
        place
        for place, names in modules.items()
        if any(module == "hitl_tui.view.diff" for module, _ in names)
    }
    # Blame tells who wrote a line, the lens counts lines, and the reader compares lines by words.
    assert by_lines == {"view/revision.py", "view/blame.py", "view/lens.py", "view/reader.py"}
    matchers = {place for place, names in modules.items() if ("difflib", "SequenceMatcher") in names}
    assert matchers == {"view/diff.py"}


def test_changed_words_are_marked_in_every_form_of_the_diff() -> None:
    (row,) = compare_states({"draft": OLD}, {"draft": NEW})
    text = "\n".join(diff_text([row]))
    assert "[-structure-]" in text
    assert "{+phone book+}" in text
    assert text.count("An index is a") == 1
    (pair,) = side_by_side(row)
    assert pair.left is not None
    assert pair.right is not None
    assert [part.text.strip() for part in pair.left if part.kind == "removed"] == ["structure"]
    assert [part.text.strip() for part in pair.right if part.kind == "added"] == ["phone book"]
    assert "".join(part.text for part in pair.left) == OLD
    assert "[-structure-] {+phone book+}" in diff_copy(revision(OLD, NEW))
