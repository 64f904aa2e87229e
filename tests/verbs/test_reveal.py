"""Revealing a private value."""

from __future__ import annotations

from hitl_tui.engine.commands import Reveal
from tests.verbs.flows import PRIVATE, stopped
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case(
        "of a step with a reason",
        "reveal",
        PRIVATE,
        stopped,
        (Reveal("name", "ann", 0, "for the audit"),),
        {"channel": "name", "note": "for the audit"},
        selected=("channel",),
        choice="reveal",
        step=0,
    ),
    Case(
        "without a reason",
        "reveal",
        PRIVATE,
        stopped,
        (Reveal("name", "ann", 1),),
        {"channel": "name"},
        selected=("channel",),
        choice="reveal",
    ),
)
