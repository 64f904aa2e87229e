"""Describes the findings of log checks: a line for each, and what its kind means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hitl_tui.drivers.protocol import Checked
from hitl_tui.engine.audit.findings import Kind, Mismatch
from hitl_tui.engine.log.signing import SignedDecision
from hitl_tui.view.cells import thread_name
from hitl_tui.view.format import count
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, untrusted

MEANING: Final[Mapping[Kind, str]] = {
    "gap": "A record, a step, a decision or the thread of a subgraph's run is missing from the store.",
    "record": "This record was changed after it was written: it no longer has the hash it was stored with.",
    "value": "An update, or what its reducer made of it, is not what was hashed when it was written.",
    "channel": "This record does not begin where the record before it left the channel.",
    "reducer": "The channel's reducer is another one than then, or makes another value from the same update.",
    "taint": "The taint of the channel does not follow from what the node read and brought in.",
    "checkpoint": "The checkpoint of the step was changed, or does not follow from the records before it.",
    "snapshot": "The snapshot, a cache of the state, differs from what the log makes of it.",
    "ledger": "This entry of the decision ledger was changed after it was written.",
    "request": "The open requests are not what the newest decision about them says.",
    "cursor": "The position of the thread does not follow from its log.",
    "thread": "What is fixed about the thread (graph, fork, creation) was changed after it was made.",
    "row": "Something stored next to the log is wrong, or belongs to nothing.",
    "gate": "The step came after a gate, and the decisions hold no answer that lets it pass so.",
    "anchor": "The store is not what it was when the anchor was taken: restored from a copy, or rewritten.",
    "signature": "A decision is not signed that must be, or its signature is not that of who decided this.",
    "unreadable": "This part of the store can't be read at all.",
    "node": "With the recorded results of its nodes, the graph takes another route today.",
    "origin": "The checkpoint of LangGraph's that the step mirrors is gone, or holds something else now.",
}
"""What a finding of each kind means, in one sentence."""

_SHORT, _LONG = 60, 200


def checked_words(checked: Checked) -> str:
    """Describe the result of a check, and how much was checked."""
    wrong = len(checked.mismatches)
    verdict = count(wrong, "finding") if wrong else "nothing is wrong"
    words = f"{verdict}: {count(checked.steps, 'step')}, {count(checked.records, 'record')}"
    if checked.kind == "replay":
        words += f", the results of {count(checked.nodes, 'node')} served"
    return words + (f"; {count(checked.unchecked, 'state')} not compared" if checked.unchecked else "")


def changed_words(changes: Sequence[str]) -> tuple[str, ...]:
    """Return a line that says why the current graph may cause findings; none if it is unchanged."""
    listed = "; ".join(sanitise_line(change, _SHORT * 3) for change in changes)
    return (f"the graph has changed since, which may be why: {listed}",) if listed else ()


def place_of(finding: Mismatch) -> str:
    """Describe a finding's place: the subgraph's thread, step, seq and channel, as far as it has them."""
    places = (("step", finding.step), ("seq", finding.seq), ("channel", finding.channel))
    words = [f"{word} {sanitise_line(str(value), _SHORT)}" for word, value in places if value is not None]
    if finding.thread:
        words.insert(0, thread_name(finding.thread, _SHORT))
    return ", ".join(words) or "thread"


def values_of(finding: Mismatch) -> tuple[str, str]:
    """Return the expected and the found value as text."""
    return shown(finding.expected), shown(finding.actual)


def shown(value: object) -> str:
    """Return an expected or found value on one line; "nothing" if there is none."""
    return "nothing" if value is None else sanitise_line(str(value), _LONG)


def finding_line(finding: Mismatch) -> str:
    """Return a finding of a check as a line of text."""
    if (finding.kind, finding.field) == ("gap", "thread"):  # the whole thread of a subgraph
        where = f"{place_of(finding)}: " if finding.thread or finding.step is not None else ""
        return f"{finding.kind}: {where}{shown(finding.expected)} ran inside it and is not in this store"
    expected, actual = values_of(finding)
    return f"{finding.kind}: {place_of(finding)}: {finding.field}: expected {expected}, found {actual}"


def decision_line(decision: SignedDecision) -> str:
    """Return a decision and its signer on one line."""
    who = sanitise_line(decision.actor, _SHORT) if decision.actor else "nobody named"
    inside = f"{thread_name(decision.thread, _SHORT)}: " if decision.thread else ""
    signer, key = sanitise_line(decision.found.signer, _SHORT), sanitise_line(decision.found.key, _SHORT)
    said = {
        "good": f"signed by {signer} ({key})",
        "unsigned": "not signed",
        "unknown": f"signed by an unknown key ({key})",
        "other": f"signed by {signer} ({key}), not by {who}",
        "wrong": "with a signature of something else",
    }[decision.found.verdict]
    kind = sanitise_line(decision.kind, _SHORT)
    return f"{inside}{decision.n}. {kind} at step {decision.step} by {who}: {said}"


def finding_row(finding: Mismatch) -> Line:
    """Return a finding's cells in a list: its kind, its place, and the wrong field."""
    return (
        Span(f"{finding.kind:<11}", "error"),
        Span(f"{place_of(finding):<34}  ", "name"),
        untrusted(finding.field, "value", limit=_SHORT),
    )
