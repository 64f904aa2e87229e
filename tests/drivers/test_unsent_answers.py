"""Answers are kept in files until they are sent."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from hitl_tui.drivers.unsent_answers import UnsentAnswer, UnsentAnswers
from hitl_tui.engine.thread.comments import Comment

ANSWER = UnsentAnswer(
    "t", "req-1", "Pay?", "hash", "not yet", ((("address", "city"), "Bremen"),), (Comment("990", "why?"),),
    (({"choice": "edit", "args": {"to": "ann"}}, "edit", {"to": "ann"}),), editing=True, value=([1, 2],),
)  # fmt: skip


def test_an_answer_is_read_as_it_was_saved_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    answers = UnsentAnswers(tmp_path / "unsent", "runs.db", "ann")
    answers.save(ANSWER)
    assert answers.load("t", "req-1") == ANSWER
    (file,) = (tmp_path / "unsent").iterdir()
    assert file.stat().st_mode & 0o077 == 0


def test_stores_people_threads_and_requests_have_files_of_their_own(tmp_path: Path) -> None:
    answers = UnsentAnswers(tmp_path, "runs.db", "ann")
    answers.save(ANSWER)
    assert answers.load("t", "req-2") is answers.load("u", "req-1") is None
    assert UnsentAnswers(tmp_path, "other.db", "ann").load("t", "req-1") is None
    assert UnsentAnswers(tmp_path, "runs.db", "bob").load("t", "req-1") is None


def test_an_answer_that_was_emptied_or_sent_has_no_file(tmp_path: Path) -> None:
    answers = UnsentAnswers(tmp_path, "runs.db", "ann")
    answers.save(ANSWER)
    answers.save(UnsentAnswer("t", "req-1", "Pay?", words="  \n"))
    assert not list(tmp_path.iterdir())
    answers.save(ANSWER)
    answers.remove("t", "req-1")
    assert not list(tmp_path.iterdir())


def test_answers_to_requests_that_wait_no_more_are_handed_back_once(tmp_path: Path) -> None:
    answers = UnsentAnswers(tmp_path, "runs.db", "ann")
    waits = replace(ANSWER, request="req-2")
    for answer in (ANSWER, waits, replace(ANSWER, thread="u")):
        answers.save(answer)
    assert answers.take_gone("t", ["req-2"]) == (ANSWER,)
    assert answers.take_gone("t", ["req-2"]) == ()
    assert answers.load("t", "req-2") == waits


def test_a_damaged_file_is_skipped_and_a_folder_that_takes_no_file_is_reported(tmp_path: Path) -> None:
    answers = UnsentAnswers(tmp_path, "runs.db", "ann")
    answers.save(ANSWER)
    next(tmp_path.iterdir()).write_text("{")
    assert answers.load("t", "req-1") is None
    (tmp_path / "file").touch()
    blocked = UnsentAnswers(tmp_path / "file", "runs.db", "ann")
    blocked.save(ANSWER)
    assert blocked.problem.startswith("what you type can't be saved before you send it: ")
