"""What the log is asked: texts in all steps, moments at which a condition began to hold, values over time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from hitl_tui import END, START, Agent, Channel, Limits, ScriptedModel, StateGraph, append
from hitl_tui.agents.scripted import ToolCall
from hitl_tui.drivers.expressions import ExpressionInvalid
from hitl_tui.drivers.history import MOST_HITS, Asked, SearchHit, ask, bisect, series
from hitl_tui.drivers.history import search as search_log
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.reading import RecordedThread
from hitl_tui.errors import NodeFailed
from hitl_tui.stores import Checkpointer
from tests.benchmarks.long_thread import many_steps

LONG = "a text that is long enough to be kept as what changed in it. " * 20


def lookup(city: str) -> str:
    """The weather."""
    return f"drizzle in {city}"


def run(store: Checkpointer) -> Any:
    """Six steps: `look` (a model, a tool, a print) and `sum up` in turns; `key` is private."""

    def look(state: Any, config: Any) -> dict[str, Any]:
        n = state["n"] + 1
        if n == 1:
            config.agents["a"].chat("go")
        config.emit(f"printed Number {n}\n")
        return {
            "n": n,
            "score": None if n == 3 else n / 10,
            "facts": {"source": f"file_{n}%.csv"},
            "text": f"{LONG} ending {n}",
            "key": f"hidden {n}",
        }

    channels = {
        "n": Channel(0),
        "score": Channel(0.0),
        "facts": Channel([], reducer=append()),
        "text": Channel(LONG),
        "key": Channel("", visibility="private"),
    }
    graph = StateGraph(channels, name="asked")
    graph.add_node("look", look).add_node("sum up", lambda state: {})
    graph.add_edge(START, "look").add_edge("look", "sum up")
    graph.add_conditional_edge(
        "sum up", lambda state: "on" if state["n"] < 3 else "off", {"on": "look", "off": END}
    )
    agents = {
        "a": Agent("a", ScriptedModel([ToolCall("lookup", {"city": "Ürümqi"}), "Sunny."]), tools=[lookup])
    }
    runner = graph.compile(checkpointer=store, agents=agents)
    runner.invoke({}, thread_id="t")
    runner.update_state("t", {"score": 0.9}, actor="ann", note="reads well")
    return runner


Search = Callable[[str], Awaitable[list[SearchHit]]]


@pytest.fixture(params=["log", "driver"])
async def asked(request: pytest.FixtureRequest, store: Checkpointer) -> Any:
    """A thread by its log alone, and one that is open; both in one way."""
    runner = run(store)
    hub = LocalHub(store, lambda info: runner)
    if request.param == "driver":
        yield await hub.open("t")
    else:
        thread = RecordedThread(store, "t")

        class Awaited:
            async def search(self, *given: Any) -> None:
                search_log(thread.logged, store, *given)

            async def ask(self, *given: Any) -> Asked:
                return ask(thread.logged, store, *given)

            async def series(self, *given: Any) -> Any:
                return series(thread.logged, store, *given)

        yield Awaited()
    await hub.close()


async def search(asked: Any, query: str) -> list[SearchHit]:
    hits: list[SearchHit] = []
    progress: list[tuple[int, int]] = []

    def on_progress(some: tuple[SearchHit, ...], looked: int, of: int) -> None:
        hits.extend(some)
        progress.append((looked, of))

    await asked.search(query, on_progress)
    assert [looked for looked, _ in progress] == sorted(looked for looked, _ in progress)
    return hits


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("FILE_2%", [(3, "look", "update", "facts", "[1].source")]),
        ("null", [(5, "look", "update", "score", "")]),
        ("number 3", [(5, "look", "streamed", "", "")]),
        ("sunny", [(1, "look", "streamed", "a", "")]),
        ("ürümqi", [(1, "look", "tool", "lookup", "")]),
        ("drizzle", [(1, "look", "tool", "lookup", "")]),
        ("reads well", [(7, "ann", "update", "score", ""), (7, "ann", "note", "note", "")]),
        ("ending 2", [(3, "look", "update", "text", "")]),
        ("hidden", []),
        ("file_2_", []),
        ("  ", []),
    ],
)
async def test_a_text_is_found_wherever_a_step_has_it(
    asked: Any, query: str, places: list[tuple[Any, ...]]
) -> None:
    hits = await search(asked, query)
    found = [(hit.step, hit.node, hit.kind, hit.name, hit.path) for hit in hits]
    if (
        query == "reads well"
    ):  # the record and the checkpoint and the ledger have the note, as the store keeps it
        assert {(step, node) for step, node, *_ in found} == {(7, "ann")}
    else:
        assert found == places
    if places:
        assert all(hit.match.casefold() == query.casefold() for hit in hits)


def test_a_text_that_a_custom_reducer_has_kept_is_found_where_it_was_written(store: Checkpointer) -> None:
    def add(old: list[dict[str, str]], new: list[dict[str, str]]) -> list[dict[str, str]]:
        return [*old, *new]

    graph = StateGraph({"messages": Channel([], reducer=add)}, name="chat")
    graph.add_node("say", lambda state: {"messages": [{"text": "a zebra"}, {"text": "zebra two"}]})
    graph.add_node("end", lambda state: {"messages": [{"text": "bye"}]})
    graph.add_edge(START, "say").add_edge("say", "end").add_edge("end", END)
    runner = graph.compile(checkpointer=store)
    runner.invoke({"messages": [{"text": "the zebra"}]}, thread_id="t")
    hits: list[SearchHit] = []
    search_log(RecordedThread(store, "t").logged, store, "zebra", lambda some, *_: hits.extend(some))
    found = [(hit.step, hit.path, hit.before) for hit in hits if hit.kind == "update"]
    assert found == [(1, "[1].text", "a "), (0, "[0].text", "the ")]


def test_an_error_is_found_at_its_step_even_after_it_was_fixed(store: Checkpointer) -> None:
    def look(state: Any) -> dict[str, Any]:
        if not state["n"]:
            raise ValueError("no such town")
        return {"n": 2}

    graph = StateGraph({"n": Channel(0)}).add_node("look", look).add_edge(START, "look").add_edge("look", END)
    runner = graph.compile(checkpointer=store)
    with pytest.raises(NodeFailed):
        runner.invoke({}, thread_id="t")

    def found() -> list[tuple[Any, ...]]:
        hits: list[SearchHit] = []
        search_log(RecordedThread(store, "t").logged, store, "NO SUCH", lambda some, *_: hits.extend(some))
        return [(hit.step, hit.kind, hit.name, hit.match) for hit in hits]

    assert found() == [(0, "error", "failed", "no such")]
    runner.update_state("t", {"n": 1})
    runner.invoke(thread_id="t")
    assert found() == [(0, "error", "failed", "no such")]


class Enough(Exception):
    """The first result is there."""


@pytest.mark.slow
@pytest.mark.parametrize("text", ["step 20000 ", "step 1 step 1 "], ids=["the newest step", "the oldest"])
def test_the_first_result_is_reported_before_the_search_ends(long_store: Checkpointer, text: str) -> None:
    thread = RecordedThread(long_store, "long").logged
    result_counts: list[int] = []

    def on_progress(hits: tuple[SearchHit, ...], looked: int, of: int) -> None:
        result_counts.append(looked)
        assert of == 20_001
        if hits:
            raise Enough

    with pytest.raises(Enough):
        search_log(thread, long_store, text, on_progress)
    assert result_counts == sorted(result_counts)
    assert len(result_counts) > 5 or text.startswith("step 20000")


@pytest.fixture(scope="module")
def long_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkpointer]:
    """A file with a thread of 20,000 steps."""
    _, store = many_steps(tmp_path_factory.mktemp("history"), "long", 20_000)
    yield store
    store.close()


@pytest.mark.slow
async def test_the_newest_come_first_and_at_most_so_many(store: Checkpointer) -> None:
    graph = StateGraph({"n": Channel(0)}).add_node("count", lambda state: {"n": state["n"] + 1})
    graph.add_edge(START, "count")
    graph.add_conditional_edge("count", lambda state: str(state["n"] < 600), {"True": "count", "False": END})
    graph.compile(checkpointer=store, limits=Limits(max_iterations=700)).invoke({}, thread_id="t")
    hits: list[SearchHit] = []
    logged = RecordedThread(store, "t").logged
    search_log(logged, store, "count", lambda some, *_: hits.extend(some))
    assert hits == []
    search_log(logged, store, "5", lambda some, *_: hits.extend(some))
    assert [hit.step for hit in hits] == [n for n in range(600, 0, -1) if "5" in str(n)][:MOST_HITS]


async def test_steps_at_which_a_condition_became_true(asked: Any) -> None:
    result_counts: list[int] = []
    answer = await asked.ask(
        "score == null", lambda moments, *_: result_counts.extend(moment.step for moment in moments)
    )
    assert [moment.step for moment in answer.moments] == result_counts == [5]
    assert (answer.moments[0].node, answer.moments[0].before, answer.moments[0].after) == (
        "look",
        {"score": 0.2},
        {"score": None},
    )
    assert (answer.holds, answer.undefined, answer.looked) == (False, 0, 8)
    again = await asked.ask("score != null", lambda *_: None)
    assert [(moment.step, moment.actor) for moment in again.moments] == [(0, None), (7, "ann")]
    part = await asked.ask("facts[-1].source == 'file_2%.csv'", lambda *_: None)
    assert [moment.step for moment in part.moments] == [3]
    assert (part.undefined, part.why) == (1, "there is no item -1 among 0, at column 6")


@pytest.mark.parametrize(
    ("text", "why"), [("scor == 1", "there is no channel"), ("key == ''", "private"), ("n =", "invalid")]
)
async def test_an_invalid_search_is_refused_with_its_place(asked: Any, text: str, why: str) -> None:
    with pytest.raises(ExpressionInvalid, match=why):
        await asked.ask(text, lambda *_: None)


async def test_values_over_a_run_are_sampled(asked: Any) -> None:
    n, first, broken = await asked.series(["n", "facts[0].source", "nowhere"], 7, 4)
    assert [(sample.step, sample.value) for sample in n] == [(0, 0), (2, 1), (5, 3), (7, 3)]
    assert (first[0].why, first[-1].value) == ("there is no item 0 among 0, at column 6", "file_1%.csv")
    assert "there is no channel 'nowhere'" in broken[0].why


async def test_a_search_ends_with_the_task_that_waits_for_it(store: Checkpointer) -> None:
    runner = run(store)
    hub = LocalHub(store, lambda info: runner)
    driver = await hub.open("t")
    began, go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    progress: list[int] = []

    def on_progress(_hits: Any, looked: int, _of: int) -> None:
        progress.append(looked)
        loop.call_soon_threadsafe(began.set)
        go.wait()

    task = asyncio.create_task(driver.search("e", on_progress))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await loop.shutdown_default_executor()
    assert len(progress) == 1
    await hub.close()


def test_the_first_step_of_a_lasting_condition_is_found_by_bisection(store: Checkpointer) -> None:
    run(store)
    thread = RecordedThread(store, "t").logged
    answer = bisect(thread, store, "n >= 2")
    assert [(moment.step, moment.before, moment.after) for moment in answer.moments] == [
        (3, {"n": 1}, {"n": 2})
    ]
    assert answer.looked < 6
    assert bisect(thread, store, "n > 99").moments == ()
    assert [moment.step for moment in bisect(thread, store, "n >= 0").moments] == [0]


def test_a_fork_is_asked_about_what_it_shares_and_about_its_own(store: Checkpointer) -> None:
    runner = run(store)
    runner.fork("t", 3, "f", changes={"score": 7})
    hits: list[SearchHit] = []
    thread = RecordedThread(store, "f").logged
    search_log(thread, store, "number", lambda some, *_: hits.extend(some))
    assert [hit.step for hit in hits] == [3, 1]
    answer = ask(thread, store, "score > 0.15", lambda *_: None)
    assert [moment.step for moment in answer.moments] == [3]
    assert [moment.step for moment in ask(thread, store, "score == 7", lambda *_: None).moments] == [4]


def test_text_in_a_subgraph_thread_is_found_and_named(store: Checkpointer) -> None:
    channels = {"text": Channel("")}
    inner = StateGraph(channels, name="inner").add_node("write", lambda state: {"text": "a needle in here"})
    inner.add_edge(START, "write").add_edge("write", END)
    graph = StateGraph({"length": Channel(0)}, name="outer")
    graph.add_subgraph("deep", inner, inputs={}, outputs={})
    graph.add_node("after", lambda state: {"length": 1}).add_edge(START, "deep")
    graph.add_edge("deep", "after").add_edge("after", END)
    graph.compile(checkpointer=store).invoke({}, thread_id="t")
    thread = RecordedThread(store, "t")
    hits: list[SearchHit] = []
    search_log(thread.logged, store, "NEEDLE", lambda some, looked, of: hits.extend(some))
    (hit,) = hits
    assert hit.thread
    assert (hit.step, hit.name, hit.match) == (1, "text", "needle")
    assert RecordedThread(store, hit.thread).state_at(1)["text"] == "a needle in here"


def test_a_fork_is_looked_through_with_the_threads_of_the_steps_that_it_shares(store: Checkpointer) -> None:
    inner = StateGraph({"text": Channel("")}, name="inner")
    inner.add_node("write", lambda state: {"text": "a needle in here"})
    inner.add_edge(START, "write").add_edge("write", END)
    graph = StateGraph({"length": Channel(0)}, name="outer")
    graph.add_subgraph("deep", inner, inputs={}, outputs={})
    graph.add_node("after", lambda state: {"length": 1}).add_edge(START, "deep")
    graph.add_edge("deep", "after").add_edge("after", END)
    runner = graph.compile(checkpointer=store)
    runner.invoke({}, thread_id="t")
    runner.fork("t", step=1, new_thread_id="f")
    runner.fork("t", step=0, new_thread_id="g")
    found = {name: list[SearchHit]() for name in ("f", "g")}
    for name, hits in found.items():
        search_log(
            RecordedThread(store, name).logged, store, "needle", lambda some, *_, to=hits: to.extend(some)
        )
    assert [(hit.name, hit.match) for hit in found["f"]] == [("text", "needle")]
    assert not found["g"]
