"""Random keys, pastes, clicks and resizes on every screen, over threads of all kinds.

    nice -n 19 python -m tests.support.fuzzing --inputs 100000 --seed 1 [--screen queue] [--seconds 600]

Everything goes through the app's own input parser, as from a terminal.  Most keys come in bursts, as from
somebody who types ahead: the app is given time to settle after each burst, and is judged then.  Found are: an
error that nobody caught, an app that no longer answers, and a decision that the card's model does not allow.
The inputs that led to it are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import logging
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import textual.screen
from textual import events

from hitl_tui.config import trust_file
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Start
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.loading.trust import Trust
from hitl_tui.stores import open_store
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.gate import is_other_button
from hitl_tui.ui.terminal_input import InputParser, is_burst
from hitl_tui.ui.theme import Look
from hitl_tui.view.review import UNDO, Review
from tests.support import rich_queue
from tests.support.flows import Clock as StoreClock
from tests.support.flows import Desk
from tests.ui.harness import Clock, booted

GRAPHS: Final = Path(__file__).with_name("fuzz_graphs.py")
KINDS: Final = ("failing", "private", "texting", "mapped", "counting", "done")
THREADS: Final = 50
FROZEN: Final = 20.0
"""Seconds of this process's CPU time that one burst may take."""
BURST: Final = (5, 20)
"""Fewest and most inputs of a burst."""
ALONE: Final = 0.5
"""How often an input is sent alone, and the app settles after it."""
ALONE_ON_CARD: Final = 0.9
WORK: Final = 0.02
"""Seconds to wait for the work that a burst has started; another burst may come meanwhile."""
HANGS: Final = 300.0
"""Seconds after which inputs that have not been handled are given up, and the process with them."""
_FRAMES: Final = 0.25
"""Seconds between frames: a layout for each sixtieth of a second would take most of the time."""
_LOOK: Final = 0.001
"""Seconds after which it looks again whether all was handled."""
_PAUSES: Final = (0.02, 0.1, 0.6, 1.2, 5.0)
"""Seconds between inputs, by the app's clock; in a burst they are short."""
SIZES: Final = ((120, 40), (80, 24), (200, 60), (60, 20), (40, 10), (20, 5), (1, 1), (140, 24), (100, 60))

OPENED_BY: Final[Mapping[str, str]] = {
    "run": "",
    "card": "d",
    "card reason": "dr",
    "comment": "dc",
    "queue": "Q",
    "batch": "Q*a",
    "policy": "Qp",
    "threads": "t",
    "deletion": "tmmX",
    "new": "\x0e",
    "help": "?",
    "breakpoints": "B",
    "watches": "W",
    "edit": "e",
    "fork": "f",
    "agents": "A",
    "try": "T",
    "costs": "$",
    "artifacts": "L",
    "items": "\x0b",
    "compare": "=",
    "check": "V",
    "family": "H",
    "inside": "I",
    "store": "\x1b[24~",
    "decisions": "\x04",
    "workers": "\x07",
    "copy": "y",
    "cancel": "x",
    "rollback": "U",
    "again": "R",
    "taint": "M",
    "contract": "i",
    "followed": "F",
    "find": "/",
    "palette": "\x10",
    "quit": "dq",
}
"""The keys that lead to each screen from that of a thread."""

