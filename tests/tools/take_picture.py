"""The pictures in the guides, taken from the app as it runs the demo.

python -m tests.tools.take_picture
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

from textual.pilot import Pilot

from hitl_tui import MemoryCheckpointer, SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine import commands
from hitl_tui.engine.commands import Answer, Fork, Run
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.loading.stage_file import find_script, read_script
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.pictures import screen_svg
from hitl_tui.ui.theme import Look
from hitl_tui.view.stage import ScriptShow
from hitl_tui.view.watches import keep_watches
from hitl_tui.workflows.demo import TASK
from tests.support import rich_queue, scoring_flow

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
SIZE = (120, 40)
SMALL = (80, 24)
ACTOR = "ann"
PATIENCE = 90.0
"""Seconds after which a picture that does not come is an error."""


def keep(name: str, app: HitlApp) -> None:
    """Write what is on screen."""
    picture = screen_svg(app, "hitl-tui")
    (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


async def until_it_waits(driver: Driver) -> None:
    """Run, and wait for the next request."""
    await driver.execute(Run())
    while (snapshot := await driver.snapshot()).progress.status == "running":
        await driver.changed(snapshot.last_event)


async def decide(driver: Driver, choice: str, text: str = "") -> None:
    """Answer the request that waits."""
    request = (await driver.snapshot()).progress.pending[0]
    await driver.execute(Answer(request.id, {"choice": choice, "text": text}, step=request.step, actor=ACTOR))


async def finished_story() -> tuple[Hub, Driver]:
    """A thread whose first draft was approved in a fork and sent back in the thread itself."""
    store = MemoryCheckpointer()
    hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))
    runner = open_graph("hitl_tui.workflows.demo:build", store, {"pace": 0})
    driver = await hub.new("closures", runner, source=runner.source, actor=ACTOR)
    await driver.execute(commands.Start({"task": TASK}, actor=ACTOR))
    await until_it_waits(driver)
    fork = await hub.open(await driver.execute(Fork(2, "closures-b", actor=ACTOR)))
    await decide(fork, "approve")
    await until_it_waits(fork)
    await decide(driver, "revise", "Start with one concrete thing.")
    return hub, driver


async def take(name: str, *keys: str, size: tuple[int, int] = SIZE, theme: str = "dark") -> None:
    """Save a picture of the screen once a verdict waits and some keys were pressed."""
    app = HitlApp(AppStart(finished_story, actor=ACTOR), Look(theme=theme))
    async with app.run_test(size=size) as pilot:

        async def shown(text: str) -> None:
            while text not in app.export_screenshot():
                await pilot.pause(0.05)

        async def gone(text: str) -> None:
            while text in app.export_screenshot():
                await pilot.pause(0.2)

        await shown("PAUSED")
        await pilot.press("c")
        await shown("about&#160;step")
        await gone("used:")
        await pilot.pause(1.0)
        await pilot.press(*keys)
        await pilot.pause(1.0)
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(screen_svg(app, "hitl-tui"), encoding="utf-8")


Shown = Callable[[str], Awaitable[None]]


@asynccontextmanager
async def desk(
    thread: str, size: tuple[int, int]
) -> AsyncIterator[tuple[Callable[[str], None], Pilot[object], Shown]]:
    """The app on one of twelve threads that wait: saves a picture, presses keys, waits for a text."""
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteCheckpointer(Path(folder) / "runs.db")
        await asyncio.to_thread(rich_queue.fill, store, trusted=False)
        hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))

        async def open_driver() -> tuple[Hub, Driver]:
            return hub, await hub.open(thread)

        app = HitlApp(AppStart(open_driver, actor="tester"), Look(theme="dark"))
        async with app.run_test(size=size) as pilot:

            async def shown(text: str) -> None:
                while text.replace(" ", "&#160;") not in app.export_screenshot():
                    await pilot.pause(0.05)

            def save(name: str) -> None:
                keep(name, app)

            yield save, pilot, shown


async def take_queue(name: str, size: tuple[int, int]) -> None:
    """Save a picture of the queue, with one of its rows beside it."""
    async with desk("order-7", size) as (save, pilot, shown):
        await shown("What would you like to order?")
        await pilot.press("Q")
        await shown("12 WAIT FOR YOU")
        await pilot.press(*["down"] * 9, "space", "space", "space", *["up"] * 4)
        await shown("last time")
        save(name)


async def take_review(name: str, size: tuple[int, int]) -> None:
    """Save a picture of a card beside both versions of what it is about, with comments pinned."""
    async with desk("blog-indexes", size) as (save, pilot, shown):
        await shown("your turn")
        await pilot.press("d")
        await shown("undoes it within")
        for keys, words in (((), "phone book or register? keep one image"), (("down",), "hundreds of what?")):
            await pilot.press("c")
            await shown("your comment")
            await pilot.press(*keys, *words, "enter")
            await shown(words)
        await pilot.pause(0.5)
        save(name)


async def take_debug(name: str, size: tuple[int, int]) -> None:
    """Save a picture of a node that has failed, with breakpoints and watches."""
    store = MemoryCheckpointer()
    runner = scoring_flow.build().compile(checkpointer=store)
    hub = LocalHub(store, lambda info: runner)

    async def open_driver() -> tuple[Hub, Driver]:
        driver = await hub.new("dev-3", runner, actor=ACTOR)
        await driver.execute(commands.Start({}, actor=ACTOR))
        return hub, driver

    stops = (
        "merge hit 5",
        "change facts[5]",
        'collect log "n={n} {facts[-1:]}"',
        "error: error == 'KeyError'",
    )
    app = HitlApp(AppStart(open_driver, ACTOR, breaks=stops), Look(theme="dark"))
    with tempfile.TemporaryDirectory() as folder:
        watches = Path(folder) / "watches.json"
        keep_watches(watches, "score", ("score", "len(facts)", "facts[-1].source"))
        with patch("hitl_tui.ui.screens.run_panes.watches_file", lambda: watches):
            await _save_failure(app, name, size)


async def _save_failure(app: HitlApp, name: str, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:

        async def shown(text: str) -> None:
            while text.replace(" ", "&#160;") not in app.export_screenshot():
                await pilot.pause(0.05)

        await shown("collect is next")
        await pilot.press("c")
        await shown("opens it in your editor")
        await pilot.pause(1.0)
        (FOLDER / f"{name}.svg").write_text(screen_svg(app, "hitl-tui"), encoding="utf-8")


async def take_stage(name: str, size: tuple[int, int]) -> None:
    """Save a picture of a stop of the show that comes along."""
    script = read_script(find_script("closures"))
    store = MemoryCheckpointer()
    runner = open_graph(script.file.show.graph, store, directory=script.path.parent)
    hub = LocalHub(store, lambda info: runner)

    async def new_thread() -> Driver:
        driver = await hub.new("kitchen", runner, source=runner.source, actor=ACTOR)
        await driver.execute(commands.Start(script.file.inputs, actor=ACTOR))
        return driver

    async def open_driver() -> tuple[Hub, Driver]:
        return hub, await new_thread()

    show = ScriptShow(script, new_thread)
    app = HitlApp(AppStart(open_driver, ACTOR, perform=lambda: show), Look(theme="dark"))
    async with app.run_test(size=size) as pilot:

        async def shown(text: str) -> None:
            while text.replace(" ", "&#160;") not in app.export_screenshot():
                await pilot.pause(0.05)

        await shown("stop 1")
        show.tempo.pace = 8.0
        for key, text in (("space", "stop 2"), ("space", "stop 3"), ("space", "Shorter,")):
            await pilot.press(key)
            await shown(text)
        await pilot.pause(1.0)
        await pilot.press("enter", "enter")
        await shown("stop 4")
        await pilot.press("P", "D")
        await pilot.pause(1.0)
        (FOLDER / f"{name}.svg").write_text(screen_svg(app, "hitl-tui"), encoding="utf-8")
    show.tempo.pace = 1.0


async def take_langgraph(name: str, sample: str, inputs: dict[str, object], *keys: str, until: str) -> None:
    """Save a picture of a sample of LangGraph (the extra `langgraph`) behind two supersteps.

    Args:
        until: what is on screen once the keys were pressed.
    """
    from hitl_tui.drivers.langgraph.hub import LangGraphHub
    from hitl_tui.loading.sources import open_langgraph_graph

    with tempfile.TemporaryDirectory() as folder:
        source = open_langgraph_graph(f"langgraph/{sample}", Path(folder))
        assert source is not None
        hub = LangGraphHub(source.app, MemoryCheckpointer(), name=source.name, source=source.source)

        async def open_driver() -> tuple[Hub, Driver]:
            driver = await hub.begin(f"{sample}-1", ACTOR)
            await driver.execute(commands.Start(inputs, actor=ACTOR))
            return hub, driver

        app = HitlApp(AppStart(open_driver, ACTOR), Look(theme="dark"))
        async with app.run_test(size=SIZE) as pilot:

            async def shown(text: str) -> None:
                while text.replace(" ", "&#160;") not in app.export_screenshot():
                    await pilot.pause(0.05)

            for step in (1, 2):
                await pilot.press("s")
                await shown(f"step {step}")
            await pilot.press(*keys)
            await shown(until)
            await pilot.pause(1.0)
            keep(name, app)
        source.close()


async def main() -> None:
    """Take all pictures."""
    question = {"messages": [["user", "What is a closure?"]]}
    for picture in (
        partial(take_langgraph, "langgraph", "jokes", {"topic": "animals"}, until="tell_joke[2]"),
        partial(take_langgraph, "langgraph-edit", "chat", question, "e", "end", "!", until="as START"),
        partial(take_stage, "stage", (110, 30)),
        partial(take_debug, "debug", (120, 40)),
        partial(take_queue, "queue", (160, 28)),
        partial(take_review, "review", (200, 42)),
        partial(take, "decide"),
        partial(take, "run", "escape"),
        partial(take, "compare", "escape", *"[[[[=", "down"),
        partial(take, "present", size=SMALL, theme="presenter"),
    ):
        print(picture.func.__name__, *picture.args)
        # A text that it waits for may have changed.
        async with asyncio.timeout(PATIENCE):
            await picture()


if __name__ == "__main__":
    asyncio.run(main())
