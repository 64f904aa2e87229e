"""Configured keys work, and everything that shows a key shows them."""

from __future__ import annotations

import ast
import dataclasses
import inspect

import msgspec
import pytest
from textual.command import CommandPalette

from hitl_tui.ui.screens import run_actions
from hitl_tui.ui.screens.run_actions import HANDLERS
from hitl_tui.ui.theme import Look
from hitl_tui.verbs.actions import ACTIONS
from hitl_tui.verbs.keymap import load_keymap
from hitl_tui.view.review import GRACE
from tests.support import tape as tapes
from tests.ui.harness import Desk, desk

MINE = {
    "run.step": "f7",
    "run.continue": "f5",
    "run.pause": "f8",
    "change.decide": "u",
    "change.edit": "f4",
    "change.fork": "f3",
    "change.extend": "",
    "card.undo": "u",
    "card.edit": "E",
    "app.palette": "ctrl+o",
    "app.help": "f1",
    "look.tab": "Z",
}


async def footer(it: Desk) -> str:
    await it.shows("Step")
    return it.text().splitlines()[-1]


async def test_the_footer_and_the_header_show_them():
    async with desk(tapes.failed_tape(), size=(160, 40), look=Look(keys=MINE)) as it:
        await it.shows("press F7 to try again, F4 to edit, F3 to fork")
        shown = await footer(it)
        for words in ("F7 Step", "F5 Continue", "u Decide", "F4 Edit", "F3 Fork", "F1 Help", "^o palette"):
            assert words in shown


@pytest.mark.slow
async def test_new_keys_work_and_old_ones_do_not():
    async with desk(at_end=False, look=Look(keys=MINE)) as it:
        await it.press("s", "c")
        await it.press("f7")
        await it.until(lambda: it.commands("step"))
        await it.press("f5")
        await it.until(lambda: it.commands("run"))
        assert len(it.commands("step")) == len(it.commands("run")) == 1


@pytest.mark.slow
async def test_two_actions_can_swap_their_keys():
    async with desk(at_end=False, look=Look(keys={"run.step": "c", "run.continue": "s"})) as it:
        await it.press("c")
        await it.until(lambda: it.commands("step"))
        assert not it.commands("run")


@pytest.mark.slow
async def test_reasons_name_them():
    async with desk(look=Look(keys=MINE)) as it:
        await it.press("f7")
        await it.shows("it waits for your decision; u decides")
        await it.press("f8")
        await it.shows("F8 pauses a run, and nothing is running")


@pytest.mark.slow
async def test_an_action_without_a_key_is_named_by_its_place_in_the_palette():
    tape = tapes.advisor_tape()
    progress = msgspec.structs.replace(tape.end.progress, status="waiting", reason="limit", pending=())
    tape = dataclasses.replace(tape, end=msgspec.structs.replace(tape.end, progress=progress))
    async with desk(tape, look=Look(keys=MINE), size=(160, 40)) as it:
        await it.shows("press ^o Raise limit to extend it")
        await it.press("f7")
        await it.shows("a limit stopped the run; ^o Raise limit raises it")
        await it.press("m")
        await it.press("ctrl+o")
        await it.until(lambda: isinstance(it.app.screen, CommandPalette))
        await it.press(*"raise")
        await it.shows("Raise the limit that stopped the run")
        await it.gone("Run one node")
        await it.press("enter")
        await it.shows("nodes to run in total")


@pytest.mark.slow
async def test_banners_and_failures_show_them():
    async with desk(tapes.failed_tape(), look=Look(keys=MINE)) as it:
        await it.shows("F7 try again", "F4 edit the state first", "F3 fork from an earlier step")
        await it.press("left_square_bracket")
        await it.shows("F3 fork here", "F4 edit in a fork")


