"""A database of LangGraph's checkpoints is looked at without any graph, and nothing that it holds is run."""

from __future__ import annotations

import asyncio
import operator
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")

import ormsgpack
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.discovery import thread_heads
from hitl_tui.drivers.langgraph.recorded import Checkpoints
from hitl_tui.drivers.langgraph.strict import StrictSerializer
from hitl_tui.errors import NoSuchStore, StoreUnusable
from hitl_tui.loading.langgraph import LangGraphSource
from hitl_tui.loading.sources import open_langgraph_graph
from tests.samples.test_langgraph import INPUTS, needs_schemas


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


EVIL = Path("/tmp/hitl-tui-hostile-row")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """A file with a thread of each sample, and the compiled samples by the threads' names."""
    needs_schemas()
    folder = tmp_path_factory.mktemp("checkpoints")
    file = folder / "runs.sqlite"
    connection = sqlite3.connect(file, check_same_thread=False)
    apps = {}
    names = [name for name in INPUTS if name != "agent"]
    for name in names:
        source = open_langgraph_graph(f"langgraph/{name}", folder)
        assert isinstance(source, LangGraphSource)
        apps[name] = source.app.copy({"checkpointer": SqliteSaver(connection)})
        apps[name].invoke(INPUTS[name], {"configurable": {"thread_id": name}})
        source.close()
    # A copy is looked at: SQLite keeps a file open in a process while another connection has a lock on it.
    copy = folder / "copy.sqlite"
    connection.execute("VACUUM INTO ?", [str(copy)])
    yield copy, apps
    connection.close()


def history(app: Any, thread: str) -> list[Any]:
    return list(app.get_state_history({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}))


@pytest.mark.slow
def test_a_history_is_read_without_the_graph_as_with_it(database: tuple[Path, Mapping[str, Any]]) -> None:
    file, apps = database
    checkpoints = Checkpoints(file)
    assert list(asyncio.run(thread_heads(checkpoints.saver))) == list(reversed(apps))
    for thread, app in apps.items():
        for read, real in zip(history(checkpoints.graph(thread), thread), history(app, thread), strict=True):
            assert (read.config, read.parent_config, read.next) == (
                real.config,
                real.parent_config,
                real.next,
            )
            assert read.values.items() <= real.values.items()
            assert [key for key in real.values if key not in read.values and real.values[key]] == []
            assert [(task.id, task.name, task.result, task.path) for task in read.tasks] == [
                (task.id, task.name, task.result, task.path) for task in real.tasks
            ]
            assert [task.interrupts for task in read.tasks] == [task.interrupts for task in real.tasks]
    checkpoints.close()


@pytest.mark.parametrize(
    ("thread", "edges"),
    [
        ("jokes", {"START>choose_subjects", "choose_subjects>tell_joke", "tell_joke>choose_best",
                   "choose_best>END"}),
        ("report", {"START>research", "research>write", "write>END"}),
        ("approval", {"START>draft", "draft>review", "review>END"}),
    ],
)  # fmt: skip
def test_the_edges_that_were_taken_are_drawn(
    database: tuple[Path, Mapping[str, Any]], thread: str, edges: set[str]
) -> None:
    checkpoints = Checkpoints(database[0])
    drawn = checkpoints.graph(thread).get_graph().edges
    checkpoints.close()
    ends = {"__start__": "START", "__end__": "END"}
    assert {f"{ends.get(e.source, e.source)}>{ends.get(e.target, e.target)}" for e in drawn} == edges


def test_viewing_leaves_the_file_unchanged(database: tuple[Path, Mapping[str, Any]], tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    with sqlite3.connect(database[0]) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    target.close()
    before = copy.read_bytes()
    checkpoints = Checkpoints(copy)
    for thread in asyncio.run(thread_heads(checkpoints.saver)):
        history(checkpoints.graph(thread), thread)
    checkpoints.close()
    assert copy.read_bytes() == before


HOSTILE = {
    "one argument": (0, ("os", "system", f"touch {EVIL}")),
    "arguments": (1, ("os", "system", (f"touch {EVIL}",))),
    "keywords": (2, ("subprocess", "run", {"args": ["touch", str(EVIL)]})),
    "a method": (3, ("pathlib", "Path", str(EVIL), "touch")),
    "pydantic 1": (4, ("subprocess", "run", {"args": ["touch", str(EVIL)]})),
    "pydantic 2": (5, ("subprocess", "run", {"args": ["touch", str(EVIL)]}, "model_validate_json")),
}


def packed(code: int, content: Any) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(content)))


