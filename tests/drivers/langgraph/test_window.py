"""A long thread of LangGraph is shown by its newest page at once, and whole once it is mirrored."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.mirror import Mirror
from hitl_tui.drivers.langgraph.recorded import Checkpoints
from hitl_tui.drivers.langgraph.recorded_hub import RecordedHub, RecordedThreads
from hitl_tui.engine.commands import Fork, Step, UpdateState
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.errors import UnknownThread, UsageError
from hitl_tui.stores import open_store
from tests.drivers.langgraph.conftest import Hubs
from tests.support.watching import Watcher

LONG = 130
CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}, "recursion_limit": 1_000}


class Count(TypedDict):
    log: Annotated[list[str], operator.add]
    n: int


def long_thread(saver: Any, inputs: int = 1) -> Any:
    """A thread of a node that runs again and again, with so many inputs."""
    graph = StateGraph(Count)
    graph.add_node("count", lambda state: {"n": state["n"] + 1, "log": [f"{state['n'] + 1}"]})
    graph.add_edge(START, "count")
    graph.add_conditional_edges("count", lambda state: "count" if state["n"] % LONG else END, ["count", END])
    app = graph.compile(checkpointer=saver)
    for _ in range(inputs):
        app.invoke({"log": ["in"], "n": 0}, CONFIG)
    return app


def never_built(info: ThreadInfo) -> Any:
    raise UsageError(f"the graph of {info.thread_id} isn't there")


@pytest.fixture
async def file_hub(tmp_path: Path) -> AsyncIterator[RecordedHub]:
    """A hub of a file of checkpoints with one long thread."""
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    with sqlite.SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        long_thread(saver)
    checkpoints, store = Checkpoints(tmp_path / "runs.sqlite"), open_store("memory:")
    hub = RecordedHub(RecordedThreads(checkpoints, store), store, never_built)
    yield hub
    await hub.close()
    checkpoints.close()


class Held:
    """Mirroring that goes on so far, and then waits to be let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int = 0) -> None:
        self.let_go, self.reached = threading.Event(), threading.Event()
        sync = Mirror.sync

        async def held(
            mirror: Mirror, thread: str, opened: Any = (), on_progress: Any = lambda *_: None, **options: Any
        ) -> Any:
            def reporting(done: int, total: int) -> None:
                if done >= after:
                    self.reached.set()
                    assert self.let_go.wait(60)
                on_progress(done, total)

            return await sync(mirror, thread, opened, reporting, **options)

        monkeypatch.setattr(Mirror, "sync", held)

    async def until_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 60)


@pytest.fixture
def hold(
    monkeypatch: pytest.MonkeyPatch, hubs: Hubs, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Held]]:
    """Holds mirroring; whatever happens, it is let go before hubs are closed."""
    if "file_hub" in request.fixturenames:
        request.getfixturevalue("file_hub")
    held: list[Held] = []
    yield lambda after=0: held.append(Held(monkeypatch, after)) or held[-1]
    for each in held:
        each.let_go.set()


async def at_once(hubs: Hubs, app: Any, mirror: str = "memory:") -> Watcher:
    return await Watcher.open(await hubs.over(app, mirror).begin("t", at_once=True))


async def whole(watcher: Watcher) -> None:
    await watcher.until(lambda view: not view.refusals.get("run"))


@pytest.mark.slow
async def test_the_newest_page_is_shown_while_the_rest_is_read(
    saver: Any, hubs: Hubs, hold: Callable[..., Held]
) -> None:
    app, held = long_thread(saver), hold()
    watcher = await at_once(hubs, app)
    view, driver = watcher.view, watcher.driver
    assert [point.step for point in view.checkpoints] == list(range(LONG - 49, LONG + 1))
    assert (view.progress.status, view.values["n"], len(view.values["log"])) == ("completed", LONG, LONG + 1)
    assert {each.channel: each.update for each in view.head_updates} == {"log": [f"{LONG}"], "n": LONG}
    assert (await driver.state_at(LONG - 30))["n"] == LONG - 30
    await held.until_reached()
    tries: list[Callable[[], Any]] = [
        lambda: driver.execute(Step()),
        lambda: driver.execute(Fork(LONG, "f")),
        lambda: driver.preview(UpdateState({"n": 1})),
        lambda: driver.check("log", lambda *_: None),
        lambda: driver.search("7", lambda *_: None),
    ]
    for attempt in tries:
        with pytest.raises(UsageError) as refused:
            await attempt()
        assert "its history is being read" in f"{refused.value} {refused.value.hint}"
    older = asyncio.create_task(driver.history(LONG - 49, 5))
    held.let_go.set()
    assert [point.step for point in await older] == list(range(LONG - 50, LONG - 55, -1))
    await whole(watcher)
    assert (await watcher.check()).progress.head == LONG
    assert (await driver.check("log", lambda *_: None)).mismatches == ()
    assert await driver.execute(Fork(LONG - 1, "f")) == "f"


