"""Limits of a run: which can be counted against, and whether one is near or reached (SPEC 5)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from math import inf
from typing import Literal

import msgspec

from hitl_tui.engine.log.events import LimitNear
from hitl_tui.engine.log.records import Cursor, Limits
from hitl_tui.errors import GraphInvalid, UsageError

ALERTS = (50, 75, 90, 100)
"""Percentages of a limit that are told when they are reached."""

UNLIMITED = Limits(max_iterations=None)

OnLimit = Literal["stop", "pause"]
"""What becomes of a run that reaches one: it ends, or waits for whoever may raise it."""


def check_limits(limits: Limits) -> Limits:
    """Limits that can be counted against; raises `UsageError`."""
    for name, value in msgspec.structs.asdict(limits).items():
        whole = name in ("max_iterations", "max_tokens")
        kinds = int if whole else (int, float)
        fits = isinstance(value, kinds) and not isinstance(value, bool) and 0 <= value < inf
        if value is not None and not fits:
            kind = "a whole number" if whole else "a number"
            raise UsageError(f"{name}={value!r} is no limit", f"give {kind} of at least 0, or None for none")
    return limits


def extended(limits: Limits, changes: Mapping[str, float | None]) -> Limits:
    """Limits with some of them changed, by name; raises `UsageError`."""
    known = msgspec.structs.asdict(limits)
    for name in changes:
        if name not in known:
            raise UsageError(f"there is no limit {name!r}", f"limits: {', '.join(known)}")
    return check_limits(Limits(**{**known, **changes}))


def declared_limits(limits: Limits | None) -> Limits:
    """The limits of a graph as given, 25 iterations by default; raises `GraphInvalid`."""
    try:
        return check_limits(limits or Limits())
    except UsageError as error:
        raise GraphInvalid(error.message, error.hint) from None


def limit_reached(cursor: Cursor, limits: Limits) -> str:
    """Which of its limits a thread has used up, in words; "" for none."""
    if limits.max_iterations is not None and cursor.iteration >= limits.max_iterations:
        return f"{limits.max_iterations} iterations"
    if limits.max_tokens is not None and cursor.tokens_in + cursor.tokens_out >= limits.max_tokens:
        return f"{limits.max_tokens} tokens"
    if limits.max_cost_usd is not None and cursor.cost >= limits.max_cost_usd:
        return f"${limits.max_cost_usd:g}"
    if limits.max_seconds is not None and cursor.active >= limits.max_seconds * 1e6:
        return f"{limits.max_seconds:g} s of active time"
    return ""


def limits_near(before: Cursor, now: Cursor, limits: Limits) -> Iterator[LimitNear]:
    """Those `limits` of which a commit has used up another of `ALERTS`; the highest, where it was several.

    Iterations of a run that has reached its end are no matter any more: it may well be as long as it may be.
    """
    iterations = None if now.status == "completed" else limits.max_iterations
    for limit, allowed, was, used in (
        ("max_iterations", iterations, before.iteration, now.iteration),
        (
            "max_tokens",
            limits.max_tokens,
            before.tokens_in + before.tokens_out,
            now.tokens_in + now.tokens_out,
        ),
        ("max_cost_usd", limits.max_cost_usd, before.cost, now.cost),
        ("max_seconds", limits.max_seconds, before.active / 1e6, now.active / 1e6),
    ):
        if allowed and used > was:
            reached = bisect_right(ALERTS, 100 * used / allowed)
            if reached > bisect_right(ALERTS, 100 * was / allowed):
                yield LimitNear(limit, ALERTS[reached - 1], used, allowed)
