"""Threads of LangGraph on the command line: run, looked at, answered, and read from checkpoints alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")

from hitl_tui.loading.sources import open_langgraph_graph
from hitl_tui.stores.sqlite.store import read_only
from tests.support.commands import App

FLOW = """
import operator, sqlite3
from typing import Annotated
from typing_extensions import TypedDict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

class State(TypedDict):
    task: str
    lines: Annotated[list, operator.add]

def write(state):
    return {"lines": [f"about {state['task']}"]}

def ask(state):
    return {"lines": [interrupt("Is it good?")]}

builder = StateGraph(State)
builder.add_node(write)
builder.add_node(ask)
builder.add_edge(START, "write")
builder.add_edge("write", "ask")
graph = builder.compile(
    checkpointer=SqliteSaver(sqlite3.connect("theirs.sqlite", check_same_thread=False)), name="flow"
)
"""


@pytest.fixture
def flow(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    """The command line where a thread `t` of a graph in flow.py waits for an answer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(FLOW)
    done = app.expect(3, "run", "flow.py", "--headless", "--input", "task=hills", "--thread", "t")
    assert f"--store langgraph:{tmp_path}/flow.py" in done.out
    return app


STORE = ("--store", "langgraph:flow.py")


def request(app: App) -> str:
    (waiting,) = app.expect(0, "show", "t", "--json", *STORE).document["standing"]["pending"]
    return str(waiting["id"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("threads",), "flow"),
        (("threads", "--waiting"), "Is it good?"),
        (("show", "t"), "about hills"),
        (("show", "t@0"), "hills"),
        (("log", "t"), "Step 1 by write"),
        (("diff", "t@0", "t@1"), "about hills"),
        (("blame", "t", "lines"), "write"),
        (("verify", "t"), "ok"),
        (("find", "t", "about"), "1"),
    ],
)
def test_a_thread_is_looked_at_as_ours_are(flow: App, arguments: tuple[str, ...], said: str) -> None:
    assert said in flow.expect(0, *arguments, *STORE).out


def test_an_answer_goes_to_what_asked_and_the_thread_ends(flow: App) -> None:
    flow.expect(0, "answer", "t", request(flow), "yes", "--step", "1", "--note", "fine", *STORE)
    flow.expect(0, "resume", "t", "--headless", *STORE)
    assert flow.expect(0, "show", "t", "--json", *STORE).document["state"]["lines"] == ["about hills", "yes"]
    log = flow.expect(0, "log", "t", *STORE).out
    assert "fine" in log
    assert "| answer: yes\n  | checkpoint: 1" in log


def test_what_others_ran_is_listed_and_opened(flow: App, tmp_path: Path) -> None:
    with another_program(tmp_path) as app:
        app.invoke({"task": "rivers"}, {"configurable": {"thread_id": "theirs"}})
    assert "theirs" in flow.expect(0, "threads", *STORE).out
    assert "about rivers" in flow.expect(0, "show", "theirs", *STORE).out


@contextmanager
def another_program(folder: Path) -> Iterator[Any]:
    """The graph of flow.py as a program has it that uses LangGraph alone."""
    source = open_langgraph_graph("flow.py", folder)
    assert source is not None
    try:
        yield source.app
    finally:
        source.close()


THREAD: Any = {"configurable": {"thread_id": "t"}}


def test_what_another_program_answered_or_ran_is_seen_and_no_answer_is_lost_on_it(
    flow: App, tmp_path: Path
) -> None:
    from langgraph.types import Command

    asked = request(flow)
    with another_program(tmp_path) as app:
        app.invoke(Command(resume="no"), THREAD)
    late = flow.expect(4, "answer", "t", asked, "yes", "--step", "1", *STORE)
    assert "hitl-tui: Answer refused: " in late.err
    refused = flow.expect(4, "answer", "t", asked, "yes", "--step", "1", "--json", *STORE).document
    assert (refused["kind"], refused["exit_code"]) == ("error", 4)
    assert flow.expect(0, "show", "t", "--json", *STORE).document["state"]["lines"] == ["about hills", "no"]


def test_an_edit_where_another_program_has_edited_is_refused_and_that_one_is_shown_as_its(
    flow: App, tmp_path: Path
) -> None:
    with another_program(tmp_path) as app:
        app.update_state(THREAD, {"task": "rivers"}, as_node="write")
    given = ("update-state", "t", "task=seas", "--expected-step", "1")
    assert "the edit was made on 1" in flow.expect(4, *given, *STORE).err
    assert flow.expect(0, "show", "t", "--json", *STORE).document["state"]["task"] == "rivers"
    assert "Step 2 by another program" in flow.expect(0, "log", "t", *STORE).out
    assert "another program" in flow.expect(0, "blame", "t", "task", *STORE).out


