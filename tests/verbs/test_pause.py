"""Pausing a run, here or in another process."""

from __future__ import annotations

from hitl_tui.engine.commands import Pause, Run
from tests.verbs.flows import ENDLESS, stopped_before_a
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case(
        "at once",
        "pause",
        ENDLESS,
        stopped_before_a,
        (Run(), Pause("ann", None, 10.0)),
        only=("screen",),
        keys=("c",),
        ready="RUNNING",
    ),
    Case(
        "without a word",
        "pause",
        ENDLESS,
        stopped_before_a,
        (Pause("ann", None, 10.0),),
        only=("plain", "subcommand"),
    ),
    Case(
        "with a reason, for a while",
        "pause",
        ENDLESS,
        stopped_before_a,
        (Pause("ann", "lunch", 0.5),),
        {"note": "lunch", "wait": "0.5"},
        only=("plain", "subcommand"),
    ),
)