_NAMED: Final = (
    *("\r", "\t", "\x1b[Z", " ", "\x7f", "\x1b[3~", "\x1b", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"),
    *("\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~", "\x1b[1;2A", "\x1b[1;2B", "\x1b[1;5C", "\x1b[1;2D"),
    *("\x1bOP", "\x1b[15~", "\x1b[17~", "\x1b[20~", "\x1b[21~", "\x1b[23~", "\x1b[24~", "\x1ba", "\x1bx"),
)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789?/=+-*$@<>[]{}#.,;:'\"()é日"
_DECIDING: Final = "aaarhegy\r\rnzjk"
"""What decides on cards, in dialogs and in lists, and what takes it back."""
_CONTROLS: Final = "".join(map(chr, (1, 2, 4, 5, 6, 7, *range(10, 13), 14, 15, 16, *range(18, 27))))
_TEXTS: Final = (
    "reads well so far \x1bx\x1b\ra\r",
    "approve\r",
    "a\ra\r",
    "no, shorter: the second paragraph\nsays it twice\r\n",
    "\x1b[31mred\x1b[0m \x9b31m\x00",
    '{"a": [1, 2.5, null]}',
    "~nobody/x.toml",
    "n > 2",
    "é日本語\u202e\u200b",
    "x" * 3000,
)


Given = str | tuple[int, int]
"""What is sent: what a terminal writes, or the size that it has from now on."""


class Found(msgspec.Struct, frozen=True):
    """Something that must not happen, with the inputs that led to it."""

    what: str
    screen: str
    inputs: tuple[str, ...]


def fill(path: Path, threads: int = THREADS) -> None:
    """Make a store of threads of all kinds."""
    store = open_store(str(path))
    rich_queue.fill(store)
    trust = Trust(trust_file(), str(getattr(store, "path", "")))
    now = time.time_ns() // 1000
    for number in range(threads - len(rich_queue.TWELVE)):
        kind = KINDS[number % len(KINDS)]
        runner = open_graph(f"{GRAPHS}:{kind}", store, {})
        trust.record(runner.source, "named")
        desk = Desk(runner, f"{kind}-{number}", StoreClock(now - number * 60_000_000))
        desk.do(Start({}, "ann"))
        desk.run()
    store.close()


class Fuzzer:
    """Sends random inputs to one app after another until it has sent as many as it should.

    Args:
        original: a store that `fill` has made, of which each app gets a copy.
    """

    def __init__(self, original: Path, folder: Path, seed: int) -> None:
        self.found: list[Found] = []
        self.sent = self.apps = self.decisions = 0
        self.screens: dict[str, int] = {}
        self._original, self._folder = original, folder
        self._random = random.Random(seed)
        self._inputs: deque[str] = deque(maxlen=40)
        self._last: events.Event | None = None
        """What the app is handling."""
        self._alive = time.monotonic()
        self._known: set[str] = set()
        self._parser = InputParser()
        self._decided_at: dict[int, float] = {}
        self._clock = Clock()
        self._app: HitlApp | None = None

    async def run(self, screen: str, inputs: int, until: float = float("inf")) -> None:
        """Send that many inputs, most of them to this screen, until a time of `time.monotonic`."""
        end = self.sent + inputs
        with self._judged(), self._watched():
            while self.sent < end and time.monotonic() < until:
                await self._session(screen, end, until)

    async def _session(self, screen: str, end: int, until: float) -> None:
        """One app until it is left."""
        self.apps += 1
        path = self._folder / f"{self.apps}.db"
        shutil.copy(self._original, path)
        store = open_store(str(path))
        hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))
        rows = store.threads()
        # A card needs a thread that waits; every other screen begins on any.
        asks = [row for row in rows if row.waiting_for] if OPENED_BY[screen].startswith("d") else rows
        first = self._random.choice(asks).info.thread_id
        size = self._random.choice(SIZES[:4])

        async def open_driver() -> Any:
            return hub, await hub.open(first)

        app = self._app = HitlApp(AppStart(open_driver, "tester"), Look())
        app.gate._clock = self._clock
        self._inputs.clear()
        self._note(f"open {first} at {size}")
        try:
            async with booted(app, size=size) as pilot:
                while app.run_screen is None or app.screen is not app.run_screen:
                    await pilot.pause()
                await pilot.pause()
                app.run_screen.clock = self._clock
                while self.sent < end and time.monotonic() < until and not app._exit:
                    if not await self._open(pilot, screen):
                        break
                    for _ in range(self._random.randint(1, 6)):
                        await self._send(pilot, self._burst(app))
                        if app._exit or self.sent >= end:
                            break
                app.caught_errors = []
        except Exception as error:
            self._find(f"the app ended: {''.join(traceback.format_exception(error)[-6:])}")
        finally:
            await hub.close()
            store.close()
            for file in self._folder.glob(f"{self.apps}.db*"):
                file.unlink()

    async def _open(self, pilot: Any, screen: str) -> bool:
        """Back to the thread, then to the screen; False where escape leads back to an editor that asks."""
        app = pilot.app
        for _ in range(8):
            if app._exit or app.screen is app.run_screen:
                break
            await self._send(pilot, ["\x1b"])
        if app.screen is not app.run_screen:
            return False
        if self._random.random() < 0.3:
            await self._send(pilot, ["n"])  # the next thread
        for key in OPENED_BY[screen].replace("\x1b[24~", "\0"):
            self._clock.advance(1)
            await self._send(pilot, ["\x1b[24~" if key == "\0" else key])
        self.screens[type(app.screen).__name__] = self.screens.get(type(app.screen).__name__, 0) + 1
        return True

    def _burst(self, app: HitlApp) -> list[Given]:
        """What comes before the app settles: several keys and pastes, or one input of any kind."""
        given = self._input(app)
        # On a card keys come one by one, too, or nothing would ever be decided.
        alone = ALONE if app.run_screen is None or not app.run_screen.card_state else ALONE_ON_CARD
        if not _may_follow(given) or self._random.random() < alone:
            return [given]
        more = (self._input(app) for _ in range(self._random.randint(*BURST) - 1))
        return [given, *filter(_may_follow, more)]

    def _input(self, app: HitlApp) -> Given:
        """What comes next: a key most of the time."""
        chance = self._random.random()
        if chance < 0.15:
            return self._random.choice(_DECIDING)
        if chance < 0.45:
            return self._random.choice(_LETTERS)
        if chance < 0.75:
            return self._random.choice(_NAMED)
        if chance < 0.80:
            return self._random.choice(_CONTROLS)
        if chance < 0.84:
            return f"\x1b[200~{self._random.choice(_TEXTS)}\x1b[201~"
        if chance < 0.88:
            return self._random.choice(_TEXTS[1:4])  # an unbracketed paste
        if chance < 0.98:
            width, height = app.size
            button = self._random.choice((0, 0, 0, 0, 1, 2, 64, 65, 32, 128))
            place = f"{self._random.randint(1, max(width, 1))};{self._random.randint(1, max(height, 1))}"
            press = f"\x1b[<{button};{place}M\x1b[<{button};{place}m"
            return press * self._random.choice((1, 1, 1, 2))
        return self._random.choice(SIZES)

    async def _send(self, pilot: Any, burst: Sequence[Given]) -> None:
        """Send inputs as a terminal does, and wait until they were handled."""
        app: HitlApp = pilot.app
        before = time.process_time()
        for given in burst:
            if app._exit:
                return
            self.sent += 1
            self._note(repr(given) if len(given) < 60 else repr(given[:60]) + "…")
            self._clock.advance(self._random.choice(_PAUSES if len(burst) == 1 else _PAUSES[:2]))
            if isinstance(given, tuple):
                await pilot.resize_terminal(*given)
                continue
            for message in (*self._parser.feed(given), *_ticked(self._parser)):
                if app._driver is not None:
                    app._driver.process_message(message)
            await asyncio.sleep(0)
        await _settled(app)
        self._alive = time.monotonic()
        took = time.process_time() - before
        if took > FROZEN:
            self._find(f"a burst took {took:.0f} s of CPU time")
        for error in app.caught_errors:
            frames = traceback.extract_tb(error.__traceback__)
            places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:])]
            where = " < ".join(places)
            self._find(f"{type(error).__name__}: {error} at {where}")
        app.caught_errors = []
        app._error_times.clear()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        over = threading.Event()
        self._alive = time.monotonic()

        def watch() -> None:
            while not over.wait(1):
                if time.monotonic() > self._alive + HANGS:
                    self._end_hanging()

        watchdog = threading.Thread(target=watch, daemon=True)
        watchdog.start()
        try:
            yield
        finally:
            over.set()
            watchdog.join()

    def _end_hanging(self) -> None:
        """Print where the app hangs and after what, and end: nothing else gets through to its loop."""
        print(f"HANGS on {self._app} after {' '.join(self._inputs)}", flush=True)
        faulthandler.dump_traceback(all_threads=True)
        os._exit(1)

    @contextlib.contextmanager
    def _judged(self) -> Iterator[None]:
        """Judge each decision as it is prepared and as it is sent, by the input that is handled then."""
        prepare, send = Review._prepare, Review.send_at_once
        take, hand_on = HitlApp.on_event, HitlApp._hand_on

        def prepared(review: Review, label: str, answer: Any, note: str = "", *, now: float) -> Any:
            effects = prepare(review, label, answer, note, now=now)
            self.decisions += 1
            self._judge(review, answer)
            self._decided_at[id(review)] = now
            return effects

        def sent(review: Review) -> Any:
            was = review.state
            decision = send(review)
            if decision is not None and was != "sending":
                self._find(f"{decision.label!r} was sent from the state {was}")
            if decision is not None and self._clock.now - self._decided_at.get(id(review), 0.0) < UNDO:
                self._judge_keys(f"{decision.label!r} was sent early")
            return decision

        async def taken(app: HitlApp, event: events.Event) -> None:
            if isinstance(event, events.MouseEvent | events.Resize):
                self._last = event
            await take(app, event)

        async def handed_on(app: HitlApp, event: events.Key | events.Paste) -> None:
            self._last = event  # one at a time, whatever has come since
            await hand_on(app, event)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(textual.screen, "UPDATE_PERIOD", _FRAMES)
            patch.setattr(HitlApp, "on_event", taken)
            patch.setattr(HitlApp, "_hand_on", handed_on)
            patch.setattr(Review, "_prepare", prepared)
            patch.setattr(Review, "send_at_once", sent)
            yield

    def _judge(self, review: Review, answer: Any) -> None:
        """A decision comes from one deliberate key or click on a card that could be read."""
        app = self._app
        assert app is not None
        self._judge_keys(f"{answer!r} was chosen")
        request = review.request
        name = answer.get("choice") if isinstance(answer, dict) else answer
        if request.choices and not request.shape and name not in {choice.id for choice in request.choices}:
            self._find(f"{answer!r} is no choice of {request.title!r}")
        if app.run_screen is not None and app.screen is not app.run_screen:
            self._find(f"{answer!r} was chosen while {type(app.screen).__name__} was open")
        if not app.gate.is_settled:
            self._find(f"{answer!r} was chosen on a screen that had just changed")

    def _judge_keys(self, what: str) -> None:
        if isinstance(self._last, events.Key) and is_burst(self._last):
            self._find(f"{what} by letters that came together")
        if isinstance(self._last, events.Paste):
            self._find(f"{what} by a paste")
        if self._last is not None and is_other_button(self._last):
            self._find(f"{what} by another mouse button")

    def _note(self, what: str) -> None:
        self._inputs.append(what)

    def _find(self, what: str) -> None:
        if what not in self._known:
            self._known.add(what)
            screen = type(self._app.screen).__name__ if self._app and self._app.screen_stack else ""
            self.found.append(Found(what, screen, tuple(self._inputs)))


