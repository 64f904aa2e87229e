"""Limits of a run: what they count, and whether one is near or reached, also inside a node."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from hitl_tui.engine.log.events import LimitNear
from hitl_tui.engine.log.outcomes import BranchState, ModelUse
from hitl_tui.engine.log.records import Cursor, Limits
from hitl_tui.errors import UsageError

ALERTS = (50, 75, 90, 100)
"""Percentages of a limit that are reported when they are reached."""

UNLIMITED = Limits(max_iterations=None)

OnLimit = Literal["stop", "pause"]
"""What happens to a run that reaches a limit: it ends, or it waits until somebody raises the limit."""


def with_limits(limits: Limits, changes: Mapping[str, Any]) -> Limits:
    """Return limits with some of them changed, by name; raises `UsageError`."""
    known = msgspec.structs.asdict(limits)
    for name in changes:
        if name not in known:
            raise UsageError(f"there is no limit {name!r}", f"limits: {', '.join(known)}")
    return Limits(**{**known, **changes})


def limit_reached(cursor: Cursor, limits: Limits) -> str:
    """Describe which of its limits a thread has used up; "" for none."""
    if limits.max_iterations is not None and cursor.iteration >= limits.max_iterations:
        return f"{limits.max_iterations} iterations"
    if limits.max_tokens is limits.max_cost_usd is limits.max_seconds is None:
        return ""
    return _used_up(
        limits, cursor.tokens_in + cursor.tokens_out, cursor.cost, cursor.active, priced=cursor.cost_known
    )


def _used_up(limits: Limits, tokens: int, cost: float, active: int, *, priced: bool) -> str:
    if limits.max_tokens is not None and tokens >= limits.max_tokens:
        return f"{limits.max_tokens} tokens"
    if limits.max_cost_usd is not None:
        if cost >= limits.max_cost_usd:
            return f"${limits.max_cost_usd:g}"
        if not priced and limits.on_unknown_price == "stop":
            return f"${limits.max_cost_usd:g}, which can't be enforced: the price of a model call is unknown"
    if limits.max_seconds is not None and active >= limits.max_seconds * 1e6:
        return f"{limits.max_seconds:g} s of active time"
    return ""


class LimitStop(BaseException):
    """A limit was reached inside a node, so it stops before its next model call.

    Not an Exception: the node has not failed, must not catch it, and is not retried.

    Args:
        words: which limit.
        branches: what is kept of a map's branches.
    """

    def __init__(self, words: str, branches: tuple[BranchState, ...] = ()) -> None:
        super().__init__(words)
        self.words = words
        self.branches = branches


class Budget:
    """What the running node may still use of its thread's limits. Thread-safe.

    Args:
        cursor: has what the thread has used before.
        clock: the time in microseconds.
        report: called for a model call whose price is unknown.
    """

    def __init__(
        self, cursor: Cursor, limits: Limits, clock: Callable[[], int], report: Callable[[ModelUse], None]
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._report = report
        self._lock = threading.Lock()
        self._began = clock() - cursor.active
        self._tokens = cursor.tokens_in + cursor.tokens_out
        self._cost = cursor.cost
        self._priced = cursor.cost_known

    def count(self, use: ModelUse) -> None:
        """Count a model call that has ended."""
        with self._lock:
            self._tokens += use.tokens_in + use.tokens_out
            self._cost += use.cost or 0.0
            self._priced = self._priced and use.cost is not None
        if use.cost is None and self._limits.max_cost_usd is not None:
            self._report(use)

    def reached(self) -> str:
        """Describe which limit is used up by now; "" for none."""
        active = self._clock() - self._began
        with self._lock:
            return _used_up(self._limits, self._tokens, self._cost, active, priced=self._priced)


def is_bounded_inside(limits: Limits) -> bool:
    """Whether a limit can be reached inside a node."""
    return not (limits.max_tokens is limits.max_cost_usd is limits.max_seconds is None)


def limits_near(before: Cursor, now: Cursor, limits: Limits) -> Iterator[LimitNear]:
    """Return the limits of which a commit has passed one of `ALERTS`, with the highest that it passed.

    Iterations are ignored once a run has reached its end, since it may use all of them.
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
