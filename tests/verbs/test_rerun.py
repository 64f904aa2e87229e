"""Running a thread again under changed code."""

from __future__ import annotations

from hitl_tui.engine.commands import Rerun, Run
from tests.verbs.flows import COUNTING, changed
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case(
        "without a word",
        "rerun",
        COUNTING,
        changed,
        (Rerun("r-b", "ann"), Run()),
        choice="again",
    ),
    Case(
        "with a name and a reason",
        "rerun",
        COUNTING,
        changed,
        (Rerun("mine", "ann", "a was wrong"), Run()),
        {"new": "mine", "note": "a was wrong"},
        choice="again",
    ),
)
