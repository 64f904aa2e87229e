"""The keys of what lies over the run are changed by id, and everything that names a key names the new one."""

from __future__ import annotations

import pytest
from textual.command import CommandPalette

from hitl_tui.errors import LogCorrupt
from hitl_tui.ui.screens.damaged import Damage, DamagedScreen
from hitl_tui.ui.theme import Look
from hitl_tui.ui.widgets.search import SearchPane
from hitl_tui.view.review import GRACE
from tests.support import nested
from tests.ui.harness import Desk, desk
from tests.ui.real import real
from tests.ui.test_asking import SCHEMA, asking

MINE = {
    "list.up": "u",
    "list.down": "Z",
    "list.page_down": "ctrl+f",
    "page.close": "f10",
    "app.back": "f8",
    "look.enter": "o",
    "look.reveal": "r",
    "ask.down": "f3",
    "ask.take": "f9",
    "ask.back": "f8",
    "form.next": "f6",
    "form.done": "f7",
    "form.leave": "f8",
    "reason.leave": "f7",
    "card.reason": "w",
    "find.go": "f5",
    "find.down": "f6",
    "find.back": "f8",
    "check.strict": "S",
    "check.go": "G",
    "check.threads": "L",
    "compare.side": "s",
    "compare.back": "p",
    "compare.swap": "X",
    "agents.whole": "W",
    "branches.next": "b",
    "breaks.switch": "x",
    "breaks.condition": "c",
    "breaks.back": "f8",
}
MY_LOOK = Look(keys=MINE)


async def closed(it: Desk, *keys: str) -> None:
    await it.press(*keys)
    await it.until(lambda: it.app.screen is it.run, "the run screen")


async def test_no_key_of_any_screen_is_refused():
    async with desk(look=MY_LOOK) as it:
        assert it.app.keymap.problems == ()


@pytest.mark.slow
async def test_comparing():
    async with desk(look=MY_LOOK) as it:
        await it.press("equals_sign")
        await it.shows("s Side", "p ] Step", "X Swap", "u Z Channel", "F10 Back", "^f Scroll")
        await it.shows("◂ closure-explainer @ 3")
        await it.press("escape", "tab", "x", "left_square_bracket")
        await it.press("p")
        await it.shows("closure-explainer @ 2")
        await it.press("X")
        await it.shows("◂ closure-explainer @ 4")
        await closed(it, "f10")


@pytest.mark.slow
async def test_finding():
    async with desk(look=MY_LOOK) as it:
        await it.press("slash")
        await it.shows("F5 Go there", "↑ F6 Select", "F8 Back")
        await it.press(*"clo")
        await it.until(lambda: it.app.screen.query_one(SearchPane).looked_for == "clo", "the search")
        await it.press("enter", "escape", "f6", "f5")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        assert it.run.finding is not None
        assert it.run.finding[2] == 1


@pytest.mark.slow
async def test_breakpoints():
    async with desk(look=MY_LOOK) as it:
        await it.press("B")
        await it.shows("x: on or off", "c: edit · F8: back")
        await it.press("Z", "x", "c", "end", *": x = 1")
        await it.shows("column")
        await it.press("f8")
        await closed(it, "f8")
        assert len(it.session.breakpoints) == 1


@pytest.mark.slow
async def test_pages_and_help():
    async with desk(look=MY_LOOK, size=(100, 24)) as it:
        await it.press("question_mark")
        await it.shows("F10 Back", "Run one node")
        await it.press(*["Z"] * 12)
        await it.gone("Run one node")
        await it.press("escape")
        await closed(it, "f10")
        await it.press("dollar_sign")
        await it.shows("has cost", "F10 Back")
        await closed(it, "f10")


@pytest.mark.slow
async def test_questions_and_their_choices():
    async with desk(look=MY_LOOK, at_end=False) as it:
        await it.press("x")
        await it.shows("F8    go back", "e    cancel the thread")
        await it.press("enter")
        await closed(it, "f8")
        await it.press("x")
        await it.shows("cancel the thread")
        await it.press("f3", "f9")
        await it.until(lambda: it.commands("cancel") or it.commands("cancel_attempt"))


