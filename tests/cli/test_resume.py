from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from hitl_tui.cli.opening import find_thread
from hitl_tui.cli.storage import open_existing, open_for_writing
from hitl_tui.config import load_settings
from hitl_tui.engine.log.store import new_thread_id
from hitl_tui.errors import StoreUnusable, UnknownThread, UsageError
from tests.support.spec import spec

pytestmark = spec("11")


def store_with(**threads: str) -> MemoryCheckpointer:
    """A store of threads that are "waiting", "completed" or "pending", oldest first."""
    store = MemoryCheckpointer()
    graph = StateGraph({"n": Channel(0)}).add_node("a", lambda state: {}).add_node("b", lambda state: {})
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
    for name, status in threads.items():
        runner = graph.compile(checkpointer=store, interrupt_after=["a"] if status == "waiting" else [])
        if status == "pending":
            next(iter(runner.stream(thread_id=name)))
        else:
            assert runner.invoke(thread_id=name).status == status
    return store


def test_the_last_thread_that_waits_comes_first() -> None:
    store = store_with(w1="waiting", w2="waiting", c="completed")
    assert find_thread(store, None) == "w2"


def test_without_one_that_waits_the_last_unfinished_one() -> None:
    assert find_thread(store_with(c1="completed", p="pending", c2="completed"), None) == "p"


def test_resume_without_any_thread_is_an_error() -> None:
    with pytest.raises(UsageError, match="no thread is unfinished"):
        find_thread(store_with(c="completed"), None)


def test_a_named_thread_may_be_finished() -> None:
    assert find_thread(store_with(c="completed"), "c") == "c"


def test_a_misspelt_name() -> None:
    with pytest.raises(UnknownThread) as caught:
        find_thread(store_with(report="completed"), "reprot")
    assert caught.value.hint == "did you mean 'report'?"


def test_new_threads_are_numbered_by_day() -> None:
    day = date.today().isoformat()
    assert new_thread_id(store_with(), "demo") == f"demo-{day}-1"
    assert new_thread_id(store_with(**{f"demo-{day}-1": "completed"}), "demo") == f"demo-{day}-2"


def test_the_default_store_is_private_and_made_on_demand(isolated: Path) -> None:
    settings = load_settings()
    with pytest.raises(UsageError, match="there is no store"):
        open_existing(settings)
    open_for_writing(settings).close()
    assert (isolated / "data" / "hitl-tui").stat().st_mode & 0o777 == 0o700
    open_existing(settings).close()


def test_a_data_directory_that_cannot_be_made(isolated: Path) -> None:
    (isolated / "data").write_text("in the way")
    with pytest.raises(StoreUnusable, match="can't be made") as caught:
        open_for_writing(load_settings())
    assert "--store" in caught.value.hint