def _may_follow(given: Given) -> bool:
    """Whether an input can be part of a burst: keys don't wait until a widget has handled a click."""
    return isinstance(given, str) and not given.startswith("\x1b[<")


async def _settled(app: HitlApp) -> None:
    """Wait until all keys have been handed on, no widget has anything to handle, and all is laid out."""
    loop: Any = asyncio.get_running_loop()
    end = time.monotonic() + WORK
    while not app._exit and app._exception is None:
        await asyncio.sleep(0)
        if loop._ready:
            continue
        screen = app.screen
        if screen._callbacks and not app._batch_count:
            screen._on_timer_update()  # it would come with the next frame
        elif app._held or app._doing is not None or (_works(app) and time.monotonic() < end):
            await asyncio.sleep(_LOOK)
        else:
            screen._on_timer_update()
            break


def _works(app: HitlApp) -> bool:
    return any(worker.is_running and worker.group != "follow" for worker in app.workers)


def _ticked(parser: InputParser) -> Sequence[Any]:
    """What the parser makes of an ESC that nothing follows, without waiting for it."""
    parser._held_until = 0.0
    return [*parser.tick(), *parser.flush()]


async def fuzz(
    folder: Path,
    *,
    seed: int,
    inputs: int,
    screens: Sequence[str] = tuple(OPENED_BY),
    seconds: float = float("inf"),
    threads: int = THREADS,
    says: Callable[[str], object] = lambda words: None,
) -> Fuzzer:
    """Send so many inputs to each screen; returns what was found."""
    original = folder / "original.db"
    await asyncio.to_thread(fill, original, threads)
    fuzzer = Fuzzer(original, folder, seed)
    until = time.monotonic() + seconds
    for place, screen in enumerate(screens):
        share = time.monotonic() + (until - time.monotonic()) / (len(screens) - place)
        known, started = len(fuzzer.found), fuzzer.sent
        await fuzzer.run(screen, inputs, share)
        says(f"{screen}: {fuzzer.sent - started} inputs, {fuzzer.apps} apps, {fuzzer.decisions} decisions")
        for found in fuzzer.found[known:]:
            says(f"FOUND on {found.screen}: {found.what}\n    after {' '.join(found.inputs)}")
    return fuzzer


def main() -> int:
    """Fuzz by hand; 1 where something was found."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--inputs", type=int, default=100_000)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--seconds", type=float, default=float("inf"))
    asked.add_argument("--screen", choices=tuple(OPENED_BY), action="append")
    given = asked.parse_args()
    logging.disable()  # nodes fail here, and say so
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            os.environ[variable] = str(folder / "home")
        os.environ.pop("HITL_TUI_STORE", None)
        os.environ["EDITOR"] = "true"
        (folder / "home").mkdir()
        os.chdir(folder / "home")
        screens = tuple(given.screen or OPENED_BY)
        options: dict[str, Any] = {"seed": given.seed, "inputs": given.inputs, "screens": screens}
        fuzzer = asyncio.run(
            fuzz(folder, **options, seconds=given.seconds, says=lambda words: print(words, flush=True))
        )
    print(f"{fuzzer.sent} inputs, {len(fuzzer.found)} faults; screens {fuzzer.screens}")
    return 1 if fuzzer.found else 0


if __name__ == "__main__":
    sys.exit(main())
