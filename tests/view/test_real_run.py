"""The fold over what the engine really says: a live view equals a reopened one after every command."""

from __future__ import annotations

import asyncio

from hitl_tui import Agent, MemoryCheckpointer, ScriptedModel, advisor_workflow
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Answer, Run, Start
from hitl_tui.view.card import review_card
from hitl_tui.view.run_view import RunView, fold, open_view
from hitl_tui.view.status import status
from tests.support.spec import spec
from tests.view.test_run_view import SHARED

pytestmark = spec("10")


async def settled(driver: Driver, view: RunView) -> RunView:
    """The view once the run has stopped, checked against a fresh snapshot."""
    async with asyncio.timeout(20):
        view = fold(view, driver.events(view.last_event))
        while view.progress.status == "running":
            await driver.changed(view.last_event)
            view = fold(view, driver.events(view.last_event))
    reopened = open_view(await driver.snapshot())
    view = fold(view, driver.events(view.last_event))
    for name in SHARED:
        assert getattr(view, name) == getattr(reopened, name), name
    return view


async def test_an_advisor_workflow_with_a_person_in_it() -> None:
    worker = Agent("worker", ScriptedModel(["one", "two"], pace=0))
    advisor = Agent("advisor", ScriptedModel(["revise: longer", "revise: shorter"], pace=0))
    runner = advisor_workflow(worker, advisor, human="verdict")
    hub = LocalHub(MemoryCheckpointer(), lambda info: runner)
    driver = await hub.new("t", runner)
    try:
        view = open_view(await driver.snapshot())
        await driver.execute(Start({"messages": "Write."}, actor="ann"))
        view = await settled(driver, view)
        assert status(view, 0).word == "READY"

        await driver.execute(Run())
        view = await settled(driver, view)
        assert status(view, 0).turn.startswith("Approve this draft? — your turn")
        request = view.progress.pending[0]
        card = review_card(request, view, view.values)
        assert (card.badge, card.words[0][0].text) == ("advisor: REVISE", "longer")

        await driver.execute(Answer(request.id, "approve", step=request.step, actor="ann", seen=card.seen))
        await driver.execute(Run())
        view = await settled(driver, view)
        assert status(view, 0).word == "DONE"
        assert view.head is not None
        assert (view.head.decision, view.head.actor) == ("approve", "ann")
    finally:
        await hub.close()
