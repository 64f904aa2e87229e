"""Raising limits."""

from __future__ import annotations

from hitl_tui.engine.commands import ExtendLimits
from tests.verbs.flows import COUNTING, stopped
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case(
        "of nodes",
        "extend",
        COUNTING,
        stopped,
        (ExtendLimits({"max_iterations": 9}, "ann"),),
        {"max_iterations": "9"},
    ),
    Case(
        "of what had none",
        "extend",
        COUNTING,
        stopped,
        (
            ExtendLimits(
                {"max_iterations": 9, "max_cost_usd": 0.5, "on_unknown_price": "stop"}, "ann", "go on"
            ),
        ),
        {"max_iterations": "9", "max_cost_usd": "0.5", "on_unknown_price": "stop", "note": "go on"},
    ),
)
