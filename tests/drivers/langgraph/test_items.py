"""Items of a graph's long-term store: looked for and listed by a command, never written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.memory", reason="the extra `langgraph` is not installed")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from hitl_tui.errors import UsageError
from hitl_tui.verbs.actions import BY_ID
from hitl_tui.view.session import ViewSession
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.graphs import routed
from tests.plain.talker import Talker
from tests.support.commands import App


@pytest.fixture
def talk(app: App, monkeypatch: pytest.MonkeyPatch) -> Talker:
    return Talker(app, monkeypatch)


def kept() -> InMemoryStore:
    store = InMemoryStore()
    store.put(("users", "ann"), "drink", {"likes": "coffee"})
    store.put(("users", "bob"), "drink", {"likes": "tea \x1b[31m"})
    for number in range(250):
        store.put(("numbers",), f"n{number}", {"is": number})
    return store


def graph(store: Any) -> Any:
    return routed([]).compile(checkpointer=InMemorySaver(), store=store)


@pytest.mark.parametrize(
    ("prefix", "query", "keys"),
    [
        (("users",), "", ["drink", "drink"]),
        ((), "COFFEE", ["drink"]),
        ((), "ann coffee", ["drink"]),
        (("users", "bob"), "coffee", []),
        ((), "n249", ["n249"]),
    ],
)
async def test_items_are_found_by_namespace_and_words(
    hubs: Hubs, prefix: tuple[str, ...], query: str, keys: list[str]
) -> None:
    hub = hubs.over(graph(kept()))
    assert hub.no_items == ""
    assert [item.key for item in await hub.items(prefix, query, 100)] == keys


async def test_the_keys_for_a_store_and_agents_are_greyed_where_a_graph_has_none(hubs: Hubs) -> None:
    hub = hubs.over(graph(None))
    session = await ViewSession.open(hub, await hub.begin("t", "ann"))
    assert "without a store" in BY_ID["look.items"].disabled_reason(session.situation)
    assert "set up in its code" in BY_ID["look.agents"].disabled_reason(session.situation)
    with pytest.raises(UsageError, match="no store of items"):
        await hub.items((), "", 10)


FLOW = """
from langgraph.graph import START, StateGraph
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

class State(TypedDict):
    task: str

store = InMemoryStore()
store.put(("users", "ann"), "drink", {"likes": "coffee"})
store.put(("users", "bob"), "drink", {"likes": "tea \\x1b[31m"})
builder = StateGraph(State)
builder.add_node("write", lambda state: {"task": "done"})
builder.add_edge(START, "write")
graph = builder.compile(checkpointer=InMemorySaver(), store=store)
"""


def test_a_command_lists_store_items(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(FLOW)
    store = ("--store", "langgraph:flow.py")
    out = app.expect(0, "items", *store).out
    assert "users.ann  drink  likes “coffee”" in out
    assert "\x1b" not in out
    (item,) = app.expect(0, "items", "users.bob", "--json", *store).document["items"]
    assert (item["namespace"], json.dumps(item["value"])) == (
        ["users", "bob"],
        '{"likes": "tea \\u001b[31m"}',
    )
    assert app.expect(0, "items", "users", "cocoa", *store).out == "no items\n"
    assert "compiled without a store" in app.expect(2, "items", "--store", "langgraph:langgraph/jokes").err


def test_plain_text_mode_lists_store_items(
    talk: Talker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(FLOW)
    said = talk("Z\nZ tea\nZ cocoa\nq\n", "run", "flow.py", "--plain", "--input", "task=x").out
    assert "users.ann  drink  likes “coffee”" in said
    assert said.count("users.ann") == 1
    assert said.count("users.bob") == 2
    assert "No item matches." in said
    assert "\x1b" not in said


async def test_the_items_of_a_store_that_is_awaited_are_found(hubs: Hubs, tmp_path: Path) -> None:
    aio = pytest.importorskip("langgraph.store.sqlite.aio")
    async with aio.AsyncSqliteStore.from_conn_string(str(tmp_path / "items.db")) as store:
        await store.setup()
        await store.aput(("users", "ann"), "drink", {"likes": "coffee"})
        hub = hubs.over(graph(store))
        (item,) = await hub.items(("users",), "coffee", 10)
        assert (item.namespace, item.key, item.value) == (("users", "ann"), "drink", {"likes": "coffee"})
