"""Threads of every checkpointer are listed, opened, stepped, edited, forked and answered as they are."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.continuing import Leg
from hitl_tui.drivers.langgraph.discovery import sync_threads
from hitl_tui.drivers.langgraph.pregel import App, config_of, is_async_saver, on_loop_of
from hitl_tui.engine.commands import Answer, Fork, Start, UpdateState
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.flows import asking
from tests.drivers.langgraph.graphs import Ran, team_of
from tests.support.postgres import Postgres
from tests.support.watching import Watcher

T = TypeVar("T")


class OwnSaver(BaseCheckpointSaver[Any]):
    """The least that a checkpointer of somebody's own has, which can only be called."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = InMemorySaver()

    def get_tuple(self, config: Any) -> Any:
        return self._kept.get_tuple(config)

    def list(self, config: Any, **terms: Any) -> Iterator[Any]:
        return self._kept.list(config, **terms)

    def put(self, *given: Any) -> Any:
        return self._kept.put(*given)

    def put_writes(self, *given: Any) -> None:
        self._kept.put_writes(*given)

    def delete_thread(self, thread_id: str) -> None:
        self._kept.delete_thread(thread_id)

    def get_next_version(self, current: Any, channel: Any) -> Any:
        return self._kept.get_next_version(current, channel)


class AwaitableSaver(BaseCheckpointSaver[Any]):
    """The least that a checkpointer of somebody's own has, which can only be awaited."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = InMemorySaver()

    async def aget_tuple(self, config: Any) -> Any:
        return self._kept.get_tuple(config)

    async def alist(self, config: Any, **terms: Any) -> AsyncIterator[Any]:
        for saved in self._kept.list(config, **terms):
            yield saved

    async def aput(self, *given: Any) -> Any:
        return self._kept.put(*given)

    async def aput_writes(self, *given: Any) -> None:
        self._kept.put_writes(*given)

    async def adelete_thread(self, thread_id: str) -> None:
        self._kept.delete_thread(thread_id)

    def get_next_version(self, current: Any, channel: Any) -> Any:
        return self._kept.get_next_version(current, channel)


class Loop:
    """An event loop in a thread of its own, on which what is async is made, as by a factory."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def enter(self, manager: Any, stack: ExitStack) -> Any:
        entered = self.do(manager.__aenter__())
        stack.callback(lambda: self.do(manager.__aexit__(None, None, None)))
        return entered

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


def async_sqlite(loop: Loop, stack: ExitStack, folder: Path, _url: str) -> Any:
    aio = pytest.importorskip("langgraph.checkpoint.sqlite.aio")
    saver = loop.enter(aio.AsyncSqliteSaver.from_conn_string(str(folder / "theirs.sqlite")), stack)
    try:
        loop.do(saver.setup())
    except AttributeError as error:
        pytest.skip(f"this AsyncSqliteSaver does not work with this aiosqlite: {error}")
    return saver


def sqlite(_loop: Loop, stack: ExitStack, folder: Path, _url: str) -> Any:
    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(folder / "theirs.sqlite", check_same_thread=False)
    stack.callback(connection.close)
    return SqliteSaver(connection)


def postgres_saver(_loop: Loop, stack: ExitStack, _folder: Path, url: str) -> Any:
    postgres = pytest.importorskip("langgraph.checkpoint.postgres")
    saver = stack.enter_context(postgres.PostgresSaver.from_conn_string(url))
    saver.setup()
    return saver


def async_postgres(loop: Loop, stack: ExitStack, _folder: Path, url: str) -> Any:
    aio = pytest.importorskip("langgraph.checkpoint.postgres.aio")
    saver = loop.enter(aio.AsyncPostgresSaver.from_conn_string(url), stack)
    loop.do(saver.setup())
    return saver


def pooled_postgres(loop: Loop, stack: ExitStack, _folder: Path, url: str) -> Any:
    aio = pytest.importorskip("langgraph.checkpoint.postgres.aio")
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    async def make() -> Any:
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        pool: Any = AsyncConnectionPool(url, kwargs=options, min_size=1, max_size=4, open=False)
        await pool.open()
        saver = aio.AsyncPostgresSaver(pool)
        await saver.setup()
        return saver

    saver = loop.do(make())
    stack.callback(lambda: loop.do(saver.conn.close()))
    return saver


