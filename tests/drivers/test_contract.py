"""What a driver of our threads keeps to; test_every_driver.py has what it shares with those of LangGraph."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    AnswerRefused,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    HitlError,
    SchemaMismatch,
    StaleWriter,
    StateGraph,
    UsageError,
)
from hitl_tui.drivers import reading
from hitl_tui.drivers.buffer import EventBuffer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import (
    COMMANDS,
    Answer,
    Cancel,
    CancelAttempt,
    ExtendLimits,
    Fork,
    Pause,
    Reveal,
    Run,
    Start,
    UpdateState,
    decode_command,
    encode_command,
    verb,
)
from hitl_tui.engine.log.events import (
    PRIVATE,
    NodeStarted,
    RunEnded,
    RunStarted,
    StepCommitted,
    TextStreamed,
    ThreadForked,
)
from hitl_tui.engine.log.records import Limits
from hitl_tui.errors import UnknownThread
from tests.drivers.conftest import Bench
from tests.support.every_command import with_every_field_set
from tests.support.flows import check_log, line, review_loop, say

GATE = Gate(
    "check",
    title="verdict",
    choices=[GateChoice("accept", "ok"), GateChoice("approve", "ok", values={"verdict": "approved"})],
)


def talkative(state: Any, config: Any) -> dict[str, Any]:
    for piece in ("one ", "two ", "three"):
        config.emit(piece)
    return {"draft": "one two three", "n": state["n"] + 1}


async def test_the_view_equals_a_fresh_one_after_every_command(bench: Bench) -> None:
    runner = review_loop(bench.store, {"write": talkative}, interrupt_after=[GATE])
    watcher = await bench.watch(runner)
    driver = watcher.driver
    await watcher.check()
    assert await driver.execute(Start({"log": "go"}, actor="ann")) == 0
    assert (await watcher.check()).progress.status == "pending"
    await watcher.step()
    assert (await watcher.check()).progress.reason == "paused"
    await watcher.run()
    request = (await watcher.check()).progress.pending[0]
    assert await driver.execute(UpdateState({"draft": "x"}, expected_step=2, actor="ann", note="why")) == 3
    await watcher.check()
    with pytest.raises(AnswerRefused):
        await driver.execute(Answer(request.id, "approve", step=9, actor="bob"))
    assert (await watcher.check()).ledger[-1].kind == "refused"
    assert await driver.execute(Answer(request.id, "accept", step=3, actor="bob")) == 4
    await watcher.check()
    await driver.execute(ExtendLimits({"max_iterations": 99}, actor="ann"))
    assert (await watcher.check()).progress.limits.max_iterations == 99
    assert await driver.execute(Fork(2, "f", changes={"verdict": "approved"}, actor="ann")) == "f"
    assert (await watcher.check()).forks == (("f", 2),)
    await watcher.run()
    await watcher.check()
    await driver.execute(Cancel(actor="ann", note="enough"))
    view = await watcher.check()
    assert (view.progress.status, view.progress.reason) == ("cancelled", "user")
    check_log(runner, "t")
    check_log(runner, "f")


async def test_events_tell_the_story_in_order(bench: Bench) -> None:
    runner = line(bench.store, talkative, say("after"))
    watcher = await bench.watch(runner)
    await watcher.driver.execute(Start({}))
    await watcher.run()
    # Pieces of text that nobody has seen yet are put together.
    kinds = [kind for kind, _ in groupby(type(stamped.event) for stamped in watcher.seen)]
    wanted = [StepCommitted, RunStarted, NodeStarted, TextStreamed, StepCommitted]
    wanted += [NodeStarted, StepCommitted, RunEnded]
    assert [kind for kind in kinds if kind in set(wanted)] == wanted
    assert watcher.view.stream.node == "b"


async def test_text_that_nobody_has_seen_is_put_together_and_the_oldest_of_much_makes_room() -> None:
    buffer = EventBuffer()
    for piece in ("a", "b"):
        buffer.add(TextStreamed("n", "", piece))
    buffer.add(TextStreamed("n", "agent", "c"))
    assert [stamped.event.text for stamped in buffer.since(0)] == ["ab", "c"]  # type: ignore[union-attr]
    buffer.add(TextStreamed("n", "agent", "d"))
    assert [stamped.event.text for stamped in buffer.since(2)] == ["d"]  # type: ignore[union-attr]
    for _ in range(40):
        buffer.add(TextStreamed("n", "", "x" * (1 << 20)))
    assert len(buffer.since(0)) == 16


async def test_a_watcher_that_fell_behind_sees_a_gap() -> None:
    buffer = EventBuffer(kept=3)
    for place in range(10):
        buffer.add(ThreadForked("f", place))
    assert [one.number for one in buffer.since(0)] == [8, 9, 10]
    assert [one.number for one in buffer.since(8)] == [9, 10]
    assert buffer.since(10) == ()
    buffer.skip()
    assert buffer.since(10) == ()
    buffer.add(ThreadForked("f", 1))
    assert [one.number for one in buffer.since(10)] == [12]


async def test_a_thread_without_steps_and_the_updates_of_any_step(bench: Bench) -> None:
    watcher = await bench.watch(line(bench.store, *[say(str(n)) for n in range(6)]))
    driver = watcher.driver
    assert await driver.history() == ()
    await driver.execute(Start({"log": "go"}))
    await watcher.run()
    update = ((await driver.updates(2, 2))[2])[0]
    assert (update.before, update.update, update.after) == (["go", "0"], "1", ["go", "0", "1"])
    assert (await driver.updates(99, 99))[99] == ()
    with pytest.raises(UnknownThread):
        await driver.state_at(99)


async def test_the_updates_of_several_steps_need_the_state_before_them_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = await bench.watch(line(bench.store, *[say(str(n)) for n in range(6)]))
    await watcher.driver.execute(Start({"log": "go"}))
    await watcher.run()
    one_by_one = {step: (await watcher.driver.updates(step, step))[step] for step in range(2, 7)}
    made: list[int] = []
    whole = reading.state_at
    monkeypatch.setattr(
        reading, "state_at", lambda *given, **more: made.append(given[2]) or whole(*given, **more)
    )
    assert await watcher.driver.updates(2, 6) == one_by_one
    assert made == [1]


async def test_the_updates_of_steps_between_which_the_graph_got_a_channel_and_lost_it(bench: Bench) -> None:
    def graph(**more: Channel) -> GraphRunner:
        counted = StateGraph({"n": Channel(0, reducer="sum"), **more})
        counted.add_node("count", lambda s: dict.fromkeys({"n", "more"}.intersection(s), 1))
        counted.add_conditional_edge("count", lambda s: s["n"] < 9, {"true": "count", "false": END})
        return counted.add_edge(START, "count").compile(checkpointer=bench.store)

    grown = graph(more=Channel(7, reducer="sum"))
    for runner in (grown, grown, graph(), grown, grown):
        runner.step(thread_id="t")
    driver = (await bench.watch(grown)).driver
    updates = await driver.updates(0, 5)
    assert updates == {step: (await driver.updates(step, step))[step] for step in range(6)}
    after = [one.after for step in range(1, 6) for one in updates[step] if one.channel == "more"]
    assert after == [8, 9, 8, 9]


async def test_private_values_are_not_emitted(bench: Bench) -> None:
    graph = StateGraph({"open": Channel(""), "secret": Channel("", visibility="private")})
    graph.add_node("a", lambda state: {"open": "o", "secret": "hush"}).add_edge(START, "a").add_edge("a", END)
    watcher = await bench.watch(graph.compile(checkpointer=bench.store))
    await watcher.driver.execute(Start({"secret": "hush at first"}))
    await watcher.run()
    await watcher.driver.execute(UpdateState({"secret": "hush again"}, expected_step=1))
    view = await watcher.check()
    assert view.values["secret"] is PRIVATE
    assert (await watcher.driver.state_at(1))["secret"] is PRIVATE
    preview = await watcher.driver.preview(UpdateState({"secret": "hush"}))
    for shown in (
        watcher.seen,
        await watcher.driver.snapshot(),
        (await watcher.driver.updates(1, 1))[1],
        preview,
    ):
        assert "hush" not in repr(shown)


async def test_commands_that_are_refused_change_nothing(bench: Bench) -> None:
    watcher = await bench.watch(review_loop(bench.store, interrupt_after=[GATE]))
    driver = watcher.driver
    with pytest.raises(UsageError):
        await driver.execute(UpdateState({"draft": "x"}, expected_step=-1))
    await driver.execute(Start({}))
    await watcher.run()
    before = await watcher.check()
    refused: list[tuple[Any, type[HitlError]]] = [
        (driver.execute(UpdateState({"draft": "x"}, expected_step=1)), StaleWriter),
        (driver.execute(UpdateState({"draft": 1}, expected_step=2)), SchemaMismatch),
        (driver.execute(Fork(99, "f")), UnknownThread),
        (driver.execute(Fork(1, "t")), UsageError),
        (driver.execute(Start({"nonesuch": 1})), UsageError),
    ]
    for command, error in refused:
        with pytest.raises(error):
            await command
    assert (await watcher.check()).progress == before.progress


async def test_a_preview_says_what_would_be_and_does_nothing(bench: Bench) -> None:
    runner = review_loop(bench.store, interrupt_after=[GATE])
    watcher = await bench.watch(runner)
    await watcher.driver.execute(Start({}))
    await watcher.run()
    before = bench.store.cursor("t")
    request = watcher.view.progress.pending[0]
    edit = await watcher.driver.preview(UpdateState({"verdict": "approved", "n": "x"}))
    assert (edit.next_node, list(edit.problems), edit.rebinds, edit.forks) == (
        END,
        ["n"],
        ("verdict",),
        False,
    )
    past = await watcher.driver.preview(UpdateState({"draft": "x"}, expected_step=1))
    assert (past.forks, past.next_node) == (True, "check")
    answer = await watcher.driver.preview(Answer(request.id, "approve", step=request.step))
    assert (answer.next_node, [one.after for one in answer.updates]) == (END, ["approved"])
    assert bench.store.cursor("t") == before


async def test_a_limit_waits_for_a_human_who_may_extend_it(bench: Bench) -> None:
    watcher = await bench.watch(review_loop(bench.store, limits=Limits(max_iterations=2)))
    await watcher.driver.execute(Start({}))
    view = await watcher.run()
    assert (view.progress.status, view.progress.reason) == ("waiting", "limit")
    await watcher.driver.execute(ExtendLimits({"max_iterations": 3}, actor="ann"))
    assert (await watcher.run()).progress.head == 3
    await watcher.check()


async def test_a_disabled_action_is_refused_with_the_reason_shown_beforehand(bench: Bench) -> None:
    runner = line(bench.store, say("one"))
    runner.invoke({}, thread_id="t")
    hub = LocalHub(bench.store, lambda info: runner)
    bench._hubs.append(hub)
    driver = await hub.look_at("t")
    snapshot = await driver.snapshot()
    assert snapshot.refusals == {
        verb(kind): driver.refusal(kind) for kind in COMMANDS if driver.refusal(kind)
    }
    assert {Cancel, CancelAttempt, Pause, Reveal}.isdisjoint(filter(driver.refusal, COMMANDS))
    for kind in filter(driver.refusal, COMMANDS):
        with pytest.raises(UsageError, match="is read-only") as refused:
            await driver.execute(with_every_field_set(kind))
        assert refused.value.hint == driver.refusal(kind) != ""
    assert (await driver.snapshot()).progress == snapshot.progress
    assert not any(map((await hub.new("u", runner)).refusal, COMMANDS))
    await driver.close()


async def test_a_command_given_as_json_does_the_same_as_the_object(bench: Bench) -> None:
    runner = review_loop(bench.store, interrupt_after=[GATE])
    watcher = await bench.watch(runner)
    ended = len(watcher.events_of(RunEnded))
    for command in (Start({"log": "go"}, "ann"), Run()):
        await watcher.driver.execute(decode_command(encode_command(command)))
    view = await watcher.until(lambda _: len(watcher.events_of(RunEnded)) > ended)
    request, seen = view.progress.pending[0], view.checkpoints[-1].state_hash
    for sent in (b"x" * 32, seen):
        answer = Answer(request.id, "approve", request.step, "bob", "fine", sent)
        as_json = decode_command(encode_command(answer))
        if sent is seen:
            assert await watcher.driver.execute(as_json) == 3
        else:
            with pytest.raises(AnswerRefused, match="another state"):
                await watcher.driver.execute(as_json)
    assert (await watcher.check()).values["verdict"] == "approved"
