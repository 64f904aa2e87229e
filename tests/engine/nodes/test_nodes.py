"""What a node is, what it gets and what it may return."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    Gate,
    GateChoice,
    MemoryCheckpointer,
    NodeFailed,
    NodeResult,
    StateGraph,
)
from hitl_tui.engine.log.events import StepCommitted, TextStreamed
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, one_node, returning
from tests.support.spec import spec

pytestmark = spec("5")

CHANNELS = {"a": Channel(0), "log": Channel(reducer="append")}


class Callable:
    def __call__(self, state: Any, config: Any) -> dict[str, Any]:
        return {"a": 1}

    def method(self, state: Any, config: Any) -> dict[str, Any]:
        return {"a": 1}

    async def coroutine(self, state: Any, config: Any) -> dict[str, Any]:
        return {"a": 1}


class AsyncCallable:
    async def __call__(self, state: Any, config: Any) -> dict[str, Any]:
        return {"a": 1}


async def coroutine(state: Any, config: Any) -> dict[str, Any]:
    return {"a": 1}


def extra(value: int, state: Any, config: Any) -> dict[str, Any]:
    return {"a": value}


NODES = {
    "a function": lambda state, config: {"a": 1},
    "an async function": coroutine,
    "a callable object": Callable(),
    "an async callable object": AsyncCallable(),
    "a method": Callable().method,
    "an async method": Callable().coroutine,
    "a partial": functools.partial(extra, 1),
    "a function that returns a coroutine": lambda *args: coroutine(*args),  # noqa: PLW0108 - not known to be async
    "a function of the state alone": lambda state: {"a": 1},
    "a function of any arguments": lambda *args: {"a": len(args) - 1},
}


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
@pytest.mark.parametrize("timeout", [None, 30.0], ids=["inline", "with a timeout"])
def test_a_node_is(node: Any, timeout: float | None) -> None:
    assert one_node(CHANNELS, node, timeout=timeout).invoke()["a"] == 1


@pytest.mark.parametrize("answer", [None, {}, NodeResult(), types.MappingProxyType({})], ids=repr)
def test_no_update(answer: Any, store: Checkpointer) -> None:
    runner = chain(CHANNELS, returning(answer)).compile(checkpointer=store)
    result = runner.invoke(thread_id="t")
    assert dict(result) == {"a": 0, "log": []}
    assert (result.status, result.step) == ("completed", 1)
    assert list(store.records("t", 0, 1)) == []


@pytest.mark.parametrize(
    "answer",
    [{"a": 1}, types.MappingProxyType({"a": 1}), collections.OrderedDict(a=1), NodeResult({"a": 1})],
    ids=lambda value: type(value).__name__,
)
def test_a_mapping_or_an_envelope_updates(answer: Any) -> None:
    assert one_node(CHANNELS, returning(answer)).invoke()["a"] == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("draft", "text"),
        (3, "a whole number"),
        (True, "true or false"),
        ([("a", 1)], "a list"),
        ({"a"}, "a set"),
        (({"a": 1},), "a tuple"),
        (object(), "an object"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_anything_else_fails_the_node_saying_what_to_return(answer: Any, message: str) -> None:
    with pytest.raises(NodeFailed, match=f"returned {message}") as caught:
        one_node(CHANNELS, returning(answer)).invoke()
    assert "a dict of channel updates, a NodeResult or None" in caught.value.hint


class TestNodeResult:
    def test_its_fields_have_the_defaults_of_the_envelope(self) -> None:
        result = NodeResult()
        assert (result.updates, result.text, result.status, result.usage) == ({}, None, "completed", None)

    def test_its_text_is_kept_with_the_checkpoint(self, store: Checkpointer) -> None:
        node = returning(NodeResult({"a": 1}, text="looked at it"))
        chain(CHANNELS, node).compile(checkpointer=store).invoke(thread_id="t")
        checkpoint = store.checkpoint("t", 1)
        assert checkpoint is not None
        assert checkpoint.text == "looked at it"

    @pytest.mark.parametrize(
        "usage",
        [None, (), [], [ModelUse("x", "p", "m", 10, 5, 0.5)] * 2],
        ids=["null", "()", "[]", "two calls"],
    )
    def test_its_usage_counts(self, usage: Any, store: Checkpointer) -> None:
        runner = chain(CHANNELS, returning(NodeResult(usage=usage))).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        info = runner.run_info("t")
        times = len(usage or ())
        assert (info.tokens_in, info.tokens_out, info.cost) == (10 * times, 5 * times, 0.5 * times)

    def test_updates_that_are_no_dict_fail_the_node_saying_what_to_give(self) -> None:
        pairs: Any = [("a", 1)]
        with pytest.raises(NodeFailed, match="NodeResult: updates is a list") as caught:
            one_node(CHANNELS, lambda state, config: NodeResult(pairs)).invoke()
        assert "give a dict of channel updates" in caught.value.hint

    @pytest.mark.parametrize("status", ["failed", "blocked", ""])
    def test_another_status_fails_the_node_with_its_text_and_applies_nothing(self, status: str) -> None:
        runner = one_node(CHANNELS, returning(NodeResult({"a": 1}, text="no budget", status=status)))
        seen: list[Any] = []
        with pytest.raises(NodeFailed, match="no budget"):
            runner.invoke(on_event=seen.append)
        assert [e.checkpoint.step for e in seen if isinstance(e, StepCommitted)] == [0]


class TestPlainMapping:
    """A plain mapping is never searched for the keys of an envelope."""

    def test_status_and_text_are_legal_channel_names(self) -> None:
        names = ["updates", "text", "status", "compensation", "usage", "state_updates"]
        answer = {name: f"my {name}" for name in names}
        result = one_node({name: Channel(None) for name in names}, returning(answer)).invoke()
        assert dict(result) == answer

    def test_a_channel_named_status_does_not_fail_its_node(self) -> None:
        result = one_node({"status": Channel("")}, returning({"status": "failed"})).invoke()
        assert (result["status"], result.status) == ("failed", "completed")

    def test_an_envelope_s_keys_in_a_mapping_are_unknown_channels(self) -> None:
        with pytest.raises(NodeFailed, match="writes 'updates', which is not a channel"):
            one_node(CHANNELS, returning({"updates": {"a": 1}})).invoke()


class TestState:
    def test_get_item_and_keys(self) -> None:
        def node(state: Any, config: Any) -> dict[str, Any]:
            return {
                "log": [
                    state.get("a"),
                    state["a"],
                    list(state.keys()),
                    len(state),
                    "a" in state,
                    "x" in state,
                ]
            }

        assert one_node(CHANNELS, node).invoke({"a": 5})["log"] == [[5, 5, ["a", "log"], 2, True, False]]

    def test_get_gives_a_default_for_null(self) -> None:
        channels = {"n": Channel(None), "log": Channel(None)}
        node = lambda state, config: {"log": [state.get("n"), state.get("n", 3), state["n"]]}  # noqa: E731
        assert one_node(channels, node).invoke()["log"] == [None, 3, None]

    @pytest.mark.parametrize("read", [lambda s: s["aa"], lambda s: s.get("aa"), lambda s: s.get("aa", 1)])
    def test_an_unknown_channel_is_an_error_naming_the_nearest(self, read: Any) -> None:
        with pytest.raises(NodeFailed, match="no channel 'aa'") as caught:
            one_node(CHANNELS, lambda state, config: read(state)).invoke()
        assert "did you mean 'a'" in caught.value.hint

    def test_a_node_does_not_see_its_own_update_before_the_step_ends(self) -> None:
        first = lambda state, config: {"a": 1, "log": state["a"]}  # noqa: E731
        second = lambda state, config: {"log": state["a"]}  # noqa: E731
        assert chain(CHANNELS, first, second).compile().invoke()["log"] == [0, 1]


class TestConfig:
    @staticmethod
    def seen(runner_options: dict[str, Any], invoke_options: dict[str, Any], *extras: Any) -> list[Any]:
        configs: list[Any] = []

        def node(state: Any, config: Any) -> None:
            configs.append(config)

        chain(CHANNELS, node, node, *extras).compile(**runner_options).invoke(**invoke_options)
        return configs

    def test_names_the_thread_and_counts_iterations_and_attempts_from_1(self, store: Checkpointer) -> None:
        configs = self.seen({"checkpointer": store}, {"thread_id": "t"})
        assert [(c.thread_id, c.iteration, c.attempt) for c in configs] == [("t", 1, 1), ("t", 2, 1)]

    def test_carries_the_agents_of_compile(self) -> None:
        agent = object()
        assert self.seen({"agents": {"writer": agent}}, {})[0].agents == {"writer": agent}

    def test_each_step_has_its_own_idempotency_key(self) -> None:
        first, second = self.seen({}, {"thread_id": "t"})
        assert first.idempotency_key != second.idempotency_key

    def test_emit_streams_text(self) -> None:
        def node(state: Any, config: Any) -> None:
            for part in ("one ", "", "two"):
                config.emit(part)

        seen: list[Any] = []
        one_node(CHANNELS, node).invoke(on_event=seen.append)
        texts = [event for event in seen if isinstance(event, TextStreamed)]
        assert texts == [TextStreamed("n1", "", "one "), TextStreamed("n1", "", "two")]


class TestFailure:
    def test_names_the_node_the_attempt_and_the_cause(self) -> None:
        with pytest.raises(NodeFailed) as caught:
            one_node(CHANNELS, lambda state, config: {}["missing"]).invoke()
        error = caught.value
        assert error.message == "node 'n1', attempt 1: KeyError: 'missing'"
        assert (error.node, error.attempt) == ("n1", 1)
        assert isinstance(error.__cause__, KeyError)
        assert "Traceback" in error.details

    def test_is_kept_with_the_thread(self, store: Checkpointer) -> None:
        def node(state: Any, config: Any) -> None:
            raise ValueError("no")

        runner = chain(CHANNELS, returning({"a": 1}), node).compile(checkpointer=store)
        with pytest.raises(NodeFailed):
            runner.invoke(thread_id="t")
        cursor = store.cursor("t")
        assert cursor is not None
        assert (cursor.status, cursor.reason, cursor.head, cursor.next_node) == (
            "failed",
            "node_error",
            1,
            "n2",
        )
        assert cursor.error is not None
        assert "ValueError: no" in cursor.error.message
        assert runner.get_state("t")["a"] == 1

    def test_a_failed_thread_resumes_at_the_node_that_failed_as_the_next_attempt(
        self, store: Checkpointer
    ) -> None:
        attempts: list[int] = []
        keys: set[str] = set()

        def node(state: Any, config: Any) -> dict[str, Any]:
            attempts.append(config.attempt)
            keys.add(config.idempotency_key)
            if len(attempts) < 3:
                raise ValueError("no")
            return {"log": "n2"}

        runner = chain(CHANNELS, returning({"log": "n1"}), node).compile(checkpointer=store)
        for _ in range(2):
            with pytest.raises(NodeFailed):
                runner.invoke(thread_id="t")
        assert runner.invoke(thread_id="t")["log"] == ["n1", "n2"]
        assert attempts == [1, 2, 3]
        assert len(keys) == 1


class TestSecondParameter:
    """What is not the config keeps its default."""

    def test_a_default_binds_what_a_loop_says(self) -> None:
        nodes: Any = [lambda _state, word=word: {"a": word} for word in ("one", "two")]
        assert [one_node(CHANNELS, node).invoke()["a"] for node in nodes] == ["one", "two"]

    def test_config_may_have_a_default(self) -> None:
        def node(_state: Any, config: Any = None) -> dict[str, Any]:
            return {"a": config.iteration}

        assert one_node(CHANNELS, node).invoke()["a"] == 1

    def test_a_default_of_a_third_is_kept_as_well(self) -> None:
        node = lambda _state, config, word="kept": {"a": [config.iteration, word]}  # noqa: E731
        assert one_node(CHANNELS, node).invoke()["a"] == [1, "kept"]

    def test_a_route_and_a_gate_keep_theirs(self) -> None:
        graph = StateGraph(CHANNELS).add_node("n", lambda _state: None).add_edge(START, "n")
        graph.add_conditional_edge("n", lambda _state, way="out": way, {"out": END, "back": "n"})
        choice = GateChoice("ok", "good", values=lambda _state, word="kept": {"a": word})
        gate = Gate("n", "?", [choice], payload=lambda _state, shown="kept": shown)
        runner = graph.compile(checkpointer=MemoryCheckpointer(), interrupt_before=[gate])
        request = runner.invoke(thread_id="t").pending[0]
        assert request.payload == "kept"
        runner.answer("t", request.id, {"choice": "ok", "text": "typed"}, step=request.step)
        result = runner.invoke(thread_id="t")
        assert (result.status, result["a"]) == ("completed", "kept")
