"""Requests are printed with everything needed to decide them: the question, and how to answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.asking_files import MAPPED
from tests.support.commands import App


def test_the_fields_of_a_form_and_those_that_must_be_given(app: App) -> None:
    output = app.expect(3, "run", "order", "--headless", "--thread", "o").out
    assert "answers: a form" in output
    assert "field amount: whole number, 1 to 100\n" in output
    assert "field wrapping: none or paper or box, may be left out" in output
    assert (
        "--set item=... --set amount=... --set address.street=... --set address.city=... --step 0" in output
    )


def test_every_action_with_its_arguments(app: App) -> None:
    output = app.expect(3, "run", "toolcalls", "--headless", "--thread", "c").out
    assert '  | 1 of 2  send_mail\n  | {\n  |   "to": "team@example.org",' in output
    assert '"path": "drafts/minutes.md"' in output
    assert """--value '["approve", "approve"]' --step 1""" in output


def test_a_graph_inside_is_named_with_what_it_asks_about(app: App) -> None:
    output = app.expect(3, "run", "desk", "--headless", "--thread", "d").out
    assert "All about closures.\n" in output
    assert "hitl-tui show 'd/editor#1'" in output


@pytest.mark.parametrize("request_of", ["order", "toolcalls", "desk"])
def test_show_prints_the_request_like_the_run_that_stopped(app: App, request_of: str) -> None:
    output = app.expect(3, "run", request_of, "--headless", "--thread", "t").out
    asked = output[output.index("  request ") :]
    assert asked in app.expect(0, "show", "t").out


def test_a_failure_says_how_to_fix_it(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    run = ("run", "review", "--headless", "--input", "task=x", "--model", "anthropic/claude-sonnet-4-5")
    assert "  | set ANTHROPIC_API_KEY in the environment" in app.expect(1, *run).out


@pytest.mark.slow
def test_each_of_several_requests_is_answered_by_its_id(app: App, tmp_path: Path) -> None:
    (tmp_path / "mapped.py").write_text(MAPPED)
    output = app.expect(3, "run", str(tmp_path / "mapped.py"), "--headless", "--thread", "m").out
    assert "Keep ants?" in output
    assert "Keep bees?" in output
    first, second = (
        one["id"] for one in app.expect(0, "show", "m", "--json").document["standing"]["pending"]
    )
    refused = app.expect(2, "approve", "m").err
    assert "2 requests wait: " in refused
    assert first in refused
    assert second in refused
    assert "--request ID" in refused
    app.expect(3, "answer", "m", second, "reject", "--step", "0")
    assert [one["id"] for one in app.expect(0, "show", "m", "--json").document["standing"]["pending"]] == [
        first
    ]
    done = app.expect(0, "approve", "m", "--run", "--json").document
    assert done["state"]["found"] == [["ants", "approve"], ["bees", "reject"]]


GATED = """
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
channels = {"draft": Channel("", visibility="VISIBILITY"), "words": Channel(0)}
graph = StateGraph(channels).add_node("write", lambda state: {"draft": "first\\nsecond", "words": 2})
graph.add_edge(START, "write").add_edge("write", END)
choices = [GateChoice("yes", "yes", "y"), GateChoice("no", "no", "n")]
gate = Gate("write", "Good?", choices, subject="draft", payload=lambda state: {"words": state["words"]})
runner = graph.compile(checkpointer=MemoryCheckpointer(), interrupt_after=gate)
"""


def test_the_subject_is_printed_beside_the_payload(app: App, tmp_path: Path) -> None:
    path = tmp_path / "gated.py"
    path.write_text(GATED.replace("VISIBILITY", "public"))
    output = app.expect(3, "run", str(path), "--headless", "--thread", "t").out
    assert '  |   "words": 2\n' in output
    assert "  about draft:\n  | first\n  | second\n" in output


def test_a_private_subject_is_only_named(app: App, tmp_path: Path) -> None:
    path = tmp_path / "gated.py"
    path.write_text(GATED.replace("VISIBILITY", "private"))
    output = app.expect(3, "run", str(path), "--headless", "--thread", "t").out
    assert "  about draft, which is private: hitl-tui reveal t draft\n" in output
    assert "first" not in output
