"""Breakpoints inside a node: before a branch, before a call of a tool."""

from __future__ import annotations

from typing import Any

from hitl_tui.engine.log.requests import BREAKPOINT
from hitl_tui.engine.nodes.activity import Activity
from hitl_tui.engine.nodes.branches import Branch
from hitl_tui.engine.thread.interrupts import InterruptRaised, stop_request
from hitl_tui.engine.thread.session import Session


def stop_at_branch(session: Session, node: str, branch: Branch) -> None:
    """Stop before a branch, unless its breakpoint was passed; the other branches continue.

    Raises:
        InterruptRaised: the branch stops.
    """
    path = branch.path
    if session.stops is None or any(answer.key == BREAKPOINT for answer in branch.answers):
        return
    if why := session.stops.branch(session, path, branch.item, branch.index):
        raise InterruptRaised(
            stop_request(session.cursor, node, why, session.clock(), key=BREAKPOINT, path=path)
        )


def stop_at_tool(session: Session, activity: Activity, tool: str, arguments: Any, call: str) -> None:
    """Stop before a tool is called; the node then starts again with the recorded calls.

    Args:
        call: the key of the call within the attempt.

    Raises:
        InterruptRaised: the node stops.
    """
    key = f"{BREAKPOINT}:{call}"
    answers = activity.cursor.answers if activity.cursor else ()
    if session.stops is None or any(answer.key == key for answer in answers):
        return
    path = activity.path or activity.node
    if why := session.stops.tool(session, path, tool, arguments):
        now = session.clock()
        stop = stop_request(session.cursor, activity.node, why, now, key=key, path=activity.path)
        raise activity.note_request(InterruptRaised(stop))
