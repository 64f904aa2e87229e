from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hitl_tui import MemoryCheckpointer, UsageError
from hitl_tui.loading.graphs import sample_names
from hitl_tui.loading.sources import open_graph, reopen_graph

FILE = """
from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph

def build(model="m", checkpointer=None) -> GraphRunner:
    return (
        StateGraph({"n": Channel(0)}, name=f"graph of {model}")
        .add_node("a", lambda state: {"n": state["n"] + 1})
        .add_edge(START, "a").add_edge("a", END)
        .compile(checkpointer=checkpointer, interrupt_before=["a"])
    )

bare = build()
plain = StateGraph({"n": Channel(0)}).add_node("a", lambda state: {}).add_edge(START, "a").add_edge("a", END)
broken = StateGraph({"n": Channel(0)}).add_node("a", lambda state: {})
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    path = list(sys.path)
    yield tmp_path
    sys.modules.pop("mine", None)
    sys.path[:] = path


@pytest.mark.parametrize("spec", ["mine.py", "mine.py:build", "mine:build"])
def test_a_thread_is_reopened_from_its_source_elsewhere(
    folder: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryCheckpointer()
    runner = open_graph(spec, store, {"model": "x"})
    assert runner.graph.name == "graph of x"
    assert runner.invoke({"n": 1}, thread_id="t").status == "waiting"

    info = store.info("t")
    assert info is not None
    assert info.source["options"] == {"model": "x"}
    assert msgspec.json.decode(msgspec.json.encode(info.source)) == info.source

    monkeypatch.chdir("/")
    again = reopen_graph("t", info.source, store)
    assert again.graph.digest == runner.graph.digest
    assert again.invoke(thread_id="t")["n"] == 2


def test_a_compiled_graph_with_gates_needs_no_store(folder: Path) -> None:
    runner = open_graph("mine.py:bare", MemoryCheckpointer(), {})
    assert runner.invoke(thread_id="t").status == "waiting"


def test_the_store_of_the_session_replaces_the_graphs_own(folder: Path) -> None:
    store = MemoryCheckpointer()
    assert open_graph("mine.py:build", store).store is store
    assert open_graph("mine.py:plain", store).store is store


def test_a_graph_that_cannot_be_compiled_is_their_error(folder: Path) -> None:
    with pytest.raises(Exception, match="START") as caught:
        open_graph("mine.py:broken", MemoryCheckpointer())
    assert "hitl_tui" not in caught.value.details  # type: ignore[attr-defined]


def test_options_that_were_not_given_but_taken_are_kept(folder: Path) -> None:
    runner = open_graph("mine.py", MemoryCheckpointer(), defaults={"model": "mine", "api_base": "http://x"})
    assert runner.source["options"] == {"model": "mine"}


def test_a_thread_without_source_says_how_to_open_it() -> None:
    with pytest.raises(UsageError, match="imported and doesn't name its graph") as caught:
        reopen_graph("t", {}, MemoryCheckpointer())
    assert "hitl-tui run GRAPH --thread t" in caught.value.hint


@pytest.mark.parametrize("name", sample_names())
def test_samples_are_known_by_name(name: str) -> None:
    store = MemoryCheckpointer()
    runner = open_graph(name, store)
    assert runner.graph.name == name
    assert runner.source == {"graph": name, "options": {}}
    assert reopen_graph("t", runner.source, store).graph.digest == runner.graph.digest


def test_a_file_that_has_gone(folder: Path) -> None:
    source = open_graph("mine.py", MemoryCheckpointer()).source
    (folder / "mine.py").unlink()
    with pytest.raises(UsageError, match=r"mine\.py was moved or deleted"):
        reopen_graph("t", source, MemoryCheckpointer())


@pytest.mark.parametrize("spec", ["mine.py", "mine:build"])
def test_a_path_that_is_not_valid_text_can_not_be_recorded(folder: Path, spec: str) -> None:
    place = folder / "caf\udce9"
    place.mkdir()
    (folder / "mine.py").rename(place / "mine.py")
    with pytest.raises(UsageError, match=r"not UTF-8 text") as caught:
        open_graph(spec, MemoryCheckpointer(), directory=place)
    assert "rename" in caught.value.hint
