"""One reply, and what each workflow makes of it: side by side."""

from __future__ import annotations

import pytest

from hitl_tui.workflows.advisor import read_verdict
from hitl_tui.workflows.debate import read_judgement
from hitl_tui.workflows.planner import read_evaluation
from hitl_tui.workflows.supervisor import read_route
from tests.support.spec import spec

pytestmark = spec("15")

WORKERS = ("researcher", "writer")


@pytest.mark.parametrize(
    ("reply", "route", "debate", "advisor", "planner"),
    [
        ("Approved.", "DONE", "continue", "approved", "replan: Approved."),
        ("APPROVED", "DONE", "continue", "approved", "replan: APPROVED"),
        ("not approved", "DONE", "continue", "revise", "replan: not approved"),
        ("revise:x", "DONE", "continue", "revise", "replan: revise:x"),
        ("I approve", "DONE", "continue", "revise", "replan: I approve"),
        ("underwriters, researchers", "DONE", "continue", "revise", "replan: underwriters, researchers"),
        ("writer or researcher", "researcher", "continue", "revise", "replan: writer or researcher"),
        ("", "DONE", "continue", "revise", "replan: "),
        ("abandoned", "DONE", "continue", "revise", "replan: abandoned"),
        ("Approved, writer is done", "writer", "done", "approved", "done"),
        ("replan: done too early", "DONE", "done", "revise", "replan: done too early"),
    ],
)
def test_what_each_makes_of_a_reply(reply: str, route: str, debate: str, advisor: str, planner: str) -> None:
    assert read_route(reply, WORKERS)[0] == route
    assert read_judgement(reply)[0] == debate
    assert read_verdict(reply)[0] == advisor
    assert read_evaluation(reply)[0] == planner
