"""Who wrote what: the last writer of each line, key or item of a channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hitl_tui.engine.records import Checkpoint


@dataclass(frozen=True, slots=True)
class BlameLine:
    """A line (of a text), key (of an object) or item (of a list) and who wrote it last; sanitised."""

    step: int
    who: str
    text: str


def blame(versions: Sequence[tuple[Checkpoint, Any]]) -> tuple[BlameLine, ...]:
    """Last writers in the newest version, from a channel's versions, oldest first."""
    raise NotImplementedError
