"""Making the calls that a model asks for: read, approved, run, told; each at most once per attempt."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hitl_tui.agents.approval import Approver, Decision, ToolRequest, must_ask, read_decision
from hitl_tui.agents.backend import ToolCall
from hitl_tui.agents.tool_notes import Outcome, tell
from hitl_tui.agents.tools import Approve, BadArguments, Tool, cut
from hitl_tui.engine.interrupts.questions import InterruptRaised
from hitl_tui.engine.nodes.activity import Activity
from hitl_tui.engine.nodes.calling import TookTooLong
from hitl_tui.engine.nodes.memory import MISSING
from hitl_tui.errors import HitlError, UsageError

_REJECTED = "A person refused this call"


@dataclass(frozen=True)
class ToolBox:
    """An agent's tools and the rules for calling them.

    Attributes:
        approve: for tools without a rule of their own.
        approver: decides where there is no run that could wait for a person.
        longest: characters of a result that the model gets.
    """

    agent: str
    tools: Mapping[str, Tool]
    approve: Approve
    approver: Approver | None
    longest: int

    async def make(self, call: ToolCall, activity: Activity | None, key: str) -> str:
        """Make one call, or serve what it gave before a person's answer restarted the node.

        Args:
            key: names the call among all of the attempt.

        Raises:
            UsageError: a person must agree, and there is nobody to ask.
        """
        tool = self.tools.get(call.name)
        kept = activity.memory.recall(f"tool:{key}") if activity else MISSING
        if kept is MISSING:
            outcome = await self._new(call, tool, activity, key)
        else:
            outcome = msgspec.convert(kept, Outcome)
        if activity:
            if outcome.ran and tool is not None and tool.external:
                activity.taint(f"tool {tool.name}")
            tell(activity, self.agent, call.name, outcome, anew=kept is MISSING)
        return outcome.told

    async def _new(self, call: ToolCall, tool: Tool | None, activity: Activity | None, key: str) -> Outcome:
        agreed = await self._agreed(call, tool, activity, key)
        if activity is None:
            return agreed if isinstance(agreed, Outcome) else await self._run(*agreed)
        async with activity.in_flight.doing():
            outcome = agreed if isinstance(agreed, Outcome) else await self._run(*agreed)
            activity.memory.keep(f"tool:{key}", msgspec.to_builtins(outcome))
            return outcome

    async def _agreed(
        self, call: ToolCall, tool: Tool | None, activity: Activity | None, key: str
    ) -> Outcome | tuple[Tool, Mapping[str, Any]]:
        """The tool to run and its arguments, or what the model is told in place of a run."""
        if tool is None:
            known = ", ".join(self.tools) or "none"
            return Outcome(call.arguments, error=f"there is no tool {call.name!r}; tools: {known}")
        try:
            arguments = tool.read(call.text)
        except BadArguments as problem:
            return Outcome(call.arguments, error=str(problem))
        if must_ask(tool, arguments, self.approve):
            decision = await self._ask(ToolRequest(self.agent, tool, arguments, call.id), activity, key)
            if decision.verdict == "reject":
                reason = f": {decision.words}" if decision.words else ""
                return Outcome(arguments, error=f"{_REJECTED}{reason}")
            if decision.verdict == "respond":
                return Outcome(arguments, decision.words)
            if decision.arguments is not None:
                arguments = dict(decision.arguments)
        return tool, arguments

    async def _ask(self, request: ToolRequest, activity: Activity | None, key: str) -> Decision:
        """A person's decision; one that can't be taken is asked for again, saying why."""
        if activity is None or activity.interrupt is None:
            return await self._ask_approver(request)
        asked = 0
        while True:
            asked += 1
            try:
                answer = activity.interrupt(request.question, key=f"{key}/{asked}")
            except InterruptRaised:
                # What is at work beside us may be cancelled behind the question; what it began is not lost.
                await activity.in_flight.quiet()
                raise
            try:
                return read_decision(answer, request.tool)
            except BadArguments as problem:
                words = f"Your answer could not be taken: {problem}"
                request = ToolRequest(request.agent, request.tool, request.arguments, request.call_id, words)

    async def _ask_approver(self, request: ToolRequest) -> Decision:
        if self.approver is None:
            raise UsageError(
                f"agent {self.agent!r}: a person must agree to calls of {request.tool.name!r}, and there is "
                "nobody to ask outside a graph",
                "give the agent approver=..., or run it below a node",
            )
        answer = await asyncio.to_thread(self.approver, request)
        try:
            return read_decision(await answer if inspect.isawaitable(answer) else answer, request.tool)
        except BadArguments as problem:
            raise UsageError(
                f"agent {self.agent!r}: the approver's answer can't be taken: {problem}",
                'return True, False, or {"choice": "reject", "text": "why"}',
            ) from None

    async def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> Outcome:
        started = time.monotonic_ns()
        result = error = None
        try:
            result = cut(await tool.run(arguments), self.longest)
        except BadArguments as problem:
            return Outcome(arguments, error=str(problem))
        except TookTooLong:
            error = f"it took longer than {tool.timeout:g} s"
        except HitlError as failure:
            error = cut(str(failure), self.longest)
        except Exception as failure:
            error = cut(f"{type(failure).__name__}: {failure}", self.longest)
        return Outcome(arguments, result, error, (time.monotonic_ns() - started) // 1000, ran=True)
