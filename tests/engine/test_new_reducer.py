"""A reducer in the table of reducers works everywhere that distinguishes reducers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from hitl_tui.engine.state import reducers
from hitl_tui.engine.state.frozen import FrozenList
from hitl_tui.engine.state.reducers import Reducer
from hitl_tui.view.lens import lens
from tests.support.spec import spec


def _newest_two(previous: Any, update: Any) -> Any:
    return FrozenList([*(previous or ()), update][-2:])


def _shorter(previous: Any, update: Any) -> Any:
    return update if previous is None or len(update) < len(previous) else previous


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    new = (
        Reducer("two", _newest_two, "element", window=2, default=FrozenList(), part="items", wraps=True),
        Reducer("shorter", _shorter, "extreme"),
    )
    for reducer in new:
        monkeypatch.setitem(reducers._PLAIN, reducer.text, reducer)
    _forget()
    yield
    _forget()


def _forget() -> None:
    reducers.logged_reducer.cache_clear()
    reducers.parse_reducer.cache_clear()


@spec("4")
def test_one_row_is_enough_for_a_run_its_history_its_verification_and_the_lens() -> None:
    store = MemoryCheckpointer()
    runner = (
        StateGraph({"log": Channel([], reducer="two"), "best": Channel(None, reducer="shorter")})
        .add_node(
            "write", lambda state: {"log": str(len(state["log"])), "best": "x" * (3 - len(state["log"]))}
        )
        .add_edge(START, "write")
        .add_conditional_edge(
            "write", lambda state: state["log"] == ["1", "2"], {"true": END, "false": "write"}
        )
        .compile(checkpointer=store)
    )
    runner.invoke({"log": ["a", "b", "c"]}, thread_id="t")

    assert runner.get_state("t", 0)["log"] == ["b", "c"]  # an input is taken element by element
    assert runner.verify("t", strict=True).ok
    lines = ["".join(span.text for span in line) for line in lens(runner.updates("t", 0))]
    assert any("oldest" in line and "dropped" in line for line in lines)
    best = ["".join(span.text for span in line) for line in lens(runner.updates("t", 1))]
    assert any("shorter(" in line for line in best)
