"""Saves the breakpoints of each graph in the user's data directory, for later sessions."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from hitl_tui.engine.thread.breakpoints import Breakpoint

_LARGEST = 1 << 20
_VERSION = 1


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    graph: str
    breakpoints: tuple[Breakpoint, ...]
    version: int = _VERSION


class KeptBreakpoints:
    """The file of one graph's breakpoints.

    A damaged file is set aside and reported; an unwritable one is reported once. Neither stops anybody's
    work.

    Args:
        folder: the directory of the files.
        graph: the graph's name and source: the same for all its threads.

    Attributes:
        problem: the problem to report, "" for none.
    """

    def __init__(self, folder: Path, graph: str) -> None:
        self._graph = graph
        digest = hashlib.sha256(graph.encode(errors="replace")).hexdigest()
        self._file = folder / f"{digest[:24]}.json"
        self.problem = ""

    def load(self) -> tuple[Breakpoint, ...]:
        """Return the saved breakpoints; () for none, or if they can't be read."""
        try:
            if self._file.stat().st_size > _LARGEST:
                raise ValueError(f"more than {_LARGEST} bytes")
            kept = msgspec.json.decode(self._file.read_bytes(), type=_Kept)
            if kept.version != _VERSION:
                raise ValueError(f"version {kept.version}")
            return kept.breakpoints
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
            aside = self._file.with_suffix(".damaged")
            try:
                os.replace(self._file, aside)
                where = f"it was set aside as {aside}"
            except OSError as kept_there:
                where = f"it can't be set aside: {kept_there.strerror or kept_there}"
            self.problem = f"the kept breakpoints can't be read ({error}); {where}"
            return ()

    def save(self, breakpoints: tuple[Breakpoint, ...]) -> None:
        """Replace the saved breakpoints, all or nothing."""
        data = msgspec.json.encode(_Kept(self._graph, breakpoints))
        temporary = ""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self._file.parent, suffix=".tmp")
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, self._file)
        except OSError as error:
            if temporary:
                with suppress(OSError):
                    os.unlink(temporary)
            self.problem = f"breakpoints can't be kept: {error.strerror or error}"


def kept_breakpoints(name: str, source: str) -> KeptBreakpoints:
    """Return the file for a graph's breakpoints.

    `source` is how its threads' records name it, "" for none.
    """
    from hitl_tui.config import breakpoints_folder

    return KeptBreakpoints(breakpoints_folder(), f"{name} {source}".strip())
