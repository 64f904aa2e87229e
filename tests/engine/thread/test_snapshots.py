"""Snapshots are a cache of bounded size that bounds what a rebuild reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from hitl_tui import Channel, SQLiteCheckpointer
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.snapshots import part_of
from tests.engine.building import loop
from tests.engine.thread.test_log import state_hash_of
from tests.support.spec import spec

pytestmark = spec("10")

RECORD = 200  # bytes that a record takes besides its update, at least
SMALLEST = 16_384  # bytes of log that are never worth a snapshot
STEPS = 150

Update = Callable[[int], Any]
GROWTH: dict[str, tuple[Channel, Update]] = {
    "append of short texts": (Channel([], reducer="append"), lambda n: "x" * 100),
    "append of long texts": (Channel([], reducer="append"), lambda n: "x" * 5_000),
    "append of texts that grow": (Channel([], reducer="append"), lambda n: "x" * 40 * n),
    "overwrite by long texts": (Channel(""), lambda n: f"{n}" * 9_000),
    "last_n of long texts": (Channel([], reducer="last_n(3)"), lambda n: "x" * 4_000),
    "merge of long texts": (Channel({}, reducer="merge"), lambda n: {f"k{n}": f"{n}" * 3_000}),
    "merge of new keys": (Channel({}, reducer="merge"), lambda n: {f"k{n}": "x" * 300}),
    "sum": (Channel(0, reducer="sum"), lambda n: 1),
    "a long default": (Channel(["x" * 90_000], reducer="append"), lambda n: "x" * 100),
}


def run(store: Checkpointer, channel: Channel, update: Update) -> GraphRunner:
    """A thread "t" of STEPS steps, each with one update of "c"."""
    node = lambda state, config: {"c": update(config.iteration), "n": 1}  # noqa: E731
    channels = {"c": channel, "n": Channel(0, reducer="sum")}
    limits = Limits(max_iterations=None)
    runner = loop(channels, node, lambda state: state["n"] < STEPS, checkpointer=store, limits=limits)
    runner.invoke(thread_id="t")
    return runner


def snapshots(store: Checkpointer) -> list[tuple[int, int]]:
    """Step and size of every snapshot."""
    found: dict[int, int] = {}
    for step in range(STEPS + 1):
        one = store.snapshot("t", step)
        if one:
            found[one[0]] = len(one[1])
    return sorted(found.items())


def written(store: Checkpointer, first: int, last: int) -> int:
    """Bytes of the log from one step to another, both included."""
    return sum(len(canonical(record.update)) + RECORD for record in store.records("t", first, last))


class Thread(NamedTuple):
    channel: Channel
    store: Checkpointer
    runner: GraphRunner


@pytest.fixture(scope="module", params=GROWTH)
def thread(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Thread]:
    store = SQLiteCheckpointer(tmp_path_factory.mktemp("store") / "runs.db", "none")
    channel, update = GROWTH[request.param]
    yield Thread(channel, store, run(store, channel, update))
    store.close()


def test_all_snapshots_together_are_a_constant_factor_of_the_log(thread: Thread) -> None:
    parts: list[bytes] = []
    for step, _ in snapshots(thread.store):
        parts.insert(0, part_of((thread.store.snapshot("t", step) or (0, b""))[1], parts))
    total = sum(map(len, parts))
    default = len(canonical(thread.channel.default))
    # What an append-only channel holds is kept once.
    factor = 2 if isinstance(thread.channel.default, list) else 10
    assert total <= factor * (written(thread.store, 0, STEPS) + default)


def test_a_rebuild_reads_about_one_state(thread: Thread) -> None:
    points = [*snapshots(thread.store), (STEPS, 0)]
    assert points[0][0] == 0
    for (step, size), (following, _) in pairwise(points):
        assert written(thread.store, step + 1, following - 1) <= max(SMALLEST, size)


def test_a_state_from_a_snapshot_is_the_state_from_the_log_alone(thread: Thread) -> None:
    for step, _ in snapshots(thread.store)[-2:]:
        for near in (max(step - 1, 0), step, min(step + 1, STEPS)):
            checkpoint = thread.store.checkpoint("t", near)
            assert checkpoint is not None
            state = thread.runner.get_state("t", near)
            assert thread.store.load_step("t", near) == state
            assert checkpoint.state_hash == state_hash_of(state)


def test_a_short_log_has_that_of_its_first_step_alone(store: Checkpointer) -> None:
    run(store, Channel("default"), lambda n: None if n < 200 else n)
    assert written(store, 0, 30) < SMALLEST
    found = store.snapshot("t", 30)
    assert found is not None
    assert found[0] == 0


@pytest.mark.slow
def test_a_long_log_has_some(store: Checkpointer) -> None:
    run(store, *GROWTH["append of long texts"])
    assert len(snapshots(store)) >= 5