Make = Callable[[Loop, ExitStack, Path, str], Any]
MAKERS: dict[str, Make] = {
    "memory": lambda *_: InMemorySaver(),
    "sqlite": sqlite,
    "async-sqlite": async_sqlite,
    "own": lambda *_: OwnSaver(),
    "own-async": lambda *_: AwaitableSaver(),
    "postgres": postgres_saver,
    "async-postgres": async_postgres,
    "pooled-postgres": pooled_postgres,
}
SLOW = ("postgres", "async-postgres", "pooled-postgres")


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in MAKERS])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A checkpointer of each kind, those of PostgreSQL in a database of their own."""
    url = ""
    if request.param in SLOW:
        server: Postgres = request.getfixturevalue("postgres")
        name = f"theirs_{uuid.uuid4().hex}"
        with server.admin() as db:
            db.execute(f'CREATE DATABASE "{name}"'.encode())
        url = server.url(name)
    loop = Loop()
    with ExitStack() as stack:
        stack.callback(loop.end)  # also where making the saver skips the test
        yield MAKERS[request.param](loop, stack, tmp_path, url)


async def run_by_langgraph_alone(graph: Any, thread: str, given: Any) -> None:
    """Run a thread as far as it goes, as somebody else's program does."""
    app = App(graph)
    if app.is_async:
        await app.run_async(given, config_of(thread), lambda _part: None, leg=Leg())
    else:
        await asyncio.to_thread(app.run, given, config_of(thread), lambda _part: None, leg=Leg())
    app.close()


async def answered(watcher: Watcher, answer: str) -> None:
    (request,) = watcher.view.progress.pending
    await watcher.driver.execute(Answer(request.id, answer, request.step, "ann"))
    await watcher.run()
    assert (await watcher.check()).progress.status == "completed"


