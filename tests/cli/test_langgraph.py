"""Threads of LangGraph on the command line: run, looked at, answered, and read from checkpoints alone."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")

from hitl_tui.cli.langgraph import run_command
from hitl_tui.loading.modules import forget_projects
from hitl_tui.loading.sources import open_langgraph_graph
from hitl_tui.stores.sqlite.store import read_only
from tests.plain.talker import Talker
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
def test_a_langgraph_thread_is_viewed_like_our_own(flow: App, arguments: tuple[str, ...], said: str) -> None:
    assert said in flow.expect(0, *arguments, *STORE).out


@pytest.mark.slow
def test_an_answer_goes_to_what_asked_and_the_thread_ends(flow: App) -> None:
    flow.expect(0, "answer", "t", request(flow), "yes", "--step", "1", "--note", "fine", *STORE)
    flow.expect(0, "resume", "t", "--headless", *STORE)
    assert flow.expect(0, "show", "t", "--json", *STORE).document["state"]["lines"] == ["about hills", "yes"]
    log = flow.expect(0, "log", "t", *STORE).out
    assert "fine" in log
    assert "| answer: yes\n  | checkpoint: 1" in log


@pytest.mark.parametrize(
    ("store", "command"),
    [
        ("langgraph:my app.py", "hitl-tui run 'my app.py'"),
        ("langgraph+http://localhost:1#a", "hitl-tui run --server http://localhost:1 --assistant a"),
        ("langgraph+https://host", "hitl-tui run --server https://host"),
        ("langgraph+sqlite:///none.db", "hitl-tui run GRAPH --store langgraph+sqlite:///none.db"),
        ("langgraph+sqlite:///none.db#a.py", "hitl-tui run a.py --store langgraph+sqlite:///none.db"),
        ("sqlite:///none.db", ""),
    ],
)
def test_an_empty_list_names_the_command_that_starts_a_thread_there(store: str, command: str) -> None:
    assert run_command(store) == command


def test_a_graph_is_not_left_to_workers_and_no_store_is_advised_for_it(flow: App) -> None:
    done = flow.expect(2, "run", "flow.py", "--detach", "--input", "task=seas", "--thread", "u")
    assert "workers run no LangGraph graphs" in done.err
    assert "postgresql" not in done.err


@pytest.mark.slow
def test_threads_of_other_programs_are_listed_and_opened(flow: App, tmp_path: Path) -> None:
    with another_program(tmp_path) as app:
        app.invoke({"task": "rivers"}, {"configurable": {"thread_id": "theirs"}})
    assert "theirs" in flow.expect(0, "threads", *STORE).out
    assert "about rivers" in flow.expect(0, "show", "theirs", *STORE).out


@pytest.mark.slow
@pytest.mark.parametrize("store", ["langgraph:flow.py", "langgraph+sqlite:///theirs.sqlite"])
def test_a_thread_that_another_program_deleted_leaves_the_queue(
    flow: App, tmp_path: Path, store: str
) -> None:
    with another_program(tmp_path) as app:
        app.invoke({"task": "rivers"}, {"configurable": {"thread_id": "another"}})
        assert len(flow.expect(0, "threads", "--waiting", "--store", store).out.splitlines()) == 3
        app.checkpointer.delete_thread("another")
    output = flow.expect(0, "threads", "--waiting", "--store", store).out
    assert "another" not in output
    assert len(output.splitlines()) == 2


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_edit_after_another_programs_edit_is_refused_and_shows_that_one(flow: App, tmp_path: Path) -> None:
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
    assert "another program ran thread 'm'" in done.err
    if as_json:
        ended, result = done.documents[-2:]
        assert (ended["event"], ended["exit_code"], result["exit_code"]) == ("run_ended", 4, 4)
    assert "Step 2 by another program" in app.expect(0, "log", "m", "--store", "langgraph:meddled.py").out


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_checkpoint_file_is_viewed_without_its_graph(flow: App, tmp_path: Path) -> None:
    (tmp_path / "flow.py").unlink()
    store = ("--store", "langgraph+sqlite:///theirs.sqlite")
    assert "theirs" in flow.expect(0, "threads", *store).out
    shown = flow.expect(0, "show", "t", "--json", *store).document
    assert shown["state"]["lines"] == ["about hills"]
    assert [request["title"] for request in shown["standing"]["pending"]] == ["Is it good?"]
    assert "Step 1 by write" in flow.expect(0, "log", "t", *store).out
    refused = flow.expect(2, "step", "t", *store)
    assert "name its graph: --store langgraph+sqlite:///theirs.sqlite#GRAPH" in refused.err
    order = advised(flow.expect(0, "show", "t", *store).out, "fine")
    assert order[-2:] == ["--store", "langgraph+sqlite:///theirs.sqlite#GRAPH"]


@pytest.mark.slow
@pytest.mark.parametrize("store", ["langgraph+sqlite:///theirs.sqlite", "langgraph:flow.py"])
def test_an_audit_page_compares_with_the_checkpoints(flow: App, tmp_path: Path, store: str) -> None:
    page = ("export", "t", "--format", "markdown", "--store", store)
    written = flow.expect(0, *page).out
    assert "compared with LangGraph's checkpoints" in written
    assert "set by" not in written, "nobody has edited anything"
    with sqlite3.connect(tmp_path / "theirs.sqlite") as database:
        newest = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 't'"
        database.execute(f"DELETE FROM checkpoints WHERE checkpoint_id = ({newest})")
    database.close()
    assert "origin: t, step 1: checkpoint" in flow.expect(0, *page).out


@pytest.mark.slow
def test_a_replaced_checkpoint_file_shows_its_own_threads(flow: App, tmp_path: Path) -> None:
    store = ("--store", "langgraph+sqlite:///theirs.sqlite")
    before = flow.expect(0, "show", "t", "--json", *store).document
    for file in tmp_path.glob("theirs.sqlite*"):
        file.unlink()
    other = ("--input", "task=seas", "--thread", "t", "--store", "langgraph+sqlite:///theirs.sqlite")
    flow.expect(3, "run", "flow.py", "--headless", *other)
    after = flow.expect(0, "show", "t", "--json", *store).document
    assert after["state"] != before["state"]
    assert after["state"]["lines"] == ["about seas"]
    assert "ok" in flow.expect(0, "verify", "t", *store).out
    mirrors = Path(os.environ["XDG_DATA_HOME"], "hitl-tui/langgraph")
    with_graph, alone = mirrors.glob("*.threads.db"), mirrors.glob("theirs-*-*.threads.db")
    assert (len(list(with_graph)), len(list(alone))) == (2, 1), "a former mirror is removed"


@pytest.mark.slow
def test_a_replaced_checkpoint_file_keeps_the_recorded_decisions(flow: App, tmp_path: Path) -> None:
    flow.expect(0, "answer", "t", request(flow), "fine", "--step", "1", "--run", *STORE)
    flow.expect(0, "show", "t", *STORE)
    with another_program(tmp_path) as app:
        app.checkpointer.conn.close()  # the module that is loaded has the file open
    forget_projects()
    for file in tmp_path.glob("theirs.sqlite*"):
        file.unlink()
    with another_program(tmp_path) as app:
        app.invoke({"task": "seas"}, THREAD)
    renewed = flow.expect(0, "show", "t", "--json", *STORE)
    assert renewed.document["state"]["lines"] == ["about seas"]
    aside = renewed.err.split("what was decided in those is in ")[1].split()[0]
    assert "fine" in flow.expect(0, "log", "t", "--store", f"sqlite:///{aside}").out
    again = flow.expect(0, "threads", "--json", *STORE)
    assert [thread["thread"] for thread in again.document["threads"]] == ["t"]
    assert not again.err


@pytest.mark.slow
def test_only_the_resumed_thread_of_a_file_is_read(flow: App, tmp_path: Path) -> None:
    flow.expect(3, "run", "flow.py", "--headless", "--input", "task=seas", "--thread", "u")
    (tmp_path / "flow.py").unlink()
    store = ("--store", "langgraph+sqlite:///theirs.sqlite")
    assert "there is no thread 'gone'" in flow.expect(2, "resume", "gone", "--headless", *store).err
    assert "theirs.sqlite#GRAPH" in flow.expect(2, "resume", "t", "--headless", *store).err
    mirrored = []
    for file in Path(os.environ["XDG_DATA_HOME"]).rglob("langgraph/*.threads.db"):
        mirror = read_only(str(file))
        mirrored.append(sorted(row.info.thread_id for row in mirror.threads()))
        mirror.close()
    assert sorted(mirrored) == [["t"], ["t", "u"]]


@pytest.mark.skipif(
    find_spec("langgraph._internal._serde") is None, reason="an older LangGraph is given no file of others"
)
@pytest.mark.slow
def test_a_graph_runs_on_a_file_of_checkpoints_that_is_named(flow: App, tmp_path: Path) -> None:
    store = ("--store", "langgraph+sqlite:///other.sqlite")
    waits = flow.expect(3, "run", "flow.py", "--headless", "--input", "task=seas", "--thread", "s", *store)
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        threads = database.execute("SELECT DISTINCT thread_id FROM checkpoints").fetchall()
    database.close()
    assert threads == [("s",)]
    assert "about seas" in flow.expect(0, "show", "s", *store).out
    assert "other.sqlite#" in flow.expect(3, "resume", "s", "--headless", "--graph", "flow.py", *store).out
    flow.expect(0, *advised(waits.out, "fine"), "--run")
    named = ("--store", "langgraph+sqlite:///other.sqlite#flow.py")
    assert flow.expect(0, "show", "s", "--json", *named).document["state"]["lines"] == ["about seas", "fine"]
    assert "no file" in flow.expect(2, "threads", "--store", "langgraph+sqlite:///gone.sqlite#flow.py").err


def advised(text: str, answer: str) -> list[str]:
    """The arguments of the command by which a printed text says to answer."""
    command = next(
        line.partition("answer with: ")[2] for line in text.splitlines() if "answer with: " in line
    )
    return [answer if word == "ANSWER" else word for word in shlex.split(command)[1:]]


@pytest.mark.slow
def test_a_thread_of_an_in_memory_graph_is_answered_by_another_command(app: App, in_memory: Path) -> None:
    waits = app.expect(3, "run", "flow.py", "--headless", "--input", "task=seas", "--thread", "s")
    assert "keeps its threads in memory; here they are kept in" in waits.err
    app.expect(0, *advised(waits.out, "fine"), "--run")
    again = app.expect(0, "show", "s", "--json", "--store", f"langgraph:{in_memory}")
    assert again.document["state"]["lines"] == ["about seas", "fine"]
    assert "in memory" not in again.err, "it is announced once"


def test_a_graph_that_is_left_in_memory_gets_no_advice_that_cannot_work(app: App, in_memory: Path) -> None:
    run = ("run", "flow.py", "--headless", "--input", "task=seas", "--thread", "s")
    waits = app.expect(3, *run, "--keep-memory")
    assert "hitl-tui answer" not in waits.out
    assert "nothing can continue this thread later" in waits.out
    assert "keeps this thread in memory" in waits.err
    assert "there is no thread 's'" in app.expect(2, "show", "s", "--store", "langgraph:flow.py").err
    in_memory.with_name("stored.py").write_text(FLOW)
    refused = app.expect(2, "run", "stored.py", "--headless", "--keep-memory")
    assert "does not keep its threads in memory" in refused.err


@pytest.mark.slow
def test_lines_ask_for_the_context_that_a_graph_needs(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = CONTEXT.replace("CLASS", "@dataclass\nclass Needed:\n    user: str\n    tries: int = 3\n")
    (tmp_path / "flow.py").write_text(code)
    talk = Talker(app, monkeypatch)
    done = talk("\nann\n5\nc\nq\n", "run", "flow.py", "--plain", "--thread", "t")
    assert "It is required" in done.out
    shown = app.expect(0, "show", "t", "--json", "--store", "langgraph:flow.py").document
    assert shown["state"]["text"] == "ann 5"
    (tmp_path / "asks.py").write_text(code.replace('text: str = ""', "text: str"))
    asked = app.expect(2, "run", "asks.py", "--headless")
    assert "give --input text=… --context user=…" in asked.err


@pytest.mark.slow
def test_new_threads_begin_with_the_context_of_the_configuration(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HITL_TUI_CONFIG", str(tmp_path / "config.toml"))
    code = CONTEXT.replace("CLASS", "@dataclass\nclass Needed:\n    user: str\n    tries: int = 3\n")
    code = code.replace("(state, runtime", "(state, config: RunnableConfig, runtime")
    code = code.replace(
        "{runtime.context.tries}", "{runtime.context.tries} {config['configurable']['speaks']}"
    )
    (tmp_path / "flow.py").write_text(f"from langchain_core.runnables import RunnableConfig\n{code}")
    (tmp_path / "config.toml").write_text(
        "[langgraph.context]\nuser = 'ann'\ntries = 7\nother = 'of another graph'\n"
        "[langgraph.configurable]\nspeaks = 'fi'\n"
    )

    def text(thread: str, *given: str) -> str:
        run = ("run", "flow.py", "--headless", "--input", "{}", "--thread", thread)
        app.expect(0, *run, *given)
        shown = app.expect(0, "show", thread, "--json", "--store", "langgraph:flow.py").document
        return str(shown["state"]["text"])

    assert text("a") == "ann 7 fi"
    assert text("b", "--context", "user=bob", "--configurable", "speaks=sv") == "bob 7 sv"
    (tmp_path / "config.toml").write_text("[langgraph]\ncontext = 5\n")
    stderr = app.expect(2, "run", "flow.py", "--headless").err
    assert "config.toml:2: langgraph.context: must be a table of values by name" in stderr


CONTEXT = """
from dataclasses import dataclass, field
from typing_extensions import TypedDict
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

