"""How often a node is retried, and how long to wait between attempts.

Specified in docs/spec/graphs.md.
"""

from __future__ import annotations

import math
import random

from hitl_tui.declared import Declaration
from hitl_tui.errors import (
    CallOutcomeUnknown,
    GraphInvalid,
    ReadDenied,
    StaleWriter,
    StoreUnusable,
    ThreadBusy,
    UndeclaredChannel,
    WriteDenied,
)

NEVER_RETRIED = (
    CallOutcomeUnknown,
    ReadDenied,
    StaleWriter,
    StoreUnusable,
    ThreadBusy,
    UndeclaredChannel,
    WriteDenied,
)


class RetryPolicy(Declaration, frozen=True):
    """When to run a failing node again.

    Attributes:
        max_attempts: number of attempts, the first included.
        wait: seconds before the second attempt.
        backoff: factor by which the wait grows from attempt to attempt.
        jitter: share of the wait that is random, 0 to 1.
        overlap: whether an attempt begins although code of an earlier one, which timed out, still runs.
    """

    max_attempts: int = 3
    wait: float = 1.0
    backoff: float = 2.0
    jitter: float = 0.1
    overlap: bool = False

    def check(self) -> None:
        """Refuse numbers that make no sense for retries."""
        whole = type(self.max_attempts) is int and self.max_attempts >= 1
        # The comparison is written so that nan is refused.
        if not (
            whole and 0 <= self.wait < math.inf and 1 <= self.backoff < math.inf and 0 <= self.jitter <= 1
        ):
            raise GraphInvalid(
                f"{self}: a retry needs a whole number of max_attempts >= 1, wait >= 0, backoff >= 1 "
                "and jitter from 0 to 1"
            )
        if type(self.overlap) is not bool:
            raise GraphInvalid(f"{self}: overlap is True or False")

    def wait_after(self, attempt: int) -> float:
        """Return the seconds to wait after failed attempt number `attempt`."""
        seconds = self.wait * self.backoff ** (attempt - 1)
        return seconds * (1 + self.jitter * random.uniform(-1, 1))
