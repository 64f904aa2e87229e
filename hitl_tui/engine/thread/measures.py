"""What is counted of an answer: reasons that were picked from a list, and scores for the rubric of a gate.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from hitl_tui.engine.log.requests import Request
from hitl_tui.errors import AnswerRefused

LOWEST: Final = 1
HIGHEST: Final = 5
"""Scores are whole numbers from `LOWEST` to `HIGHEST`."""


class Reason(NamedTuple):
    """A reason to pick from a list: `id` is counted, `text` is what people read."""

    id: str
    text: str


def check_scores(request: Request, scores: Mapping[str, int]) -> None:
    """Refuse scores that the rubric of a request does not ask for; raises `AnswerRefused`."""
    known = ", ".join(request.rubric) or "none"
    for name, score in scores.items():
        if name not in request.rubric:
            raise AnswerRefused(
                f"{request.title!r} has no criterion {name!r} to score", f"its criteria: {known}"
            )
        if not LOWEST <= score <= HIGHEST:
            raise AnswerRefused(
                f"the score {score} for {name!r} is not on the scale", f"give {LOWEST} to {HIGHEST}"
            )


def measured_facts(reasons: Sequence[str], scores: Mapping[str, int]) -> dict[str, Any]:
    """Return reasons and scores as the ledger keeps them with an answer."""
    facts: dict[str, Any] = {"reasons": list(reasons)} if reasons else {}
    return {**facts, "scores": dict(scores)} if scores else facts


def reasons_of(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the reasons in the data of a ledger entry; () if there are none or they are malformed."""
    kept = data.get("reasons")
    return tuple(reason for reason in kept if isinstance(reason, str)) if isinstance(kept, list) else ()


def scores_of(data: Mapping[str, Any]) -> dict[str, int]:
    """Return the scores in the data of a ledger entry; {} if there are none or they are malformed."""
    kept = data.get("scores")
    if not isinstance(kept, Mapping):
        return {}
    return {name: score for name, score in kept.items() if isinstance(score, int)}
