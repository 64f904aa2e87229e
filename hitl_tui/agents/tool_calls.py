"""Makes the calls that a model asks for: each is read, approved, run and recorded at most once."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from hitl_tui.agents.backend import Outcome, ToolCall
from hitl_tui.agents.cassettes import in_use
from hitl_tui.agents.mcp import McpServer, ServerWentAway
from hitl_tui.agents.redaction import redactor
from hitl_tui.agents.tools import Approve, BadArguments, PreparedCall, Tool, ToolConfig, cut
from hitl_tui.engine.graph.limits import LimitStop
from hitl_tui.engine.log.events import ToolCalled
from hitl_tui.engine.log.outcomes import ToolUse
from hitl_tui.engine.log.requests import Choice
from hitl_tui.engine.nodes.activity import MISSING, Activity, enclosing_call
from hitl_tui.engine.nodes.calling import CallTimedOut
from hitl_tui.engine.state.canonical import equal
from hitl_tui.engine.thread.approval_formats import other_tool
from hitl_tui.engine.thread.interrupts import InterruptRaised
from hitl_tui.errors import (
    CallOutcomeUnknown,
    HitlError,
    StaleWriter,
    StoreUnusable,
    ThreadBusy,
    UndeclaredChannel,
    UsageError,
    WriteDenied,
    described,
    in_words,
)

Verdict = Literal["approve", "edit", "reject", "respond"]


class ToolRequest(msgspec.Struct, frozen=True):
    """A call that waits for a person.

    Attributes:
        agent: the agent that wants to make it.
        problem: why an earlier answer was not accepted, "" for none.
    """

    agent: str
    tool: Tool
    arguments: Mapping[str, Any]
    call_id: str
    problem: str = ""

    @property
    def question(self) -> dict[str, Any]:
        """Return the call as a request of `config.interrupt`."""
        payload = {
            "type": "tool_approval",
            "tool_call_id": self.call_id,
            "name": self.tool.name,
            "args": dict(self.arguments),
            "description": self.problem or self.tool.description,
            "allowed_decisions": ["approve", "edit", "reject", "respond"],
            "args_schema": self.tool.parameters,
        }
        title = f"Call {self.tool.name}?"
        return {"kind": "approve", "title": title, "payload": payload}


class ToolDecision(msgspec.Struct, frozen=True):
    """What a person decided: `words` is a reason, or with "respond" the result instead of the tool's."""

    verdict: Verdict
    arguments: Mapping[str, Any] | None = None
    words: str = ""


Approver = Callable[[ToolRequest], Any]
"""Decides outside a graph: True, False, or an answer as a person gives it."""


def must_ask(tool: Tool, arguments: Mapping[str, Any], default: Approve) -> bool:
    """Whether a person must approve this call."""
    rule = default if tool.approve is None else tool.approve
    return bool(rule(arguments)) if callable(rule) else rule == "always"


def read_decision(answer: Any, tool: Tool) -> ToolDecision:
    """Read an answer: in our format, True or False, or in LangChain's format.

    Ours is "approve" or {"choice": "edit", "args": {...}}; LangChain's is {"type": "edit", "edited_action":
    {"name", "args"}} or {"decisions": [one]}.

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
    if other := other_tool(answer, tool.name):
        raise BadArguments(f"an edit can't call another tool ({other!r})")
    action = answer.get("edited_action")
    if isinstance(action, Mapping):
        return tool.check(_plain(action.get("args")))
    if "args" in answer:
        return tool.check(_plain(answer["args"]))
    if not isinstance(words, str) or not words.strip():
        raise BadArguments("an edit carries the arguments to use instead, as JSON")
    return tool.read(words)


def _plain(value: Any) -> Any:
    """Return a frozen stored answer as plain dicts and lists, for checks."""
    return json.loads(json.dumps(value))


LONGEST: Final = 2_000
"""Most characters of the arguments and of the result that a step's checkpoint keeps."""