MEDDLED = """
def meddle():
    theirs = SqliteSaver(sqlite3.connect("theirs.sqlite", check_same_thread=False))
    builder.compile(checkpointer=theirs).update_state(
        {"configurable": {"thread_id": "m"}}, {"task": "rivers"}, as_node="write"
    )

class Meddled(SqliteSaver):
    def put(self, config, checkpoint, metadata, versions):
        saved = super().put(config, checkpoint, metadata, versions)
        if metadata["step"] == MEDDLED_AT:
            meddle()
        return saved

graph = builder.compile(Meddled(sqlite3.connect("theirs.sqlite", check_same_thread=False)), name="flow")
"""
"""A checkpointer behind whose back another program edits the thread `m` as soon as a step is saved."""
BETWEEN = f"{FLOW}MEDDLED_AT = 1\n{MEDDLED}"
WHILE_ASKED = f"{FLOW}MEDDLED_AT = None\n{MEDDLED}".replace(
    "def ask(state):", "def ask(state):\n    meddle()"
)


@pytest.mark.parametrize("as_json", [False, True], ids=["words", "json"])
@pytest.mark.parametrize("text", [BETWEEN, WHILE_ASKED], ids=["between supersteps", "while it is asked"])
def test_a_run_that_another_program_has_moved_meanwhile_ends_with_a_conflict(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, as_json: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "meddled.py").write_text(text)
    given = ("run", "meddled.py", "--input", "task=hills", "--thread", "m")
    done = app.expect(4, *given, "--json" if as_json else "--headless")
    assert "somebody else has run thread 'm'" in done.err
    if as_json:
        ended, result = done.documents[-2:]
        assert (ended["event"], ended["exit_code"], result["exit_code"]) == ("run_ended", 4, 4)
    assert "Step 2 by another program" in app.expect(0, "log", "m", "--store", "langgraph:meddled.py").out


def test_the_list_of_our_threads_says_where_theirs_wait(flow: App) -> None:
    for arguments in (("threads",), ("threads", "--waiting")):
        said = flow.expect(0, *arguments).err
        assert "1 thread of LangGraph waits elsewhere: hitl-tui threads --waiting --store langgraph:" in said
    named = said.split("--store ")[1].strip()
    assert "Is it good?" in flow.expect(0, "threads", "--waiting", "--store", named).out
    assert "elsewhere" not in flow.expect(0, "threads", *STORE).err
    flow.expect(0, "answer", "t", request(flow), "yes", "--step", "1", *STORE)
    flow.expect(0, "resume", "t", "--headless", *STORE)
    assert "elsewhere" not in flow.expect(0, "threads").err


def test_a_file_of_checkpoints_is_looked_at_without_its_graph(flow: App, tmp_path: Path) -> None:
    (tmp_path / "flow.py").unlink()
    store = ("--store", "langgraph+sqlite:///theirs.sqlite")
    assert "theirs" in flow.expect(0, "threads", *store).out
    shown = flow.expect(0, "show", "t", "--json", *store).document
    assert shown["state"]["lines"] == ["about hills"]
    assert [request["title"] for request in shown["standing"]["pending"]] == ["Is it good?"]
    assert "Step 1 by write" in flow.expect(0, "log", "t", *store).out
    refused = flow.expect(2, "step", "t", *store)
    assert "hitl-tui run GRAPH" in refused.err


def test_of_a_file_only_the_thread_that_is_gone_on_with_is_read(flow: App, tmp_path: Path) -> None:
    flow.expect(3, "run", "flow.py", "--headless", "--input", "task=seas", "--thread", "u")
    (tmp_path / "flow.py").unlink()
    store = ("--store", "langgraph+sqlite:///theirs.sqlite")
    assert "there is no thread 'gone'" in flow.expect(2, "resume", "gone", "--headless", *store).err
    assert "hitl-tui run GRAPH" in flow.expect(2, "resume", "t", "--headless", *store).err
    mirrored = []
    for file in Path(os.environ["XDG_DATA_HOME"]).rglob("langgraph/*.threads.db"):
        mirror = read_only(str(file))
        mirrored.append(sorted(row.info.thread_id for row in mirror.threads()))
        mirror.close()
    assert sorted(mirrored) == [["t"], ["t", "u"]]


