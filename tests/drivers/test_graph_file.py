"""A saved graph file: differences are reported, and a reload continues the thread if it fits."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hitl_tui import ThreadBusy
from hitl_tui.engine.commands import ReloadGraph, Step
from hitl_tui.engine.log.events import GraphChanged
from hitl_tui.errors import GraphDiffers, GraphInvalid, UsageError
from hitl_tui.loading.code import forget_code
from tests.drivers.holding import ticker
from tests.drivers.saved_graph import SavedGraph, save
from tests.support.flows import ledger_of
from tests.support.watching import Watcher

FILE = """
from hitl_tui import END, START, Channel, StateGraph
from words import WORD

def a(state):
    return {"text": state["text"] + WORD}

def b(state):
    return {"text": state["text"] + "b"}

graph = (
    StateGraph({"text": Channel("")}, name="small")
    .add_node("a", a).add_node("b", b)
    .add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
)
"""


class Desk(SavedGraph):
    """A thread of a graph in a file that can be saved again."""

    def __init__(self, folder: Path) -> None:
        super().__init__((folder / "small.py", FILE), (folder / "words.py", _word("a")))

    def save(self, text: str, word: str) -> None:
        """Save what differs of both files."""
        save(self.helper, _word(word))
        save(self.file, text)


def _word(word: str) -> str:
    return f'WORD = "{word}"\n'


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr("hitl_tui.drivers.graph_file.EVERY", 0.02)
    made = Desk(tmp_path)
    yield made
    await made.hub.close()
    forget_code(tmp_path)


async def test_a_saved_file_is_reported_and_a_reload_runs_the_new_code(desk: Desk) -> None:
    watcher = await desk.started()
    await watcher.step()
    desk.save(FILE.replace('+ "b"', '+ "B" + WORD'), "x")
    view = await watcher.until(lambda view: view.graph_changed is not None)
    assert view.graph_changed == ()
    assert (await watcher.driver.snapshot()).graph_changed == ()
    assert await watcher.driver.execute(ReloadGraph(actor="ann")) == ()
    assert (await watcher.look()).graph_changed is None
    view = await watcher.step()
    assert view.values["text"] == "aBx"
    assert [entry.actor for entry in ledger_of(desk.store, "t", "graph")] == ["ann"]
    await watcher.check()


async def test_what_a_saved_file_keeps_is_reported_again_after_the_thread_moved(desk: Desk) -> None:
    watcher = await desk.started()
    await watcher.step()
    desk.save(FILE.replace('+ "b"', '+ "B"'), "a")
    view = await watcher.until(lambda view: view.repeats is not None)
    assert (view.repeats.step, view.repeats.head) == (1, 1)
    await watcher.step()
    view = await watcher.until(lambda view: view.repeats is not None and view.repeats.head == 2)
    assert [node.node for node in view.repeats.nodes] == ["b"]


async def test_the_differences_are_reported_and_a_reload_adds_the_new_channel(desk: Desk) -> None:
    watcher = await desk.started()
    desk.save(FILE.replace('Channel("")}', 'Channel(""), "more": Channel(7)}'), "a")
    view = await watcher.until(lambda view: view.graph_changed)
    assert view.graph_changed == ("channel 'more' is new and starts at its default",)
    assert await watcher.driver.execute(ReloadGraph()) == view.graph_changed
    view = await watcher.look()
    assert view.values["more"] == 7
    assert [channel.name for channel in view.graph.channels] == ["text", "more"]
    entry = ledger_of(desk.store, "t", "graph")[0]
    assert entry.data["was"] != entry.data["is"] == view.graph.digest
    await watcher.run()
    await watcher.check()


async def test_a_reload_that_the_thread_does_not_fit_is_refused(desk: Desk) -> None:
    watcher = await desk.started()
    await watcher.step()
    desk.save(FILE.replace('"b"', '"other"'), "a")
    view = await watcher.until(lambda view: view.graph_changed)
    assert "the thread continues at node 'b', which is gone" in view.graph_changed
    with pytest.raises(GraphDiffers, match="continues at node 'b', which is gone"):
        await watcher.driver.execute(ReloadGraph())
    assert (await watcher.step()).values["text"] == "ab"


async def test_a_file_that_can_not_be_loaded_leaves_the_graph_as_it_was(desk: Desk) -> None:
    watcher = await desk.started()
    desk.save("1 / 0\n", "a")
    view = await watcher.until(lambda view: view.graph_changed)
    assert "division by zero" in view.graph_changed[0]
    with pytest.raises(GraphInvalid):
        await watcher.driver.execute(ReloadGraph())
    desk.file.unlink()
    assert (await watcher.run()).values["text"] == "ab"
    assert len(watcher.events_of(GraphChanged)) == 1


async def test_the_next_save_does_not_repeat_what_was_reported(desk: Desk) -> None:
    watcher = await desk.started()
    desk.save("1 / 0\n", "a")
    await watcher.until(lambda view: view.graph_changed)
    desk.save("2 / 0\n", "a")
    desk.save("3 / 0\n", "b")
    desk.save(FILE, "b")
    await watcher.until(lambda view: view.graph_changed == ())
    events = [event.differences for event in watcher.events_of(GraphChanged)]
    assert len(events) == 2, events


async def test_nothing_is_reloaded_under_a_run_or_without_a_file(desk: Desk) -> None:
    runner = ticker(desk.store, lambda _: None)
    watcher = await Watcher.open(await desk.hub.new("ticks", runner))
    with pytest.raises(UsageError):
        await watcher.driver.execute(ReloadGraph())
    slow = FILE.replace(
        "def a(state):", "import threading\nheld = threading.Event()\n\ndef a(state):\n    held.wait(20)"
    )
    desk.save(slow, "a")
    watcher = await desk.started()
    await watcher.driver.execute(Step())
    with pytest.raises(ThreadBusy):
        await watcher.driver.execute(ReloadGraph())
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(desk.file):
            module.held.set()


async def test_a_saved_helper_module_is_reported_too(desk: Desk) -> None:
    watcher = await desk.started()
    desk.helper.write_text('WORD = "longer"\n')
    view = await watcher.until(lambda view: view.graph_changed is not None)
    assert view.graph_changed == ()
    await watcher.driver.execute(ReloadGraph(actor="ann"))
    assert (await watcher.look()).graph_changed is None
    desk.helper.unlink()  # as an editor does for a moment
    desk.helper.write_text("WORD = nonsense\n")
    view = await watcher.until(lambda view: view.graph_changed)
    assert "nonsense" in (view.graph_changed or ("",))[0]


TOML = """
[graph]
name = "small"
[channels.text]
schema = "shape.json"
default = ""
[nodes.a]
function = "nodes.py:a"
writes = ["text"]
[[edges]]
from = "START"
to = "a"
[[edges]]
from = "a"
to = "END"
"""


@pytest.mark.slow
async def test_files_that_a_graph_file_names_are_followed(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "nodes.py").write_text('def a(state):\n    return {"text": "a"}\n')
    (tmp_path / "shape.json").write_text('{"type": "string"}')
    (tmp_path / "g.toml").write_text(TOML)
    desk.file = tmp_path / "g.toml"
    watcher = await desk.started()
    (tmp_path / "shape.json").write_text('{"type": "string", "maxLength": 9}')
    await watcher.until(lambda view: view.graph_changed is not None)
    await watcher.driver.execute(ReloadGraph())
    assert (await watcher.look()).graph_changed is None
    (tmp_path / "nodes.py").write_text('def a(state):\n    return {"text": "other"}\n')
    await watcher.until(lambda view: view.graph_changed is not None)
    await watcher.driver.execute(ReloadGraph())
    assert (await watcher.step()).values["text"] == "other"
