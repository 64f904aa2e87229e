"""A question about untrusted data inside a subgraph shows that data in the thread outside."""

from __future__ import annotations

from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.view.card import review_card
from hitl_tui.view.run_view import open_view
from hitl_tui.view.spans import plain_text


async def test_the_card_outside_shows_what_would_be_read_inside() -> None:
    inner = StateGraph(
        {
            "found": Channel(""),
            "rows": Channel([], reducer="extend"),
            "key": Channel("", visibility="private"),
        }
    )
    read = lambda _s: {"found": "a page\nof two lines", "rows": [{"id": 4}], "key": "s3cret"}  # noqa: E731
    inner.add_node("read", read, external="web").add_edge(START, "read")
    inner.add_node("letter", lambda _s: None, on_taint="approve").add_edge("read", "letter")
    inner.add_edge("letter", END)
    outer = StateGraph({"log": Channel([], reducer="append")})
    outer.add_subgraph("team", inner, inputs={}, outputs={"found": "log"}).add_edge(START, "team").add_edge(
        "team", END
    )
    store = MemoryCheckpointer()
    runner = outer.compile(checkpointer=store)
    (request,) = runner.invoke({}, thread_id="t").pending
    hub = LocalHub(store, lambda _info: runner)
    try:
        snapshot = await (await hub.open("t")).snapshot()
    finally:
        await hub.close()
    card = review_card(request, open_view(snapshot), snapshot.values)
    words = [plain_text(line) for line in card.words]
    assert words[0] == "letter would read:"
    assert words[words.index("found, 19 characters") :][:3] == [
        "found, 19 characters",
        "a page",
        "of two lines",
    ]
    assert '"id": 4' in "".join(words)
    assert "s3cret" not in "".join(words)
