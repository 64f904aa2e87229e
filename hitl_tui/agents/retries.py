"""When a failed model call is tried again, and after how long."""

from __future__ import annotations

import random

from hitl_tui.agents.backend import CallFailed

DEFAULT_RETRIES = 2
LONGEST_WAIT = 60.0
"""Seconds; a provider that asks for a longer pause is not waited for inside a call."""

_FIRST_WAIT = 0.5


def wait_before_retry(failure: CallFailed, attempt: int, max_attempts: int) -> float | None:
    """Seconds to wait before the next attempt, or None when there should be none.

    Args:
        failure: how attempt number `attempt` (from 1) failed.
        max_attempts: how many attempts there may be in all.

    A provider's Retry-After is kept to; otherwise the wait doubles, with jitter so that branches
    of a map which failed together don't return together.
    """
    if attempt >= max_attempts or not failure.retryable:
        return None
    if failure.retry_after is not None:
        return failure.retry_after if failure.retry_after <= LONGEST_WAIT else None
    return min(_FIRST_WAIT * 2.0 ** (attempt - 1) * random.uniform(0.75, 1.25), LONGEST_WAIT)
