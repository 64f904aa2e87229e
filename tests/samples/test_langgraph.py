"""The samples for LangGraph, as its own runtime runs them."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.loading.graphs import langgraph_samples
from hitl_tui.loading.langgraph import LangGraphSource
from hitl_tui.loading.sources import open_langgraph_graph
from tests.support.commands import App
from tests.support.places import SAMPLES

pytest.importorskip("langgraph")

CONFIG: Any = {"configurable": {"thread_id": "1"}}
INPUTS: Mapping[str, Mapping[str, Any]] = {
    "agent": {"messages": [["user", "Tell Ann that we are late."]]},
    "approval": {"amount": 1200},
    "chat": {"messages": [["user", "What is a closure?"]]},
    "jokes": {"topic": "animals"},
    "report": {"question": "Why is the sky blue?"},
}


@contextmanager
def opened(name: str, data: Path) -> Iterator[LangGraphSource]:
    source = open_langgraph_graph(name, data)
    assert isinstance(source, LangGraphSource)
    try:
        yield source
    finally:
        source.close()


def ran(name: str, data: Path, answer: Any = None) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The state of a sample's thread after its input, and after an answer; and what comes next."""
    with opened(f"langgraph/{name}", data) as source:
        source.app.invoke(INPUTS[name], CONFIG)
        if answer is not None:
            from langgraph.types import Command

            source.app.invoke(Command(resume=answer), CONFIG)
        state = source.app.get_state(CONFIG)
        return state.values, state.next


def needs_schemas() -> None:
    from langgraph.types import interrupt

    if "response_schema" not in inspect.signature(interrupt).parameters:
        pytest.skip("this LangGraph has no response_schema of an interrupt yet")


def test_every_sample_has_an_input_and_is_in_the_project() -> None:
    assert [f"langgraph/{name}" for name in INPUTS] == langgraph_samples()
    from hitl_tui.loading.langgraph_json import read_langgraph_json

    project = read_langgraph_json(SAMPLES / "langgraph/langgraph.json")
    assert project.graphs.keys() == INPUTS.keys()
    assert all(path.is_file() for path in project.files())


def test_a_chat_goes_through_its_reducers(tmp_path: Path) -> None:
    values, after = ran("chat", tmp_path)
    assert [message.type for message in values["messages"]] == ["human", "ai"]
    assert values["messages"][-1].usage_metadata["total_tokens"] == 29
    assert (values["turns"], values["mood"], after) == (1, "curious", ())


def test_jokes_run_in_parallel(tmp_path: Path) -> None:
    values, after = ran("jokes", tmp_path)
    assert (len(values["jokes"]), values["best"] in values["jokes"], after) == (3, True, ())


def test_a_report_has_the_notes_of_its_subgraph(tmp_path: Path) -> None:
    values, _ = ran("report", tmp_path)
    assert values["report"].count("\n- ") == len(values["notes"]) == 2


def test_an_approval_waits_and_its_answer_leads_on(tmp_path: Path) -> None:
    needs_schemas()
    assert ran("approval", tmp_path / "a")[1] == ("review",)
    answer = {"approved": True, "amount": 900, "reason": "goodwill"}
    values, after = ran("approval", tmp_path / "b", answer)
    assert (values["offer"], values["decision"], after) == ("Paid: 900 €.", "goodwill", ())


@pytest.mark.slow
def test_an_agents_call_waits_and_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("langchain")
    answer = {"decisions": [{"type": "reject", "message": "not now"}]}
    values, after = ran("agent", tmp_path, answer)
    assert after == ()
    assert [message.type for message in values["messages"]] == ["human", "ai", "tool", "ai"]
    assert "not now" in values["messages"][-1].text


@pytest.mark.parametrize("name", INPUTS)
def test_a_sample_runs_as_its_own_text_teaches(name: str, app: App) -> None:
    if name == "agent":
        pytest.importorskip("langchain")
    if name == "approval":
        needs_schemas()
    text = (SAMPLES / "langgraph" / f"{name}.py").read_text()
    (command,) = re.findall(r"^ *hitl-tui (run langgraph/.*)$", text, re.MULTILINE)
    waits = name in ("agent", "approval")
    done = app.expect(3 if waits else 0, *shlex.split(command), "--headless", "--json").documents[-1]
    assert bool(done["pending"]) is waits
    assert done["state"]
    if name in ("agent", "chat"):
        assert [message["type"] for message in done["state"]["messages"]] == ["human", "ai"]
        assert done["tokens_in"] > 0
