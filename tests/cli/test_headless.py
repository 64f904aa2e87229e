"""Running without a screen: run, resume, step, pause, cancel; in words, in JSON, and by exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitl_tui.config import default_store
from hitl_tui.loading.code import forget_code
from hitl_tui.stores import open_store
from tests.support.commands import App

LIMITED = """
from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from hitl_tui import Limits
graph = StateGraph({"n": Channel(0)}, name="limited").add_node("a", lambda state: {"n": state["n"] + 1})
ways = {"on": "a", "off": END}
graph = graph.add_edge(START, "a").add_conditional_edge("a", lambda state: "on", ways)
graph = graph.compile(checkpointer=MemoryCheckpointer(), limits=Limits(max_iterations=2))
"""
FAILING = """
from hitl_tui import END, START, Channel, StateGraph
def bad(state):
    raise ValueError("no \\x1b[2J luck")
graph = StateGraph({"n": Channel(0)}, name="failing").add_node("bad", bad)
graph.add_edge(START, "bad").add_edge("bad", END)
"""


def test_a_run_to_its_end_is_done(app: App) -> None:
    done = app.expect(0, "run", "counter", "--headless", "--input", "limit=2", "--thread", "c")
    assert "Step 2 by increment" in done.out
    assert done.out.endswith("c: Done at step 2.\n")


def test_json_is_a_stream_of_events_and_a_result(app: App) -> None:
    done = app.expect(0, "run", "counter", "--json", "--input", "limit=2", "--thread", "c")
    assert all(one["hitl_tui"] == 1 for one in done.documents)
    assert {one["kind"] for one in done.documents[:-1]} == {"event"}
    names = [one["event"] for one in done.documents[:-1]]
    assert names.count("step_committed") == 2
    assert names[-1] == "run_ended"
    result = done.document
    assert (result["kind"], result["status"], result["exit_code"]) == ("result", "completed", 0)
    assert result["state"]["count"] == 2


def test_a_run_that_asks_says_how_to_answer(app: App) -> None:
    done = app.expect(3, "run", "review", "--headless", "--input", "task=Hills", "--thread", "r")
    assert "r: Waiting at step 2 for a human: Is this draft good enough?" in done.out
    assert "answers: approve, revise" in done.out
    assert "hitl-tui answer r " in done.out


@pytest.mark.slow
def test_a_failing_node_is_exit_code_1(app: App, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    done = app.expect(1, "run", str(tmp_path / "failing.py"), "--headless", "--thread", "f")
    assert "Failed at step 0" in done.out
    assert "\x1b" not in done.out
    result = app.expect(1, "resume", "f", "--json").document
    assert (result["status"], result["error"]["node"]) == ("failed", "bad")


def test_a_graph_that_asks_for_input_gets_none(app: App) -> None:
    done = app.expect(2, "run", "review", "--headless")
    assert "asks for its input" in done.err
    assert "--input task='Explain gradient descent'" in done.err


def test_resume_continues_the_waiting_thread(review: App) -> None:
    assert review.expect(3, "resume", "--headless").out.startswith("r: Waiting")
    review.expect(0, "approve", "r")
    assert review.expect(0, "resume", "r", "--json").document["status"] == "completed"


@pytest.mark.slow
def test_steps_one_by_one(app: App) -> None:
    app.expect(3, "run", "review", "--headless", "--input", "task=Hills", "--thread", "r")
    app.expect(0, "fork", "r@0", "s")
    assert "Paused at step 1: check_approval is next." in app.expect(0, "step", "s").out
    done = app.expect(3, "step", "s", "--json")
    assert done.document["pending"][0]["choices"][0]["id"] == "approve"


def test_a_finished_thread_stays_finished(app: App) -> None:
    app.expect(0, "run", "counter", "--headless", "--thread", "c")
    assert app.expect(0, "resume", "c", "--json").document["step"] == 3
    assert "completed already" in app.expect(2, "cancel", "c").err


def test_cancel_can_not_be_undone(review: App) -> None:
    done = review.expect(0, "cancel", "r", "--note", "no time", "--as", "ann", "--json")
    assert (done.document["status"], done.document["reason"]) == ("cancelled", "user")
    assert review.expect(1, "resume", "r", "--headless").out.startswith("r: Cancelled")
    log = review.expect(0, "log", "r", "--json").document
    assert [(one["actor"], one["note"]) for one in log["decisions"] if one["decision"] == "cancel"] == [
        ("ann", "no time")
    ]


@pytest.mark.slow
def test_a_limit_waits_for_a_human_who_raises_it(app: App, tmp_path: Path) -> None:
    (tmp_path / "limited.py").write_text(LIMITED)
    done = app.expect(3, "run", str(tmp_path / "limited.py"), "--headless", "--thread", "l")
    assert "Waiting at step 2: limit reached: 2 iterations." in done.out
    app.expect(3, "resume", "l", "--headless")
    for wrong in (
        "max_iteration=9",
        "max_iterations=many",
        "max_iterations=-1",
        "max_iterations=1.5",
        "max_tokens",
    ):
        assert "limit" in app.expect(2, "extend", "l", wrong).err.lower()
    assert (
        app.expect(0, "extend", "l", "max_iterations=4", "max_seconds=none", "--json").document["step"] == 2
    )
    assert "Step 4 by a" in app.expect(3, "resume", "l", "--headless").out


def test_pausing_what_does_not_run(review: App) -> None:
    assert review.expect(0, "pause", "r", "--json").document["status"] == "waiting"


@pytest.mark.parametrize(
    "arguments",
    [
        ("step", "r"),
        ("pause", "r", "--wait", "0.1"),
        ("cancel", "r"),
        ("resume", "r", "--headless"),
        ("update-state", "r", "draft=x"),
    ],
)
def test_a_thread_that_another_process_runs_is_a_conflict(
    review: App, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.local._STOP_PATIENCE", 0.1)
    if arguments[0] != "update-state":
        review.expect(0, "approve", "r")
    store = open_store(default_store())
    now = 1 << 60
    store.acquire("r", store.new_lease(now), now)
    try:
        done = review.expect(4, *arguments, "--json")
        holder = f"process {os.getpid()}" if arguments[0] == "pause" else "already running in this process"
        assert holder in done.document["message"]
        assert (done.document["kind"], done.document["exit_code"]) == ("error", 4)
        assert "The thread is busy" in done.err
    finally:
        store.close()


@pytest.mark.parametrize(
    "arguments",
    [
        ("step", "no"),
        ("show", "no"),
        ("log", "no"),
        ("blame", "no", "draft"),
        ("diff", "no", "r"),
        ("fork", "no@1", "x"),
        ("answer", "no", "x", "approve", "--step", "1"),
        ("approve", "no"),
        ("revise", "no", "--note", "x"),
        ("update-state", "no", "a=1"),
        ("cancel", "no"),
        ("pause", "no"),
        ("resume", "no", "--headless"),
        ("export", "no", "file"),
        ("verify", "no"),
        ("show", "r@99"),
        ("fork", "r@99", "x"),
    ],
)
def test_an_unknown_thread_or_step_is_wrong_usage(review: App, arguments: tuple[str, ...]) -> None:
    done = review.expect(2, *arguments)
    assert done.out == ""
    assert done.err


@pytest.mark.slow
def test_breakpoints_stop_a_run_and_resume_continues_it(app: App) -> None:
    stops = ("--break", "increment:count > 1")
    done = app.expect(3, "run", "counter", "--headless", "--input", "limit=4", "--thread", "c", *stops)
    assert "c: Paused at step 2: breakpoint before increment: count > 1.\n" in done.out
    assert "continue with: hitl-tui resume c --headless" in done.out
    assert "breakpoint before increment: count > 1" in app.expect(0, "log", "c").out
    done = app.expect(3, "resume", "c", "--headless", *stops)
    assert "Paused at step 3" in done.out
    assert "Done at step 4" in app.expect(0, "resume", "c", "--headless").out


@pytest.mark.parametrize(
    ("stop", "step", "message"),
    [
        ("increment", 0, "before increment"),
        ("before increment", 0, "before increment"),
        ("increment hit 2", 1, "before increment hit 2"),
        ("after increment", 1, "after increment"),
        ("change count", 1, "change count"),
        ("change log: len(new) == 2", 2, "change log: len(new) == 2"),
    ],
)
def test_each_kind_of_breakpoint_stops_a_run_without_a_screen(
    app: App, stop: str, step: int, message: str
) -> None:
    run = ("run", "counter", "--headless", "--input", "limit=4", "--thread", "c")
    done = app.expect(3, *run, "--break", stop)
    assert f"c: Paused at step {step}: breakpoint {message}.\n" in done.out


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["error", "error bad", "error bad: error == 'KeyError'"])
def test_a_breakpoint_on_an_error_stops_before_the_node_is_tried_again(
    app: App, tmp_path: Path, stop: str
) -> None:
    graph = tmp_path / "bad.py"
    graph.write_text(RETRIED)
    run = ("run", str(graph), "--headless", "--thread")
    done = app.expect(1, *run, "t", "--break", stop)
    assert f"'bad', attempt 1: KeyError: 'gone' (breakpoint {stop})" in done.out
    assert "attempt 2" not in done.out
    done = app.expect(1, *run, "u", "--break", "error: error == 'TypeError'")
    assert "attempt 2" in done.out
    assert "breakpoint" not in done.out


@pytest.mark.parametrize("stop", ["tool", "tool free_slot", "tool: arguments.day == 'tuesday'"])
def test_a_breakpoint_on_a_tool_stops_before_it_is_called(app: App, stop: str) -> None:
    run = ("run", "assistant", "--headless", "--thread", "a", "--input", "request=Plan the spring")
    done = app.expect(3, *run, "--break", stop)
    assert f": breakpoint {stop}" in done.out
    assert "free_slot" not in done.out.partition("breakpoint")[0]


RETRIED = """
from hitl_tui import END, START, Channel, RetryPolicy, StateGraph

