"""Reports attempts that fail before LangGraph retries a node by its `RetryPolicy`.

LangGraph does not report them: it only asks the policy whether an error is worth another attempt, and waits.
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
"""The mode of a part that reports a failed attempt, besides the modes of LangGraph."""
_TASK: Final = re.compile(r"During task with name '(.*)' and id '([^']*)'\Z", re.DOTALL)
"""The note that LangGraph adds to an error of a task."""


class FailedAttempt(NamedTuple):
    """A failed attempt of a task that is followed by another attempt.

    Attributes:
        task: the id of the task.
        name: the node.
        attempt: its number, from 1.
        max_attempts: how many attempts the policy allows.
        wait: seconds until the next one, without the random part.
        error: the error as text.
    """

    task: str
    name: str
    attempt: int
    max_attempts: int
    wait: float
    error: str


class _Retries:
    """Counts the failed attempts of one run by task."""

    def __init__(self, on_failure: Callable[[FailedAttempt], None]) -> None:
        self._on_failure = on_failure
        self._failed: dict[str, int] = {}
        self._lock = threading.Lock()

    def report(self, policy: Any, error: BaseException) -> None:
        """Report an attempt that failed with an error that the policy retries."""
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
            self._on_failure(
                FailedAttempt(identity, name, attempt, policy.max_attempts, wait, described(error))
            )


_RETRIES: ContextVar[_Retries | None] = ContextVar("the counter of failed attempts", default=None)


@contextmanager
def reporting_retries(on_failure: Callable[[FailedAttempt], None]) -> Iterator[None]:
    """Call `on_failure` with each failed attempt of the run that starts in this context."""
    replace_function(RETRY_ON, _with_report)
    token = _RETRIES.set(_Retries(on_failure))
    try:
        yield
    finally:
        _RETRIES.reset(token)


def _with_report(should_retry: Any) -> Any:
    def should_retry_on(policy: Any, error: Any) -> Any:
        again = should_retry(policy, error)
        retries = _RETRIES.get()
        if again and retries is not None:
            retries.report(policy, error)
        return again

    return should_retry_on
