"""Asking a person before a tool is called: the question, and what an answer to it means.

The payload is that of LangChain's human-in-the-loop middleware for one call ("tool_approval"), and its
answers are understood beside our own (PEERS 4.3).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hitl_tui.agents.tools import Approve, BadArguments, Tool
from hitl_tui.errors import in_words

Verdict = Literal["approve", "edit", "reject", "respond"]


@dataclass(frozen=True)
class ToolRequest:
    """A call that waits for a person.

    Attributes:
        agent: who wants to make it.
        problem: why an earlier answer could not be taken, "" for none.
    """

    agent: str
    tool: Tool
    arguments: Mapping[str, Any]
    call_id: str
    problem: str = ""

    @property
    def question(self) -> dict[str, Any]:
        """The call as a request of `config.interrupt`."""
        payload = {
            "type": "tool_approval",
            "tool_call_id": self.call_id,
            "name": self.tool.name,
            "args": dict(self.arguments),
            "description": self.problem or self.tool.description,
            "allowed_decisions": ["approve", "edit", "reject", "respond"],
            "args_schema": self.tool.parameters,
        }
        title = f"{self.agent} wants to call {self.tool.name}"
        return {"kind": "approve", "title": title, "payload": payload}


@dataclass(frozen=True)
class Decision:
    """What a person decided: `words` is a reason, or with "respond" the result in the tool's place."""

    verdict: Verdict
    arguments: Mapping[str, Any] | None = None
    words: str = ""


Approver = Callable[[ToolRequest], Any]
"""Decides outside a graph: True, False, or an answer as a person gives it."""


def must_ask(tool: Tool, arguments: Mapping[str, Any], default: Approve) -> bool:
    """Whether a person must agree to this call."""
    rule = default if tool.approve is None else tool.approve
    return bool(rule(arguments)) if callable(rule) else rule == "always"


def read_decision(answer: Any, tool: Tool) -> Decision:
    """What an answer means: our own ("approve", {"choice": "edit", "args": {...}}), True or False, or
    LangChain's ({"type": "edit", "edited_action": {"name", "args"}}, {"decisions": [one]}).

    Raises:
        BadArguments: it is none of these, or the edited arguments don't fit the tool.
    """
    if isinstance(answer, bool):
        return Decision("approve" if answer else "reject")
    if isinstance(answer, str):
        answer = {"choice": answer}
    if (
        isinstance(answer, Mapping)
        and isinstance(answer.get("decisions"), list)
        and len(answer["decisions"]) == 1
    ):
        answer = answer["decisions"][0]
    if not isinstance(answer, Mapping):
        raise BadArguments(f"an answer is approve, edit or reject, not {in_words(answer)}")
    verdict = answer.get("choice", answer.get("type"))
    words = answer.get("text") or answer.get("message") or ""
    if verdict == "edit":
        return Decision("edit", _edited(answer, words, tool))
    if verdict in ("approve", "reject", "respond"):
        return Decision(verdict, None, str(words))
    raise BadArguments(f"an answer is approve, edit or reject, not {verdict!r}")


def _edited(answer: Mapping[str, Any], words: Any, tool: Tool) -> dict[str, Any]:
    action = answer.get("edited_action")
    if isinstance(action, Mapping):
        if action.get("name", tool.name) != tool.name:
            raise BadArguments(f"an edit can't call another tool ({action['name']!r})")
        return tool.check(_plain(action.get("args")))
    if "args" in answer:
        return tool.check(_plain(answer["args"]))
    if not isinstance(words, str) or not words.strip():
        raise BadArguments("an edit carries the arguments to use instead, as JSON")
    return tool.read(words)


def _plain(value: Any) -> Any:
    """Stored answers are frozen; checks want plain dicts and lists."""
    return json.loads(json.dumps(value))
