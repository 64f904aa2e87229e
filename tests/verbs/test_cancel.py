"""Cancelling a thread."""

from __future__ import annotations

from hitl_tui.engine.commands import Cancel
from tests.verbs.flows import COUNTING, stopped
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case(
        "with a reason",
        "cancel",
        COUNTING,
        stopped,
        (Cancel("ann", "no longer needed"),),
        {"note": "no longer needed"},
        choice="thread",
    ),
    Case("without one", "cancel", COUNTING, stopped, (Cancel("ann"),), choice="thread"),
)
