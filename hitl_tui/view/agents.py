"""Shows the agents of a thread, their settings and their memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from hitl_tui.engine.log.records import NOTE, LedgerEntry
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.errors import UsageError
from hitl_tui.suggest import did_you_mean
from hitl_tui.view.cells import cells
from hitl_tui.view.format import PRIVATE_TEXT, cost, count, inline, quoted, scalar, tokens
from hitl_tui.view.lines import name, spans
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, Role, Span, trusted, untrusted

_NAME: Final = 40
_VALUE: Final = 60


def find_agent(infos: Sequence[AgentInfo], wanted: str, why_none: str = "") -> AgentInfo:
    """Return the agent of that name.

    Args:
        why_none: why a thread can have no agents here.

    Raises:
        UsageError: there is none.
    """
    for info in infos:
        if info.name == wanted:
            return info
    if not infos:
        raise UsageError("the graph has no agents", why_none)
    raise UsageError(f"there is no agent {wanted!r}", did_you_mean(wanted, [info.name for info in infos]))


def change_words(settings: Mapping[str, Any]) -> str:
    """Describe settings, as in `model “openai/x”, temperature 0`."""
    return ", ".join(
        f"{sanitise_line(str(name), _NAME)} {'as in the graph' if value is None else inline(value, _VALUE)}"
        for name, value in settings.items()
    )


def entry_words(entry: LedgerEntry) -> str:
    """Describe a ledger entry about an agent; "" for other entries."""
    data = thaw(entry.data) if entry.kind == "agent" else None
    if not isinstance(data, dict):
        return ""
    agent = sanitise_line(str(data.get("agent", "")), _NAME)
    if "forgot" in data:
        return f"{agent} forgot {count(int(data['forgot']), 'turn')}"
    was, now = data.get("was") or {}, data.get("is") or {}
    changed = [
        f"{sanitise_line(str(name), _NAME)} {_shown(was, name)} → {_shown(now, name)}"
        for name in (*now, *(name for name in was if name not in now))
        if was.get(name) != now.get(name)
    ]
    return f"{agent}: {', '.join(changed)}"


def change_notes(ledger: Sequence[LedgerEntry], step: int) -> tuple[str, ...]:
    """Describe what people did to agents between a step and the next one."""
    notes: list[str] = []
    for entry in reversed(ledger):
        if entry.kind == NOTE:  # it may be about an older step
            continue
        if entry.step < step:
            break
        words = entry_words(entry) if entry.step == step else ""
        if words:
            notes.append(f"then, by {sanitise_line(entry.actor or 'someone', _NAME)}: {words}")
    return tuple(reversed(notes))


def _shown(settings: Mapping[str, Any], name: str) -> str:
    if name not in settings:
        return "the graph's"
    value = settings[name]
    return quoted(value, _VALUE) if isinstance(value, str) else inline(value, _VALUE)


_MODEL: Final = 60
_SHORT: Final = 1_200
_WHOLE: Final = 64 * 1024
_TURNS: Final = 200
_INSTRUCTIONS: Final = 4_000
_ROLES: Final[dict[str, Role]] = {"user": "human", "assistant": "node", "tool": "accent"}


def agent_rows(infos: Sequence[AgentInfo]) -> list[Line]:
    """Return a line for each agent, in columns: name, model, use, changes."""
    names = [sanitise_line(info.name, _NAME) for info in infos]
    models = [sanitise_line(info.model, _MODEL) for info in infos]
    named, modelled = (max(map(cells, column), default=0) for column in (names, models))
    return [
        _agent_row(info, name + " " * (named - cells(name)), model + " " * (modelled - cells(model)))
        for info, name, model in zip(infos, names, models, strict=True)
    ]


def _agent_row(info: AgentInfo, name: str, model: str) -> Line:
    parts = [Span(name, "name"), Span("  "), Span(model, "value")]
    if info.changed:
        parts.append(trusted(f"  changed: {', '.join(info.changed)}", "human"))
    return (*parts, trusted(f"  {used(info)}", "dim"))


def used(info: AgentInfo) -> str:
    """Return the total use of an agent's calls in the thread."""
    if not info.calls:
        return "no calls yet"
    return f"{count(info.calls, 'call')} · {_amount(info.tokens_in, info.tokens_out, info.cost)}"


def _amount(tokens_in: int, tokens_out: int, price: float | None) -> str:
    words = "cost unknown" if price is None else cost(price)
    return f"{tokens(tokens_in)} in, {tokens(tokens_out)} out · {words}"


