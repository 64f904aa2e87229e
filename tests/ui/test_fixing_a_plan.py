"""A plan that does not parse opens in the editor, and once it is fixed the run continues."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import TextArea

from hitl_tui import Agent, ScriptedModel, planner_workflow
from hitl_tui.engine.commands import Step
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer, SQLiteCheckpointer
from hitl_tui.ui.screens.edit import FailedValueScreen
from tests.support.spec import spec
from tests.ui.harness import Screen, live

pytestmark = spec("15")

PLAN = "writer: Write.\nThe editor looks at it"
QUOTED = "line 2 of the plan, 'The editor looks at it', has no colon"


@pytest.fixture
def store(tmp_path: Path) -> Checkpointer:
    return SQLiteCheckpointer(tmp_path / "runs.db")


def planner(store: Checkpointer) -> GraphRunner:
    def reply(messages: Any) -> str:
        return f"done: {messages[-1]['content']}"

    return planner_workflow(
        Agent("planner", ScriptedModel([PLAN], pace=0)),
        [Agent("writer", ScriptedModel(reply, pace=0))],
        checkpointer=store,
    )


def planned(store: Checkpointer) -> AbstractAsyncContextManager[Screen]:
    return live(planner(store), inputs={"messages": "Do it."}, ready="planner")


def editing(it: Screen) -> bool:
    return bool(it.app.screen.query("#editor:focus"))


@pytest.mark.slow
async def test_the_editor_opens_with_the_quoted_line_and_saving_continues(store: Checkpointer) -> None:
    async with planned(store) as it:
        await it.press("c")
        await it.shows("dispatcher failed", QUOTED, "write each step as", "Applied; the run continues.")
        await it.until(lambda: editing(it), "the focus")
        await it.press("down", "end", "ctrl+u", *"writer: Check.", "ctrl+s")
        await it.shows("reached the end")
        found = store.load_latest("t")
        assert found is not None
        assert found[1]["results"] == ["done: Write.", "done: Check."]


@pytest.mark.slow
async def test_a_plan_that_is_still_broken_opens_again(store: Checkpointer) -> None:
    async with planned(store) as it:
        await it.press("c")
        await it.until(lambda: editing(it), "the focus")
        await it.press("down", "end", *" once more", "ctrl+s")
        await it.shows("'The editor looks at it once more', has no colon")


@pytest.mark.slow
async def test_after_a_single_step_saving_makes_a_single_step(store: Checkpointer) -> None:
    async with planned(store) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("s")
        await it.until(lambda: editing(it), "the focus")
        await it.press("down", "end", "ctrl+u", *"writer: Check.", "ctrl+s")
        await it.shows("step 3", "writer is next")


@pytest.mark.slow
async def test_leaving_the_editor_leaves_the_failure_with_its_options(store: Checkpointer) -> None:
    async with planned(store) as it:
        await it.press("c")
        await it.until(lambda: editing(it), "the focus")
        await it.press("escape")
        await it.shows("✗ dispatcher failed", "try again", "edit plan", "has no colon")
        assert it.app.screen is it.run
        await it.press("e")
        await it.shows(QUOTED, "write each step as")
        assert "the run goes on" not in it.text()


@pytest.mark.slow
async def test_keys_that_were_meant_for_the_run_are_not_typed_into_the_plan(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FailedValueScreen, "quiet", 600)
    async with planned(store) as it:
        await it.press("c")
        await it.shows("dispatcher failed", "Applied; the run continues.")
        await it.press("s", "x", "s")
        assert it.app.screen.query_one("#editor", TextArea).text == PLAN
        assert not editing(it)
        await it.press("tab", "x")
        assert it.app.screen.query_one("#editor", TextArea).text == f"x{PLAN}"


@pytest.mark.slow
async def test_the_editor_does_not_open_over_another_text_field(store: Checkpointer) -> None:
    async with planned(store) as it:
        await it.press("s")
        await it.shows("step 1")
        session = it.session
        await it.press("/", *"plan")
        it.run.command(partial(session.driver.execute, Step()))
        await it.until(lambda: session.view.error is not None, "the failure")
        await it.press("escape")
        await it.shows("✗ dispatcher failed", "edit plan")
        assert it.app.screen is it.run


@pytest.mark.slow
async def test_a_thread_that_had_failed_before_shows_its_failure_alone(store: Checkpointer) -> None:
    with pytest.raises(Exception, match="has no colon"):
        planner(store).invoke({"messages": "Do it."}, thread_id="t")
    async with live(planner(store)) as it:
        await it.shows("✗ dispatcher failed", "edit plan")
        assert it.app.screen is it.run
