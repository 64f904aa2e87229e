"""Private channels stay private across subgraphs and maps."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hitl_tui import END, START, Channel, GraphInvalid, NodeFailed, StateGraph
from hitl_tui.stores import Checkpointer
from tests.support.spec import spec

pytestmark = [spec("7"), spec("8")]

WORD = "hunter2"


def composed(
    *, outer: str = "private", inner: str = "private", result: str = "private", **wiring: Any
) -> StateGraph:
    """A secret that goes into a subgraph and comes out as a result; visibilities as given."""
    inside = (
        StateGraph({"key": Channel("", visibility=inner)}, name="inside")
        .add_node("use", lambda s: {"key": s["key"] + "!"})
        .add_edge(START, "use")
        .add_edge("use", END)
    )
    return (
        StateGraph({"secret": Channel("", visibility=outer), "result": Channel("", visibility=result)})
        .add_subgraph(
            "team", inside, inputs=wiring.get("inputs", {"secret": "key"}), outputs={"key": "result"}
        )
        .add_edge(START, "team")
        .add_edge("team", END)
    )


@pytest.mark.parametrize(
    ("how", "message", "hint"),
    [
        (
            {"inner": "public"},
            "inputs copy the private channel 'secret' into the public 'key' inside",
            "'key' inside",
        ),
        (
            {"result": "public"},
            "outputs copy the private channel 'key' inside into the public 'result'",
            "'result'",
        ),
        (
            {"inputs": {"secret.part": "key"}, "inner": "public"},
            "the private channel 'secret' into",
            "'key' inside",
        ),
        (
            {"inputs": {"secret": "goal"}},
            "the private channel 'secret' into the public 'goal'",
            "that is private",
        ),
    ],
    ids=[
        "an input into a public channel",
        "an output into a public channel",
        "a part of it",
        "into the goal",
    ],
)
def test_a_copy_from_private_to_public_is_refused_when_built(how: Any, message: str, hint: str) -> None:
    with pytest.raises(GraphInvalid) as refused:
        composed(**how).compile()
    assert message in refused.value.message
    assert hint in refused.value.hint


@pytest.mark.parametrize("how", [{}, {"outer": "public"}], ids=["private to private", "public to private"])
def test_other_copies_are_built_and_not_emitted(store: Checkpointer, how: Any) -> None:
    runner = composed(**how).compile(checkpointer=store)
    events: list[Any] = []
    runner.invoke({"secret": WORD}, thread_id="t", on_event=events.append)
    assert runner.get_state("t")["result"] == f"{WORD}!"
    assert f"{WORD}!" not in repr(events)


def mapped(store: Checkpointer, node: Any, **options: Any) -> Any:
    return (
        StateGraph({"keys": Channel(None, visibility="private"), "n": Channel(0, reducer="sum")})
        .add_map("each", over="keys", node=node, **options)
        .add_edge(START, "each")
        .add_edge("each", END)
        .compile(checkpointer=store)
    )


def test_items_of_a_private_channel_are_not_emitted(store: Checkpointer) -> None:
    def node(_state: Any, config: Any) -> dict[str, Any]:
        if config.index == 1:
            raise RuntimeError("no")
        return {"n": 1}

    runner = mapped(store, node)
    events: list[Any] = []
    runner.invoke({"keys": [WORD, WORD]}, thread_id="t", on_event=events.append)
    assert f"{WORD}!" not in repr(events)
    assert WORD.encode() not in msgspec.json.encode(runner.history("t"))
    assert WORD not in repr(runner.run_info("t"))


def test_a_question_of_a_branch_does_not_show_its_private_item(store: Checkpointer) -> None:
    runner = mapped(store, lambda _s, config: {"n": len(config.interrupt("go on?"))})
    events: list[Any] = []
    runner.invoke({"keys": [WORD]}, thread_id="t", on_event=events.append)
    cursor = runner.open("t").cursor
    assert cursor.pending
    assert WORD.encode() not in msgspec.json.encode(cursor.pending)
    assert f"{WORD}!" not in repr(events)


@pytest.mark.parametrize(
    ("value", "options"),
    [(WORD, {}), ([WORD, WORD], {"max_items": 1})],
    ids=["no list", "too many items"],
)
def test_an_error_about_the_items_does_not_quote_them(store: Checkpointer, value: Any, options: Any) -> None:
    with pytest.raises(NodeFailed) as failed:
        mapped(store, lambda _s: None, **options).invoke({"keys": value}, thread_id="t")
    assert WORD not in str(failed.value) + failed.value.details
