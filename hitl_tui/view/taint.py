"""Describes taint and contracts: what is tainted and why, what a node may read and write and what it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hitl_tui.engine.graph.description import NodeInfo
from hitl_tui.engine.log.events import AppliedUpdate, TaintRead
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.taint import Taint
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.spans import Line, Span, plain_text, trusted, untrusted

if TYPE_CHECKING:
    from hitl_tui.engine.audit.lineage import Arrival

Fact = tuple[str, tuple[str, ...], str]


def composition_facts(node: NodeInfo) -> list[Fact]:
    """Return facts in few words for a narrow pane: (name, values, role); the texts are raw."""
    if node.kind == "subgraph":
        return [
            ("runs", (f"graph {node.graph.name}" if node.graph else "a graph",), "plain"),
            ("in", tuple(f"{outer} → {inner}" for outer, inner in node.inputs) or ("nothing",), "plain"),
            ("out", tuple(f"{inner} → {outer}" for inner, outer in node.outputs) or ("nothing",), "plain"),
        ]
    if node.kind == "node":
        return []
    members = tuple(member.name for member in node.members)
    of: Fact = ("over", (node.over,), "plain") if node.over else ("runs", members, "plain")
    at_once = str(node.max_concurrent) if node.max_concurrent else "all"
    return [of, ("join", (f"{node.join}, {at_once} at once",), "plain")]


def contract_facts(node: NodeInfo) -> list[Fact]:
    """Return the other declared facts about a node, for a tall narrow pane: (name, values, role), raw."""
    tried = "once" if node.attempts == 1 else f"up to {node.attempts} times"
    takes = "no time limit" if node.timeout is None else f"{node.timeout:g} s at most"
    return [
        ("tried", (f"{tried}, {takes}",), "plain"),
        ("source", (node.external or "no outside data",), "plain"),
        ("taint", (_POLICIES[node.on_taint],), "plain"),
        ("tools", node.tools or ("none",), "plain"),
    ]


def composition_words(node: NodeInfo) -> list[tuple[str, str]]:
    """Return the facts as sentences for a page: (name, words); the texts are raw."""
    if node.kind == "node":
        return []
    if node.kind == "subgraph":
        known = ("inputs", node.inputs), ("outputs", node.outputs)
        pairs = [
            (name, ", ".join(f"{source} → {other}" for source, other in some) or "nothing")
            for name, some in known
        ]
        name = node.graph.name if node.graph else ""
        return [("is", f"the graph {name}, on a thread of its own"), *pairs]
    at_once = "all at once" if node.max_concurrent is None else f"at most {node.max_concurrent} at once"
    if node.over:
        most = f", of at most {node.max_items:,}" if node.max_items else ""
        what = f"a map over the items of {node.over}{most}; {at_once}"
    else:
        what = f"a parallel of {', '.join(member.name for member in node.members)}; {at_once}"
    fails = "one failure fails the node" if node.on_error == "fail" else "failures are recorded"
    return [("is", what), ("is complete", f"{_JOINS.get(node.join, node.join)}; {fails}")]


_JOINS = {"all": "once all branches have ended", "first": "by the first branch that succeeds"}


_SHORT = 60
_WIDE = 160


def taint_remark(update: AppliedUpdate, glyphs: Glyphs = UNICODE) -> tuple[Span, ...]:
    """Return an update's taint, for the end of its title; nothing for a clean one."""
    lineage = update.lineage
    if lineage is not None and lineage.cleared:
        return (trusted("  declassified", "ok"),)
    if not update.tainted:
        return ()
    mark = (trusted(f"  {glyphs.tainted} tainted", "warning"),)
    if lineage is None:
        return (*mark, trusted(", as it was", "dim"))
    return (*mark, *_origin_spans(lineage.sources, lineage.channels))


def taint_line(taint: Taint) -> Line:
    """Describe a tainted channel, its source and since when: `page from web, since step 1 by fetch`."""
    return (
        untrusted(taint.channel, "name", _SHORT),
        trusted("  from ", "dim"),
        untrusted(", ".join(taint.sources), "warning", _WIDE),
        trusted(f", since step {taint.step} by ", "dim"),
        untrusted(taint.node, "node", _SHORT),
    )


