"""`--record` and `--cassette`: a run on one machine, and the same run on another without its model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import App

GRAPH = """
from hitl_tui import Agent, END, START, Channel, ScriptedModel, StateGraph

def work(state, config):
    return {{"out": config.agents["writer"].fresh().chat(state["task"])}}

graph = (
    StateGraph({{"task": Channel(""), "out": Channel("")}}, name="tiny")
    .add_node("one", work).add_node("two", work)
    .add_edge(START, "one").add_edge("one", "two").add_edge("two", END)
    .compile(agents={{"writer": Agent("writer", ScriptedModel({script}, pace=0))}})
)
"""


def graph(folder: Path, script: str) -> str:
    file = folder / "tiny.py"
    file.write_text(GRAPH.format(script=script))
    return str(file)


@pytest.mark.slow
def test_a_recorded_run_is_repeated_without_its_model(app: App, tmp_path: Path) -> None:
    file = str(tmp_path / "tape.jsonl")
    spec = graph(tmp_path, '["first", "second"]')
    made = app.expect(0, "run", spec, "--json", "--input", "task=go", "--thread", "a", "--record", file)
    spec = graph(tmp_path, "[]")
    again = app.expect(0, "run", spec, "--json", "--input", "task=go", "--thread", "b", "--cassette", file)
    assert made.document["state"] == again.document["state"] == {"task": "go", "out": "second"}
    texts = [[one["text"] for one in done.documents if one.get("event") == "text"] for done in (made, again)]
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_steps_of_several_processes_share_one_file(app: App, tmp_path: Path) -> None:
    file, spec = str(tmp_path / "tape.jsonl"), graph(tmp_path, 'lambda messages: "said"')
    app.expect(0, "run", spec, "--headless", "--input", "task=go", "--thread", "a", "--record", file)
    app.expect(0, "fork", "a@0", "f")
    app.expect(0, "step", "f", "--cassette", file)
    app.expect(0, "resume", "f", "--headless", "--cassette", file)


@pytest.mark.slow
def test_a_request_that_is_not_in_it_fails_the_run_and_says_what_differs(app: App, tmp_path: Path) -> None:
    file, spec = str(tmp_path / "tape.jsonl"), graph(tmp_path, 'lambda messages: "said"')
    app.expect(0, "run", spec, "--headless", "--input", "task=go", "--record", file)
    done = app.expect(1, "run", spec, "--headless", "--input", "task=stay", "--cassette", file)
    said = " ".join(done.out.replace("| ", "").split())
    assert "is not in the cassette tape.jsonl" in said
    assert "was 'go' and is 'stay'" in said


def test_both_options_at_once_are_refused(app: App, tmp_path: Path) -> None:
    done = app.expect(2, "resume", "--record", "a", "--cassette", "b")
    assert "don't go together" in done.err


def test_a_file_other_than_a_cassette_is_refused(app: App, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("my notes\n")
    assert "is not a cassette" in app.expect(2, "run", "counter", "--headless", "--cassette", str(file)).err


@pytest.mark.slow
def test_a_cassette_that_lies_beside_a_graph_is_served_only_where_it_is_named(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = graph(tmp_path, 'lambda messages: "own"')
    app.expect(0, "run", spec, "--headless", "--input", "task=go", "--thread", "a", "--record", "tape.jsonl")
    planted = Path("tape.jsonl").read_text().replace('"own"', '"planted"')
    for name in ("tape.jsonl", "cassette.jsonl", "tiny.jsonl", "tiny.cassette"):
        Path(name).write_text(planted)
    own = app.expect(0, "run", spec, "--json", "--input", "task=go", "--thread", "b")
    assert own.document["state"]["out"] == "own"
    named = app.expect(
        0, "run", spec, "--json", "--input", "task=go", "--thread", "c", "--cassette", "tape.jsonl"
    )
    assert named.document["state"]["out"] == "planted"


@pytest.mark.parametrize("place", ["pieces", "agent", "model", "calls"])
def test_a_cassette_is_data_that_runs_nothing(app: App, tmp_path: Path, place: str) -> None:
    mark, file = tmp_path / "PWNED", tmp_path / "tape.jsonl"
    spec = graph(tmp_path, '["own"] * 2')
    app.expect(0, "run", spec, "--headless", "--input", "task=go", "--record", str(file))
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    evil = {
        "pieces": [[0, code]],
        "agent": "os:system",
        "model": "os:system",
        "calls": [{"id": "1", "name": "os:system", "arguments": {"command": f"touch {mark}"}}],
    }
    first, *calls = file.read_text().splitlines()
    lines = [first, *(json.dumps(json.loads(call) | {place: evil[place]}) for call in calls)]
    file.write_text("\n".join(lines) + "\n")
    app("run", spec, "--headless", "--input", "task=go", "--cassette", str(file))
    assert not mark.exists()
