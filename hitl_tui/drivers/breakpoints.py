"""Breakpoints of a run: nodes to stop before, each with a condition or for always (DESIGN, run screen).

A run never stops twice at the same place: one that goes on from where a breakpoint, a pause or a failure
had stopped the thread passes its first node.  Where an answer let it go on it hasn't stood there yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from hitl_tui.drivers.expressions import Expression, check_expression
from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log.events import Progress
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.suggest import did_you_mean

if TYPE_CHECKING:
    from hitl_tui.engine.thread.session import Session

_ANSWERS = ("answer", "timeout")
_STEPS_LOOKED_AT = 20


class NoSuchNode(UsageError):
    """A breakpoint before a node that the graph does not have."""

    title = "No such node"


def describe(node: str, condition: str = "") -> str:
    """A breakpoint in words, as in "before worker: revision_n > 2"."""
    return f"before {node}: {condition}" if condition else f"before {node}"


def check_breakpoint(node: str, condition: str, graph: GraphInfo) -> None:
    """See that a run of this graph can have a breakpoint.

    Raises:
        NoSuchNode: the graph has no such node.
        ExpressionInvalid: the condition can't be read.
    """
    names = [known.name for known in graph.nodes]
    if node not in names:
        raise NoSuchNode(f"the graph {graph.name!r} has no node {node!r}", did_you_mean(node, names))
    if condition:
        check_expression(condition, graph.channels)


def read_breakpoint(text: str, graph: GraphInfo) -> tuple[str, str]:
    """NODE or NODE:CONDITION as (node, condition); a node whose name has a colon is found, too.

    Raises:
        NoSuchNode, ExpressionInvalid: as `check_breakpoint`.
    """
    names = sorted((known.name for known in graph.nodes), key=len, reverse=True)
    node = next((name for name in names if text == name or text.startswith(f"{name}:")), None)
    if node is None:
        node = text.partition(":")[0]
    condition = text[len(node) + 1 :].strip()
    check_breakpoint(node, condition, graph)
    return node, condition


def read_breakpoints(texts: Iterable[str], graph: GraphInfo) -> dict[str, str]:
    """Several of them as `Driver.run` takes them; of two before one node the later one counts."""
    return dict(read_breakpoint(text, graph) for text in texts)


def stopped_by(progress: Progress, ledger: Sequence[LedgerEntry]) -> str:
    """The breakpoint at which a thread stands, as in "breakpoint before worker"; "" for none."""
    if progress.status != "waiting" or progress.reason != "paused" or not ledger:
        return ""
    last = ledger[-1]
    return last.note or "" if _is_breakpoint(last) and last.step == progress.head else ""


class Stops:
    """Says of a run's next node why to stop before it.

    Raises:
        NoSuchNode, ExpressionInvalid: as `check_breakpoint`.
    """

    def __init__(self, breakpoints: Mapping[str, str], graph: GraphInfo) -> None:
        for node, condition in breakpoints.items():
            check_breakpoint(node, condition, graph)
        self._breakpoints = dict(breakpoints)
        self._conditions = {node: Expression(text) for node, text in breakpoints.items() if text}

    def __call__(self, session: Session, node: str, first: bool) -> str:
        """Why to stop, "" to go on."""
        condition = self._breakpoints.get(node)
        if condition is None or (first and _stood_here(session)):
            return ""
        told = f"breakpoint {describe(node, condition)}"
        if not condition:
            return told
        channels = session.graph.channels
        values = {
            name: value
            for name, value in session.state.values.items()
            if name in channels and channels[name].visibility == "public"
        }
        try:
            return told if self._conditions[node].holds(values) else ""
        except HitlError as error:
            return f"{told} (it can't be told: {error.message})"


def _stood_here(session: Session) -> bool:
    """Whether the thread stopped before its next node already, other than by asking."""
    cursor, store = session.cursor, session.store
    if cursor.passed or cursor.answers or cursor.branches:
        return True
    if store is None:
        return False
    steps = store.checkpoints(session.thread_id, None, _STEPS_LOOKED_AT)
    newest = next((point for point in steps if point.source != "human"), None)
    since = newest.step if newest else 0
    for entry in reversed(store.ledger(session.thread_id)):
        if entry.step < since:
            break
        if _is_breakpoint(entry):
            return True
        if entry.kind in _ANSWERS:
            return False
    return newest is not None and newest.source != "input"


def _is_breakpoint(entry: LedgerEntry) -> bool:
    return entry.kind == "stop" and bool(entry.note) and entry.data == {"reason": "paused"}
