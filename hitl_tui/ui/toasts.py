"""Notifications that are shown even if their time is over by the time their toast is made.

Textual starts a timer for the time that a toast has left.  If that is negative, as on a slow machine, it
never ends its loop and the app freezes.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from textual.notifications import Notification

_LEAST: Final = 0.05
"""Least number of seconds for which a toast is shown."""


class SafeNotification(Notification):
    """Notification for which a timer can be made at any time."""

    @classmethod
    def of(cls, given: Notification) -> SafeNotification:
        """Return the same notification as one of this class."""
        return cls(**{field.name: getattr(given, field.name) for field in fields(given)})

    @property
    def time_left(self) -> float:
        """Seconds for a timer, which must be positive."""
        return max(super().time_left, _LEAST)

    @property
    def has_expired(self) -> bool:
        """Whether its time is over."""
        return super().time_left <= 0
