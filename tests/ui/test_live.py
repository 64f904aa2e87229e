"""A run that goes on: what comes is shown once a frame, and the card opens where the user was going on."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from hitl_tui.drivers.protocol import Stamped
from hitl_tui.engine.log.events import NodeStarted, TextStreamed
from hitl_tui.ui.screens.edit import EditScreen, FailedValueScreen
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.stream import StreamPane
from hitl_tui.view.review import GRACE
from tests.support import tape as tapes
from tests.ui.harness import desk


@pytest.mark.slow
async def test_continue_opens_the_card_when_a_decision_waits():
    async with desk(at_end=False) as it:
        await it.press("c")
        await it.until(lambda: it.commands("run"))
        it.driver.advance_all()
        await it.shows("Your answer", "REVISE", "Picture a lunch box")


@pytest.mark.slow
async def test_stepping_leaves_the_card_closed():
    async with desk(at_end=False) as it:
        await it.press("s")
        await it.until(lambda: it.commands("step"))
        it.driver.advance_all()
        await it.shows("WAITING")
        assert "Your answer" not in it.text()


@pytest.mark.slow
async def test_the_selection_follows_what_changes_until_the_user_picks():
    async with desk(at_end=False) as it:
        it.driver.advance_all()
        await it.shows("Channels at step 4")
        await it.until(lambda: it.run.query_one(ChannelsPane).selected == "latest_draft")
        await it.press("up")
        await it.until(lambda: it.run.query_one(ChannelsPane).selected == "messages")


@pytest.mark.slow
async def test_streamed_text_is_wrapped_and_followed():
    tape = tapes.advisor_tape()
    progress = msgspec.structs.replace(tape.end.progress, status="running", pending=())
    start = msgspec.structs.replace(tape.end, progress=progress)
    number = start.last_event
    pieces = [NodeStarted("worker", 5, 1, tapes.T0)]
    events = [Stamped(number + 1, pieces[0])]
    events += [
        Stamped(
            number + 2 + index, TextStreamed("worker", "", f"word{index}{'.' if index % 9 else chr(10)} ")
        )
        for index in range(3000)
    ]
    tape = dataclasses.replace(tape, begin=start, events=tuple(events))
    async with desk(tape, at_end=False) as it:
        it.driver.advance(10)
        await it.shows("word5")
        it.driver.advance_all()
        await it.shows("word2999")
        pane = it.run.query_one(StreamPane)
        assert all(len(row) <= pane.size.width for row in pane._text.rows)


@pytest.mark.slow
async def test_a_node_that_waits_to_start_is_shown_as_waiting_only_until_then():
    waits = "waits for litellm, which is being imported"
    tape = tapes.advisor_tape()
    progress = msgspec.structs.replace(tape.end.progress, status="running", pending=())
    start = msgspec.structs.replace(tape.end, progress=progress)
    began = Stamped(start.last_event + 1, NodeStarted("worker", 5, 1, tapes.T0))
    async with desk(dataclasses.replace(tape, begin=start, events=(began,)), at_end=False) as it:
        it.run.waits_for = lambda: waits
        it.driver.advance_all()
        await it.shows("RUNNING", waits)
        it.run.waits_for = str
        await it.until(lambda: waits not in it.text())
        await it.shows("RUNNING")


@pytest.mark.slow
async def test_travel_to_another_thread_of_the_family():
    async with desk() as it:
        await it.shows("closure-explainer-b")
        await it.press("J")
        await it.shows("of closure-explainer-b", "open that thread")
        await it.press("enter")
        await it.until(lambda: it.session.thread_id == tapes.FORK)


@pytest.mark.slow
async def test_editing_from_the_card_comes_back_to_it():
    async with desk(tapes.advisor_tape()) as it:
        await it.press("d")
        await it.shows("Your answer")
        it.clock.advance(GRACE + 0.1)
        await it.shows("undoes it")
        it.run.edit_channel("latest_draft")
        await it.until(lambda: isinstance(it.app.screen, EditScreen))
        await it.press("escape")
        await it.shows("Your answer")


@pytest.mark.slow
async def test_quitting_with_unapplied_text_is_stopped():
    async with desk() as it:
        await it.press("e")
        await it.until(lambda: isinstance(it.app.screen, EditScreen))
        await it.press("x", "ctrl+q")
        await it.shows("not applied yet")
        assert not it.driver.closed


@pytest.mark.slow
async def test_the_footer_can_be_clicked():
    async with desk() as it:
        await it.shows("Decide")
        await it.pilot.click(offset=(it.text().splitlines()[-1].index("Decide"), 39))
        await it.shows("Your answer")


@pytest.mark.slow
async def test_limits_are_raised():
    tape = tapes.advisor_tape()
    progress = msgspec.structs.replace(tape.end.progress, status="waiting", reason="limit", pending=())
    tape = dataclasses.replace(tape, end=msgspec.structs.replace(tape.end, progress=progress))
    async with desk(tape) as it:
        await it.shows("limit reached")
        await it.press("c")
        await it.shows("a limit stopped the run; m raises it")
        await it.press("m")
        await it.shows("nodes to run in total")
        await it.press("enter")
        await it.until(lambda: it.commands("extend_limits"))


@pytest.mark.slow
async def test_a_failure_that_names_the_channel_to_fix_opens_it_in_the_editor():
    async with desk(tapes.failed_tape("advisor_feedback"), at_end=False) as it:
        it.driver.advance_all()
        await it.until(lambda: isinstance(it.app.screen, FailedValueScreen))
        await it.shows(
            "edit advisor_feedback at step 1", "KeyError: 'verdict'", "Applied; the run continues."
        )


@pytest.mark.slow
async def test_a_failure_that_names_no_channel_opens_nothing():
    async with desk(tapes.failed_tape(), at_end=False) as it:
        it.driver.advance_all()
        await it.shows("advisor failed", "edit the state first")
        await it.pilot.pause()
        assert it.app.screen is it.run


@pytest.mark.slow
async def test_a_thread_that_failed_earlier_offers_the_channel_to_fix():
    async with desk(tapes.failed_tape("advisor_feedback")) as it:
        await it.shows("edit advisor_feedback first")
        await it.until(lambda: it.run.query_one(ChannelsPane).selected == "advisor_feedback")
        assert it.app.screen is it.run
        await it.press("e")
        await it.until(lambda: isinstance(it.app.screen, EditScreen))
        await it.shows("edit advisor_feedback at step 1", "KeyError: 'verdict'")
        assert not isinstance(it.app.screen, FailedValueScreen)


@pytest.mark.slow
async def test_after_a_failure_another_channel_can_still_be_picked():
    async with desk(tapes.failed_tape("latest_draft")) as it:
        await it.until(lambda: it.run.query_one(ChannelsPane).selected == "latest_draft")
        await it.press("up")
        await it.until(lambda: it.run.query_one(ChannelsPane).selected == "messages")
        await it.press("e")
        await it.shows("edit messages at step 1")
        assert "KeyError" not in it.text()


async def test_the_reason_for_a_route_is_shown_above_what_the_step_changed():
    tape = tapes.advisor_tape()
    why = "next: researcher (named at character 20 of the reply; writer, at 1, comes later in the list)"
    last = msgspec.structs.replace(tape.end.checkpoints[-1], text=why)
    end = msgspec.structs.replace(tape.end, checkpoints=(*tape.end.checkpoints[:-1], last))
    async with desk(dataclasses.replace(tape, end=end)) as it:
        await it.shows("next: researcher (named at", "later in the list")
