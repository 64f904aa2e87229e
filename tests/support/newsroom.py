"""An article of several parts that is written again after each answer, and comments on its first version."""

from __future__ import annotations

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Answer
from hitl_tui.engine.thread.comments import Comment

FIRST = """# The harbour crane

A report for the city council, **draft for review**. See [the minutes](https://example.org/minutes).

## Money and paper

A measurement in May found 74 decibels, which is four above the limit. Two members asked for a repair.

Nobody believed that rubber pads would help. Residents had complained about the noise.

| offer | euros |
|---|---:|
| crane, second hand | 412,000 |
| repair of the old one | 96,500 |

## The quay

- The surveyor is back on the ninth.
- Until then nobody signs.
"""
SECOND = (
    FIRST.replace("four above", "seven above")
    .replace(" Two members asked for a repair.", "")
    .replace("412,000", "421,000")
    .replace("## The quay\n", "## The quay\n\nA paragraph of the second version.\n")
)
COMMENTS = (
    ("four above", "really?"),
    ("Two members asked for a repair.", "leave this out"),
    ("Nobody believed that rubber pads would help.", "who says?"),
)
PARTS = 65
LONG = "\n\n".join(
    f"## Part {number} of the report\n\n"
    + "The committee met on Tuesday to discuss the new harbour plan. Nobody believed it would help much. "
    + "Residents of the quay had complained about the noise. " * 2
    + f"\n\nIn part {number} the surveyor wrote at length about the drawings. "
    + "A vote was postponed until everybody has read them. " * 5
    for number in range(1, PARTS + 1)
)
"""About 5,900 words."""


def newsroom(*texts: str, store: MemoryCheckpointer | None = None, replies: object = None) -> GraphRunner:
    """Return a graph that writes one text after another, and asks a person about each."""
    choices = [GateChoice("approve", "Publish", "a"), GateChoice("revise", "Send back", "r", "required")]
    graph = StateGraph({"draft": Channel(""), "n": Channel(0, reducer="sum")}, name="newsroom")
    graph.add_node("write", lambda state: {"draft": texts[min(state["n"], len(texts) - 1)], "n": 1})
    graph.add_node("judge", lambda state: {})
    graph.add_edge(START, "write").add_edge("write", "judge")
    ways = {"on": END, "again": "write"}
    graph.add_conditional_edge("judge", lambda state: "on" if state["n"] > len(texts) else "again", ways)
    gate = Gate(
        "judge", "Publish this article?", choices, subject="draft",
        payload=(lambda state: {"replies": replies}) if replies is not None else None,
    )  # fmt: skip
    return graph.compile(checkpointer=store or MemoryCheckpointer(), interrupt_after=[gate])


async def sent_back(runner: GraphRunner, comments: tuple[tuple[str, str], ...] = COMMENTS) -> None:
    """Let a thread `t` ask, send it back with comments on its draft as `anna`, and let it ask again."""
    result = await runner.ainvoke({}, thread_id="t")
    (request,) = result.pending
    draft = result.state["draft"]
    placed = tuple(Comment(quote, text, "draft", draft.index(quote)) for quote, text in comments)
    assert runner.store is not None
    hub = LocalHub(runner.store, lambda info: runner)
    driver = await hub.open("t")
    answer = {"choice": "revise", "text": "see below"}
    await driver.execute(Answer(request.id, answer, request.step, "anna", None, b"", placed))
    await runner.ainvoke(thread_id="t")
    await hub.close()
