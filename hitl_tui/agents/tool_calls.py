"""Making the calls that a model asks for: read, approved, run, told; each at most once per attempt."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from hitl_tui.agents.backend import Outcome, ToolCall
from hitl_tui.agents.cassettes import in_use
from hitl_tui.agents.mcp import McpServer
from hitl_tui.agents.redaction import redactor
from hitl_tui.agents.tools import Approve, BadArguments, Tool, ToolConfig, cut
from hitl_tui.engine.log.events import ToolCalled
from hitl_tui.engine.log.outcomes import ToolUse
from hitl_tui.engine.nodes.activity import MISSING, Activity
from hitl_tui.engine.nodes.calling import TookTooLong
from hitl_tui.engine.thread.interrupts import InterruptRaised
from hitl_tui.errors import HitlError, UndeclaredChannel, UsageError, WriteDenied, in_words

Verdict = Literal["approve", "edit", "reject", "respond"]


class ToolRequest(msgspec.Struct, frozen=True):
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


class ToolDecision(msgspec.Struct, frozen=True):
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


def read_decision(answer: Any, tool: Tool) -> ToolDecision:
    """What an answer means: our own ("approve", {"choice": "edit", "args": {...}}), True or False, or
    LangChain's ({"type": "edit", "edited_action": {"name", "args"}}, {"decisions": [one]}).

    Raises:
        BadArguments: it is none of these, or the edited arguments don't fit the tool.
    """
    if isinstance(answer, bool):
        return ToolDecision("approve" if answer else "reject")
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
        return ToolDecision("edit", _edited(answer, words, tool))
    if verdict in ("approve", "reject", "respond"):
        return ToolDecision(verdict, None, str(words))
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


LONGEST: Final = 2_000
"""Characters of the arguments and of the result that a step's checkpoint keeps."""


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
                len(outcome.updates),
            )
        )


def _short(arguments: Any) -> Any:
    """The arguments; as text, where they are long."""
    if isinstance(arguments, str):
        return cut(arguments, LONGEST)
    text = json.dumps(arguments, ensure_ascii=False)
    return cut(text, LONGEST) if len(text) > LONGEST else arguments


_REJECTED = "A person refused this call"


class ToolBox(msgspec.Struct, frozen=True):
    """An agent's tools and the rules for calling them.

    Attributes:
        servers: MCP servers, whose tools are added to them.
        approve: for tools without a rule of their own.
        approver: decides where there is no run that could wait for a person.
        longest: characters of a result that the model gets.
    """

    agent: str
    tools: Mapping[str, Tool]
    approve: Approve
    approver: Approver | None
    longest: int
    servers: Sequence[McpServer] = ()

    async def offered(self) -> Mapping[str, Tool]:
        """All tools by name; servers that do not run yet are started.

        Raises:
            ServerFailed: one can't be started.
            UsageError: two tools have the same name.
        """
        tools = dict(self.tools)
        for server in self.servers:
            for name, tool in (await server.list()).items():
                if name in tools:
                    raise UsageError(
                        f"agent {self.agent!r} has two tools named {name!r}; one is of {server!r}",
                        "give the server a prefix=",
                    )
                tools[name] = tool
        return tools

    async def make(self, call: ToolCall, activity: Activity | None, key: str) -> str:
        """Make one call, or serve what it gave before a person's answer restarted the node.

        Args:
            key: names the call among all of the attempt.

        Raises:
            UsageError: a person must agree, and there is nobody to ask.
        """
        tools = await self.offered()
        tool = tools.get(call.name)
        kept = activity.memory.recall(f"tool:{key}") if activity else MISSING
        if kept is MISSING:
            outcome = await self._new(call, tools, activity, key)
        else:
            outcome = msgspec.convert(kept, Outcome)
        if activity:
            if outcome.ran and tool is not None and tool.external:
                activity.taint(f"tool {tool.name}")
            if outcome.updates:
                activity.update(call.name, outcome.updates)
            tell(activity, self.agent, call.name, outcome, anew=kept is MISSING)
        return outcome.reply

    async def _new(
        self, call: ToolCall, tools: Mapping[str, Tool], activity: Activity | None, key: str
    ) -> Outcome:
        if activity is not None and activity.before_tool is not None:
            await self._stop_before(call, tools.get(call.name), activity, key)
        tape = in_use()
        told = tape.call(self.agent, call) if tape else None
        agreed = told or await self._agreed(call, tools, activity, key)
        if activity is None:
            return agreed if isinstance(agreed, Outcome) else await self._run(*agreed, None)
        async with activity.in_flight.doing():
            outcome = agreed if isinstance(agreed, Outcome) else await self._run(*agreed, activity)
            activity.memory.keep(f"tool:{key}", msgspec.to_builtins(outcome))
            return outcome

    async def _stop_before(self, call: ToolCall, tool: Tool | None, activity: Activity, key: str) -> None:
        """Where a breakpoint stands before the call, stop the node as a question does."""
        assert activity.before_tool is not None
        try:
            arguments = tool.read(call.text) if tool is not None else call.arguments
        except BadArguments:
            arguments = call.arguments
        try:
            activity.before_tool(call.name, arguments, key)
        except InterruptRaised:
            await activity.in_flight.quiet()
            raise

    async def _agreed(
        self, call: ToolCall, tools: Mapping[str, Tool], activity: Activity | None, key: str
    ) -> Outcome | tuple[Tool, Mapping[str, Any]]:
        """The tool to run and its arguments, or what the model is told in place of a run."""
        tool = tools.get(call.name)
        if tool is None:
            known = ", ".join(tools) or "none"
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

    async def _ask(self, request: ToolRequest, activity: Activity | None, key: str) -> ToolDecision:
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

    async def _ask_approver(self, request: ToolRequest) -> ToolDecision:
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

    async def _run(self, tool: Tool, arguments: Mapping[str, Any], activity: Activity | None) -> Outcome:
        started = time.monotonic_ns()
        result = error = None
        config = ToolConfig(tool.name, activity)
        try:
            result = cut(await tool.run(arguments, config), self.longest)
        except BadArguments as problem:
            return Outcome(arguments, error=str(problem))
        except (UndeclaredChannel, WriteDenied):
            raise  # no model can mend what the graph does not allow
        except TookTooLong:
            error = f"it took longer than {tool.timeout:g} s"
        except HitlError as failure:
            error = cut(str(failure), self.longest)
        except Exception as failure:
            error = cut(f"{type(failure).__name__}: {failure}", self.longest)
        finally:
            config.over = True
        took = (time.monotonic_ns() - started) // 1000
        return Outcome(arguments, result, error, took, True, () if error else config.updates)
