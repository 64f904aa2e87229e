"""Threads are deleted from the list, by name or by a rule, after a list of what goes and what stays."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, SQLiteCheckpointer, StateGraph
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.threads import Deletion
from hitl_tui.errors import StoreUnusable
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.deletion import Watch
from hitl_tui.ui.terminal_input import BurstKey
from tests.support.spec import spec
from tests.ui.harness import live

pytestmark = spec("10")


def counter(store: Checkpointer) -> GraphRunner:
    graph = StateGraph({"n": Channel(0, reducer="sum")}, name="counter")
    graph.add_node("count", lambda _state: {"n": 1}).add_edge(START, "count").add_edge("count", END)
    return graph.compile(checkpointer=store)


def names(store: Checkpointer) -> set[str]:
    return {row.info.thread_id for row in store.threads()}


def some(store: Checkpointer, *more: str) -> GraphRunner:
    """A thread `t`, which is open, `waits`, which waits, and others that have ended."""
    runner = counter(store)
    for name in ("t", *more):
        runner.invoke({}, thread_id=name)
    runner.fork("t", 0, "waits")
    return runner


@pytest.mark.parametrize(
    "size",
    [
        pytest.param((80, 24), id="80x24"),
        pytest.param((120, 40), marks=pytest.mark.slow, id="120x40"),
        pytest.param((200, 60), marks=pytest.mark.slow, id="200x60"),
    ],
)
@pytest.mark.slow
async def test_a_deletion_lists_its_threads_first_and_enter_cancels(size: tuple[int, int]) -> None:
    store = MemoryCheckpointer()
    runner = counter(store)
    for name in ("t", "old"):
        runner.invoke({}, thread_id=name)
    runner.fork("old", 0, "old-b", changes={"n": 5})
    runner.invoke(thread_id="old-b")
    async with live(runner, ready=" t ", size=size) as it:
        await it.press("t")
        await it.shows("old-b", "Delete")
        await it.press("down")
        await it.press("delete")
        await it.shows(
            "2 threads would be deleted",
            "old: 2 steps",
            "old-b: ",
            "a fork of old",
            "delete 2 threads for good",
        )
        await it.press("enter")
        await it.gone("would be deleted")
        assert names(store) == {"t", "old", "old-b"}
        await it.press("X")
        await it.shows("delete 2 threads for good")
        await it.press("shift+tab", *"done with", "enter", "d")
        await it.until(lambda: names(store) == {"t"}, "deleted")
        await it.shows("deleted 2 threads; ")
        await it.gone("old-b")
    assert {entry.thread_id for entry in store.store_ledger()} == {"old", "old-b"}
    assert {entry.note for entry in store.store_ledger()} == {"done with"}
    assert {entry.actor for entry in store.store_ledger()} == {it.run.actor}


@pytest.mark.slow
async def test_open_and_waiting_threads_are_kept_and_say_why() -> None:
    store = MemoryCheckpointer()
    async with live(some(store, "a", "b", "c"), ready=" t ") as it:
        await it.press("t")
        await it.shows("waits", "5 threads")
        await it.press("m", "m", "m", "m", "m")
        await it.shows("5 marked, 5 threads")
        await it.press("m")  # the last one, no more
        await it.shows("4 marked, 5 threads")
        await it.press("m")
        await it.shows("5 marked")
        await it.press("X")
        await it.shows(
            "3 threads would be deleted; 2 would be kept",
            "These would be kept",
            "waits: thread 'waits' waits",
            "t: 't' is open here",
            "delete 3 threads for good",
        )
        await it.press("f")
        await it.shows(
            "4 threads would be deleted, 1 of them running or", "! waits: ", "only those that neither run"
        )
        await it.press("f")
        await it.shows("3 threads would be deleted; 2 would be kept")
        it.app.post_message(BurstKey("d", "d"))
        await it.shows("Nothing was decided")
        assert names(store) == {"t", "waits", "a", "b", "c"}
        await it.press("d")
        await it.shows("deleted 3 threads; ", "2 threads")
        await it.gone("marked")
    assert names(store) == {"t", "waits"}


class Slow(MemoryCheckpointer):
    """Its second deletion waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.deletions = 0
        self.started, self.can_continue = threading.Event(), threading.Event()

    def delete(self, deletion: Deletion) -> list[LedgerEntry]:
        self.deletions += 1
        if self.deletions == 2:
            self.started.set()
            assert self.can_continue.wait(60)
        return super().delete(deletion)


