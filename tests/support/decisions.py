"""Carries out planned decisions, as the hosts of verbs do."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.drivers.protocol import Hub
from hitl_tui.errors import HitlError
from hitl_tui.verbs.conversation import At, Do, Talk, advance
from hitl_tui.verbs.deciding.decide import decisions
from hitl_tui.view.queue import Key
from hitl_tui.view.queue_facts import Planned


async def decide(hub: Hub, plans: Sequence[Planned], actor: str) -> list[Planned]:
    """Carry out the decisions that would be made; return what came of each."""
    results: dict[Key, Planned] = {}
    for talk in decisions(At(None, hub, actor), plans, results):
        await _carry_out(talk)
    return [results[plan.key] for plan in plans if plan.key in results]


async def _carry_out(talk: Talk) -> None:
    error: HitlError | None = None
    while (step := await advance(talk, None, error)) is not None:
        error = None
        assert isinstance(step, Do)
        assert step.driver is not None
        try:
            await step.driver.execute(step.command)
        except HitlError as refused:
            error = refused