@pytest.mark.parametrize("kind", HOSTILE)
def test_code_named_in_a_hostile_row_is_never_called(kind: str) -> None:
    EVIL.unlink(missing_ok=True)
    code, content = HOSTILE[kind]
    assert StrictSerializer().loads_typed(("msgpack", packed(code, content))) in (
        content[2],
        list(content[2]),
    )
    assert not EVIL.exists()


def test_a_hostile_row_in_a_database_is_shown_as_its_fields(
    database: tuple[Path, Mapping[str, Any]], tmp_path: Path
) -> None:
    EVIL.unlink(missing_ok=True)
    copy = tmp_path / "copy.sqlite"
    with sqlite3.connect(database[0]) as source, sqlite3.connect(copy) as target:
        source.backup(target)
        query = (
            "SELECT rowid, checkpoint FROM checkpoints WHERE thread_id = 'approval' "
            "ORDER BY checkpoint_id DESC"
        )
        rowid, content = target.execute(query).fetchone()
        checkpoint = ormsgpack.unpackb(content)
        checkpoint["channel_values"]["offer"] = ormsgpack.Ext(
            0, ormsgpack.packb(("os", "system", f"touch {EVIL}"))
        )
        target.execute(
            "UPDATE checkpoints SET checkpoint = ? WHERE rowid = ?", (ormsgpack.packb(checkpoint), rowid)
        )
        target.execute(
            "UPDATE writes SET type = 'pickle', value = ? WHERE thread_id = 'approval'", (b"cos\nsystem\n",)
        )
    target.close()
    checkpoints = Checkpoints(copy)
    state = history(checkpoints.graph("approval"), "approval")[0]
    checkpoints.close()
    assert state.values["offer"] == f"touch {EVIL}"
    assert not EVIL.exists()


def test_pickles_and_constructors_in_json_are_data() -> None:
    read = StrictSerializer().loads_typed
    assert read(("pickle", b"cos\nsystem\n")) == {"type": "pickle", "repr": "11 bytes that are not read"}
    envelope = b'{"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"]}'
    assert read(("json", envelope))["id"] == ["os", "system"]
    assert read(("null", b"")) is None


def test_a_file_that_is_not_a_checkpoint_database_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NoSuchStore, match="there is no file"):
        Checkpoints(tmp_path / "gone.sqlite")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    with pytest.raises(StoreUnusable, match="holds no checkpoints of LangGraph"):
        Checkpoints(other)
    other.write_bytes(os.urandom(200))
    with pytest.raises(StoreUnusable, match="can't be read"):
        Checkpoints(other)


def test_files_of_every_kind_of_graph_and_of_older_checkpointers_are_read(tmp_path: Path) -> None:
    """A fan-out that waits and wrote one channel twice, a state without fields, an entrypoint."""
    file = tmp_path / "kinds.sqlite"
    connection = sqlite3.connect(file, check_same_thread=False)
    saver = SqliteSaver(connection)
    waiting = (
        StateGraph(Log)
        .add_node("a", lambda state: {"log": ["a"]})
        .add_node("b", lambda state: {"log": ["b"]})
    )
    waiting.add_node("ask", lambda state: {"log": [interrupt("ok?")]})
    for name in ("a", "b", "ask"):
        waiting.add_edge(START, name)
    bare = StateGraph(dict).add_node("only", lambda state: {"x": 1}).add_edge(START, "only")

    @entrypoint(checkpointer=saver)
    def flow(n: int) -> int:
        return n + 1

    places: dict[str, Any] = {name: {"configurable": {"thread_id": name}} for name in ("fan", "bare", "flow")}
    waiting.compile(checkpointer=saver).invoke({"log": []}, places["fan"])
    bare.compile(checkpointer=saver).invoke({"y": 2}, places["bare"])
    flow.invoke(1, places["flow"])
    for _ in range(2):
        checkpoints = Checkpoints(file)
        states = {name: checkpoints.graph(name).get_state(place) for name, place in places.items()}
        assert [each.value for each in states["fan"].interrupts] == ["ok?"]
        assert (states["bare"].values, states["flow"].values) == ({"x": 1}, 2)
        oldest = [*history(checkpoints.graph("flow"), "flow")][-1]
        assert oldest.next == ("flow",)
        checkpoints.close()
        if "task_path" in {str(row[1]) for row in connection.execute("PRAGMA table_info(writes)")}:
            connection.execute("ALTER TABLE writes DROP COLUMN task_path")
            connection.commit()
    connection.close()
