"""Keeps the filter and order of the queue, and when each person last looked at it, between sessions."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from hitl_tui.view.queue import QueueView

log = logging.getLogger(__name__)


def load_view(file: Path) -> QueueView:
    """Return the last filter and order of the queue; the defaults if they can't be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=QueueView)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return QueueView()


def save_view(file: Path, view: QueueView) -> None:
    """Save the filter and order of the queue."""
    _save(file, msgspec.json.encode(view))


def last_look(file: Path, person: str) -> int | None:
    """Return when a person last left the queue, None if they never looked at it."""
    return _looks(file).get(person)


def save_look(file: Path, person: str, now: int) -> None:
    """Save that a person has looked at the queue: what is asked from now on is new to them."""
    _save(file, msgspec.json.encode({**_looks(file), person: now}))


def _looks(file: Path) -> dict[str, int]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, int])
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return {}


def _save(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        log.warning("the state of the queue is not kept: %s", error)
