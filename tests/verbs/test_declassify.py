"""Trusting an untrusted channel."""

from __future__ import annotations

from hitl_tui.engine.commands import Declassify
from tests.verbs.flows import UNTRUSTED, stopped
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case(
        "with a reason",
        "declassify",
        UNTRUSTED,
        stopped,
        (Declassify("page", "ann", "read it", 1),),
        {"channel": "page", "reason": "read it"},
        selected=("channel",),
    ),
    Case(
        "only at a step",
        "declassify",
        UNTRUSTED,
        stopped,
        (Declassify("page", "ann", "read it", 1),),
        {"channel": "page", "reason": "read it", "expected_step": "1"},
        selected=("channel",),
    ),
    Case("without a reason", "declassify", UNTRUSTED, stopped, (), {"channel": "page"}, only=("plain",)),
)
