"""Who has signed the decisions of a thread, and whether those are signed that must be (SPEC 10, 12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hitl_tui.engine.audit.findings import Mismatch
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.signing import DECISIONS, Signature, SignedDecision, Signers
from hitl_tui.engine.thread.hashes import signed_words

_VOTES = ("answer", "vote")


def unsigned_answers(ledger: Iterable[LedgerEntry]) -> list[Mismatch]:
    """Answers that their requests want signed, and that are not."""
    wanted: set[str | None] = set()
    mismatches = []
    for entry in ledger:
        if entry.kind == "request" and isinstance(entry.data, Mapping) and entry.data.get("signed"):
            wanted.add(entry.request_id)
        elif entry.kind in _VOTES and entry.request_id in wanted and not entry.signature:
            mismatches.append(_finding(entry, "signature", "signed", "not signed"))
    return mismatches


def decisions(ledger: Sequence[LedgerEntry], signers: Signers) -> list[SignedDecision]:
    """Every decision of a ledger, with what is known of its signature."""
    return [
        SignedDecision(
            n=entry.n,
            kind=entry.kind,
            step=entry.step,
            request=entry.request_id,
            actor=entry.actor,
            account=entry.account,
            at=entry.at,
            found=signers.check(signed_words(entry), entry.signature, entry.actor, entry.at)
            if entry.signature
            else Signature("unsigned"),
        )
        for entry in ledger
        if entry.signature or entry.kind in DECISIONS
    ]


def wrong_signatures(signed: Iterable[SignedDecision]) -> list[Mismatch]:
    """What is wrong with signatures that are there."""
    mismatches = []
    for decision in signed:
        if decision.found.verdict == "wrong":
            mismatches.append(_finding(decision, "signature", "of this decision", "of something else"))
        elif decision.found.verdict == "unknown":
            mismatches.append(_finding(decision, "key", "that of a known signer", decision.found.key or None))
        elif decision.found.verdict == "other":
            mismatches.append(_finding(decision, "signer", decision.actor, decision.found.signer))
    return mismatches


def _finding(
    decision: LedgerEntry | SignedDecision, field: str, expected: str | None, actual: str | None
) -> Mismatch:
    return Mismatch("signature", decision.n, decision.step, None, field, expected, actual)
