"""What was seen of committed steps: nobody asks a driver twice for what is committed for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from hitl_tui.engine.log.events import AppliedUpdate
from hitl_tui.view.timeline import Place

K = TypeVar("K")
V = TypeVar("V")
_UPDATES_KEPT: Final = 16
_NAMES_KEPT: Final = 4_000
_ROOM: Final = 32_000_000
"""About how many bytes of values each of the memories holds."""
_LOOKED_AT: Final = 16
"""Elements of a list or an object that stand for all of them."""
_ANY: Final = 64


class Recent(Generic[K, V]):
    """The newest entries: at most so many, and beyond the newest no more than there is room for."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[K, tuple[V, int]] = {}
        self._weight = 0

    def find(self, key: K) -> V | None:
        """An entry, None where it is not kept."""
        found = self._kept.get(key)
        return None if found is None else found[0]

    def keep(self, key: K, value: V, weight: int = 0) -> None:
        """Remember an entry, and forget the oldest ones where there are too many."""
        self._weight += weight - self._kept.pop(key, (value, 0))[1]
        while self._kept and (len(self._kept) >= self._most or self._weight > _ROOM):
            self._weight -= self._kept.pop(next(iter(self._kept)))[1]
        self._kept[key] = value, weight


class RecentSteps:
    """The updates of a few steps with their values, and of many more the names of the channels alone."""

    def __init__(self) -> None:
        self._updates: Recent[Place, Sequence[AppliedUpdate]] = Recent(_UPDATES_KEPT)
        self._changed: Recent[Place, frozenset[str]] = Recent(_NAMES_KEPT)

    def note(self, place: Place, updates: Sequence[AppliedUpdate]) -> None:
        """A step was seen."""
        self._updates.keep(
            place, updates, sum(weight([one.before, one.update, one.after]) for one in updates)
        )
        self.note_changed(place, frozenset(update.channel for update in updates if update.changed))

    def note_changed(self, place: Place, channels: frozenset[str]) -> None:
        """It was told which channels a step changed."""
        self._changed.keep(place, channels)

    def knows(self, place: Place) -> bool:
        """Whether it is known which channels a step changed."""
        return self._changed.find(place) is not None

    def updates(self, place: Place) -> Sequence[AppliedUpdate] | None:
        """The updates of a step in their order, None where they are not kept."""
        return self._updates.find(place)

    def left_alone(self, place: Place, channel: str) -> bool:
        """True if it is known that a step did not change a channel."""
        names = self._changed.find(place)
        return names is not None and channel not in names


def weight(value: Any) -> int:
    """About how many bytes a value of a channel takes; of what is long only the beginning is looked at."""
    if isinstance(value, str):
        return _ANY + len(value)
    if not isinstance(value, list | tuple | Mapping) or not value:
        return _ANY
    parts = list(islice(value.values() if isinstance(value, Mapping) else value, _LOOKED_AT))
    return _ANY + sum(map(weight, parts)) * len(value) // len(parts)
