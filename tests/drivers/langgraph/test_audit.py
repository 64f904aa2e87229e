"""What others did behind our back to a thread of LangGraph is found, and who did it is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph import pregel
from hitl_tui.engine.commands import Answer, Cancel, Fork, Run, Start, UpdateState
from hitl_tui.engine.log.events import TextStreamed
from hitl_tui.errors import StaleWriter
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.flows import asking
from tests.support.watching import Watcher

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A file of checkpoints that can be written behind everybody's back."""
    connection = sqlite3.connect(tmp_path / "theirs.sqlite", check_same_thread=False)
    yield connection
    connection.close()


async def to_the_question(hubs: Hubs, graph: Any, mirror: str = "memory:") -> Watcher:
    watcher = await hubs.watch(graph, mirror=mirror)
    await watcher.driver.execute(Start({"items": ["in"]}, actor="ann"))
    await watcher.run()
    return watcher


async def findings(watcher: Watcher) -> list[tuple[int | None, str | None, str, str]]:
    checked = await watcher.driver.check("log", lambda *_: None)
    assert {finding.kind for finding in checked.mismatches} <= {"origin"}
    return [(each.step, each.channel, each.field, each.thread) for each in checked.mismatches]


def origin(watcher: Watcher, step: int) -> str:
    (point,) = (point for point in watcher.view.checkpoints if point.step == step)
    return point.origin or ""


async def test_a_checkpoint_that_holds_something_else_is_found_by_its_channel(
    theirs: sqlite3.Connection, hubs: Hubs
) -> None:
    saver = SqliteSaver(theirs)
    watcher = await to_the_question(hubs, asking(saver))
    changed = origin(watcher, 1)
    config: Any = {"configurable": {**CONFIG["configurable"], "checkpoint_id": changed}}
    saved = saver.get_tuple(config)
    assert saved is not None
    saved.checkpoint["channel_values"]["n"] = 99
    saver.put(saved.parent_config or CONFIG, saved.checkpoint, saved.metadata, {})
    assert await findings(watcher) == [(1, "n", f"checkpoint {changed}", "t")]


async def test_an_unwritten_delta_channel_is_no_change(hubs: Hubs) -> None:
    delta = pytest.importorskip("langgraph.channels.delta", reason="this LangGraph has none")

    def merged(base: Any, writes: Any) -> dict[str, Any]:
        return {name: value for each in (base or {}, *writes) for name, value in each.items()}

    fields: Any = {"items": list, "files": Annotated[dict, delta.DeltaChannel(merged)]}
    graph = StateGraph(TypedDict("Filed", fields))  # type: ignore[operator]
    graph.add_node("a", lambda _state: {"items": ["a"]}).add_edge(START, "a")
    watcher = await to_the_question(hubs, graph.compile(checkpointer=InMemorySaver()))
    assert await findings(watcher) == []
    assert watcher.view.values["files"] == {}


async def test_a_checkpoint_that_is_gone_is_found(theirs: sqlite3.Connection, hubs: Hubs) -> None:
    watcher = await to_the_question(hubs, asking(SqliteSaver(theirs)))
    gone = origin(watcher, 1)
    theirs.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (gone,))
    assert await findings(watcher) == [(1, None, f"checkpoint {gone}", "t")]


async def test_a_checkpoint_that_was_put_in_the_place_of_another_is_found(
    theirs: sqlite3.Connection, hubs: Hubs
) -> None:
    watcher = await to_the_question(hubs, asking(SqliteSaver(theirs)))
    first, last = origin(watcher, 0), origin(watcher, 2)
    theirs.execute("UPDATE checkpoints SET parent_checkpoint_id = ? WHERE checkpoint_id = ?", (first, last))
    assert await findings(watcher) == [(2, None, f"parent of checkpoint {last}", "t")]


async def test_verify_finds_that_a_recreated_thread_lost_its_decisions(
    theirs: sqlite3.Connection, hubs: Hubs
) -> None:
    graph = asking(SqliteSaver(theirs))
    watcher = await to_the_question(hubs, graph)
    lost = [origin(watcher, step) for step in (0, 1, 2)]
    graph.checkpointer.delete_thread("t")
    graph.invoke({"items": ["other"]}, CONFIG)
    assert sorted(field for _, _, field, _ in await findings(watcher)) == sorted(
        f"checkpoint {identity}" for identity in lost
    )
    lines = {relative.thread_id: relative for relative in await watcher.driver.family()}
    assert set(lines) == {"t"}, "what was started anew is no fork"
    hub = hubs.opened[0]
    assert await hub.mirror.sync("t")
    (recreated,) = [row for row in await hub.threads("t~") if row.info.thread_id.startswith("t~")]
    assert await hub.mirror.sync("t")
    (again,) = [row for row in await hub.threads("t~") if row.info.thread_id.startswith("t~")]
    assert again.head == recreated.head, "it is mirrored once"


