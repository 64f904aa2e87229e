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
def test_what_waits_is_claimed_given_back_and_handed_over(talk: Talker, twelve: Path) -> None:
    told = talk("k\nk\n@ ann you know them\n@\nq\n", "resume", "press-q3", "--plain").out
    assert "you have claimed it until " in told
    assert "Publish the quarterly numbers?: no longer claimed." in told
    assert "handed to ann by tester: “you know them”" in told
    assert "Refused: " in told
    assert "give a name: who gets it?" in told
    with closing(SQLiteCheckpointer(twelve)) as store:
        (request,) = store.cursor("press-q3").pending  # type: ignore[union-attr]
        assert request.handed is not None
        assert (request.handed.to, request.handed.by) == ("ann", "tester")
        assert store.attending("press-q3", time.time_ns() // 1000) == ()


@pytest.mark.slow
def test_a_claim_of_somebody_else_is_taken_over_by_name_only(talk: Talker, twelve: Path, app: App) -> None:
    app.expect(0, "claim", "memo-42", "--as", "ann")
    told = talk("k\nk over ann\nq\n", "resume", "memo-42", "--plain").out
    refused, taken = told.split("Command: ")[1:3]
    assert "has claimed it, for 15 min still" in refused
    assert "you have claimed it until " in taken
    decisions = app.expect(0, "log", "memo-42", "--json").document["decisions"]
    assert [entry["actor"] for entry in decisions if entry["decision"] == "claim_taken"] == ["tester"]


@pytest.mark.slow
def test_calls_of_a_tool_are_allowed_listed_and_asked_about_again(talk: Talker, twelve: Path) -> None:
    told = talk(
        "+\n+ send_mail to=team@*\nthey know us\n+ call\n+ send_mail to\n+ revoke a9\n+ revoke a2\nq\n",
        "resume", "mail-bot-1", "--plain",
    ).out  # fmt: skip
    assert "Nothing is allowed in this thread without asking." in told
    assert "send_mail with to=team@*, by tester: “they know us”." in told
    assert "no single call waits, but: send_mail, delete_file" in told
    assert "'to' is not NAME=PATTERN" in told
    assert "has no allowance 'a9'" in told
    assert told.rstrip().partition("has no allowance 'a9'")[2].count("Nothing is allowed") == 1


@pytest.mark.slow
def test_a_thread_is_deleted_after_a_yes_with_the_reason_and_not_while_it_waits(
    talk: Talker, twelve: Path, app: App
) -> None:
    app.expect(0, "approve", "memo-42")
    app.expect(0, "resume", "memo-42", "--headless")
    told = talk(
        "X memo-42\nno\nX memo-42\nyes\nit is printed\nX mail-bot-1\nX order-7\nX\nq\n",
        "resume", "order-7", "--plain",
    ).out  # fmt: skip
    assert "  | memo-42: 4 steps, completed" in told
    assert "Nothing was deleted." in told
    assert "Deleted 1 thread" in told
    assert told.count("Nothing would be deleted; 1 would be kept.") == 2
    assert "  | mail-bot-1: thread 'mail-bot-1' waits" in told
    assert "  | order-7: 'order-7' is open here" in told
    assert "no thread is named" in told
    with closing(SQLiteCheckpointer(twelve)) as store:
        (entry,) = store.store_ledger()
        assert (entry.thread_id, entry.actor, entry.note) == ("memo-42", "tester", "it is printed")


@pytest.mark.slow
def test_several_are_deleted_at_once_a_rule_prunes_and_what_fills_the_store_is_told(
    talk: Talker, twelve: Path, app: App
) -> None:
    app.expect(0, "approve", "memo-42")
    app.expect(0, "resume", "memo-42", "--headless")
    told = talk(
        "P\nP older soon\nP older 0s last 1 force\nno\nP older 0s\nyes\n\nX mail-bot-1 mail-bot-2 force\n"
        "yes\ndone\nX 'a\nS\nS mail-bot-3\nS order-7\nS vacuum\nS deleted\nl mine all\nq\n",
        "resume", "order-7", "--plain",
    ).out  # fmt: skip
    assert "no rule says what to delete" in told
    assert "'soon' is not a time" in told
    assert "10 threads would be deleted, 10 of them running or waiting; 2 would be kept." in told
    assert "1 among the last changed, 1 open here" in told
    assert "1 thread would be deleted; 11 would be kept." in told
    assert "2 threads would be deleted, 2 of them running or waiting." in told
    assert "Deleted 2 threads" in told
    assert "No closing quotation" in told
    assert "there is no thread 'mail-bot-3'" in told
    assert "cached states: " in told
    assert "of it free; S vacuum frees the space." in told
    assert " before, " in told
    assert "  | 3. just now: mail-bot-2 deleted by tester (" in told
    assert "  |   prune: older than 0s" in told
    with closing(SQLiteCheckpointer(twelve)) as store:
        kept = [(entry.thread_id, entry.note, entry.data.get("rule")) for entry in store.store_ledger()]
    assert kept == [
        ("memo-42", None, "prune: older than 0s"),
        ("mail-bot-1", "done", None),
        ("mail-bot-2", "done", None),
    ]


@pytest.mark.slow
def test_ctrl_c_ends_a_deletion_behind_the_batch_at_hand(
    talk: Talker, twelve: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.hub._DELETED_AT_ONCE", 1)
    whole, say, heard = SQLiteCheckpointer.delete, Terminal.say, threading.Event()

    def told(console: Terminal, *lines: str) -> None:
        say(console, *lines)
        if any(line.startswith("Stopping") for line in lines):
            heard.set()

    def delete(store: SQLiteCheckpointer, deletion: Deletion) -> list[LedgerEntry]:
        if not heard.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            assert heard.wait(60)
        return whole(store, deletion)

    monkeypatch.setattr(Terminal, "say", told)
    monkeypatch.setattr(SQLiteCheckpointer, "delete", delete)
    said = talk("X mail-bot-1 mail-bot-2 force\nyes\n\nt\nq\n", "resume", "order-7", "--plain").out
    assert "Stopping after the current batch." in said
    assert "Deleted 1 thread; 1 thread kept; " in said
    with closing(SQLiteCheckpointer(twelve)) as store:
        assert [entry.thread_id for entry in store.store_ledger()] == ["mail-bot-1"]
        assert store.info("mail-bot-2") is not None


@pytest.mark.slow
def test_a_thread_is_started_of_a_graph_that_is_known(talk: Talker, twelve: Path) -> None:
    listed = talk("N\nq\n", "resume", "order-7", "--plain").out
    number = next(line for line in listed.splitlines() if ". order: as thread order-7" in line).split(".")[0]
    number = number.rpartition(" ")[2]
    told = talk(f"N order\nN\nN {number}\na boat\nw\nc\nq\n", "resume", "memo-42", "--plain").out
    assert "1. order: as thread order-7" in told
    assert "What is it about? (as in: a trip):" in told
    assert "What shall it be?" in told.partition("What is it about?")[2]
    with closing(SQLiteCheckpointer(twelve)) as store:
        names = {row.info.thread_id for row in store.threads()}
    (new,) = names - {asking.thread for asking in rich_queue.TWELVE}
    assert new.startswith("order-")


@pytest.mark.slow
def test_the_help_names_each(talk: Talker, twelve: Path) -> None:
    told = talk("h\nq\n", "resume", "memo-42", "--plain").out
    for word in ("k", "@", "+", "X", "N"):
        assert any(f" {word}" in f" {line}" for line in told.splitlines()), word
