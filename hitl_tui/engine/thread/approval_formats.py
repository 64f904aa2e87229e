"""Approvals of tool calls in the formats of other tools: recognised by their keys, answered in their format.

Three formats are known: Agent Inbox (`action_request` and `config`, answered with a list), the middleware of
LangChain 1.x (`action_requests` and `review_configs`, answered with `decisions`), and its single calls
(`type` is "tool_approval", answered with one decision).  A person always has the same choices (approve, edit,
respond, reject, ignore); the node receives the answer in the format of its request.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from hitl_tui.engine.log.requests import Choice, Shape
from hitl_tui.engine.state.canonical import equal
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.state.schema import ChannelSchema
from hitl_tui.errors import AnswerRefused, SchemaMismatch

_CHOICES: Final = {
    "approve": Choice("approve", "approve", "a", "none"),
    "edit": Choice("edit", "edit the arguments", "e", "none"),
    "respond": Choice("respond", "answer for the tool", "w", "required"),
    "reject": Choice("reject", "reject", "r", "optional"),
    "ignore": Choice("ignore", "ignore", "i", "none"),
}
_ALIASES: Final = {"accept": "approve", "response": "respond"}
_INBOX_NAMES: Final = {"approve": "accept", "respond": "response"}
_INBOX_ALLOWS: Final = {"approve": "allow_accept", "respond": "allow_respond", "edit": "allow_edit",
                        "ignore": "allow_ignore"}  # fmt: skip
_MIDDLEWARE_ALLOWS: Final = ("approve", "edit", "reject", "respond")


class ToolAction(msgspec.Struct, frozen=True):
    """One call that needs a decision.

    Args:
        name, args: the tool and the arguments of the call.
        description: what the request says about it, "" for nothing.
        allowed: the allowed decisions, of approve, edit, respond, reject, ignore.
        schema: the JSON Schema of `args`, if the request has one ("args_schema").
    """

    name: str
    args: Any
    description: str
    allowed: tuple[str, ...]
    schema: Mapping[str, Any] | None = None


class ActionDecision(msgspec.Struct, frozen=True):
    """The decision about one action.

    `args` of an edit replace those of the action, `name` must stay the same.
    """

    type: str
    text: str = ""
    name: str = ""
    args: Any = None


def shape_of(payload: Any) -> Shape:
    """Return the format of a payload, "" for an unknown one."""
    payload = _parsed(payload)
    if isinstance(payload, list):
        return "agent_inbox" if payload and all(map(_is_inbox, payload)) else ""
    if not isinstance(payload, Mapping):
        return ""
    if _is_inbox(payload):
        return "agent_inbox"
    if _is_middleware(payload):
        return "hitl_middleware"
    single = payload.get("type") == "tool_approval" and isinstance(payload.get("name"), str)
    return "tool_approval" if single else ""


def actions_of(shape: Shape, payload: Any) -> tuple[ToolAction, ...]:
    """Return the actions of a payload in a known format, in their order."""
    payload = _parsed(payload)
    if shape == "agent_inbox":
        return tuple(_inbox_action(part) for part in (payload if isinstance(payload, list) else [payload]))
    if shape == "hitl_middleware":
        configs = [part for part in payload["review_configs"] if isinstance(part, Mapping)]
        return tuple(_middleware_action(part, configs) for part in payload["action_requests"])
    if shape == "tool_approval":
        return (_action(payload, payload.get("allowed_decisions")),)
    return ()


def choices_of(actions: Sequence[ToolAction]) -> tuple[Choice, ...]:
    """Return the decisions that are allowed for all the actions at once."""
    first = actions[0].allowed if actions else ()
    common = [choice for choice in first if all(choice in action.allowed for action in actions)]
    if len(actions) > 1:
        common = [choice for choice in common if choice != "edit"]
    return tuple(_CHOICES[choice] for choice in common)


def title_of(actions: Sequence[ToolAction]) -> str:
    """Return the question that a request with these actions asks."""
    if len(actions) == 1:
        return f"Call {actions[0].name}?"
    return f"Make {len(actions)} calls: {', '.join(action.name for action in actions)}?"


def own_answer(shape: Shape, payload: Any, answer: Any) -> Any:
    """Return an answer in the format that the node of such a payload expects.

    Args:
        answer: a decision for all actions (`"approve"`, `{"choice": "reject", "text": "…"}`), a list of
            decisions, one for each action in order, or an answer in the payload's own format. A decision to
            edit gives all the new arguments: `{"choice": "edit", "args": {…}}`.

    Raises:
        AnswerRefused: a decision that isn't allowed, or not one for each action.
    """
    actions = actions_of(shape, payload)
    given = _decisions(answer, len(actions))
    if len(given) != len(actions):
        raise AnswerRefused(
            f"{len(actions)} actions wait, and the answer decides {len(given)}",
            "give a list with one decision for each action, in their order",
        )
    decided = []
    for decision, action in zip(given, actions, strict=True):
        if other := other_tool(decision, action.name):
            # Another tool would have other rules for approval.
            raise AnswerRefused(
                f"an edit can't turn {action.name!r} into {other!r}", "change only its arguments"
            )
        decided.append(_checked(_decision(decision, action), action))
    if shape == "agent_inbox":
        return [_as_inbox(decision, action) for decision, action in zip(decided, actions, strict=True)]
    own = [_as_middleware(decision, action) for decision, action in zip(decided, actions, strict=True)]
    if shape == "hitl_middleware":
        return {"decisions": own}
    return own[0]


def other_tool(decision: Any, tool: str) -> str:
    """Return the other tool that a decision to edit names instead of `tool`, in any format; "" for none."""
    if not isinstance(decision, Mapping) or decision.get("choice", decision.get("type")) != "edit":
        return ""
    parts = [decision, *(decision.get(name) for name in ("edited_action", "function"))]
    args = decision.get("args")
    if isinstance(args, Mapping) and "type" in decision and isinstance(args.get("action"), str):
        parts.append(args)  # Agent Inbox's format
    names = [part.get(name) for part in parts if isinstance(part, Mapping) for name in _TOOL_NAMES]
    return next((name for name in names if isinstance(name, str) and name != tool), "")


_TOOL_NAMES: Final = ("name", "action", "tool", "tool_name", "function")


def decided_word(answer: Any) -> str:
    """Return what an answer decides, as "approve" or "2 approve, 1 reject"; "" if it is not a decision."""
    if isinstance(answer, Mapping) and isinstance(answer.get("decisions"), list | tuple):
        answer = answer["decisions"]
    if isinstance(answer, list | tuple):
        words = [decided_word(part) for part in answer]
        if not all(words):
            return ""
        counted = Counter(words)
        return words[0] if len(words) == 1 else ", ".join(f"{n} {word}" for word, n in counted.items())
    kind = answer.get("choice", answer.get("type")) if isinstance(answer, Mapping) else answer
    return _ALIASES.get(kind, kind) if isinstance(kind, str) else ""


def _parsed(payload: Any) -> Any:
    """Return a payload, parsed if it is JSON text, as Agent Inbox accepts it."""
    if isinstance(payload, str) and '"action_request"' in payload:
        try:
            return json.loads(payload)
        except (ValueError, RecursionError):
            return payload
    return payload


def _is_inbox(payload: Any) -> bool:
    if not isinstance(payload, Mapping):
        return False
    request, config = payload.get("action_request"), payload.get("config")
    return (
        isinstance(request, Mapping)
        and isinstance(request.get("action"), str)
        and isinstance(config, Mapping)
        and any(allow in config for allow in _INBOX_ALLOWS.values())
    )


def _is_middleware(payload: Mapping[str, Any]) -> bool:
    actions, configs = payload.get("action_requests"), payload.get("review_configs")
    return (
        isinstance(actions, list)
        and isinstance(configs, list)
        and bool(actions)
        and all(isinstance(action, Mapping) and isinstance(action.get("name"), str) for action in actions)
    )


def _inbox_action(payload: Mapping[str, Any]) -> ToolAction:
    request, config = payload["action_request"], payload["config"]
    allowed = tuple(ours for ours, theirs in _INBOX_ALLOWS.items() if config.get(theirs))
    return ToolAction(
        request["action"], request.get("args", {}), _text(payload.get("description")), allowed or ("ignore",)
    )


def _middleware_action(request: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]) -> ToolAction:
    config = next((candidate for candidate in configs if candidate.get("action_name") == request["name"]), {})
    return _action(request, config.get("allowed_decisions"))


def _action(request: Mapping[str, Any], allows: Any) -> ToolAction:
    named = allows if isinstance(allows, list) else _MIDDLEWARE_ALLOWS
    allowed = tuple(choice for choice in _MIDDLEWARE_ALLOWS if choice in named) or _MIDDLEWARE_ALLOWS
    schema = request.get("args_schema")
    known = schema if isinstance(schema, Mapping) else None
    return ToolAction(
        request["name"], request.get("args", {}), _text(request.get("description")), allowed, known
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _decisions(answer: Any, count: int) -> list[Any]:
    if isinstance(answer, Mapping) and isinstance(answer.get("decisions"), list):
        return list(answer["decisions"])
    if isinstance(answer, list):
        return answer
    for_all = isinstance(answer, str) or (isinstance(answer, Mapping) and "choice" in answer)
    return [answer] * (count if for_all else 1)


def _decision(given: Any, action: ToolAction) -> ActionDecision:
    """Read one decision about an action, in our format or in another one."""
    if isinstance(given, str):
        given = {"choice": given}
    kind = given.get("choice", given.get("type")) if isinstance(given, Mapping) else None
    if not isinstance(kind, str):
        raise AnswerRefused(
            "the answer names no decision", 'decide as in "approve" or {"choice": "reject", "text": "…"}'
        )
    kind = _ALIASES.get(kind, kind)
    args, edited = given.get("args"), given.get("edited_action")
    if kind == "respond" and isinstance(args, str):
        return ActionDecision(kind, args)
    text = given.get("text", given.get("message"))
    if kind != "edit":
        return ActionDecision(kind, _text(text))
    if isinstance(edited, Mapping):
        return ActionDecision(kind, "", _text(edited.get("name")), edited.get("args"))
    if "type" in given and isinstance(args, Mapping) and isinstance(args.get("action"), str):
        return ActionDecision(kind, "", args["action"], args.get("args"))
    if _holds_arguments(args, action):
        args = args["args"]
    return ActionDecision(kind, "", _text(given.get("name", given.get("action"))), args)


def _holds_arguments(args: Any, action: ToolAction) -> bool:
    """Whether the arguments of an edit are wrapped as in Agent Inbox, without the action."""
    wrapped = isinstance(args, Mapping) and args.keys() == {"args"} and isinstance(args["args"], Mapping)
    return wrapped and not (isinstance(action.args, Mapping) and "args" in action.args)


def _checked(decision: ActionDecision, action: ToolAction) -> ActionDecision:
    if decision.type not in action.allowed:
        raise AnswerRefused(
            f"{decision.type!r} is not an allowed answer to {action.name!r}",
            f"allowed: {', '.join(action.allowed)}",
        )
    if decision.type == "respond" and not decision.text.strip():
        raise AnswerRefused(
            f"an answer for the tool {action.name!r} needs a text", "write what the tool would return"
        )
    if decision.type != "edit":
        return decision
    if not isinstance(decision.args, Mapping if isinstance(action.args, Mapping) else object) or (
        decision.args is None
    ):
        raise AnswerRefused(
            f"an edit of {action.name!r} needs all its arguments",
            'give them: {"choice": "edit", "args": {…}}',
        )
    _check_args(decision.args, action)
    return ActionDecision("edit", "", decision.name or action.name, decision.args)


def _check_args(args: Any, action: ToolAction) -> None:
    """Refuse edited arguments that the tool would not accept."""
    if action.schema is None:
        return
    try:
        ChannelSchema(action.name, thaw(action.schema), "whole").check_value(thaw(args))
    except SchemaMismatch as error:
        raise AnswerRefused(
            error.message.replace("channel", "the arguments of", 1), "give all of them as the tool takes them"
        ) from None


def _as_inbox(decision: ActionDecision, action: ToolAction) -> dict[str, Any]:
    unchanged = decision.name == action.name and equal(decision.args, action.args)
    if decision.type == "edit" and unchanged and "approve" in action.allowed:
        decision = ActionDecision("approve")
    kind = _INBOX_NAMES.get(decision.type, decision.type)
    if decision.type == "edit":
        return {"type": kind, "args": {"action": decision.name, "args": decision.args}}
    if decision.type == "respond":
        return {"type": kind, "args": decision.text}
    if decision.type == "approve" and "edit" in action.allowed:
        return {"type": kind, "args": {"action": action.name, "args": action.args}}
    return {"type": kind, "args": None}


def _as_middleware(decision: ActionDecision, action: ToolAction) -> dict[str, Any]:
    if decision.type == "edit":
        return {"type": "edit", "edited_action": {"name": decision.name, "args": decision.args}}
    if decision.text and decision.type != "approve":
        return {"type": decision.type, "message": decision.text}
    return {"type": decision.type}
