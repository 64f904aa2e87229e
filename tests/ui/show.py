"""Shows the run screen on a recorded tape: `python -m tests.ui.show [TAPE] [THEME]`, to look at it."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

from hitl_tui.ui.app import run_app
from hitl_tui.ui.theme import Look

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver, Hub


async def _open() -> tuple[Hub, Driver]:
    from tests.support import tape as tapes
    from tests.support.replay_driver import ReplayHub

    name = sys.argv[1] if len(sys.argv) > 1 else "advisor"
    tape = getattr(tapes, f"{name}_tape")()
    live = "live" in sys.argv
    tape = dataclasses.replace(tape, family=tapes.family(tape.begin.thread_id, 2))
    driver = tape.driver(at_end=not live, follow=live)
    rows = [
        tapes.summary(tapes.THREAD, None, 0, 4, status="waiting", reason="approval"),
        tapes.summary(tapes.FORK, tapes.THREAD, 2, 5, status="completed"),
    ]
    hub = ReplayHub([driver], rows)
    return hub, driver


if __name__ == "__main__":
    print(run_app(_open, actor="anna", look=Look(sys.argv[2] if len(sys.argv) > 2 else "")))
