"""What the thread has cost, by agent, by node and by step."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.engine.reports.costs import CostReport
from hitl_tui.ui.screens.page import PageScreen
from hitl_tui.ui.session import Session
from hitl_tui.view.costs import cost_lines
from hitl_tui.view.spans import Line

_ALL = 1 << 31


class CostsScreen(PageScreen):
    """The page of costs; all steps are fetched for it."""

    def __init__(self, session: Session, keys: tuple[str, ...]) -> None:
        async def load() -> Sequence[Line]:
            points = await session.driver.history(limit=_ALL)
            return list(cost_lines(CostReport(reversed(points), session.view.progress.uses)))

        super().__init__(f"What {session.thread_id} has cost", load, keys)
