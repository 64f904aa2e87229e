"""Suggested commands can be typed as they are, and a refusal says how to fix it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.commands import App

LIMITED = """
from hitl_tui import Limits
from hitl_tui import END, START, Channel, StateGraph
steps = StateGraph({"n": Channel(0)}, name="limited").add_node("up", lambda state: {"n": state["n"] + 1})
steps.add_edge(START, "up").add_conditional_edge("up", lambda state: "on", {"on": "up", "off": END})
runner = steps.compile(limits=Limits(max_iterations=2))
"""

FAILING = """
import pathlib
from hitl_tui import END, START, Channel, StateGraph
def open_door(state):
    if not pathlib.Path(__file__).with_name("key").exists():
        raise RuntimeError("no key")
    return {"n": 1}
graph = StateGraph({"n": Channel(0)}, name="door").add_node("open", open_door)
graph.add_edge(START, "open").add_edge("open", END)
"""


def suggested(text: str, start: str) -> list[str]:
    """The arguments of the command that a line of this start suggests."""
    line = next(line for line in text.splitlines() if line.strip().startswith(start))
    program, *arguments = shlex.split(line.partition(": ")[2])
    assert program == "hitl-tui"
    return arguments


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"files:{tmp_path / 'a store'}"


@pytest.mark.slow
@pytest.mark.parametrize("thread", ["a b", "-x"])
def test_the_suggested_answer_command_names_the_store(app: App, store: str, thread: str) -> None:
    asked = app.expect(
        3, "run", "review", "--headless", "--input", "task=x", "--thread", thread, "--store", store
    )
    command, *rest = suggested(asked.out, "answer with")
    answered = ("revise" if word == "ANSWER" else word for word in rest)
    done = app.expect(0, command, "--note", "shorter", *answered)
    assert "Step 4: write runs." in app.expect(3, *suggested(done.out, "continue with")).out


@pytest.mark.slow
def test_the_command_that_undoes_a_decision_names_the_store(app: App, store: str) -> None:
    asked = app.expect(
        3, "run", "review", "--headless", "--input", "task=x", "--thread", "t", "--store", store
    )
    command, *rest = suggested(asked.out, "answer with")
    app.expect(0, command, *("approve" if word == "ANSWER" else word for word in rest))
    shown = app.expect(0, "show", "t", "--store", store).out
    undo = next(line for line in shown.splitlines() if line.strip().startswith("hitl-tui fork"))
    app.expect(0, *shlex.split(undo)[1:])
    assert "t-again" in app.expect(0, "threads", "--store", store).out


def test_a_thread_at_a_limit_says_how_to_raise_it(app: App, store: str, tmp_path: Path) -> None:
    (tmp_path / "limited.py").write_text(LIMITED)
    done = app.expect(3, "run", str(tmp_path / "limited.py"), "--headless", "--thread", "t", "--store", store)
    order = suggested(done.out, "raise it with")
    assert order[2].startswith("max_iterations=")
    raised = app.expect(0, *order)
    assert suggested(raised.out, "continue with") == ["resume", "t", "--headless", "--store", store]


def test_a_failed_thread_is_tried_again(app: App, tmp_path: Path) -> None:
    (tmp_path / "door.py").write_text(FAILING)
    failed = app.expect(1, "run", str(tmp_path / "door.py"), "--headless", "--thread", "t")
    (tmp_path / "key").touch()
    assert app.expect(0, *suggested(failed.out, "try again with")).out.endswith("t: Done at step 1.\n")


def test_a_thread_that_has_ended_suggests_nothing(review: App) -> None:
    review.expect(0, "approve", "r", "--run")
    assert review.expect(0, "show", "r").out.startswith("r: Done at step 3.\ngraph review\n")


@pytest.mark.parametrize("command", ["approve", "revise"])
def test_a_decision_without_a_request_says_the_threads_status(review: App, command: str) -> None:
    review.expect(0, "approve", "r", "--run")
    refused = review.expect(2, command, "r", "--note", "x").err
    assert refused == "hitl-tui: Wrong usage: nothing waits for a decision\n  thread 'r': Done at step 3.\n"


def test_a_refused_answer_lists_the_allowed_answers_once(review: App) -> None:
    request = review.expect(0, "show", "r", "--json").document["standing"]["pending"][0]["id"]
    refused = review.expect(2, "answer", "r", request, "x", "--step", "2").err
    assert refused == "hitl-tui: Wrong usage: 'x' is not an allowed answer (allowed: approve, revise)\n"


@pytest.mark.parametrize(
    ("arguments", "message", "fix"),
    [
        (["run", "my.toml:x"], "'my.toml:x': a graph file holds one graph", "leave out ':x': my.toml"),
        (["export", "r", "no/r.jsonl"], "there is no directory no", "create it first"),
        (
            ["blame", "r", "draft.a.b"],
            "there is nothing at 'a.b'",
            "`hitl-tui show r --channel draft` shows it",
        ),
        (["threads", "--store", "none.db"], "there is no store none.db", "check --store"),
    ],
    ids=["a graph file with a name", "no such directory", "no such path in a value", "no such store"],
)
def test_wrong_usage_says_how_to_fix_it(review: App, arguments: list[str], message: str, fix: str) -> None:
    done = review.expect(2, *arguments)
    assert message in done.err
    assert fix in done.err


def test_input_that_does_not_fit_is_wrong_usage(app: App) -> None:
    done = app.expect(2, "run", "counter", "--headless", "--input", "limit=two")
    assert "the input does not fit: channel 'limit': \"two\" is not of type" in done.err


def test_a_store_that_is_a_broken_link_is_reported_as_one(app: App, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to("away.db")
    for command in (["threads"], ["run", "counter", "--headless", "--input", "limit=1"]):
        refused = app(*command, "--store", str(link))
        assert refused.code != 0
        assert "is a link to away.db, which does not exist" in refused.err
