"""The event loop that all agents of a process share."""

from __future__ import annotations

import contextvars
import gc
import threading
import weakref

import pytest

from hitl_tui.agents import agent


class Held:
    """In place of a store, which a node's context refers to."""


HELD: contextvars.ContextVar[Held] = contextvars.ContextVar("held")


async def nothing() -> None:
    """Done at once."""


def test_the_background_loop_keeps_no_reference_to_its_first_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "_loop", None)
    before = set(threading.enumerate())

    def first() -> weakref.ref[Held]:
        held = Held()
        HELD.set(held)
        agent.submit(nothing()).result(60)
        return weakref.ref(held)

    kept = contextvars.Context().run(first)
    loop = agent._loop
    assert loop is not None
    (thread,) = set(threading.enumerate()) - before
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    gc.collect()
    try:
        assert kept() is None
    finally:
        loop.close()
