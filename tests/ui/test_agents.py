"""Agents on screen: what they remember, forgetting it, and trying a step with other settings."""

from __future__ import annotations

import threading
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import Agent, ScriptedModel
from hitl_tui.agents import ToolCall
from hitl_tui.engine.graph.builder import END, START, StateGraph
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.channel import Channel
from hitl_tui.stores import Checkpointer, SQLiteCheckpointer
from tests.support.hostile import LINE
from tests.support.watching import PATIENCE
from tests.ui.harness import Screen, live


def drafts(messages: Any) -> str:
    """A draft that shows what the model was told and how much it remembers."""
    instructions = next((one["content"] for one in messages if one["role"] == "system"), "nothing")
    prompts = sum(one["role"] == "user" for one in messages)
    return f"A draft after {prompts} prompts, instructions: {instructions}"


def graph(store: Checkpointer, model: Any = drafts, **options: Any) -> GraphRunner:
    """Two steps of a writer, and an editor that is never asked."""

    async def write(_state: Any, config: Any) -> Any:
        return {"draft": await config.agents["writer"].achat("Write.")}

    script = ScriptedModel(model, pace=0)
    channels = {
        "draft": Channel(""),
        **{name: Channel([], reducer="overwrite") for name in ("log",) if "history" in options},
    }
    return (
        StateGraph(channels, name="drafts")
        .add_node("first", write)
        .add_node("second", write)
        .add_edge(START, "first")
        .add_edge("first", "second")
        .add_edge("second", END)
        .compile(
            checkpointer=store,
            agents={
                "writer": Agent("writer", script, "Be clear.", **options),
                "editor": Agent("editor", ScriptedModel(["unused"], pace=0)),
            },
        )
    )


@pytest.fixture
def store(tmp_path: Path) -> Checkpointer:
    return SQLiteCheckpointer(tmp_path / "runs.db")


def opened(runner: GraphRunner) -> AbstractAsyncContextManager[Screen]:
    return live(runner, inputs={}, ready="input")


@pytest.mark.slow
async def test_the_turns_of_an_agent_are_shown_beside_the_state(store: Checkpointer) -> None:
    async with opened(graph(store)) as it:
        await it.press("c")
        await it.shows("reached the end")
        await it.press("A")
        await it.shows("writer", "editor", "2 calls", "1 user", "Write.", "4 assistant", "after 2 prompts")
        await it.shows("State at step 2", "draft", "going back, an edit", "does not", "4 turns")
        await it.press("down")
        await it.shows("no turns", "no calls yet")
        await it.press("A")
        await it.shows("Timeline")


@pytest.mark.slow
async def test_forgetting_needs_a_confirmation_and_is_logged(store: Checkpointer) -> None:
    async with opened(graph(store)) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("A")
        await it.shows("2 turns")
        await it.press("x")
        await it.shows("forgets its 2 turns", "forget them")
        await it.press("shift+tab", *"why not", "tab", "f")
        await it.shows("no turns", "0 turns")
        await it.press("escape", "s")
        await it.shows("A draft after 1 prompts")
        (entry,) = [one for one in store.ledger("t") if one.kind == "agent"]
        assert (entry.actor, entry.note, entry.data) == ("anna", "why not", {"agent": "writer", "forgot": 2})


@pytest.mark.slow
async def test_turns_in_a_channel_are_state_and_are_not_forgotten_here(store: Checkpointer) -> None:
    async with opened(graph(store, history="channel:log")) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("A")
        await it.shows("in the channel log, part of the state", "2 turns, in a channel", "after 1 prompts")
        await it.press("x")
        await it.shows("edit that channel")
        assert not [one for one in store.ledger("t") if one.kind == "agent"]


