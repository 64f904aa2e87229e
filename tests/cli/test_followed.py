"""`decisions`: who decided what in all threads and why, the result, and how to undo it."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.support.commands import App


@pytest.fixture
def decided(review: App) -> App:
    """`r` sent back and edited by ann, then approved by bob; `s` approved by ann."""
    review.expect(3, "revise", "r", "--note", "shorter", "--run", "--as", "ann")
    review.expect(0, "update-state", "r", 'draft="x"', "--as", "ann")
    review.expect(3, "run", "review", "--headless", "--input", "task=Sea", "--thread", "s")
    review.expect(0, "approve", "s", "--run", "--as", "ann")
    return review


@pytest.mark.slow
def test_decisions_of_all_threads_newest_first(decided: App) -> None:
    found = decided.expect(0, "decisions", "--mine", "--as", "ann", "--json").document
    assert {row["actor"] for row in found["decisions"]} == {"ann"}
    assert (found["looked"], found["more"]) == (3, False)
    rows = [(row["thread"], row["decision"], row["answer"]) for row in found["decisions"]]
    assert rows == [("s", "answer", "approve"), ("r", "update_state", None), ("r", "answer", "revise")]
    approved, edited, revised = found["decisions"]
    assert (approved["status"], approved["question"]) == ("completed", None)
    # The edit has changed the draft that the question is about, which is asked again.
    assert (edited["status"], edited["ran"]) == (None, [])
    assert edited["question"] == revised["title"]
    assert (revised["status"], revised["note"]) == (None, "shorter")
    assert revised["ran"] == ["write", "check_approval"]
    assert revised["question"] == revised["title"]
    assert decided.expect(1, "decisions", "--mine", "--as", "bob", "--json").document["decisions"] == []
    assert (
        len(decided.expect(0, "decisions", "--thread", "s", "--as", "ann", "--json").document["decisions"])
        == 1
    )
    assert (
        len(
            decided.expect(0, "decisions", "--mine", "--as", "ann", "--limit", "1", "--json").document[
                "decisions"
            ]
        )
        == 1
    )


@pytest.mark.slow
def test_the_commands_offered_to_undo_a_decision_work(decided: App) -> None:
    *_, revised = decided.expect(0, "decisions", "--mine", "--as", "ann", "--json").document["decisions"]
    ways = {way["way"]: way for way in revised["take_back"]}
    assert set(ways) == {"fork", "edit"}
    assert ways["fork"]["runs"] == ["write", "check_approval"]
    assert ways["edit"]["runs"] == []
    decided.expect(0, *shlex.split(ways["fork"]["command"])[1:])
    fork = decided.expect(0, "show", "r-again", "--json").document["standing"]
    assert [request["title"] for request in fork["pending"]] == [revised["title"]]
    edited = decided.expect(0, "decisions", "--mine", "--as", "ann", "--json").document["decisions"][-2]
    place = shlex.split(edited["take_back"][0]["command"])[2]
    assert place == f"r@{edited['step'] - 1}", "before the step that the edit made"


@pytest.mark.slow
def test_a_fork_does_not_list_its_parents_decisions_again(decided: App) -> None:
    decided.expect(0, "fork", "r@6", "r-b", "--as", "cy")
    rows = decided.expect(0, "decisions", "--mine", "--as", "ann", "--json").document["decisions"]
    assert [row["thread"] for row in rows] == ["s", "r", "r"]


@pytest.mark.slow
def test_decisions_are_listed_in_words_and_at_the_end_of_show(decided: App) -> None:
    said = decided.expect(0, "decisions", "--long", "--as", "ann").out
    assert "r, step 2: you sent back “Is this draft good enough?”" in said
    assert "  then: write, check_approval; asked: “Is this draft good enough?”" in said
    assert "write, check_approval would run again\n    hitl-tui fork r@2 r-again" in said
    shown = decided.expect(0, "show", "r", "--as", "ann").out
    assert re.search(r"your last decision:\n(\S+ )?\d\d:\d\d  r, step 6: you edited draft", shown)
    assert "your last decision" not in decided.expect(0, "show", "r@2", "--as", "ann").out


@pytest.mark.slow
def test_decisions_of_others_name_who_made_them(decided: App) -> None:
    said = decided.expect(0, "decisions", "--long", "--as", "bob").out
    assert "r, step 2: ann sent back “Is this draft good enough?”" in said


@pytest.mark.slow
def test_a_row_says_when_who_what_why_and_the_result(decided: App) -> None:
    head, *rows = decided.expect(0, "decisions").out.splitlines()
    assert head.split() == ["when", "who", "thread", "what", "why", "result"]
    assert len(rows) == 3
    assert re.fullmatch(
        r"(\S+ )?\d\d:\d\d +ann +r +sent back “Is this draft good enough\?” +shorter +"
        r"asked “Is this draft good enough\?” after write, check_approval",
        rows[2],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["shorter"], ["r"]),
        (["--", "SHORTER", "-shorter"], []),
        (["minimises"], ["s", "r"]),
        (["thread:r", "by:ann"], ["r", "r"]),
        (["--by", "an", "--thread", "s"], ["s"]),
        (["--since", "1h"], ["s", "r", "r"]),
        (["--until", "yesterday"], []),
        (["good enough", "--limit", "1"], ["s"]),
    ],
)
def test_they_are_found_by_words_people_threads_and_times(
    decided: App, given: list[str], found: list[str]
) -> None:
    rows = decided("decisions", "--json", *given).document["decisions"]
    assert [row["thread"] for row in rows] == found
    assert decided("decisions", *given).code == (0 if found else 1)


@pytest.mark.slow
def test_the_text_with_the_word_is_in_the_document(decided: App) -> None:
    _, row = decided.expect(0, "decisions", "minimises", "--json").document["decisions"]
    assert row["about"] == ["draft"]
    assert (row["found"]["text"], row["found"]["match"]) == ("draft", "minimises")


def test_a_filter_that_can_not_be_read_is_refused(review: App) -> None:
    assert "there is no bye: to filter by" in review.expect(2, "decisions", "bye:ann").err
    assert "'soon' is no time" in review.expect(2, "decisions", "--since", "soon").err


def test_a_rollback_is_offered_where_something_can_be_undone(app: App) -> None:
    from hitl_tui import MemoryCheckpointer
    from hitl_tui.drivers.decided import Decided
    from hitl_tui.engine.log.outcomes import Compensation
    from hitl_tui.view.followed import followed, followed_lines
    from tests.stores.log_writer import Writer, entry

    writer = Writer(MemoryCheckpointer(), "trip")
    writer.step()
    answer = entry(writer.cursor, data={"answer": "approve"})
    for node in ("book", "pay"):
        writer.step(point={"node": node, "source": "node", "compensations": (Compensation(f"un{node}"),)})
    points = writer.store.checkpoints("trip", None, 9)[::-1]
    offers = followed(Decided("trip", "completed", "end", answer, [answer], points))
    assert [(way.way, way.runs) for way in offers.take_back] == [
        ("fork", ("book", "pay")),
        ("rollback", ("unpay", "unbook")),
    ]
    assert "roll back side effects with unpay, unbook" in "\n".join(followed_lines(offers))
