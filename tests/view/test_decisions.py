"""The filter of decisions, and how they are laid out in columns."""

from __future__ import annotations

from datetime import datetime

import pytest

from hitl_tui.drivers.decided import DecisionFilter, Wanted
from hitl_tui.view.cells import cells
from hitl_tui.view.decisions import columns_of, decision_line, moment_of, read_filter, sentence_of, with_mine
from hitl_tui.view.followed import DecisionOutcome
from hitl_tui.view.spans import plain_text

NOW = 1_763_000_000_000_000
DAY = 86_400_000_000


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1e6)


def decision(**changes: object) -> DecisionOutcome:
    facts = {
        "thread": "r1", "n": 1, "kind": "answer", "step": 3, "at": NOW, "note": None, "title": "Is it good?",
        "answer": "approve", "ran": (), "status": "completed", "reason": "end", "question": "",
        "take_back": (), "actor": "ann",
    }  # fmt: skip
    return DecisionOutcome(**{**facts, **changes})  # type: ignore[arg-type]


def row(shown: DecisionOutcome, width: int) -> str:
    return plain_text(decision_line(shown, columns_of([shown], width)))


def test_words_people_threads_and_times_are_distinguished() -> None:
    wanted, problems = read_filter('Packed "two words" -dull by:An -by:bob thread:r since:7d', NOW, "me")
    assert problems == ()
    assert wanted == DecisionFilter(
        words=(Wanted("packed"), Wanted("two words"), Wanted("dull", True)),
        people=(Wanted("an"), Wanted("bob", True)),
        threads=(Wanted("r"),),
        since=NOW - 7 * DAY,
    )


def test_by_me_is_the_whole_name_of_who_asks() -> None:
    assert read_filter("by:me", NOW, "ann").wanted == DecisionFilter(person="ann")


def test_what_looks_like_an_address_is_a_word() -> None:
    assert read_filter("https://x.org 10:30", NOW, "me").wanted.words == (
        Wanted("https://x.org"), Wanted("10:30"),
    )  # fmt: skip


def test_what_is_being_typed_is_no_problem() -> None:
    assert read_filter("by: since: -", NOW, "me") == (DecisionFilter(words=(Wanted("-"),)), ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("bye:ann", "there is no bye: to filter by; did you mean 'by'?"),
        ("since:soon", "since: 'soon' is no time: write 7d, today, yesterday or 2026-11-20"),
        ("until:2026-02-30", "until: 2026-02-30 is no day"),
    ],
)
def test_what_can_not_be_read_is_said(text: str, problem: str) -> None:
    assert read_filter(text, NOW, "me").problems == (problem,)


def test_days_begin_and_end_at_midnight_here() -> None:
    now = at("2026-11-28 13:00")
    assert moment_of("today", now) == at("2026-11-28")
    assert moment_of("yesterday", now, end=True) == at("2026-11-28")
    assert moment_of("2026-11-20", now) == at("2026-11-20")
    assert moment_of("2026-11-20", now, end=True) == at("2026-11-21")
    assert moment_of("12h", now) == now - DAY // 2


def test_mine_is_switched_on_and_off() -> None:
    assert with_mine("phone") == "by:me phone"
    assert with_mine('by:me phone "two words"') == 'phone "two words"'


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_rows_fill_the_width_and_texts_share_it(width: int) -> None:
    long = decision(note="because " * 40, title="Is it " * 30, thread="a" * 100)
    columns = columns_of([long], width)
    assert sum(columns) + 2 * (len(columns) - 1) == width
    assert min(columns) >= 3
    assert cells(row(long, width)) == width


def test_a_narrow_row_has_the_day_and_a_wide_one_the_time_too() -> None:
    moment = datetime.fromtimestamp(NOW / 1e6)
    for width, text in ((80, f"{moment:%Y-%m-%d}  "), (120, f"{moment:%Y-%m-%d %H:%M}  ")):
        assert row(decision(), width).startswith(text)


def test_a_text_has_the_room_that_others_leave() -> None:
    title = "Is this a good and long enough title for a row?"
    assert title in row(decision(title=title), 120)


@pytest.mark.parametrize(
    ("changes", "what", "then"),
    [
        ({}, "approved “Is it good?”", "done"),
        ({"answer": "revise", "question": "Now?", "status": ""}, "sent back “Is it good?”", "asked “Now?”"),
        ({"kind": "update_state", "subjects": ("draft",)}, "edited draft", "done"),
        ({"kind": "claim_taken", "ran": ("pay",)}, "took over the claim: “Is it good?”", "done after pay"),
        ({"status": "failed", "reason": "limit"}, "approved “Is it good?”", "failed (limit)"),
        ({"status": "cancelled", "reason": "user"}, "approved “Is it good?”", "cancelled"),
        ({"status": "waiting", "reason": "paused"}, "approved “Is it good?”", "paused"),
        ({"answer": "", "kind": "vote"}, "voted on “Is it good?”: ", "done"),
    ],
)  # fmt: skip
def test_a_row_says_what_was_done_and_what_came_of_it(
    changes: dict[str, object], what: str, then: str
) -> None:
    shown = row(decision(**changes), 160).rstrip()
    assert what.strip() in shown
    assert shown.endswith(then)


def test_a_decision_in_words() -> None:
    said = sentence_of(decision(note="it reads well", actor=None))
    assert said.endswith("a program, r1: approved “Is it good?”; because: it reads well; result: done")


def test_texts_from_outside_can_not_draw() -> None:
    hostile = decision(note="a\x1b[31mb\u202ec", actor="x\x1b]0;y", thread="t\x9b", title="q\nr")
    for text in (row(hostile, 120), sentence_of(hostile)):
        assert not any(ord(char) < 32 or char in "\x9b\u202e" for char in text)
