"""What signs decisions, and what checks their signatures, as the engine asks for it.

Keys and the programs that use them are no business of the engine: whoever opens a thread hands in a signer.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Protocol

import msgspec

from hitl_tui.engine.log.units import Inline, Maybe, Time, about

DECISIONS: Final = frozenset(
    (
        "answer",
        "vote",
        "handed_over",
        "allowed",
        "allowance_revoked",
        "claim_taken",
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
    """What is known of the signature of one decision."""

    verdict: Annotated[
        Verdict,
        about(
            "Whether it is signed by who decided: `good`; `unsigned`; by a key that is nobody's: `unknown`; "
            "by somebody else: `other`; not of this decision: `wrong`.",
            name="signature",
        ),
    ]
    signer: Annotated[Maybe, about("Who has signed, as the file of signers has it.")] = ""
    key: Annotated[Maybe, about("Fingerprint of the key.")] = ""


class Signers(Protocol):
    """Whose keys are known."""

    def check(self, words: bytes, signature: str, actor: str | None, at: int) -> Signature:
        """Whether a signature is that of the actor over these words, at the time of the decision (us)."""


class SignedDecision(msgspec.Struct, frozen=True):
    """A decision of a thread with what is known of its signature."""

    n: Annotated[int, about("Its number, from 1.")]
    kind: Annotated[str, about("As `answer`, `vote`, `update_state`, `cancel`.", name="decision")]
    step: Annotated[int, about("The step it is about.")]
    request: Annotated[str | None, about("The request.")]
    actor: Annotated[str | None, about("Who it says decided.")]
    account: Annotated[str, about("The account and host that wrote it, as ann@box.")]
    at: Annotated[Time, about("When.")]
    found: Inline[Signature]
    thread: Annotated[
        str, about("The thread of a subgraph's run whose decision it is; empty for the thread's own.")
    ] = ""
