"""Changing an agent: the form of its settings, what of it differs, and changes in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hitl_tui.drivers.protocol import AgentInfo
from hitl_tui.engine.channels.values import thaw
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.view.form import Form, form_of
from hitl_tui.view.format import count, inline, quoted
from hitl_tui.view.sanitise import sanitise_line

_NAME: Final = 40
_VALUE: Final = 60
_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "model": {"type": "string", "title": "provider/model, as litellm names it"},
        "temperature": {"type": ["number", "null"], "minimum": 0, "maximum": 2},
        "instructions": {"type": ["string", "null"]},
        "fork": {"type": ["string", "null"], "title": "name of the fork, if one is made"},
        "why": {"type": ["string", "null"], "title": "for the log"},
    },
    "required": ["model"],
}


def settings_form(info: AgentInfo, fork: str) -> Form:
    """A field for each setting, with what it is now; one for the name of a fork, and one for a note."""
    now = {
        "model": info.model,
        "temperature": info.temperature,
        "instructions": info.instructions or None,
        "fork": fork,
        "why": None,
    }
    form = form_of(_SCHEMA, now)
    assert form is not None
    fields = (replace(field, long=field.path == ("instructions",)) for field in form.fields)
    return replace(form, fields=tuple(fields))


def changed_settings(info: AgentInfo, value: Mapping[str, Any]) -> dict[str, Any]:
    """What of the form's value differs from the agent; None takes a setting back to the graph's.

    An emptied text of instructions is an empty text, so that an agent can go on without any.
    """
    found: dict[str, Any] = {}
    if value.get("model", info.model) != info.model:
        found["model"] = value["model"]
    if value.get("temperature") != info.temperature:
        found["temperature"] = value.get("temperature")
    instructions = value.get("instructions") or ""
    if instructions != info.instructions:
        found["instructions"] = instructions
    return found


@dataclass(frozen=True, slots=True)
class Trial:
    """A step to make again in a fork of `thread_id` at `base`; `words` say so."""

    thread_id: str
    base: int
    words: str


def trial_of(points: Sequence[Checkpoint], shown: int, thread_id: str, agent: str) -> Trial:
    """What trying an agent otherwise makes again: its newest step up to the shown one, else what comes next.

    Args:
        points: checkpoints of the thread as far as they are loaded, oldest first.
    """
    for point in reversed(points):
        if 0 < point.step <= shown and any(use.agent == agent for use in point.uses):
            return Trial(thread_id, point.step - 1, f"make step {point.step} again in a fork")
    return Trial(thread_id, max(shown, 0), f"make the step after {max(shown, 0)} in a fork")


def change_words(settings: Mapping[str, Any]) -> str:
    """Settings in words, as in `model “openai/x”, temperature 0`."""
    return ", ".join(
        f"{sanitise_line(str(name), _NAME)} {'as in the graph' if value is None else inline(value, _VALUE)}"
        for name, value in settings.items()
    )


def entry_words(entry: LedgerEntry) -> str:
    """What a ledger's entry about an agent says, in words; "" for other entries."""
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
    """What humans did to agents after a step was made and before the next one, in words."""
    notes: list[str] = []
    for entry in reversed(ledger):
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
