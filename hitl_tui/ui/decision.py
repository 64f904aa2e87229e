"""What a decision is before it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hitl_tui.engine.log.requests import Request


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer with its label for people, bound to what was on screen."""

    request: Request
    label: str
    answer: Any
    note: str | None
    seen: bytes