def memory_words(info: AgentInfo) -> str:
    """Describe where the chat turns are stored, and so what a restore does to them."""
    if info.history:
        channel = sanitise_line(info.history, _NAME)
        return (
            f"These turns are in the channel {channel}, part of the state: "
            "a restore, an edit or a fork takes them along."
        )
    return (
        "These turns are the agent's own memory, in this process alone. They are not part of the state: "
        "going back, an edit or a fork does not touch them, and another process does not have them."
    )


def agent_lines(info: AgentInfo) -> tuple[Line, ...]:
    """Describe an agent: model, temperature, tools, use, role and instructions."""
    facts: list[tuple[str, str]] = [("model", info.model)]
    facts += [] if info.temperature is None else [("temperature", f"{info.temperature:g}")]
    facts += [("tools", ", ".join(info.tools))] if info.tools else []
    facts.append(("in total", used(info)))
    if last := info.last:
        facts.append(("last call", _amount(last.tokens_in, last.tokens_out, last.cost)))
    facts += [("role", info.role)] if info.role else []
    lines: list[Line] = []
    for setting, value in facts:
        mark = (trusted("changed ", "human"),) if setting in info.changed else ()
        lines.append((trusted(f"{setting:<12} ", "dim"), *mark, untrusted(value, "value", 2 * _MODEL)))
    if info.instructions:
        mark = (trusted(" changed", "human"),) if "instructions" in info.changed else ()
        lines += [(trusted("instructions", "dim"), *mark), *_text(info.instructions, "value", _INSTRUCTIONS)]
    return tuple(lines)


def turn_lines(turns: Sequence[Mapping[str, Any]], *, whole: bool = False) -> tuple[Line, ...]:
    """Return lines of the chat turns, oldest first: who, the text, the tools called and their results.

    Args:
        whole: show as much of long texts as fits a screen, not just their beginning.
    """
    if not turns:
        return ((trusted("no turns", "dim"),),)
    limit = _WHOLE if whole else _SHORT
    lines: list[Line] = []
    earlier = len(turns) - _TURNS
    if earlier > 0:
        lines += [(trusted(f"{count(earlier, 'turn')} before these", "dim"),), ()]
    first = max(earlier, 0)
    names = _calls(turns)
    for number, turn in enumerate(turns[first:], first + 1):
        lines += [*_turn(number, turn, names, limit), ()]
    return tuple(lines[:-1])


def _turn(number: int, turn: Mapping[str, Any], names: Mapping[str, str], limit: int) -> Iterator[Line]:
    role = str(turn.get("role", ""))
    head = [trusted(f"{number} ", "dim"), untrusted(role or "?", _ROLES.get(role, "warning"), _NAME)]
    if role == "tool":
        tool = names.get(str(turn.get("tool_call_id")), "")
        head += [untrusted(f" {tool}", "name", _NAME)] if tool else []
        head.append(trusted(" gave", "dim"))
    yield tuple(head)
    if role == "private":
        yield (trusted(f"  {PRIVATE_TEXT}", "private"),)
        return
    said = turn.get("content")
    if said:
        yield from _text(said if isinstance(said, str) else _json(said), "plain", limit)
    calls = turn.get("tool_calls")
    for call in calls if isinstance(calls, Sequence) and not isinstance(calls, str) else ():
        name, arguments = _call(call)
        yield (trusted("  calls ", "dim"), untrusted(name, "name", _NAME))
        yield from _text(arguments, "value", limit)


def _text(text: str, role: Role, limit: int) -> Iterator[Line]:
    shown = sanitise(text[:limit]).rstrip("\n")
    for row in shown.split("\n"):
        yield (Span("  "), Span(row, role))
    if len(text) > limit:
        yield (trusted(f"  … {len(text) - limit:,} more characters", "dim"),)


def _calls(turns: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of called tools by the id of the call."""
    named: dict[str, str] = {}
    for turn in turns:
        calls = turn.get("tool_calls")
        for call in calls if isinstance(calls, Sequence) and not isinstance(calls, str) else ():
            if isinstance(call, Mapping):
                named[str(call.get("id"))] = _call(call)[0]
    return named


def _call(call: Any) -> tuple[str, str]:
    """Return lines of a tool's name and its arguments, indented if they are JSON."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return "?", _json(call)
    arguments = function.get("arguments", "")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return str(function.get("name", "?")), str(arguments)
    return str(function.get("name", "?")), _json(arguments)


def _json(value: Any) -> str:
    try:
        return json.dumps(thaw(value), ensure_ascii=False, indent=2)
    except (TypeError, ValueError):
        return scalar(value)


_LINES: Final = 400


def whole_agent(agent: AgentInfo) -> list[str]:
    """Describe an agent in full, with its turns."""
    lines = [f"{name(agent.name)}:", *spans(agent_lines(agent), _LINES), memory_words(agent)]
    return [*lines, "Its turns:", *spans(turn_lines(agent.turns), _LINES)]
