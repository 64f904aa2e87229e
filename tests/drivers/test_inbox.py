"""Several stores in one inbox: read apart, named, and tried again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hitl_tui.drivers import inbox as module
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.inbox import SeveralSources, Source
from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.log.threads import ThreadInfo, Waiting
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import NoSuchStore, StoreUnusable
from hitl_tui.stores import open_store
from tests.support.two_stores import asking


def _unbuilt(info: ThreadInfo) -> GraphRunner:
    raise AssertionError(info)


def hub_over(file: Path) -> LocalHub:
    """A hub over a store that exists."""
    if not file.exists():
        raise NoSuchStore(f"there is no store {file}")
    return LocalHub(open_store(str(file), create=False), _unbuilt)


def source(name: str, file: Path) -> Source:
    async def connect() -> Hub:
        return hub_over(file)

    return Source(name, str(file), connect, file)


class Two:
    """An inbox over the stores a and b, of which only a exists; each has a thread `t`."""

    def __init__(self, folder: Path) -> None:
        self.files = {name: folder / f"{name}.db" for name in ("a", "b")}
        asking(self.files["a"], "t")
        home = hub_over(self.files["a"])
        sources = [source(name, file) for name, file in self.files.items()]
        self.inbox = SeveralSources(sources, "a", home, patience=module._SILENT)

    async def waits(self) -> list[tuple[str, str]]:
        return [(row.source, row.thread.info.thread_id) for row in await self.inbox.waiting(100)]

    def status(self) -> dict[str, str]:
        return {source.name: source.status for source in self.inbox.sources()}

    async def until(self, right: Callable[[], bool]) -> None:
        """Read as a screen does until something holds."""
        async with asyncio.timeout(30):
            while not right():
                await self.inbox.waiting(100)
                await asyncio.sleep(0)


@pytest.fixture
async def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Two]:
    monkeypatch.setattr(module, "_FIRST_DELAY", 0.01)
    monkeypatch.setattr(module, "_LONGEST_DELAY", 0.01)
    made = Two(tmp_path)
    yield made
    await made.inbox.close()


async def test_threads_of_one_name_in_two_stores_are_two(two: Two) -> None:
    asking(two.files["b"], "t")
    assert await two.waits() == [("a", "t"), ("b", "t")]
    assert two.status() == {"a": "ready", "b": "ready"}
    drivers = [await two.inbox.hub_of(name).open("t") for name in ("a", "b")]
    assert drivers[0] is not drivers[1]
    hubs = [two.inbox.hub_of(name) for name in ("a", "b")]
    assert [(hub.source, hub.inbox) for hub in hubs] == [("a", two.inbox), ("b", two.inbox)]


async def test_a_store_that_does_not_exist_yet_joins_when_it_does(two: Two) -> None:
    assert await two.waits() == [("a", "t")]
    missing = two.inbox.sources()[1]
    assert missing.status == "unavailable"
    assert missing.problem == f"there is no store {two.files['b']}"
    with pytest.raises(StoreUnusable, match="source 'b' is unavailable: there is no store"):
        two.inbox.hub_of("b")
    asking(two.files["b"], "t")
    await two.until(lambda: two.status()["b"] == "ready")
    assert await two.waits() == [("a", "t"), ("b", "t")]


async def test_a_store_that_was_moved_away_is_unavailable_until_it_is_back(two: Two, tmp_path: Path) -> None:
    asking(two.files["b"], "t")
    assert await two.waits() == [("a", "t"), ("b", "t")]
    opened = two.inbox.hub_of("b")
    two.files["b"].rename(tmp_path / "away.db")
    assert two.inbox.changes() is None  # so that it is read
    assert await two.waits() == [("a", "t")]
    assert "was deleted, moved or replaced" in two.inbox.sources()[1].problem
    (tmp_path / "away.db").rename(two.files["b"])
    await two.until(lambda: two.status()["b"] == "ready")
    assert await two.waits() == [("a", "t"), ("b", "t")]
    assert two.inbox.hub_of("b") is opened


async def test_a_store_in_whose_place_another_one_was_put_is_opened_again(two: Two) -> None:
    asking(two.files["b"], "t")
    await two.waits()
    opened = two.inbox.hub_of("b")
    two.files["b"].unlink()
    asking(two.files["b"], "u")
    await two.until(lambda: two.inbox.hub_of("b") is not opened)
    assert await two.waits() == [("a", "t"), ("b", "u")]


async def test_a_slow_source_delays_no_other_and_wakes_when_it_is_there(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking(two.files["b"], "t")
    slow, waiting, woken = asyncio.Event(), LocalHub.waiting, asyncio.Event()

    async def waits_late(self: LocalHub, limit: int) -> tuple[Waiting, ...]:
        if self._store.path == two.files["b"]:  # type: ignore[attr-defined]
            await slow.wait()
        return await waiting(self, limit)

    monkeypatch.setattr(LocalHub, "waiting", waits_late)
    sources = [source(name, file) for name, file in two.files.items()]
    inbox = SeveralSources(sources, "a", two.inbox.home, patience=0.01)
    inbox.subscribe(woken.set)
    assert [row.source for row in await inbox.waiting(100)] == ["a"]
    assert [state.status for state in inbox.sources()] == ["ready", "connecting"]
    before = inbox.changes()
    slow.set()
    await asyncio.wait_for(woken.wait(), 30)
    assert inbox.changes() != before
    assert [row.source for row in await inbox.waiting(100)] == ["a", "b"]
    await inbox.hub_of("b").close()


async def test_a_store_that_opens_but_can_not_be_read_is_closed_again(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking(two.files["b"], "t")
    waiting, closed, joined, broken = LocalHub.waiting, list[str](), list[str](), [True]

    async def waits(self: LocalHub, limit: int) -> tuple[Waiting, ...]:
        if broken and self._store.path == two.files["b"]:  # type: ignore[attr-defined]
            raise StoreUnusable("it is broken")
        return await waiting(self, limit)

    async def close(self: LocalHub) -> tuple[str, ...]:
        closed.append(str(self._store.path))  # type: ignore[attr-defined]
        return await shut(self)

    shut = LocalHub.close
    monkeypatch.setattr(LocalHub, "waiting", waits)
    monkeypatch.setattr(LocalHub, "close", close)
    sources = [source(name, file) for name, file in two.files.items()]
    sources[1].connected = lambda: joined.append("b")
    inbox = SeveralSources(sources, "a", two.inbox.home, patience=module._SILENT)
    assert [row.source for row in await inbox.waiting(100)] == ["a"]
    assert inbox.sources()[1].problem == "it is broken"
    assert (closed, joined) == ([str(two.files["b"])], [])
    broken.clear()
    async with asyncio.timeout(30):
        while inbox.sources()[1].status != "ready":
            await inbox.waiting(100)
            await asyncio.sleep(0)
    assert joined == ["b"]
    await inbox.hub_of("b").close()


async def test_a_hub_of_one_store_is_its_own_inbox(tmp_path: Path) -> None:
    asking(tmp_path / "a.db", "t")
    hub = hub_over(tmp_path / "a.db")
    assert hub.inbox is hub.home is hub.hub_of("") is hub
    assert hub.sources() == ()
    assert [row.source for row in await hub.waiting(100)] == [""]
    await hub.close()
