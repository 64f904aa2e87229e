"""The queue in lines: listed, opened by number, several decided at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.policies import read_policy
from hitl_tui.drivers.protocol import Hub
from hitl_tui.view.batch import decide
from hitl_tui.view.queue_facts import Planned
from tests.plain.talker import Talker


@pytest.mark.slow
def test_the_queue_is_listed_and_opened_by_number(talk: Talker, twelve: Path) -> None:
    output = talk("n\nn 1\nq\n", "resume", "order-7", "--plain").out
    first = "1. Publish the quarterly numbers?: press-q3 of release, waits 2 h, in 17 m, high risk"
    assert first in output
    assert "2. Recall the kettle K2?: recall-k2 of recall, waits 41 m, in 3 h, 1 of 2, one yes" in output
    opened = output.partition(first)[2]
    assert "Question: Publish the quarterly numbers?" in opened
    assert "It is 1 of 12 waiting." in opened


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
    output = talk("n graph:advisor\nD approve\nyes\nn graph:advisor\nq\n", "resume", "order-7", "--plain").out
    assert (
        "blog-joins: Approve this draft? (advisor: approved): would be answered approve the draft" in output
    )
    assert "4 would be decided. Decide them?" in output
    assert "4 decided." in output
    assert "No request matches the filter." in output
    output = talk("n\nD approve 1 2\nno\nD approve 99\nq\n", "resume", "order-7", "--plain").out
    assert "press-q3: Publish the quarterly numbers?: is left: high risk: decide it by itself" in output
    assert "Nothing was decided." in output
    assert "there is no number '99' in the list" in output


@pytest.mark.slow
def test_ctrl_c_stops_between_two_decisions(
    talk: Talker, twelve: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    async def decided(hub: Hub, planned: Planned, actor: str) -> Planned:
        if sent:
            raise KeyboardInterrupt
        sent.append(planned.thread)
        return await decide(hub, planned, actor)

    monkeypatch.setattr("hitl_tui.plain.queue.decide", decided)
    output = talk("n graph:advisor\nD approve\nyes\nn graph:advisor\nq\n", "resume", "order-7", "--plain").out
    assert "Stopped; n lists what still waits." in output
    assert "1 decided." in output
    left = output.rpartition("1 decided.")[2]
    assert f"{sent[0]} of" not in left
    assert left.count(" of advisor, waits") == 3


@pytest.mark.slow
def test_the_rules_of_a_file_decide_after_a_yes(talk: Talker, twelve: Path, tmp_path: Path) -> None:
    file = tmp_path / "my policy.toml"
    file.write_text('[[rule]]\nname = "all drafts"\nwhen = "graph == \'advisor\'"\nanswer = "approve"\n')
    lines = f"n\nD @nowhere.toml\nD '@{file}' 1 8\nno\nD '@{file}'\nyes\nn graph:advisor\nq\n"
    output = talk(lines, "resume", "order-7", "--plain").out
    assert "press-q3: Publish the quarterly numbers?: is left: no rule holds" in output
    assert "1 would be decided, 1 not. Decide them?" in output
    answered = "would be answered approve the draft by rule all drafts"
    assert f"blog-joins: Approve this draft? (advisor: approved): {answered}" in output
    assert "4 decided." in output
    assert "No request matches the filter." in output
    assert "nowhere.toml can't be read" in output
    store = SQLiteCheckpointer(twelve)
    (rule,) = (entry.data["policy"] for entry in store.ledger("blog-joins") if "policy" in entry.data)
    assert rule == read_policy(file).named(read_policy(file).rules[0])