@pytest.mark.skipif(
    find_spec("langgraph._internal._serde") is None, reason="an older LangGraph is given no file of others"
)
def test_a_graph_runs_on_a_file_of_checkpoints_that_is_named(flow: App, tmp_path: Path) -> None:
    store = ("--store", "langgraph+sqlite:///other.sqlite")
    flow.expect(3, "run", "flow.py", "--headless", "--input", "task=seas", "--thread", "s", *store)
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        threads = database.execute("SELECT DISTINCT thread_id FROM checkpoints").fetchall()
    database.close()
    assert threads == [("s",)]
    assert "about seas" in flow.expect(0, "show", "s", *store).out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "flow.py", "--store", "mine.db"), "are kept by its checkpointer, not in mine.db"),
        (("run", "flow.py", "--model", "ollama/x"), "takes no --model"),
        (("threads", "--store", "langgraph:review"), "review is no graph of LangGraph"),
        (("threads", "--store", "langgraph+sqlite:///gone.sqlite"), "there is no file"),
        (("replay", "t", *STORE), "are not run again here"),
        (("import", "x.jsonl", *STORE), "keeps threads of LangGraph alone"),
    ],
)
def test_what_does_not_go_together_is_told(flow: App, arguments: tuple[str, ...], words: str) -> None:
    assert words in flow.expect(2, *arguments).err


def test_its_picture_is_drawn(flow: App) -> None:
    drawn = flow.expect(0, "graph", "flow.py", "--format", "mermaid").out
    assert "write" in drawn
    assert "ask" in drawn


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), "there is no graph to run"),
        (("run", "review", "--server", "http://127.0.0.1:9"), "don't go together"),
        (("run", "--server", "http://127.0.0.1:9", "--model", "x"), "--model and --server don't go together"),
        (("threads", "--server", "http://me:secret@127.0.0.1:9"), "holds no password"),
        (("threads", "--server", "http://127.0.0.1:9", "--store", "x.db"), "don't go together"),
    ],
)
def test_what_does_not_go_with_a_server_is_told(app: App, arguments: tuple[str, ...], words: str) -> None:
    assert words in app.expect(2, *arguments).err


def test_a_server_that_is_not_there_is_told(app: App) -> None:
    assert "can't be reached" in app.expect(1, "threads", "--server", "http://127.0.0.1:9").err


def test_headers_that_can_not_be_read_are_told(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITL_TUI_SERVER_HEADERS", "Bearer x")
    assert "no JSON object" in app.expect(2, "threads", "--server", "http://127.0.0.1:9").err


def test_a_subgraph_is_stepped_into_edited_and_left_by_commands(app: App) -> None:
    store = ("--store", "langgraph:langgraph/report")
    begun = ("--headless", "--input", "question=Why?", "--thread", "r", "--break", "research")
    app.expect(3, "run", "langgraph/report", *begun)
    app.expect(0, "step", "r", "--into", *store)
    inside = app.expect(0, "show", "r", "--json", *store).document["unfinished"]["thread"]
    app.expect(0, "step", inside, *store)
    app.expect(0, "update-state", inside, 'queries=["edited"]', "--as-node", "plan", *store)
    app.expect(0, "step", inside, "--out", *store)
    shown = app.expect(0, "show", inside, "--json", *store).document
    assert (shown["owner"], shown["standing"]["status"]) == ({"thread": "r", "node": "research"}, "completed")
    refused = app.expect(2, "update-state", inside, "question=late", *store)
    assert "nobody takes what would come of it now" in refused.err
    app.expect(0, "resume", "r", "--headless", *store)
    assert "A page about: edited" in app.expect(0, "show", "r", *store).out
    assert inside in app.expect(0, "threads", "--inside", *store).out


def test_what_a_thread_has_used_and_how_two_differ_is_told_as_of_ours(app: App) -> None:
    given = ("--headless", "--input", 'messages=[["user", "What is a closure?"]]')
    store = ("--store", "langgraph:langgraph/chat")
    app.expect(0, "run", "langgraph/chat", *given, "--thread", "c")
    cost = app.expect(0, "cost", "c", "--json", *store).document
    assert [(row["node"], row["tokens_in"], row["tokens_out"]) for row in cost["nodes"]] == [
        ("chatbot", 12, 17),
        ("judge", 0, 0),
    ]
    assert "chatbot" in app.expect(0, "cost", "c", *store).out
    app.expect(0, "fork", "c@1", "d", "mood=calm", "--as-node", "judge", *store)
    app.expect(0, "resume", "d", "--headless", *store)
    told = app.expect(0, "diff", "c", "d", "--json", *store).document
    assert "mood" in [channel["channel"] for channel in told["channels"]]
    assert "mood: changed" in app.expect(0, "diff", "c", "d", *store).out
