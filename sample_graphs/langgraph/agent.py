"""An agent of `create_agent` whose calls of a tool wait for a human (needs `pip install langchain`).

    hitl-tui run langgraph/agent --input 'messages=[["user", "Tell Ann that we are late."]]'

The model is scripted: it calls the tool once and then reports.  Approve the call, edit it, or refuse it.
"""

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

USED = {"input_tokens": 40, "output_tokens": 12, "total_tokens": 52}


class ScriptedModel(BaseChatModel):
    """Calls its first tool, then reports the result."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self.bind(**options)

    def _generate(self, messages: list[BaseMessage], *given: Any, **options: Any) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            reply = AIMessage(f"Done: {last.text}", usage_metadata=USED)
        else:
            call = {
                "name": "send_mail",
                "args": {"to": "ann", "text": last.text},
                "id": f"call-{len(messages)}",
            }
            reply = AIMessage("I'll send a mail.", tool_calls=[call], usage_metadata=USED)
        return ChatResult(generations=[ChatGeneration(message=reply)])


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"mail to {to} with {len(text)} characters was sent"


agent = create_agent(
    ScriptedModel(),
    [send_mail],
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"send_mail": True})],
    name="agent",
)
