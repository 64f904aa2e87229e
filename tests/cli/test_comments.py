"""Comments on passages: in the ledger, in the log, and in the words that the worker gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.spec import spec

pytestmark = spec("11")

ADVISED = """
from pathlib import Path
from hitl_tui import Agent, ScriptedModel, advisor_workflow

def write(messages):
    asked = str(messages[-1])
    Path({prompt!r}).write_text(asked)
    return "A better text." if "jar" in asked else "A jar of sauce. It is Monday."

def judge(messages):
    return "approved" if "better" in str(messages[-1]) else "revise: dull"

graph = advisor_workflow(
    Agent("worker", ScriptedModel(write, pace=0)),
    Agent("advisor", ScriptedModel(judge, pace=0)),
    human="verdict",
)
"""


@pytest.fixture
def advised(app: App, tmp_path: Path) -> App:
    (tmp_path / "advised.py").write_text(ADVISED.format(prompt=str(tmp_path / "prompt.txt")))
    task = "messages=Explain a closure."
    app.expect(3, "run", str(tmp_path / "advised.py"), "--input", task, "--headless", "--thread", "a")
    return app


COMMENTS = ("--comment", "It is Monday", "whose?", "--comment", "A jar", "keep one image")


@pytest.mark.slow
def test_the_worker_gets_each_comment_with_its_passage_in_the_order_of_the_text(
    advised: App, tmp_path: Path
) -> None:
    done = advised.expect(3, "revise", "a", "--note", "Shorter.", *COMMENTS, "--run", "--json")
    assert done.document["state"]["latest_draft"] == "A better text."
    words = "Shorter.\n\n1. On “A jar”: keep one image\n2. On “It is Monday”: whose?"
    entry = next(
        entry
        for entry in advised.expect(0, "log", "a", "--json").document["decisions"]
        if entry["decision"] == "answer"
    )
    assert entry["data"] == {
        "answer": {"choice": "revise", "text": words},
        "comments": [
            {"quote": "A jar", "text": "keep one image", "path": "latest_draft", "offset": 0},
            {"quote": "It is Monday", "text": "whose?", "path": "latest_draft", "offset": 16},
        ],
    }
    assert advised.expect(0, "show", "a@3", "--json").document["state"]["advisor_feedback"] == words
    asked = (tmp_path / "prompt.txt").read_text()
    assert "1. On “A jar”: keep one image" in asked
    assert asked.index("keep one image") < asked.index("whose?")
    advised.expect(0, "verify", "a", "--strict")


@pytest.mark.slow
def test_comments_alone_satisfy_a_choice_that_requires_text(advised: App) -> None:
    advised.expect(0, "revise", "a", *COMMENTS[:3])
    log = advised.expect(0, "log", "a").out
    assert "comment 1 whose?  on “It is Monday”" in log
    assert "answer: revise" in log


@pytest.mark.slow
def test_a_comment_on_a_missing_passage_is_refused_and_nothing_is_stored(advised: App) -> None:
    refused = advised.expect(2, "revise", "a", "--comment", "no such words", "x").err
    assert "is not in 'latest_draft'" in refused
    assert "answer" not in advised.expect(0, "log", "a", "--json").document["decisions"][-1]["decision"]
    assert "says nothing" not in refused
