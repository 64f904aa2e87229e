"""An error in whatever a screen does is shown and logged; the app stays, and can be left."""

from __future__ import annotations

from asyncio import Event
from collections.abc import Callable
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.widgets._toast import Toast

from hitl_tui.errors import HitlError
from hitl_tui.ui.screens.page import OverlayScreen
from hitl_tui.ui.screens.run import RunScreen
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.work import start_work
from tests.ui.harness import Desk, desk


def boom(*_: Any, **__: Any) -> Any:
    raise ValueError("[red]no value[/]")


async def fail_later() -> None:
    boom()


async def refuse() -> None:
    raise HitlError("that can't be done", "do something else")


class Broken(OverlayScreen):
    def compose(self) -> ComposeResult:
        boom()
        yield from ()


def in_a_key(it: Desk, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunScreen, "action_do", boom)
    it.app.simulate_key("c")


def in_a_message(it: Desk, patch: pytest.MonkeyPatch) -> None:
    pane = it.run.query_one(ChannelsPane)
    patch.setattr(RunScreen, "share_rows", boom)
    pane.post_message(ChannelsPane.Selected("draft", picked=True))


def in_a_callback(it: Desk, patch: pytest.MonkeyPatch) -> None:
    it.run.call_after_refresh(boom)


def in_a_timer(it: Desk, patch: pytest.MonkeyPatch) -> None:
    it.run.set_timer(0.001, boom)


def in_a_worker(it: Desk, patch: pytest.MonkeyPatch) -> None:
    start_work(it.app, fail_later)


def in_a_new_screen(it: Desk, patch: pytest.MonkeyPatch) -> None:
    it.app.push_screen(Broken())


@pytest.mark.parametrize(
    "place", [in_a_key, in_a_message, in_a_callback, in_a_timer, in_a_worker, in_a_new_screen]
)
@pytest.mark.slow
async def test_an_error_is_shown_and_the_app_continues(
    place: Callable[[Desk, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk() as it:
        with monkeypatch.context() as patch:
            place(it, patch)
            await it.shows("ValueError: [red]no value[/]", "the details are in")
        assert {type(error) for error in it.app.caught_errors} == {ValueError}
        it.app.caught_errors.clear()
        await it.until(lambda: it.app.screen is it.run)
        await it.press("question_mark")
        await it.until(lambda: it.app.screen is not it.run)
        await it.press("escape", "q")
        await it.until(lambda: it.app._exit)


@pytest.mark.slow
async def test_a_refusal_in_work_of_the_app_is_shown() -> None:
    async with desk() as it:
        start_work(it.app, refuse)
        await it.shows("that can't be done")
        assert it.app.caught_errors == []


async def test_a_toast_whose_time_is_over_by_the_time_it_is_made_does_not_freeze_the_app() -> None:
    async with desk() as it:
        it.app.notify("too late", timeout=5)
        await it.shows("too late")
        [notification] = it.app._notifications
        notification.raised_at -= 10
        assert notification.has_expired
        assert Toast(notification)._timeout > 0


async def test_errors_of_every_repaint_end_the_app_with_the_error() -> None:
    async with desk() as it:
        for _ in range(30):
            it.run.call_later(boom)
        await it.until(lambda: it.app._exception is not None)
        assert isinstance(it.app._exception, ValueError)
        it.app._exception = None
        it.app.caught_errors.clear()


async def test_quitting_needs_neither_a_sound_view_nor_a_hub_that_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with desk() as it:
        monkeypatch.setattr(RunScreen, "situation", property(boom))
        monkeypatch.setattr(RunScreen, "unsent", property(boom))
        monkeypatch.setattr(it.app.hub, "close", boom)
        it.run.action_do("app.quit")
        await it.until(lambda: it.app._exit)
        it.app.caught_errors.clear()


@pytest.mark.slow
async def test_a_failure_while_its_screen_is_removed_is_ignored() -> None:
    """Textual takes the parts of a screen out before it cancels the work of that screen."""
    async with desk() as it:
        screen = OverlayScreen()
        await it.app.push_screen(screen)
        removal = Event()

        async def paint_late() -> None:
            await removal.wait()
            screen.query_one("#missing")

        work = start_work(screen, paint_late)
        screen._pruning = True  # as `App._prune` marks it, with the screen still on the stack
        removal.set()
        await it.until(lambda: work.is_finished, "the end of the work")
        screen._pruning = False
        assert it.app.caught_errors == []
