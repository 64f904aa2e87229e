"""What is tainted, how it spreads, and what clears it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import Channel, MemoryCheckpointer, NodeFailed, StaleWriter, UndeclaredChannel, UsageError
from hitl_tui.engine.log.events import StepCommitted
from hitl_tui.engine.log.taint import Lineage, Taint
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, one_node, returning
from tests.support.spec import spec

pytestmark = spec("8")

CHANNELS = {
    "page": Channel(None),
    "plan": Channel({"steps": ["a"], "owner": "ann"}),
    "notes": Channel([], reducer="append"),
    "secret": Channel("s", visibility="private"),
    "out": Channel(None),
}


def tainted(runner: GraphRunner, thread_id: str = "t") -> list[str]:
    """The tainted channels at the head, sorted."""
    return sorted(runner.open(thread_id).state.taint)


def fetch(state: Any, config: Any) -> dict[str, Any]:
    """What a tool brings in."""
    config.taint("web")
    return {"page": "<p>hello</p>"}


def after_page(store: Checkpointer, node: Callable[..., Any], **options: Any) -> GraphRunner:
    """A tainted page, then a node."""
    runner = chain(CHANNELS, fetch, node, **options).compile(checkpointer=store)
    runner.invoke(thread_id="t")
    return runner


class TestWhatBringsTaintIn:
    @pytest.mark.parametrize(
        ("external", "source"), [(True, "n1"), ("web", "web"), ("  mail ", "mail")], ids=repr
    )
    def test_an_external_node_taints_all_it_writes(
        self, store: Checkpointer, external: Any, source: str
    ) -> None:
        node = returning({"page": "x", "notes": "y"})
        runner = chain(CHANNELS, node, external=external).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert runner.open("t").state.taint == {
            name: Taint(name, 1, "n1", (source,)) for name in ("page", "notes")
        }

    def test_a_node_may_say_so_while_it_runs(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, fetch).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert tainted(runner) == ["page"]

    def test_several_sources_are_all_kept_once(self, store: Checkpointer) -> None:
        def node(state: Any, config: Any) -> dict[str, Any]:
            for source in ("web", "file", "web"):
                config.taint(source)
            return {"page": 1}

        runner = chain(CHANNELS, node, external="tool").compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert runner.open("t").state.taint["page"].sources == ("tool", "web", "file")

    def test_tainted_again_it_is_so_since_the_first_time_and_from_every_source(
        self, store: Checkpointer
    ) -> None:
        def mail(state: Any, config: Any) -> dict[str, Any]:
            config.taint("mail")
            return {"page": "another"}

        runner = chain(CHANNELS, fetch, mail, fetch).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert runner.open("t").state.taint == {"page": Taint("page", 1, "n1", ("web", "mail"))}

    @pytest.mark.parametrize("source", ["", "  ", None, 1], ids=repr)
    def test_a_source_is_some_text(self, source: Any) -> None:
        with pytest.raises(NodeFailed, match="a source of taint is some text"):
            one_node(CHANNELS, lambda state, config: config.taint(source)).invoke()

    def test_a_plain_node_taints_nothing(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, lambda state, config: {"out": dict(state)["plan"]}).compile(
            checkpointer=store
        )
        runner.invoke({"notes": "from ann"}, thread_id="t")
        assert tainted(runner) == []
        assert all(not one.tainted and one.lineage is None for one in store.records("t", 0, 9))

    def test_an_attempt_that_failed_leaves_no_taint(self, store: Checkpointer) -> None:
        def node(state: Any, config: Any) -> None:
            config.taint("web")
            raise ValueError("boom")

        runner = chain(CHANNELS, node).compile(checkpointer=store)
        with pytest.raises(NodeFailed):
            runner.invoke(thread_id="t")
        assert tainted(runner) == []


READS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "reads it by []": (lambda state: state["page"], True),
    "reads it by get": (lambda state: state.get("page"), True),
    "reads all values": (lambda state: list(state.values()), True),
    "reads all items": (dict, True),
    "reads another channel": (lambda state: state["plan"], False),
    "reads a leaf of another channel": (lambda state: state["plan.steps"], False),
    "asks for the names only": (lambda state: [*state, len(state), "page" in state], False),
    "reads nothing": (lambda state: None, False),
    "reads goal and constraints": (lambda state: [state["goal"], state["constraints"]], False),
}


class TestHowItSpreads:
    @pytest.mark.parametrize(("read", "spreads"), READS.values(), ids=READS)
    def test_a_node_taints_what_it_writes_where_it(
        self, store: Checkpointer, read: Callable[[Any], Any], spreads: bool
    ) -> None:
        def node(state: Any, config: Any) -> dict[str, Any]:
            read(state)
            return {"out": 1}

        runner = after_page(store, node)
        assert tainted(runner) == (["out", "page"] if spreads else ["page"])

    def test_a_leaf_of_a_tainted_channel_counts_as_the_channel(self, store: Checkpointer) -> None:
        bring = chain(
            CHANNELS,
            lambda state, config: config.taint("file") or {"plan": {"steps": [1]}},
            lambda state, config: {"out": state["plan.steps.0"]},
        ).compile(checkpointer=store)
        bring.invoke(thread_id="t")
        assert bring.open("t").state.taint["out"] == Taint("out", 2, "n2", ("file",))
        (record,) = store.records("t", 2, 2)
        assert record.lineage == Lineage(2, "n2", (), ("plan",))
        assert store.checkpoint("t", 2).read == ("plan.steps.0",)  # type: ignore[union-attr]

    @pytest.mark.parametrize("kind", ["async", "sync"])
    def test_taint_spreads_through_every_kind_of_node(self, store: Checkpointer, kind: str) -> None:
        async def slow(state: Any, config: Any) -> dict[str, Any]:
            return {"out": state["page"]}

        node = slow if kind == "async" else lambda state, config: {"out": state["page"]}
        assert tainted(after_page(store, node)) == ["out", "page"]

    def test_taint_reaches_private_channels(self, store: Checkpointer) -> None:
        runner = after_page(store, lambda state, config: {"secret": state["page"]})
        assert tainted(runner) == ["page", "secret"]

    def test_what_was_read_of_a_channel_before_it_was_tainted_does_not_count(
        self, store: Checkpointer
    ) -> None:
        first = lambda state, config: {"out": state["page"]}  # noqa: E731
        runner = chain(CHANNELS, first, fetch).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert tainted(runner) == ["page"]

    def test_routes_and_gates_and_conditions_spread_nothing(self, store: Checkpointer) -> None:
        from hitl_tui import END, START, Gate, GateChoice, StateGraph
        from hitl_tui.engine.graph.termination import custom_condition

        gate = Gate(
            "plain",
            "Look",
            [GateChoice("ok", "ok", values=lambda state, text: {"notes": ["seen"]})],
            payload=lambda state: state["page"],
        )
        runner = (
            StateGraph(CHANNELS)
            .add_node("fetch", fetch)
            .add_node("plain", lambda state, config: {"out": 1})
            .add_edge(START, "fetch")
            .add_conditional_edge("fetch", lambda state: str(state["page"] is None), {"False": "plain"})
            .add_edge("plain", END)
            .compile(
                checkpointer=store,
                interrupt_after=[gate],
                termination=custom_condition(lambda state: state["page"] == 1),
            )
        )
        waits = runner.invoke(thread_id="t")
        runner.answer("t", waits.pending[0].id, "ok", step=waits.step)
        assert runner.get_state("t")["notes"] == ["seen"]
        assert tainted(runner) == ["page"]

    def test_the_last_source_is_known_through_several_nodes(self, store: Checkpointer) -> None:
        runner = chain(
            CHANNELS,
            fetch,
            lambda state, config: {"plan": {"text": state["page"]}},
            lambda state, config: config.taint("mail") or {"out": state["plan"]},
        ).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert runner.open("t").state.taint["out"] == Taint("out", 3, "n3", ("web", "mail"))

    def test_taint_is_emitted(self, store: Checkpointer) -> None:
        events: list[Any] = []
        runner = chain(CHANNELS, fetch, lambda state, config: {"out": state["page"]}).compile(
            checkpointer=store
        )
        runner.invoke(thread_id="t", on_event=events.append)
        steps = [event for event in events if isinstance(event, StepCommitted)]
        assert [[one.tainted for one in step.updates] for step in steps] == [[], [True], [True]]
        assert steps[2].updates[0].lineage == Lineage(2, "n2", (), ("page",))
        assert [one.channel for one in steps[2].checkpoint.tainted] == ["page", "out"]
        assert steps[2].checkpoint.read == ("page",)
        assert runner.updates("t", 2) == steps[2].updates


CLEARS_NOTHING: dict[str, Callable[[GraphRunner], Any]] = {
    "a node that overwrites it": lambda runner: runner.invoke(thread_id="t", resume="entry"),
    "a human's edit": lambda runner: runner.update_state("t", {"page": "mine"}, actor="ann"),
    "an edit with as_node": lambda runner: runner.update_state("t", {"page": "x"}, as_node="n1"),
    "input": lambda runner: runner.invoke({"page": "typed"}, thread_id="t"),
}


class TestWhatDoesNotClearIt:
    @pytest.mark.parametrize("act", CLEARS_NOTHING.values(), ids=CLEARS_NOTHING)
    def test_it_stays_after(self, store: Checkpointer, act: Callable[[GraphRunner], Any]) -> None:
        runner = chain(
            CHANNELS,
            lambda state, config: {"page": "clean"} if state["out"] else fetch(state, config),
            returning({"out": 1}),
        ).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        act(runner)
        assert tainted(runner) == ["page"]
        last = [one for one in store.records("t", 0, 99) if one.channel == "page"][-1]
        assert last.tainted
        assert last.lineage is None
        assert runner.verify("t", strict=True).ok

    @pytest.mark.parametrize("changes", [None, {"page": "mine"}], ids=["a plain fork", "a fork with changes"])
    def test_a_fork_keeps_it(self, store: Checkpointer, changes: Any) -> None:
        runner = after_page(store, returning({"out": 1}))
        runner.fork("t", 1, "f", changes=changes, actor="ann")
        assert runner.open("f").state.taint == {"page": Taint("page", 1, "n1", ("web",))}
        assert runner.verify("f", strict=True).ok

    def test_a_fork_from_before_it_has_none(self, store: Checkpointer) -> None:
        runner = after_page(store, returning({"out": 1}))
        runner.fork("t", 0, "f")
        assert tainted(runner, "f") == []

    def test_saving_a_whole_state_keeps_it(self, store: Checkpointer) -> None:
        runner = after_page(store, returning({"out": 1}))
        store.save("t", 3, {**runner.get_state("t"), "page": "other"})
        assert tainted(runner) == ["page"]
        assert runner.verify("t").ok


class TestDeclassify:
    def test_it_clears_one_channel_and_changes_no_value(self, store: Checkpointer) -> None:
        runner = after_page(store, lambda state, config: {"out": state["page"]})
        before = runner.get_state("t")
        step = runner.declassify("t", "page", actor="ann", reason="read it")
        assert tainted(runner) == ["out"]
        assert runner.get_state("t") == before
        (record,) = store.records("t", step, step)
        assert (record.op, record.source, record.tainted) == ("set", "human", False)
        assert record.previous_hash == record.next_hash
        assert (record.actor, record.note, record.lineage) == (
            "ann",
            "read it",
            Lineage(step, "", cleared=True),
        )
        point = store.checkpoint("t", step)
        assert point
        assert (point.source, point.decision, point.state_hash) == (
            "human",
            "declassify",
            store.checkpoint("t", step - 1).state_hash,  # type: ignore[union-attr]
        )
        assert runner.verify("t", strict=True).ok

    def test_the_ledger_says_who_why_and_what_it_was(self, store: Checkpointer) -> None:
        runner = after_page(store, returning({"out": 1}))
        runner.declassify("t", "page", actor="ann", reason="read it")
        entry = store.ledger("t")[-1]
        assert (entry.kind, entry.actor, entry.note) == ("declassify", "ann", "read it")
        assert entry.data == {"channel": "page", "sources": ["web"], "since": 1, "by": "n1"}

    def test_what_is_read_afterwards_does_not_taint(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, fetch, lambda state, config: {"out": state["page"]}).compile(
            checkpointer=store, interrupt_after=["n1"]
        )
        runner.invoke(thread_id="t")
        runner.declassify("t", "page", actor="ann", reason="read it")
        runner.invoke(thread_id="t")
        assert tainted(runner) == []

    def test_it_can_be_tainted_again(self, store: Checkpointer) -> None:
        runner = after_page(store, returning({"out": 1}))
        runner.declassify("t", "page", actor="ann", reason="read it")
        runner.invoke(thread_id="t", resume="entry")
        assert runner.open("t").state.taint["page"] == Taint("page", 5, "n1", ("web",))
        assert runner.verify("t", strict=True).ok

    @pytest.mark.parametrize(
        ("arguments", "error", "words"),
        [
            ({"channel": "out"}, UsageError, "'out' is not tainted"),
            ({"channel": "paeg"}, UndeclaredChannel, "no channel 'paeg'"),
            ({"reason": "  "}, UsageError, "needs a reason"),
            ({"actor": ""}, UsageError, "nobody is named"),
            ({"actor": None}, UsageError, "nobody is named"),
            ({"reason": 5}, UsageError, "needs a reason"),
            ({"expected_step": 1}, StaleWriter, "at step 2, 'page' was looked at on 1"),
        ],
        ids=[
            "a clean channel",
            "an unknown channel",
            "no reason",
            "no actor",
            "null as actor",
            "a number as reason",
            "a stale step",
        ],
    )
    def test_it_is_refused_for(
        self, store: Checkpointer, arguments: dict[str, Any], error: type[Exception], words: str
    ) -> None:
        runner = after_page(store, returning({"out": 1}))
        given = {"channel": "page", "actor": "ann", "reason": "read it"} | arguments
        with pytest.raises(error, match=words):
            runner.declassify("t", **given)
        assert store.cursor("t").head == 2  # type: ignore[union-attr]

    def test_a_private_channel_can_be_declassified_and_its_value_stays_private(
        self, store: Checkpointer
    ) -> None:
        runner = after_page(store, lambda state, config: {"secret": "hunter2" + state["page"]})
        step = runner.declassify("t", "secret", actor="ann", reason="mine")
        assert "hunter2" not in repr(runner.updates("t", step))


class TestReveal:
    def test_it_gives_the_value_and_the_ledger_keeps_who_looked(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, returning({"secret": "hunter2"})).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert runner.reveal("t", "secret", actor="ann") == "hunter2"
        assert runner.reveal("t", "secret", actor="bob", step=0) == "s"
        found = [(one.kind, one.actor, one.step, one.data) for one in store.ledger("t")]
        assert found == [
            ("reveal", "ann", 1, {"channel": "secret"}),
            ("reveal", "bob", 0, {"channel": "secret"}),
        ]
        assert "hunter2" not in repr(store.ledger("t"))
        assert runner.verify("t").ok

    def test_revealing_needs_a_name(self, store: Checkpointer) -> None:
        runner = chain(CHANNELS, returning({})).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        with pytest.raises(UsageError, match="nobody is named"):
            runner.reveal("t", "secret", actor=" ")


def test_taint_is_tracked_without_a_store() -> None:
    runner = chain(CHANNELS, fetch, lambda state, config: {"out": state["page"]}).compile()
    steps = list(runner.stream())
    assert [[one.tainted for one in step.updates] for step in steps] == [[True], [True]]


def test_a_rebuilt_thread_continues_like_a_live_one(store: Checkpointer) -> None:
    nodes = [fetch, returning({"plan": {}}), lambda state, config: {"out": state["page"]}]
    chain(CHANNELS, *nodes).compile(checkpointer=store).invoke(thread_id="live")
    runner = chain(CHANNELS, *nodes).compile(checkpointer=store)
    for _ in nodes:
        runner.step(thread_id="stepped")
    assert runner.open("stepped").state.taint == runner.open("live").state.taint


@pytest.mark.parametrize("watched", [False, True], ids=["nobody watches", "somebody watches"])
def test_what_a_node_read_is_noted_where_somebody_watches(watched: bool) -> None:
    store = MemoryCheckpointer()
    runner = chain(CHANNELS, lambda state, config: {"out": state["plan.owner"]}).compile(checkpointer=store)
    runner.invoke(thread_id="t", on_event=(lambda event: None) if watched else None)
    assert store.checkpoint("t", 1).read == (("plan.owner",) if watched else ())  # type: ignore[union-attr]
