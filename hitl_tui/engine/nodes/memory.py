"""What an attempt got from outside, kept while it waits for a human (SPEC 11).

An interrupt restarts its node from the top.  What the node has asked of models, run as tools or been
answered until then is expensive or has side effects, so it is served again instead of done again, also in
another process.  Each thing is kept under a key made of all that was asked: a node that asks something
else finds nothing and asks anew.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from hitl_tui.engine.log.outcomes import Exchange

MISSING: Final = object()


class Memory:
    """What was kept of earlier tries of an attempt, and what this one adds.  Thread-safe."""

    def __init__(self, kept: Sequence[Exchange] = ()) -> None:
        self._lock = threading.Lock()
        self._values = {exchange.key: exchange.value for exchange in kept}
        self._asked: dict[str, int] = {}

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All of it, oldest first, as it is stored with a request."""
        with self._lock:
            return tuple(Exchange(key, value) for key, value in self._values.items())

    def slot(self, key: str) -> str:
        """The key for the next time the same thing is asked in this try."""
        with self._lock:
            number = self._asked.get(key, 0) + 1
            self._asked[key] = number
            return f"{key}.{number}"

    def recall(self, key: str) -> Any:
        """What was got under a key, or `MISSING`."""
        return self._values.get(key, MISSING)

    def keep(self, key: str, value: Any) -> None:
        """Keep JSON under a key."""
        with self._lock:
            self._values[key] = value