async def test_a_thread_whose_newest_step_is_lost_says_so_when_it_is_opened(
    theirs: sqlite3.Connection, hubs: Hubs
) -> None:
    graph = asking(SqliteSaver(theirs))
    watcher = await to_the_question(hubs, graph, "mirror.db")
    newest = origin(watcher, 2)
    await hubs.close()
    theirs.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (newest,))
    again = await hubs.watch(graph, mirror="mirror.db")
    assert "has lost its newest step: see `hitl-tui verify`" in again.view.notice
    assert again.view.progress.head == 2
    assert await findings(again) == [(2, None, f"checkpoint {newest}", "t")]


async def test_the_program_that_ran_a_thread_is_named_from_its_checkpoint(saver: Any, hubs: Hubs) -> None:
    graph = asking(saver)
    watcher = await hubs.watch(graph)
    await watcher.driver.execute(Start({"items": []}))
    graph.invoke(None, {**CONFIG, "metadata": {"user": "bob"}}, interrupt_after="*")
    with pytest.raises(StaleWriter) as refused:
        await watcher.driver.execute(Run())
    newest = graph.get_state(CONFIG).config["configurable"]["checkpoint_id"]
    assert f"it is at checkpoint {newest} now (step 1 by loop" in refused.value.message
    assert "user=bob" in refused.value.message


async def test_decisions_keep_the_checkpoints_that_they_are_about(saver: Any, hubs: Hubs) -> None:
    watcher = await to_the_question(hubs, asking(saver))
    asked = origin(watcher, 2)
    (request,) = watcher.view.progress.pending
    await watcher.driver.execute(Answer(request.id, "yes", request.step, "ann"))
    await watcher.run()
    assert [entry.data["checkpoint"] for entry in watcher.view.ledger if entry.kind == "answer"] == [asked]
    end = origin(watcher, 3)
    await watcher.driver.execute(UpdateState({"n": 7}, expected_step=3, actor="ann"))
    edits = [entry for entry in (await watcher.look()).ledger if entry.kind == "update_state"]
    assert [entry.data["checkpoint"] for entry in edits] == [end]
    await watcher.driver.execute(Start({"items": ["again"]}, actor="ann"))
    await watcher.driver.execute(Cancel(actor="ann", note="enough"))
    await watcher.look()
    started = origin(watcher, 5)
    (cancelled,) = (entry for entry in watcher.view.ledger if entry.kind == "cancel")
    assert cancelled.data == {"checkpoint": started}


async def test_a_fork_keeps_the_checkpoint_and_the_state_that_it_was_made_on(saver: Any, hubs: Hubs) -> None:
    watcher = await to_the_question(hubs, asking(saver))
    plain, changed = Fork(1, "u", actor="ann"), Fork(1, "v", {"n": 7}, actor="ann", note="try it")
    for command in (plain, changed):
        await watcher.driver.execute(command)
    (point,) = (point for point in watcher.view.checkpoints if point.step == 1)
    store = watcher.driver._store
    entries = [
        entry for name in "uv" for entry in store.ledger(name) if entry.kind in ("fork", "update_state")
    ]
    assert [entry.kind for entry in entries] == ["fork", "fork", "update_state"]
    assert {(entry.seen, entry.data["checkpoint"]) for entry in entries} == {(b"", point.origin)}
    assert [entry.actor for entry in entries] == ["ann"] * 3
    assert [entry.note for entry in entries] == [None, "try it", "try it"]


async def test_a_run_observed_only_by_its_stream_emits_the_same_events(
    saver: Any, hubs: Hubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed = await to_the_question(hubs, asking(InMemorySaver()))
    monkeypatch.setattr(pregel, "_tap_of", lambda *_given: None)
    watcher = await to_the_question(hubs, asking(saver))
    assert [type(stamped.event) for stamped in watcher.seen] == [type(each.event) for each in streamed.seen]
    assert (await watcher.check()).values == streamed.view.values
    (request,) = watcher.view.progress.pending
    await watcher.driver.execute(Answer(request.id, "yes", request.step, "ann"))
    await watcher.run()
    assert (await watcher.check()).progress.status == "completed"


async def test_texts_of_models_and_nodes_come_by_the_stream_alone_as_well(
    hubs: Hubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langgraph.config import get_stream_writer

    monkeypatch.setattr(pregel, "_tap_of", lambda *_given: None)

    def talk(_state: Any) -> Any:
        get_stream_writer()("custom words")
        model = GenericFakeChatModel(messages=iter([AIMessage("hello there")]))
        return {"messages": [model.invoke("hi")]}

    graph = StateGraph(MessagesState)
    graph.add_node("talk", talk)
    graph.add_edge(START, "talk")
    watcher = await hubs.watch(graph.compile(checkpointer=InMemorySaver()))
    await watcher.driver.execute(Start({"messages": []}))
    await watcher.run()
    texts = "".join(event.text for event in watcher.events_of(TextStreamed))
    assert "custom words" in texts
    assert "hello there" in texts
