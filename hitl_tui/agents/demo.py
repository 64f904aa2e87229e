"""Models for shows and first looks: `demo/NAME`, scripted, without keys or network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hitl_tui.agents.backend import Message
from hitl_tui.agents.demo_advisor import advisor_reply
from hitl_tui.agents.scripted import ScriptedModel
from hitl_tui.errors import UsageError

_DEMOS: dict[str, Callable[[Sequence[Message]], str]] = {"advisor": advisor_reply}


def demo_model(name: str) -> ScriptedModel:
    """The demo model `name`; "advisor" plays worker and advisor of an advisor workflow.

    Raises:
        UsageError: there is no demo model of that name.
    """
    if name not in _DEMOS:
        known = ", ".join(f"demo/{demo}" for demo in sorted(_DEMOS))
        raise UsageError(f"there is no demo model 'demo/{name}'", f"there are: {known}")
    return ScriptedModel(_DEMOS[name], name=f"demo/{name}")