def report_call(activity: Activity, agent: str, tool: str, outcome: Outcome, *, is_new: bool) -> None:
    """Report a call to watchers and note it for the step's checkpoint, without secrets.

    Args:
        is_new: it was made now; one that is served again after an answer is in the record already.
    """
    hide = redactor({}, activity)
    arguments, result, error = (hide(part) for part in (outcome.arguments, outcome.result, outcome.error))
    took = outcome.duration
    activity.report(ToolCalled(activity.node, agent, tool, arguments, result, error, took, activity.path))
    if is_new:
        activity.tool_called(tool_use(activity, agent, tool, outcome))


def tool_use(activity: Activity, agent: str, tool: str, outcome: Outcome) -> ToolUse:
    """Return a call as the step's checkpoint keeps it: cut if it is long, without secrets."""
    hide = redactor({}, activity)
    arguments, result, error = (hide(part) for part in (outcome.arguments, outcome.result, outcome.error))
    return ToolUse(
        agent,
        cut(tool, LONGEST),
        _short(arguments),
        None if result is None else cut(result, LONGEST),
        None if error is None else cut(error, LONGEST),
        outcome.duration,
        activity.attempt,
        activity.path,
        len(outcome.updates),
    )


def _short(arguments: Any) -> Any:
    """Return the arguments; as text, if they are long."""
    if isinstance(arguments, str):
        return cut(arguments, LONGEST)
    text = json.dumps(arguments, ensure_ascii=False)
    return cut(text, LONGEST) if len(text) > LONGEST else arguments


_REJECTED = "A person refused this call"
_CONVERTED = "Your edit is converted by the tool: these are the arguments that will run."
_IF_MADE: Final = (
    Choice("made", "it was made: give its result", "m", "required"),
    Choice("again", "call it again", "a"),
    Choice("fail", "fail the node", "f"),
)
_FAIL_THE_NODE = (CallOutcomeUnknown, StaleWriter, StoreUnusable, ThreadBusy, UndeclaredChannel, WriteDenied)
"""Errors that a model can't fix: what the graph does not allow, a thread that can't be written, a
decision.
"""


class _AgreedCall(msgspec.Struct, frozen=True):
    """A call that may be made; `note` tells the model what a person changed in it."""

    tool: Tool
    call: PreparedCall
    note: str = ""


def _recorded(key: str) -> str:
    return f"tool:{key}"


def _was_asked(activity: Activity | None, key: str) -> bool:
    """Whether a person has answered about this call before, with any arguments."""
    cursor = activity.cursor if activity else None
    return cursor is not None and any(kept.key.startswith(f"{key}/1") for kept in cursor.answers)


def _note_of_change(arguments: Mapping[str, Any]) -> str:
    ran = json.dumps(arguments, ensure_ascii=False)
    return f"[A person changed this call before it was made. It ran with these arguments: {ran}]"


def _may_have_been_made(agent: str, agreed: _AgreedCall) -> dict[str, Any]:
    name = agreed.tool.name
    return {
        "kind": "choose",
        "title": f"Was {name} called?",
        "payload": {
            "tool": name,
            "args": agreed.call.arguments,
            "why": f"{agent} called {name} and got no result: its process ended, it took too long, or its "
            "server went away. Nobody knows if the call was made.",
        },
        "choices": [msgspec.to_builtins(choice) for choice in _IF_MADE],
    }


async def _answer(activity: Activity, question: Mapping[str, Any], key: str) -> Any:
    """Return a person's answer; raises `InterruptRaised` until there is one."""
    assert activity.interrupt is not None
    try:
        return activity.interrupt(question, key=key)
    except InterruptRaised:
        # The request may cancel calls that run in parallel; what they have started is not lost.
        await activity.in_flight.wait_until_idle()
        raise


