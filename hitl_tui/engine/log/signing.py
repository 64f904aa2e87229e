"""What signs decisions, and what checks their signatures, as the engine asks for it (SPEC 10).

Keys and the programs that use them are no business of the engine: whoever opens a thread hands in a signer.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

import msgspec

from hitl_tui.engine.log.units import Maybe, Time

DECISIONS: Final = frozenset(
    (
        "answer",
        "vote",
        "update_state",
        "declassify",
        "reveal",
        "export",
        "extend",
        "cancel",
        "fork",
        "agent",
        "rollback",
    )
)
"""The kinds of the ledger's entries by which a person decides; of somebody named, these are signed."""

Verdict = Literal["good", "unsigned", "unknown", "other", "wrong"]


class Signer(Protocol):
    """A person's key."""

    @property
    def key(self) -> str:
        """What to call it, as the path of its file."""

    def sign(self, words: bytes) -> str:
        """The signature of what was decided; raises `SigningFailed`."""


class Signature(msgspec.Struct, frozen=True):
    """What is known of the signature of one decision.

    Args:
        verdict: "good", "unsigned", "unknown" (of a key that nobody is known to have), "other" (of somebody
            else than the decision names) or "wrong" (not of what was decided).
        signer: who has signed, as the list of signers calls them; "" where that is not known.
        key: fingerprint of the key.
    """

    verdict: Verdict
    signer: Maybe = ""
    key: Maybe = ""


class Signers(Protocol):
    """Whose keys are known."""

    def check(self, words: bytes, signature: str, actor: str | None, at: int) -> Signature:
        """Whether a signature is that of the actor over these words, at the time of the decision (us)."""


class SignedDecision(msgspec.Struct, frozen=True):
    """A decision of a thread with what is known of its signature.

    Args:
        thread: of a subgraph's run, in whose log it is; "" for the thread's own.
    """

    n: int
    kind: str
    step: int
    request: str | None
    actor: str | None
    account: str
    at: Time
    found: Signature
    thread: str = ""
