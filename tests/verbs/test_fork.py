"""Forking a step."""

from __future__ import annotations

from hitl_tui.engine.commands import Fork
from tests.verbs.flows import ASKING_A_MODEL, COUNTING, stopped
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case("of the newest step", "fork", COUNTING, stopped, (Fork(2, "r-b", actor="ann"),), {"new": "r-b"}),
    Case(
        "of an earlier step, with everything",
        "fork",
        COUNTING,
        stopped,
        (Fork(1, "mine", {"n": 7, "word": "two words"}, None, "ann", "a try", "a"),),
        {"new": "mine", "values": "n=7 'word=two words'", "as_node": "a", "note": "a try"},
        step=1,
    ),
    Case(
        "to come back to later",
        "fork",
        COUNTING,
        stopped,
        (Fork(2, "later", actor="ann"),),
        {"new": "later"},
        choice="stay",
        only=("screen",),
    ),
    Case(
        "with another model",
        "fork",
        ASKING_A_MODEL,
        stopped,
        (
            Fork(
                0,
                "f",
                agents={"writer": {"model": "openai/x", "temperature": 0, "instructions": "Be brief."}},
                actor="ann",
            ),
        ),
        {"new": "f", "agent": "writer.model=openai/x writer.temperature=0 'writer.instructions=Be brief.'"},
        step=0,
    ),
)
