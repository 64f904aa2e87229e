"""What a login of the database may not do is refused with a reason before the database is asked."""

from __future__ import annotations

import pytest

from hitl_tui import MemoryCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Answer, ClearTurns, Fork, Rollback, Run, Start, Step, UpdateState
from hitl_tui.engine.graph.gates import Gate, GateChoice
from hitl_tui.engine.log.store import RIGHTS, Right
from hitl_tui.errors import UsageError
from hitl_tui.view.continuing import run_on
from tests.support.flows import line, say

RUNNING, DECIDING, OPERATING = (Run, Step, Start), (UpdateState, ClearTurns), (Fork, Rollback)


class Store(MemoryCheckpointer):
    """A store whose login may do some things alone."""

    allowed: frozenset[Right] = RIGHTS

    def rights(self) -> frozenset[Right]:
        return self.allowed


@pytest.mark.parametrize(
    ("allowed", "denied"),
    [
        (RIGHTS, ()),
        (frozenset[Right](("decide",)), (*RUNNING, *OPERATING)),
        (frozenset[Right](("run",)), (*DECIDING, *OPERATING)),
        (frozenset[Right](("run", "decide")), OPERATING),
    ],
)
async def test_commands_of_other_roles_are_refused(
    allowed: frozenset[Right], denied: tuple[type, ...]
) -> None:
    store = Store()
    gate = Gate("a", "ship it?", [GateChoice("yes", "yes")])
    runner = line(store, say("x"), say("y"), interrupt_after=[gate])
    request = runner.invoke({}, thread_id="t").pending[0]
    store.allowed = allowed
    hub = LocalHub(store, lambda _info: runner)
    driver = await hub.open("t")
    for kind in (*RUNNING, *DECIDING, *OPERATING):
        assert bool(driver.refusal(kind)) == (kind in denied), kind
    assert not driver.refusal(Answer)
    await driver.execute(Answer(request.id, "yes", request.step, "ann"))
    if Run in denied:
        assert "not a hitl_worker or a hitl_operator" in driver.refusal(Run)
        with pytest.raises(UsageError, match="your login of the database"):
            await driver.execute(Run())
    await run_on(hub, "t")
    assert (await driver.snapshot()).progress.status == ("waiting" if Run in denied else "completed")
    await hub.close()
