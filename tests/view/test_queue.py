"""The queue of what waits: its order, its filter, its words, its marks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hitl_tui.engine.log.requests import Choice, HandedOn, Request, Vote
from hitl_tui.engine.log.threads import Lease, Presence, ThreadInfo, ThreadSummary, Waiting
from hitl_tui.view.asked import danger_words
from hitl_tui.view.cells import cells
from hitl_tui.view.queue import (
    SORTS,
    Marks,
    QueueRow,
    QueueView,
    due_words,
    notes_words,
    read_filter,
    rows_of,
    soon_words,
    summary_words,
    votes_words,
)
from hitl_tui.view.queue_lines import columns_of, queue_line, second_line
from hitl_tui.view.spans import plain_text

MINUTE = 60_000_000
HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE
NOW = 1_763_036_400_000_000  # 2025-11-13T12:20:00Z
YES = Choice("approve", "approve", "a")


def asked(ident: str = "r", title: str = "Ship it?", **fields: Any) -> Request:
    fields = {"choices": (YES,), "asked_at": NOW - HOUR, **fields}
    return Request(ident, "approve", "n", "after", 3, title, **fields)


def waits(name: str, *pending: Request, graph: str = "g", goal: Any = None, attending: Any = ()) -> Waiting:
    info = ThreadInfo(name, graph, "", {}, None, -1, 0, NOW)
    thread = ThreadSummary(
        info, 3, "waiting", "approval", None, "paused", NOW - HOUR, "n", NOW, attending=attending
    )
    return Waiting(thread, pending, goal, b"state of " + name.encode())


def row(name: str = "t", **fields: Any) -> QueueRow:
    of_thread = {field: fields.pop(field) for field in ("graph", "goal", "attending") if field in fields}
    (only,) = rows_of([waits(name, asked(**fields), **of_thread)])
    return only


def there(actor: str, *, claims: bool = False, request: str = "r", until: int = NOW + 9 * MINUTE) -> Presence:
    lease = Lease("x", actor, "box", 1, 1, until)
    return Presence(request, b"", actor, f"{actor}@box", NOW, until, claims, lasts=True, lease=lease)


def names(view: QueueView, *rows: QueueRow, me: str = "me") -> list[str]:
    return [shown.name for shown in view.shown(rows, NOW, me)]


def test_the_most_urgent_comes_first_expired_then_due_then_high_risk_then_what_has_waited_longest() -> None:
    rows = (
        row("long", asked_at=NOW - DAY),
        row("short", asked_at=NOW - MINUTE),
        row("risky", risk="high", asked_at=NOW),
        row("later", deadline=NOW + DAY),
        row("soon", deadline=NOW + MINUTE),
        row("over", deadline=NOW - MINUTE),
        row("longer over", deadline=NOW - HOUR),
        rows_of([waits("stopped")])[0],
    )
    order = ["longer over", "over", "soon", "later", "risky", "long", "short", "stopped"]
    assert names(QueueView(), *rows) == order
    assert names(QueueView(), *rows[::-1]) == order
    assert names(QueueView(reverse=True), *rows) == order[::-1]


def test_each_request_of_a_thread_is_a_row_with_the_hash_of_the_state_it_was_read_with() -> None:
    first, second = rows_of([waits("t", asked("a"), asked("b"))])
    assert (first.key, second.key) == (("", "t", "a"), ("", "t", "b"))
    assert first.seen == second.seen == b"state of t"


@pytest.mark.parametrize("sort", SORTS)
def test_it_sorts_by_every_column_and_what_is_alike_by_urgency(sort: str) -> None:
    vote = Vote("ben", "approve", NOW)
    first = row(
        "a", graph="a", title="A", risk="high", deadline=NOW + MINUTE, asked_at=NOW - DAY, votes=(vote,),
        attending=(there("ann", claims=True), there("ben")),
    )  # fmt: skip
    first = msgspec.structs.replace(first, source="a")
    last = [row(name, graph="b", title="B", asked_at=NOW - (9 - n) * HOUR) for n, name in enumerate("xy")]
    last = [msgspec.structs.replace(each, source="b") for each in last]
    assert names(QueueView(sort=sort), last[0], first, last[1])[0] == "a"
    assert names(QueueView(sort=sort, reverse=True), last[0], first, last[1])[-1] == "a"
    assert names(QueueView(sort=sort), last[1], last[0]) == ["x", "y"]


def test_each_sort_order_has_its_own_letter() -> None:
    assert len({sort.key for sort in SORTS.values()}) == len(SORTS)


REVISE = (YES, Choice("revise", "send back", "r", "required"))


def test_what_is_due_within_five_minutes_or_handed_to_you_moves_up() -> None:
    handed = HandedOn("me", "ann", None, NOW - MINUTE)
    rows = (
        row("due later", deadline=NOW + 6 * MINUTE),
        row("mine", handed=handed),
        row("soon", deadline=NOW + 4 * MINUTE, asked_at=NOW),
        row("risky", risk="high"),
    )
    assert names(QueueView(), *rows) == ["soon", "mine", "due later", "risky"]
    assert names(QueueView(), *rows, me="ann") == ["soon", "due later", "risky", "mine"]
    assert names(QueueView(sort="thread"), *rows) == ["soon", "due later", "mine", "risky"]
    assert soon_words(rows, NOW) == "1 due in 4 m"
    assert soon_words(rows[:1], NOW) == ""


def test_what_came_since_the_last_look_is_new() -> None:
    handed = HandedOn("me", "ann", None, NOW - MINUTE)
    old, passed = row(asked_at=NOW - HOUR), row(asked_at=NOW - HOUR, handed=handed)
    looked = NOW - 2 * MINUTE
    assert [each.is_new("me", looked) for each in (row(asked_at=NOW), old, passed)] == [True, False, True]
    assert not passed.is_new("bob", looked)
    assert not row(asked_at=NOW).is_new("me", None)


def test_the_most_urgent_line_stands_out_most() -> None:
    rows = (row("soon", deadline=NOW + MINUTE, on_timeout="approve"), row("risky", risk="high"), row("other"))
    columns = columns_of(rows, 120)
    lines = [queue_line(each, columns, 120, NOW, "me", new=each.name == "other") for each in rows]
    assert [line[2].role for line in lines] == ["urgent", "error", "plain"]
    for width in (56, 76, 120, 190):
        columns = columns_of(rows, width)
        drawn = [plain_text(queue_line(each, columns, width, NOW, "me")) for each in rows]
        assert [cells(line) for line in drawn] == [width] * 3
        assert all("Ship it?" in line for line in drawn)
    assert "then it is “approve”" in plain_text(lines[0])
    assert "due in 1 m" in plain_text(lines[0])
    assert plain_text(lines[2]).startswith("• ")
    assert plain_text(second_line(rows[2], 120, NOW, "me")) == "      asked by n, step 3"


def test_what_is_dangerous_stays_visible_at_the_end_of_a_line() -> None:
    call = {
        "action_request": {"action": "run_sql", "args": {"query": "delete from " + "x" * 200}},
        "config": {},
    }
    risky = row(payload=call, shape="agent_inbox")
    assert risky.request is not None
    found = danger_words(risky.request)
    assert found == ("deletes from a database",)
    line = plain_text(second_line(risky, 80, NOW, "me", dangers=found))
    assert line.endswith("…  ! deletes from a database")
    assert cells(line) == 80


ROWS = (
    row("blog-1", graph="advisor", title="Publish the numbers?", risk="high", deadline=NOW + 2 * HOUR),
    row("blog-2", graph="advisor", goal="Explain closures", deadline=NOW - HOUR, asked_at=NOW - 3 * HOUR),
    row("mail", graph="assistant", deadline=NOW + DAY, attending=(there("ben"),), excerpt="Dear Ms Okafor,"),
    row("order", graph="order", choices=(), schema={"type": "object", "properties": {"n": {}}}),
    row(
        "recall",
        quorum=2,
        votes=(Vote("ann", "approve", NOW),),
        attending=(there("me", claims=True),),
        payload={"product": "Kettle"},
        handed=HandedOn("me", "ann", None, NOW),
        choices=REVISE,
        last_answer=Vote("me", {"choice": "revise", "text": "no"}, NOW),
    ),
    rows_of([waits("stopped")])[0],
)


@pytest.mark.parametrize(
    ("text", "passing"),
    [
        ("graph:advisor", "blog-1 blog-2"),
        ("graph:advisor risk:low", "blog-2"),
        ("risk:high", "blog-1"),
        ("-risk:high graph:adv", "blog-2"),
        ("due:expired", "blog-2"),
        ("due:today", "blog-1 blog-2"),
        ("due:tomorrow", "mail"),
        ("due:4h", "blog-1 blog-2"),
        ("due:>4h", "mail"),
        ("due:none", "order recall stopped"),
        ("due:any", "blog-1 blog-2 mail"),
        ("waits:2h", "blog-2"),
        ("waits:<2h", "blog-1 mail order recall stopped"),
        ("votes:ann", "recall"),
        ("votes:any", "recall"),
        ("claimed:me", "recall"),
        ("handed:me", "recall"),
        ("handed:none asks:yes", "blog-1 blog-2 mail order"),
        ("back:me", "recall"),
        ("okafor", "mail"),
        ("kettle", "recall"),
        ("claimed:none -asks:no", "blog-1 blog-2 mail order"),
        ("open:any", "mail"),
        ("open:ben", "mail"),
        ("form:yes", "order"),
        ("asks:no", "stopped"),
        ("closures", "blog-2"),
        ("NUMBERS", "blog-1"),
        ('"the numbers"', "blog-1"),
        ('title:"the numbers"', "blog-1"),
        ("advisor numbers", "blog-1"),
        ("advis -thread:blog-1", "blog-2"),
        ("nothing of it", ""),
        ("", "blog-1 blog-2 mail order recall stopped"),
        ("graph:", "blog-1 blog-2 mail order recall stopped"),
    ],
)
def test_it_filters_by_every_column_and_by_words(text: str, passing: str) -> None:
    wanted = read_filter(text)
    assert not wanted.problems
    assert [row.name for row in ROWS if wanted.passes(row, NOW, "me")] == passing.split()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("grph:x", "there is no grph: to filter by; did you mean 'graph'?"),
        ("risk:huge", "risk:huge is none of high, normal, low"),
        ("due:5x", "or a time as 4h"),
    ],
)
def test_an_invalid_filter_word_is_reported_and_ignored(text: str, problem: str) -> None:
    wanted = read_filter(f"{text} graph:order")
    assert problem in wanted.problems[0]
    assert [row.name for row in ROWS if wanted.passes(row, NOW, "me")] == ["order"]


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (None, ""), (-1, "expired"), (MINUTE // 2, "in < 1 m"), (18 * MINUTE, "in 18 m"),
        (4 * HOUR, "in 4 h"), (13 * HOUR, "tomorrow"), (DAY, "tomorrow"), (3 * DAY, "in 3 d"),
        (10**19, "in 2912118 d"),
    ],
)  # fmt: skip
def test_it_says_what_is_left_until_a_deadline(left: int | None, words: str) -> None:
    assert due_words(row(deadline=None if left is None else NOW + left), NOW) == words


def test_a_row_shows_the_votes() -> None:
    votes = (Vote("ann", "approve", NOW), Vote("ben", {"choice": "redo", "text": "no"}, NOW))
    assert votes_words(asked(quorum=2)) == "0 of 2"
    assert votes_words(asked(quorum=2, votes=votes[:1])) == "1 of 2, one yes"
    assert votes_words(asked(quorum=3, votes=votes)) == "2 of 3, one yes, one redo"
    assert votes_words(asked()) == ""


def test_a_row_shows_who_views_it_and_the_kind_of_answer() -> None:
    def words(**fields: Any) -> str:
        return notes_words(row(**fields), NOW, "me")

    assert words() == ""
    assert words(attending=(there("ann", claims=True),)) == "claimed by ann, 9 m left"
    assert words(attending=(there("me", claims=True), there("me"))) == "yours, 9 m left"
    assert words(attending=(there("ann", claims=True, until=NOW - 1), there("ben"))) == "ben has it open"
    assert words(attending=(there("ben"), there("ann"), there("me"))) == "2 have it open"
    assert words(attending=(there("ben", request="other"),)) == ""
    assert words(choices=(), schema={"type": "object", "properties": {"n": {}, "m": {}}}) == "form, 2 fields"
    assert words(choices=()) == "a text"
    assert words(reviewers=("ann", "ben")) == "for ann, ben"
    handed = HandedOn("me", "ann", "yours", NOW)
    assert words(reviewers=("me",), handed=handed) == "handed to you by ann: “yours”"
    tainted = {"channels": [{"sources": ["read_page"]}, {"sources": ["web", "read_page"]}]}
    assert words(policy="on_taint", payload=tainted) == "tainted: read_page, web"


def test_what_others_wrote_is_harmless_in_every_word() -> None:
    bad = "x\x1b[2J\x9b"
    shown = row(
        bad, title=bad, quorum=2, votes=(Vote("ann", bad, NOW),), reviewers=(bad,),
        attending=(there(bad, claims=True), there(bad + "2")),
    )  # fmt: skip
    for words in (shown.title, notes_words(shown, NOW, "me"), row(payload={"verdict": bad}).title):
        assert "\x1b" not in words
        assert "\x9b" not in words


def test_a_line_says_what_of_it_presses() -> None:
    assert summary_words(ROWS, NOW, "me") == "1 due today · 1 expired · 1 other person is here"
    assert summary_words(ROWS[3:4], NOW, "me") == ""


def test_a_mark_stays_at_a_gate_that_is_asked_again_and_is_taken_away_there() -> None:
    marks, marked = Marks(), row("a")
    assert marked.request is not None
    gate = msgspec.structs.replace(marked.request, when="before")
    marked = msgspec.structs.replace(marked, request=gate)
    again = msgspec.structs.replace(marked, request=msgspec.structs.replace(gate, id="asked again"))
    marks.turn(marked)
    marks.refused(marked.key, "it has moved")
    assert (again in marks, marks.rows, marks.reason(again)) == (True, (marked,), "it has moved")
    marks.turn(again)
    assert (marked in marks, marks.rows, marks.reason(again)) == (False, (), "")
    inside = [
        msgspec.structs.replace(again, request=msgspec.structs.replace(gate, id=name, when="inside"))
        for name in "xy"
    ]
    marks.turn_all(inside)
    assert len(marks) == 2


def test_marks_keep_rows_as_they_were_then() -> None:
    marks = Marks()
    first, other = row("a"), row("b")
    marks.turn(first)
    marks.turn_all([msgspec.structs.replace(first, seen=b"moved"), other, ROWS[-1]])
    assert marks.rows == (first, other)
    marks.refused(first.key, "it has moved")
    assert marks.reasons == {first.key: "it has moved"}
    marks.turn(first)
    assert (marks.rows, marks.reasons) == ((other,), {})
    marks.turn_all([first, other])
    marks.turn_all([first, other])
    assert len(marks) == 0
