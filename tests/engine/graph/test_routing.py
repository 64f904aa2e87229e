"""Conditional edges."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from hitl_tui import END, START, Channel, HitlError, StateGraph
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer
from tests.support.spec import spec

pytestmark = spec("5")


class Verdict(str, enum.Enum):  # noqa: UP042 - a text enum as many still write it
    GO = "go"


class Plain(enum.Enum):
    GO = 1


def routed(route: Any, targets: Any, **options: Any) -> GraphRunner:
    """START -> ask -(route)-> yes | no | END; `path` tells which nodes ran."""
    graph = StateGraph({"path": Channel(reducer="append"), "go": Channel(None)})
    for name in ("ask", "yes", "no"):
        graph.add_node(name, lambda state, config, name=name: {"path": name})
    graph.add_edge(START, "ask").add_conditional_edge("ask", route, targets)
    return graph.add_edge("yes", END).add_edge("no", END).compile(**options)


TARGETS = {"yes": "yes", "no": "no", "stop": END}


@pytest.mark.parametrize(
    ("key", "path"),
    [("yes", ["ask", "yes"]), ("no", ["ask", "no"]), ("stop", ["ask"])],
)
def test_the_key_picks_the_next_node(key: str, path: list[str]) -> None:
    result = routed(lambda state: key, TARGETS).invoke()
    assert result["path"] == path
    assert (result.status, result.reason) == ("completed", "end")


def test_the_route_sees_the_state_after_its_node() -> None:
    runner = routed(lambda state: "yes" if state["path"] == ["ask"] else "no", TARGETS)
    assert runner.invoke()["path"] == ["ask", "yes"]


@pytest.mark.parametrize("watched", [False, True], ids=["unwatched", "watched"])
def test_a_route_is_asked_once_a_step(watched: bool, store: Checkpointer) -> None:
    keys = iter(["yes"])
    runner = routed(lambda state: next(keys), TARGETS, checkpointer=store)
    events: list[object] = []
    result = runner.invoke(thread_id="t", on_event=events.append if watched else None)
    assert result["path"] == ["ask", "yes"]


def test_a_list_of_names_stands_for_keys_that_are_names() -> None:
    assert routed(lambda state: "no", ["yes", "no", END]).invoke()["path"] == ["ask", "no"]
    assert routed(lambda state: END, ["yes", "no", END]).invoke()["path"] == ["ask"]


@pytest.mark.parametrize(
    ("key", "targets"),
    [
        (True, {True: "yes", False: "no"}),
        (False, {False: "yes", True: "no"}),
        (True, {"true": "yes", "false": "no"}),
        (1, {1: "yes", 2: "no"}),
        (2.5, {2.5: "yes", 2: "no"}),
        (None, {None: "yes", "x": "no"}),
        (Verdict.GO, {"go": "yes", "x": "no"}),
        ("go", {Verdict.GO: "yes", "x": "no"}),
        (Plain.GO, {Plain.GO: "yes", "x": "no"}),
    ],
    ids=repr,
)
def test_a_key_need_not_be_text(key: Any, targets: dict[Any, str]) -> None:
    assert routed(lambda state: key, targets).invoke()["path"] == ["ask", "yes"]


@pytest.mark.parametrize("key", ["zap", "", "YES", None, 3, ["yes"], {"a": 1}], ids=repr)
def test_an_unknown_key_is_an_error_listing_the_valid_ones(key: Any) -> None:
    with pytest.raises(HitlError) as caught:
        routed(lambda state: key, TARGETS).invoke()
    assert f"after node 'ask' returned {key!r}" in caught.value.message
    assert caught.value.hint == "valid keys: 'yes', 'no', 'stop'"


def test_a_route_that_raises_names_its_node_and_the_cause() -> None:
    with pytest.raises(HitlError, match=r"after node 'ask' raised ZeroDivisionError: division by zero"):
        routed(lambda state: 1 / 0, TARGETS).invoke()


def test_the_step_before_a_failed_route_is_kept_and_the_route_is_tried_again(store: Checkpointer) -> None:
    keys = ["zap"] * 9
    runner = routed(lambda state: keys[0], TARGETS, checkpointer=store)
    with pytest.raises(HitlError, match="zap"):
        runner.invoke(thread_id="t")
    info = runner.run_info("t")
    assert (info.status, info.reason) == ("failed", "node_error")
    assert runner.get_state("t")["path"] == ["ask"]
    keys[0] = "no"
    assert runner.invoke(thread_id="t")["path"] == ["ask", "no"]


def test_a_failed_route_is_fixed_by_an_edit_of_the_state(store: Checkpointer) -> None:
    runner = routed(lambda state: state["go"], TARGETS, checkpointer=store)
    with pytest.raises(HitlError, match="returned None"):
        runner.invoke(thread_id="t")
    runner.update_state("t", {"go": "yes"})
    assert runner.invoke(thread_id="t")["path"] == ["ask", "yes"]


def test_the_step_whose_route_leads_to_end_says_itself_that_the_run_is_completed(store: Checkpointer) -> None:
    runner = routed(lambda state: "stop", TARGETS, checkpointer=store)
    runner.invoke(thread_id="t")
    ends = [(point.step, point.status, point.position) for point in runner.history("t", limit=1)]
    assert ends == [(1, "completed", "end")]
