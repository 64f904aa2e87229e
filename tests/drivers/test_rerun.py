"""A graph is mended: which steps stand under the new code, what would run again, and the fork that does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.audit.step_test import step_test
from hitl_tui.engine.commands import Fork, Rerun, Run, WriteTest
from hitl_tui.engine.log.events import GraphChanged
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.errors import GraphInvalid, UsageError
from hitl_tui.loading.code import forget_code
from tests.drivers.saved_graph import SavedGraph, save
from tests.support.watching import Watcher

FILE = """
from hitl_tui import END, START, Channel, ModelUse, NodeResult, StateGraph
from helpers import score_of

USED = [ModelUse("judge", "a provider", "a model", 100, 20, 0.25)]

def double(old, new):
    return old + new

def collect(state):
    return {"facts": [state["n"]], "n": state["n"] + 1}

def score(state):
    return {"score": score_of(len(state["facts"]))}

def merge(state):
    return NodeResult({"report": str(state["score"])}, compensation=("unsend", None), usage=USED)

def enough(state):
    return "done" if state["n"] >= 2 else "again"

def unsend(state, config, args):
    return None

graph = (
    StateGraph(
        {"facts": Channel([], reducer=double), "n": Channel(0), "score": Channel(0), "report": Channel("")},
        name="score",
    )
    .add_node("collect", collect).add_node("score", score, external="web").add_node("merge", merge)
    .add_compensation("unsend", unsend)
    .add_edge(START, "collect").add_edge("collect", "score").add_edge("score", "merge")
    .add_conditional_edge("merge", enough, {"again": "collect", "done": END})
)
"""
HELPERS = """
def score_of(count):
    return count * 10
