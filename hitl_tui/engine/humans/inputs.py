"""Reading the input of a run: names of fields and channels, through the reducers (SPEC 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui.engine.channels.changes import Change, reduce_updates
from hitl_tui.engine.channels.channel import RUN_INPUTS
from hitl_tui.engine.channels.values import normalise
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.thread.session import Session, replace
from hitl_tui.errors import UsageError

_SPLICED = ("append", "last_n")


def read_input(
    session: Session, inputs: Mapping[str, Any] | None, tainted: Mapping[str, Lineage] | None = None
) -> tuple[dict[str, Any], list[Change]]:
    """The run's own inputs (goal, constraints), and the changes that the others make.

    Args:
        tainted: inputs that hold something from outside, and why.

    Raises:
        UsageError: no such input.
        ValueRejected, SchemaMismatch, ReducerError: a value that does not fit.
    """
    if inputs is not None and not isinstance(inputs, Mapping):
        raise UsageError(f"the input is a {type(inputs).__name__}", 'give a dict, as {"task": "…"}')
    given = dict(inputs or {})
    run_inputs = {name: normalise(given.pop(name), name) for name in RUN_INPUTS if name in given}
    updates = [pair for name, value in given.items() for pair in _updates(session, name, value)]
    changes = reduce_updates(session.state, session.graph.channels, updates)
    if tainted:
        marks = [tainted.get(change.channel.name) for change in changes]
        changes = [
            replace(change, tainted=True, lineage=mark) if mark else change
            for change, mark in zip(changes, marks, strict=True)
        ]
    return run_inputs, changes


def _updates(session: Session, name: str, value: Any) -> list[tuple[str, Any]]:
    channel = next((item.channel for item in session.graph.inputs if item.name == name), name)
    known = session.graph.channels.get(channel)
    if known is None:
        fields = [item.name for item in session.graph.inputs]
        names = ", ".join(dict.fromkeys([*fields, *session.graph.channels, *RUN_INPUTS]))
        raise UsageError(f"the graph {session.graph.name!r} takes no input {name!r}", f"inputs: {names}")
    splice = known.reducer.text.partition("(")[0] in _SPLICED and isinstance(value, (list, tuple))
    return [(channel, item) for item in value] if splice else [(channel, value)]
