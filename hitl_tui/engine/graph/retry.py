"""How often a node is tried again, and how long to wait in between (SPEC 5)."""

from __future__ import annotations

import math
import random

import msgspec

from hitl_tui.errors import GraphInvalid, ReadDenied, UndeclaredChannel, WriteDenied

NEVER_RETRIED = (ReadDenied, UndeclaredChannel, WriteDenied)


class RetryPolicy(msgspec.Struct, frozen=True):
    """Try a failing node again.

    Attributes:
        max_attempts: attempts in all, the first included.
        wait: seconds before the second attempt.
        backoff: factor by which the wait grows from attempt to attempt.
        jitter: share of the wait that is random, 0 to 1.
    """

    max_attempts: int = 3
    wait: float = 1.0
    backoff: float = 2.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        whole = isinstance(self.max_attempts, int) and self.max_attempts >= 1
        # Written so that nan is refused.
        if not (
            whole and 0 <= self.wait < math.inf and 1 <= self.backoff < math.inf and 0 <= self.jitter <= 1
        ):
            raise GraphInvalid(
                f"{self}: a retry needs a whole number of max_attempts >= 1, wait >= 0, backoff >= 1 "
                "and jitter from 0 to 1"
            )

    def wait_after(self, attempt: int) -> float:
        """Seconds to wait after failed attempt number `attempt`."""
        seconds = self.wait * self.backoff ** (attempt - 1)
        return seconds * (1 + self.jitter * random.uniform(-1, 1))
