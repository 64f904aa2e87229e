"""What is told and kept of a tool's call: its arguments, what came of it, how long it took."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from hitl_tui.agents.redaction import redactor
from hitl_tui.agents.tools import cut
from hitl_tui.engine.log.events import ToolCalled
from hitl_tui.engine.log.outcomes import ToolUse
from hitl_tui.engine.nodes.activity import Activity

LONGEST: Final = 2_000
"""Characters of the arguments and of the result that a step's checkpoint keeps."""


class Outcome(msgspec.Struct, frozen=True):
    """How a call ended: the arguments it ran with and its result, or what went wrong.

    `ran` says that the tool was called, so that something from outside may have come in; `duration` is
    in microseconds.
    """

    arguments: Any
    result: str | None = None
    error: str | None = None
    duration: int = 0
    ran: bool = False

    @property
    def told(self) -> str:
        """What the model reads."""
        return self.result if self.result is not None else f"Error: {self.error}"


def tell(activity: Activity, agent: str, tool: str, outcome: Outcome, *, anew: bool) -> None:
    """Tell those who watch of a call and note it for the step's checkpoint, without secrets.

    Args:
        anew: it was made now; one that is served again after an answer is in the record already.
    """
    hide = redactor({}, activity)
    arguments, result, error = (hide(part) for part in (outcome.arguments, outcome.result, outcome.error))
    took = outcome.duration
    activity.tell(ToolCalled(activity.node, agent, tool, arguments, result, error, took, activity.path))
    if anew:
        activity.tool_called(
            ToolUse(
                agent,
                cut(tool, LONGEST),
                _short(arguments),
                None if result is None else cut(result, LONGEST),
                None if error is None else cut(error, LONGEST),
                took,
                activity.attempt,
                activity.path,
            )
        )


def _short(arguments: Any) -> Any:
    """The arguments; as text, where they are long."""
    if isinstance(arguments, str):
        return cut(arguments, LONGEST)
    text = json.dumps(arguments, ensure_ascii=False)
    return cut(text, LONGEST) if len(text) > LONGEST else arguments
