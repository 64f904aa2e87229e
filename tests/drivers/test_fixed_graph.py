"""A thread that was opened from its log, since its graph was broken: mending the graph offers the reload."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Fork, PrepareGraph, ReloadGraph, Run, Start, Step, UpdateState
from hitl_tui.errors import GraphInvalid, UsageError
from hitl_tui.loading.code import forget_code
from hitl_tui.loading.sources import open_graph, reopen_graph
from tests.support.flows import ledger_of
from tests.support.watching import Watcher

FILE = """
from hitl_tui import END, START, Channel, StateGraph
from HELPER import WORD

def a(state):
    return {"text": state["text"] + WORD}

graph = (
    StateGraph({"text": Channel("")}, name="small")
    .add_node("a", a).add_node("b", a)
    .add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
)
"""


class Desk:
    """A thread that stands before its second node, in a store that is opened again and again."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "small.py"
        # A module of its own for each test: one is never imported twice under the same name.
        self.helper = folder / f"words_of_{folder.name}.py"
        self.folder = folder
        self.hub: LocalHub | None = None
        self.save(FILE)
        self.helper.write_text('WORD = "a"\n')
        self.store = SQLiteCheckpointer(folder / "runs.db")

    def save(self, text: str) -> None:
        self.file.write_text(text.replace("HELPER", self.helper.stem))

    async def begin(self) -> None:
        runner = open_graph(str(self.file), self.store)
        hub = LocalHub(self.store, lambda info: reopen_graph(info.thread_id, info.source, self.store))
        watcher = await Watcher.open(await hub.new("t", runner, source=runner.source))
        await watcher.driver.execute(Start({}))
        await watcher.step()
        await hub.close()
        forget_code(self.folder)

    async def open(self) -> Watcher:
        self.store = SQLiteCheckpointer(self.folder / "runs.db")
        self.hub = LocalHub(
            self.store,
            lambda info: reopen_graph(info.thread_id, info.source, self.store),
            lambda thread, error: f"it can't be built: {error.message}",
        )
        return await Watcher.open(await self.hub.open("t"))

    async def build(self) -> Watcher:
        """Open the thread and let its graph be built, as whatever runs does first."""
        watcher = await self.open()
        with suppress(GraphInvalid, UsageError):
            await watcher.driver.execute(PrepareGraph())
        await watcher.look()
        return watcher


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr("hitl_tui.drivers.graph_file.EVERY", 0.02)
    made = Desk(tmp_path)
    await made.begin()
    yield made
    if made.hub:
        await made.hub.close()
    forget_code(tmp_path)


def broken(desk: Desk) -> None:
    desk.save(FILE + "1 / 0\n")


def half_written(desk: Desk) -> None:
    desk.save(FILE.replace("def a(state):", "def a(state"))


def gone(desk: Desk) -> None:
    desk.file.unlink()


def broken_helper(desk: Desk) -> None:
    desk.helper.write_text("WORD = (\n")


def missing_helper(desk: Desk) -> None:
    desk.helper.unlink()


@pytest.mark.parametrize("spoil", [broken, half_written, gone, broken_helper, missing_helper])
@pytest.mark.slow
async def test_a_fixed_graph_offers_a_reload_and_the_thread_continues(
    desk: Desk, spoil: Callable[[Desk], None]
) -> None:
    spoil(desk)
    watcher = await desk.open()
    assert not watcher.driver.refusal(Run)
    with pytest.raises((GraphInvalid, UsageError), match=r"small\.py|words_of_"):
        await watcher.driver.execute(Step())
    await watcher.look()
    assert [node.name for node in watcher.view.graph.nodes] == ["a", "b"]
    assert watcher.driver.refusal(Run) == watcher.view.refusals["run"] != ""
    assert watcher.driver.refusal(ReloadGraph) == ""
    with pytest.raises(UsageError, match="is read-only"):
        await watcher.driver.execute(Step())
    desk.helper.write_text('WORD = "b"\n')
    if spoil not in (broken_helper, missing_helper):
        desk.save(FILE)
    view = await watcher.until(lambda view: view.graph_changed == ())
    assert await watcher.driver.execute(ReloadGraph(actor="ann")) == ()
    await watcher.until(lambda view: not view.refusals and view.graph_changed is None)
    assert watcher.driver.refusal(Run) == ""
    assert [node.name for node in view.graph.nodes] == ["a", "b"]
    assert (await watcher.run()).values["text"] == "ab"
    assert await watcher.driver.execute(Fork(1, "u"))
    assert [entry.actor for entry in ledger_of(desk.store, "t", "graph")] == ["ann"]
    await watcher.check()


@pytest.mark.slow
async def test_a_fix_that_does_not_fit_is_refused_and_a_better_one_is_reported(desk: Desk) -> None:
    broken(desk)
    watcher = await desk.build()
    desk.save(FILE.replace('"b"', '"other"'))
    view = await watcher.until(lambda view: view.graph_changed)
    assert view.graph_changed is not None
    assert view.graph_changed[0] == "the thread continues at node 'b', which is gone"
    with pytest.raises(GraphInvalid, match="continues at node 'b'"):
        await watcher.driver.execute(ReloadGraph())
    assert (await watcher.look()).refusals["run"]
    with pytest.raises(UsageError, match="is read-only"):
        await watcher.driver.execute(UpdateState({"text": "x"}, expected_step=1))
    desk.save(FILE.replace('Channel("")}', 'Channel(""), "more": Channel(7)}'))
    view = await watcher.until(lambda view: view.graph_changed and "more" in view.graph_changed[-1])
    await watcher.driver.execute(ReloadGraph())
    assert (await watcher.run()).values == {"text": "aa", "more": 7}


async def test_a_reload_while_it_is_still_broken_says_why_and_it_stays_as_it_was(desk: Desk) -> None:
    broken(desk)
    watcher = await desk.build()
    with pytest.raises(GraphInvalid, match="division by zero"):
        await watcher.driver.execute(ReloadGraph())
    assert watcher.view.values["text"] == "a"
    assert (await watcher.driver.snapshot()).refusals["run"]


@pytest.mark.slow
async def test_any_file_beside_a_broken_graph_can_be_the_fix(desk: Desk) -> None:
    watcher = await desk.build()
    desk.save(FILE.replace("import WORD", "import WORD\nfrom more import MORE"))
    await watcher.until(lambda view: view.graph_changed and "can't be loaded" in view.graph_changed[0])
    (desk.folder / "more.py").write_text("MORE = 1\n")
    await watcher.until(lambda view: view.graph_changed == ())
    await watcher.driver.execute(ReloadGraph())
    assert (await watcher.run()).values["text"] == "aa"


@pytest.mark.slow
async def test_building_a_graph_says_how_it_differs_from_the_one_the_thread_ran_on(desk: Desk) -> None:
    desk.save(FILE.replace('Channel("")}', 'Channel(""), "more": Channel(7)}'))
    assert (await desk.open()).view.notice == ""
    assert desk.hub is not None
    await desk.hub.close()
    watcher = await desk.build()
    assert watcher.view.notice == (
        "the graph has changed since this thread last ran: channel 'more' is new and starts at its default"
    )
    await watcher.step()
    assert [entry.kind for entry in desk.store.ledger("t")] == ["graph", "channels"]
    assert desk.hub is not None
    await desk.hub.close()
    assert (await desk.open()).view.notice == ""
