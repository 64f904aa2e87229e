"""State at any step is rebuilt from the log and equals the live state, hash for hash."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui import Channel, MemoryCheckpointer, NodeFailed, SQLiteCheckpointer
from hitl_tui.engine.state.canonical import canonical, channel_hash, state_hash
from hitl_tui.engine.state.reducers import by_type, parse_reducer
from hitl_tui.engine.thread.rebuild import Decoded, state_at
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, returning
from tests.engine.state.test_values import json_values
from tests.engine.thread.test_log import state_hash_of
from tests.support.spec import spec

pytestmark = spec("10")

# A reducer, a default, and what updates it can take.
number = st.integers(-(2**70), 2**70) | st.floats(-1e9, 1e9)
wide = st.sampled_from(["x" * 7_000, "é" * 20_000])  # enough of these, and a snapshot is written
anything = json_values | wide
KINDS: dict[str, tuple[Any, Any, st.SearchStrategy[Any]]] = {
    "overwrite": ("overwrite", None, anything),
    "append": ("append", [], anything),
    "append-null": ("append", None, anything),
    "last_n": ("last_n(2)", ["a", "b", "c"], anything),
    "extend": ("extend", [1], st.lists(anything, max_size=3)),
    "merge": ("merge", {}, st.dictionaries(st.sampled_from("abc"), anything, max_size=3)),
    "merge_deep": (
        "merge_deep",
        {"a": {"b": 1}},
        st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("bc"), anything), max_size=2),
    ),
    "set_union": ("set_union", [], json_values | wide),
    "sum": ("sum", 0, number),
    "min": ("min", None, number),
    "max": ("max", 0, number),
    "by_type": (
        'by_type({"note":"append","all":"extend"})',
        [],
        st.builds(lambda note: {"type": "note", "content": note}, anything)
        | st.builds(lambda notes: {"type": "all", "content": notes}, st.lists(anything, max_size=2)),
    ),
    "custom": (lambda old, new: [new, *(old or [])][:3], None, anything),
    "custom-null": (lambda old, new: None if old else new, None, anything),
}


@st.composite
def updates(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), unique=True, max_size=4))
    return {name: draw(KINDS[name][2]) for name in names}


@contextmanager
def opened(kind: str) -> Iterator[Checkpointer]:
    if kind == "memory":
        yield MemoryCheckpointer()
        return
    with tempfile.TemporaryDirectory() as directory:
        store = SQLiteCheckpointer(Path(directory) / "runs.db")
        yield store
        store.close()


@given(
    kind=st.sampled_from(["memory", "sqlite"]),
    first=updates(),
    nodes=st.lists(updates(), min_size=1, max_size=6),
    edits=st.dictionaries(
        st.integers(1, 6), st.tuples(st.sampled_from(["append", "extend"]), st.lists(anything))
    ),
)
@pytest.mark.slow
def test_state_at_every_step_equals_the_live_state(
    kind: str, first: dict[str, Any], nodes: list[dict[str, Any]], edits: dict[int, tuple[str, Any]]
) -> None:
    channels = {name: Channel(default, reducer=reducer) for name, (reducer, default, _) in KINDS.items()}
    live: list[dict[str, Any]] = []
    with opened(kind) as store:
        runner = chain(channels, *map(returning, nodes)).compile(checkpointer=store)
        for place in range(1, len(nodes) + 1):
            step = runner.step(first if place == 1 else None, thread_id="t")
            if place == 1:
                live.append(runner.get_state("t", 0))
            live.append(dict(step))
            if place in edits:
                name, value = edits[place]
                runner.update_state("t", {name: value})
                live.append({**step, name: value})
        again = chain(channels, *map(returning, nodes)).compile(checkpointer=store)
        for number_of_step, state in enumerate(live):
            checkpoint = store.checkpoint("t", number_of_step)
            assert checkpoint is not None
            assert checkpoint.state_hash == state_hash({n: channel_hash(v) for n, v in state.items()})
            assert canonical(again.get_state("t", number_of_step)) == canonical(state)
            assert canonical(store.load_step("t", number_of_step)) == canonical(state)
            name = sorted(KINDS)[number_of_step % len(KINDS)]
            alone = state_at(store, "t", number_of_step, {name: channels[name].default, "other": 1}, {name})
            assert canonical(alone) == canonical({name: state[name]})
        reopened = again.open("t")
        assert canonical(reopened.state.values) == canonical(live[-1])
        assert store.checkpoint("t", len(live)) is None


class Counting:
    """A custom reducer that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, old: Any, new: Any) -> Any:
        self.calls += 1
        return [*(old or []), new, self.calls]


