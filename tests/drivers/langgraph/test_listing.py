"""The list of threads is made of their heads: a page of many costs a page's states, and mirrors none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from hitl_tui.drivers.langgraph.listing import in_order, moment_of
from hitl_tui.drivers.langgraph.mirror import Mirror
from hitl_tui.drivers.langgraph.pregel import App, microseconds
from hitl_tui.drivers.langgraph.recorded import Checkpoints
from hitl_tui.drivers.langgraph.recorded_hub import RecordedHub, RecordedThreads
from hitl_tui.engine.commands import Fork
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.errors import ThreadBusy, UnknownThread, UsageError
from hitl_tui.stores import open_store
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.flows import Items, asking
from tests.support.watching import Watcher


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def names(rows: tuple[Any, ...]) -> list[str]:
    return [row.info.thread_id for row in rows]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often checkpoints are read, and threads mirrored."""
    counted: Counter[str] = Counter()

    def counting(kind: type, method: str) -> None:
        before: Callable[..., Any] = getattr(kind, method)

        async def called(*given: Any, **options: Any) -> Any:
            counted[method] += 1
            return await before(*given, **options)

        monkeypatch.setattr(kind, method, called)

    counting(App, "snapshot")
    counting(App, "history")
    counting(Mirror, "sync")
    return counted


@pytest.mark.slow
async def test_a_page_of_many_threads_reads_a_state_a_row_and_mirrors_none(
    saver: Any, hubs: Hubs, calls: Counter[str]
) -> None:
    graph = asking(saver)
    for number in range(200):
        graph.update_state(config(f"t{number:03}"), {"items": ["x"]}, "plan")
    hub = hubs.over(graph)
    first = await hub.threads("", 50, None, "")
    assert names(first) == [f"t{number:03}" for number in range(199, 149, -1)]
    assert calls == {"snapshot": 50}
    second = await hub.threads("", 50, first[-1], "")
    assert names(second) == [f"t{number:03}" for number in range(149, 99, -1)]
    assert calls == {"snapshot": 100}
    assert names(await hub.threads("T19", 50)) == [f"t{number}" for number in range(199, 189, -1)]
    assert calls == {"snapshot": 110}


