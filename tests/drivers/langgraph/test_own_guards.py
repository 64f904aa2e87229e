"""What a LangGraph graph declares holds while it is stepped: limits, routes, stops and policies."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, Final

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.pregel import App
from hitl_tui.engine.commands import Answer, Run, Start, Step, UpdateState
from hitl_tui.engine.log.events import NodeRetrying
from hitl_tui.errors import UsageError
from hitl_tui.view.edits import withdrawn_lines
from tests.drivers.langgraph.conftest import Hubs


class Count(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


def endless(limit: int | None, **compiled: Any) -> Any:
    """A loop without an end."""
    graph = StateGraph(Count).add_node("a", lambda state: {"n": state["n"] + 1})
    graph.add_edge(START, "a").add_conditional_edges("a", lambda state: "a", ["a", END])
    app = graph.compile(checkpointer=InMemorySaver(), **compiled)
    return app.with_config(recursion_limit=limit) if limit else app


# --- the recursion limit --------------------------------------------------------------------------------


async def test_the_recursion_limit_holds_for_a_whole_run(hubs: Hubs) -> None:
    watcher = await hubs.watch(endless(5))
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    progress = (await watcher.run()).progress
    assert (progress.status, progress.reason, progress.head) == ("failed", "limit", 5)
    assert (await watcher.driver.snapshot()).ledger[-1].note == "recursion_limit of 5 supersteps"
    assert "resume the thread" in (await watcher.driver.snapshot()).refusals["extend_limits"]
    progress = (await watcher.run()).progress
    # LangGraph counts two steps that take input, also where a run has none.
    assert (progress.status, progress.reason, progress.head) == ("failed", "limit", 12), (
        "LangGraph counts two for an input"
    )


async def test_single_steps_count_towards_the_recursion_limit(hubs: Hubs) -> None:
    watcher = await hubs.watch(endless(3))
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    for _ in range(3):
        await watcher.step()
    assert (await watcher.step()).progress.reason == "limit"
    assert watcher.view.progress.head == 3
    assert (await watcher.step()).progress.head == 4


@pytest.mark.slow
async def test_an_input_and_an_answer_reset_the_recursion_count(hubs: Hubs) -> None:
    def ask(state: Any) -> dict[str, Any]:
        return {"log": [interrupt("Go on?")]}

    graph = StateGraph(Count).add_node("a", lambda state: {"n": state["n"] + 1}).add_node("ask", ask)
    graph.add_edge(START, "a").add_edge("a", "ask").add_edge("ask", "a")
    watcher = await hubs.watch(graph.compile(checkpointer=InMemorySaver()).with_config(recursion_limit=3))
    for _ in range(2):
        await watcher.driver.execute(Start({"n": 0, "log": []}))
        progress = (await watcher.run()).progress
        for _ in range(4):
            (request,) = progress.pending
            await watcher.driver.execute(Answer(request.id, "yes", request.step, "ann"))
            progress = (await watcher.run()).progress
        assert progress.reason == "interrupt"


def test_a_graph_without_a_limit_has_langgraphs_own() -> None:
    assert App(endless(None)).recursion_limit > 20
    assert App(endless(7)).recursion_limit == 7


# --- routes that a node has chosen ----------------------------------------------------------------------


def publish(state: Any) -> dict[str, Any]:
    return {"log": [interrupt("Publish?")]}


SENT: Final = Send("b", {"n": 3, "log": []})


def goes(*names: str | Send, **more: Any) -> Any:
    """A graph whose first node chooses where to go."""
    goto: Any = names[0] if len(names) == 1 else list(names)
    graph = StateGraph(Count).add_node(
        "a",
        lambda state: Command(update={"n": 1}, goto=goto),
        destinations=more.get("destinations", ("b", "c")) or None,
    )
    graph.add_node("b", publish).add_node("c", publish).add_edge(START, "a")
    for source, target in more.get("edges", ()):
        graph.add_edge(source, target)
    return graph.compile(checkpointer=more.get("saver", InMemorySaver()))


@pytest.mark.parametrize(
    ("graph", "following"),
    [
        (lambda: goes("b"), ["b"]),
        (lambda: goes("b", "c"), ["b", "c"]),
        (lambda: goes("c", edges=[("a", "b")]), ["b", "c"]),
        (lambda: goes(SENT, SENT), ["b[0]", "b[1]"]),
        (lambda: goes("c", SENT), ["c", "b[0]"]),
    ],
    ids=["one", "two", "one besides an edge", "two sends", "one and a send"],
)
@pytest.mark.parametrize("as_node", [None, "a"])
async def test_an_edit_keeps_the_route_that_a_command_chose(
    hubs: Hubs, graph: Callable[[], Any], following: list[str], as_node: str | None
) -> None:
    watcher = await hubs.watch(graph())
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    await watcher.run()
    for number in (7, 8):  # an edit of an edit keeps it, too
        head = (await watcher.check()).progress.head
        edit = UpdateState({"n": number}, head, as_node, "ann")
        preview = await watcher.driver.preview(edit)
        assert (preview.next_node or "").split(", ") == following
        assert next(way for way in preview.as_nodes if way.node == "a").next_nodes == tuple(following)
        assert preview.withdraws or number == 8
        await watcher.driver.execute(edit)
        view = await watcher.check()
        assert (view.progress.status, view.values["n"]) == ("waiting", number)
    assert len((await watcher.run()).progress.pending) == len(following)


@pytest.mark.integration
@pytest.mark.parametrize("saver", ["server"], indirect=True)
@pytest.mark.parametrize("drawn", [("b", "c"), ("b",), ()])
async def test_a_server_keeps_the_route_that_a_command_chose(
    hubs: Hubs, saver: Any, drawn: tuple[str, ...]
) -> None:
    watcher = await hubs.watch(goes("b", destinations=drawn, saver=saver))
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    await watcher.run()
    for number in (7, 8):
        edit = UpdateState({"n": number}, (await watcher.check()).progress.head, None, "ann")
        preview = await watcher.driver.preview(edit)
        assert (preview.next_node, preview.problems) == ("b", {})
        await watcher.driver.execute(edit)
        view = await watcher.check()
        assert (view.progress.status, view.values["n"]) == ("waiting", number)
    assert (await watcher.run()).progress.pending


@pytest.mark.integration
@pytest.mark.parametrize("saver", ["server"], indirect=True)
async def test_an_edit_whose_route_the_server_would_lose_is_refused(hubs: Hubs, saver: Any) -> None:
    watcher = await hubs.watch(goes(SENT, destinations=(), saver=saver))
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    await watcher.run()
    edit = UpdateState({"n": 7}, (await watcher.check()).progress.head, None, "ann")
    with pytest.raises(UsageError, match="a has sent the thread to b by a Command"):
        await watcher.driver.execute(edit)
    assert (await watcher.check()).progress.pending


async def test_a_conditional_edge_is_asked_about_the_edited_state(hubs: Hubs) -> None:
    graph = StateGraph(Count).add_node("a", lambda state: {"n": 1}).add_node("b", publish)
    graph.add_edge(START, "a").add_conditional_edges(
        "a", lambda state: "b" if state["n"] == 1 else END, ["b", END]
    )
    watcher = await hubs.watch(graph.compile(checkpointer=InMemorySaver()))
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    await watcher.run()
    edit = UpdateState({"n": 5}, (await watcher.check()).progress.head, None, "ann")
    preview = await watcher.driver.preview(edit)
    assert preview.next_node == "END"
    assert withdrawn_lines(preview.withdraws, preview.next_node) == [
        "withdrawn: Publish?",
        "The edit ends the thread: nobody is asked again.",
    ]
    await watcher.driver.execute(edit)
    assert (await watcher.check()).progress.status == "completed"


# --- stops and policies ---------------------------------------------------------------------------------


async def test_a_stop_before_the_first_node_is_there_once_the_input_is(hubs: Hubs) -> None:
    watcher = await hubs.watch(endless(None, interrupt_before=["a"]))
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    progress = (await watcher.check()).progress
    assert [request.title for request in progress.pending] == ["stopped before a"]


@pytest.mark.parametrize(
    "saver", ["memory", pytest.param("server", marks=pytest.mark.integration)], indirect=True
)
async def test_stops_that_a_graph_was_compiled_with_hold_while_it_runs_on(hubs: Hubs, saver: Any) -> None:
    graph = StateGraph(Count)
    for name in "abc":
        graph.add_node(name, lambda state, name=name: {"log": [name]})
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("c", END)
    app = graph.compile(checkpointer=saver, interrupt_before=["a"], interrupt_after=["b"])
    watcher = await hubs.watch(app, mirror="of stops")
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    asked = []
    while (view := await watcher.check()).progress.status == "waiting":
        asked.append((view.progress.pending[0].title, list(view.values["log"])))
        await watcher.run()
    assert asked == [("stopped before a", []), ("stopped after b", ["a", "b"])]
    assert view.progress.status == "completed"


@pytest.mark.parametrize("command", [Run, Step])
async def test_retry_policies_apply(hubs: Hubs, command: Any) -> None:
    tries: list[int] = []

    def shaky(state: Any) -> dict[str, Any]:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return {"n": 1}

    policy = RetryPolicy(max_attempts=3, initial_interval=0.0, jitter=False, retry_on=ValueError)
    graph = StateGraph(Count).add_node("a", shaky, retry_policy=policy).add_edge(START, "a")
    watcher = await hubs.watch(graph.compile(checkpointer=InMemorySaver()))
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    view = await (watcher.run() if command is Run else watcher.step())
    assert (view.progress.status, len(tries)) == ("completed", 3)
    failed = [
        (event.node, event.attempt, event.max_attempts, event.error)
        for event in watcher.events_of(NodeRetrying)
    ]
    assert failed == [("a", 1, 3, "ValueError: not yet"), ("a", 2, 3, "ValueError: not yet")]
    assert view.checkpoints[-1].attempt == 3


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_failed_attempts_are_reported_for_the_retried_branch_or_inner_node(
    hubs: Hubs, *, is_async: bool
) -> None:
    tries: Counter[str] = Counter()

    def shaky(name: str) -> Any:
        def node(state: Any) -> dict[str, Any]:
            tries[name] += 1
            if tries[name] < 2:
                raise ValueError(f"{name} is away")
            return {"log": [name]}

        async def awaited(state: Any) -> dict[str, Any]:
            return node(state)

        return awaited if is_async else node

    policy = RetryPolicy(max_attempts=2, initial_interval=0.0, jitter=False, retry_on=ValueError)
    inner = StateGraph(Count).add_node("deep", shaky("deep"), retry_policy=policy).add_edge(START, "deep")
    graph = StateGraph(Count).add_node("a", shaky("a"), retry_policy=policy)
    graph.add_node("b", lambda state: {"n": 1}).add_node("c", inner.compile())
    graph.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
    watcher = await hubs.watch(graph.compile(checkpointer=InMemorySaver()))
    await watcher.driver.execute(Start({"n": 0, "log": []}))
    view = await watcher.run()
    assert view.progress.status == "completed"
    events = [(event.path, event.attempt, event.error) for event in watcher.events_of(NodeRetrying)]
    assert events == [("a+b/a", 1, "ValueError: a is away"), ("c/deep", 1, "ValueError: deep is away")]
    branches = {branch.path: branch.attempts for branch in view.checkpoints[1].branches}
    assert branches == {"a+b/a": 2, "a+b/b": 1}


async def test_cache_policies_apply(hubs: Hubs) -> None:
    ran: list[int] = []

    def slow(state: Any) -> dict[str, Any]:
        ran.append(1)
        return {"log": ["slow"]}

    graph = StateGraph(Count).add_node("a", slow, cache_policy=CachePolicy(key_func=lambda state: "same"))
    app = graph.add_edge(START, "a").compile(checkpointer=InMemorySaver(), cache=InMemoryCache())
    for thread in ("t", "u"):
        watcher = await hubs.watch(app, thread)
        await watcher.driver.execute(Start({"n": 0, "log": []}))
        view = await watcher.step()
        assert (view.progress.status, list(view.values["log"])) == ("completed", ["slow"])
    assert len(ran) == 1
