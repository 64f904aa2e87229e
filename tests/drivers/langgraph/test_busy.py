"""A thread that a server runs already: what becomes of that run is asked, and nothing has failed."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")

from hitl_tui.cli.opening import execute_in_turn
from hitl_tui.config import load_settings
from hitl_tui.engine.commands import DoubleText, Run, Start, Step
from hitl_tui.errors import ServerBusy, StaleWriter
from hitl_tui.plain.context import Context
from tests.drivers.langgraph.busy import Busy
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.graphs import routed


@pytest.fixture
def busy(saver: Any) -> Busy:
    return Busy(routed([]).compile(checkpointer=saver))


async def test_a_run_is_refused_before_it_begins_and_nothing_failed(busy: Busy, hubs: Hubs) -> None:
    watcher = await hubs.watch(busy.graph)
    await watcher.driver.execute(Start({"log": []}))
    busy.runs = ["theirs"]
    with pytest.raises(ServerBusy):
        await watcher.driver.execute(Run())
    view = await watcher.look()
    assert (view.progress.status, view.progress.head) == ("pending", 0)
    assert "failed" not in [entry.kind for entry in view.ledger]


async def test_a_run_that_is_refused_only_as_it_begins_leaves_the_thread_paused(
    busy: Busy, hubs: Hubs
) -> None:
    watcher = await hubs.watch(busy.graph)
    await watcher.driver.execute(Start({"log": []}))
    busy.refuse_streams()
    view = await watcher.run()
    assert (view.progress.status, view.progress.reason, view.progress.head) == ("waiting", "paused", 0)
    assert "already" in (await watcher.driver.snapshot()).notice


@pytest.mark.parametrize(("strategy", "written"), [("enqueue", 0), ("interrupt", 1), ("rollback", 1)])
async def test_ending_someone_elses_run_is_in_the_ledger(
    busy: Busy, hubs: Hubs, strategy: Any, written: int
) -> None:
    watcher = await hubs.watch(busy.graph)
    await watcher.driver.execute(Start({"log": []}))
    busy.runs = ["theirs"]
    await watcher.driver.execute(DoubleText(strategy, "ann", "mine first"))
    assert busy.made_room == [strategy]
    view = await watcher.step()
    assert view.progress.head == 1
    stops = [entry for entry in view.ledger if entry.kind == "stop"]
    assert [(entry.actor, entry.note, entry.data["runs"]) for entry in stops] == [
        ("ann", "mine first", ["theirs"])
    ] * written


async def test_checkpoints_of_an_awaited_run_are_not_a_conflict(busy: Busy, hubs: Hubs) -> None:
    watcher = await hubs.watch(busy.graph)
    await watcher.driver.execute(Start({"log": []}))
    busy.runs = ["theirs"]
    await watcher.driver.execute(DoubleText("enqueue", "ann"))
    busy.saves("theirs")  # its end was told before
    view = await watcher.step()
    assert view.progress.head == 2


@pytest.mark.parametrize("waits", [True, False])
async def test_what_another_run_saves_is_refused_whether_one_was_waited_for_or_not(
    busy: Busy, hubs: Hubs, waits: bool
) -> None:
    watcher = await hubs.watch(busy.graph)
    await watcher.driver.execute(Start({"log": []}))
    busy.runs = ["theirs"] if waits else []
    if waits:
        await watcher.driver.execute(DoubleText("enqueue", "ann"))
    busy.saves("another")
    with pytest.raises(StaleWriter):
        await watcher.driver.execute(Run())
    assert (await watcher.look()).progress.head == 1


async def test_a_run_that_ends_just_now_is_waited_for_by_who_wants_that(busy: Busy, hubs: Hubs) -> None:
    watcher = await hubs.watch(busy.graph)
    await watcher.driver.execute(Start({"log": []}))
    busy.runs = ["theirs"]

    def end() -> None:
        busy.ends, busy.runs = None, []
        busy.saves("theirs")

    busy.ends = end
    await execute_in_turn(watcher.driver, Step(), load_settings({"on_busy": "enqueue"}))
    view = await watcher.until(lambda view: view.progress.head == 2)
    assert "failed" not in [entry.kind for entry in view.ledger]


class Typed:
    """A console on which the given lines are typed."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.said: list[str] = []

    def say(self, *lines: str) -> None:
        self.said += lines

    def ask(self, prompt: str) -> str:
        self.said.append(prompt)
        return self.lines.pop(0)


class Refusing:
    """A driver of a thread that is busy until room was made."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def execute(self, command: Any) -> None:
        if not self.done and not isinstance(command, DoubleText):
            raise ServerBusy("the server already runs this thread", "wait")
        self.done.append(command)


@pytest.mark.parametrize(
    ("typed", "done"), [("", []), ("nothing", []), ("interrupt", [DoubleText("interrupt", "ann"), Run()])]
)
def test_plain_text_mode_asks_what_to_do_with_the_other_run(typed: str, done: list[Any]) -> None:
    console, driver = Typed(typed), Refusing()
    hub: Any = None
    context = Context(lambda work: work, hub, driver, console, "ann", 15.0)  # type: ignore[arg-type]
    assert context.in_turn(Run()) is bool(done)
    assert driver.done == done
    assert "enqueue waits for it" in " ".join(console.said)
    assert ("Nothing was run." in console.said) is not bool(done)
