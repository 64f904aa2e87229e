"""Graphs on a real server of LangGraph: run, answered, busy, cut off, listed."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.drivers.langgraph.server import ServerGraph
from hitl_tui.drivers.langgraph.server_names import SERVER, new_server_thread
from hitl_tui.engine.commands import CancelAttempt, Run, Start
from hitl_tui.engine.log.events import AttemptDropped, RunEnded
from hitl_tui.stores import open_store
from tests.drivers.langgraph.agent_server import Proxy, server, until
from tests.drivers.langgraph.graphs import HAS_SCHEMAS
from tests.support.commands import App
from tests.support.watching import Watcher

__all__ = ["server"]

pytestmark = pytest.mark.slow


def at(url: str, assistant: str) -> tuple[str, ...]:
    return "--server", url, "--assistant", assistant


@pytest.mark.skipif(not HAS_SCHEMAS, reason="this LangGraph has no response_schema of an interrupt yet")
def test_a_thread_is_run_asked_and_answered_by_several_processes(server: str, app: App) -> None:
    asked = app.expect(3, "run", *at(server, "approval"), "--input", "amount=1200", "--json").documents[-1]
    thread = asked["thread"]
    (request,) = asked["pending"]
    assert request["schema"]["required"] == ["approved", "amount", "reason"]
    assert thread in app.expect(0, "threads", *at(server, "approval")).out
    store = ("--store", f"langgraph+{server}#approval")
    given = ("--set", "approved=yes", "--set", "amount=900", "--set", "reason=goodwill")
    app.expect(0, "answer", thread, request["id"], *given, "--step", "1", "--note", "late", *store)
    app.expect(0, "resume", thread, "--headless", *store)
    shown = app.expect(0, "show", thread, "--json", *store).document
    assert shown["state"]["offer"] == "Paid: 900 €."
    assert "late" in app.expect(0, "log", thread, *store).out


def test_a_stop_that_a_graph_was_compiled_with_holds(server: str, app: App) -> None:
    stopped = app.expect(3, "run", *at(server, "gate"), "--input", "text=x", "--json").documents[-1]
    assert [request["title"] for request in stopped["pending"]] == ["stopped before send"]
    assert stopped["state"]["text"] == "a draft"
    store = ("--store", f"langgraph+{server}#gate")
    done = app.expect(0, "resume", stopped["thread"], "--json", *store).documents[-1]
    assert done["state"]["text"] == "sent"


def test_a_fan_out_and_the_words_of_a_model_come_as_from_a_local_graph(server: str, app: App) -> None:
    done = app.expect(0, "run", *at(server, "jokes"), "--input", "topic=animals", "--json").documents[-1]
    assert len(done["state"]["jokes"]) == 3
    done = app.expect(
        0, "run", *at(server, "chat"), "--input", 'messages=[{"role": "user", "content": "What?"}]', "--json"
    ).documents[-1]
    assert [message["type"] for message in done["state"]["messages"]] == ["human", "ai"]


@pytest.mark.parametrize(
    ("assistant", "words"), [((), "has several graphs"), (("--assistant", "gone"), "no assistant 'gone'")]
)
def test_which_graph_is_meant_must_be_plain(
    server: str, app: App, assistant: tuple[str, ...], words: str
) -> None:
    assert words in app.expect(2, "threads", "--server", server, *assistant).err


def test_headers_of_the_environment_go_with_requests_and_are_never_kept(
    server: str, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HITL_TUI_SERVER_HEADERS", '{"X-Team": "SECRET-OF-MINE"}')
    monkeypatch.setenv("LANGGRAPH_API_KEY", "KEY-OF-MINE")
    proxy = Proxy(server)
    try:
        app.expect(0, "run", *at(proxy.url, "jokes"), "--input", "topic=tools", "--headless")
    finally:
        proxy.close()
    assert b"SECRET-OF-MINE" in proxy.sent
    assert b"KEY-OF-MINE" in proxy.sent
    folders = [Path(os.environ[name]) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert any(file.suffix == ".db" for file in files)
    for secret in (b"SECRET-OF-MINE", b"KEY-OF-MINE"):
        assert [file for file in files if secret in file.read_bytes()] == []


def test_a_run_whose_connection_is_cut_is_joined_again(server: str, app: App, tmp_path: Path) -> None:
    proxy = Proxy(server)

    def cut() -> None:
        until(tmp_path / "started")
        proxy.cut()
        (tmp_path / "go").touch()

    cutting = threading.Thread(target=cut)
    cutting.start()
    try:
        given = ("--input", f"place={tmp_path}", "--json")
        done = app.expect(0, "run", *at(proxy.url, "slow"), *given).documents[-1]
    finally:
        cutting.join()
        proxy.close()
    assert (done["status"], done["state"]["done"]) == ("completed", "yes, and after")


_clients: list[Any] = []


@pytest.fixture(autouse=True)
def clients_closed() -> Iterator[None]:
    yield
    while _clients:
        _clients.pop().close()


def client_of(server: str) -> Any:
    """A client of the SDK; it is closed at the end of the test."""
    from langgraph_sdk import get_sync_client

    _clients.append(get_sync_client(url=server))
    return _clients[-1]


def start_elsewhere(server: str, place: Path) -> str:
    """A thread of `slow` that the server runs for somebody else."""
    place.mkdir()
    client = client_of(server)
    thread = str(client.threads.create(graph_id="slow")["thread_id"])
    client.runs.create(thread, "slow", input={"place": str(place)})
    until(place / "started")
    return thread


def test_a_thread_that_the_server_runs_is_busy_and_left_alone(server: str, app: App, tmp_path: Path) -> None:
    thread = start_elsewhere(server, tmp_path / "slow")
    store = ("--store", f"langgraph+{server}#slow")
    try:
        for command in (("resume", thread, "--headless"), ("update-state", thread, "done=no")):
            refused = app.expect(4, *command, *store)
            assert "The thread is busy: the server already runs this thread" in refused.err
            assert "--on-busy" in refused.err
        shown = app.expect(0, "show", thread, *store).out
        assert "Paused" in shown
        assert "failed" not in shown
        assert "failed" not in app.expect(0, "log", thread, *store).out
    finally:
        (tmp_path / "slow" / "go").touch()
    app.expect(0, "resume", thread, "--headless", "--on-busy", "enqueue", *store)
    done = app.expect(0, "show", thread, "--json", *store).document
    assert done["state"]["done"] == "yes, and after"
    (run,) = client_of(server).runs.list(thread)  # there was nothing left to run for ours
    assert run["status"] == "success"


def test_a_run_of_somebody_else_is_interrupted_by_choice(server: str, app: App, tmp_path: Path) -> None:
    place = tmp_path / "slow"
    thread = start_elsewhere(server, place)
    store = ("--store", f"langgraph+{server}#slow")
    (place / "started").unlink()

    def let_go() -> None:
        until(place / "started")
        (place / "go").touch()

    going = threading.Thread(target=let_go)
    going.start()
    try:
        given = ("--on-busy", "interrupt", "--as", "ann")
        app.expect(0, "resume", thread, "--headless", *given, *store)
    finally:
        (place / "go").touch()
        going.join()
    assert [run["status"] for run in client_of(server).runs.list(thread)][-1] == "interrupted"
    document = app.expect(0, "show", thread, "--json", *store).document
    assert document["state"]["done"] == "yes, and after"
    (stop,) = [entry for entry in ledger(app, thread, store) if entry["decision"] == "stop"]
    assert (stop["actor"], stop["data"]["double_texting"]) == ("ann", "interrupt")


def ledger(app: App, thread: str, store: tuple[str, ...]) -> list[dict[str, Any]]:
    decisions: list[dict[str, Any]] = app.expect(0, "log", thread, "--json", *store).document["decisions"]
    return decisions


def test_what_a_run_of_somebody_else_saved_is_rolled_back_by_choice(
    server: str, app: App, tmp_path: Path
) -> None:
    client, place = client_of(server), tmp_path / "slow"
    thread = str(client.threads.create(graph_id="slow")["thread_id"])
    place.mkdir()
    (place / "go").touch()
    client.runs.wait(thread, "slow", input={"place": str(place)})
    (place / "go").unlink()
    (place / "started").unlink()
    store = ("--store", f"langgraph+{server}#slow")
    assert "Done" in app.expect(0, "show", thread, *store).out
    client.runs.create(thread, "slow", input={"place": str(place), "done": "again"})
    until(place / "started")
    try:
        given = ("--on-busy", "rollback", "--headless", "--as", "ann")
        # What it had saved is gone, so the line that shows it goes on no more.
        gone = app.expect(4, "resume", thread, *given, *store)
    finally:
        (place / "go").touch()
    assert "taken back" in gone.err
    assert client.threads.get_state(thread)["values"]["done"] == "yes, and after"


@pytest.mark.parametrize("unattended", [False, True])
async def test_cancelling_a_run_cancels_it_on_the_server(
    server: str, tmp_path: Path, unattended: bool
) -> None:
    graph = ServerGraph(server, "slow")
    hub = LangGraphHub(graph, open_store("memory:"), name="slow", source={SERVER: server})
    watcher = await Watcher.open(await hub.begin(new_server_thread(), "ann"))
    try:
        await watcher.driver.execute(Start({"place": str(tmp_path)}))
        await watcher.driver.execute(Run(unattended=unattended))
        await asyncio.to_thread(until, tmp_path / "started")
        await watcher.driver.execute(CancelAttempt())
        await watcher.until(lambda _view: watcher.events_of(AttemptDropped) and watcher.events_of(RunEnded))
        client, thread = client_of(server), watcher.driver.thread_id
        run = client.runs.list(thread)[0]
        await asyncio.to_thread(client.runs.join, thread, run["run_id"])
        assert client.runs.get(thread, run["run_id"])["status"] == "interrupted"
        (tmp_path / "go").touch()
        progress = (await watcher.driver.snapshot()).progress
        assert (progress.status, progress.reason) == ("waiting", "paused")
        await watcher.run()
        assert (await watcher.driver.snapshot()).values["done"] == "yes, and after"
    finally:
        (tmp_path / "go").touch()
        await hub.close()
        graph.close()


def test_threads_beyond_the_first_hundred_are_listed(server: str, app: App) -> None:
    client = client_of(server)
    first = str(client.threads.create(graph_id="team")["thread_id"])
    client.threads.update_state(first, {"log": ["old"]}, as_node="sum")
    for _ in range(101):
        client.threads.create(graph_id="team")
    assert first in app.expect(0, "threads", *at(server, "team")).out


@pytest.mark.parametrize("node", ["__start__", "research", "write"])
def test_a_thread_that_was_made_by_an_edit_alone_is_listed_and_opened(
    server: str, app: App, node: str
) -> None:
    client = client_of(server)
    thread = str(client.threads.create(graph_id="report")["thread_id"])
    client.threads.update_state(thread, {"question": "Why?"}, as_node=node)
    assert thread in app.expect(0, "threads", *at(server, "report")).out
    store = ("--store", f"langgraph+{server}#report")
    assert app.expect(0, "show", thread, "--json", *store).document["state"]["question"] == "Why?"
    app.expect(0, "resume", thread, "--headless", *store)


def test_items_of_the_servers_store_are_shown(server: str, app: App) -> None:
    client = client_of(server)
    client.store.put_item(["users", "ann"], "drink", {"likes": "tea"})
    client.store.put_item(["users", "bob"], "drink", {"likes": "coffee"})
    store = ("--store", f"langgraph+{server}#chat")
    assert "users.bob" in app.expect(0, "items", "users", *store).out
    (item,) = app.expect(0, "items", "users.ann", "TEA", "--json", *store).document["items"]
    assert (item["namespace"], item["key"], item["value"]) == (["users", "ann"], "drink", {"likes": "tea"})
