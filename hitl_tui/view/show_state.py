"""The state of a running presentation for other terminals: a small file per script in the user's data."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from hitl_tui.errors import UsageError
from hitl_tui.given_files import real_path
from hitl_tui.stores.lease import process_started


class NoShow(UsageError):
    """Raised when notes are wanted for a presentation that isn't running."""

    title = "The presentation is not running"


class ShowState(msgspec.Struct, frozen=True):
    """What a terminal with the speaker's notes needs to know of a presentation in another process.

    Args:
        script: the script's file.
        pid, process_started: the process that runs it, identified as in `stores.lease`.
        store: the URL of the store with its thread.
        stop: the index of the shown stop; -1 before the first.
        going: whether it is moving to the next stop.
        began: when the presentation started or restarted, microseconds since the epoch.
    """

    script: str
    pid: int
    process_started: int
    store: str
    thread: str
    stop: int
    going: bool
    held: bool
    pace: float
    began: int

    @property
    def lives(self) -> bool:
        """Whether the process that runs the presentation is alive."""
        started = process_started(self.pid)
        if started is None:  # the system does not report it
            with suppress(OSError):
                os.kill(self.pid, 0)
                return True
            return False
        return started == self.process_started


class ShowFile:
    """The file in which a presentation publishes its state, one per script.

    `folder` is that of the user's data.

    Args:
        folder: of the user's data.
    """

    def __init__(self, folder: Path, script: Path) -> None:
        name = sha256(os.fsencode(real_path(script))).hexdigest()[:16]
        self.path = folder / f"{name}.json"

    def write(self, state: ShowState) -> None:
        """Write a state atomically; a full disk does not end the presentation."""
        new = self.path.with_suffix(f".{os.getpid()}.new")
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(state))
            new.replace(self.path)

    def read(self) -> ShowState | None:
        """Return the state of a running presentation; None if it isn't running."""
        return _read(self.path)

    def end(self) -> None:
        """Remove the state: the presentation has ended."""
        with suppress(OSError):
            self.path.unlink()


def running_shows(folder: Path) -> list[ShowState]:
    """Return the running presentations, the last started one first."""
    states = [state for path in folder.glob("*.json") if (state := _read(path))]
    return sorted(states, key=lambda state: -state.began)


def _read(path: Path) -> ShowState | None:
    try:
        state = msgspec.json.decode(path.read_bytes(), type=ShowState)
    except (OSError, msgspec.MsgspecError):
        return None
    return state if state.lives else None


def own_process_started() -> int:
    """Return when this process started, which distinguishes it from another one with the same number."""
    return process_started(os.getpid()) or 0
