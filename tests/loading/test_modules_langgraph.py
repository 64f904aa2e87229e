"""Graphs of LangGraph in two projects of one process: each has its own classes in its checkpoints."""

from __future__ import annotations

import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.loading.langgraph import LangGraphSource
from hitl_tui.loading.modules import ModuleNameTaken, forget_projects
from hitl_tui.loading.sources import open_langgraph_graph

pytest.importorskip("langgraph")

BOTH = ("a", "b")
FLOW = """
import sqlite3
from typing import Annotated, Any
from typing_extensions import TypedDict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from plans import Kind, Note, Plan, Point

def join(old: list, new: list) -> list:
    return [*(old or []), *new]

class State(TypedDict, total=False):
    plan: Plan
    seen: Annotated[list, join]

def act(state: State) -> dict[str, Any]:
    from late import Late
    note = Note(text="WHO", kind=Kind.FIRST)
    return {"plan": Plan(notes=[note], by={"k": Point(1, 2)}), "seen": [note, Late("WHO"), {Kind.FIRST}, 1.5]}

def check(state: Any) -> dict[str, Any]:
    from late import Late
    assert type(state["plan"]) is Plan and type(state["plan"].notes[0]) is Note
    assert type(state["plan"].by["k"]) is Point and state["plan"].who() == "WHO"
    assert {type(seen) for seen in state["seen"]} == {Note, Late, set, float}
    return {"seen": []}

builder = StateGraph(State)
builder.add_node(act)
builder.add_node(check)
builder.add_edge(START, "act")
builder.add_conditional_edges("act", lambda state: [Send("check", state)], ["check"])
graph = builder.compile(
    checkpointer=SqliteSaver(sqlite3.connect(__file__ + ".sqlite", check_same_thread=False)),
    interrupt_before=["check"],
)
"""
PLANS = """
from __future__ import annotations
import dataclasses, enum
from typing import NamedTuple
from pydantic import BaseModel

class Kind(enum.Enum):
    FIRST = "WHO"

class Note(BaseModel):
    text: str
    kind: Kind

class Point(NamedTuple):
    x: int
    y: int

@dataclasses.dataclass
class Plan:
    notes: list[Note]
    by: dict[str, Point]

    def who(self) -> str:
        return "WHO"
"""
LATE = "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Late:\n    text: str\n"
CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    forget_projects()
    yield
    for module in list(sys.modules.values()):
        if (
            (file := getattr(module, "__file__", None))
            and file.endswith("flow.py")
            and "graph" in vars(module)
        ):
            connection = getattr(getattr(module.graph, "checkpointer", None), "conn", None)
            if connection is not None:
                connection.close()
    forget_projects()


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    made = [tmp_path / who for who in BOTH]
    for folder in made:
        folder.mkdir()
        for name, text in (("flow.py", FLOW), ("plans.py", PLANS), ("late.py", LATE)):
            (folder / name).write_text(text.replace("WHO", folder.name))
    return made


def opened(folder: Path, checkpointer: Any = None, file: str = "flow.py") -> LangGraphSource:
    data = folder.parent / "data"
    source = open_langgraph_graph(str(folder / file), data, checkpointer=checkpointer)
    assert isinstance(source, LangGraphSource)
    return source


def ended(source: LangGraphSource) -> None:
    source.checkpointer.conn.close()
    source.close()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_each_writes_and_reads_its_own_classes(folders: list[Path], order: tuple[int, int]) -> None:
    sources = [opened(folder) for folder in folders]
    for number in order:
        sources[number].app.invoke({}, CONFIG)
    for number in order:
        source, who = sources[number], BOTH[number]
        values = source.app.get_state(CONFIG).values
        assert values["plan"].who() == who
        assert values["seen"][1].text == who
        plans = sys.modules[type(values["plan"]).__module__]
        assert plans.__file__ == str(folders[number] / "plans.py")
        source.app.invoke(None, CONFIG)  # its node compares the classes
        ended(source)


