"""What a thread's channels have become since a step, for somebody who decided about that step."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.canonical import equal
from hitl_tui.engine.events import PRIVATE


class Moved(msgspec.Struct, frozen=True):
    """A channel that is not as it was; a private one is named, its values are `PRIVATE`."""

    channel: str
    change: Literal["added", "removed", "changed", "private"]
    before: Any
    after: Any


async def moved_since(driver: Driver, step: int) -> tuple[Moved, ...]:
    """How the head differs from an earlier step, channel by channel; () where it doesn't.

    Raises:
        UnknownThread: there is no such step.
    """
    before = await driver.state_at(step)
    after = (await driver.snapshot()).values
    found = (_moved(name, before, after) for name in dict.fromkeys((*before, *after)))
    return tuple(one for one in found if one is not None)


def _moved(name: str, before: Any, after: Any) -> Moved | None:
    old, new = before.get(name), after.get(name)
    if PRIVATE in (old, new):
        return Moved(name, "private", PRIVATE, PRIVATE)
    if name not in before:
        return Moved(name, "added", None, new)
    if name not in after:
        return Moved(name, "removed", old, None)
    return None if equal(old, new) else Moved(name, "changed", old, new)