class TestHistoryNeverRunsUserCode:
    def test_of_custom_reducers(self, store: Checkpointer) -> None:
        reducer = Counting()
        channels = {"c": Channel(None, reducer=reducer), "n": Channel(0, reducer="sum")}
        runner = chain(channels, returning({"c": "a", "n": 1}), returning({"c": "b"})).compile(
            checkpointer=store
        )
        result = runner.invoke({"c": "x"}, thread_id="t")
        assert reducer.calls == 3
        assert [runner.get_state("t", step)["c"] for step in range(3)] == [
            ["x", 1],
            ["x", 1, "a", 2],
            ["x", 1, "a", 2, "b", 3],
        ]
        runner.history("t")
        runner.run_info("t")
        assert [u.after for u in runner.updates("t", 2)] == [["x", 1, "a", 2, "b", 3]]
        assert dict(runner.open("t").state.values) == dict(result)
        runner.fork("t", 1, "f")
        assert runner.get_state("f")["c"] == ["x", 1, "a", 2]
        assert reducer.calls == 3

    def test_of_custom_reducers_inside_by_type(self, store: Checkpointer) -> None:
        reducer = Counting()
        channels = {"c": Channel(None, reducer=by_type({"own": reducer, "note": "append"}))}
        nodes = [
            returning({"c": {"type": "own", "content": 1}}),
            returning({"c": {"type": "note", "content": 2}}),
        ]
        runner = chain(channels, *nodes).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert [runner.get_state("t", step)["c"] for step in (1, 2)] == [[1, 1], [1, 1, 2]]
        assert reducer.calls == 1

    def test_of_nodes_routes_and_conditions(self, store: Checkpointer) -> None:
        calls: list[str] = []
        channels = {"n": Channel(0, reducer="sum")}
        node = lambda state, config: calls.append("node") or {"n": 1}  # noqa: E731
        runner = chain(channels, node, node).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert calls == ["node", "node"]
        for step in range(3):
            runner.get_state("t", step)
            runner.updates("t", step)
        assert calls == ["node", "node"]

    def test_of_a_module_that_is_gone(
        self, store: Checkpointer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "passing_rules.py").write_text("def both(old, new):\n    return [old, new]\n")
        monkeypatch.syspath_prepend(tmp_path)
        channels = {"c": Channel(None, reducer="passing_rules:both"), "d": Channel(1)}
        chain(channels, returning({"c": 1})).compile(checkpointer=store).invoke({"c": 0}, thread_id="t")
        (tmp_path / "passing_rules.py").unlink()
        del sys.modules["passing_rules"]
        parse_reducer.cache_clear()
        assert store.load_step("t", 1) == {"c": [[None, 0], 1], "d": 1}
        assert store.load_latest("t") == (1, {"c": [[None, 0], 1], "d": 1})

    def test_a_null_result_is_kept_as_such(self, store: Checkpointer) -> None:
        channels = {"c": Channel(7, reducer=lambda old, new: None)}
        runner = chain(channels, returning({"c": 1})).compile(checkpointer=store)
        runner.invoke(thread_id="t")
        assert runner.get_state("t", 1) == {"c": None}