graph = StateGraph({"n": Channel(0)}, name="bad")
graph.add_node("bad", lambda state: {"n": {}["gone"]}, retry=RetryPolicy(max_attempts=2, wait=0.0))
graph.add_edge(START, "bad").add_edge("bad", END)
"""


@pytest.mark.slow
def test_a_thread_runs_again_in_a_fork_from_where_its_code_changed(app: App, tmp_path: Path) -> None:
    graph = tmp_path / "nested.py"
    graph.write_text(TWO)
    app.expect(0, "run", str(graph), "--headless", "--thread", "t")
    app.expect(2, "rerun", "t")
    graph.write_text(TWO.replace("* 10", "* 11"))
    forget_code(tmp_path)  # as in another process
    looked = app.expect(0, "rerun", "t", "--dry-run").out
    assert "b changed · step 1 is kept\nThe fork will run: b." in looked
    assert "step 1 is kept" in looked
    app.expect(2, "show", "t-b")
    done = app.expect(0, "rerun", "t")
    assert "step 1 is kept" in done.err
    assert "t-b: Done at step 2." in done.out
    assert app.expect(0, "show", "t-b", "--json").document["state"]["n"] == 11
    assert app.expect(0, "show", "t", "--json").document["state"]["n"] == 10
    made, *events = app.expect(0, "rerun", "t", "named", "--json").documents
    assert (made["thread"], made["parent"], made["step"]) == ("named", "t", 1)
    assert events[-1]["thread"] == "named"


TWO = """
from hitl_tui import END, START, Channel, StateGraph