"""


class Bench(SavedGraph):
    """A thread that ran on a file, which is saved again."""

    def __init__(self, folder: Path) -> None:
        super().__init__((folder / "score.py", FILE), (folder / "helpers.py", HELPERS))

    async def ran(self) -> Watcher:
        """A thread that ran to its end: collect, score, merge, twice."""
        watcher = await self.started()
        await watcher.run()
        return watcher

    def change(self, *change: str, file: Path | None = None) -> None:
        """Save a file with something changed; a helper's or, by default, the graph's."""
        path = file or self.file
        assert change[0] in path.read_text()
        save(path, path.read_text().replace(*change))

    async def rerun(self, watcher: Watcher) -> Watcher:
        """Fork where the thread stands, and run on there."""
        name = await watcher.driver.execute(Rerun("t-again", actor="ann"))
        fork = await Watcher.open(await self.hub.open(name))
        await fork.run()
        return fork


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr("hitl_tui.drivers.graph_file.EVERY", 0.02)
    bench = Bench(tmp_path)
    yield bench
    await bench.hub.close()
    forget_code(tmp_path)


async def plan(watcher: Watcher) -> Repeats:
    repeats = (await watcher.driver.preview(Rerun("x"))).repeats
    assert repeats is not None
    return repeats


@pytest.mark.slow
async def test_a_changed_node_invalidates_all_later_steps_and_the_fork_runs_from_there(bench: Bench) -> None:
    watcher = await bench.ran()
    assert watcher.view.values["report"] == "20"
    bench.change('str(state["score"])', '"score " + str(state["score"])')
    view = await watcher.until(lambda view: view.repeats is not None)
    assert view.repeats == await plan(watcher)
    assert view.repeats is not None
    assert (view.repeats.step, view.repeats.changed) == (2, ("merge",))
    assert {repeat.node: repeat.runs for repeat in view.repeats.nodes} == {
        "merge": 2,
        "collect": 1,
        "score": 1,
    }
    reach = {repeat.node: repeat.outside for repeat in view.repeats.outside}
    assert (view.repeats.tokens_in, view.repeats.cost, view.repeats.cost_known) == (200, 0.5, True)
    assert reach == {"merge": ("did what unsend undoes",), "score": ("brings in web",)}
    fork = await bench.rerun(watcher)
    assert (fork.view.parent, fork.view.fork_step) == ("t", 2)
    assert fork.view.values["report"] == "score 20"
    assert (await watcher.look()).values["report"] == "20"
    assert [event.repeats for event in watcher.events_of(GraphChanged)] == [view.repeats]


@pytest.mark.slow
async def test_a_changed_helper_counts_for_the_nodes_that_call_it(bench: Bench) -> None:
    watcher = await bench.ran()
    bench.change("count * 10", "count * 11", file=bench.helper)
    view = await watcher.until(lambda view: view.repeats is not None)
    assert view.repeats is not None
    assert (view.repeats.step, view.repeats.changed) == (1, ("score",))
    assert (await bench.rerun(watcher)).view.values["report"] == "22"


@pytest.mark.slow
async def test_an_earlier_fix_is_not_reported_as_a_change_again(bench: Bench) -> None:
    watcher = await bench.ran()
    bench.change("count * 10", "count * 11", file=bench.helper)
    await watcher.until(lambda view: view.repeats is not None)
    fork = await bench.rerun(watcher)
    bench.change('str(state["score"])', '"score " + str(state["score"])')
    view = await fork.until(lambda view: view.repeats is not None)
    assert view.repeats is not None
    assert (view.repeats.step, view.repeats.changed) == (2, ("merge",))


@pytest.mark.slow
async def test_a_changed_reducer_counts_for_the_steps_that_wrote_its_channel(bench: Bench) -> None:
    watcher = await bench.ran()
    bench.change("return old + new", "return [*old, *new][-1:]")
    view = await watcher.until(lambda view: view.repeats is not None)
    assert view.repeats is not None
    assert (view.repeats.step, view.repeats.changed) == (0, ("channel facts",))
    assert (await bench.rerun(watcher)).view.values["facts"] == [1]


@pytest.mark.slow
async def test_after_a_changed_route_the_next_node_is_chosen_again(bench: Bench) -> None:
    watcher = await bench.ran()
    bench.change('state["n"] >= 2', 'state["n"] >= 1')
    repeats = await plan(watcher)
    assert (repeats.step, repeats.changed, repeats.rerouted) == (3, ("the route after merge",), True)
    fork = await bench.rerun(watcher)
    assert (fork.view.progress.status, fork.view.progress.head, fork.view.fork_step) == ("completed", 3, 3)


@pytest.mark.slow
async def test_a_run_that_ended_too_early_continues_from_its_end(bench: Bench) -> None:
    watcher = await bench.ran()
    bench.change('state["n"] >= 2', 'state["n"] >= 3 or state["n"] == 1 and 0')
    repeats = await plan(watcher)
    assert (repeats.step, repeats.nodes, repeats.rerouted) == (6, (), True)
    fork = await bench.rerun(watcher)
    assert fork.view.values["n"] == 3


@pytest.mark.slow
async def test_a_changed_route_that_leads_where_it_led_keeps_the_steps_after_it(bench: Bench) -> None:
    watcher = await bench.ran()
    bench.change('state["n"] >= 2', 'not state["n"] < 2')
    repeats = await plan(watcher)
    assert (repeats.step, repeats.nodes, repeats.rerouted) == (6, (), False)
    assert repeats.changed == ("the route after merge",)
    bench.change("count * 10", "count * 10 + (count > 1)", file=bench.helper)
    repeats = await plan(watcher)
    assert (repeats.step, repeats.rerouted) == (1, False)


@pytest.mark.slow
async def test_what_ran_yesterday_is_compared_by_its_log(bench: Bench) -> None:
    await bench.ran()
    await bench.hub.close()
    bench.change("count * 10", "count * 12", file=bench.helper)
    forget_code(bench.file.parent)
    bench.store = SQLiteCheckpointer(bench.file.parent / "runs.db")
    bench.hub = bench.hub_again()
    watcher = await Watcher.open(await bench.hub.open("t"))
    assert (await plan(watcher)).changed == ("score",)
    fork = await bench.rerun(watcher)
    assert fork.view.values["report"] == "24"
    # What it shares ran on the old code, what it did itself on the new: all of it stands now.
    repeats = (await fork.driver.preview(Rerun("x"))).repeats
    assert repeats is not None
    assert (repeats.step, repeats.nodes) == (6, ())


@pytest.mark.slow
async def test_a_failed_node_is_retried_in_a_fork_that_keeps_all_steps(bench: Bench) -> None:
    bench.change("count * 10", "count / 0", file=bench.helper)
    watcher = await bench.ran()
    assert watcher.view.progress.status == "failed"
    retry = (await watcher.driver.preview(Run())).repeats
    assert retry is not None
    assert [repeat.node for repeat in retry.nodes] == ["score"]
    assert retry.nodes[0].outside == ("brings in web",)
    bench.change("count / 0", "count * 10", file=bench.helper)
    repeats = await plan(watcher)
    assert (repeats.step, [repeat.node for repeat in repeats.nodes]) == (1, ["score"])
    assert (await bench.rerun(watcher)).view.values["report"] == "20"


@pytest.mark.slow
async def test_a_changed_comment_invalidates_nothing_and_a_broken_file_gives_no_plan(bench: Bench) -> None:
    watcher = await bench.ran()
    bench.change("def collect(state):", "# first of all\ndef collect(state):")
    assert (await plan(watcher)).changed == ()
    with pytest.raises(UsageError, match="every step"):
        await watcher.driver.execute(Rerun("t-again"))
    bench.change("return None", "return (")
    with pytest.raises(GraphInvalid):
        await watcher.driver.preview(Rerun("x"))


async def test_a_test_of_a_step_is_given_as_text(bench: Bench) -> None:
    watcher = await bench.ran()
    text = await watcher.driver.execute(WriteTest(2))
    assert text == step_test(bench.store, "t", 2)
    assert "def test_" in text


async def test_the_nodes_that_a_fork_would_run_can_be_previewed(bench: Bench) -> None:
    watcher = await bench.ran()
    repeats = (await watcher.driver.preview(Fork(4, "x"))).repeats
    assert repeats is not None
    assert [(repeat.node, repeat.runs) for repeat in repeats.nodes] == [("score", 1), ("merge", 1)]
    assert (repeats.tokens_in, repeats.tokens_out, repeats.cost) == (100, 20, 0.25)
    points = await watcher.driver.history()
    assert repeats.duration == sum(point.duration or 0 for point in points if point.step > 4)
    assert (await watcher.driver.preview(Run())).repeats is None
