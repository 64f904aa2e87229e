"""`export --format html|markdown` of a damaged log: what can be read, and what is wrong."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    FileCheckpointer,
    Gate,
    GateChoice,
    SQLiteCheckpointer,
    StateGraph,
)
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.files.directory import directory_name
from tests.support.commands import App

SECRET = "the-secret-value"
ALL = ("Pay it?", "answer", "boss", "0 · input", "1 · write", "pay 10", "[private]")


def decided(store: Checkpointer) -> None:
    """The thread `t`, whose gate the boss has answered."""
    graph = StateGraph({"draft": Channel(""), "secret": Channel("", visibility="private")}, name="pay")
    graph.add_node("write", lambda _state: {"draft": "pay 10", "secret": SECRET}).add_node(
        "send", lambda _: {}
    )
    graph.add_edge(START, "write").add_edge("write", "send").add_edge("send", END)
    gate = Gate("write", "Pay it?", [GateChoice("yes", "yes"), GateChoice("no", "no")])
    runner = graph.compile(checkpointer=store, interrupt_after=[gate])
    request = runner.invoke({}, thread_id="t").pending[0]
    runner.answer("t", request.id, "yes", step=request.step, actor="boss")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("stores")
    for store in (SQLiteCheckpointer(root / "runs.db"), FileCheckpointer(root / "runs")):
        decided(store)
        store.close()
    return root


# What is done to the store, and what the page shows all the same.
DAMAGE: dict[str, tuple[str, ...]] = {
    "UPDATE ledger SET actor = 'eve' WHERE kind = 'answer'": (*ALL, "ledger: step 1, seq 2: hash", "eve"),
    "UPDATE ledger SET data = '{' WHERE kind = 'answer'": ("decisions 1 to 2 can't be read", "1 · write"),
    "UPDATE ledger SET data = '{' WHERE kind = 'request'": ("decision 1 can't be read", "answer", "boss"),
    "DELETE FROM ledger": ("0 · input", "1 · write", "ledger_hash"),
    "UPDATE checkpoint SET text = 'forged'": (*ALL, "checkpoint: step 0", "forged"),
    "UPDATE checkpoint SET branches = x'7b' WHERE id % 4 = 1": ("unreadable: step 1", "0 · input", "boss"),
    "DELETE FROM checkpoint": ("gap: step 0", "Pay it?", "state can't be read"),
    "UPDATE record SET change = x'7b'": ("changes can't be read", "Pay it?", "1 · write"),
    "DELETE FROM record": ("gap: step 1", "Pay it?", "1 · write"),
    "UPDATE record SET flags = flags & ~16  -- not private any more": ("record: step 1", *ALL),
    "UPDATE snapshot SET body = x'7b'": ("snapshot", "Pay it?", "1 · write"),
    "UPDATE cursor SET body = x'7b'": ("position can't be read", "unreadable: thread"),
    "DELETE FROM cursor": ("position can't be read", "row: thread: cursor"),
    "UPDATE cursor SET head = 99": (*ALL, "cursor.head"),
    "UPDATE cursor SET digest = x'00'": (*ALL, "cursor: step 2: digest"),
    "DELETE FROM graph": ("graph can't be read", "Pay it?", "1 · write"),
    "UPDATE graph SET body = x'7b'": ("graph can't be read", "Pay it?", "1 · write"),
    "UPDATE thread SET fork_step = 'x'": ("fixed facts can't be read", "unreadable: thread"),
    "UPDATE thread SET graph_digest = 'x'": ("graph can't be read", "facts_hash", "Pay it?"),
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_a_page_of_a_damaged_log_shows_what_can_be_read_and_what_is_wrong(
    app: App, stores: Path, tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "runs.db"
    shutil.copy(stores / "runs.db", path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(statement).rowcount
        db.commit()
    text = unescape(app.expect(0, "export", "t", "--format", "html", "--store", str(path)).out)
    assert "does not agree" in text
    for shown in DAMAGE[statement]:
        assert shown in text, shown
    assert SECRET not in text


def test_a_page_of_a_damaged_file_shows_what_can_be_read(app: App, stores: Path, tmp_path: Path) -> None:
    shutil.copytree(stores / "runs", tmp_path / "runs")
    (tmp_path / "runs" / "threads" / directory_name("t") / "cursor.json").write_bytes(b"{")
    text = app.expect(0, "export", "t", "--format", "markdown", "--store", str(tmp_path / "runs")).out
    assert "does not agree" in text
    assert "position can't be read" in text


def test_a_consistent_log_is_reported_as_consistent(app: App, stores: Path) -> None:
    text = unescape(app.expect(0, "export", "t", "--format", "html", "--store", str(stores / "runs.db")).out)
    assert "✔ The log agrees with itself" in text
    for shown in ALL:
        assert shown in text, shown
    assert "can't be read" not in text