@pytest.mark.slow
async def test_a_deletion_shows_its_progress_and_stops_after_the_current_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.hub._DELETED_AT_ONCE", 1)
    store = Slow()
    async with live(some(store, "a", "b", "c"), ready=" t ") as it:
        await it.press("t")
        await it.shows("5 threads")
        await it.press("m", "m", "m", "m", "m", "X")
        await it.shows("3 threads would be deleted")
        await it.press("d")
        await it.until(store.started.is_set, "the second")
        await it.shows("Deleting…", "1 of 3", "Esc   stop")
        await it.press("escape")
        await it.shows("1 of 3; stopping after the current batch")
        store.can_continue.set()
        await it.shows("deleted 2 threads; 1 thread kept", "not deleted: a", "3 threads")
        await it.gone("stopping")
    assert store.deletions == 2
    assert len(names(store)) == 3
    assert len(store.store_ledger()) == 2


@pytest.mark.slow
async def test_looking_for_what_would_be_deleted_can_be_stopped_and_begins_only_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[object] = []

    async def plan_deletion(hub: LocalHub, what: object, *, watch: Watch, **given: object) -> None:
        looked.append(what)
        while True:
            watch(1, 2)
            await asyncio.sleep(0)

    monkeypatch.setattr(LocalHub, "plan_deletion", plan_deletion)
    store = MemoryCheckpointer()
    async with live(some(store, "a"), ready=" t ") as it:
        await it.press("t")
        await it.shows("3 threads")
        await it.press("X", "X")
        await it.shows("Looking…", "1 of 2")
        await it.press("escape")
        await it.gone("Looking…")
        await it.shows("3 threads")
    assert len(looked) == 1