CLASS

@dataclass
class State:
    text: str = ""

def greet(state, runtime: Runtime[Needed]):
    return {"text": f"{runtime.context.user} {runtime.context.tries}"}

graph = StateGraph(State, context_schema=Needed).add_node(greet).add_edge(START, "greet").compile()
"""


@pytest.fixture
def in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the graph of `flow`, compiled with a checkpointer in memory."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "flow.py"
    saver = (
        "from langgraph.checkpoint.memory import InMemorySaver\ngraph = builder.compile(InMemorySaver())\n"
    )
    file.write_text(FLOW.partition("graph = ")[0] + saver)
    return file


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "flow.py", "--store", "mine.db"), "are kept by its checkpointer, not in mine.db"),
        (("run", "flow.py", "--model", "ollama/x"), "takes no --model"),
        (("threads", "--store", "langgraph:review"), "review is not a LangGraph graph"),
        (("threads", "--store", "langgraph+sqlite:///gone.sqlite"), "there is no file"),
        (("replay", "t", *STORE), "are not run again here"),
        (("rerun", "t", *STORE), "does not tell which code a step was made by"),
        (("import", "x.jsonl", *STORE), "keeps threads of LangGraph alone"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    flow: App, arguments: tuple[str, ...], words: str
) -> None:
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
        (("run", "--server", "http://127.0.0.1:9", "--keep-memory"), "--keep-memory and --server don't go"),
        (("threads", "--server", "http://me:secret@127.0.0.1:9"), "holds no password"),
        (("threads", "--server", "http://127.0.0.1:9", "--store", "x.db"), "don't go together"),
    ],
)
def test_options_that_a_langgraph_server_does_not_support_are_refused(
    app: App, arguments: tuple[str, ...], words: str
) -> None:
    assert words in app.expect(2, *arguments).err


@pytest.mark.slow
def test_an_unreachable_langgraph_server_is_reported(app: App) -> None:
    assert "can't be reached" in app.expect(1, "threads", "--server", "http://127.0.0.1:9").err


def test_invalid_headers_are_reported(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITL_TUI_SERVER_HEADERS", "Bearer x")
    assert "not a JSON object" in app.expect(2, "threads", "--server", "http://127.0.0.1:9").err


@pytest.mark.slow
def test_a_subgraph_is_stepped_into_edited_and_left_by_commands(app: App) -> None:
    store = ("--store", "langgraph:langgraph/report")
    started = ("--headless", "--input", "question=Why?", "--thread", "r", "--break", "research")
    app.expect(3, "run", "langgraph/report", *started)
    began = app.expect(0, "step", "r", "--into", *store).out
    inside = app.expect(0, "show", "r", "--json", *store).document["unfinished"]["thread"]
    assert f"one step inside research: hitl-tui step {shlex.quote(inside)} --store" in began
    app.expect(0, "step", inside, *store)
    app.expect(0, "update-state", inside, 'queries=["edited"]', "--as-node", "plan", *store)
    app.expect(0, "step", inside, "--out", *store)
    shown = app.expect(0, "show", inside, "--json", *store).document
    assert (shown["owner"], shown["standing"]["status"]) == ({"thread": "r", "node": "research"}, "completed")
    refused = app.expect(2, "update-state", inside, "question=late", *store)
    assert "nobody takes what would come of it now" in refused.err
    app.expect(0, "resume", "r", "--headless", *store)
    assert "A page about: edited" in app.expect(0, "show", "r", *store).out
    assert "--strict would" not in app.expect(0, "verify", "r", "--strict", *store).out
    assert inside in app.expect(0, "threads", "--inside", *store).out


@pytest.mark.slow
def test_cost_and_diff_work_as_for_our_own_threads(app: App) -> None:
    given = ("--headless", "--input", 'messages=[["user", "What is a closure?"]]')
    store = ("--store", "langgraph:langgraph/chat")
    app.expect(0, "run", "langgraph/chat", *given, "--thread", "c")
    cost = app.expect(0, "cost", "c", "--json", *store).document
    assert [(row["node"], row["tokens_in"], row["tokens_out"]) for row in cost["nodes"]] == [
        ("chatbot", 12, 17),
        ("judge", 0, 0),
    ]
    assert "chatbot" in app.expect(0, "cost", "c", *store).out
    forked = app.expect(0, "fork", "c@1", "d", "mood=calm", "--as-node", "judge", *store)
    assert "your application's next turn in 'c' continues from it" in forked.err
    app.expect(0, "resume", "d", "--headless", *store)
    document = app.expect(0, "diff", "c", "d", "--json", *store).document
    assert "mood" in [channel["channel"] for channel in document["channels"]]
    assert "mood: changed" in app.expect(0, "diff", "c", "d", *store).out


GUARDED = """
from typing_extensions import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    log: str

builder = StateGraph(State).add_node("danger", lambda state: {"log": "DONE"}).add_edge(START, "danger")
graph = builder.compile(interrupt_before=["danger"])
"""


@pytest.mark.slow
def test_a_run_without_a_screen_stops_before_a_guarded_first_node(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guarded.py").write_text(GUARDED, encoding="utf-8")
    done = app.expect(3, "run", "guarded.py", "--headless", "--input", "log=x", "--thread", "t")
    assert "stopped before danger" in done.out
    assert "danger runs" not in done.out
    store = ("--store", "langgraph:guarded.py")
    assert "resumed" not in app.expect(0, "log", "t", *store).out
    assert "DONE" in app.expect(0, "resume", "t", "--headless", *store).out


def test_a_guarded_graph_that_no_worker_can_run_is_refused_and_nothing_of_it_runs(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guarded.py").write_text(
        GUARDED.replace('lambda state: {"log": "DONE"}', 'lambda state: open("ran", "w") and {"log": "DONE"}')
    )
    done = app.expect(2, "run", "guarded.py", "--detach", "--input", "log=x", "--thread", "t")
    assert "workers run no LangGraph graphs\n  leave out --detach" in done.err
    assert not (tmp_path / "ran").exists()