@pytest.mark.slow
async def test_its_steps_get_our_numbers_once_it_is_whole(
    saver: Any, hubs: Hubs, hold: Callable[..., Held]
) -> None:
    app, held = long_thread(saver, inputs=2), hold()
    watcher = await at_once(hubs, app)
    assert watcher.view.progress.head == 2 * LONG + 2  # theirs count the input, too
    held.let_go.set()
    await whole(watcher)
    assert (await watcher.check()).progress.head == 2 * LONG + 1
    assert watcher.view.progress.invocation == 2


@pytest.mark.slow
async def test_pages_read_before_closing_are_not_read_again(
    saver: Any, hubs: Hubs, hold: Callable[..., Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, held = long_thread(saver), hold(100)
    await at_once(hubs, app, "mirror.db")
    await held.until_reached()
    threading.Timer(0.05, held.let_go.set).start()
    await hubs.close()
    monkeypatch.undo()
    hub = hubs.over(app, "mirror.db")
    (summary,) = hub.mirror.store.threads()
    assert 90 <= summary.head < LONG
    assert summary.status == "waiting"
    view = (await Watcher.open(await hub.begin("t", at_once=True))).view
    assert (view.progress.head, view.refusals.get("run")) == (LONG, None)


async def test_an_unreadable_history_is_reported(
    saver: Any, hubs: Hubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = long_thread(saver)

    async def failing(*_given: Any, **_options: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(Mirror, "sync", failing)
    watcher = await at_once(hubs, app)
    view = await watcher.until(lambda view: "the disk is gone" in view.refusals.get("run", ""))
    assert view.progress.head == LONG
    assert await watcher.driver.history(LONG - 49, 5) == ()


@pytest.mark.slow
async def test_a_thread_of_one_page_is_whole_at_once(saver: Any, hubs: Hubs) -> None:
    app = long_thread(saver)
    app.invoke({"log": [], "n": LONG - 20}, {"configurable": {"thread_id": "short"}})
    driver = await hubs.over(app).begin("short", at_once=True)
    snapshot = await driver.snapshot()
    assert (snapshot.progress.head, snapshot.refusals.get("run")) == (20, None)


@pytest.mark.slow
async def test_a_thread_of_others_that_is_opened_at_once_is_there_by_its_newest_page(
    saver: Any, hubs: Hubs, hold: Callable[..., Held]
) -> None:
    app, held = long_thread(saver), hold()
    hub = hubs.over(app)
    watcher = await Watcher.open(await hub.open("t", at_once=True))
    assert watcher.view.progress.head == LONG
    assert "its history is being read" in watcher.driver.refusal(Step)
    assert await hub.open("t") is watcher.driver
    held.let_go.set()
    await whole(watcher)
    assert (await watcher.check()).progress.head == LONG
    with pytest.raises(UnknownThread):
        await hub.open("gone", at_once=True)


@pytest.mark.slow
async def test_a_long_thread_of_a_file_is_shown_by_its_newest_page_at_once(
    file_hub: RecordedHub, hold: Callable[..., Held]
) -> None:
    held = hold()
    watcher = await Watcher.open(await file_hub.open("t", at_once=True))
    driver = watcher.driver
    assert [point.step for point in watcher.view.checkpoints] == list(range(LONG - 49, LONG + 1))
    assert watcher.view.values["n"] == LONG
    assert (await driver.state_at(LONG - 30))["n"] == LONG - 30
    await held.until_reached()
    tries: list[Callable[[], Any]] = [
        lambda: driver.execute(Fork(LONG, "f")),
        lambda: driver.check("log", lambda *_: None),
        lambda: driver.search("7", lambda *_: None),
    ]
    for attempt in tries:
        with pytest.raises(UsageError) as refused:
            await attempt()
        assert "its history is being read" in f"{refused.value} {refused.value.hint}"
    older = asyncio.create_task(driver.history(LONG - 49, 5))
    held.let_go.set()
    assert [point.step for point in await older] == list(range(LONG - 50, LONG - 55, -1))
    await whole(watcher)
    assert (await watcher.check()).progress.head == LONG
    assert (await driver.check("log", lambda *_: None)).mismatches == ()
    assert await file_hub.open("t", at_once=True) is driver
    with pytest.raises(UsageError):
        await driver.execute(Step())
    with pytest.raises(UnknownThread):
        await file_hub.open("gone", at_once=True)


@pytest.mark.slow
async def test_what_was_read_of_a_file_before_it_was_closed_stays(
    file_hub: RecordedHub, hold: Callable[..., Held]
) -> None:
    held = hold(100)
    await file_hub.open("t", at_once=True)
    await held.until_reached()
    closing = asyncio.create_task(file_hub.close())
    held.let_go.set()
    assert await closing == ()
