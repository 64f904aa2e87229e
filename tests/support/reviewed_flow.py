"""A graph whose draft changes by two words in a paragraph of two hundred, and that asks about it."""

from __future__ import annotations

from hitl_tui import END, START, Channel, Gate, GateChoice, StateGraph

OLD = " ".join(f"word{number}" for number in range(200))
NEW = OLD.replace("word120", "packed lunch")


def _write(state):  # type: ignore[no-untyped-def]
    return {"draft": NEW if state["draft"] else OLD, "plan": [{"worker": "ann"}, {"worker": "bob"}]}


def build(checkpointer):  # type: ignore[no-untyped-def]
    """The graph, which asks once the second draft is there."""
    ask = Gate("judge", title="Is it good?", subject="draft", choices=[
        GateChoice("approve", "take it", "a"),
        GateChoice("revise", "write it again", "r", text="required", values=_revised),
    ])  # fmt: skip
    channels = {
        "draft": Channel(""), "feedback": Channel(""), "plan": Channel([], reducer="overwrite"),
        "key": Channel("sesame", visibility="private"),
    }  # fmt: skip
    return (
        StateGraph(channels, name="reviewed")
        .add_node("write", _write)
        .add_node("again", _write)
        .add_node("judge", lambda state: {})
        .add_edge(START, "write").add_edge("write", "again").add_edge("again", "judge").add_edge("judge", END)
        .compile(checkpointer=checkpointer, interrupt_after=[ask])
    )  # fmt: skip


def _revised(_state, text):  # type: ignore[no-untyped-def]
    return {"feedback": text}
