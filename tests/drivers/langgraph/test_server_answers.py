"""Answers and names of threads on a server of LangGraph."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from hitl_tui.drivers.langgraph.server_names import server_thread
from tests.drivers.langgraph.flows import asking
from tests.drivers.langgraph.graph_server import GraphServer, serving
from tests.support.commands import App

RUN = ("--headless", "--input", 'items=["in"]', "--thread", "mine")


@pytest.fixture
def strict() -> Iterator[GraphServer]:
    with serving(asking(InMemorySaver())) as server:
        server.is_strict = True
        yield server


@pytest.mark.slow
def test_a_name_maps_to_the_same_server_uuid_in_all_commands(strict: GraphServer, app: App) -> None:
    thread, store = server_thread("mine"), ("--store", f"langgraph+{strict.url}#g")
    assert uuid.UUID(thread)
    assert server_thread(thread.upper()) == thread
    waits = app.expect(3, "run", "--server", strict.url, *RUN)
    assert f"thread mine is {thread} on the server" in waits.err
    (request,) = app.expect(0, "show", "mine", "--json", *store).document["standing"]["pending"]
    app.expect(0, "answer", "mine", request["id"], "yes", "--step", "2", *store)
    app.expect(0, "resume", "mine", "--headless", *store)
    assert app.expect(0, "show", thread, "--json", *store).document["state"]["items"][-1] == "yes"
    assert [run.get("strict_resume") for run in strict.runs if run.get("command")] == [True]
    assert not any("strict_resume" in run for run in strict.runs if not run.get("command"))


@pytest.mark.slow
def test_an_answer_that_a_strict_server_refuses_is_said_to_be_refused(strict: GraphServer, app: App) -> None:
    store = ("--store", f"langgraph+{strict.url}#g")
    app.expect(3, "run", "--server", strict.url, *RUN)
    (request,) = app.expect(0, "show", "mine", "--json", *store).document["standing"]["pending"]
    app.expect(0, "answer", "mine", request["id"], "yes", "--step", "2", *store)
    strict.forgets = True
    refused = app("resume", "mine", "--headless", *store)
    assert "no longer waits" in refused.err
    assert refused.code == 4
    assert strict.graph.get_state({"configurable": {"thread_id": server_thread("mine")}}).next == ("ask",)