@pytest.mark.slow
async def test_the_card_has_them():
    async with desk(look=Look(keys=MINE)) as it:
        await it.press("u")
        await it.shows("Your answer")
        it.clock.advance(GRACE + 0.1)
        await it.shows("undoes it")
        await it.press("a")
        await it.shows("u    undo it")
        it.clock.advance(GRACE + 0.1)
        await it.press("z")
        await it.shows("u    undo it")
        it.clock.advance(GRACE + 0.1)
        await it.press("u")
        await it.gone("undo it")
        assert not it.commands("answer")


@pytest.mark.slow
async def test_the_narrow_screen_names_its_key():
    async with desk(look=Look(keys=MINE), size=(80, 24)) as it:
        await it.shows("Z next pane", "u decide")
        await it.press("Z")
        await it.shows("‹Changed›")


@pytest.mark.slow
async def test_help_and_palette_list_every_action_with_its_key():
    keymap = load_keymap(MINE)
    async with desk(look=Look(keys=MINE), size=(140, 180)) as it:
        entries = {command.title: command.help for command in it.app.get_system_commands(it.run)}
        for action in ACTIONS:
            key = keymap.shown(action.id)
            if action.id != "app.palette":
                title = f"{action.label}  ({key})" if key else action.label
                assert entries[title] == action.help
        await it.press("f1")
        rows: list[str] = []
        await it.shows("Raise the limit")
        rows = [row.strip(" │") for row in it.text().splitlines()]
        for action in ACTIONS:
            start = f"{keymap.all_shown(action.id):<9} {action.label}".strip()
            assert any(row.startswith(start) and action.help[:30] in row for row in rows), start


@pytest.mark.slow
async def test_problems_are_reported_once_and_the_other_keys_apply():
    keys = {"run.stp": "n", "run.pause": "excape", "run.step": "f7"}
    places = {"run.stp": "config.toml:5", "run.pause": "config.toml:6"}
    async with desk(at_end=False, look=Look(keys=keys, key_places=places)) as it:
        await it.shows("Some keys can't be used", "config.toml:5", "config.toml:6", "all other keys apply")
        await it.press("f7")
        await it.until(lambda: it.commands("step"))


@pytest.mark.slow
async def test_the_editor_has_them():
    async with desk(look=Look(keys={"edit.apply": "f5", "edit.back": "f6"})) as it:
        await it.press("e")
        await it.shows("Saved as step 5", "F5 Apply", "F4 $EDITOR", "F6 Back")
        await it.press("x", "ctrl+s")
        assert not it.commands("update_state")
        await it.press("f5")
        await it.until(lambda: it.commands("update_state"))


@pytest.mark.slow
async def test_the_list_of_threads_has_them():
    keys = {"threads.open": "o", "threads.search": "s", "threads.back": "f6"}
    async with desk(look=Look(keys=keys)) as it:
        await it.press("t")
        await it.shows("o Open", "s Search", "F6 Back", "closure-explainer-b")
        await it.press("s", *"oo")
        await it.shows("no thread matches")
        await it.press("backspace", "backspace", "f6", "f6")
        await it.until(lambda: it.app.screen is it.run)


@pytest.mark.slow
async def test_help_lists_the_screens_under_their_names():
    async with desk(look=Look(keys={"edit.apply": "f5"}), size=(140, 300)) as it:
        await it.press("question_mark")
        await it.shows("Editor", "F5        Apply", "Threads", "/         Search", "tab shift+tab Other side")


def test_every_action_has_one_handler_and_every_handler_an_action():
    assert set(HANDLERS) == {action.id for action in ACTIONS} - {"app.palette", "app.repaint"}
    tables = [
        node for node in ast.walk(ast.parse(inspect.getsource(run_actions))) if isinstance(node, ast.Dict)
    ]
    rows = [key.value for table in tables for key in table.keys if isinstance(key, ast.Constant)]
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("key", ["question_mark", "f1"])
@pytest.mark.slow
async def test_help_comes_over_other_screens_and_goes_back_to_them(key: str):
    async with desk() as it:
        await it.press("t")
        await it.shows("2 threads")
        await it.press(key)
        await it.shows("Keys, words and signs")
        await it.press("escape")
        await it.shows("2 threads")
        await it.gone("Keys, words and signs")