def test_a_value_comes_back_from_the_store_in_its_own_representation(store: Checkpointer) -> None:
    value = {
        "float": 1.0,
        "int": 1,
        "bool": True,
        "big": 2**100,
        "tiny": 5e-324,
        "text": "\u2028\x00é🎉",
        "": None,
    }
    runner = chain(
        {"c": Channel(None), "l": Channel([], reducer="append")}, returning({"c": value, "l": value})
    )
    compiled = runner.compile(checkpointer=store)
    compiled.invoke(thread_id="t")
    kept = compiled.open("t").state.values
    assert kept["c"] == value
    assert {key: (repr(found), type(found)) for key, found in kept["c"].items()} == {
        key: (repr(given), type(given)) for key, given in value.items()
    }
    assert kept["l"] == [value]


def test_the_state_of_a_failed_thread_is_that_of_its_last_step(store: Checkpointer) -> None:
    runner = chain({"n": Channel(0)}, returning({"n": 1}), lambda s, c: 1 / 0).compile(checkpointer=store)
    with pytest.raises(NodeFailed):
        runner.invoke(thread_id="t")
    assert runner.get_state("t") == runner.get_state("t", 1) == {"n": 1}


class TestTheStoreAlone:
    """State is rebuilt from the log, whatever the graph has become since."""

    OLD = {"kept": Channel(["a"], reducer="append"), "unwritten": Channel("old"), "gone": Channel(3)}  # noqa: RUF012

    def start(self, store: Checkpointer) -> None:
        old = chain(self.OLD, returning({"kept": "b"}), returning({"kept": "c"})).compile(checkpointer=store)
        old.step(thread_id="t")

    def test_knows_the_defaults_of_channels_nobody_wrote(self, store: Checkpointer) -> None:
        self.start(store)
        assert store.load_step("t", 0) == {"kept": ["a"], "unwritten": "old", "gone": 3}
        assert store.load_latest("t") == (1, {"kept": ["a", "b"], "unwritten": "old", "gone": 3})

    def test_is_not_changed_by_other_defaults_of_the_graph(self, store: Checkpointer) -> None:
        self.start(store)
        channels = {**self.OLD, "kept": Channel(["z"], reducer="append"), "unwritten": Channel("new")}
        runner = chain(channels, returning(None), returning({"kept": "c"})).compile(checkpointer=store)
        assert runner.get_state("t") == {"kept": ["a", "b"], "unwritten": "old", "gone": 3}
        assert runner.invoke(thread_id="t")["kept"] == ["a", "b", "c"]


def test_a_thread_without_a_step_has_the_defaults(store: Checkpointer) -> None:
    runner = chain({"n": Channel(7)}, returning(None)).compile(checkpointer=store)
    runner.invoke(thread_id="t")
    assert runner.get_state("t", 0) == {"n": 7}
    assert state_hash_of({"n": 7}) == runner.history("t")[-1].state_hash


def test_states_made_of_one_decoded_snapshot_share_what_stays() -> None:
    store = MemoryCheckpointer()
    document = {f"part{n}": {"text": "x" * 200, "n": n} for n in range(50)}

    def edit(state: Any) -> dict[str, Any]:
        n = len(state["log"])
        return {"doc": {**state["doc"], f"part{n}": {"n": -n}}, "log": n}

    channels = {"doc": Channel(document), "log": Channel([], reducer="append")}
    runner = chain(channels, edit, edit).compile(checkpointer=store)
    runner.invoke({}, thread_id="t")
    decoded = Decoded()
    first, second = (state_at(store, "t", step, decoded=decoded) for step in (1, 2))
    assert first == state_at(store, "t", 1)
    assert second == state_at(store, "t", 2)
    assert [name for name in document if first["doc"][name] is not second["doc"][name]] == [
        "part0",
        "part1",
    ]
    assert state_at(store, "t", 2, only=["log"], decoded=decoded) == {"log": [0, 1]}
