"""Pictures and recordings of threads, made by the real screen without a terminal."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hitl_tui.errors import HitlError

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.drivers.protocol import Driver, Hub
    from hitl_tui.ui.theme import Look


def write_picture(
    thread: str, form: str, target: Path, settings: Settings, *, size: tuple[int, int], pace: float
) -> None:
    """Write a thread's screen as SVG, or its run as asciicast v3; replace an existing file completely.

    Raises:
        UnknownThread: there is no such thread.
        HitlError: the file can't be written.
    """
    from hitl_tui.cli.screen import screen_look

    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        look = screen_look(settings)
        if form == "svg":
            asyncio.run(_draw(thread, new, size, settings, look))
        else:
            asyncio.run(_record(thread, new, (size, pace), settings, look))
        new.replace(target)
    except OSError as error:
        raise HitlError(f"{target} can't be written: {error.strerror}", "give another place") from None
    finally:
        new.unlink(missing_ok=True)


async def _draw(thread: str, path: Path, size: tuple[int, int], settings: Settings, look: Look) -> None:
    from hitl_tui.cli.opening import find_thread, hub_over
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.ui.render import picture

    store = open_existing(settings, thread=thread)
    hub = hub_over(store, settings)

    async def open_driver() -> tuple[Hub, Driver]:
        return hub, await hub.look_at(find_thread(store, thread))

    try:
        svg = await picture(open_driver, look, size)
    finally:
        await hub.close()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(svg)


async def _record(
    thread: str, path: Path, play: tuple[tuple[int, int], float], settings: Settings, look: Look
) -> None:
    from hitl_tui.cli.opening import hub_over
    from hitl_tui.cli.play import Tape
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.ui.render import TapeTempo, record_tape
    from hitl_tui.view.tape import TapeShow

    size, pace = play
    store = open_existing(settings, thread=thread)
    hub = hub_over(store, settings)
    try:
        tape = Tape(thread, None)
        name = tape.copy(store)
        tape.adopt(hub, TapeTempo(pace))

        async def open_driver() -> tuple[Hub, Driver]:
            return hub, await hub.open(name)

        show = TapeShow(tape.driver, tape.name)
        await record_tape(tape.driver, open_driver, show, look, path=path, size=size)
    finally:
        await hub.close()