@pytest.mark.parametrize("leaves_by", ["ctrl+c", "ctrl+q"])
@pytest.mark.slow
async def test_quitting_during_a_deletion_asks_and_reports_what_was_deleted(
    monkeypatch: pytest.MonkeyPatch, leaves_by: str
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.hub._DELETED_AT_ONCE", 1)
    store = Slow()
    async with live(some(store, "a", "b", "c"), ready=" t ") as it:
        await it.press("t")
        await it.shows("5 threads")
        await it.press("m", "m", "m", "m", "m", "X")
        await it.shows("3 threads would be deleted")
        await it.press("d")
        await it.until(store.started.is_set, "the second")
        await it.shows("1 of 3")
        await it.press(leaves_by)
        await it.shows("Deleting: 1 of 3; stopping after the current batch.")
        await it.press("q" if leaves_by == "ctrl+q" else "ctrl+c")
        hub = it.app.hub
        await it.until(lambda: isinstance(hub, LocalHub) and hub._closing, "its leaving")
        store.can_continue.set()
        await it.until(lambda: it.app.return_value is not None, "its end")
    assert it.app.return_value is not None
    assert it.app.return_value.not_committed == ("2 of 3 threads that were to be deleted are gone",)
    assert len(names(store)) == 3
    assert len(store.store_ledger()) == 2


@pytest.mark.slow
async def test_a_deletion_continues_while_the_quit_dialog_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.hub._DELETED_AT_ONCE", 1)
    store = Slow()
    async with live(some(store, "a", "b"), ready=" t ") as it:
        await it.press("t")
        await it.shows("4 threads")
        await it.press("m", "m", "m", "m", "X")
        await it.shows("2 threads would be deleted")
        await it.press("d")
        await it.until(store.started.is_set, "the second")
        await it.shows("1 of 2")
        await it.press("ctrl+c")
        await it.shows("Deleting: 1 of 2", "Quit?")
        store.can_continue.set()
        await it.shows("deleted 2 threads; ", "Quit?", "Committed steps are kept.")
        await it.press("escape")
        await it.gone("Quit?")
        await it.gone("Deleting")
        await it.shows("2 threads")
    assert names(store) == {"t", "waits"}


@pytest.mark.slow
async def test_a_rule_prunes_after_a_look_at_the_list_and_what_fills_the_store_is_shown(
    tmp_path: Path,
) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    async with live(some(store, "a", "b"), ready=" t ", size=(80, 24)) as it:
        await it.press("f12")
        await it.shows(
            "What fills the store", "LARGEST PART", "4 threads, on the disk: ", "p Prune", "v Vacuum"
        )
        await it.press("enter")
        await it.shows("What fills ", "channel n", "cached states", "in total")
        await it.press("escape")
        await it.press("p")
        await it.shows("Prune", "list what would be deleted")
        await it.press(*"soon", "enter", "enter", "enter")
        await it.shows("'soon' is not a time")
        await it.press(*["backspace"] * 4, *"0s", "enter", "enter", "enter")
        await it.shows("2 threads would be deleted; 2 would be kept", "1 running or waiting", "1 open here")
        await it.press("d")
        await it.shows("deleted 2 threads; ", "2 threads, on the disk: ")
        await it.press("v")
        await it.shows("Free unused space?", "Nobody can")
        await it.press("v")
        await it.shows(" before, ")
        await it.press("d")
        await it.shows("What was deleted", "2. just now: ", " deleted by anna ", "prune: older than 0s")
        await it.press("escape", "f12")
        await it.gone("What fills the store")
        assert names(store) == {"t", "waits"}
        assert {entry.data["rule"] for entry in store.store_ledger()} == {"prune: older than 0s"}


@pytest.mark.slow
async def test_the_dialog_shows_the_configured_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[retention]\nolder_than = '0s'\nkeep_last = 1\nkeep_decided = true\n")
    monkeypatch.setenv("HITL_TUI_CONFIG", str(file))
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    async with live(some(store, "a", "b"), ready=" t ", size=(80, 24)) as it:
        await it.press("f12")
        await it.shows("p Prune")
        await it.press("p")
        await it.shows("list what would be deleted", "│ 0s", "│ 1 ", "│ yes")
        await it.press("enter", "enter", "enter")
        await it.shows("would be deleted")
        assert names(store) == {"t", "a", "b", "waits"}


@pytest.mark.slow
async def test_the_palette_leads_to_the_store_and_to_all_decisions() -> None:
    store = MemoryCheckpointer()
    async with live(some(store), ready=" t ") as it:
        for word, shown in (("prune", "What fills the store"), ("vacuum", "What fills the store"),
                            ("decisions", "result")):  # fmt: skip
            await it.press("ctrl+p")
            await it.pilot.pause()
            await it.press(*word)
            await it.shows("Decisions" if word == "decisions" else "Store  (F12)")
            await it.press("enter")
            await it.shows(shown)
            await it.press("escape")
            await it.gone(shown)


@pytest.mark.slow
async def test_a_vacuum_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.db")

    def locked() -> tuple[int, int]:
        raise StoreUnusable("somebody else writes to it")

    monkeypatch.setattr(store, "vacuum", locked)
    async with live(some(store), ready=" t ") as it:
        await it.press("f12")
        await it.shows("2 threads, on the disk: ")
        await it.press("v")
        await it.shows("Free unused space?")
        await it.press("v")
        await it.shows("somebody else writes to it", "2 threads, on the disk: ")
