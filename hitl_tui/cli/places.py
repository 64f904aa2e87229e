"""THREAD[@STEP] on the command line: a thread, and the step of it that is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hitl_tui.errors import UnknownThread, UsageError

if TYPE_CHECKING:
    from hitl_tui.cli.desk import Desk
    from hitl_tui.drivers.protocol import Driver, Snapshot
    from hitl_tui.stores import Checkpointer


@dataclass(frozen=True)
class OpenPlace:
    """A step of an open thread."""

    driver: Driver
    snapshot: Snapshot
    step: int

    @property
    def name(self) -> str:
        """The place in words, as "report@4"."""
        return f"{self.driver.thread_id}@{self.step}"


async def open_place(desk: Desk, text: str, *, reading: bool = False) -> OpenPlace:
    """Open the thread of a place and find its step, the newest one by default.

    Args:
        reading: only to look at it, which takes no graph.

    Raises:
        UnknownThread: there is no such thread, or no such step in it.
        UsageError: the thread has no step yet.
    """
    thread, step = split_place(desk.store, text)
    driver = await (desk.reading(thread) if reading else desk.thread(thread))
    snapshot = await driver.snapshot()
    head = snapshot.progress.head
    if head < 0:
        raise UsageError(f"thread {thread!r} has no step yet", "start it with an input first")
    if step is not None and step > head:
        raise UnknownThread(f"thread {thread!r} has no step {step}", f"its steps are 0 to {head}")
    return OpenPlace(driver, snapshot, head if step is None else step)


def split_place(store: Checkpointer, text: str) -> tuple[str, int | None]:
    """The thread and the step of a place; a thread whose own name ends so comes first."""
    thread, at, step = text.rpartition("@")
    if not at or not (step.isascii() and step.isdigit()) or store.info(text) is not None:
        return text, None
    return thread, int(step)
