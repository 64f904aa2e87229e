"""The family as a tree: each fork below what it was forked from, and where it parts."""

from __future__ import annotations

from hitl_tui.drivers.protocol import Relative
from hitl_tui.view.family import family_line, family_tree, free_name, tree_width
from hitl_tui.view.spans import plain_text
from tests.support import tape as tapes
from tests.support.tape import FORK, THREAD, relative


def test_each_fork_is_below_its_parent_with_its_fork_step() -> None:
    tape = tapes.advisor_tape()
    root = Relative(
        THREAD, None, -1, tapes.summary(THREAD, None, -1, 4, status="waiting"), tape.end.checkpoints
    )
    early, late = relative("a", THREAD, 0, 2), relative("b-c", FORK, 4, 6)
    members = family_tree([late, *tape.family, root, early])
    width = tree_width(members)
    lines = [plain_text(family_line(each, width, shown=False, now=0)) for each in members]
    assert [each.relative.thread_id for each in members] == [THREAD, "a", FORK, "b-c"]
    assert [
        line[: line.index(each.relative.thread_id)] for line, each in zip(lines, members, strict=True)
    ] == [
        "",
        "├─ ",
        "╰─ ",
        "   ╰─ ",
    ]
    assert lines[2].rstrip().endswith("differs after step 2: edited by ann")
    assert "parts" not in lines[0]


def test_a_family_without_its_root_is_shown() -> None:
    assert [each.branch for each in family_tree([relative("b", "gone", 1, 2)])] == [""]


def test_a_fork_gets_the_first_free_letter() -> None:
    assert free_name("run", {"run"}) == "run-b"
    assert free_name("run-b", {"run", "run-b"}) == "run-c"