class ToolBox(msgspec.Struct, frozen=True):
    """An agent's tools and the rules for calling them.

    Attributes:
        servers: MCP servers, whose tools are added to them.
        approve: the rule for tools without their own rule.
        approver: decides if there is no run that could wait for a person.
        longest: most characters of a result that the model gets.
    """

    agent: str
    tools: Mapping[str, Tool]
    approve: Approve
    approver: Approver | None
    longest: int
    servers: Sequence[McpServer] = ()

    async def offered(self) -> Mapping[str, Tool]:
        """Return all tools by name, after starting servers that do not run yet.

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

    async def make(self, call: ToolCall, activity: Activity | None, key: str, *, problem: str = "") -> str:
        """Make one call, or return its result from an earlier attempt of the node.

        Args:
            key: identifies the call among all calls of the node's run.
            problem: why it can't be made; the model gets this as the result.

        Raises:
            UsageError: a person must approve it, and there is nobody to ask.
            CallOutcomeUnknown: a person said so about a call that may have been made.
        """
        tools = await self.offered()
        tool = tools.get(call.name)
        kept = activity.memory.recall(_recorded(key)) if activity else MISSING
        if kept is MISSING:
            outcome = await self._make_new(call, tools, activity, key, problem)
        else:
            outcome = msgspec.convert(kept, Outcome)
        if activity:
            if outcome.ran and tool is not None and tool.external:
                activity.taint(f"tool {tool.name}")
            if outcome.updates:
                activity.update(call.name, outcome.updates)
            report_call(activity, self.agent, call.name, outcome, is_new=kept is MISSING)
        return outcome.reply

    async def _make_new(
        self, call: ToolCall, tools: Mapping[str, Tool], activity: Activity | None, key: str, problem: str
    ) -> Outcome:
        if activity is not None and activity.before_tool is not None and not problem:
            await self._stop_before(call, tools.get(call.name), activity, key)
        tape = in_use()
        given = Outcome(call.arguments, error=problem) if problem else None
        if given is None and tape:
            given = tape.call(self.agent, call)
        agreed = given or await self._agreed_call(call, tools, activity, key)
        if activity is None:
            return agreed if isinstance(agreed, Outcome) else await self._run(agreed, None, key)
        while True:
            known = (
                agreed if isinstance(agreed, Outcome) else await self._checked_start(agreed, activity, key)
            )
            async with activity.in_flight.call():
                outcome = (
                    known if isinstance(known, Outcome) else await self._run_recorded(known, activity, key)
                )
                if outcome is not None:
                    use = tool_use(activity, self.agent, call.name, outcome)
                    await activity.record(_recorded(key), msgspec.to_builtins(outcome), tool=use)
                    return outcome

    async def _stop_before(self, call: ToolCall, tool: Tool | None, activity: Activity, key: str) -> None:
        """Stop the node, as a request does, if there is a breakpoint before the call."""
        assert activity.before_tool is not None
        arguments = call.arguments
        if tool is not None:
            with suppress(BadArguments):
                arguments = tool.prepare(tool.read(call.text)).arguments
        try:
            activity.before_tool(call.name, arguments, key)
        except InterruptRaised:
            await activity.in_flight.wait_until_idle()
            raise

    async def _agreed_call(
        self, call: ToolCall, tools: Mapping[str, Tool], activity: Activity | None, key: str
    ) -> Outcome | _AgreedCall:
        """Return the call to make, or the result that the model gets instead."""
        tool = tools.get(call.name)
        if tool is None:
            known = ", ".join(tools) or "none"
            return Outcome(call.arguments, error=f"there is no tool {call.name!r}; tools: {known}")
        try:
            prepared = tool.prepare(tool.read(call.text))
        except BadArguments as problem:
            return Outcome(call.arguments, error=str(problem))
        request = ToolRequest(self.agent, tool, prepared.arguments, call.id)
        # A person's earlier answer applies, whatever the rule says now.
        if not _was_asked(activity, key) and not must_ask(tool, prepared.arguments, self.approve):
            return _AgreedCall(tool, prepared)
        decision, agreed = await self._ask(request, prepared, activity, key)
        if decision.verdict == "reject":
            reason = f": {decision.words}" if decision.words else ""
            return Outcome(agreed.arguments, error=f"{_REJECTED}{reason}")
        if decision.verdict == "respond":
            return Outcome(agreed.arguments, decision.words)
        changed = not equal(agreed.arguments, prepared.arguments)
        return _AgreedCall(tool, agreed, _note_of_change(agreed.arguments) if changed else "")

    async def _ask(
        self, request: ToolRequest, prepared: PreparedCall, activity: Activity | None, key: str
    ) -> tuple[ToolDecision, PreparedCall]:
        """Return a person's decision, and the call that it is about.

        If an answer is not accepted, the person is asked again, with the reason. So is an edit that a type
        would convert, so that the tool would get other arguments than the person wrote.
        """
        if activity is None or activity.interrupt is None:
            decision = await self._ask_approver(request)
            given = decision.arguments
            return decision, prepared if given is None else request.tool.prepare(given)
        tool, asked = request.tool, 0
        while True:
            asked += 1
            answer = await _answer(activity, request.question, f"{key}/{asked}")
            try:
                decision = read_decision(answer, tool)
                if decision.arguments is None:
                    return decision, prepared
                edited = tool.prepare(decision.arguments)
            except BadArguments as problem:
                words = f"Your answer could not be taken: {problem}"
                request = ToolRequest(request.agent, tool, request.arguments, request.call_id, words)
                continue
            if equal(edited.arguments, {**prepared.arguments, **decision.arguments}):
                return decision, edited
            prepared = edited
            request = ToolRequest(request.agent, tool, edited.arguments, request.call_id, _CONVERTED)

    async def _checked_start(
        self, agreed: _AgreedCall, activity: Activity, key: str
    ) -> Outcome | _AgreedCall:
        """Return the call, or the result that a person gives for a call that may have been made already."""
        starts = activity.memory.log.starts(_recorded(key))
        if agreed.tool.effects != "once" or not starts or activity.interrupt is None:
            return agreed
        question = _may_have_been_made(self.agent, agreed)
        answer = await _answer(activity, question, f"{key}/made/{starts}")
        choice = answer.get("choice") if isinstance(answer, Mapping) else answer
        if choice == "made":
            return Outcome(agreed.call.arguments, answer["text"], ran=True, note=agreed.note)
        if choice == "fail":
            # Another start: the person who resumes the node is asked again.
            await activity.record(_recorded(key), state="started")
            raise CallOutcomeUnknown(
                f"agent {self.agent!r}: it is not known whether {agreed.tool.name!r} was called, and a "
                "person decided to fail the node",
                "resume the thread to be asked again",
            )
        return agreed

    async def _run_recorded(self, agreed: _AgreedCall, activity: Activity, key: str) -> Outcome | None:
        """Run a call; if it must not run twice, its start is recorded first.

        Returns:
            The outcome; None if a person must say whether the call was made.
        """
        if agreed.tool.effects != "once":
            return await self._run(agreed, activity, key)
        await activity.record(_recorded(key), state="started")
        try:
            outcome = await self._run(agreed, activity, key)
        except (InterruptRaised, LimitStop):
            # An agent inside it asks a person or has no tokens left: the call runs again from its start.
            await activity.record(_recorded(key), state="dropped")
            raise
        return None if outcome.is_unknown and activity.interrupt is not None else outcome

    async def _ask_approver(self, request: ToolRequest) -> ToolDecision:
        if self.approver is None:
            raise UsageError(
                f"agent {self.agent!r}: a person must agree to calls of {request.tool.name!r}, and there is "
                "no one to ask outside a graph",
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

    async def _run(self, agreed: _AgreedCall, activity: Activity | None, key: str) -> Outcome:
        tool, arguments = agreed.tool, agreed.call.arguments
        started = time.monotonic_ns()
        result = error = None
        is_unknown = False
        config = ToolConfig(tool.name, activity, key)
        inside = enclosing_call.set(key)
        try:
            result = cut(await tool.call(agreed.call, config), self.longest)
        except BadArguments as problem:
            return Outcome(arguments, error=str(problem))
        except _FAIL_THE_NODE:
            raise
        except CallTimedOut:
            error, is_unknown = f"it took longer than {tool.timeout:g} s", True
        except ServerWentAway as failure:
            error, is_unknown = cut(str(failure), self.longest), True
        except HitlError as failure:
            error = cut(str(failure), self.longest)
        except Exception as failure:
            error = cut(described(failure), self.longest)
        finally:
            enclosing_call.reset(inside)
            config.over = True
        took = (time.monotonic_ns() - started) // 1000
        updates = () if error else config.updates
        return Outcome(arguments, result, error, took, True, updates, agreed.note, is_unknown)