@pytest.mark.slow
async def test_a_step_is_re_run_with_other_instructions_in_a_fork_and_compared(
    store: Checkpointer,
) -> None:
    async with opened(graph(store)) as it:
        await it.press("c")
        await it.shows("reached the end")
        await it.press("[")
        await it.shows("not the newest step")
        await it.press("e")
        await it.shows("Makes a new thread", "The fork will run: second.")
        await it.press("escape", "T")
        await it.shows("writer now uses scripted/scripted", "run step 1 again in a fork", "Be clear.")
        await it.shows("The fork will run: first, second.")
        assert "change this thread" not in it.text()
        await it.press("tab", "tab", "ctrl+k", *"Be brief.", "tab", "f")
        await it.shows("t-b", "instructions: Be brief.")
        await it.shows("= compares it with t")
        await it.press("=")
        await it.shows("t @ 2", "t-b @ 1", "instructions: Be clear.", "instructions: Be brief.")
        await it.press("escape", "[")
        await it.shows("then, by anna: writer:", "Be brief.")
        assert store.ledger("t") == [one for one in store.ledger("t") if one.kind != "agent"]
        (entry,) = [one for one in store.ledger("t-b") if one.kind == "agent"]
        assert entry.data["is"] == {"instructions": "Be brief."}


@pytest.mark.slow
async def test_a_step_is_re_run_with_another_model(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ScriptedModel.__init__.__kwdefaults__, "pace", 0.0)
    async with opened(graph(store)) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("T")
        await it.shows("run step 1 again in a fork")
        await it.write("demo/advisor")
        await it.press("tab", "tab", "tab", "f")
        await it.shows("t-b", "= compares it with t")
        await it.press("=")
        await it.shows("t @ 1", "t-b @ 1", "instructions: Be clear.")
        made = store.checkpoint("t-b", 1)
        assert made is not None
        assert [(use.agent, use.provider, use.model) for use in made.uses] == [("writer", "demo", "advisor")]
        (entry,) = [one for one in store.ledger("t-b") if one.kind == "agent"]
        assert entry.data["is"] == {"model": "demo/advisor"}


@pytest.mark.slow
async def test_changed_instructions_apply_from_the_next_step(store: Checkpointer) -> None:
    async with opened(graph(store)) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("T")
        await it.shows("temperature", "change this thread")
        await it.press("tab", *"0.5", "tab", "tab", "n")
        await it.shows("writer: temperature 0.5, from the next step on")
        await it.shows("then, by anna: writer: temperature")
        await it.press("A")
        await it.shows("changed: temperature", "temperature  changed 0.5")
        await it.press("T")
        await it.shows("back to the graph's settings")
        await it.press("tab", "tab", "tab", "b")
        await it.shows("temperature as in the graph")


@pytest.mark.slow
async def test_the_page_gives_the_selected_agent_other_settings(store: Checkpointer) -> None:
    async with opened(graph(store)) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("A")
        await it.shows("writer", "editor", "2 turns")
        await it.press("down", "c")
        await it.shows("editor now uses scripted/scripted", "another agent: writer")
        await it.press("tab", *"1", "tab", "tab", "a")
        await it.shows("writer now uses scripted/scripted", "another agent: editor")
        await it.press("tab", *"0.5", "tab", "tab", "n")
        await it.shows("writer: temperature 0.5, from the next step on")
        (entry,) = [one for one in store.ledger("t") if one.kind == "agent"]
        assert (entry.actor, entry.data["agent"], entry.data["is"]) == (
            "anna",
            "writer",
            {"temperature": 0.5},
        )


@pytest.mark.slow
async def test_instructions_of_several_lines_are_kept_and_changed_line_by_line(store: Checkpointer) -> None:
    async with opened(graph(store)) as it:
        await it.press("s")
        await it.shows("step 1")
        for line in ("One.", "Two."):
            await it.press("T")
            await it.shows("Be clear.")
            await it.press("tab", "tab", "down", "end", "ctrl+j", *line, "tab", "n")
            await it.shows(f"{line}”, from the next step on")
        entries = [one.data["is"]["instructions"] for one in store.ledger("t") if one.kind == "agent"]
        assert entries == ["Be clear.\nOne.", "Be clear.\nOne.\nTwo."]


