"""Undoing the side effects of a thread's nodes."""

from __future__ import annotations

from hitl_tui.engine.commands import Rollback
from tests.verbs.flows import UNDOABLE, stopped, undone
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case(
        "with a reason",
        "rollback",
        UNDOABLE,
        stopped,
        (Rollback("ann", "too dear"),),
        {"note": "too dear"},
        choice="rollback",
    ),
    Case("without one", "rollback", UNDOABLE, stopped, (Rollback("ann"),), choice="rollback"),
    Case("with nothing left to undo", "rollback", UNDOABLE, undone, ()),
)
