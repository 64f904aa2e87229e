"""Breakpoints: how they are written, where a run stops or tells a line, how they are kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Agent, Channel, RetryPolicy, ScriptedModel, StateGraph, append
from hitl_tui.agents.backend import ToolCall
from hitl_tui.drivers.breakpoints import (
    BreakpointInvalid,
    describe,
    read_breakpoint,
    read_breakpoints,
    stopped_by,
)
from hitl_tui.drivers.kept_breakpoints import KeptBreakpoints
from hitl_tui.engine.commands import Answer, Run, Start, UpdateState
from hitl_tui.engine.log.events import BreakpointHit
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.stores import Checkpointer
from hitl_tui.view.status import standing_line
from tests.drivers.conftest import Bench
from tests.support import scoring_flow


def loop(store: Checkpointer | None, **options: Any) -> Any:
    """Counts `n` up in `count`, then looks in `check`, until `limit`; `key` is private."""
    channels = {
        "n": Channel(0),
        "limit": Channel(4),
        "notes": Channel([], reducer=append()),
        "key": Channel("x", visibility="private"),
    }
    graph = StateGraph(channels, name="loop")
    graph.add_node("count", lambda state: {"n": state["n"] + 1, "notes": f"now {state['n'] + 1}"})
    graph.add_node("check", lambda state: {})
    graph.add_edge(START, "count").add_edge("count", "check")
    graph.add_conditional_edge(
        "check", lambda state: "on" if state["n"] < state["limit"] else "off", {"on": "count", "off": END}
    )
    return graph.compile(checkpointer=store, **options)


def points(*texts: str, graph: Any = None) -> tuple[Breakpoint, ...]:
    return read_breakpoints(texts, (graph or loop(None)).graph.info)


def where(view: Any) -> tuple[int, str]:
    return view.progress.head, stopped_by(view.progress, view.ledger)


async def test_a_run_stops_before_the_node_and_continues_from_there(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    stops = points("check")
    assert where(await watcher.run(breakpoints=stops)) == (1, "breakpoint before check")
    assert where(await watcher.run(breakpoints=stops)) == (3, "breakpoint before check")
    assert where(await watcher.run()) == (8, "")
    await watcher.check()


async def test_a_condition_is_evaluated_each_time_and_named_when_it_stops(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    view = await watcher.run(breakpoints=points("count: n > 2", "check: n == 99"))
    assert where(view) == (6, "breakpoint before count: n > 2")
    assert view.values["n"] == 3


async def test_a_new_run_stops_before_its_first_node(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    stops = points("count")
    assert where(await watcher.run(breakpoints=stops)) == (0, "breakpoint before count")
    assert where(await watcher.run(breakpoints=stops)) == (2, "breakpoint before count")


async def test_stepping_and_editing_there_does_not_make_it_stop_again(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    await watcher.step()
    assert where(await watcher.run(breakpoints=points("check"))) == (3, "breakpoint before check")
    await watcher.driver.execute(UpdateState({"limit": 9}, expected_step=3))
    view = await watcher.look()
    assert stopped_by(view.progress, view.ledger) == ""
    assert where(await watcher.run(breakpoints=points("check")))[0] == 6


async def test_another_process_passes_what_this_one_stopped_at(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    await watcher.run(breakpoints=points("check"))
    other = await bench.watch(loop(bench.store))
    assert where(other.view) == (1, "breakpoint before check")
    assert where(await other.run(breakpoints=points("check"))) == (3, "breakpoint before check")


async def test_after_an_answer_the_next_node_is_stopped_before(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store, interrupt_after=["check"]))
    await watcher.driver.execute(Start({}))
    view = await watcher.run()
    request = view.progress.pending[0]
    await watcher.driver.execute(Answer(request.id, "continue", step=request.step))
    assert where(await watcher.run(breakpoints=points("count"))) == (2, "breakpoint before count")


async def test_a_condition_that_can_not_be_evaluated_stops_and_says_so(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    view = await watcher.run(breakpoints=points("check: notes > 2"))
    head, reason = where(view)
    assert head == 1
    why = "a list can't be compared with a whole number, at column 7"
    assert reason == f"breakpoint before check: notes > 2 (it can't be evaluated: {why})"


async def test_an_invalid_breakpoint_is_refused_and_nothing_runs(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    with pytest.raises(BreakpointInvalid, match="did you mean 'check'"):
        await watcher.driver.execute(Run(breakpoints=(Breakpoint("before", "chek"),)))
    with pytest.raises(BreakpointInvalid):
        await watcher.driver.execute(Run(breakpoints=(Breakpoint("before", "check", "n >"),)))
    assert (await watcher.look()).progress.head == 0


# What is read, and told wrong


READ = {
    "check": Breakpoint("before", "check"),
    "before check": Breakpoint("before", "check"),
    " check : n > 2": Breakpoint("before", "check", "n > 2"),
    "check:notes[1:2] == []": Breakpoint("before", "check", "notes[1:2] == []"),
    "after count hit 3": Breakpoint("after", "count", hit=3),
    "change notes[-1]": Breakpoint("change", "notes[-1]"),
    "change notes[0:2] hit 2: new != old": Breakpoint("change", "notes[0:2]", "new != old", 2),
    "tool": Breakpoint("tool"),
    "tool search: arguments.query == 'x:y'": Breakpoint("tool", "search", "arguments.query == 'x:y'"),
    "error": Breakpoint("error"),
    "error count: error == 'KeyError'": Breakpoint("error", "count", "error == 'KeyError'"),
    'count log "n={n}: \\"{{\\""': Breakpoint("before", "count", log='n={n}: "{{"'),
    'after count hit 2 log "{notes[0:1]}": n': Breakpoint("after", "count", "n", 2, "{notes[0:1]}"),
}


@pytest.mark.parametrize("text", READ)
def test_a_breakpoint_in_one_line_of_text(text: str) -> None:
    graph = loop(None).graph.info
    assert read_breakpoint(text, graph) == READ[text]
    assert read_breakpoint(describe(READ[text]), graph) == READ[text]


WRONG = {
    "nowhere:n": (1, "the graph 'loop' has no node 'nowhere'"),
    "after chek": (7, "has no node 'chek'; did you mean 'check'?"),
    "check: m > 2": (8, "there is no channel 'm'"),
    "check hit 0": (11, "hit takes a number from 1"),
    "check hit many": (11, "hit takes a number from 1"),
    "check log n": (11, "log takes a text in double quotes"),
    'check log "n={m}"': (15, "there is no channel 'm'"),
    'check log "n" hit 3': (15, "here only hit N"),
    "change": (7, "change takes a channel"),
    "change key": (8, "the channel 'key' is private"),
    "change notes[": (13, "'[' was never closed"),
    "after": (6, "after takes a node"),
    "error nowhere": (7, "has no node 'nowhere'"),
    "tool: n >": (10, "invalid syntax"),
    "": (1, "before takes a node"),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_in_a_breakpoint_is_reported_with_its_column(text: str) -> None:
    column, why = WRONG[text]
    with pytest.raises(BreakpointInvalid) as wrong:
        read_breakpoint(text, loop(None).graph.info)
    assert (wrong.value.column, why in wrong.value.why) == (column, True), wrong.value


def test_a_node_named_like_a_keyword_takes_precedence() -> None:
    graph = StateGraph({"n": Channel(0)}).add_node("tool", lambda s: {}).add_node("a hit 2", lambda s: {})
    info = (
        graph.add_edge(START, "tool")
        .add_edge("tool", "a hit 2")
        .add_edge("a hit 2", END)
        .compile()
        .graph.info
    )
    assert read_breakpoint("tool", info) == Breakpoint("before", "tool")
    assert read_breakpoint("tool *", info).kind == "tool"
    assert read_breakpoint("a hit 2", info) == Breakpoint("before", "a hit 2")


# Where they stop


async def test_a_breakpoint_after_a_node_stops_after_its_commit(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    view = await watcher.run(breakpoints=points("after count"))
    assert where(view) == (1, "breakpoint after count")
    assert (view.values["n"], view.progress.next_node) == (1, "check")
    assert where(await watcher.run(breakpoints=points("after count"))) == (3, "breakpoint after count")
    await watcher.check()


async def test_a_breakpoint_after_a_node_shows_where_it_returned(bench: Bench) -> None:
    watcher = await bench.watch(scoring_flow.build().compile(checkpointer=bench.store))
    await watcher.driver.execute(Start({}))
    stops = points("change score", graph=scoring_flow.build().compile())
    view = await watcher.run(breakpoints=stops)
    node, frames = view.returned
    assert (node, frames[-1].function) == ("score", "score(state, config)")
    assert next((value.name, value.text) for value in frames[-1].values) == ("reply", "'0.4'")
    assert (await watcher.step()).returned == ("", ())


async def test_a_breakpoint_after_an_async_node_shows_where_it_returned(bench: Bench) -> None:
    async def score(state: Any) -> Any:
        await asyncio.sleep(0)
        total = state["n"] + 1
        await asyncio.sleep(0)
        return {"n": total}

    graph = StateGraph({"n": Channel(0)}).add_node("score", score)
    graph.add_edge(START, "score").add_edge("score", END)
    watcher = await bench.watch(graph.compile(checkpointer=bench.store))
    await watcher.driver.execute(Start({}))
    view = await watcher.run(breakpoints=points("after score", graph=graph.compile()))
    node, frames = view.returned
    assert (node, frames[-1].function) == ("score", "score(state)")
    assert next((value.name, value.text) for value in frames[-1].values) == ("total", "1")
    line = frames[-1].lines[frames[-1].line - frames[-1].first]
    assert line.strip() == 'return {"n": total}'


async def test_a_breakpoint_on_a_path_stops_after_the_node_that_changed_it(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    stops = points("change notes[1]: new != 'now 9'")
    assert where(await watcher.run(breakpoints=stops)) == (3, "breakpoint change notes[1]: new != 'now 9'")
    assert where(await watcher.run(breakpoints=stops))[0] == 8


async def test_a_hit_count_stops_only_at_that_hit_and_counts_across_runs(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({"limit": 6}))
    stops = points("check hit 3", "count: n == 1")
    assert where(await watcher.run(breakpoints=stops))[0] == 2
    view = await watcher.run(breakpoints=stops)
    assert where(view) == (5, "breakpoint before check hit 3")
    assert (await watcher.run(breakpoints=stops)).progress.status == "completed"
    hits = [event.hits for event in watcher.events_of(BreakpointHit) if "hit 3" in event.breakpoint]
    assert hits == [1, 2, 3, 4, 5, 6]


async def test_a_logpoint_logs_its_values_without_stopping(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    text = 'after count log "n={n} {{last}}={notes[-1]} {notes[9]}": n > 2'
    view = await watcher.run(breakpoints=points(text))
    assert view.progress.status == "completed"
    lines = [event.line for event in watcher.events_of(BreakpointHit)]
    assert [line.partition(" (")[0] for line in lines] == ["n=3 {last}=now 3", "n=4 {last}=now 4"]
    assert "there is no item 9 among 3" in lines[0]
    assert not any(event.stops for event in watcher.events_of(BreakpointHit))
    assert view.logged == tuple(lines)


async def test_a_disabled_breakpoint_does_nothing(bench: Bench) -> None:
    watcher = await bench.watch(loop(bench.store))
    await watcher.driver.execute(Start({}))
    view = await watcher.run(breakpoints=(Breakpoint("before", "check", off=True),))
    assert view.progress.status == "completed"


def failing(store: Checkpointer | None, times: int) -> Any:
    tries: list[int] = []

    def flaky(state: Any) -> Any:
        tries.append(1)
        if len(tries) <= times:
            raise KeyError("nothing there")
        return {"n": 1}

    graph = StateGraph({"n": Channel(0)}).add_node("flaky", flaky, retry=RetryPolicy(3, wait=0))
    return graph.add_edge(START, "flaky").add_edge("flaky", END).compile(checkpointer=store)


async def test_a_breakpoint_on_an_error_stops_before_the_retry_with_its_frames(bench: Bench) -> None:
    watcher = await bench.watch(failing(bench.store, 1))
    await watcher.driver.execute(Start({}))
    view = await watcher.run(breakpoints=points("error: error == 'KeyError'", graph=failing(None, 0)))
    assert view.progress.status == "failed"
    assert view.error is not None
    assert (view.error.attempt, view.error.frames[-1].function) == (1, "flaky(state)")
    assert "breakpoint error: error == 'KeyError'" in view.error.message
    assert (await watcher.run()).progress.status == "completed"


async def test_an_error_of_another_kind_is_tried_again(bench: Bench) -> None:
    watcher = await bench.watch(failing(bench.store, 2))
    await watcher.driver.execute(Start({}))
    view = await watcher.run(breakpoints=points("error: error == 'ValueError'", graph=failing(None, 0)))
    assert view.progress.status == "completed"


def tools(store: Checkpointer | None, called: list[str]) -> Any:
    def search(query: str) -> str:
        """Search."""
        called.append(query)
        return f"found {query}"

    asks = [ToolCall("search", {"query": query}) for query in ("a", "b")]
    agent = Agent("seeker", ScriptedModel([*asks, "done"], pace=0), tools=[search])

    async def seek(state: Any, config: Any) -> Any:
        return {"said": await config.agents["seeker"].achat("Seek.")}

    graph = (
        StateGraph({"said": Channel("")}).add_node("seek", seek).add_edge(START, "seek").add_edge("seek", END)
    )
    return graph.compile(checkpointer=store, agents={"seeker": agent})


async def test_a_tool_is_stopped_at_before_it_is_called_and_nothing_is_done_twice(bench: Bench) -> None:
    called: list[str] = []
    watcher = await bench.watch(tools(bench.store, called))
    await watcher.driver.execute(Start({}))
    stops = points("tool search: arguments.query == 'b'", graph=tools(None, []))
    view = await watcher.run(breakpoints=stops)
    (request,) = view.progress.pending
    assert request.breakpoint
    assert request.title == "breakpoint tool search: arguments.query == 'b'"
    assert called == ["a"]
    stands = standing_line(view.progress, "", view.ledger)
    assert stands == "Waiting at step 0: breakpoint tool search: arguments.query == 'b'."
    view = await watcher.run(breakpoints=stops)
    assert (view.progress.status, view.values["said"]) == ("completed", "done")
    assert called == ["a", "b"]
    await watcher.check()


def mapped(store: Checkpointer | None, ran: list[Any] | None = None, *, at_once: int = 5) -> Any:
    def scan(state: Any, config: Any) -> Any:
        (ran if ran is not None else []).append(config.item)
        if config.item == "bad":
            raise ValueError("bad item")
        return {"seen": config.item}

    channels = {"items": Channel(["a", "b", "bad"], reducer="extend"), "seen": Channel([], reducer="append")}
    graph = StateGraph(channels).add_map("scan", over="items", node=scan, max_concurrent=at_once)
    return graph.add_edge(START, "scan").add_edge("scan", END).compile(checkpointer=store)


async def test_a_branch_of_a_map_is_stopped_at_while_the_others_end(bench: Bench) -> None:
    ran: list[Any] = []
    watcher = await bench.watch(mapped(bench.store, ran))
    await watcher.driver.execute(Start({}))
    stops = points("scan[*]: item == 'b'", graph=mapped(None))
    view = await watcher.run(breakpoints=stops)
    (request,) = view.progress.pending
    assert (request.path, request.breakpoint, sorted(ran)) == ("scan[1]", True, ["a", "bad"])
    view = await watcher.run(breakpoints=stops)
    assert (view.progress.status, view.values["seen"], sorted(ran)) == (
        "completed",
        ["a", "b"],
        ["a", "b", "bad"],
    )


async def test_a_tool_is_stopped_at_inside_a_branch_while_the_others_end(bench: Bench) -> None:
    called: list[str] = []

    def searching(store: Checkpointer | None) -> Any:
        def search(query: str) -> str:
            """Search."""
            called.append(query)
            return f"found {query}"

        def replies(turns: Any) -> Any:
            last = turns[-1]["content"]
            return "done" if "found" in last else ToolCall("search", {"query": last})

        async def seek(state: Any, config: Any) -> Any:
            said = await config.agents["seeker"].fresh().achat(config.item)
            return {"said": f"{config.item}: {said}"}

        agent = Agent("seeker", ScriptedModel(replies, pace=0), tools=[search])
        channels = {
            "items": Channel(["a", "b", "c"], reducer="extend"),
            "said": Channel([], reducer="append"),
        }
        graph = StateGraph(channels).add_map("scan", over="items", node=seek)
        graph.add_edge(START, "scan").add_edge("scan", END)
        return graph.compile(checkpointer=store, agents={"seeker": agent})

    watcher = await bench.watch(searching(bench.store))
    await watcher.driver.execute(Start({}))
    stops = points("tool search: arguments.query == 'b'", graph=searching(None))
    view = await watcher.run(breakpoints=stops)
    (request,) = view.progress.pending
    assert (request.path, request.breakpoint, sorted(called)) == ("scan[1]", True, ["a", "c"])
    view = await watcher.run(breakpoints=stops)
    assert (view.progress.status, sorted(called)) == ("completed", ["a", "b", "c"])
    assert view.values["said"] == ["a: done", "b: done", "c: done"]
    await watcher.check()


async def test_an_error_of_a_branch_fails_the_whole_step_and_what_succeeded_is_kept(bench: Bench) -> None:
    ran: list[Any] = []
    watcher = await bench.watch(mapped(bench.store, ran, at_once=1))  # so that both others have ended
    await watcher.driver.execute(Start({}))
    view = await watcher.run(breakpoints=points("error", graph=mapped(None, at_once=1)))
    assert view.progress.status == "failed"
    assert view.error is not None
    assert view.error.frames[-1].function == "scan(state, config)"
    ran.clear()
    view = await watcher.run()
    assert (view.progress.status, view.values["seen"]) == ("completed", ["a", "b"])
    assert ran == ["bad"]


def nested(store: Checkpointer | None) -> Any:
    inner = StateGraph({"n": Channel(0)}, name="inner")
    inner.add_node("one", lambda s: {"n": s["n"] + 1}).add_node("two", lambda s: {"n": s["n"] * 10})
    inner.add_edge(START, "one").add_edge("one", "two").add_edge("two", END)
    outer = StateGraph({"m": Channel(3)}, name="outer")
    outer.add_subgraph("team", inner, inputs={"m": "n"}, outputs={"n": "m"}).add_node("last", lambda s: {})
    return (
        outer.add_edge(START, "team")
        .add_edge("team", "last")
        .add_edge("last", END)
        .compile(checkpointer=store)
    )


async def test_a_breakpoint_in_a_subgraph_stops_before_its_node_and_continues(bench: Bench) -> None:
    watcher = await bench.watch(nested(bench.store))
    await watcher.driver.execute(Start({}))
    stops = points("team/two: n == 4", 'change team/n log "{old} to {new}"', graph=nested(None))
    view = await watcher.run(breakpoints=stops)
    assert where(view) == (0, "breakpoint before team/two: n == 4 in t/team#1")
    view = await watcher.run(breakpoints=stops)
    assert (view.progress.status, view.values["m"]) == ("completed", 40)
    assert [event.line for event in watcher.events_of(BreakpointHit) if event.line] == ["3 to 4", "4 to 40"]


async def test_a_step_into_a_subgraph_pauses_before_its_first_node_and_a_step_of_the_outer_one_leads_out(
    bench: Bench,
) -> None:
    watcher = await bench.watch(nested(bench.store))
    await watcher.driver.execute(Start({}))
    view = await watcher.step(into=True)
    assert (view.progress.head, view.progress.status) == (0, "waiting")
    inside = (await watcher.driver.snapshot()).unfinished
    assert inside is not None
    cursor = bench.store.cursor(inside.child)
    assert cursor is not None
    assert (cursor.head, cursor.status, cursor.reason) == (0, "waiting", "paused")
    view = await watcher.step()
    assert (view.progress.head, view.values["m"], view.progress.next_node) == (1, 40, "last")


# How they are kept


def test_breakpoints_are_saved_for_each_graph_and_a_damaged_file_is_moved_aside(tmp_path: Path) -> None:
    mine, other = KeptBreakpoints(tmp_path, "mine"), KeptBreakpoints(tmp_path, "other")
    assert mine.load() == ()
    mine.save(tuple(READ.values()))
    assert (KeptBreakpoints(tmp_path, "mine").load(), other.load()) == (tuple(READ.values()), ())
    (file,) = tmp_path.iterdir()
    file.write_bytes(b'{"graph": "mine", "breakpoints": [{}]}')
    damaged = KeptBreakpoints(tmp_path, "mine")
    assert damaged.load() == ()
    assert "can't be read" in damaged.problem
    assert [path.suffix for path in tmp_path.iterdir()] == [".damaged"]
    assert KeptBreakpoints(tmp_path, "mine").problem == ""


def test_breakpoints_that_can_not_be_saved_are_reported_and_still_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptBreakpoints(tmp_path / "file", "mine")
    kept.save((Breakpoint("tool"),))
    assert "can't be kept" in kept.problem
    assert kept.load() == ()
