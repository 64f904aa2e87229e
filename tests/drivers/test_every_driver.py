"""What all drivers do: those of our threads, of LangGraph's here and of LangGraph's on a server.

Each test runs the same line of nodes on each kind of driver.
"""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Run, Start, decode_command, encode_command
from hitl_tui.engine.log.events import AttemptFailed, RunEnded, RunStarted
from hitl_tui.engine.thread.breakpoints import Breakpoint
from tests.support.any_store import new_store
from tests.support.flows import line
from tests.support.replay_driver import ReplayDriver
from tests.support.watching import COMPARED, Watcher

Says = Callable[[], str]
"""A node: what it returns is added to the channel `log`."""


class Ours:
    """Drivers of our own threads."""

    def __init__(self, directory: Path) -> None:
        self._store = new_store("sqlite", directory)
        self._hub: LocalHub | None = None

    async def watch(self, *nodes: Says) -> Watcher:
        """Open a thread whose graph runs the nodes `a`, `b` and so on, one after the other."""
        runner = line(self._store, *(lambda _state, node=node: {"log": node()} for node in nodes))
        self._hub = LocalHub(self._store, lambda info: runner)
        return await Watcher.open(await self._hub.new("t", runner))

    def start(self) -> Start:
        return Start({"log": "go"}, "ann")

    async def close(self) -> None:
        if self._hub:
            await self._hub.close()
        self._store.close()


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


class LangGraphs:
    """Drivers of LangGraph's threads, in this process or on a server."""

    def __init__(self, directory: Path, *, on_a_server: bool = False) -> None:
        pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")
        from langgraph.checkpoint.memory import InMemorySaver

        from tests.drivers.langgraph.conftest import Hubs, ServersSaver

        self._saver: Any = ServersSaver() if on_a_server else InMemorySaver()
        self._hubs = Hubs(directory)

    async def watch(self, *nodes: Says) -> Watcher:
        from langgraph.graph import END, START, StateGraph

        graph: Any = StateGraph(Log)
        names = [chr(ord("a") + place) for place in range(len(nodes))]
        for name, node in zip(names, nodes, strict=True):
            graph.add_node(name, lambda _state, node=node: {"log": [node()]})
        for source, target in zip([START, *names], [*names, END], strict=True):
            graph.add_edge(source, target)
        return await self._hubs.watch(graph.compile(checkpointer=self._saver))

    def start(self) -> Start:
        return Start({"log": ["go"]}, "ann")

    async def close(self) -> None:
        await self._hubs.close()


@pytest.fixture(params=["ours", "langgraph", pytest.param("server", marks=pytest.mark.integration)])
async def drivers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ours | LangGraphs]:
    kind = request.param
    opened = Ours(tmp_path) if kind == "ours" else LangGraphs(tmp_path, on_a_server=kind == "server")
    yield opened
    await opened.close()


def say(text: str) -> Says:
    return lambda: text


class Unlucky:
    """A node that fails the first time."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls == 1:
            raise ValueError("no luck")
        return "lucky"


async def test_events_are_kept_for_later_watchers(drivers: Ours | LangGraphs) -> None:
    watcher = await drivers.watch(say("one"), say("two"))
    begin = watcher.view.last_event
    await watcher.driver.execute(drivers.start())
    await watcher.run()
    events = watcher.driver.events(begin)
    assert [one.number for one in events] == list(range(begin + 1, begin + 1 + len(events)))
    assert watcher.driver.events(events[2].number) == events[3:]
    assert watcher.driver.events(events[-1].number) == ()


async def test_a_recording_played_back_shows_the_same(drivers: Ours | LangGraphs) -> None:
    live = await drivers.watch(say("one"), say("two"))
    begin = await live.driver.snapshot()
    await live.driver.execute(drivers.start())
    await live.run()
    end = await live.driver.snapshot()
    states = {step: await live.driver.state_at(step) for step in range(end.progress.head + 1)}
    updates = {step: (await live.driver.updates(step, step))[step] for step in states}
    tape = ReplayDriver(begin, live.driver.events(0), states, updates, checkpoints=end.checkpoints)
    watcher = await Watcher.open(tape)
    tape.advance_all()
    view = await watcher.look()
    for name in COMPARED:
        assert getattr(view, name) == getattr(live.view, name), name
    assert await tape.history(before=2, limit=1) == await live.driver.history(before=2, limit=1)
    assert await tape.state_at(1) == await live.driver.state_at(1)
    assert await tape.written(0, 2) == await live.driver.written(0, 2)
    for only in (None, "log"):
        some = await live.driver.updates(0, 2, only)
        assert await tape.updates(0, 2, only) == some
        assert some == {
            step: tuple(one for one in updates[step] if only in (None, one.channel)) for step in range(3)
        }


async def test_history_and_state_of_any_step(drivers: Ours | LangGraphs) -> None:
    watcher = await drivers.watch(*[say(str(n)) for n in range(6)])
    driver = watcher.driver
    await driver.execute(drivers.start())
    await watcher.run()
    assert [point.step for point in await driver.history(limit=3)] == [6, 5, 4]
    assert [point.step for point in await driver.history(before=4, limit=3)] == [3, 2, 1]
    assert list((await driver.state_at(2))["log"]) == ["go", "0", "1"]
    assert await driver.written(2, 3) == {2: {"log": True}, 3: {"log": True}}


async def test_a_failed_node_is_shown_and_the_run_continues_from_it(drivers: Ours | LangGraphs) -> None:
    watcher = await drivers.watch(say("one"), Unlucky())
    await watcher.driver.execute(drivers.start())
    view = await watcher.run()
    assert (view.progress.status, view.progress.reason) == ("failed", "node_error")
    assert view.error is not None
    assert "no luck" in view.error.message
    assert "Traceback" in view.error.details
    assert len(watcher.events_of(AttemptFailed)) == 1
    await watcher.check()
    assert (await watcher.run()).progress.status == "completed"
    assert (await watcher.check()).error is None


async def test_running_a_thread_with_nothing_to_do_ends_at_once(drivers: Ours | LangGraphs) -> None:
    watcher = await drivers.watch(say("one"))
    await watcher.run()
    assert watcher.events_of(RunStarted) == []
    await watcher.driver.execute(drivers.start())
    await watcher.run()
    await watcher.run()
    assert len(watcher.events_of(RunStarted)) == 1
    await watcher.check()


async def test_a_breakpoint_is_of_this_run_alone(drivers: Ours | LangGraphs) -> None:
    watcher = await drivers.watch(say("one"), say("two"), say("three"))
    await watcher.driver.execute(drivers.start())
    view = await watcher.run(breakpoints=(Breakpoint("before", "c"),))
    assert (view.progress.head, view.progress.next_node) == (2, "c")
    assert (await watcher.run()).progress.status == "completed"


async def test_a_command_given_as_json_does_the_same_as_the_object(drivers: Ours | LangGraphs) -> None:
    watcher = await drivers.watch(say("one"))
    ended = len(watcher.events_of(RunEnded))
    for command in (drivers.start(), Run()):
        await watcher.driver.execute(decode_command(encode_command(command)))
    view = await watcher.until(lambda _: len(watcher.events_of(RunEnded)) > ended)
    assert (view.progress.status, list(view.values["log"])) == ("completed", ["go", "one"])
    await watcher.check()
