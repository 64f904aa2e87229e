"""Who looks at what waits and who has claimed it, as drivers of one store tell each other of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitl_tui import AnswerRefused
from hitl_tui.engine.commands import Answer, Claim, LookAt
from hitl_tui.engine.log.events import AttendanceChanged
from hitl_tui.stores import SQLiteCheckpointer
from tests.drivers.conftest import Bench
from tests.drivers.test_watching import path, store
from tests.stores.asking_desk import asking
from tests.support.spec import spec
from tests.support.watching import Watcher

__all__ = ["path", "store"]
pytestmark = spec("11")


@pytest.fixture
async def two(store: SQLiteCheckpointer) -> AsyncIterator[tuple[Watcher, Watcher]]:
    """Ann's driver and Bob's, on one thread that waits."""
    runner = asking(store)
    runner.invoke({}, thread_id="t")
    benches = [Bench(store), Bench(store)]
    yield await benches[0].watch(runner), await benches[1].watch(runner)
    for bench in benches:
        await bench.close()


async def test_presence_is_shown_to_others_until_it_ends(
    two: tuple[Watcher, Watcher],
) -> None:
    ann, bob = two
    request = ann.view.progress.pending[0]
    await ann.driver.execute(LookAt(request.id, "ann"))
    view = await bob.until(lambda view: bool(view.attending))
    (there,) = view.attending
    assert (there.actor, there.request, there.claims) == ("ann", request.id, False)
    assert (await ann.driver.snapshot()).attending == ()
    await ann.driver.execute(LookAt("", "ann"))
    await bob.until(lambda view: not view.attending)
    assert len(bob.events_of(AttendanceChanged)) == 2


async def test_it_ends_with_its_driver_and_with_another_look(two: tuple[Watcher, Watcher]) -> None:
    ann, bob = two
    request = ann.view.progress.pending[0]
    for _ in range(2):
        await ann.driver.execute(LookAt(request.id, "ann"))
        await bob.until(lambda view: len(view.attending) == 1)
    await ann.driver.close()
    await bob.until(lambda view: not view.attending)


async def test_a_claim_is_reported_to_both_and_binds(two: tuple[Watcher, Watcher]) -> None:
    ann, bob = two
    request = ann.view.progress.pending[0]
    await ann.driver.execute(Claim(request.id, "ann"))
    for each in two:
        await each.until(lambda view: any(at.claims for at in view.attending))
    with pytest.raises(AnswerRefused, match="ann"):
        await bob.driver.execute(Answer(request.id, "print", request.step, "bob"))
    await ann.driver.execute(Answer(request.id, "print", request.step, "ann"))
    for each in two:
        await each.until(lambda view: not view.attending and not view.progress.pending)
