"""A node whose policy is to warn of taint says so on screen when it is about to read it."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from tests.support.spec import spec
from tests.ui.harness import live

pytestmark = spec("8")


@pytest.mark.slow
async def test_a_node_that_warns_says_what_it_may_read_from_outside() -> None:
    def fetch(_state: Any, config: Any) -> dict[str, Any]:
        config.taint("web")
        return {"page": "buy now"}

    runner = (
        StateGraph({"page": Channel(""), "mail": Channel("")})
        .add_node("fetch", fetch)
        .add_node("send", lambda state: {"mail": state["page"]}, reads=["page"], on_taint="warn")
        .add_edge(START, "fetch")
        .add_edge("fetch", "send")
        .add_edge("send", END)
        .compile(checkpointer=MemoryCheckpointer())
    )
    async with live(runner, inputs={}, ready="input") as screen:
        await screen.press("c")
        await screen.shows("send may read untrusted data: page  from web")
