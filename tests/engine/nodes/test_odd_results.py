"""Whatever a node or a person hands over, a log is never written that can't be read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import (
    Channel,
    GraphRunner,
    MemoryCheckpointer,
    ModelUse,
    NodeFailed,
    NodeResult,
    UsageError,
)
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain
from tests.support.spec import spec

pytestmark = [spec("5"), spec("10")]

NAN, ENDLESS = float("nan"), float("inf")


def runner_of(store: Checkpointer, node: Callable[..., Any], **options: Any) -> GraphRunner:
    return chain({"n": Channel(0)}, node, **options).compile(checkpointer=store)


def use(**odd: Any) -> NodeResult:
    fields = {"agent": "a", "provider": "p", "model": "m", "tokens_in": 1, "tokens_out": 2, "cost": 0.5}
    return NodeResult(usage=[ModelUse(**{**fields, **odd})])


ODD: dict[str, tuple[Callable[[], NodeResult], str]] = {
    "a number as text": (lambda: NodeResult(text=5), "text is a whole number"),  # type: ignore[arg-type]
    "a list as text": (lambda: NodeResult(text=["x"]), "text is a list"),  # type: ignore[arg-type]
    "a cost that is not a number": (lambda: use(cost=NAN), "cost is nan"),
    "an endless cost": (lambda: use(cost=ENDLESS), "cost is inf"),
    "a cost below 0": (lambda: use(cost=-1.0), "ModelUse"),
    "a cost in text": (lambda: use(cost="1"), "cost is text"),
    "tokens below 0": (lambda: use(tokens_in=-1), "ModelUse"),
    "tokens in text": (lambda: use(tokens_in="1"), "tokens_in is text"),
    "tokens beyond counting": (lambda: use(tokens_out=1 << 70), "ModelUse"),
    "half a token": (lambda: use(tokens_out=0.5), "tokens_out is a number"),
    "no agent": (lambda: use(agent=None), "agent is null"),
    "a lone surrogate in a name": (lambda: use(model="\ud800"), "model is text with half"),
    "one use without a list": (lambda: NodeResult(usage=use().usage[0]), "usage is a ModelUse"),  # type: ignore[arg-type,index]
}


@pytest.mark.parametrize(("result", "why"), ODD.values(), ids=ODD)
def test_an_envelope_that_could_not_be_read_again_fails_the_node(
    store: Checkpointer, result: Callable[[], NodeResult], why: str
) -> None:
    runner = runner_of(store, lambda _state: result())
    with pytest.raises(NodeFailed, match=why) as failed:
        runner.invoke(thread_id="t")
    assert failed.value.hint
    assert runner.run_info("t").status == "failed"
    assert runner.verify("t", strict=True).ok


def test_a_use_without_a_price_or_of_whole_dollars_is_taken(store: Checkpointer) -> None:
    for cost in (None, 2):
        runner = runner_of(store, lambda _state, price=cost: use(cost=price))
        runner.invoke(thread_id=f"at {cost}")
        assert runner.run_info(f"at {cost}").cost == (cost or 0)


def test_a_lone_surrogate_in_the_text_of_a_result_is_written_out(store: Checkpointer) -> None:
    runner = runner_of(store, lambda _state: NodeResult({"n": 1}, text="a\ud800"))
    assert runner.invoke(thread_id="t")["n"] == 1
    assert runner.history("t")[0].text == r"a\ud800"


ODD_DECISIONS: dict[str, Callable[..., Any]] = {
    "edit": lambda runner, **who: runner.update_state("t", {"n": 1}, **who),
    "fork": lambda runner, **who: runner.fork("t", 0, "u", **who),
    "extend": lambda runner, **who: runner.extend_limits("t", max_iterations=9, **who),
    "cancel": lambda runner, **who: runner.cancel("t", **who),
    "rollback": lambda runner, **who: runner.rollback("t", **who),
}


@pytest.mark.parametrize("decide", ODD_DECISIONS.values(), ids=ODD_DECISIONS)
@pytest.mark.parametrize(
    ("who", "why"),
    [({"actor": 5}, "actor is a whole number"), ({"note": ["x"]}, "note is a list")],
    ids=["actor", "note"],
)
def test_a_decision_whose_name_or_note_is_not_text_is_refused_and_not_stored(
    store: Checkpointer, decide: Callable[..., Any], who: dict[str, Any], why: str
) -> None:
    runner = chain({"n": Channel(0)}, lambda _s: None, lambda _s: None).compile(checkpointer=store)
    runner.step(thread_id="t")
    before = store.cursor("t")
    with pytest.raises(UsageError, match=why):
        decide(runner, **who)
    assert (store.cursor("t"), store.info("u")) == (before, None)
    assert runner.verify("t", strict=True).ok


@pytest.mark.parametrize(
    ("values", "why"), [(None, "values is null"), ([1], "values is a list"), ({1: 2}, "the name 1 is")]
)
def test_an_edit_without_names_of_channels_is_refused(values: Any, why: str) -> None:
    runner = runner_of(MemoryCheckpointer(), lambda _state: None)
    runner.invoke(thread_id="t")
    with pytest.raises(Exception, match=why) as refused:
        runner.update_state("t", values)
    assert refused.value.hint or "channels: n" in str(refused.value)  # type: ignore[attr-defined]


def test_a_fork_whose_id_is_not_text_is_refused(store: Checkpointer) -> None:
    runner = runner_of(store, lambda _state: None)
    runner.invoke(thread_id="t")
    with pytest.raises(UsageError, match="a thread id is text, this one a whole number") as refused:
        runner.fork("t", 0, 5)  # type: ignore[arg-type]
    assert refused.value.hint == "use '5'"
    assert [one.info.thread_id for one in store.threads()] == ["t"]


class Silent(Exception):
    """An error that can't say what it is."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def test_an_error_whose_str_fails_is_reported_by_its_class(store: Checkpointer) -> None:
    def node(_state: Any) -> None:
        raise Silent

    with pytest.raises(NodeFailed, match=r"node 'n1', attempt 1: Silent: \(its text can't be read"):
        runner_of(store, node).invoke(thread_id="t")
