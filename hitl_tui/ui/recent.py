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
        names = frozenset(update.channel for update in updates if update.changed)
        _keep(self._updates, place, updates, _UPDATES_KEPT)
        _keep(self._changed, place, names, _NAMES_KEPT)

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
