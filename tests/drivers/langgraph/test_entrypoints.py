"""Entrypoints of the functional API: their steps are shown by their tasks, and what can't be done is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.graph import IN_ONE_GO
from hitl_tui.engine.commands import Answer, Fork, Run, Start, UpdateState
from hitl_tui.engine.log.events import BranchEnded, BranchStarted
from hitl_tui.errors import UsageError
from hitl_tui.verbs.actions import BY_ID
from hitl_tui.view.session import ViewSession
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.graphs import Ran
from tests.support.watching import Watcher


def summing(saver: Any, ran: Ran, *, asks: bool = False) -> Any:
    """Doubles some numbers at once, adds them up in another task, and may ask for a name."""

    @task
    def double(number: int) -> int:
        ran.append(f"double {number}")
        return number * 2

    @task
    def add(numbers: list[int]) -> int:
        ran.append("add")
        return sum(numbers)

    @entrypoint(checkpointer=saver)
    def workflow(given: dict[str, int], *, previous: Any = None) -> dict[str, Any]:
        doubles = [double(number) for number in range(given["n"])]
        total = add([each.result() for each in doubles]).result()
        name = interrupt({"question": "whose is it?"}) if asks else ""
        return {"sum": total, "name": name, "before": previous}

    return workflow


async def started(hubs: Hubs, graph: Any, given: dict[str, Any]) -> Watcher:
    watcher = await hubs.watch(graph)
    await watcher.driver.execute(Start(given))
    await watcher.run()
    await watcher.check()
    return watcher


async def test_a_step_is_shown_by_its_tasks_with_what_each_gave(saver: Any, hubs: Hubs) -> None:
    watcher = await started(hubs, summing(saver, []), {"n": 2})
    view = watcher.view
    assert view.values == {"output": {"sum": 2, "name": "", "before": None}}
    assert [point.source for point in view.checkpoints] == ["input", "node"]
    names = ["double[0]", "double[1]", "add[0]"]
    assert [event.path for event in watcher.events_of(BranchStarted)] == names
    assert sorted(event.outcome.path for event in watcher.events_of(BranchEnded)) == sorted(names)
    assert {(event.node, event.total) for event in watcher.events_of(BranchStarted)} == {("workflow", 0)}
    step = view.checkpoints[-1]
    assert [(each.path, each.name, each.index, each.status) for each in step.branches] == [
        ("double[0]", "double", 0, "ok"),
        ("double[1]", "double", 1, "ok"),
        ("add[0]", "add", 2, "ok"),
    ]
    assert {(text.agent, text.path, text.text) for text in step.streamed} == {
        ("task", "double[0]", "0\n"),
        ("task", "double[1]", "2\n"),
        ("task", "add[0]", "2\n"),
    }


async def test_tasks_that_have_finished_are_not_run_again_for_an_answer_and_stay_shown(
    saver: Any, hubs: Hubs
) -> None:
    ran: Ran = []
    watcher = await started(hubs, summing(saver, ran, asks=True), {"n": 2})
    (request,) = watcher.view.progress.pending
    assert (request.node, request.title) == ("workflow", "whose is it?")
    repeats = (await watcher.driver.preview(Run())).repeats
    assert repeats is not None
    assert [each.node for each in repeats.nodes] == ["workflow"]
    await watcher.driver.execute(Answer(request.id, "ann", request.step, "ann"))
    await watcher.run()
    view = await watcher.check()
    assert view.values["output"] == {"sum": 2, "name": "ann", "before": None}
    assert sorted(ran) == ["add", "double 0", "double 1"]
    step = view.checkpoints[-1]
    assert [each.status for each in step.branches] == ["ok"] * 3
    assert {text.path for text in step.streamed} == {"double[0]", "double[1]", "add[0]"}


async def test_a_task_that_fails_is_named_and_those_that_finished_are_kept(saver: Any, hubs: Hubs) -> None:
    tries: list[int] = []
    ran: Ran = []

    @task
    def good() -> str:
        ran.append("good")
        return "kept"

    @task
    def bad() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("no luck")
        return "luck"

    @entrypoint(checkpointer=saver)
    def workflow(_given: Any) -> list[str]:
        return [good().result(), bad().result()]

    watcher = await started(hubs, workflow, {})
    ended = {event.outcome.path: event.outcome.status for event in watcher.events_of(BranchEnded)}
    assert ended == {"good[0]": "ok", "bad[0]": "failed"}
    error = watcher.view.progress.error
    assert error is not None
    assert (error.node, error.frames[-1].function) == ("workflow", "bad()")
    await watcher.run()
    assert (await watcher.check()).values["output"] == ["kept", "luck"]
    assert ran == ["good"]


async def test_tasks_that_a_node_of_a_graph_calls_are_shown_beside_those_of_its_superstep(
    saver: Any, hubs: Hubs
) -> None:
    class State(TypedDict, total=False):
        a: int
        b: int

    @task
    def one() -> int:
        return 1

    graph = StateGraph(State)
    graph.add_node("left", lambda _state: {"a": one().result()})
    graph.add_node("right", lambda _state: {"b": 2})
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    watcher = await started(hubs, graph.compile(checkpointer=saver), {"a": 0})
    step = watcher.view.checkpoints[-1]
    assert [each.path for each in step.branches] == ["left+right/left", "left+right/right", "one[0]"]
    assert watcher.view.values == {"a": 1, "b": 2}


class Topic(BaseModel):
    topic: str


@dataclass
class Plain:
    topic: str


class Typed(TypedDict):
    topic: str


@pytest.mark.parametrize(
    ("kind", "given", "got"),
    [
        (str, {"topic": "seas"}, "seas"),
        (list[int], {"topic": [1]}, [1]),
        (Any, {"topic": "seas"}, "seas"),
        (Any, {"other": 1}, {"other": 1}),
        (dict[str, int], {"n": 1}, {"n": 1}),
        (Typed, {"topic": "seas"}, {"topic": "seas"}),
        (Topic, {"topic": "seas"}, Topic(topic="seas")),
        (Plain, {"topic": "seas"}, Plain("seas")),
    ],
)
async def test_an_entrypoint_gets_what_its_parameter_takes(
    hubs: Hubs, kind: Any, given: dict[str, Any], got: Any
) -> None:
    seen: list[Any] = []

    def workflow(topic: Any) -> str:
        seen.append(topic)
        return "done"

    workflow.__annotations__["topic"] = kind
    watcher = await started(hubs, entrypoint(checkpointer=InMemorySaver())(workflow), given)
    assert seen == [got]
    fields = [field.name for field in watcher.view.graph.inputs]
    assert fields == ([] if kind == dict[str, int] else ["topic"])


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [(str, {"other": 1}, "takes one input, 'topic', not other"), (Topic, {"other": 1}, "topic")],
)
async def test_an_input_that_does_not_fit_is_reported(
    hubs: Hubs, kind: Any, given: dict[str, Any], words: str
) -> None:
    def workflow(topic: Any) -> str:
        return "done"

    workflow.__annotations__["topic"] = kind
    watcher = await hubs.watch(entrypoint(checkpointer=InMemorySaver())(workflow))
    with pytest.raises(UsageError, match=words):
        await watcher.driver.execute(Start(given))
    assert watcher.view.progress.head == -1


async def test_an_edited_result_of_an_entrypoint_is_its_next_previous_value(saver: Any, hubs: Hubs) -> None:
    graph = summing(saver, [])
    watcher = await started(hubs, graph, {"n": 2})
    edit = UpdateState({"output": "mended"}, as_node="workflow", expected_step=1, actor="ann")
    preview = await watcher.driver.preview(edit)
    assert (dict(preview.problems), preview.next_node, preview.updates[0].after) == ({}, "END", "mended")
    await watcher.driver.execute(edit)
    assert (await watcher.check()).values == {"output": "mended"}
    await watcher.driver.execute(Start({"n": 1}))
    await watcher.run()
    assert (await watcher.check()).values["output"]["before"] == "mended"
    assert (await watcher.driver.check("log", lambda *_: None)).mismatches == ()
    refused = await watcher.driver.preview(UpdateState({"output": None}, as_node="workflow"))
    assert "null" in refused.problems["output"]


async def test_editing_a_waiting_entrypoint_ends_it_without_an_answer(saver: Any, hubs: Hubs) -> None:
    watcher = await started(hubs, summing(saver, [], asks=True), {"n": 1})
    edit = UpdateState({"output": "by hand"}, as_node="workflow", expected_step=0, actor="ann")
    assert (await watcher.driver.preview(edit)).withdraws == ("whose is it?",)
    await watcher.driver.execute(edit)
    view = await watcher.check()
    assert (view.values["output"], view.progress.status) == ("by hand", "completed")
    assert [entry.kind for entry in view.ledger][-2:] == ["update_state", "withdrawn"]


async def test_a_fork_runs_its_tasks_again(saver: Any, hubs: Hubs) -> None:
    ran: Ran = []
    hub = hubs.over(summing(saver, ran))
    watcher = await Watcher.open(await hub.begin("t", "ann"))
    await watcher.driver.execute(Start({"n": 1}))
    await watcher.run()
    await watcher.driver.execute(Fork(0, "u", actor="ann"))
    other = await Watcher.open(await hub.open("u"))
    await other.run()
    assert (await other.check()).values["output"]["sum"] == 0
    assert ran == ["double 0", "add"] * 2


async def test_an_entrypoint_says_that_it_can_not_stop_between_tasks(hubs: Hubs) -> None:
    hub = hubs.over(summing(InMemorySaver(), []))
    driver = await hub.begin("t")
    await driver.execute(Start({"n": 1}))
    session = await ViewSession.open(hub, driver)
    assert BY_ID["run.into"].disabled_reason(session.situation) == f"it runs as one step; {IN_ONE_GO}"
