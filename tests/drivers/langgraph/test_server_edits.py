"""Edits, forks and subgraphs of threads on a real server of LangGraph."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langgraph_sdk import get_sync_client

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.drivers.langgraph.server import ServerGraph
from hitl_tui.drivers.langgraph.server_names import SERVER
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Fork, Run, Step, UpdateState
from hitl_tui.engine.log.events import EDIT
from hitl_tui.errors import HitlError, StaleWriter, UsageError
from hitl_tui.stores import open_store
from tests.drivers.langgraph.agent_server import server
from tests.support.watching import Watcher

__all__ = ["server"]

pytestmark = pytest.mark.slow


class Served:
    """Threads of a server's graphs."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: Any = get_sync_client(url=url)
        self._hubs: dict[str, LangGraphHub] = {}
        self._apps: list[ServerGraph] = []

    def hub(self, graph: str) -> LangGraphHub:
        if graph not in self._hubs:
            app = ServerGraph(self.url, graph)
            self._apps.append(app)
            self._hubs[graph] = LangGraphHub(
                app, open_store("memory:"), name=graph, source={SERVER: self.url}
            )
        return self._hubs[graph]

    async def ran(self, graph: str, given: dict[str, Any]) -> Driver:
        """The driver of a thread that was run with an input."""
        thread = str(self.client.threads.create(graph_id=graph)["thread_id"])
        self.client.runs.wait(thread, graph, input=given)
        return await self.hub(graph).open(thread)

    async def close(self) -> None:
        for hub in self._hubs.values():
            await hub.close()
        for app in self._apps:
            app.close()
        self.client.close()


@pytest.fixture
async def served(server: str) -> AsyncIterator[Served]:
    opened = Served(server)
    yield opened
    await opened.close()


async def test_an_edit_is_previewed_and_bypasses_reducers(served: Served) -> None:
    driver = await served.ran("chat", {"messages": [{"role": "user", "content": "What?"}]})
    before = len(served.client.threads.search(limit=1000))
    snapshot = await driver.snapshot()
    messages = [{**message, "content": "Why?"} for message in snapshot.values["messages"][:1]]
    command = UpdateState({"turns": 7, "mood": "calm", "messages": messages}, None, "judge", "ann", "mine")
    preview = await driver.preview(command)
    assert preview.problems == {}
    assert {update.channel: update.after for update in preview.updates}["turns"] == 7
    leads = {each.node: each.next_nodes for each in preview.as_nodes}
    assert leads["chatbot"] == ("judge",)
    assert leads["judge"] == ()
    await driver.execute(command)
    state = served.client.threads.get_state(driver.thread_id)
    assert (state["values"]["turns"], state["values"]["mood"], state["next"]) == (7, "calm", [])
    (message,) = state["values"]["messages"]
    assert (message["type"], message["content"]) == ("human", "Why?")
    assert "response_metadata" in message  # it is a message there, and no dict that looks like one
    (entry,) = [entry for entry in (await driver.snapshot()).ledger if entry.kind == "update_state"]
    assert (entry.actor, entry.note, entry.data["as_node"]) == ("ann", "mine", "judge")
    assert len(served.client.threads.search(limit=1000)) == before  # the copies are gone


async def test_an_edit_that_the_graph_fails_on_is_reported_and_not_stored(served: Served) -> None:
    driver = await served.ran("approval", {"amount": 5})
    command = UpdateState({"amount": 6}, None, "nobody", "ann")
    assert "nobody" in (await driver.preview(command)).problems[EDIT]
    with pytest.raises(UsageError, match="nobody"):
        await driver.execute(command)
    assert served.client.threads.get_state(driver.thread_id)["values"]["amount"] == 5


