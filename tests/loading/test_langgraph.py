"""Graphs of LangGraph as their users write them: found, built and given a checkpointer."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hitl_tui.errors import GraphInvalid, UsageError
from hitl_tui.loading.code import CodeFailed, import_file
from hitl_tui.loading.langgraph import LangGraphSource, open_sqlite
from hitl_tui.loading.sources import open_graph, open_langgraph_graph, reopen_graph, source_files
from hitl_tui.loading.trust import NotTrusted, Trust
from hitl_tui.stores import MemoryCheckpointer

pytest.importorskip("langgraph")

STATE = """
import operator
from typing import Annotated
from typing_extensions import TypedDict
from langgraph.graph import END, START, StateGraph

class State(TypedDict):
    log: Annotated[list, operator.add]

def make(name="a", **options):
    builder = StateGraph(State)
    builder.add_node(name, lambda state: {"log": [name]})
    builder.add_edge(START, name)
    return builder
"""


def loaded(file: Path) -> ModuleType | None:
    """The module of a file, None where it was not imported."""
    modules = [module for module in sys.modules.values() if getattr(module, "__file__", None) == str(file)]
    return modules[0] if modules else None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory; its modules, paths and variables are forgotten afterwards."""
    home = tmp_path / "project"
    home.mkdir()
    monkeypatch.chdir(home)
    before, path, variables = set(sys.modules), list(sys.path), dict(os.environ)
    yield home
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(tmp_path)):
            del sys.modules[name]
    sys.path[:] = path
    os.environ.clear()
    os.environ.update(variables)


def opened(folder: Path, spec: str, **options: Any) -> LangGraphSource:
    source = open_langgraph_graph(spec, folder.parent / "data", options)
    assert isinstance(source, LangGraphSource)
    return source


def nodes(source: LangGraphSource) -> set[str]:
    return set(source.app.nodes) - {"__start__"}


def write(folder: Path, code: str, name: str = "flow.py") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(STATE + code)
    return file


def project(folder: Path, **values: Any) -> Path:
    file = folder / "langgraph.json"
    file.write_text(json.dumps({"dependencies": ["."], **values}, indent=2))
    return file


@pytest.mark.parametrize(
    "code",
    [
        "graph = make().compile()",
        "workflow = make()\napp = workflow.compile()",
        "workflow = make()",
        "mine = make().compile(name='mine')",
        "inner = make('b').compile()\nouter = make()\nouter.add_node('sub', inner)\nmain = outer.compile()",
        "def make_graph():\n    return make().compile()",
        "def make_graph(config):\n    assert config == {'configurable': {}}\n    return make()",
        "from langgraph.graph.state import CompiledStateGraph\n"
        "def mine() -> CompiledStateGraph:\n    return make().compile()",
        "async def make_graph():\n    return make().compile()",
        "import contextlib\n@contextlib.asynccontextmanager\n"
        "async def make_graph(config):\n    yield make().compile()",
        "import contextlib\n@contextlib.contextmanager\ndef make_graph():\n    yield make().compile()",
    ],
)
def test_a_file_is_looked_through_for_its_graph(folder: Path, code: str) -> None:
    write(folder, code)
    source = opened(folder, "flow.py")
    try:
        assert "a" in nodes(source)
        assert source.app.invoke({"log": []}, {"configurable": {"thread_id": "1"}}) == {"log": ["a"]}
    finally:
        source.close()


def test_an_entrypoint_of_the_functional_api_is_a_graph(folder: Path) -> None:
    code = """
from langgraph.func import entrypoint, task
@task
def double(n): return 2 * n
@entrypoint()
def flow(n): return double(n).result()
"""
    write(folder, code)
    source = opened(folder, "flow.py")
    assert source.name == "flow"
    assert source.app.invoke(4, {"configurable": {"thread_id": "1"}}) == 8


def test_a_runtime_is_given_to_a_factory_that_takes_one(folder: Path) -> None:
    pytest.importorskip("langgraph_sdk.runtime")
    code = """
def make_graph(config, runtime):
    assert runtime.execution_runtime is runtime and runtime.user is None
    return make()
"""
    write(folder, code)
    assert nodes(opened(folder, "flow.py")) == {"a"}


def test_what_a_factory_opened_is_closed_with_it(folder: Path) -> None:
    code = """
import contextlib
ends = []
@contextlib.asynccontextmanager
async def make_graph():
    try:
        yield make().compile()
    finally:
        ends.append("closed")
"""
    write(folder, code)
    source = opened(folder, "flow.py:make_graph")
    module = loaded(folder / "flow.py")
    assert module is not None
    assert module.ends == []
    source.close()
    source.close()
    assert module.ends == ["closed"]


