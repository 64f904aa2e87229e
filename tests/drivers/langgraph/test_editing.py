"""Edits and forks of LangGraph threads over the driver: previewed, attributed, refused when stale."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from hitl_tui.drivers.langgraph.mirror import CHECKPOINT
from hitl_tui.engine.commands import Answer, Fork, Start, UpdateState
from hitl_tui.engine.commands.decisions import UPDATE_STATE, decision_entry
from hitl_tui.engine.log.events import EDIT
from hitl_tui.errors import AnswerRefused, GateUnanswered, StaleWriter, UsageError
from tests.drivers.langgraph import graphs
from tests.drivers.langgraph.conftest import Hubs
from tests.support.watching import Watcher

langgraph_types = pytest.importorskip("langgraph.types")
pytestmark = pytest.mark.skipif(
    not hasattr(langgraph_types, "Overwrite"), reason="this LangGraph has no Overwrite"
)
CONFIG: Any = {"configurable": {"thread_id": "t"}}


async def stepped(hubs: Hubs, app: Any, steps: int = 1, mirror: str = "memory:") -> Watcher:
    """A thread started and taken some steps on."""
    watcher = await hubs.watch(app, mirror=mirror)
    await watcher.driver.execute(Start({"log": []}, actor="ann"))
    for _ in range(steps):
        await watcher.step()
    return watcher


def routed(saver: Any) -> Any:
    return graphs.routed([]).compile(checkpointer=saver)


def theirs(app: Any) -> Any:
    return app.get_state(CONFIG)


async def verified(watcher: Watcher) -> None:
    assert (await watcher.driver.check("log", lambda _done, _all: None)).mismatches == ()


async def test_an_edit_makes_a_langgraph_checkpoint_and_a_step(saver: Any, hubs: Hubs) -> None:
    app = routed(saver)
    watcher = await stepped(hubs, app)
    before = await watcher.check()
    head, seen = before.progress.head, before.checkpoints[-1].state_hash
    step = await watcher.driver.execute(
        UpdateState({"log": ["mine"], "score": 9}, head, None, "ann", "because", seen)
    )
    view = await watcher.check()
    assert (step, view.progress.head) == (head + 1, head + 1)
    assert theirs(app).values == {"log": ["mine"], "draft": "d", "score": 9}
    assert dict(view.values) == theirs(app).values
    point = view.checkpoints[-1]
    assert (point.source, point.actor, point.note) == ("human", "ann", "because")
    assert point.origin == theirs(app).config["configurable"]["checkpoint_id"]
    (entry,) = [entry for entry in view.ledger if entry.kind == UPDATE_STATE]
    assert (entry.actor, entry.note, entry.data["channels"]) == ("ann", "because", ["log", "score"])
    assert entry.seen == seen
    assert view.progress.next_node == "publish"
    updates = (await watcher.driver.updates(step, step))[step]
    assert {update.op for update in updates} == {"set"}
    await verified(watcher)


async def test_an_edited_list_is_stored_exactly_as_given(saver: Any, hubs: Hubs) -> None:
    app = routed(saver)
    watcher = await hubs.watch(app)
    head = await watcher.driver.execute(Start({"log": ["a", "b", "c"]}, actor="ann"))
    await watcher.driver.execute(UpdateState({"log": ["a", "X", "c", "d"]}, head, None, "ann"))
    view = await watcher.check()
    assert view.values["log"] == theirs(app).values["log"] == ["a", "X", "c", "d"]
    await verified(watcher)


async def test_the_preview_shows_the_values_and_next_node_for_each_as_node(saver: Any, hubs: Hubs) -> None:
    watcher = await stepped(hubs, routed(saver))
    preview = await watcher.driver.preview(UpdateState({"score": 9}))
    (update,) = preview.updates
    assert (update.before, update.after, preview.next_node, preview.forks) == (1, 9, "publish", False)
    assert {way.node: way.next_nodes for way in preview.as_nodes} == {
        "write": ("publish",),
        "revise": ("write",),
        "publish": (),
        "START": ("write",),
    }
    preview = await watcher.driver.preview(UpdateState({"score": 9}, as_node="publish"))
    assert preview.next_node == "END"


async def test_as_node_decides_the_next_node(saver: Any, hubs: Hubs) -> None:
    app = routed(saver)
    watcher = await stepped(hubs, app)
    await watcher.driver.execute(UpdateState({"score": 2}, as_node="revise", actor="ann"))
    assert (await watcher.check()).progress.next_node == "write"
    assert theirs(app).next == ("write",)


async def test_a_refused_edit_stores_nothing(saver: Any, hubs: Hubs) -> None:
    app = routed(saver)
    watcher = await stepped(hubs, app)
    before, entries = theirs(app).config, len(watcher.view.ledger)
    preview = await watcher.driver.preview(UpdateState({"draft": "", "unheard": 1}))
    assert set(preview.problems) == {"unheard", EDIT}
    assert "no draft to route by (in way, graphs.py:" in preview.problems[EDIT]
    with pytest.raises(UsageError, match="no draft to route by"):
        await watcher.driver.execute(UpdateState({"draft": ""}))
    assert theirs(app).config == before
    assert len((await watcher.check()).ledger) == entries


async def test_an_edit_on_a_thread_that_another_program_moved_is_refused(saver: Any, hubs: Hubs) -> None:
    app = routed(saver)
    watcher = await stepped(hubs, app)
    head = watcher.view.progress.head
    app.update_state(CONFIG, {"draft": "theirs"})
    with pytest.raises(StaleWriter, match=f"is at step {head + 1}, the edit was made on {head}"):
        await watcher.driver.execute(UpdateState({"draft": "mine"}, head, actor="ann"))
    view = await watcher.check()
    assert view.values["draft"] == theirs(app).values["draft"] == "theirs"
    assert view.checkpoints[-1].actor == "another program"


async def test_an_edit_withdraws_the_request_which_is_then_asked_again(saver: Any, hubs: Hubs) -> None:
    app = graphs.team_of([]).compile(checkpointer=saver)
    watcher = await stepped(hubs, app, 2)
    (request,) = (await watcher.check()).progress.pending
    preview = await watcher.driver.preview(UpdateState({"draft": "x"}, as_node="before"))
    assert preview.withdraws == ("inside?",)
    await watcher.driver.execute(UpdateState({"draft": "x"}, as_node="before", actor="ann"))
    view = await watcher.check()
    assert view.progress.pending == ()
    assert [entry.request_id for entry in view.ledger if entry.kind == "withdrawn"] == [request.id]
    with pytest.raises(AnswerRefused):
        await watcher.driver.execute(Answer(request.id, "yes", request.step, "ann"))
    await watcher.run()
    (asked_again,) = (await watcher.check()).progress.pending
    assert asked_again.id != request.id
    await watcher.driver.execute(Answer(asked_again.id, "yes", asked_again.step, "ann"))
    await watcher.run()
    assert (await watcher.check()).values["log"][-1] == "ask yes"
    await verified(watcher)


async def test_no_edit_as_a_node_runs_past_a_question_that_waits(saver: Any, hubs: Hubs) -> None:
    ran: list[str] = []
    app = graphs.asking_in_the_middle(ran).compile(checkpointer=saver)
    watcher = await stepped(hubs, app, 2)
    (request,) = (await watcher.check()).progress.pending
    for as_node in ("ask", "review"):
        edit = UpdateState({"draft": "mine"}, as_node=as_node, actor="mallory")
        previewed = await watcher.driver.preview(edit)
        assert "anyone may answer it" in previewed.problems[EDIT]
        assert next(each for each in previewed.as_nodes if each.node == as_node).problem
        with pytest.raises(GateUnanswered, match=r"would pass the question 'send it\?'"):
            await watcher.driver.execute(edit)
        fork = Fork(watcher.view.progress.head, "f", {"draft": "mine"}, actor="mallory", as_node=as_node)
        with pytest.raises(GateUnanswered):
            await watcher.driver.execute(fork)
    await watcher.driver.execute(UpdateState({"draft": "mine"}, as_node="before", actor="ann"))
    await watcher.run()
    (asked_again,) = (await watcher.check()).progress.pending
    await watcher.driver.execute(Answer(asked_again.id, "yes", asked_again.step, "ann"))
    await watcher.run()
    assert ran == ["ask", "ask", "ask", "review", "send"]
    with pytest.raises(GateUnanswered):  # a fork of where it waited is asked again
        await watcher.driver.execute(Fork(request.step, "f", {"draft": "x"}, actor="m", as_node="ask"))
    await watcher.driver.execute(UpdateState({"draft": "again"}, as_node="ask", actor="ann"))
    await verified(watcher)


async def test_no_edit_as_a_node_runs_past_a_question_on_another_branch(saver: Any, hubs: Hubs) -> None:
    ran: list[str] = []
    app = graphs.asking_on_a_branch(ran).compile(checkpointer=saver)
    watcher = await stepped(hubs, app, 2)
    assert (await watcher.check()).progress.pending
    edit = UpdateState({"draft": "mine"}, as_node="skip", actor="mallory")
    with pytest.raises(GateUnanswered, match=r"would pass the question 'send it\?'"):
        await watcher.driver.execute(edit)
    with pytest.raises(GateUnanswered):
        await watcher.driver.execute(
            Fork(watcher.view.progress.head, "f", {"draft": "mine"}, actor="mallory", as_node="skip")
        )
    await watcher.driver.execute(UpdateState({"draft": "mine"}, as_node="before", actor="ann"))
    await watcher.run()
    assert (await watcher.check()).progress.pending
    assert "send" not in ran


async def test_a_fork_leaves_its_parent_unchanged(saver: Any, hubs: Hubs) -> None:
    app = routed(saver)
    hub = hubs.over(app)
    watcher = await Watcher.open(await hub.begin("t", "ann"))
    await watcher.driver.execute(Start({"log": []}, actor="ann"))
    for _ in range(3):
        await watcher.step()
    before = await watcher.driver.state_at(3)
    newest = theirs(app).config
    assert await watcher.driver.execute(Fork(1, "other", actor="ann", note="why not")) == "other"
    assert theirs(app).config == newest, "nothing of theirs moves before the fork runs"
    fork = await Watcher.open(await hub.open("other"))
    assert (fork.view.progress.head, fork.view.values["log"]) == (1, ["write"])
    await fork.step()
    view = await fork.check()
    assert (view.progress.head, view.values["log"]) == (2, ["write", "revise"])
    await watcher.step()
    assert await watcher.driver.state_at(3) == before
    assert (await watcher.check()).values["log"] == ["write", "revise", "write", "revise"]
    await fork.step()
    assert (await fork.check()).values["log"] == ["write", "revise", "write"]
    await verified(fork)
    await verified(watcher)


async def test_a_fork_begins_with_an_edit_as_a_node(saver: Any, hubs: Hubs) -> None:
    app = routed(saver)
    hub = hubs.over(app)
    watcher = await Watcher.open(await hub.begin("t", "ann"))
    await watcher.driver.execute(Start({"log": []}, actor="ann"))
    for _ in range(2):
        await watcher.step()
    preview = await watcher.driver.preview(UpdateState({"score": 9}, 1))
    assert (preview.forks, preview.next_node) == (True, "publish")
    await watcher.driver.execute(Fork(1, "other", {"score": 9}, actor="ann", note="faster"))
    fork = await Watcher.open(await hub.open("other"))
    point = fork.view.checkpoints[-1]
    assert (point.source, point.actor, point.note, point.step) == ("fork", "ann", "faster", 2)
    assert fork.view.progress.next_node == "publish"
    await fork.run()
    view = await fork.check()
    assert (view.progress.status, view.values["log"]) == ("completed", ["write", "publish"])
    assert (await watcher.check()).values["log"] == ["write", "revise"]
    await verified(fork)


async def test_a_fork_that_can_not_be_edited_is_not_made(saver: Any, hubs: Hubs) -> None:
    watcher = await stepped(hubs, routed(saver))
    with pytest.raises(UsageError, match="no draft"):
        await watcher.driver.execute(Fork(1, "other", {"draft": ""}))
    assert await watcher.driver.execute(Fork(1, "other")) == "other"


async def test_an_edit_interrupted_after_langgraphs_write_is_recovered_with_its_author(
    saver: Any, hubs: Hubs
) -> None:
    app = routed(saver)
    await cut_off(hubs, app, stored=True)
    again = await hubs.watch(app, mirror="mirror.db")
    point = again.view.checkpoints[-1]
    assert (point.source, point.actor, point.note) == ("human", "ann", "because")
    assert again.view.values["draft"] == "mine"
    assert "an edit by ann was found" in again.view.notice
    await verified(again)


async def test_an_edit_interrupted_before_langgraphs_write_is_reported_and_dropped(
    saver: Any, hubs: Hubs
) -> None:
    app = routed(saver)
    head = await cut_off(hubs, app, stored=False)
    again = await hubs.watch(app, mirror="mirror.db")
    assert again.view.progress.head == head
    assert again.view.values["draft"] == "d"
    assert "an edit by ann was not stored" in again.view.notice
    assert again.view.ledger[-1].kind == "withdrawn"
    await verified(again)
    await hubs.close()
    third = await hubs.watch(app, mirror="mirror.db")
    assert "an edit by" not in third.view.notice, "it is reported once"


async def cut_off(hubs: Hubs, app: Any, *, stored: bool) -> int:
    """Leave a thread as a process does that is killed in the middle of an edit; gives its head."""
    watcher = await stepped(hubs, app, mirror="mirror.db")
    head = watcher.view.progress.head
    driver: Any = watcher.driver

    def mean(session: Any) -> None:
        data = {"channels": ["draft"], "as_node": None, CHECKPOINT: driver._leaf}
        entry = decision_entry(
            session, [], UPDATE_STATE, step=head + 1, actor="ann", note="because", data=data
        )
        with session.writing():
            session.commit_cursor(session.cursor, [entry])

    await driver._on_engine(mean)
    if stored:
        app.update_state(CONFIG, {"draft": "mine"})
    await hubs.close()
    return int(head)


async def test_verify_finds_what_changed_or_was_lost_in_their_checkpointer(
    tmp_path: Path, hubs: Hubs
) -> None:
    connection = sqlite3.connect(tmp_path / "theirs.sqlite", check_same_thread=False)
    saver = SqliteSaver(connection)
    app = routed(saver)
    watcher = await stepped(hubs, app, 3)
    await watcher.driver.execute(UpdateState({"draft": "mine"}, actor="ann"))
    await verified(watcher)
    origins = {point.step: point.origin for point in (await watcher.check()).checkpoints}
    row = connection.execute(
        "SELECT type, checkpoint FROM checkpoints WHERE checkpoint_id = ?", (origins[1],)
    ).fetchone()
    changed = saver.serde.loads_typed(row)
    changed["channel_values"]["draft"] = "changed behind our back"
    connection.execute(
        "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?",
        (saver.serde.dumps_typed(changed)[1], origins[1]),
    )
    connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (origins[2],))
    findings = (await watcher.driver.check("strict", lambda _done, _all: None)).mismatches
    assert {(each.kind, each.step, each.channel, each.field) for each in findings} == {
        ("origin", 1, "draft", f"checkpoint {origins[1]}"),
        ("origin", 2, None, f"checkpoint {origins[2]}"),
    }
    connection.close()
