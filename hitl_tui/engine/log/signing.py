"""Interfaces to sign decisions and to check their signatures.

The engine knows nothing of keys and the programs that use them: a thread is opened with a signer.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Protocol

import msgspec

from hitl_tui.engine.log.records import NOTE
from hitl_tui.engine.log.units import Inline, Maybe, Time, about

DECISIONS: Final = frozenset(
    (
        "answer",
        "vote",
        "read_again",
        "handed_over",
        "allowed",
        "allowance_revoked",
        "claim_taken",
        "update_state",
        "declassify",
        "reveal",
        "export",
        NOTE,
        "extend",
        "cancel",
        "fork",
        "agent",
        "rollback",
    )
)
"""Kinds of ledger entries of people's decisions and notes; they are signed if the person gave a name."""

DECIDING: Final = tuple(sorted(DECISIONS - {NOTE}))
"""The same without notes, which decide nothing."""

Verdict = Literal["good", "unsigned", "unknown", "other", "wrong"]


class Signer(Protocol):
    """A person's key."""

    @property
    def key(self) -> str:
        """The name of the key, such as the path of its file."""

    def sign(self, words: bytes) -> str:
        """Return the signature of a decision; raises `SigningFailed`."""


class Signature(msgspec.Struct, frozen=True):
    """Result of checking the signature of one decision."""

    verdict: Annotated[
        Verdict,
        about(
            "Whether it is signed by who decided: `good`; `unsigned`; by a key that is nobody's: `unknown`; "
            "by somebody else: `other`; not of this decision: `wrong`.",
            name="signature",
        ),
    ]
    signer: Annotated[Maybe, about("The signer's name in the file of signers.")] = ""
    key: Annotated[Maybe, about("Fingerprint of the key.")] = ""


class Signers(Protocol):
    """The known keys of people."""

    def check(self, words: bytes, signature: str, actor: str | None, at: int) -> Signature:
        """Check a signature by the actor over these words, at the time of the decision (microseconds)."""


class SignedDecision(msgspec.Struct, frozen=True):
    """A decision of a thread and the result of checking its signature."""

    n: Annotated[int, about("The entry's number, from 1.")]
    kind: Annotated[str, about("The kind: `answer`, `vote`, `update_state`, `cancel`...", name="decision")]
    step: Annotated[int, about("The step it is about.")]
    request: Annotated[str | None, about("The request.")]
    actor: Annotated[str | None, about("The person it names.")]
    account: Annotated[str, about("The account and host that wrote it, as ann@box.")]
    at: Annotated[Time, about("When.")]
    found: Inline[Signature]
    thread: Annotated[
        str, about("The subgraph's thread that has the decision; empty for the thread itself.")
    ] = ""
