"""Describes the route after a step, in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hitl_tui.engine.log.records import RAN
from hitl_tui.view.frames import code_lines
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.spans import Line, trusted, untrusted
from hitl_tui.view.taint import channel_names, contract_fact

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.drivers.routes import RouteTaken

_CODE: Final = 24
_NAME: Final = 40


async def lines_of_route(
    driver: Driver, step: int, width: int, glyphs: Glyphs = UNICODE, *, load: bool = False
) -> tuple[Line, ...]:
    """Return `route_lines` of the route after a step, () if there is no choice.

    `load` loads the graph if it isn't loaded yet.

    Args:
        load: load the graph where it is not loaded yet.
    """
    route = await driver.route(step, load=load)
    if route is None:
        return ()
    following = await driver.history(step + 2, 1)
    ran = following and following[0].step == step + 1 and following[0].source in RAN
    return route_lines(route, step, following[0].node if ran else None, width, glyphs)


def route_lines(
    route: RouteTaken, step: int, followed: str | None, width: int, glyphs: Glyphs = UNICODE
) -> tuple[Line, ...]:
    """Return what a route returned, what it read, and its code.

    Args:
        route: what the route function returns for the state of the step.
        step: the step that the route follows.
        followed: the node that ran after the step, None if none has yet.
        width: the width of the code in cells.
        glyphs: the glyphs for arrows.
    """
    at = trusted(f" at step {step}", "dim")
    title = (trusted("route after ", "dim"), untrusted(route.node, "node"), at)
    if not route.loaded:
        return (title, contract_fact("returned", "unknown, as the graph is not loaded; A loads it"))
    key = route.error or f"{route.key!r} {glyphs.arrow} {route.target}"
    lines = [title, contract_fact("returned", key), contract_fact("read", channel_names(route.read))]
    if followed and followed != route.target:
        changed = trusted(" ran: the route has changed since", "warning")
        lines.append((trusted(f"{'recorded':<16}", "dim"), untrusted(followed, "warning", _NAME), changed))
    if route.code is not None:
        lines += code_lines((route.code,), width, _CODE)
    return tuple(lines)