async def test_a_listed_row_equals_that_of_its_mirror(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    graph.invoke({"items": ["in"]}, config("asks"))
    graph.update_state(config("done"), {"items": ["x"]}, "ask")
    graph.update_state(config("paused"), {"items": ["x"]}, "plan")
    hub = hubs.over(graph)
    row_by_thread = {row.info.thread_id: row for row in await hub.threads("", 50, None, "")}
    assert list(row_by_thread) == ["paused", "done", "asks"]
    assert row_by_thread["asks"].waiting_for == "is it good?"
    for name in row_by_thread:
        await hub.open(name)
    for row in await hub.threads("", 50, None, ""):
        known = row_by_thread[row.info.thread_id]
        for fact in ("head", "status", "reason", "next_node", "waiting_for", "waiting_since", "updated_at"):
            assert getattr(row, fact) == getattr(known, fact), (row.info.thread_id, fact)
        assert row.info.graph_name == known.info.graph_name


async def test_opened_threads_are_listed_among_the_others_with_their_forks(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    for name in ("a", "b", "c", "d"):
        graph.invoke({"items": ["in"]}, config(name))
    hub = hubs.over(graph)
    assert names(await hub.threads()) == ["d", "c", "b", "a"]
    opened = await Watcher.open(await hub.open("b"))
    assert names(await hub.threads()) == ["d", "c", "b", "a"]
    await opened.driver.execute(Fork(1, "b-again"))
    everything = await hub.threads("", 50, None, "")
    assert names(everything) == ["b-again", "d", "c", "b", "a"]
    paged: list[str] = []
    last = None
    while page := await hub.threads("", 2, last, ""):
        paged += names(page)
        last = page[-1]
    assert paged == names(everything)
    assert names(await hub.threads("b")) == ["b-again", "b"]


async def test_a_thread_is_listed_as_it_is_while_a_fork_of_it_has_no_step_yet(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    failing: list[str] = []

    def work(_state: Any) -> dict[str, Any]:
        if failing:
            raise ValueError("away")
        return {"items": ["work"]}

    builder = StateGraph(Items).add_node("work", work).add_edge(START, "work")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"items": ["in"]}, config("t"))
    hub = hubs.over(graph, "mirror.db")
    await hub.open("t")
    (before,) = await hub.threads()
    await hubs.close()
    failing.append("now")
    first = next(each.config for each in graph.get_state_history(config("t")) if each.next == ("work",))
    with suppress(ValueError):
        graph.invoke(None, first)
    (row,) = await hubs.over(graph, "mirror.db").threads()
    assert (row.head, row.status) == (before.head, "completed")


async def test_a_thread_that_was_deleted_there_is_listed_no_more(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    for name in ("kept", "gone"):
        graph.invoke({"items": ["in"]}, config(name))
        await hubs.over(graph, "mirror.db").open(name)
        await hubs.close()
    hub = hubs.over(graph, "mirror.db")
    assert names(await hub.threads()) == ["gone", "kept"]
    graph.checkpointer.delete_thread("gone")
    assert names(await hub.threads()) == ["kept"]
    assert [row.thread.info.thread_id for row in await hub.waiting(50)] == ["kept"]


async def test_what_others_did_to_an_opened_thread_is_listed_and_not_mirrored(
    saver: Any, hubs: Hubs, calls: Counter[str]
) -> None:
    graph = asking(saver)
    graph.invoke({"items": ["in"]}, config("t"))
    await hubs.over(graph, "mirror.db").open("t")
    await hubs.close()
    graph.update_state(config("t"), {"items": ["x"]}, "ask")
    graph.update_state(config("u"), {"items": ["x"]}, "plan")
    hub = hubs.over(graph, "mirror.db")
    rows = await hub.threads()
    assert [(row.info.thread_id, row.status) for row in rows] == [("u", "waiting"), ("t", "completed")]
    assert calls["sync"] == 1
    assert [row.thread.info.thread_id for row in await hub.waiting(50)] == ["u"]
    assert calls["sync"] == 3
    assert [(row.info.thread_id, row.head) for row in await hub.threads()] == [
        (row.info.thread_id, row.head) for row in rows
    ]


async def test_what_another_process_runs_stays_in_the_queue_until_it_is_done(
    saver: Any, hubs: Hubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = asking(saver)
    graph.invoke({"items": ["in"]}, config("t"))
    await hubs.over(graph, "mirror.db").open("t")
    await hubs.close()
    graph.update_state(config("t"), {"items": ["x"]}, "ask")

    async def busy(*_given: Any) -> Any:
        raise ThreadBusy("somebody runs it")

    hub = hubs.over(graph, "mirror.db")
    with monkeypatch.context() as held:
        held.setattr(Mirror, "sync", busy)
        assert len(await hub.waiting(50)) == 1
    assert await hub.waiting(50) == ()


async def test_the_queue_mirrors_what_waits_and_asks_no_thread_twice(
    saver: Any, hubs: Hubs, calls: Counter[str]
) -> None:
    graph = asking(saver)
    for number in range(5):
        graph.update_state(config(f"done{number}"), {"items": ["x"]}, "ask")
    graph.invoke({"items": ["in"]}, config("asks"))
    hub = hubs.over(graph)
    for _ in range(2):
        assert [row.thread.info.thread_id for row in await hub.waiting(50)] == ["asks"]
        assert calls["sync"] == 1
    read = calls["snapshot"]
    graph.invoke({"items": ["in"]}, config("new"))
    assert {row.thread.info.thread_id for row in await hub.waiting(50)} == {"asks", "new"}
    assert calls["snapshot"] <= read + 2


def test_the_id_of_a_checkpoint_gives_its_time(saver: Any) -> None:
    graph = asking(saver)
    graph.update_state(config("t"), {"items": ["x"]}, "plan")
    state = graph.get_state(config("t"))
    made = moment_of(state.config["configurable"]["checkpoint_id"])
    assert abs(made - microseconds(state.created_at)) < 1_000_000
    assert [moment_of(name) for name in ("", "seven", "a-b", "x-y-z")] == [0, 0, 0, 0]


def test_threads_without_a_time_are_listed_last() -> None:
    assert list(in_order([], iter([(5, "b"), (0, "a")]))) == ["b", "a"]


async def test_the_head_of_a_thread_is_read_without_its_values(
    saver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = asking(saver)
    app = App(graph)
    assert await app.head("t") == ""
    for _ in range(2):
        graph.invoke({"items": ["in"]}, config("t"))
    newest = graph.get_state(config("t")).config["configurable"]["checkpoint_id"]
    monkeypatch.setattr(type(saver), "get_tuple", None)
    assert await app.head("t") == newest
    app.close()


async def test_a_checkpoint_file_is_listed_by_heads_and_mirrored_when_viewed(
    tmp_path: Path, calls: Counter[str]
) -> None:
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    with sqlite.SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        graph = asking(saver)
        for number in range(20):
            graph.update_state(config(f"t{number:02}"), {"items": ["x"]}, "plan")
        graph.invoke({"items": ["in"]}, config("asks"))
    checkpoints, store = Checkpoints(tmp_path / "runs.sqlite"), open_store("memory:")
    hub = RecordedHub(RecordedThreads(checkpoints, store), store, never_built)
    calls.clear()
    rows = await hub.threads("", 10, None, "")
    assert names(rows) == ["asks", *(f"t{number:02}" for number in range(19, 10, -1))]
    assert (rows[0].waiting_for, calls["snapshot"], calls["sync"]) == ("is it good?", 10, 0)
    calls.clear()
    (waiting,) = await hub.waiting(10)
    assert (waiting.thread.info.thread_id, calls["snapshot"], calls["sync"]) == ("asks", 2, 1)
    watcher = await Watcher.open(await hub.look_at("t07"))
    assert watcher.view.values["items"] == ["x"]
    assert {row.info.thread_id for row in store.threads()} == {"asks", "t07"}
    with pytest.raises(UnknownThread):
        await hub.open("gone")
    await hub.close()
    checkpoints.close()


def never_built(info: ThreadInfo) -> Any:
    raise UsageError(f"the graph of {info.thread_id} isn't there")
