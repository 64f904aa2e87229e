"""The family of a thread: its parents and all forks, for the timeline."""

from __future__ import annotations

from hitl_tui.engine.commands import Start
from tests.drivers.conftest import Bench
from tests.support.flows import line, say
from tests.support.spec import spec

pytestmark = spec("11")


async def test_parents_and_forks_each_with_their_own_steps(bench: Bench) -> None:
    runner = line(bench.store, say("one"), say("two"), say("three"))
    runner.invoke({}, thread_id="t")
    runner.fork("t", 2, "left", changes={"draft": "x"})
    runner.fork("t", 1, "right")
    runner.fork("left", 3, "leaf")
    runner.invoke(thread_id="right")
    for thread in ("t", "left", "leaf", "right"):
        found = {one.thread_id: one for one in await (await bench.watch(runner, thread)).driver.family()}
        assert set(found) == {"t", "left", "right", "leaf"}
        assert next(iter(found)) == thread
        assert {name: (one.parent, one.fork_step) for name, one in found.items()} == {
            "t": (None, -1), "left": ("t", 2), "right": ("t", 1), "leaf": ("left", 3),
        }  # fmt: skip
        steps = {name: [point.step for point in one.checkpoints] for name, one in found.items()}
        assert steps == {"t": [0, 1, 2, 3], "left": [3], "right": [2, 3], "leaf": []}
        assert found["right"].summary.status == "completed"


async def test_a_thread_alone_and_one_that_is_not_there_yet(bench: Bench) -> None:
    watcher = await bench.watch(line(bench.store, say("one")))
    assert await watcher.driver.family() == ()
    await watcher.driver.execute(Start({}))
    assert [one.thread_id for one in await watcher.driver.family()] == ["t"]


async def test_a_large_family_is_cut_at_a_bound(bench: Bench) -> None:
    runner = line(bench.store, say("one"))
    runner.invoke({}, thread_id="t")
    for n in range(45):
        runner.fork("t", 1, f"f{n}")
    family = await (await bench.watch(runner, "f44")).driver.family()
    assert len(family) == 40
    assert [one.thread_id for one in family[:2]] == ["f44", "t"]
