"""The newest results of slow work, found again by what they were made of."""

from __future__ import annotations

from typing import Any, Final

_KEPT: Final = 3


class Memo:
    """Values of channels never change, so that what was made of the very same ones can be shown again."""

    def __init__(self) -> None:
        self._made: list[tuple[str, tuple[object, ...], Any]] = []

    def find(self, what: str, of: tuple[object, ...]) -> Any:
        """What was made of these very objects, None where that is not kept."""
        for name, values, made in self._made:
            if name == what and len(values) == len(of) and all(map(_same, values, of)):
                return made
        return None

    def keep(self, what: str, of: tuple[object, ...], made: Any) -> None:
        """Remember it, and forget the oldest."""
        self._made = [(what, of, made), *self._made[: _KEPT - 1]]


def _same(one: object, other: object) -> bool:
    return one is other
