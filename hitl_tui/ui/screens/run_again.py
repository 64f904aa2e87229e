"""Mend and run again: fork where the thread stands under the saved code, run on there, then compare."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hitl_tui.engine.commands import ReloadGraph, Rerun
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.ui.screens.dialogs import Dialog, DialogResult
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.repeats import repeat_lines, standing_words
from hitl_tui.view.session import ViewSession

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen


async def ask_rerun(screen: RunScreen, session: ViewSession) -> None:
    """Say what stands and what would run again, and ask whether to, or only to load the graph again."""
    name = session.free_name(session.thread_id)
    repeats = (await session.driver.preview(Rerun(name, screen.actor))).repeats

    def answered(answer: DialogResult | None) -> None:
        if answer is not None and answer.id == "again":
            screen.command(partial(_run_again, screen, session, name))
        elif answer is not None:
            screen.command(partial(_reload, screen, session))

    if repeats is None or repeats.head <= 0:  # nothing ran that could run again
        if session.view.graph_changed is None:
            screen.show_message("the graph's file is unchanged")
        else:
            await _reload(screen, session)
    elif session is screen.session:
        dialog = Dialog("Again", _text(session, repeats), _options(session, repeats, name))
        screen.app.push_screen(dialog, answered)


def _text(session: ViewSession, repeats: Repeats) -> list[str]:
    return [
        standing_words(repeats),
        *repeat_lines(repeats, in_fork=True),
        *(session.view.graph_changed or ()),
    ]


def _options(session: ViewSession, repeats: Repeats, name: str) -> list[Option]:
    options = []
    if repeats.nodes or repeats.rerouted or session.view.progress.status not in ("completed", "cancelled"):
        begin = f"run from step {repeats.step}" if repeats.step else "run all steps again"
        options.append(Option("again", "run.again", f"{begin} in the fork {name}"))
    if session.view.graph_changed is not None:
        options.append(Option("reload", "l", "only reload the graph; continue in this thread"))
    return [*options, BACK]


async def _run_again(screen: RunScreen, session: ViewSession, name: str) -> None:
    parent = session.thread_id
    await session.driver.execute(Rerun(name, screen.actor))
    session.family_stale = True
    await screen.open_thread(name)
    if screen.session is not None and screen.session.thread_id == name:
        screen.stepping.continue_()
        screen.show_message(f"{screen.key_hints['look.compare']} compares it with {parent}", name)


async def _reload(screen: RunScreen, session: ViewSession) -> None:
    """Go on with the graph as it is in its file now."""
    differences = await session.driver.execute(ReloadGraph(screen.actor))
    screen.show_message("; ".join(differences) or "the graph was reloaded", "Reloaded" if differences else "")
