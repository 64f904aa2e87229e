"""Claiming, handing over, allowing, deleting and starting in lines."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.threads import Deletion
from hitl_tui.plain.console import Terminal
from tests.plain.talker import Talker
from tests.support import rich_queue
from tests.support.commands import App


@pytest.mark.slow
def test_a_request_is_claimed_released_and_handed_over(talk: Talker, twelve: Path) -> None:
    output = talk("k\nk\n@ ann\nyou know them\n@\n\nq\n", "resume", "press-q3", "--plain").out
    assert "you have claimed it until " in output
    assert "Publish the quarterly numbers?: no longer claimed." in output
    assert "handed to ann by tester: “you know them”" in output
    assert "Nothing was done." in output
    with closing(SQLiteCheckpointer(twelve)) as store:
        (request,) = store.cursor("press-q3").pending  # type: ignore[union-attr]
        assert request.handed is not None
        assert (request.handed.to, request.handed.by) == ("ann", "tester")
        assert store.attending("press-q3", time.time_ns() // 1000) == ()


@pytest.mark.slow
def test_someone_elses_claim_is_taken_over_after_a_yes(talk: Talker, twelve: Path, app: App) -> None:
    app.expect(0, "claim", "memo-42", "--as", "ann")
    output = talk("k\nno\nk take_over=bob\nk\nyes\nann is ill\nq\n", "resume", "memo-42", "--plain").out
    asked, refused, taken = output.split("Command: ")[1:4]
    assert "ann has claimed it, 14 m left. That you take it over is logged." in asked
    assert "Nothing was done." in asked
    assert "has claimed it, for 15 min still" in refused
    assert "you have claimed it until " in taken
    decisions = app.expect(0, "log", "memo-42", "--json").document["decisions"]
    assert [entry["actor"] for entry in decisions if entry["decision"] == "claim_taken"] == ["tester"]


@pytest.mark.slow
def test_calls_of_a_tool_are_allowed_listed_and_asked_about_again(talk: Talker, twelve: Path) -> None:
    output = talk(
        "+ list\n+ send_mail to=team@* 'note=they know us'\n+ call\n\n\n+ send_mail to\nrevoke a9\n"
        "revoke a2\nyes\n\n+ list\nq\n",
        "resume", "mail-bot-1", "--plain",
    ).out  # fmt: skip
    assert "nothing is allowed in this thread without asking." in output
    assert "send_mail with to=team@*, by tester: “they know us”" in output
    assert "2 calls wait: send_mail, delete_file" in output
    assert "'to' is not NAME=PATTERN" in output
    assert "has no allowance 'a9'" in output
    assert output.rstrip().partition("has no allowance 'a9'")[2].count("nothing is allowed") == 1


@pytest.mark.slow
def test_a_thread_is_deleted_after_a_yes_with_the_reason_and_not_while_it_waits(
    talk: Talker, twelve: Path, app: App
) -> None:
    app.expect(0, "approve", "memo-42")
    app.expect(0, "resume", "memo-42", "--headless")
    output = talk(
        "X memo-42\nno\nX memo-42\nyes\nit is printed\nX mail-bot-1\nX order-7\nX\nq\n",
        "resume", "order-7", "--plain",
    ).out  # fmt: skip
    assert "  | memo-42: 4 steps, completed" in output
    assert output.count("Nothing was done.") == 3
    assert "deleted 1 thread" in output
    assert output.count("Nothing would be deleted; 1 would be kept.") == 2
    assert "  | mail-bot-1: thread 'mail-bot-1' waits" in output
    assert "  | order-7: 'order-7' is open here" in output
    assert "no thread is named" in output
    with closing(SQLiteCheckpointer(twelve)) as store:
        (entry,) = store.store_ledger()
        assert (entry.thread_id, entry.actor, entry.note) == ("memo-42", "tester", "it is printed")


@pytest.mark.slow
def test_several_threads_are_deleted_and_pruned_and_the_size_of_the_store_is_shown(
    talk: Talker, twelve: Path, app: App
) -> None:
    app.expect(0, "approve", "memo-42")
    app.expect(0, "resume", "memo-42", "--headless")
    output = talk(
        "P\n\n\n\nP older_than=soon\nP older_than=0s keep_last=1 force\nno\nP older_than=0s\nyes\n"
        "X mail-bot-1 mail-bot-2 force note=done\nyes\nX 'a\nS\nS mail-bot-3\n"
        "S order-7\nvacuum\nyes\nS deleted\ndecisions by:me\nq\n",
        "resume", "order-7", "--plain",
    ).out  # fmt: skip
    assert "no rule says what to delete" in output
    assert "'soon' is not a time" in output
    assert "10 threads would be deleted, 10 of them running or waiting; 2 would be kept." in output
    assert "1 among the last changed, 1 open here" in output
    assert "1 thread would be deleted; 11 would be kept." in output
    assert "2 threads would be deleted, 2 of them running or waiting." in output
    assert "deleted 2 threads" in output
    assert 'there is no thread "\'a"' in output
    assert "there is no thread 'mail-bot-3'" in output
    assert "cached states: " in output
    assert "of it free; vacuum frees the space." in output
    assert " before, " in output
    assert "  | 3. just now: mail-bot-2 deleted by tester (" in output
    assert "  |   prune: older than 0s" in output
    with closing(SQLiteCheckpointer(twelve)) as store:
        kept = [(entry.thread_id, entry.note, entry.data.get("rule")) for entry in store.store_ledger()]
    assert kept == [
        ("memo-42", None, "prune: older than 0s"),
        ("mail-bot-1", "done", None),
        ("mail-bot-2", "done", None),
    ]


@pytest.mark.slow
def test_ctrl_c_stops_a_deletion_after_the_current_batch(
    talk: Talker, twelve: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.hub._DELETED_AT_ONCE", 1)
    whole, say, is_stopping = SQLiteCheckpointer.delete, Terminal.say, threading.Event()

    def watch_output(console: Terminal, *lines: str) -> None:
        say(console, *lines)
        if any(line.startswith("Stopping") for line in lines):
            is_stopping.set()

    def delete(store: SQLiteCheckpointer, deletion: Deletion) -> list[LedgerEntry]:
        if not is_stopping.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            assert is_stopping.wait(60)
        return whole(store, deletion)

    monkeypatch.setattr(Terminal, "say", watch_output)
    monkeypatch.setattr(SQLiteCheckpointer, "delete", delete)
    said = talk("X mail-bot-1 mail-bot-2 force\nyes\n\nt\nq\n", "resume", "order-7", "--plain").out
    assert "Stopping after the current batch." in said
    assert "deleted 1 thread; 1 thread kept; " in said
    assert "  | not deleted: mail-bot-2" in said
    with closing(SQLiteCheckpointer(twelve)) as store:
        assert [entry.thread_id for entry in store.store_ledger()] == ["mail-bot-1"]
        assert store.info("mail-bot-2") is not None


@pytest.mark.slow
def test_a_thread_of_a_known_graph_is_started(talk: Talker, twelve: Path) -> None:
    listed = talk("N\nq\n", "resume", "order-7", "--plain").out
    number = next(line for line in listed.splitlines() if ". order: as thread order-7" in line).split(".")[0]
    number = number.rpartition(" ")[2]
    output = talk(f"N order\nN\nN {number}\na boat\nw\nc\nq\n", "resume", "memo-42", "--plain").out
    assert "1. order: as thread order-7" in output
    assert "What is it about? (as in: a trip):" in output
    assert "What would you like to order?" in output.partition("What is it about?")[2]
    with closing(SQLiteCheckpointer(twelve)) as store:
        names = {row.info.thread_id for row in store.threads()}
    (new,) = names - {asking.thread for asking in rich_queue.TWELVE}
    assert new.startswith("order-")


@pytest.mark.slow
def test_the_help_names_each(talk: Talker, twelve: Path) -> None:
    output = talk("h\nq\n", "resume", "memo-42", "--plain").out
    for word in ("k", "@", "+", "X", "N"):
        assert any(f" {word}" in f" {line}" for line in output.splitlines()), word
