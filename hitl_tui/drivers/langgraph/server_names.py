"""Names of threads on LangGraph servers."""

from __future__ import annotations

import uuid
from typing import Final

SERVER: Final = "server"
"""What a thread's `ThreadInfo.source` has a server's URL under."""
_NAMES: Final = uuid.UUID("6f1d3c0a-5b0e-5d43-9a55-3d1a6a4f2b7e")
"""The namespace of the UUIDs that are made from names of threads."""


def new_server_thread() -> str:
    """Return a name for a new thread: servers take only UUIDs."""
    return str(uuid.uuid4())


def server_thread(name: str) -> str:
    """Return the UUID for a thread's name, always the same one: servers take only UUIDs."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return str(uuid.uuid5(_NAMES, name))
