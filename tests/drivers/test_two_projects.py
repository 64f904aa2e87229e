"""Threads of two projects, whose modules have the same names, in one list: each runs its own code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import ReloadGraph, Start
from hitl_tui.loading.sources import open_graph, reopen_graph
from tests.drivers.saved_graph import save
from tests.support.watching import Watcher

BOTH = ("a", "b")
SPECS = {"file": "flow.py", "module": "app.flow:build", "TOML": "flow.toml"}
FLOW = """
from hitl_tui import END, START, Channel, StateGraph
import helper

def early(state):
    return {"text": state["text"] + helper.who()}

async def late(state):
    import later
    from package.part import who
    return {"text": state["text"] + later.who() + who()}

def build() -> StateGraph:
    graph = StateGraph({"text": Channel("")}, name="small")
    graph.add_node("early", early).add_node("late", late)
    return graph.add_edge(START, "early").add_edge("early", "late").add_edge("late", END)
"""
TOML = """
[graph]
name = "small"
[channels.text]
default = ""
[nodes.early]
function = "app.flow:early"
reads = ["text"]
writes = ["text"]
[nodes.late]
function = "app/flow.py:late"
reads = ["text"]
writes = ["text"]
[[edges]]
from = "START"
to = "early"
[[edges]]
from = "early"
to = "late"
[[edges]]
from = "late"
to = "END"
"""


def _who(word: str) -> str:
    return f"def who(): return {word!r}\n"


class Projects:
    """Two directories with the same files, a store with a thread of each, and a hub."""

    def __init__(self, place: Path) -> None:
        self.folders = {who: place / who for who in BOTH}
        for who, folder in self.folders.items():
            (folder / "app").mkdir(parents=True)
            (folder / "package").mkdir()
            texts = {"flow.py": FLOW, "flow.toml": TOML, "app/__init__.py": "", "app/flow.py": FLOW}
            modules = dict.fromkeys(("helper.py", "later.py", "package/part.py", "app/helper.py"), _who(who))
            for name, text in {**texts, **modules}.items():
                save(folder / name, text)
        self.store = SQLiteCheckpointer(place / "runs.db")
        self.hub = self.hub_again()

    def hub_again(self) -> LocalHub:
        """A hub that builds the graphs of threads by their records."""
        return LocalHub(self.store, lambda info: reopen_graph(info.thread_id, info.source, self.store))

    async def began(self, who: str, spec: str) -> Watcher:
        """A thread that stands at its first node."""
        folder = self.folders[who]
        name = spec if ":" in spec else str(folder / spec)
        runner = await asyncio.to_thread(open_graph, name, self.store, directory=folder)
        watcher = await Watcher.open(await self.hub.new(who, runner, source=runner.source))
        await watcher.driver.execute(Start({}))
        return watcher


@pytest.fixture
async def projects(tmp_path: Path) -> AsyncIterator[Projects]:
    made = Projects(tmp_path)
    yield made
    await made.hub.close()


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
async def test_threads_of_two_projects_step_in_turns(projects: Projects, spec: str) -> None:
    watchers = {who: await projects.began(who, spec) for who in BOTH}
    assert [row.info.thread_id for row in await projects.hub.threads()] == [*reversed(BOTH)]
    for who in ("b", "a"):
        assert (await watchers[who].step()).values["text"] == who
    for who in ("a", "b"):
        assert (await watchers[who].step()).values["text"] == who * 3
        await watchers[who].check()


async def test_threads_of_two_projects_run_at_the_same_time(projects: Projects) -> None:
    watchers = [await projects.began(who, "flow.py") for who in BOTH]
    views = await asyncio.gather(*(watcher.run() for watcher in watchers))
    assert [view.values["text"] for view in views] == ["aaa", "bbb"]


async def test_threads_are_opened_from_their_records_by_another_hub(projects: Projects) -> None:
    for who in BOTH:
        await projects.began(who, SPECS["module" if who == "a" else "file"])
    for driver in BOTH:
        await (await projects.hub.open(driver)).close()
    projects.hub = projects.hub_again()
    for who in ("b", "a"):
        watcher = await Watcher.open(await projects.hub.open(who))
        assert (await watcher.run()).values["text"] == who * 3


@pytest.mark.parametrize("saved", BOTH)
async def test_a_reload_of_one_leaves_the_other(projects: Projects, saved: str) -> None:
    watchers = {who: await projects.began(who, "flow.py") for who in BOTH}
    for who in BOTH:
        await watchers[who].step()
    save(projects.folders[saved] / "later.py", _who("now"))
    save(projects.folders[saved] / "flow.py", FLOW.replace('state["text"] + later', '"again " + later'))
    await watchers[saved].driver.execute(ReloadGraph())
    for who in BOTH:
        expected = f"again now{who}" if who == saved else who * 3
        assert (await watchers[who].run()).values["text"] == expected