async def test_a_thread_of_another_program_is_listed_opened_and_answered(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    await run_by_langgraph_alone(graph, "theirs", {"items": ["theirs"]})
    hub = hubs.over(graph)
    await sync_threads(hub.mirror)
    (summary,) = await hub.threads(waiting=True)
    assert (summary.info.thread_id, summary.status, summary.head) == ("theirs", "waiting", 2)
    watcher = await Watcher.open(await hub.open("theirs"))
    assert [point.node for point in watcher.view.checkpoints] == ["", "plan", "work"]
    await answered(watcher, "yes")
    state = await hub.mirror.app.state(config_of("theirs"))
    assert state is not None
    assert state.values["items"] == ["theirs", "plan", "work 0", "work 1", "yes"]


async def test_a_thread_that_was_deleted_there_is_listed_and_queued_no_more(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    for name in ("kept", "gone"):
        await run_by_langgraph_alone(graph, name, {"items": ["theirs"]})
    hub = hubs.over(graph)
    await sync_threads(hub.mirror)
    assert {row.info.thread_id for row in await hub.threads()} == {"kept", "gone"}
    if is_async_saver(saver):
        await on_loop_of(saver, saver.adelete_thread("gone"))
    else:
        saver.delete_thread("gone")
    assert [row.info.thread_id for row in await hub.threads()] == ["kept"]
    assert [row.thread.info.thread_id for row in await hub.waiting(50)] == ["kept"]


async def test_a_channel_that_keeps_only_writes_is_read_reduced_and_edited(saver: Any, hubs: Hubs) -> None:
    delta = pytest.importorskip("langgraph.channels.delta", reason="this LangGraph has no DeltaChannel")
    if isinstance(saver, (OwnSaver, AwaitableSaver)):
        pytest.skip("LangGraph itself reads parallel writes of one that knows no deltas as they ended")

    def join(held: Any, writes: Any) -> Any:
        return [*(held or []), *(word for write in writes for word in write)]

    words = Annotated[list[str], delta.DeltaChannel(join, snapshot_frequency=3)]
    state: Any = TypedDict("Words", {"words": words})  # type: ignore[valid-type]
    graph = StateGraph(state)
    for name in ("first", "left", "right", "last"):
        graph.add_node(name, lambda _state, name=name: {"words": [name]})
    graph.add_edge(START, "first")
    for name in ("left", "right"):
        graph.add_edge("first", name)
        graph.add_edge(name, "last")
    app = graph.compile(checkpointer=saver)
    await run_by_langgraph_alone(app, "theirs", {"words": ["in"]})
    hub = hubs.over(app)
    theirs = await Watcher.open(await hub.open("theirs"))
    assert theirs.view.values["words"] == ["in", "first", "left", "right", "last"]
    updates = (await theirs.driver.updates(2, 2))[2]
    assert [(each.reducer, each.update, each.after) for each in updates] == [
        ("join", ["left"], ["in", "first", "left"]),
        ("join", ["right"], ["in", "first", "left", "right"]),
    ]
    watcher = await hubs.watch(app, "ours")
    await watcher.driver.execute(Start({"words": ["in"]}, actor="ann"))
    await watcher.step()
    await watcher.driver.execute(UpdateState({"words": ["edited"]}, expected_step=1, actor="ann"))
    await watcher.run()
    assert (await watcher.check()).values["words"] == ["edited", "left", "right", "last"]
    assert (await watcher.driver.check("log", lambda *_: None)).mismatches == ()


@pytest.mark.slow
async def test_a_thread_is_stepped_edited_forked_and_read_again(saver: Any, hubs: Hubs) -> None:
    from langgraph import types

    graph = asking(saver)
    watcher = await hubs.watch(graph, "own", mirror="mirror.db")
    driver = watcher.driver
    await driver.execute(Start({"items": ["in"]}, actor="ann"))
    await watcher.step()
    assert (await watcher.check()).progress.next_node == "work"
    edits = hasattr(types, "Overwrite")
    if edits:
        await driver.execute(UpdateState({"items": ["edited"]}, expected_step=1, actor="ann", note="why"))
    assert await driver.execute(Fork(1, "fork", actor="ann")) == "fork"
    await watcher.run()
    await answered(watcher, "good")
    started = ["edited"] if edits else ["in", "plan"]
    assert watcher.view.values["items"] == [*started, "work 0", "work 1", "good"]
    assert (await driver.check("log", lambda *_: None)).mismatches == ()
    await hubs.close()
    hub = hubs.over(graph, "mirror.db")
    fork = await Watcher.open(await hub.open("fork"))
    await fork.run()
    await answered(fork, "forked")
    assert fork.view.values["items"] == ["in", "plan", "work 0", "work 1", "forked"]
    reopened = await Watcher.open(await hubs.over(graph).open("own"))
    assert reopened.view.values["items"] == watcher.view.values["items"]
    assert [point.state_hash for point in reopened.view.checkpoints] == [
        point.state_hash for point in watcher.view.checkpoints
    ]


@pytest.mark.slow
async def test_a_subgraph_that_was_edited_inside_continues_with_the_edit(saver: Any, hubs: Hubs) -> None:
    ran: Ran = []
    graph = team_of(ran).compile(checkpointer=saver)
    hub = hubs.over(graph)
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": ["in"]}))
    await outer.step()
    await outer.step(into=True)
    child = (await outer.driver.snapshot()).unfinished
    assert (child is not None, ran) == (True, [])
    assert child is not None
    inner = await Watcher.open(await hub.open(child.child))
    await inner.step()
    assert (ran, (await inner.check()).progress.next_node) == (["gather"], "ask")
    await inner.driver.execute(UpdateState({"draft": "edited"}, as_node="gather", actor="ann"))
    assert (await inner.check()).values["draft"] == "edited"
    await inner.step()
    (request,) = (await inner.check()).progress.pending
    await inner.driver.execute(Answer(request.id, "yes", request.step, "ann"))
    await inner.step()
    assert (await inner.check()).progress.status == "completed"
    await outer.run()
    view = await outer.check()
    assert (view.progress.status, view.values["draft"]) == ("completed", "edited")
    state = await hub.mirror.app.state(config_of("t"))
    assert state is not None
    assert (state.values["draft"], state.values["log"][-1]) == ("edited", "ask yes")
    for watcher in (outer, inner):
        assert (await watcher.driver.check("log", lambda _done, _all: None)).mismatches == ()


async def test_the_size_of_a_thread_is_listed_by_channel_as_the_checkpointer_stores_it(
    saver: Any, hubs: Hubs, request: pytest.FixtureRequest
) -> None:
    class Large(TypedDict, total=False):
        text: str
        n: int

    graph = StateGraph(Large)
    graph.add_node("count", lambda state: {"n": state.get("n", 0) + 1})
    graph.add_edge(START, "count")
    graph.add_conditional_edges("count", lambda state: "count" if state["n"] < 10 else "__end__")
    compiled = graph.compile(checkpointer=saver)
    await run_by_langgraph_alone(compiled, "large", {"text": "x" * 10_000})
    await run_by_langgraph_alone(compiled, "small", {"text": "x"})
    hub = hubs.over(compiled)
    looked: list[tuple[int, int]] = []
    sizes, space = await hub.sizes(lambda done, of: looked.append((done, of)))
    assert [size.thread_id for size in sizes] == ["large", "small"]
    assert looked == [(1, 2), (2, 2)]
    assert sizes[0].steps == 12
    # Where a value that stays is kept once it is there as what was written, and as what the channel holds.
    kept = (
        2
        if any(kind.__name__ in ("InMemorySaver", "BasePostgresSaver") for kind in type(saver).__mro__)
        else 12
    )
    assert sizes[0].channels["text"] == pytest.approx(kept * 10_000, rel=0.05)
    if "[sqlite]" in request.node.name:
        (stored,) = saver.conn.execute(
            "SELECT (SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints)"
            " + (SELECT sum(length(value)) FROM writes)"
        ).fetchone()
        assert sum(size.bytes for size in sizes) == pytest.approx(stored, rel=0.05)
        assert space.used > stored