@pytest.mark.slow
async def test_moving_about_in_the_panes_and_back_to_the_newest_step():
    async with desk(look=MY_LOOK) as it:
        before = it.run.query_one("#channels").cursor_row  # type: ignore[attr-defined]
        await it.press("Z")
        await it.until(lambda: it.run.query_one("#channels").cursor_row == before + 1)  # type: ignore[attr-defined]
        await it.press("left_square_bracket")
        await it.shows("F8 newest")
        await it.press("s")
        await it.shows("F8 goes back to it")
        await it.press("f8")
        await it.shows("Channels at step 4")


@pytest.mark.slow
async def test_the_card_and_its_reason():
    async with desk(look=MY_LOOK) as it:
        await it.press("d")
        await it.shows("Your reason (w), kept in the log", "F8    later", "F9    ")
        it.clock.advance(GRACE + 0.1)
        await it.shows("undoes it")
        await it.press("w", *"why", "f7", "f9")
        await it.shows("undo it", "F9    send it now")
        await it.press("z")
        await it.gone("undo it")
        await it.press("f8")
        await it.gone("Your answer")


@pytest.mark.slow
async def test_a_form_on_the_card():
    tape = asking({"title": "What to order?", "schema": SCHEMA})
    async with desk(tape, look=MY_LOOK) as it:
        await it.press("d")
        await it.card_listens("Your answer (w), * must be given")
        await it.press(*"ink", "f7", *"3", "f6", "right", "f8", "f9")
        await it.shows("undo it")


@pytest.mark.slow
async def test_branches():
    async with real(nested.settled, look=MY_LOOK) as it:
        await it.press("c")
        await it.shows("DONE")
        await it.press("o")
        await it.shows("u Z Select", "b Next problem", "F10 Back", "looking at ants")
        await it.press("b")
        await it.shows("looking at bees")
        await closed(it, "f10")


@pytest.mark.slow
async def test_verifying():
    async with real(nested.settled, look=MY_LOOK) as it:
        await it.press("c")
        await it.shows("DONE")
        await it.press("V")
        await it.shows("nothing is wrong", "S Strict", "G Go to step", "F10 Back")
        await it.press("S")
        await it.shows("▸ S Strict")
        await closed(it, "f10")


@pytest.mark.slow
async def test_a_damaged_thread():
    async with desk(look=MY_LOOK) as it:
        assert it.app.hub is not None
        damage = Damage(it.driver, LogCorrupt("step 2 has another hash"))
        it.app.push_screen(DamagedScreen(it.app.hub, damage, "Quit"))
        await it.shows("L opens another thread", "L Threads", "F10 Quit")
        await it.press("L")
        await it.shows("closure-explainer-b")


@pytest.mark.parametrize(
    ("key", "entry", "word"),
    [("equals_sign", "Swap  (X)", "swap"), ("t", "Search  (/)", "part of a name")],
    ids=["of the comparison", "of the list of threads"],
)
@pytest.mark.slow
async def test_the_palette_lists_and_does_the_actions_of_a_screen(key: str, entry: str, word: str):
    async with desk(look=MY_LOOK) as it:
        await it.press(key)
        await it.until(lambda: it.app.screen is not it.run)
        over = it.app.screen
        await it.shows("Back")
        assert entry in {command.title for command in it.app.get_system_commands(over)}
        await it.press("ctrl+p")
        await it.until(lambda: isinstance(it.app.screen, CommandPalette))
        await it.press(*word)
        await it.shows(entry)
        await it.press("enter")
        await it.until(lambda: it.app.screen is over)
        if key == "equals_sign":
            await it.shows("◂ closure-explainer @ 4")
        else:
            await it.until(lambda: getattr(over.focused, "id", "") == "search")
