"""What became of comments on the last version, the author's replies, and what a person has seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.view.document import document
from hitl_tui.view.reading import (
    Looked,
    addressed_words,
    comment_notes,
    earlier_notes,
    load_reading,
    replies_of,
    what_became_of,
)
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import plain_text
from tests.support.newsroom import FIRST, SECOND, newsroom, sent_back


@pytest.mark.parametrize(
    ("quote", "fate", "now"),
    [
        ("four above", "changed", "seven above"),
        ("Two members asked for a repair.", "gone", ""),
        ("Nobody believed that rubber pads would help.", "unchanged", "Nobody believed"),
        ("412,000", "changed", "421,000"),
        ("The surveyor is back", "unchanged", "The surveyor is back"),
        ("# The harbour crane", "unchanged", "# The harbour crane"),
    ],
)
def test_a_passage_is_changed_unchanged_or_gone(quote: str, fate: str, now: str):
    comment = Comment(quote, "why?", "draft", FIRST.index(quote))
    found, at = what_became_of(comment, document("draft", FIRST), document("draft", SECOND))
    assert found == fate
    assert SECOND[at:].startswith(now)


def test_a_passage_that_moved_is_unchanged_where_it_is_now():
    old, new = (
        "One sentence here.\n\nAnother one.\n\nA third.",
        "Another one.\n\nA third.\n\nOne sentence here.",
    )
    comment = Comment("One sentence here.", "why?", "draft", 0)
    found = what_became_of(comment, document("draft", old), document("draft", new))
    assert found == ("unchanged", new.index("One sentence"))


def test_the_comment_on_the_second_of_two_equal_passages_follows_that_one():
    old = "The pads are late.\n\nIt rains.\n\nThe pads are late."
    new = "A new beginning.\n\nThe pads are late.\n\nIt rains.\n\nThe pads are late."
    comment = Comment("The pads are late.", "why?", "draft", old.rindex("The pads"))
    found = what_became_of(comment, document("draft", old), document("draft", new))
    assert found == ("unchanged", new.rindex("The pads"))


async def test_the_last_comments_are_loaded_with_what_became_of_them_and_the_replies(tmp_path: Path):
    runner = newsroom(FIRST, SECOND, replies=["it was measured", None, "a member said it"])
    await sent_back(runner)
    assert runner.store is not None
    hub = LocalHub(runner.store, lambda info: runner)
    session = await ViewSession.open(hub, await hub.open("t"))
    looked = Looked(tmp_path / "looked.json")
    reading = await load_reading(session, "draft", session.request, "anna", looked)
    assert reading.value == SECOND
    assert reading.version == 2
    assert [(each.fate, each.reply) for each in reading.earlier] == [
        ("changed", "it was measured"), ("gone", ""), ("unchanged", "a member said it"),
    ]  # fmt: skip
    assert addressed_words(reading.earlier) == "3 of your 3 comments addressed"
    assert [baseline.since for baseline in reading.baselines] == ["since version 1"]
    shown = document("draft", SECOND)
    texts = [" ".join(map(plain_text, note.lines)) for note in earlier_notes(shown, reading.earlier)]
    assert texts[2] == ("(3) you, last time: “who says?” author: a member said it passage unchanged")
    others = await load_reading(session, "draft", session.request, "bob", looked)
    assert addressed_words(others.earlier) == "3 of 3 comments addressed"
    await hub.close()


async def test_changes_since_a_person_last_looked_come_first(tmp_path: Path):
    looked = Looked(tmp_path / "looked.json")
    assert looked.note("t", "draft", 1, "one") is None
    assert looked.note("t", "draft", 5, "one") is None
    assert looked.note("t", "draft", 7, "two") == 1
    assert looked.note("t", "draft", 8, "two") == 1, "once more: what is new stays marked"
    assert looked.note("t", "draft", 9, "three") == 7
    assert looked.note("u", "draft", 9, "three") is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"t\\ndraft": 3}', "\x00"])
def test_a_damaged_file_only_forgets_what_was_seen(tmp_path: Path, content: str):
    file = tmp_path / "looked.json"
    file.write_text(content)
    looked = Looked(file)
    assert looked.note("t", "draft", 1, "one") is None
    assert looked.note("t", "draft", 2, "two") == 1


def test_a_file_that_cannot_be_written_stops_nobody(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert Looked(tmp_path / "file" / "looked.json").note("t", "draft", 1, "one") is None


@pytest.mark.parametrize(
    ("payload", "replies"),
    [
        ({"replies": ["a", "", "c"]}, {1: "a", 3: "c"}),
        ({"replies": {"2": "b", 3: "c", "x": "d"}}, {2: "b", 3: "c"}),
        ({"replies": 5}, {}),
        (None, {}),
        (["replies"], {}),
    ],
)
def test_replies_are_a_list_or_by_number(payload: object, replies: dict[int, str]):
    assert replies_of(payload) == replies


def test_unsent_comments_have_notes_at_their_places():
    comment = Comment("Nobody", "who?", "draft", SECOND.index("Nobody"))
    elsewhere = Comment("Nobody", "who?", "other", 0)
    (note,) = comment_notes(document("draft", SECOND), [comment, elsewhere])
    assert note.at == comment.offset