def taint_warning(event: TaintRead) -> str:
    """Return `send may read untrusted data: page from web, since step 1 by fetch`."""
    lines = [plain_text(taint_line(taint)) for taint in event.tainted]
    node = plain_text((untrusted(event.node, "node", _SHORT),))
    return f"{node} may read untrusted data: {'; '.join(lines)}"


def taint_words(payload: Mapping[str, Any]) -> tuple[Line, ...]:
    """Return the tainted channels that a node would read, for a policy's question."""
    lines: list[Line] = [(untrusted(str(payload.get("node")), "node", _SHORT), trusted(" would read:"))]
    for tainted in payload.get("channels") or ():
        taint = Taint(tainted["channel"], tainted["since"], tainted["by"], tuple(tainted["sources"]))
        lines.append((trusted("  "), *taint_line(taint)))
    return (*lines, (trusted("You approve the current value; if it is edited, you are asked again.", "dim"),))


def lineage_lines(arrivals: Iterable[Arrival]) -> list[Line]:
    """Return a line for each step by which taint reached a channel, oldest first."""
    return [
        (
            trusted(f"step {arrival.step}  ", "dim"),
            untrusted(arrival.path or arrival.node, "node", _SHORT),
            trusted(" wrote ", "dim"),
            untrusted(arrival.channel, "name", _SHORT),
            *_origin_spans(arrival.sources, arrival.channels),
        )
        for arrival in arrivals
    ]


def contract_of(
    node: NodeInfo, done: Checkpoint | None = None, updates: Sequence[AppliedUpdate] = ()
) -> tuple[Line, ...]:
    """Return the contract of a node below a blank row and its name; `done` as for `contract_lines`."""
    head = (trusted("── contract of ", "dim"), untrusted(node.name, "node"))
    return ((), head, *contract_lines(node, done, updates))


def contracts(nodes: Iterable[NodeInfo], room: int) -> tuple[Line, ...]:
    """Return what these nodes may read and write, for as many nodes as there is room for."""
    rows: list[Line] = []
    for node in nodes:
        contract = contract_of(node)
        if len(rows) + len(contract) <= room:
            rows += contract
    return tuple(rows)


def contract_lines(node: NodeInfo, done: Checkpoint | None, updates: Sequence[AppliedUpdate]) -> list[Line]:
    """Return what a node may read and write, its policies, and what it did in a step of its own.

    `done` is that step, if the node made the shown one.

    Args:
        done: the step, where the node made the one that is shown.
    """
    lines = [
        *(contract_fact(name, words) for name, words in composition_words(node)),
        contract_fact("may read", channel_names(node.reads)),
        contract_fact("may write", channel_names(node.writes)),
        contract_fact("brings in", node.external or "no outside data"),
        contract_fact("on taint", _POLICIES[node.on_taint]),
        contract_fact("tried", "once" if node.attempts == 1 else f"up to {node.attempts} times"),
        contract_fact("may take", "no time limit" if node.timeout is None else f"{node.timeout:g} s"),
    ]
    if done is not None:
        written = list(dict.fromkeys(update.channel for update in updates))
        lines.append((trusted(""),))
        lines.append(
            contract_fact(
                f"step {done.step}: read", channel_names(done.read) if done.read else "nothing recorded"
            )
        )
        lines.append(
            contract_fact(f"step {done.step}: wrote", channel_names(written) if written else "nothing")
        )
    return lines


_POLICIES = {
    "allow": "allow: it runs",
    "warn": "warn: it runs, and the ledger says so",
    "block": "block: the run fails before it",
    "approve": "approve: a human must agree first",
}


def contract_fact(name: str, text: str) -> Line:
    """Return a line about a part of a contract: its subject, and what is allowed."""
    return trusted(f"{name:<16}", "dim"), untrusted(text, "plain", _WIDE)


def channel_names(names: Sequence[str]) -> str:
    """Name the channels that may be used."""
    if list(names) == ["*"]:
        return "every channel"
    return ", ".join(names) if names else "nothing"


def _origin_spans(sources: Sequence[str], channels: Sequence[str]) -> tuple[Span, ...]:
    parts: list[Span] = []
    if sources:
        parts += [trusted(" from ", "dim"), untrusted(", ".join(sources), "warning", _SHORT)]
    if channels:
        parts += [trusted(" through ", "dim"), untrusted(", ".join(channels), "name", _SHORT)]
    return tuple(parts)
