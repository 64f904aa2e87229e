"""Questions about untrusted data, private values and contracts on the run screen."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.drivers.protocol import Driver
from hitl_tui.ui.screens.modal import Host
from hitl_tui.ui.screens.page import PageScreen
from hitl_tui.view.routes import lines_of_route
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, trusted, untrusted
from hitl_tui.view.taint import contract_lines, lineage_lines, taint_line
from hitl_tui.view.value_source import READ


async def _shown(session: ViewSession) -> tuple[Driver, int]:
    """Return the driver of the shown thread, and the shown step."""
    thread_id, step = session.shown or (session.thread_id, session.view.progress.head)
    return await session.driver_of(thread_id), step


def why_tainted(screen: Host, session: ViewSession, channel: str) -> None:
    """Show how untrusted data came into the selected channel, or if it has none, into all channels."""

    async def lines() -> Sequence[Line]:
        driver, step = await _shown(session)
        checkpoint = session.step_view.checkpoint
        tainted = checkpoint.tainted if checkpoint else ()
        wanted = [taint for taint in tainted if taint.channel == channel] or list(tainted)
        rows: list[Line] = []
        for taint in wanted:
            paths = lineage_lines(await driver.lineage(taint.channel, step))
            rows += [taint_line(taint), *((trusted("  "), *path) for path in paths), ()]
        return rows or [(Span("no channel holds untrusted data", "dim"),)]

    title = f"Untrusted data at step {session.step_view.step}"
    screen.app.push_screen(PageScreen(title, lines, screen.keymap.bindings["look.taint"]))


def show_contract(screen: Host, session: ViewSession) -> None:
    """Show what the node of the shown step may do and did, its route, and what the next one may do."""

    async def lines() -> Sequence[Line]:
        shown = session.step_view
        nodes = {node.name: node for node in session.view.graph.nodes}
        rows: list[Line] = []
        point = shown.checkpoint
        if point is not None and point.node in nodes:
            suffix = trusted(f" made step {point.step}", "dim")
            rows += [(untrusted(point.node, "node"), suffix)]
            rows += [*contract_lines(nodes[point.node], point, shown.updates), ()]
        if point is not None:
            driver, step = await _shown(session)
            rows += [*route, ()] if (route := await lines_of_route(driver, step, READ)) else []
        following = point.next_node if point is not None else None
        if shown.is_head and session.view.progress.next_node is not None:
            following = session.view.progress.next_node
        if following in nodes:
            rows += [(untrusted(following, "node"), trusted(" is next", "dim"))]
            rows += contract_lines(nodes[following], None, ())
        return rows or [(Span("no node made this step, and none is next", "dim"),)]

    screen.app.push_screen(
        PageScreen("What nodes may do, and did", lines, screen.keymap.bindings["look.contract"])
    )
