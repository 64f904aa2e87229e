"""Where a files store keeps what, and whether a directory is one (SPEC 8, 10).

```
DIR/hitl-tui-store.json             marks the directory as ours, with the version of its format
DIR/placing.json, lock              threads that are just being put in their places, see files_placing
DIR/graphs/DIGEST.json              a graph as data, named after the SHA-256 of the file
DIR/threads/.new-…, .new-….lock     a thread that is just being made, see files_making
DIR/threads/NAME/info.json          what is fixed about a thread, its id among it
DIR/threads/NAME/cursor.json        where it stands: what it does not reach is not part of the log
DIR/threads/NAME/steps/00000004.json       a step's checkpoint and records
DIR/threads/NAME/decisions/00000002.json   an entry of the decision ledger
DIR/threads/NAME/snapshots/00000004.part   see snapshots
DIR/threads/NAME/lease.json, lock   who may write
DIR/threads/NAME/pause.json         what is asked of whoever does
```

NAME is a readable part of the thread's id and a hash of it, in small letters, digits and `-` alone: no
id can leave the directory, and ids that differ by case alone stay apart on any file system.
"""

from __future__ import annotations

import os
import re
import stat
from hashlib import sha256
from pathlib import Path

import msgspec

from hitl_tui.errors import StoreUnusable
from hitl_tui.stores.files_io import (
    damaged,
    locked,
    make_directories,
    read_file,
    replace_file,
    sync_directory,
    translate,
)

VERSION = 1
"""The version of the format; a change that an older hitl-tui can't read counts it up."""

MARKER = "hitl-tui-store.json"
LOCK = "lock"
PARTS = ("steps", "decisions", "snapshots")

_KIND = "hitl-tui files store"

_UNSAFE = re.compile(r"[^a-z0-9]+")


class _Marker(msgspec.Struct):
    kind: str
    version: int


def open_directory(root: Path) -> None:
    """Make sure that a directory is a store of ours; one that is missing or empty is made one.

    Raises:
        StoreUnusable: not ours, made by a newer hitl-tui, read-only or full.
        LogCorrupt: ours, but damaged.
    """
    try:
        make_directories(root)
        if not _is_marked(root):
            _claim(root)
        for part in ("graphs", "threads"):
            make_directories(root / part)
    except (OSError, ValueError) as error:
        raise translate(error, root) from error
    for part in ("graphs", "threads"):
        check_directory(root / part)
    if not os.access(root / "threads", os.W_OK | os.X_OK):
        raise StoreUnusable(f"the store {root} is read-only", "make the directory writable")


def directory_name(thread_id: str) -> str:
    """The name of a thread's directory."""
    slug = _UNSAFE.sub("-", thread_id.lower())[:40].strip("-") or "thread"
    return f"{slug}-{sha256(thread_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def number_file(directory: Path, part: str, number: int) -> Path:
    """The file of a step, a decision or a snapshot."""
    return directory / part / f"{number:08d}.{'part' if part == 'snapshots' else 'json'}"


def graph_file(root: Path, digest: str) -> Path:
    """The file of a graph."""
    return root / "graphs" / f"{digest}.json"


def check_directory(path: Path) -> None:
    """Refuse anything but a directory of its own, such as a link that leads elsewhere."""
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise translate(error, path) from error
    if stat.S_ISLNK(mode):
        raise StoreUnusable(
            f"{path} is a symbolic link, which a store never holds", "put the directory itself in its place"
        )
    if not stat.S_ISDIR(mode):
        raise StoreUnusable(f"{path} is not a directory", "name another directory, or take it away")


def _is_marked(root: Path) -> bool:
    data = read_file(root / MARKER)
    if data is None:
        return False
    try:
        marker = msgspec.json.decode(data, type=_Marker)
    except (msgspec.MsgspecError, ValueError) as error:
        mend = f'it should read {{"kind": "{_KIND}", "version": {VERSION}}}'
        raise damaged(root / MARKER, f"{error}; {mend}") from error
    if marker.kind != _KIND:
        raise StoreUnusable(f"{root} is no files store but a {marker.kind!r}", "name another directory")
    if marker.version > VERSION:
        raise StoreUnusable(
            f"the store {root} was made by a newer hitl-tui "
            f"(version {marker.version}, this one knows {VERSION})",
            "upgrade hitl-tui, or name another directory",
        )
    return True


def _claim(root: Path) -> None:
    _refuse_foreign(root)
    with locked(root / LOCK):
        # Another process may have been faster.
        if _is_marked(root):
            return
        _refuse_foreign(root)
        root.chmod(0o700)
        replace_file(root / MARKER, msgspec.json.encode(_Marker(_KIND, VERSION)) + b"\n")
        sync_directory(root)


def _refuse_foreign(root: Path) -> None:
    foreign = sorted(set(os.listdir(root)) - {LOCK, f".{MARKER}.tmp"})
    if foreign and not (root / MARKER).exists():
        raise StoreUnusable(
            f"{root} is not a store: it holds {foreign[0]!r} and no {MARKER}",
            "name an empty directory or one that does not exist yet",
        )
