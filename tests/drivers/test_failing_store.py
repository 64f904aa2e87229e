"""A store that fails in the middle of a run: the run ends once, says why, and nothing committed is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import StaleWriter
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Fork, Run, Start, UpdateState
from hitl_tui.engine.log.events import AttemptFailed, RunEnded
from hitl_tui.engine.log.records import Commit, Cursor
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.errors import StoreUnusable
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.lease import releasing
from tests.drivers.conftest import Bench
from tests.support.flows import check_log, line, say
from tests.support.spec import spec
from tests.support.watching import Watcher

pytestmark = spec("10")


@pytest.fixture(autouse=True)
def _nothing_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget at the end the leases that could not be given back here."""
    monkeypatch.setattr("hitl_tui.stores.lease._given_back", set())


class Failing:
    """A store that refuses some commits, as a full disk does.

    Args:
        refuses: which commits are refused, while `broken`.
        releases: whether a lease can be given back meanwhile.
    """

    def __init__(
        self, store: Checkpointer, refuses: Callable[[Commit], bool], *, releases: bool = True
    ) -> None:
        self.broken = True
        self._store = store
        self._refuses = refuses
        self._releases = releases

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def create_thread(self, info: ThreadInfo, cursor: Cursor, first: Commit | None = None) -> None:
        if first is not None and self.broken and self._refuses(first):
            raise StoreUnusable("the disk is full", "make room")
        self._store.create_thread(info, cursor, first)

    def commit(self, thread_id: str, commit: Commit) -> None:
        if self.broken and self._refuses(commit):
            raise StoreUnusable("the disk is full", "make room")
        self._store.commit(thread_id, commit)

    def release(self, thread_id: str, token: str) -> None:
        if self.broken and not self._releases and self._store.cursor(thread_id).status == "running":  # type: ignore[union-attr]
            with releasing(token):
                raise StoreUnusable("the disk is full", "make room")
        self._store.release(thread_id, token)


def second_step(commit: Commit) -> bool:
    """The commit of node b, and nothing else."""
    return commit.checkpoint is not None and commit.checkpoint.step == 2


def from_second_step_on(commit: Commit) -> bool:
    return commit.cursor.head >= 2 or (commit.cursor.head == 1 and commit.cursor.status != "running")


async def open_on(bench: Bench, failing: Failing, runner: Any) -> Watcher:
    hub = LocalHub(failing, lambda info: runner)  # type: ignore[arg-type]
    bench._hubs.append(hub)
    return await Watcher.open(await hub.new("t", runner))


@pytest.mark.parametrize("refuses", [second_step, from_second_step_on])
@pytest.mark.parametrize("releases", [True, False])
async def test_a_run_on_a_full_disk_ends_once_and_continues_when_there_is_room(
    bench: Bench, refuses: Callable[[Commit], bool], releases: bool
) -> None:
    failing = Failing(bench.store, refuses, releases=releases)
    runner = line(bench.store, say("one"), say("two"), say("three"))
    watcher = await open_on(bench, failing, runner)
    await watcher.driver.execute(Start({}))
    view = await watcher.run()
    assert (view.progress.status, view.progress.head, view.values["log"]) == ("failed", 1, ["one"])
    assert view.error is not None
    assert "the disk is full" in view.error.message
    assert view.error.hint == "make room"
    assert view.running_node is None
    assert len(watcher.events_of(RunEnded)) == len(watcher.events_of(AttemptFailed)) == 1
    assert isinstance(watcher.seen[-1].event, RunEnded)
    await watcher.check()
    failing.broken = False
    view = await watcher.run()
    assert (view.progress.status, view.values["log"]) == ("completed", ["one", "two", "three"])
    assert [point.attempt for point in view.checkpoints] == [1, 1, 2, 1]
    assert len(watcher.events_of(RunEnded)) == 2
    await watcher.check()
    check_log(runner, "t")


async def test_another_process_finds_what_was_committed(bench: Bench) -> None:
    failing = Failing(bench.store, from_second_step_on)
    runner = line(bench.store, say("one"), say("two"))
    watcher = await open_on(bench, failing, runner)
    await watcher.driver.execute(Start({}))
    await watcher.run()
    await watcher.check()
    result = runner.invoke(thread_id="t")
    assert (result.status, list(result["log"])) == ("completed", ["one", "two"])
    check_log(runner, "t")


async def test_a_command_that_can_t_be_stored_says_so_and_changes_nothing(bench: Bench) -> None:
    failing = Failing(bench.store, lambda commit: True)
    failing.broken = False
    watcher = await open_on(bench, failing, line(bench.store, say("one"), say("two")))
    await watcher.driver.execute(Start({}))
    await watcher.step()
    failing.broken = True
    before = await watcher.check()
    with pytest.raises(StoreUnusable, match="disk is full"):
        await watcher.driver.execute(UpdateState({"draft": "x"}, expected_step=1))
    with pytest.raises(StoreUnusable):
        await watcher.driver.execute(Fork(1, "f"))
    assert bench.store.info("f") is None
    assert (await watcher.check()).progress == before.progress
    with pytest.raises(StoreUnusable):
        await watcher.driver.execute(Run())
    assert (await watcher.check()).progress == before.progress
    failing.broken = False
    assert await watcher.driver.execute(UpdateState({"draft": "x"}, expected_step=1)) == 2
    assert (await watcher.run()).values["log"] == ["one", "two"]
    await watcher.check()


async def test_a_commit_that_lost_a_race_is_refused(bench: Bench) -> None:
    failing = Failing(bench.store, second_step)

    def stale(commit: Commit) -> bool:
        if second_step(commit):
            raise StaleWriter("the thread has moved", "look again")
        return False

    failing._refuses = stale
    watcher = await open_on(bench, failing, line(bench.store, say("one"), say("two")))
    await watcher.driver.execute(Start({}))
    view = await watcher.run()
    assert (view.progress.status, view.progress.head) == ("failed", 1)
    assert len(watcher.events_of(RunEnded)) == len(watcher.events_of(AttemptFailed)) == 1
