"""A hub for an audience: all can be looked at, every command is refused, nothing is written or built."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import COMMANDS, Cancel, LookAt, Run, verb
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import UsageError
from hitl_tui.stores.deletion import DeletionPlan
from tests.support.flows import line

WHY = "this is for an audience"


def never(info: ThreadInfo) -> GraphRunner:
    raise AssertionError("a graph was built")


async def test_every_command_is_refused_and_not_a_byte_is_written(tmp_path: Path) -> None:
    place = tmp_path / "runs.db"
    with closing(SQLiteCheckpointer(place)) as store:
        line(store, lambda state: {"log": "one"}).invoke({}, thread_id="t")
    before = place.read_bytes()
    hub = LocalHub(SQLiteCheckpointer(place), never, read_only=WHY)
    driver = await hub.open("t")
    snapshot = await driver.snapshot()
    assert snapshot.progress.head >= 0
    assert set(snapshot.refusals) == {verb(kind) for kind in COMMANDS}
    assert {driver.refusal(kind) for kind in COMMANDS} == {WHY}
    for command in (Run(), Cancel("ann"), LookAt("x", "ann")):
        with pytest.raises(UsageError, match=WHY):
            await driver.execute(command)
    async with hub.borrow("t") as same:
        assert same.refusal(Run) == WHY
    with pytest.raises(UsageError, match=WHY):
        await hub.plan_deletion(["t"])
    with pytest.raises(UsageError, match=WHY):
        await hub.delete(DeletionPlan(()), actor="ann", note=None, on_batch=bool)
    with pytest.raises(UsageError, match=WHY):
        await hub.vacuum()
    await hub.close()
    assert place.read_bytes() == before