def a(state):
    return {"n": state["n"] + 1}

def b(state):
    return {"n": state["n"] * 10}

graph = StateGraph({"n": Channel(0)}, name="two").add_node("a", a).add_node("b", b)
graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
"""


def test_a_logpoint_is_an_event_and_a_line(app: App) -> None:
    stops = ("--break", 'after increment log "now {count}"')
    done = app.expect(0, "run", "counter", "--json", "--input", "limit=2", "--thread", "c", *stops)
    events = [document for document in done.documents if document.get("event") == "breakpoint_hit"]
    assert [(event["line"], event["hits"], event["stops"]) for event in events] == [
        ("now 1", 1, False),
        ("now 2", 2, False),
    ]
    done = app.expect(0, "run", "counter", "--headless", "--input", "limit=1", "--thread", "d", *stops)
    assert "increment logs:\n  | now 1\n" in done.out


def test_kept_breakpoints_count_without_a_screen_only_where_they_are_asked_for(app: App) -> None:
    app.expect(0, "run", "counter", "--headless", "--input", "limit=1", "--thread", "a")
    source = app.expect(0, "show", "a", "--json").document["graph"]
    from hitl_tui.drivers.kept_breakpoints import kept_breakpoints
    from hitl_tui.engine.thread.breakpoints import Breakpoint
    from hitl_tui.loading.graphs import resolve_spec

    kept = kept_breakpoints(source, resolve_spec("counter"))
    kept.save((Breakpoint("before", "increment"), Breakpoint("before", "gone")))
    app.expect(0, "run", "counter", "--headless", "--input", "limit=1", "--thread", "b")
    done = app.expect(
        3, "run", "counter", "--headless", "--breakpoints", "--input", "limit=1", "--thread", "c"
    )
    assert "breakpoint before increment" in done.out


@pytest.mark.slow
def test_step_into_step_out_and_run_to_a_node(app: App, tmp_path: Path) -> None:
    (tmp_path / "nested.py").write_text(NESTED)
    graph = str(tmp_path / "nested.py")
    app.expect(3, "run", graph, "--headless", "--thread", "t", "--break", "team")
    assert "Paused at step 0" in app.expect(0, "step", "t", "--into").out
    assert "two is next" in app.expect(0, "step", "t/team#1").out
    assert "Paused at step 1: last is next" in app.expect(0, "step", "t/team#1", "--out").out
    app.expect(0, "fork", "t@0", "u")
    assert "Paused at step 1: breakpoint before last" in app.expect(3, "step", "u", "--to", "last").out
    assert "don't go together" in app.expect(2, "step", "u", "--to", "last", "--into").err
    assert "is not a subgraph thread" in app.expect(2, "step", "u", "--out").err


NESTED = """
from hitl_tui import END, START, Channel, StateGraph

inner = StateGraph({"n": Channel(0)}, name="inner")
inner.add_node("one", lambda s: {"n": s["n"] + 1}).add_node("two", lambda s: {"n": s["n"] * 10})
inner.add_edge(START, "one").add_edge("one", "two").add_edge("two", END)
graph = StateGraph({"m": Channel(3)}, name="outer")
graph.add_subgraph("team", inner, inputs={"m": "n"}, outputs={"n": "m"}).add_node("last", lambda s: {})
graph.add_edge(START, "team").add_edge("team", "last").add_edge("last", END)
"""


def test_an_invalid_breakpoint_creates_no_thread(app: App) -> None:
    run = ("run", "counter", "--headless", "--input", "limit=4", "--thread", "c", "--break")
    done = app.expect(2, *run, "incremnt")
    assert "has no node 'incremnt'" in done.err
    assert "did you mean 'increment'?" in done.err
    done = app.expect(2, *run, "increment:count > lmit")
    assert "at column 19: there is no channel 'lmit'" in done.err
    assert f"\n  increment:count > lmit\n  {18 * chr(32)}^" in done.err
    app.expect(2, "show", "c")
