"""What a check of a log has found.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from hitl_tui.engine.log.signing import SignedDecision
from hitl_tui.engine.log.units import about

Kind = Literal[
    "gap",
    "record",
    "value",
    "channel",
    "reducer",
    "taint",
    "checkpoint",
    "snapshot",
    "ledger",
    "request",
    "cursor",
    "thread",
    "row",
    "gate",
    "anchor",
    "signature",
    "unreadable",
    "node",
    "origin",
]


class Mismatch(msgspec.Struct, frozen=True):
    """One thing that is not as it should be.

    Args:
        kind: "gap" (a record, a step or, with the field "thread", the log of a subgraph's run is missing),
            "record" (a record was changed), "value" (an update or its result is not what was hashed),
            "channel" (a record does not begin where the one before it ended), "reducer" (strict: the graph
            reduces otherwise today), "taint" (it does not follow from what the node brought in and read),
            "checkpoint", "snapshot", "ledger", "request" (one that waits is not what its newest decision
            says), "cursor", "thread" (what is fixed about it), "row" (stored beside the log, and not what it
            should be), "gate" (strict: a step behind a gate that no decision lets pass, or not so; `field` is
            what is missing), "anchor" (the store is not what it was then), "signature" (of a decision:
            missing where it was wanted, wrong, or not that of who decided), "unreadable", of a replay "node"
            (the graph goes another way today), or "origin" (of a mirror: the checkpointer that it mirrors has
            something else).
        seq: of the record, or number of the decision; None for other findings.
        field: of the record, checkpoint, entry or cursor.
        expected, actual: hashes as text, `[private]` for a private channel's.
        thread: of a subgraph's run, or of the line of a mirror, whose log it is; "" for the thread's own.
    """

    kind: Annotated[Kind, about("What kind of thing, as `record`, `snapshot`, `anchor`, `signature`.")]
    seq: Annotated[int | None, about("Number of the record or the decision.")]
    step: Annotated[int | None, about("The step.")]
    channel: Annotated[str | None, about("The channel.")]
    field: Annotated[str, about("Of the record, checkpoint, entry or cursor.")]
    expected: Annotated[Any, about("What it should be.")]
    actual: Annotated[Any, about("What it is.")]
    thread: Annotated[
        str, about("The thread of a subgraph's run whose log it is; empty for the thread's own.")
    ] = ""


class VerifyReport(msgspec.Struct, frozen=True):
    """What `verify` found.

    Args:
        records: how many were checked.
        unchecked: checkpoints whose state_hash could not be compared: without the graph's channels the
            defaults of channels that nothing has written yet are unknown.
        threads: of subgraphs' runs below, which were checked, too.
        missing: threads of such runs that are not in this store; each is a finding, too.
        decisions: who has signed what; None where nobody's signature was checked.
        since: the first step that was checked; an anchor vouches for what lies before it.
        notes: what is not wrong, but worth knowing: answers that no question has used.
    """

    mismatches: tuple[Mismatch, ...] = ()
    records: int = 0
    checkpoints: int = 0
    unchecked: int = 0
    threads: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    decisions: tuple[SignedDecision, ...] | None = None
    since: int = 0
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True where nothing was found."""
        return not self.mismatches
