"""The queue in lines: listed, opened by number, several decided at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.policies import read_policy
from hitl_tui.engine.commands import Answer, Command
from tests.plain.talker import Talker
from tests.support import rich_queue


@pytest.mark.slow
def test_the_queue_is_listed_and_opened_by_number(talk: Talker, twelve: Path) -> None:
    output = talk("n\nn 1\nq\n", "resume", "order-7", "--plain").out
    first = "1. Publish the quarterly numbers?: press-q3 of release, waits 2 h, in 17 m, high risk"
    assert first in output
    assert "2. Recall the kettle K2?: recall-k2 of recall, waits 41 m, in 3 h, 1 of 2, one yes" in output
    assert "  | Kettle K2 gets hot at the handle." in output
    assert ", version 2, back from " in output
    opened = output.partition(first)[2]
    assert "Question: Publish the quarterly numbers?" in opened
    assert "It is 1 of 12 waiting." in opened


@pytest.mark.slow
def test_what_came_since_the_last_list_is_new_and_words_are_searched(talk: Talker, twelve: Path) -> None:
    output = talk("n kettle gets hot\nq\n", "resume", "order-7", "--plain").out
    assert "1. Recall the kettle K2?: recall-k2 of recall, waits" in output
    store = SQLiteCheckpointer(twelve)
    rich_queue.fill(store, (rich_queue.Asking("new-one", "review", 0),))
    store.close()
    output = talk("n memo\nn memo\nq\n", "resume", "order-7", "--plain").out
    assert output.count("new-one of review, new, waits") == 1


@pytest.mark.slow
def test_the_queue_is_sorted_by_any_column_in_both_directions(talk: Talker, twelve: Path) -> None:
    output = talk(
        "n graph:advisor sort:thread\nn sort:-thread graph:advisor\nn sort:thred\nq\n",
        "resume",
        "order-7",
        "--plain",
    ).out
    rows = [
        line.partition(": ")[2].split(": ")[-1].split()[0]
        for line in output.splitlines()
        if "of advisor" in line
    ]
    names = ["blog-closures", "blog-indexes", "blog-joins", "blog-windows"]
    assert rows == names + names[::-1]
    assert "did you mean 'thread'?" in output


@pytest.mark.slow
def test_several_requests_get_the_same_answer_after_yes_and_continue(talk: Talker, twelve: Path) -> None:
    lines = "n graph:advisor\nD answer=approve\nyes\nn graph:advisor\nq\n"
    output = talk(lines, "resume", "order-7", "--plain").out
    assert "blog-joins: Approve this draft? (advisor: approved): approve the draft" in output
    assert output.count("approve the draft") == 4
    assert "Answer “approve”: 4 would be decided." in output
    assert "Decide these 4? Type yes to confirm:" in output
    assert "4 decided." in output
    assert "No request matches the filter." in output
    output = talk(
        "n\nD 1 2 answer=approve\nno\nD 99 answer=approve\nD nobody answer=approve\nq\n",
        "resume",
        "order-7",
        "--plain",
    ).out
    assert "press-q3: Publish the quarterly numbers?: left: high risk: decide it by itself" in output
    assert "Nothing was done." in output
    assert "there is no number '99' in the list" in output
    assert "there is no thread 'nobody'" in output
    store = SQLiteCheckpointer(twelve)
    assert {row.info.thread_id for row in store.threads() if row.status == "completed"} >= {"blog-joins"}


@pytest.mark.slow
def test_without_an_answer_it_is_chosen(talk: Talker, twelve: Path) -> None:
    lines = "n graph:review\nD\no\no\n\nD\nd\nyes\nreads well\nq\n"
    output = talk(lines, "resume", "order-7", "--plain").out
    assert "o: answer “revise”" in output
    assert "memo-42: Is this draft good enough?: left: the answer 'revise' needs a comment" in output
    assert "1 decided." in output
    entry = SQLiteCheckpointer(twelve).ledger("memo-42")[-1]
    assert (entry.kind, entry.note, bool(entry.seen)) == ("answer", "reads well", True)


@pytest.mark.slow
def test_a_comment_that_decides_more_is_asked_about_again(talk: Talker, twelve: Path) -> None:
    lines = "n\nD 2 5\no\nd\nyes\nit is fine\nno\nD 2 5\no\nd\nyes\nit is fine\nyes\nq\n"
    output = talk(lines, "resume", "order-7", "--plain").out
    assert output.count("recall-k2: Recall the kettle K2?: left: the answer 'reject' needs a comment") == 2
    assert output.count("Answer “reject”: 2 would be decided.") == 2
    assert output.count("Nothing was done.") == 1
    assert "1 decided, 1 vote given." in output
    assert "recall-k2: Recall the kettle K2?: your vote counts: 2 of 2" in output


@pytest.mark.slow
def test_ctrl_c_stops_between_two_decisions(
    talk: Talker, twelve: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    execute = LocalDriver.execute

    async def executed(driver: LocalDriver, command: Command[Any]) -> Any:
        if isinstance(command, Answer):
            if sent:
                raise KeyboardInterrupt
            sent.append(driver.thread_id)
        return await execute(driver, command)

    monkeypatch.setattr(LocalDriver, "execute", executed)
    lines = "n graph:advisor\nD answer=approve\nyes\nn graph:advisor\nq\n"
    output = talk(lines, "resume", "order-7", "--plain").out
    assert "Stopped." in output
    assert output.count("left: you stopped before it was sent") == 3
    assert "1 decided." in output
    left = output.rpartition("1 decided.")[2]
    assert f"{sent[0]} of" not in left
    assert left.count(" of advisor, waits") == 3


@pytest.mark.slow
def test_the_rules_of_a_file_decide_after_a_yes(talk: Talker, twelve: Path, tmp_path: Path) -> None:
    file = tmp_path / "my policy.toml"
    file.write_text('[[rule]]\nname = "all drafts"\nwhen = "graph == \'advisor\'"\nanswer = "approve"\n')
    lines = (
        f"n\nD policy=nowhere.toml\n\nD 1 8 policy='{file}'\nno\nD policy='{file}'\nyes\nn graph:advisor\nq\n"
    )
    output = talk(lines, "resume", "order-7", "--plain").out
    assert "press-q3: Publish the quarterly numbers?: left: no rule holds" in output
    assert "By my policy.toml: 1 would be decided, 1 not." in output
    answered = "approve the draft, by rule all drafts"
    assert f"blog-joins: Approve this draft? (advisor: approved): {answered}" in output
    assert "4 decided." in output
    assert "No request matches the filter." in output
    assert "nowhere.toml can't be read" in output
    store = SQLiteCheckpointer(twelve)
    (rule,) = (entry.data["policy"] for entry in store.ledger("blog-joins") if "policy" in entry.data)
    assert rule == read_policy(file).named(read_policy(file).rules[0])
