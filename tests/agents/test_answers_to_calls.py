"""What a person's answer to a tool's call means, in our own words and in LangChain's."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui.agents.tool_calls import ToolDecision, read_decision
from hitl_tui.agents.tools import BadArguments, Tool
from tests.support.spec import spec

pytestmark = spec("11")


def send(to: str, text: str = "") -> str:
    """Send a mail."""
    return f"{to}: {text}"


EDITED = ToolDecision("edit", {"to": "ann"})


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        (True, ToolDecision("approve")),
        (False, ToolDecision("reject")),
        ("approve", ToolDecision("approve")),
        ({"choice": "reject", "text": "not now"}, ToolDecision("reject", None, "not now")),
        ({"type": "reject", "message": "not now"}, ToolDecision("reject", None, "not now")),
        ({"type": "respond", "message": "sent already"}, ToolDecision("respond", None, "sent already")),
        ({"choice": "edit", "args": {"to": "ann"}}, EDITED),
        ({"choice": "edit", "text": '{"to": "ann"}'}, EDITED),
        ({"type": "edit", "edited_action": {"name": "send", "args": {"to": "ann"}}}, EDITED),
        ({"decisions": [{"type": "approve"}]}, ToolDecision("approve")),
    ],
)
def test_an_answer_is_understood(answer: Any, meant: ToolDecision) -> None:
    assert read_decision(answer, Tool(send)) == meant


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"type": "edit", "edited_action": {"name": "pay", "args": {"to": "ann"}}}, "another tool .'pay'"),
        ({"choice": "edit", "args": {"whom": "ann"}}, "whom"),
        ({"choice": "edit"}, "carries the arguments"),
        ({"decisions": [{"type": "approve"}, {"type": "approve"}]}, "not None"),
        ({"choice": "perhaps"}, "not 'perhaps'"),
        (3, "not a whole number"),
    ],
)
def test_an_invalid_answer_is_refused(answer: Any, why: str) -> None:
    with pytest.raises(BadArguments, match=why):
        read_decision(answer, Tool(send))