def test_its_checkpoints_name_modules_as_a_program_beside_it_does(folders: list[Path]) -> None:
    sources = [opened(folder) for folder in folders]
    for source in sources:
        source.app.invoke({}, CONFIG)
        ended(source)
    for folder in folders:
        content = (folder / "flow.py.sqlite").read_bytes()
        assert b"plans" in content
        assert b"plans@" not in content
        assert b"late@" not in content
    forget_projects()
    for folder in reversed(folders):  # each has its plain names in turn, as in a process of its own
        source = opened(folder)
        assert source.app.get_state(CONFIG).values["plan"].who() == folder.name
        source.app.invoke(None, CONFIG)
        ended(source)
        forget_projects()


@pytest.mark.integration
def test_a_program_beside_it_reads_what_the_second_has_written(folders: list[Path]) -> None:
    sources = [opened(folder) for folder in folders]
    for source in sources:
        source.app.invoke({}, CONFIG)
        ended(source)
    program = f"import flow; print(flow.graph.get_state({CONFIG!r}).values['plan'].who())"
    for folder in folders:
        run = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
        )
        assert run.stdout.strip() == folder.name, run.stderr


def test_a_strict_read_gives_the_projects_own_classes(folders: list[Path]) -> None:
    pytest.importorskip("langgraph._internal._serde")
    from langgraph.checkpoint.sqlite import SqliteSaver

    for folder in folders:
        (folder / "late.py").write_text("def Late(text): return 'late'")
        (folder / "flow.py").write_text((folder / "flow.py").read_text().replace("Late, set", "str, set"))
    sources = []
    for folder in folders:
        saver = SqliteSaver(sqlite3.connect(folder / "strict.sqlite", check_same_thread=False))
        sources.append(opened(folder, saver))
        sources[-1].app.invoke({}, CONFIG)
    for source, who in zip(sources, BOTH, strict=True):
        assert source.app.get_state(CONFIG).values["plan"].who() == who
        ended(source)


def test_an_encrypted_checkpoint_gives_the_projects_own_classes(folders: list[Path]) -> None:
    code = """
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from flow import builder
class Cipher:
    def encrypt(self, data): return "turned", data[::-1]
    def decrypt(self, name, data): return data[::-1]
saver = InMemorySaver(serde=EncryptedSerializer(Cipher()))
app = builder.compile(checkpointer=saver, interrupt_before=["check"])
"""
    for folder in folders:
        (folder / "secret.py").write_text(code)
    sources = [opened(folder, file="secret.py") for folder in folders]
    for source, who in zip(sources, BOTH, strict=True):
        source.app.invoke({}, CONFIG)
        assert source.app.get_state(CONFIG).values["plan"].who() == who
        source.app.invoke(None, CONFIG)
        source.close()


def test_a_pickle_in_a_checkpoint_gives_its_own_class_or_is_refused(folders: list[Path]) -> None:
    code = """
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
class Odd:
    who = "WHO"
builder = StateGraph(dict)
builder.add_node("act", lambda state: {"odd": Odd()})
builder.add_edge(START, "act")
graph = builder.compile(checkpointer=InMemorySaver(serde=JsonPlusSerializer(pickle_fallback=True)))
"""
    for folder in folders:
        (folder / "odd.py").write_text(code.replace("WHO", folder.name))
    sources = [opened(folder, file="odd.py") for folder in folders]
    for source, who in zip(sources, BOTH, strict=True):
        source.app.invoke({}, CONFIG)
        assert source.app.get_state(CONFIG).values["odd"].who == who
    first, second = (source.checkpointer.serde for source in sources)
    written = pickle.dumps(first.loads_typed(first.dumps_typed(first_odd(sources[0]))))
    with pytest.raises(ModuleNameTaken) as refused:
        second.loads_typed(("pickle", written))
    assert all(str(folder / "odd.py") in str(refused.value) for folder in folders)
    for source in sources:
        source.close()


def first_odd(source: LangGraphSource) -> Any:
    return source.app.get_state(CONFIG).values["odd"]
