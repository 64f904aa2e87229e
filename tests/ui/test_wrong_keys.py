"""What a wrong key costs a reviewer: the keys that lead back to where one was, with nothing decided."""

from __future__ import annotations

import time

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.ui.screens.queue import QueueScreen
from hitl_tui.view.review import GRACE
from tests.ui.harness import Clock, Screen
from tests.ui.test_queue import NAMES, ORDER, queue, shown, twelve

__all__ = ["twelve"]

IN_THE_QUEUE = {
    "enter": "Q",
    "space": "asterisk asterisk",
    "asterisk": "asterisk",
    "a": "escape",
    "p": "escape",
    "c": "c",
    "at": "escape",
    "slash": "escape",
    "o": "escape",
    "O": "O",
    "w": "w",
    "n": "escape Q",
    "escape": "Q",
    "q": "Q",
    "question_mark": "escape",
    "ctrl+p": "escape",
}
"""The way back from each key that does something."""
ON_THE_CARD = {
    "a": "z",
    "enter": "z",
    "r": "escape",
    "tab": "escape",
    "e": "escape",
    "c": "escape",
    "k": "k",
    "at": "escape",
    "plus": "escape",
    "y": "escape",
    "f": "escape",
    "x": "escape",
    "t": "escape",
    "n": "N",
    "Q": "enter",
    "escape": "d",
    "question_mark": "escape",
    "ctrl+p": "escape",
    "ctrl+c": "escape",
}
MOST = 2


def costs(key: str, back: list[str]) -> None:
    """Say what a wrong key costs (`-s` shows it); fails where that is more than a reviewer should pay."""
    print(f"{key}: {len(back)} keys back ({' '.join(back) or 'nothing happens'})")
    assert len(back) <= MOST


def untouched(store: SQLiteCheckpointer) -> tuple[object, ...]:
    """All that a key might have changed."""
    now = time.time_ns() // 1000
    return tuple(
        (store.ledger(name), store.cursor(name), [at.actor for at in store.attending(name, now) if at.claims])
        for name in NAMES
    )


@pytest.mark.slow
async def test_a_wrong_key_in_the_queue_costs_few_keys_and_decides_nothing(
    twelve: SQLiteCheckpointer,
) -> None:
    before = untouched(twelve)
    async with queue(twelve) as it:
        for key, way_back in IN_THE_QUEUE.items():
            back = way_back.split()
            await it.press(key)
            if key == "enter":
                await it.shows("Your answer", "press the key twice")
            await it.pilot.pause()
            for pressed in back:
                await it.press(pressed)
                await it.pilot.pause()
            await it.until(lambda: isinstance(it.app.screen, QueueScreen), f"the queue after {key}")
            await it.until(lambda: shown(it) == ORDER, f"all rows as before {key}")
            await it.shows("12, live", "most urgent first")
            await it.until(lambda: untouched(twelve) == before, f"nothing changed by {key}")
            await it.gone("least urgent first")
            await it.gone("marked, 12, live")
            costs(key, back)


async def memo(it: Screen) -> Clock:
    """The card of `memo-42`, opened from the queue, once its keys listen."""
    it.run.clock = clock = Clock()
    await it.press(*["down"] * ORDER.index("memo-42"), "enter")
    await it.until(lambda: it.session.thread_id == "memo-42", "the thread")
    await it.card_listens("Your answer")
    return clock


@pytest.mark.slow
async def test_a_wrong_key_on_the_card_costs_few_keys_and_decides_nothing(
    twelve: SQLiteCheckpointer,
) -> None:
    async with queue(twelve) as it:
        clock = await memo(it)
        before = untouched(twelve)
        for key, way_back in ON_THE_CARD.items():
            back = way_back.split()
            await it.press(key)
            await it.pilot.pause()
            if key == "k":
                await it.shows("you have claimed it")
            elif key == "Q":
                await it.shows("12, live")
            elif key == "n":
                await it.until(lambda: it.session.thread_id != "memo-42", "another thread")
                await it.card_listens()
            for pressed in back:
                await it.press(pressed)
                await it.pilot.pause()
            await it.until(
                lambda: it.app.screen is it.run and it.session.thread_id == "memo-42",
                f"the thread after {key}",
            )
            clock.advance(GRACE + 0.01)
            await it.until(
                lambda: it.run.card_open and it.card.review.state == "open", f"its card after {key}"
            )
            await it.until(lambda: untouched(twelve) == before, f"nothing changed by {key}")
            clock.advance(60)
            it.card._tick()
            await it.pilot.pause()
            assert untouched(twelve) == before, key
            costs(key, back)
