"""Directories and small files of a files store: names, reading, replacing, locking."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from hitl_tui.errors import HitlError, LogCorrupt, StoreUnusable
from hitl_tui.stores.base import of_other_version

BUSY_SECONDS = 5.0
"""How long a writer waits for another process before the thread counts as locked."""

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NOT_BLOCKING = getattr(os, "O_NONBLOCK", 0)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM)


def translate(error: OSError | ValueError, path: Path) -> HitlError:
    """Turn an error of the operating system into one for users."""
    code = error.errno if isinstance(error, OSError) else None
    if code in _FULL:
        return StoreUnusable(f"no space is left for the store ({path})", "make room and try again")
    if code == errno.EROFS:
        return StoreUnusable(f"the store is read-only ({path})", "make its file system writable")
    if code in _DENIED:
        return StoreUnusable(
            f"{path} may not be read or written by this user",
            f"give it back to its owner, as in `chmod u+rwX {path}`",
        )
    if code == errno.ENOENT:
        return StoreUnusable(f"{path} no longer exists: it was deleted or moved", "put the store back")
    if code == errno.ELOOP:
        return StoreUnusable(
            f"{path} is a symbolic link, which a store never holds", "replace the link by the file"
        )
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return StoreUnusable(f"{path} can't be used: {reason}", "check the path and its permissions")


def damaged(path: Path, what: str, hint: str = "restore a backup of it") -> LogCorrupt:
    """Return the error for a damaged file of a store."""
    return LogCorrupt(f"the file {path} is damaged: {what}", hint)


def read_file(path: Path) -> bytes | None:
    """Return a file's contents, None if there is no such file.

    Raises:
        StoreUnusable: it is a link, no plain file, or unreadable for us.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _NO_LINKS | _NOT_BLOCKING)
        try:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                raise StoreUnusable(f"{path} is not a file", "remove it: a store holds plain files only")
            pieces = []
            while piece := os.read(handle, facts.st_size + 1):
                pieces.append(piece)
            return b"".join(pieces)
        finally:
            os.close(handle)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise translate(error, path) from error


def read_part(path: Path) -> bytes | None:
    """Return the contents of one file of a log, None if there is no such file.

    Unlike `read_file`, it reports an unreadable file as damaged, so that other threads can still be read.

    Raises:
        LogCorrupt: it is a link, no plain file, or unreadable for us.
    """
    try:
        return read_file(path)
    except StoreUnusable as error:
        raise LogCorrupt(error.message, error.hint) from error


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file atomically, without syncing its directory.

    Args:
        durable: if False, the caller syncs the contents.

    The temporary file has a fixed name, so that a killed writer leaves at most one.  So the caller must hold
    the directory's lock.

    Raises:
        StoreUnusable: no space, no permission or read-only; the file is as it was.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINKS, 0o600)
        try:
            with open(handle, "wb", buffering=0, closefd=False) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
            if durable:
                sync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise translate(error, path) from error


def remove_file(path: Path) -> None:
    """Remove a file if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise translate(error, path) from error


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to the disk, as `fsync` does for contents.

    Does nothing if the directory can't be opened, as on Windows.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except PermissionError:
        return
    except OSError as error:
        raise translate(error, path) from error
    try:
        sync(handle)
    except OSError as error:
        raise translate(error, path) from error
    finally:
        os.close(handle)


def sync(handle: int) -> None:
    """Wait until a file's contents are on the disk; raises `OSError`."""
    if sys.platform == "darwin":  # on macOS fsync leaves data in the disk's cache
        import fcntl

        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    else:
        os.fsync(handle)


def make_directories(path: Path) -> None:
    """Make the missing directories of a path, accessible only to their owner."""
    if path.is_dir():
        return
    make_directories(path.parent)
    try:
        path.mkdir(0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
    sync_directory(path.parent)


@contextlib.contextmanager
def locked(path: Path, patience: float = BUSY_SECONDS) -> Iterator[None]:
    """Hold a lock file against other threads and processes; the system frees it when the holder dies.

    Raises:
        StoreUnusable: it stayed locked for `patience` seconds, or this system has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        raise StoreUnusable(
            "a files store needs file locks, which this system lacks", "use a SQLite store"
        ) from None
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINKS, 0o600)
    except OSError as error:
        raise translate(error, path) from error
    try:
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise StoreUnusable(
                        f"{path} stayed locked by another program for {patience:g} s",
                        "end that program or try again",
                    ) from None
                time.sleep(0.002)
            except OSError as error:
                raise translate(error, path) from error
        yield
    finally:
        os.close(handle)


VERSION = 7
"""Version of the format; stores of other versions are not read."""

MARKER = "hitl-tui-store.json"
LOCK = "lock"
DELETED = "deleted"
PARTS = ("steps", "decisions", "snapshots")

_KIND = "hitl-tui files store"

_UNSAFE = re.compile(r"[^a-z0-9]+")


class _Marker(msgspec.Struct):
    kind: str
    version: int


def open_directory(root: Path) -> None:
    """Check that a directory is a store, or make a store of a missing or empty directory.

    An existing store may be read-only.

    Raises:
        StoreUnusable: it is no store, of another version, or full.
        LogCorrupt: it is a damaged store.
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


def directory_name(thread_id: str) -> str:
    """Return the name of a thread's directory."""
    slug = _UNSAFE.sub("-", thread_id.lower())[:40].strip("-") or "thread"
    return f"{slug}-{sha256(thread_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def number_file(directory: Path, part: str, number: int) -> Path:
    """Return the file of a step, a decision or a snapshot."""
    return directory / part / f"{number:08d}.{'part' if part == 'snapshots' else 'json'}"


def graph_file(root: Path, digest: str) -> Path:
    """Return the file that holds the graph with this digest."""
    return root / "graphs" / f"{digest}.json"


def check_directory(path: Path) -> None:
    """Refuse a path that is no real directory, such as a link."""
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise translate(error, path) from error
    if stat.S_ISLNK(mode):
        raise StoreUnusable(
            f"{path} is a symbolic link, which a store never holds", "replace the link by the directory"
        )
    if not stat.S_ISDIR(mode):
        raise StoreUnusable(f"{path} is not a directory", "name another directory, or remove it")


def _is_marked(root: Path) -> bool:
    data = read_file(root / MARKER)
    if data is None:
        return False
    try:
        marker = msgspec.json.decode(data, type=_Marker)
    except (msgspec.MsgspecError, ValueError) as error:
        hint = f'it should read {{"kind": "{_KIND}", "version": {VERSION}}}'
        raise damaged(root / MARKER, f"{error}; {hint}") from error
    if marker.kind != _KIND:
        raise StoreUnusable(f"{root} is a {marker.kind!r}, not a files store", "name another directory")
    if marker.version != VERSION:
        what = f"the store {root} was made"
        raise of_other_version(what, marker.version, VERSION, "name another directory")
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
