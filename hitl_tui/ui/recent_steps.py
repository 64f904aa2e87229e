"""What steps changed, as far as it was seen: nobody asks a driver twice for what is committed for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from hitl_tui.engine.events import AppliedUpdate
from hitl_tui.view.timeline import Place

K = TypeVar("K")
V = TypeVar("V")
_UPDATES_KEPT: Final = 16
_NAMES_KEPT: Final = 4_000


class RecentSteps:
    """The updates of a few steps with their values, and of many more the names of the channels alone."""

    def __init__(self) -> None:
        self._updates: dict[Place, Sequence[AppliedUpdate]] = {}
        self._changed: dict[Place, frozenset[str]] = {}

    def note(self, place: Place, updates: Sequence[AppliedUpdate]) -> None:
        """A step was seen."""
        _keep(self._updates, place, updates, _UPDATES_KEPT)
        self.note_changed(place, frozenset(update.channel for update in updates if update.changed))

    def note_changed(self, place: Place, channels: frozenset[str]) -> None:
        """It was told which channels a step changed."""
        _keep(self._changed, place, channels, _NAMES_KEPT)

    def knows(self, place: Place) -> bool:
        """Whether it is known which channels a step changed."""
        return place in self._changed

    def updates(self, place: Place) -> Sequence[AppliedUpdate] | None:
        """The updates of a step in their order, None where they are not kept."""
        return self._updates.get(place)

    def left_alone(self, place: Place, channel: str) -> bool:
        """True if it is known that a step did not change a channel."""
        names = self._changed.get(place)
        return names is not None and channel not in names


def _keep(kept: dict[K, V], key: K, value: V, most: int) -> None:
    kept.pop(key, None)
    if len(kept) >= most:
        del kept[next(iter(kept))]
    kept[key] = value