@pytest.mark.parametrize(
    ("code", "spec", "words"),
    [
        ("one = make().compile()\ntwo = make('b').compile()", "flow.py", "several graphs (one, two)"),
        ("def make_graph(llm, *, key): return make()", "flow.py", "needs key, llm"),
        ("def make_graph(): make()", "flow.py", "did it forget its `return`?"),
        ("graph = make().compile()", "flow.py:grap", "there is no 'grap'"),
        ("graph = make().compile(checkpointer=3)", "flow.py", "Invalid checkpointer"),
    ],
)
def test_a_mistake_in_a_langgraph_file_is_reported(folder: Path, code: str, spec: str, words: str) -> None:
    write(folder, code)
    with pytest.raises((UsageError, GraphInvalid)) as caught:
        opened(folder, spec)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_options_of_ours_are_refused(folder: Path) -> None:
    write(folder, "graph = make().compile()")
    with pytest.raises(UsageError, match="takes no --model"):
        opened(folder, "flow.py", model="ollama/x")


def test_a_langgraph_graph_is_refused_where_our_runner_is_needed(folder: Path) -> None:
    write(folder, "graph = make().compile()")
    with pytest.raises(UsageError, match="is a graph of LangGraph"):
        open_graph("flow.py", MemoryCheckpointer())


def test_a_graph_without_a_checkpointer_gets_its_own_private_file(folder: Path) -> None:
    write(folder, "graph = make().compile()")
    first = opened(folder, "flow.py")
    config = {"configurable": {"thread_id": "1"}}
    first.app.invoke({"log": ["x"]}, config)
    first.close()
    again = opened(folder, "flow.py")
    assert again.app.get_state(config).values == {"log": ["x", "a"]}
    assert first.mirror == again.mirror
    files = [file for file in (folder.parent / "data/langgraph").iterdir() if file.suffix == ".sqlite"]
    assert len(files) == 1
    assert files[0].stat().st_mode & 0o077 == 0
    write(folder, "graph = make().compile()", "other.py")
    assert opened(folder, "other.py").mirror != first.mirror


def test_its_own_checkpointer_is_used_and_graphs_that_share_one_share_our_file(folder: Path) -> None:
    saver = """
import sqlite3
from langgraph.checkpoint.sqlite import SqliteSaver
saver = SqliteSaver(sqlite3.connect("theirs.sqlite", check_same_thread=False))
"""
    write(folder, f"{saver}graph = make().compile(checkpointer=saver)")
    write(folder, f"{saver}other = make('b').compile(checkpointer=saver)", "other.py")
    one, two = opened(folder, "flow.py"), opened(folder, "other.py")
    assert type(one.checkpointer).__name__ == "SqliteSaver"
    assert one.app.checkpointer is one.checkpointer
    assert one.mirror == two.mirror
    assert one.mirror is not None
    assert not (folder.parent / "data").exists()


def test_a_checkpointer_in_memory_gives_way_to_a_file_with_its_serializer(folder: Path) -> None:
    code = "from langgraph.checkpoint.memory import InMemorySaver\nsaver = InMemorySaver()\n"
    write(folder, f"{code}graph = make().compile(checkpointer=saver)")
    one, again = opened(folder, "flow.py"), opened(folder, "flow.py")
    assert type(one.checkpointer).__name__ == "SqliteSaver"
    assert one.new_file is not None
    assert one.new_file.exists()
    assert (again.new_file, again.mirror) == (None, one.mirror), "it was there already"
    kept = open_langgraph_graph("flow.py", folder.parent / "data", keep_memory=True)
    assert kept is not None
    assert type(kept.checkpointer).__name__ == "InMemorySaver"
    assert kept.mirror is None
    for source in (one, again, kept):
        source.close()


def test_a_checkpointer_in_memory_of_its_users_own_is_left(folder: Path) -> None:
    code = "from langgraph.checkpoint.memory import InMemorySaver\nclass Mine(InMemorySaver): pass\n"
    write(folder, f"{code}graph = make().compile(checkpointer=Mine())")
    assert opened(folder, "flow.py").mirror is None


def test_an_async_checkpointer_lives_on_the_loop_that_made_it(folder: Path) -> None:
    aiosqlite = pytest.importorskip("aiosqlite")
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    asks = "is_alive" in inspect.getsource(AsyncSqliteSaver.setup)
    if (
        asks
        and "hasattr" not in inspect.getsource(AsyncSqliteSaver.setup)
        and not hasattr(aiosqlite.Connection, "is_alive")
    ):
        pytest.skip("this AsyncSqliteSaver does not work with this aiosqlite")
    code = """
import contextlib
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
@contextlib.asynccontextmanager
async def make_graph():
    async with AsyncSqliteSaver.from_conn_string("async.sqlite") as saver:
        yield make().compile(checkpointer=saver)
"""
    write(folder, code)
    source = opened(folder, "flow.py")
    assert source.loop is not None
    assert source.mirror is not None
    assert source.mirror.name.startswith("async-")
    source.close()


