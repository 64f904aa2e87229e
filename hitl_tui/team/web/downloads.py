"""Keeps files that sessions offer to people until their browsers fetch them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from hitl_tui.team.web.page_session import Download

LASTS: Final = 60.0
"""Seconds for which a file can be fetched."""
MOST: Final = 8
"""Most files that wait for one person; a new one replaces the oldest."""
MOST_BYTES: Final = 64 << 20
"""Most bytes of files that wait for one person, unless the newest alone is larger."""


class _Waiting(NamedTuple):
    person: str
    until: float
    download: Download


class Downloads:
    """Files to be fetched, each once and by one person, with limits for each person.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}

    def offer(self, person: str, download: Download) -> str:
        """Keep a file for a person and return the key to fetch it with."""
        self._drop_expired()
        key = secrets.token_urlsafe(16)
        self._waiting[key] = _Waiting(person, self._clock() + LASTS, download)
        files, size = 0, 0
        for other, waiting in reversed(list(self._waiting.items())):
            if waiting.person != person:
                continue
            files, size = files + 1, size + len(waiting.download.data)
            if other != key and (files > MOST or size > MOST_BYTES):
                del self._waiting[other]
        return key

    def take(self, person: str, key: str) -> Download | None:
        """Return a file and forget it; None if this person has no file with that key, or it has expired."""
        self._drop_expired()
        waiting = self._waiting.get(key)
        if waiting is None or waiting.person != person:
            return None
        del self._waiting[key]
        return waiting.download

    def _drop_expired(self) -> None:
        now = self._clock()
        self._waiting = {key: waiting for key, waiting in self._waiting.items() if waiting.until > now}
