"""The findings of a check of a log.

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
        kind: "gap" (a record, a step or, with the field "thread", the log of a child thread is missing),
            "record" (a record was changed), "value" (an update or its result does not match its hash),
            "channel" (a record does not start with the value that the one before it left), "reducer" (strict:
            the current graph reduces differently), "taint" (it does not follow from what the node brought in
            and read), "checkpoint", "snapshot", "ledger", "request" (a pending one is not as its newest
            decision says), "cursor", "thread" (what is fixed about it), "row" (stored outside the log, and
            wrong), "gate" (strict: a step after a gate without a sufficient answer; `field` is what is
            missing), "anchor" (the store has changed since), "signature" (of a decision: missing although
            required, wrong, or not that of the person who decided), "unreadable"; in a replay "node" (the
            current graph takes another route); or "origin" (in a mirror: the mirrored checkpointer has
            something else).
        seq: of the record, or the number of the decision; None for other findings.
        field: of the record, checkpoint, entry or cursor.
        expected, actual: hashes as text, `[private]` for a private channel.
        thread: the child thread, or the thread of a mirror, whose log it is; "" for the thread itself.
    """

    kind: Annotated[Kind, about("The kind of finding, such as `record`, `snapshot`, `anchor`, `signature`.")]
    seq: Annotated[int | None, about("The number of the record or the decision.")]
    step: Annotated[int | None, about("The step.")]
    channel: Annotated[str | None, about("The channel.")]
    field: Annotated[str, about("The field of the record, checkpoint, entry or cursor.")]
    expected: Annotated[Any, about("The expected value.")]
    actual: Annotated[Any, about("The actual value.")]
    thread: Annotated[str, about("The subgraph's thread whose log has it; empty for the thread itself.")] = ""


class VerifyReport(msgspec.Struct, frozen=True):
    """What `verify` found.

    Args:
        records: how many were checked.
        unchecked: checkpoints whose state_hash could not be compared: without the graph's channels, the
            defaults of channels that nothing has written yet are unknown.
        threads: child threads that were checked, too.
        missing: child threads that are not in this store; each is a finding, too.
        decisions: who has signed what; None if no signatures were checked.
        since: the first step that was checked; an anchor vouches for the steps before it.
        notes: not wrong, but worth knowing: answers that no request has used.
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
        """Whether nothing was found."""
        return not self.mismatches