@pytest.mark.slow
async def test_while_the_thread_runs_a_change_is_refused_and_what_was_typed_stays(
    store: Checkpointer,
) -> None:
    may_continue = threading.Event()

    def slow_at_last(messages: Any) -> str:
        if sum(one["role"] == "user" for one in messages) > 1:
            assert may_continue.wait(PATIENCE)
        return drafts(messages)

    async with opened(graph(store, slow_at_last)) as it:
        await it.press("c")
        await it.until(lambda: it.session.view.progress.head == 1)
        await it.press("T")
        await it.shows("run step 1 again in a fork")
        await it.press("tab", *"0.5", "tab", "tab", "n")
        await it.shows("is running", "0.5")
        may_continue.set()
        await it.until(lambda: it.session.view.progress.head == 2)
        await it.shows("run step 1 again in a fork")
        await it.press("tab", "tab", "tab", "n")
        await it.shows("writer: temperature 0.5, from the next step on")


@pytest.mark.slow
async def test_an_impossible_change_is_reported_before_anything_runs(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with opened(graph(store)) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("T")
        await it.shows("run step 1 again")
        await it.press("tab", "tab", "tab", "f")
        await it.shows("nothing is changed yet")
        await it.write("demo/nothing")
        await it.press("tab", "tab", "tab", "f")
        await it.shows("there is no demo model 'demo/nothing'")
        await it.press("escape")
        assert store.info("t-b") is None


@pytest.mark.slow
async def test_a_missing_key_is_reported_and_can_be_ignored(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with opened(graph(store)) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("T")
        await it.shows("run step 1 again")
        await it.write("openai/gpt-4o")
        await it.press("tab", "tab", "tab", "n")
        await it.shows("openai/gpt-4o: no API key; set OPENAI_API_KEY", "use these settings all the same")
        await it.press("escape")
        await it.shows("Try other settings", "openai/gpt-4o")
        await it.press("tab", "tab", "tab", "n")
        await it.shows("use these settings all the same")
        await it.press("n")
        await it.shows("model “openai/gpt-4o”, from the next step on")


@pytest.mark.slow
async def test_hostile_turns_are_escaped(store: Checkpointer) -> None:
    async with opened(graph(store, lambda messages: f"{LINE} end")) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("A")
        await it.shows("2 assistant")
        assert "\x1b" not in it.text()
        assert "\u202e" not in it.text()


@pytest.mark.parametrize(
    "size",
    [
        pytest.param((80, 24), marks=pytest.mark.slow),
        pytest.param((60, 20), marks=pytest.mark.slow),
        (40, 12),
    ],
)
@pytest.mark.slow
async def test_small_screens_have_room_for_it(store: Checkpointer, size: tuple[int, int]) -> None:
    async with opened(graph(store)) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.pilot.resize_terminal(*size)
        await it.press("A")
        await it.shows("writer", "model")
        await it.press("T")
        await it.shows("Try other settings")
        if size[1] < 20:
            await it.press("tab", "tab", "tab")
        await it.shows("run step 1 again", "Esc   go back")


def look(day: str) -> str:
    """A free hour."""
    return f"noon on {day}"


def looks_once(messages: Any) -> Any:
    asked = [one for one in messages if one["role"] == "tool"]
    return "At noon." if asked else ToolCall("look", {"day": "monday"})


@pytest.mark.slow
async def test_a_tool_call_is_shown_with_its_arguments_and_result(store: Checkpointer) -> None:
    async with opened(graph(store, looks_once, tools=[look])) as it:
        await it.press("s")
        await it.shows('tool look {"day": "monday"} ->', "“noon")
        await it.press("A")
        await it.shows("calls look", '"day": "monday"', "3 tool look gave", "noon on monday", "4 assistant")


@pytest.mark.slow
async def test_a_past_step_shows_which_tools_it_called(store: Checkpointer) -> None:
    async with opened(graph(store, looks_once, tools=[look])) as it:
        await it.press("c")
        await it.shows("reached the end", "What step 2 changed")
        assert "called look" not in it.text()
        await it.press("[")
        await it.shows("What step 1 changed", "writer called look", '{"day": "monday"}', "“noon on monday”")