def test_a_project_gives_its_graphs_by_id_with_directories_and_variables(folder: Path) -> None:
    write(
        folder,
        "import os\nfrom helping import NAME\ngraph = make(NAME + os.environ['SUFFIX']).compile()",
        "src/a/flow.py",
    )
    (folder / "lib").mkdir()
    (folder / "lib/helping.py").write_text("NAME = 'named'\n")
    (folder / ".env").write_text("SUFFIX='-by-env'\n")
    write(folder, "def build(config):\n    return make('b')", "other.py")
    graphs = {"first": "./src/a/flow.py:graph", "second": {"path": "other:build", "description": "…"}}
    file = project(folder, graphs=graphs, dependencies=[".", "./lib", "langchain_openai"], env=".env")
    first = opened(folder, "langgraph.json:first")
    assert nodes(first) == {"named-by-env"}
    assert first.name == "first"
    assert first.source == {"graph": f"{file}:first", "options": {}}
    assert first.app.store is not None
    assert nodes(opened(folder, "langgraph.json:second")) == {"b"}
    with pytest.raises(UsageError, match="several graphs"):
        opened(folder, "langgraph.json")
    assert {file, folder / "src/a/flow.py", folder / "lib/helping.py"} <= source_files(file)


def test_the_checkpointer_that_a_project_names_goes_first(folder: Path) -> None:
    code = """
import contextlib, sqlite3
from langgraph.checkpoint.sqlite import SqliteSaver
@contextlib.contextmanager
def saver():
    with SqliteSaver.from_conn_string("named.sqlite") as given:
        yield given
graph = make().compile()
"""
    write(folder, code)
    project(
        folder, graphs={"agent": "./flow.py:graph"}, checkpointer={"path": "./flow.py:saver"}, env={"A": "1"}
    )
    source = opened(folder, "langgraph.json")
    assert source.mirror is not None
    assert source.mirror.name.startswith("named-")
    source.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"graphs": {\n  "agent": }}', "langgraph.json:2:12: Expecting value"),
        ("{}", "names no graphs"),
        ('{"graphs": {\n"agent": 3}}', "langgraph.json:2: graphs.agent must be a text"),
        ('{"graphs": {"a": "./f.py:g"},\n"dependencies": "."}', "json:2: dependencies must be a list"),
        ('{"graphs": {"a": "./f.py:g"},\n\n"env": [1]}', "langgraph.json:3: env must be"),
        ('{"graphs": {"a": "./gone.py:g"}}', "langgraph.json:1: there is no file"),
        ('{"graphs": {"a": "./flow.py:nothing"}}', "there is no 'nothing' in ./flow.py"),
        ('{"graphs": {"a": "./flow.ts:g"}}', "is JavaScript"),
        ('{"graphs": {"a": "flow"}}', "'flow' names no object"),
        ('{"graphs": {"a": "./flow.py:x"},\n"checkpointer": {"path": 3}}', "checkpointer must be"),
        ('{"graphs": {"a": "./flow.py:x"},\n"checkpointer": {"path": "./flow.py:make"}}', "is a StateGraph"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_project_is_reported_with_its_line(folder: Path, text: str, words: str) -> None:
    write(folder, "x = graph = make().compile()")
    (folder / "langgraph.json").write_text(text)
    with pytest.raises((UsageError, GraphInvalid)) as caught:
        opened(folder, "langgraph.json")
    assert words in caught.value.message


def test_a_missing_file_of_variables_is_a_warning(folder: Path) -> None:
    write(folder, "x = graph = make().compile()")
    (folder / "langgraph.json").write_text('{"graphs": {"a": "./flow.py:graph"},\n"env": "gone.env"}')
    with pytest.warns(UserWarning, match=r"langgraph.json:2: there is no file .*gone.env"):
        opened(folder, "langgraph.json")


def test_a_missing_dependency_says_how_to_install_it(folder: Path) -> None:
    write(folder, "import not_there_at_all")
    project(folder, graphs={"a": "./flow.py:graph"}, dependencies=["not-there-at-all>=1"])
    with pytest.raises(CodeFailed) as caught:
        opened(folder, "langgraph.json")
    assert "No module named 'not_there_at_all'" in caught.value.message
    assert "pip install 'not-there-at-all>=1'" in caught.value.hint


def test_a_graph_of_ours_is_ours_though_langgraph_is_there(folder: Path) -> None:
    code = """
from hitl_tui import END, START, Channel, StateGraph
import langgraph.graph
def work(state): return {}
graph = StateGraph({"n": Channel(0)}).add_node("a", work).add_edge(START, "a").add_edge("a", END)
"""
    (folder / "ours.py").write_text(code)
    assert open_graph("ours.py", MemoryCheckpointer()).graph.nodes.keys() == {"a"}


def test_a_project_of_a_record_is_asked_about_with_all_its_files(folder: Path, tmp_path: Path) -> None:
    write(folder, "graph = make().compile()")
    (folder / ".env").write_text("A=1\n")
    file = project(folder, graphs={"agent": "./flow.py:graph"}, env=".env")
    source = {"graph": f"{file}:agent", "options": {}}
    trust = Trust(tmp_path / "trust.json", str(tmp_path / "store.db"))
    with pytest.raises(NotTrusted) as caught:
        reopen_graph("1", source, MemoryCheckpointer(), trust=trust)
    lines = "\n".join(caught.value.question.lines)
    assert all(str(folder / name) in lines for name in ("langgraph.json", "flow.py", ".env"))
    assert loaded(folder / "flow.py") is None


PLAN = """
from dataclasses import dataclass
from typing_extensions import TypedDict
from pydantic import BaseModel
from langgraph.graph import START, StateGraph

class Plan(BaseModel):
    words: list[str]

@dataclass
class Note:
    text: str

class State(TypedDict, total=False):
    plan: Plan
    notes: list[Note]
    other: object

def add(state):
    assert isinstance(state["plan"], Plan)
    return {"notes": [Note("kept")], "plan": Plan(words=[*state["plan"].words, "more"])}

builder = StateGraph(State)
builder.add_node(add)
builder.add_edge(START, "add")
"""


def test_a_file_of_others_is_read_strictly_and_builds_what_the_state_is_made_of(folder: Path) -> None:
    import ormsgpack

    if find_spec("langgraph._internal._serde") is None:
        pytest.skip("this LangGraph calls whatever a row names: such a file is refused")
    (folder / "plan.py").write_text(PLAN)
    evil = folder / "evil"
    saver = open_sqlite(folder / "others.sqlite")
    source = open_langgraph_graph("plan.py", folder.parent / "data", checkpointer=saver)
    assert source is not None
    plan = sys.modules[source.app.nodes["add"].bound.func.__module__].Plan
    config: Any = {"configurable": {"thread_id": "t"}}
    source.app.invoke({"plan": plan(words=["one"])}, config)
    source.app.update_state(config, {"other": "planted"}, as_node="add")
    values = source.app.get_state(config).values
    assert (type(values["plan"]).__name__, type(values["notes"][0]).__name__) == ("Plan", "Note")
    rows = saver.conn.execute("SELECT rowid, checkpoint FROM checkpoints").fetchall()
    for row, content in rows:
        call = ormsgpack.packb(("os", "system", f"touch {evil}"))
        held = ormsgpack.unpackb(content, ext_hook=ormsgpack.Ext)
        if held["channel_values"].get("other"):
            held["channel_values"]["other"] = ormsgpack.Ext(0, call)
            saver.conn.execute(
                "UPDATE checkpoints SET checkpoint = ? WHERE rowid = ?", (ormsgpack.packb(held), row)
            )
    values = source.app.get_state(config).values
    assert (values["plan"].words, values["other"]) == (["one", "more"], f"touch {evil}")
    assert not evil.exists()
    source.close()


def test_a_langgraph_that_can_not_read_strictly_is_given_no_file_of_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "plan.py").write_text(PLAN)
    monkeypatch.setitem(sys.modules, "langgraph._internal._serde", None)
    saver = open_sqlite(folder / "others.sqlite")
    with pytest.raises(UsageError) as refused:
        open_langgraph_graph("plan.py", folder.parent / "data", checkpointer=saver)
    assert refused.value.hint == "install a newer one, or compile the graph with a SqliteSaver on that file"
    saver.conn.close()


def test_a_file_is_the_module_that_a_program_beside_it_imports(folder: Path) -> None:
    """Else an object of one of its classes in a checkpoint of that program would be of another class here."""
    module = import_file(write(folder, "class Person: ...\n", name="people_of_ours.py"))
    assert importlib.import_module("people_of_ours") is module
    assert module.Person.__module__ == "people_of_ours"
    other = import_file(write(folder, "taken = True\n", name="json.py"))
    assert other.taken
    assert importlib.import_module("json") is not other