async def test_an_edit_after_another_program_continued_is_refused(served: Served) -> None:
    driver = await served.ran("approval", {"amount": 5})
    step = (await driver.snapshot()).progress.head
    served.client.threads.update_state(driver.thread_id, {"offer": "other"}, as_node="draft")
    with pytest.raises(StaleWriter) as refused:
        await driver.execute(UpdateState({"amount": 6}, step, "draft", "ann"))
    assert refused.value.exit_code == 4
    state = served.client.threads.get_state(driver.thread_id)
    assert (state["values"]["amount"], state["values"]["offer"]) == (5, "other")


async def test_a_run_after_another_program_continued_is_refused(served: Served) -> None:
    thread = str(served.client.threads.create(graph_id="chat")["thread_id"])
    served.client.threads.update_state(thread, {"turns": 1, "mood": "x"}, as_node="chatbot")
    driver = await served.hub("chat").open(thread)
    served.client.threads.update_state(thread, {"mood": "y"}, as_node="chatbot")
    with pytest.raises(StaleWriter):
        await driver.execute(Run())
    assert served.client.runs.list(thread) == []


async def test_a_fork_from_a_checkpoint_continues_as_its_own_branch(served: Served) -> None:
    driver = await served.ran("report", {"question": "Why?"})
    last = served.client.threads.get_state(driver.thread_id)["checkpoint"]["checkpoint_id"]
    fork = f"{driver.thread_id}~other"
    await driver.execute(Fork(1, fork, {"notes": ["mine"]}, actor="ann", as_node="research"))
    watcher = await Watcher.open(await served.hub("report").open(fork))
    view = await watcher.run()
    assert (view.values["notes"], view.values["report"]) == (["mine"], "# Why?\n- mine")
    assert view.parent == driver.thread_id
    history = served.client.threads.get_history(driver.thread_id, limit=100)
    assert last in {state["checkpoint"]["checkpoint_id"] for state in history}


async def test_a_fork_without_changes_runs_again_from_its_checkpoint(served: Served) -> None:
    driver = await served.ran("report", {"question": "Why?"})
    fork = f"{driver.thread_id}~again"
    await driver.execute(Fork(1, fork, actor="ann"))
    watcher = await Watcher.open(await served.hub("report").open(fork))
    view = await watcher.run()
    assert view.values["report"] == (await driver.snapshot()).values["report"]


async def test_a_subgraph_is_viewed_and_edited_but_not_stepped_into(served: Served) -> None:
    driver = await served.ran("team", {"log": ["in"]})
    snapshot = await driver.snapshot()
    assert "behind the supersteps of the whole graph" in snapshot.graph.why_closed("team")
    (request,) = snapshot.progress.pending
    assert request.path == "team/ask"
    with pytest.raises(HitlError, match="does not stop inside"):
        await driver.execute(Step(True))
    rows = await served.hub("team").threads(within=driver.thread_id)
    (inside,) = [row.info.thread_id for row in rows if row.info.owner is not None]
    child = await served.hub("team").open(inside)
    shown = await child.snapshot()
    assert (shown.values["log"], shown.values["mood"]) == (["in", "gathered"], "calm")
    await child.execute(UpdateState({"mood": "merry"}, None, "gather", "ann"))
    place = served.client.threads.get_state(driver.thread_id, subgraphs=True)["tasks"][0]["state"]
    assert place["values"]["mood"] == "merry"


def test_a_server_stops_at_no_node_inside_a_subgraph_so_stepping_into_one_is_refused(server: str) -> None:
    with get_sync_client(url=server) as client:
        thread = str(client.threads.create(graph_id="team")["thread_id"])
        stops: Any = {"interrupt_before": "*", "interrupt_after": "*"}
        client.runs.wait(thread, "team", input={"log": ["in"]}, **stops)
        assert client.threads.get_state(thread)["next"] == ["team"]
        client.runs.wait(thread, "team", input=None, **stops)
        (task,) = client.threads.get_state(thread, subgraphs=True)["tasks"]
    assert [asked["value"] for asked in task["interrupts"]] == ["go on?"]  # of its second node
    assert task["state"]["values"]["log"] == ["in", "gathered"]
