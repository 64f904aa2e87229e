"""Hears of attempts that fail before LangGraph tries a node again by its `RetryPolicy`.

LangGraph reports nothing of them: it asks the policy whether an error is worth another attempt, and waits.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from hitl_tui.drivers.langgraph.replaced_functions import RETRY_ON, replace_function
from hitl_tui.errors import described

RETRY: Final = "retry"
"""The mode of a part that tells of a failed attempt, beside the modes of LangGraph."""
_TASK: Final = re.compile(r"During task with name '(.*)' and id '([^']*)'\Z", re.DOTALL)
"""The note that LangGraph adds to an error of a task."""


class FailedAttempt(NamedTuple):
    """An attempt of a task that failed and is followed by another one.

    Attributes:
        task: the id of the task.
        name: the node.
        attempt: its number, from 1.
        most: how many attempts the policy allows.
        wait: seconds until the next one, without the part that is random.
        error: what went wrong, in words.
    """

    task: str
    name: str
    attempt: int
    most: int
    wait: float
    error: str


class _Retries:
    """Counts the failed attempts of one run by their tasks."""

    def __init__(self, hear: Callable[[FailedAttempt], None]) -> None:
        self._hear = hear
        self._failed: dict[str, int] = {}
        self._lock = threading.Lock()

    def failed(self, policy: Any, error: BaseException) -> None:
        """Tell of an attempt that failed with an error which a policy retries."""
        notes = (_TASK.match(str(note)) for note in reversed(getattr(error, "__notes__", ())))
        task = next(filter(None, notes), None)
        if task is None:
            return
        name, identity = task.groups()
        with self._lock:
            attempt = self._failed[identity] = self._failed.get(identity, 0) + 1
        if attempt < policy.max_attempts:
            grown = policy.initial_interval * policy.backoff_factor ** (attempt - 1)
            wait = float(min(policy.max_interval, grown))
            self._hear(FailedAttempt(identity, name, attempt, policy.max_attempts, wait, described(error)))


_RETRIES: ContextVar[_Retries | None] = ContextVar("who hears of failed attempts", default=None)


@contextmanager
def retries_heard(hear: Callable[[FailedAttempt], None]) -> Iterator[None]:
    """Let `hear` get each failed attempt of the run that begins in this context."""
    replace_function(RETRY_ON, _heard)
    token = _RETRIES.set(_Retries(hear))
    try:
        yield
    finally:
        _RETRIES.reset(token)


def _heard(should_retry: Any) -> Any:
    def should_retry_on(policy: Any, error: Any) -> Any:
        again = should_retry(policy, error)
        retries = _RETRIES.get()
        if again and retries is not None:
            retries.failed(policy, error)
        return again

    return should_retry_on
