"""Gates of a graph file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from hitl_tui.engine.channels.state import WorkflowState
from hitl_tui.engine.graphs.gates import Gate, GateChoice, TextUse
from hitl_tui.loading import positions
from hitl_tui.loading.graphfile.context import Context
from hitl_tui.loading.graphfile.shape import ChoiceTable, GateTable, InterruptsTable


def build_gate(context: Context, node: str, table: GateTable, path: positions.Path) -> Gate | None:
    """The gate at `node`; None, with the problems noted, where it isn't sound."""
    before = len(context.problems)
    if table.subject:
        context.check_channel((*path, "subject"), table.subject)
    for number, name in enumerate(table.show):
        _check_shown(context, (*path, "show", number), name)
    ids = [choice.id for choice in table.choices]
    for key in ("recommended", "on_timeout"):
        named = getattr(table, key)
        if named and named not in ids:
            context.problems.unknown((*path, key), "choice", named, ids)
    if table.reviewers and table.quorum > len(table.reviewers):
        context.problems.add((*path, "quorum"), f"there are only {len(table.reviewers)} reviewers")
    choices = [
        _choice(context, choice, (*path, "choices", number)) for number, choice in enumerate(table.choices)
    ]
    if len(context.problems) > before:
        return None
    with context.problems.at((*path, "choices")):
        return Gate(
            node,
            title=table.title,
            choices=choices,
            subject=table.subject or None,
            payload=_payload(table.show) if table.show else None,
            recommended=table.recommended or None,
            reviewers=tuple(table.reviewers),
            quorum=table.quorum,
            one_account=table.one_account,
            signed=table.signed,
            deadline=None if table.deadline is UNSET else table.deadline,
            on_timeout=table.on_timeout or None,
            risk=table.risk,
        )
    return None


def build_interrupts(context: Context) -> tuple[list[str | Gate], list[str | Gate]]:
    """Where to stop before and after nodes, gate nodes included."""
    before = _stops(context, context.file.interrupts, "before")
    after = _stops(context, context.file.interrupts, "after")
    gated = {entry.node for entry in after if isinstance(entry, Gate)}
    for name, table in context.file.nodes.items():
        if table.gate is UNSET:
            continue
        path = ("nodes", name, "gate")
        if name in gated:
            context.problems.add(path, "there is another gate after this node", "see [interrupts] after")
        if gate := build_gate(context, name, table.gate, path):
            after.append(gate)
    return before, after


def _stops(context: Context, table: InterruptsTable, key: str) -> list[str | Gate]:
    given = getattr(table, key)
    stops: list[str | Gate] = []
    seen: set[str] = set()
    for number, entry in enumerate([given] if isinstance(given, str) else given):
        path = ("interrupts", key) if isinstance(given, str) else ("interrupts", key, number)
        name = entry if isinstance(entry, str) else entry.node
        if name != "*" and not context.check_node(path, name):
            continue
        if name in seen:
            context.problems.add(path, f"it names {name!r} twice", "keep one")
        seen.add(name)
        stop = entry if isinstance(entry, str) else build_gate(context, name, entry, path)
        if stop is not None:
            stops.append(stop)
    # The engine lets the last entry of a node win: a gate says more than "*".
    return sorted(stops, key=lambda stop: isinstance(stop, Gate))


def _choice(context: Context, table: ChoiceTable, path: positions.Path) -> GateChoice:
    for name, value in table.set.items():
        where = (*path, "set", name)
        if context.check_channel(where, name) and name in context.bound:
            with context.problems.at(where):
                context.bound[name].replace(value)
    if table.words and context.check_channel((*path, "words"), table.words) and table.words in table.set:
        context.problems.add((*path, "words"), f"set gives {table.words!r} a value already", "keep one")
    text: TextUse = ("required" if table.words else "optional") if table.text is UNSET else table.text
    values = _with_words(table.set, table.words) if table.words else table.set
    return GateChoice(table.id, table.label or table.id, table.key, text, values)


def _with_words(values: Mapping[str, Any], channel: str) -> Callable[[WorkflowState, str], Mapping[str, Any]]:
    return lambda _state, words: {**values, channel: words}


def _payload(names: Sequence[str]) -> Callable[[WorkflowState], dict[str, Any]]:
    return lambda state: {name: state[name] for name in names}


def _check_shown(context: Context, path: positions.Path, name: str) -> None:
    if not context.check_channel(path, name.partition(".")[0]):
        return
    channel = context.bound.get(name.partition(".")[0])
    if channel is not None and channel.visibility == "private":
        context.problems.add(path, f"channel {name!r} is private", "a question is kept and shown in the open")
