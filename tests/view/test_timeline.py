"""The timeline: forks below, one column a step, only what is around the selected step."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hitl_tui.drivers.protocol import Relative
from hitl_tui.engine.log.outcomes import ErrorInfo
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.view.cells import cells
from hitl_tui.view.glyphs import ASCII, UNICODE, Glyphs
from hitl_tui.view.run_view import RunView, open_view
from hitl_tui.view.spans import plain_text
from hitl_tui.view.timeline import Direction, Place, TimelineLayout, layout, neighbours
from tests.support import tape as tapes
from tests.support.spec import spec
from tests.support.tape import FORK, THREAD, relative

pytestmark = spec("11")


def view_of(tape: tapes.Tape) -> RunView:
    return open_view(tape.end)


def picture(found: TimelineLayout) -> list[str]:
    return [plain_text(row) for row in found.rows]


def test_the_picture_of_a_thread_and_its_fork() -> None:
    tape = tapes.advisor_tape()
    found = layout(view_of(tape), tape.family, None, 100)
    assert picture(found) == [
        "0         1          2           3          4                 5",
        "○ input ──● worker ──● advisor ──● worker ──◉ advisor ‖ you"
        "                        closure-explainer",
        "                     ╰───────────✎ by ann ──● advisor ────────● worker ✔ end"
        "     closure-explainer-b",
    ]
    assert found.head is not None
    assert found.head.place == (THREAD, 4)
    assert found.selected is None
    assert found.hidden == 0
    assert found.at(2, found.head.x0) == (FORK, 4)
    assert found.at(0, 0) is None


def test_a_step_whose_node_asked_inside_names_who_answered() -> None:
    view = view_of(tapes.advisor_tape())

    def entry(kind: str, actor: str | None, data: object, step: int) -> LedgerEntry:
        return LedgerEntry(THREAD, 1, kind, step, "r", actor, None, b"", data, 1, b"", b"", made_by="person")

    asked = entry("request", None, {"node": "worker", "when": "inside"}, 2)
    answered = entry("answer", "ann", {"answer": "yes"}, 2)
    labels = picture(layout(replace(view, ledger=(asked, answered)), (), None, 100))
    assert "─● worker (ann) ──" in labels[1]
    gate = entry("request", None, {"node": "worker", "when": "after"}, 2)
    assert "ann" not in picture(layout(replace(view, ledger=(gate, answered)), (), None, 100))[1]


def test_a_step_with_a_note_has_a_mark() -> None:
    tape = tapes.advisor_tape()
    view = view_of(tape)
    notes = [
        LedgerEntry(THREAD, n, "note", step, None, "ann", "look", b"", None, 1, b"", b"")
        for n, step in enumerate((2, 0), 1)
    ]
    noted = replace(view, ledger=(*view.ledger, *notes))
    line = picture(layout(noted, tape.family, None, 140))[1]
    assert line.startswith("○ input ¶ ──● worker ──● advisor ¶ ──● worker ──")
    assert picture(layout(noted, tape.family, None, 140, ASCII))[1].startswith(
        'o input " --* worker --* advisor " --'
    )


def test_the_number_of_the_viewed_step_is_in_brackets() -> None:
    tape = tapes.advisor_tape()
    found = layout(view_of(tape), tape.family, (THREAD, 2), 100)
    assert picture(found)[0] == "0         1         [2]          3          4                 5"
    assert found.selected is not None
    assert found.selected.place == (THREAD, 2)


def test_the_same_picture_in_ascii() -> None:
    tape = tapes.advisor_tape()
    rows = picture(layout(view_of(tape), tape.family, None, 100, ASCII))
    assert all(row.isascii() for row in rows)
    assert rows[1].startswith("o input --* worker --* advisor --* worker --@ advisor | you")


def test_a_fork_is_drawn_below_its_parent_at_its_fork_step() -> None:
    tape = tapes.advisor_tape()
    fork = tape.family[0]
    view = replace(
        view_of(tape),
        thread_id=FORK,
        parent=THREAD,
        fork_step=2,
        checkpoints=fork.checkpoints,
        progress=msgspec.structs.replace(tape.end.progress, head=5, status="completed"),
    )
    parent = Relative(
        THREAD, None, -1, tapes.summary(THREAD, None, -1, 4, status="waiting"), tape.end.checkpoints
    )
    rows = picture(layout(view, [parent], None, 120))
    assert rows[1].startswith("○ input ──● worker ──● advisor ──● worker ──● advisor ‖ you")
    assert rows[2].startswith("                     ╰───────────✎ by ann ──● advisor ────────◉ worker ✔ end")
    # What both have is the open thread's own, and its way leads on to what it did itself.
    assert neighbours(view, [parent], (THREAD, 3), "left") == (FORK, 2)
    assert neighbours(view, [parent], (FORK, 3), "left") == (FORK, 2)
    assert neighbours(view, [parent], (FORK, 2), "right") == (FORK, 3)
    found = layout(view, [parent], (THREAD, 1), 120)
    assert found.selected is not None
    assert (found.selected.row, found.selected.place) == (1, (FORK, 1))


def test_a_fork_without_steps_is_drawn_at_its_fork_step() -> None:
    tape = tapes.advisor_tape()
    progress = msgspec.structs.replace(tape.end.progress, head=2, status="waiting", reason="paused")
    view = replace(
        view_of(tape),
        thread_id="new",
        parent=THREAD,
        fork_step=2,
        checkpoints=tape.end.checkpoints[:3],
        progress=progress,
    )
    summary = tapes.summary(THREAD, None, -1, 4, status="waiting")
    parent = Relative(THREAD, None, -1, summary, tape.end.checkpoints)
    found = layout(view, [parent, tape.family[0]], None, 120)
    assert found.head is not None
    assert found.head.place == ("new", 2)
    assert "◉ advisor ‖ paused" in picture(found)[found.head.row]
    assert neighbours(view, [parent], ("new", 2), "left") == ("new", 1)
    assert neighbours(view, [parent], ("new", 1), "right") == ("new", 2)
    for width in range(1, 120):  # however narrow, and whatever step of its parent is shown
        for step in range(3):
            layout(view, [parent, tape.family[0]], (THREAD, step), width)


def test_where_the_whole_family_has_room_what_is_elsewhere_says_where_it_parts() -> None:
    view = long_view(100)
    family = [relative("b", THREAD, 50, 60), relative("z", THREAD, 98, 101)]
    rows = picture(layout(view, family, (THREAD, 10), 118, whole=True))
    assert "differs after 50, ends at 60 ›" in rows[3]
    assert rows[3].split()[-1] == "b"
    rows = picture(layout(view, family, (THREAD, 90), 118, whole=True))
    assert rows[3].startswith("‹ differs after 50, ends at 60")


def test_the_first_thread_of_a_family_parts_from_none_where_it_ends_before_the_shown_steps() -> None:
    tape = tapes.advisor_tape()
    view = replace(long_view(100), thread_id="new", parent=THREAD, fork_step=1)
    parent = Relative(
        THREAD, None, -1, tapes.summary(THREAD, None, -1, 4, status="completed"), tape.end.checkpoints
    )
    assert picture(layout(view, [parent], None, 120, whole=True))[1].split() == [
        "‹",
        "ends",
        "at",
        "4",
        THREAD,
    ]


def test_grandchildren_and_siblings_are_each_below_their_parent() -> None:
    tape = tapes.advisor_tape()
    family = [relative("b", THREAD, 1, 3), relative("b-c", "b", 2, 4), relative("a", THREAD, 0, 2)]
    rows = [row.split()[-1] for row in picture(layout(view_of(tape), family, None, 120))[1:]]
    assert rows == [THREAD, "b", "b-c", "a"]


@pytest.mark.parametrize(
    ("tape", "tail"),
    [
        pytest.param(tapes.finished_tape(), "✔ end", id="completed"),
        pytest.param(tapes.failed_tape(), "✗ advisor failed", id="failed names the node"),
        pytest.param(tapes.advisor_tape(), "‖ you", id="waiting for a person"),
    ],
)
def test_the_head_shows_the_threads_status(tape: tapes.Tape, tail: str) -> None:
    assert tail in picture(layout(view_of(tape), (), None, 80))[1]


@pytest.mark.parametrize(
    ("tape", "role"),
    [
        pytest.param(tapes.finished_tape(), "ok", id="completed"),
        pytest.param(tapes.failed_tape(), "error", id="failed"),
        pytest.param(tapes.advisor_tape(), "accent", id="waiting for a person"),
    ],
)
def test_the_newest_step_has_the_colour_of_the_thread(tape: tapes.Tape, role: str) -> None:
    (head,) = [span for span in layout(view_of(tape), (), None, 80).rows[1] if "◉" in span.text]
    assert head.role == role


def test_no_node_is_blamed_for_what_failed_outside_of_it() -> None:
    view = view_of(tapes.failed_tape())
    outside = ErrorInfo("", 1, "The store could not be written", "no space left")
    row = picture(layout(replace(view, error=outside), (), None, 80))[1]
    assert "✗ failed" in row
    assert "advisor failed" not in row


@pytest.mark.parametrize(
    ("place", "direction", "reached"),
    [
        pytest.param((THREAD, 4), "left", (THREAD, 3), id="left goes back"),
        pytest.param((THREAD, 0), "left", (THREAD, 0), id="left of the input is nothing"),
        pytest.param((THREAD, 4), "right", (THREAD, 4), id="right of the head is nothing"),
        pytest.param((THREAD, 4), "down", (FORK, 4), id="down goes to the same step of the fork"),
        pytest.param((THREAD, 1), "down", (FORK, 3), id="down goes to the nearest step of the fork"),
        pytest.param((FORK, 5), "up", (THREAD, 4), id="up goes to the nearest step of the parent"),
        pytest.param((FORK, 3), "left", (THREAD, 2), id="left of a fork's first step is its parent"),
        pytest.param((FORK, 5), "down", (FORK, 5), id="below the last line is nothing"),
        pytest.param((FORK, 1), "right", (THREAD, 2), id="a shared step is one of the parent"),
        pytest.param(("gone", 9), "left", (THREAD, 3), id="an unknown place is taken as the open thread's"),
    ],
)
def test_keys_move_along_the_tree(place: Place, direction: Direction, reached: Place) -> None:
    tape = tapes.advisor_tape()
    assert neighbours(view_of(tape), tape.family, place, direction) == reached


def test_an_empty_thread_has_no_rows() -> None:
    assert layout(open_view(tapes.advisor_tape().begin), (), None, 80).rows == ()


def long_view(steps: int) -> RunView:
    view = view_of(tapes.advisor_tape())
    points = tuple(
        msgspec.structs.replace(view.checkpoints[1 + step % 3], step=step) for step in range(steps)
    )
    return replace(view, checkpoints=points, progress=msgspec.structs.replace(view.progress, head=steps - 1))


def test_of_a_hundred_thousand_steps_only_those_around_the_selected_one_are_laid_out() -> None:
    view = long_view(100_000)
    found = layout(view, (relative("b", THREAD, 50, 60),), (THREAD, 500), 118)
    numbers, line = picture(found)
    assert numbers.startswith("‹ 498 earlier ")
    assert numbers.endswith(" later ›")
    assert line.startswith("──────")
    assert found.hidden == 1
    assert found.selected is not None
    assert found.head is None


@st.composite
def trees(draw: st.DrawFn) -> tuple[RunView, list[Relative], Place]:
    head = draw(st.integers(min_value=0, max_value=30))
    view = long_view(head + 1)
    heads, starts = {THREAD: head}, {THREAD: -1}
    family: list[Relative] = []
    for n in range(draw(st.integers(min_value=0, max_value=7))):
        parent = draw(st.sampled_from(sorted(heads)))
        fork_step = draw(st.integers(min_value=max(starts[parent], 0), max_value=heads[parent]))
        name = draw(st.sampled_from(["b", "漢字漢字", "a-long-name-of-a-thread-indeed", "x\x1by"])) + str(n)
        heads[name] = fork_step + draw(st.integers(min_value=0, max_value=6))
        starts[name] = fork_step
        status = draw(st.sampled_from(["completed", "waiting", "failed", "running", "cancelled", "pending"]))
        family.append(relative(name, parent, fork_step, heads[name], status))
    thread = draw(st.sampled_from(sorted(heads)))
    return view, family, (thread, draw(st.integers(min_value=-1, max_value=heads[thread] + 1)))


@settings(deadline=None, max_examples=60)
@given(trees(), st.integers(min_value=1, max_value=140), st.sampled_from([UNICODE, ASCII]))
@pytest.mark.slow
def test_any_tree_fits_its_width_and_nothing_overlaps(
    tree: tuple[RunView, list[Relative], Place], width: int, glyphs: Glyphs
) -> None:
    view, family, place = tree
    found = layout(view, family, place, width, glyphs)
    for row in found.rows:
        assert cells(plain_text(row)) <= width
    for row in range(len(found.rows)):
        hits = sorted((hit.x0, hit.x1) for hit in found.hits if hit.row == row)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(hits))
        assert all(end <= width for _, end in hits)
    if width >= 40:
        assert found.selected is not None
        for hit in found.hits:
            assert cells(plain_text(found.rows[hit.row])) >= hit.x1
            assert found.at(hit.row, hit.x0) == hit.place


@settings(deadline=None, max_examples=60)
@given(trees(), st.sampled_from(["left", "right", "up", "down"]))
@pytest.mark.slow
def test_from_any_place_keys_lead_to_a_place_that_is_shown(
    tree: tuple[RunView, list[Relative], Place], direction: Direction
) -> None:
    view, family, place = tree
    reached = neighbours(view, family, place, direction)
    found = layout(view, family, reached, 120)
    assert found.selected is not None
    assert found.selected.place == reached
