"""aegra, which speaks the protocol otherwise in places: run, answered and read as far as it goes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")

from langgraph.checkpoint.memory import InMemorySaver

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.drivers.langgraph.server import ServerGraph
from hitl_tui.drivers.langgraph.server_names import SERVER
from hitl_tui.engine.commands import Pause, Run, Step, UpdateState
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.errors import UsageError
from hitl_tui.stores import open_store
from tests.drivers.langgraph.agent_server import aegra_server
from tests.drivers.langgraph.flows import asking
from tests.drivers.langgraph.graph_server import GraphServer, serving
from tests.drivers.langgraph.graphs import team_of
from tests.support.commands import App

__all__ = ["aegra_server"]

ONE = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def aegra() -> Iterator[GraphServer]:
    with serving(asking(InMemorySaver()), is_aegra=True) as server:
        yield server


@pytest.fixture
def with_team() -> Iterator[GraphServer]:
    with serving(team_of([]).compile(checkpointer=InMemorySaver()), is_aegra=True) as server:
        yield server


def store(server: GraphServer) -> tuple[str, str]:
    return "--store", f"langgraph+{server.url}#g"


def started(app: App, server: GraphServer, given: str = 'items=["in"]') -> str:
    """A thread that was run up to its question."""
    done = app.expect(3, "run", "--server", server.url, "--headless", "--json", "--input", given)
    return str(done.document["thread"])


def request(app: App, server: GraphServer, thread: str) -> str:
    (waiting,) = app.expect(0, "show", thread, "--json", *store(server)).document["standing"]["pending"]
    return str(waiting["id"])


@pytest.mark.slow
def test_a_thread_is_run_listed_answered_and_continued(aegra: GraphServer, app: App) -> None:
    thread = started(app, aegra)
    assert thread in app.expect(0, "threads", "--server", aegra.url).out
    asked = request(app, aegra, thread)
    app.expect(0, "answer", thread, asked, "yes", "--step", "2", "--note", "fine", *store(aegra))
    app.expect(0, "resume", thread, "--headless", *store(aegra))
    state = app.expect(0, "show", thread, "--json", *store(aegra)).document["state"]
    assert state["items"] == ["in", "plan", "work 0", "work 1", "yes"]
    assert "Step 1 by plan" in app.expect(0, "log", thread, *store(aegra)).out
    assert "ok" in app.expect(0, "verify", thread, *store(aegra)).out
    assert all(run.get("input") is not None or run["command"] is not None for run in aegra.runs)


@pytest.mark.slow
def test_continuing_a_fork_does_not_start_over(aegra: GraphServer, app: App) -> None:
    thread = started(app, aegra)
    app.expect(0, "fork", f"{thread}@1", "f", *store(aegra))
    aegra.runs.clear()
    app.expect(3, "resume", "f", "--headless", *store(aegra))
    (run,) = aegra.runs
    assert (run["command"]["resume"], run["checkpoint"]["checkpoint_ns"]) == ({}, "")
    state = app.expect(0, "show", "f", "--json", *store(aegra)).document["state"]
    assert state["items"] == ["in", "plan", "work 0", "work 1"]


@pytest.mark.slow
def test_a_refusal_to_continue_is_reported_and_not_blamed_on_a_node(aegra: GraphServer, app: App) -> None:
    thread = started(app, aegra)
    app.expect(0, "fork", f"{thread}@1", "f", *store(aegra))
    aegra.interrupted.clear()
    refused = app.expect(1, "resume", "f", "--headless", *store(aegra))
    assert "thread is not in interrupted state" in refused.err
    shown = app.expect(0, "show", "f", "--json", *store(aegra)).document
    assert (shown["standing"]["status"], shown["standing"]["reason"]) == ("waiting", "paused")
    assert "failed" not in app.expect(0, "log", "f", *store(aegra)).out


@pytest.mark.slow
def test_unsupported_commands_are_refused_with_a_reason(aegra: GraphServer, app: App) -> None:
    thread = started(app, aegra)
    runs = len(aegra.runs)
    assert "stops a run nowhere" in app.expect(2, "step", thread, *store(aegra)).err
    assert "copies no thread" in app.expect(2, "update-state", thread, "n=2", *store(aegra)).err
    stops = ("--headless", "--break", "ask")
    assert "stops a run nowhere" in app.expect(2, "resume", thread, *stops, *store(aegra)).err
    assert len(aegra.runs) == runs


@pytest.mark.slow
def test_a_run_that_it_does_not_roll_back_is_left_alone_in_words(aegra: GraphServer, app: App) -> None:
    thread = started(app, aegra)
    aegra.open_runs.append({"run_id": "r", "status": "running"})
    assert "--on-busy" in app.expect(4, "resume", thread, "--headless", *store(aegra)).err
    given = ("resume", thread, "--headless", "--on-busy", "rollback")
    assert "query.action: String should match pattern" in app.expect(1, *given, *store(aegra)).err


@pytest.mark.slow
async def test_unsupported_actions_are_disabled(aegra: GraphServer) -> None:
    hub = LangGraphHub(ServerGraph(aegra.url), open_store("memory:"), name="g", source={SERVER: aegra.url})
    try:
        driver = await hub.begin(ONE)
        assert {"step", "pause", "update_state"} <= (await driver.snapshot()).refusals.keys()
        assert [bool(driver.refusal(kind)) for kind in (Step, Pause, UpdateState, Run)] == [
            True,
            True,
            True,
            False,
        ]
        with pytest.raises(UsageError, match="breakpoints"):
            await driver.execute(Run((Breakpoint("before", "ask"),)))
    finally:
        await hub.close()


@pytest.mark.parametrize(("most", "code"), [(1_000, 0), (2, 1)])
def test_a_history_is_read_to_its_end_or_said_to_be_too_long(
    aegra: GraphServer, app: App, monkeypatch: pytest.MonkeyPatch, most: int, code: int
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.langgraph.mirror._FIRST_PAGE", 2)
    monkeypatch.setattr("hitl_tui.drivers.langgraph.mirror._PAGE", 2)
    monkeypatch.setattr("hitl_tui.drivers.langgraph.server._MOST_STATES", most)
    aegra.most = most
    aegra.threads.append(ONE)
    aegra.graph.invoke({"items": ["in"]}, {"configurable": {"thread_id": ONE}})
    done = app.expect(code, "log", ONE, *store(aegra))
    assert ("Step 2 by work" in done.out) is (code == 0)
    assert ("only the newest 2 checkpoints" in done.err) is (code == 1)


@pytest.mark.slow
def test_a_subgraph_is_looked_into(with_team: GraphServer, app: App) -> None:
    thread = started(app, with_team, "draft=x")
    inside = app.expect(0, "show", thread, "--json", *store(with_team)).document["unfinished"]["thread"]
    assert app.expect(0, "show", inside, "--json", *store(with_team)).document["state"]["log"] == ["gather"]
    assert any("checkpoint_ns=team" in asked for asked in with_team.asked)


def test_items_without_times_are_shown(aegra: GraphServer, app: App) -> None:
    aegra.items.append({"namespace": ["users", "ann"], "key": "drink", "value": {"likes": "tea"}})
    (item,) = app.expect(0, "items", "--json", *store(aegra)).document["items"]
    assert (item["key"], item["value"]) == ("drink", {"likes": "tea"})


@pytest.mark.slow
def test_the_real_one_is_run_answered_and_read_as_the_one_of_these_tests(aegra_server: str, app: App) -> None:
    given = ("--server", aegra_server, "--assistant", "approval")
    place = ("--store", f"langgraph+{aegra_server}#approval")
    thread = app.expect(3, "run", *given, "--headless", "--json", "--input", "amount=5").document["thread"]
    assert thread in app.expect(0, "threads", *given).out
    (asked,) = app.expect(0, "show", thread, "--json", *place).document["standing"]["pending"]
    assert "stops a run nowhere" in app.expect(2, "step", thread, *place).err
    assert "copies no thread" in app.expect(2, "update-state", thread, "amount=6", *place).err
    answer = '{"approved": true, "amount": 9, "reason": "goodwill"}'
    app.expect(0, "answer", thread, asked["id"], "--value", answer, "--step", "1", *place)
    app.expect(0, "resume", thread, "--headless", *place)
    shown = app.expect(0, "show", thread, "--json", *place).document
    assert (shown["state"]["offer"], shown["standing"]["status"]) == ("Paid: 9 €.", "completed")
    assert "ok" in app.expect(0, "verify", thread, *place).out
    app.expect(0, "fork", f"{thread}@1", "f", *place)
    assert "not in interrupted state" in app.expect(1, "resume", "f", "--headless", *place).err
    assert "no items" in app.expect(0, "items", *place).out
    assert "Step 3 by pay" in app.expect(0, "log", thread, *place).out
