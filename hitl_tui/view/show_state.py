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
    """Notes were wanted of a show that does not run."""

    title = "The presentation is not running"


class ShowState(msgspec.Struct, frozen=True):
    """What a terminal with the notes must know of a show that runs in another process.

    Args:
        script: the script's file.
        pid, process_started: the process that gives it, as `stores.lease` tells processes apart.
        store: the URL of the store that has its thread.
        stop: the stop that is shown, from 0; -1 before the first.
        going: it is on the way to the next stop.
        began: when the show was begun or begun anew, microseconds since the epoch.
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
        """Whether the process that gives the show still does."""
        started = process_started(self.pid)
        if started is None:  # the system does not tell
            with suppress(OSError):
                os.kill(self.pid, 0)
                return True
            return False
        return started == self.process_started


class ShowFile:
    """The file by which a show tells its state: one for each script.

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
        """The state of a show that runs; None where none does."""
        return _read(self.path)

    def end(self) -> None:
        """Take the state away: the presentation is over."""
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
    """What tells this process from another one of its number."""
    return process_started(os.getpid()) or 0
