"""What nodes make of a private value (errors, prints, compensations) is masked on every screen.

A served page is this screen, sent to a browser.
"""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, NodeResult, StateGraph
from hitl_tui.stores import MemoryCheckpointer
from tests.support.spec import spec
from tests.ui.harness import live

pytestmark = spec("8")

# Put together while it runs, so that the lines of code that a failure shows do not hold it.
SECRET = "".join(reversed("18yzzyx-irp"))
KEYS = ("1", "3", "5", "V", "$", "i", "A", "U")


class Told(Exception):
    """An error that keeps what it was given."""


def fail(state: Any) -> Any:
    """Fail with a cause and parts that all quote the secret, and print it."""
    secret = state["secret"]
    print("it is", secret)
    try:
        raise Told(secret)
    except Told as error:
        raise ExceptionGroup(f"with {secret}", [Told(secret), KeyError(secret)]) from error


def graph() -> Any:
    def put(_state: Any) -> NodeResult:
        return NodeResult({"secret": SECRET}, text=f"put {SECRET}", compensation=("undo", {"of": SECRET}))

    made = StateGraph({"secret": Channel("", visibility="private")}, name="p")
    made.add_compensation("undo", lambda _state, _config, args: args["of"])
    made.add_node("put", put).add_node("do", fail)
    made.add_edge(START, "put").add_edge("put", "do").add_edge("do", END)
    return made.compile(checkpointer=MemoryCheckpointer())


@pytest.mark.slow
async def test_no_screen_shows_a_private_value_that_a_node_failed_with() -> None:
    async with live(graph(), inputs={}, ready="put is next", size=(140, 44)) as it:
        await it.press("c")
        await it.shows("Where do failed", "[private")
        for key in (key for shown in KEYS for key in (shown, "escape")):
            assert SECRET not in it.text(), f"before {key}:\n{it.text()}"
            await it.press(key)
            await it.pilot.pause()
        assert SECRET not in it.text()
