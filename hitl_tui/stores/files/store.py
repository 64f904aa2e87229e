"""Store that keeps each thread as a directory of readable JSON files, one per step."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from hitl_tui.engine.log.records import (
    Checkpoint,
    Commit,
    Cursor,
    LedgerEntry,
    StoredGraph,
    UpdateRecord,
)
from hitl_tui.engine.log.store import Durability
from hitl_tui.engine.log.threads import (
    Deletion,
    Fault,
    Lease,
    PauseRequest,
    Presence,
    Space,
    ThreadInfo,
    ThreadSize,
    ThreadSummary,
    check_thread_id,
)
from hitl_tui.errors import LogCorrupt, StoreUnusable, ValueRejected
from hitl_tui.given_files import expanded
from hitl_tui.stores import base
from hitl_tui.stores.base import (
    Checkpointer,
    as_opened,
    ascii_lower,
    check_durability,
    check_same,
    commit_refusal,
    lease_lost,
    name_taken,
    page_of,
    refuse_takeover,
    size_of,
    still_present,
    summary_of,
    unknown_thread,
    with_presence,
    writer,
)
from hitl_tui.stores.files import deletion as deletions
from hitl_tui.stores.files import json as shapes
from hitl_tui.stores.files.directory import (
    LOCK,
    PARTS,
    check_directory,
    damaged,
    directory_name,
    graph_file,
    locked,
    number_file,
    open_directory,
    read_file,
    read_part,
    remove_file,
    replace_file,
    sync_directory,
    translate,
)
from hitl_tui.stores.files.thread import ThreadFiles
from hitl_tui.stores.lease import holder, releasing
from hitl_tui.stores.lineage import ImportedThread, Origin, Spending

_HIDDEN = ".new-"
_LOCK = ".lock"


@contextlib.contextmanager
def making(threads: Path) -> Iterator[Path]:
    """Make a temporary directory for a new thread; removed at the end unless it was moved into place."""
    while True:
        path = threads / f"{_HIDDEN}{uuid.uuid4().hex}"
        lock = _lock_of(path)
        with locked(lock):
            # A process that cleans up at this moment may have locked and removed it first.
            if not lock.exists():
                continue
            try:
                _fresh(path)
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
                remove_file(lock)
            return


def unfinished(threads: Path) -> set[Path]:
    """Return the temporary directories of new threads, of living and dead writers."""
    try:
        names = [name for name in os.listdir(threads) if name.startswith(_HIDDEN)]
    except OSError as error:
        raise translate(error, threads) from error
    return {threads / name.removesuffix(_LOCK) for name in names}


def clear_up(threads: Path) -> None:
    """Remove what killed writers left behind."""
    for path in unfinished(threads):
        with contextlib.suppress(StoreUnusable), locked(_lock_of(path), patience=0):
            shutil.rmtree(path, ignore_errors=True)
            remove_file(_lock_of(path))


def _fresh(path: Path) -> None:
    try:
        path.mkdir(0o700)
        for part in PARTS:
            (path / part).mkdir(0o700)
    except OSError as error:
        raise translate(error, path) from error


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + _LOCK)


LIST = "placing.json"


class _Move(msgspec.Struct):
    """Move of a directory in `threads` from its hidden name to its final one."""

    new: Annotated[str, msgspec.Meta(pattern=r"^\.new-[0-9a-f]{32}$")]
    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+-[0-9a-f]{16}$")]


def place(root: Path, threads: Sequence[tuple[Path, str]]) -> None:
    """Move temporary directories into place as the threads with these ids.

    Args:
        made: the first one is moved last, so that a process that finds it finds the others, too.

    Raises:
        ThreadBusy: there is a thread with one of the ids; none is placed.
        StoreUnusable: no space, no permission or read-only; none is placed.
    """
    if len(threads) == 1:
        _move(root / "threads", threads[0])
        sync_directory(root / "threads")
    else:
        with locked(root / LOCK):
            _take_back(root)
            deletions.finish(root)
            _place_all(root, threads)


def recover(root: Path) -> None:
    """Undo the unfinished moves of a killed writer, and remove what it left."""
    threads = root / "threads"
    if (root / LIST).exists() or deletions.is_begun(root) or unfinished(threads):
        with locked(root / LOCK):
            # The order matters: a missing temporary directory counts as moved.
            _take_back(root)
            deletions.finish(root)
            clear_up(threads)


def _place_all(root: Path, threads: Sequence[tuple[Path, str]]) -> None:
    moves = [_Move(path.name, directory_name(thread_id)) for path, thread_id in threads]
    replace_file(root / LIST, msgspec.json.encode(moves) + b"\n")
    sync_directory(root)
    try:
        for thread in reversed(threads):
            _move(root / "threads", thread)
        sync_directory(root / "threads")
    except BaseException:
        _take_back(root)
        raise
    remove_file(root / LIST)


def _move(threads: Path, thread: tuple[Path, str]) -> None:
    path, thread_id = thread
    target = threads / directory_name(thread_id)
    try:
        os.rename(path, target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            raise name_taken(thread_id) from None
        raise translate(error, target) from error


def _take_back(root: Path) -> None:
    """Undo the moves of a list, unless all were made; the caller holds the store's lock."""
    threads = root / "threads"
    moves = _listed(root / LIST)
    # If it was not moved, its name may belong to another thread.
    moved = [move for move in moves if not (threads / move.new).exists()]
    try:
        for move in moved if len(moved) < len(moves) else ():
            os.rename(threads / move.name, threads / move.new)
    except OSError as error:
        raise translate(error, threads) from error
    # Before anything is deleted: a deleted directory must not look like a moved one.
    remove_file(root / LIST)
    for move in moves:
        shutil.rmtree(threads / move.new, ignore_errors=True)


def _listed(file: Path) -> list[_Move]:
    data = read_file(file)
    if data is None:
        return []
    try:
        return msgspec.json.decode(data, type=list[_Move])
    except (msgspec.MsgspecError, ValueError) as error:
        raise damaged(file, str(error), "take it away") from error


# Age after which a graph that no thread uses is removed.
_GRAPH_SECONDS = 3600
# A file younger than this when read may have changed since then with the same time stamp.
_RACY_NS = 2_000_000_000
_OURS = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class _Seen(NamedTuple):
    """A cached cursor, read at `at` from a file with the stamp `stamp`."""

    stamp: tuple[int, int, int]
    at: int
    cursor: Cursor
    last_writer: str


class FileCheckpointer(Checkpointer):
    """A store in a directory, usable from several threads and processes.

    Args:
        directory: created if missing, accessible only to its owner; may be empty.
        durability: with "none" no commit waits for the disk.  Otherwise all do, as with "steps": a cursor on
            the disk without its step would be a damaged thread.

    Raises:
        StoreUnusable: it is no store, made by a newer hitl-tui, read-only, locked or full.
        LogCorrupt: it is a damaged store.
    """

    def __init__(self, directory: str | os.PathLike[str], durability: Durability = "decisions") -> None:
        super().__init__()
        self.durability = check_durability(durability)
        self._synced = durability != "none"
        self.path = Path(os.path.abspath(expanded(directory)))
        open_directory(self.path)
        self._directory = self.path / "threads"
        self._only_read = not os.access(self._directory, os.W_OK | os.X_OK)
        if not self._only_read:
            recover(self.path)
        self._known: dict[str, ThreadFiles] = {}
        self._seen: dict[Path, _Seen] = {}

    @property
    def why_read_only(self) -> str:
        return "the store is read-only: its directory can't be written" if self._only_read else ""

    def create_thread(self, info: ThreadInfo, cursor: Cursor, first: Commit | None = None) -> None:
        parent = None if info.parent is None else self._thread(info.parent)
        origin = Origin(info, 0 if info.parent is None else cursor.ledger_n)
        with self._making(origin) as thread:
            _fill(thread, cursor, (first,) if first else (), self.path, durable=self._synced)
            # Under the lock nobody can delete the parent.
            with self._locked(parent) if parent else contextlib.nullcontext():
                self._place([thread])

    def write_threads(self, threads: Iterable[ImportedThread]) -> None:
        with contextlib.ExitStack() as making:
            written: list[ThreadFiles] = []
            for info, past, commits in threads:
                origin = Origin(info, 0, past)
                thread = making.enter_context(self._making(origin))
                _fill(thread, Cursor(info.thread_id), commits, self.path)
                written.append(thread)
            # One sync for all is far cheaper than one for each of many small files.
            if self._synced:
                os.sync()
            self._place(written)

    def commit(self, thread_id: str, commit: Commit) -> None:
        thread = self._thread(thread_id)
        if commit.graph is not None:
            # Before the thread is locked: a deletion locks the store first, then threads.
            _keep_graph(self.path, commit.graph, durable=self._synced)
        with self._locked(thread):
            check_same(thread_id, commit, thread.origin.info.facts_hash)
            cursor, last_writer = thread.standing()
            refusal = commit_refusal(thread_id, commit, cursor.version, thread.lease())
            if refusal is not None:
                raise refusal
            if commit.checkpoint is not None:
                last_writer = writer(commit.checkpoint)
                # A killed writer may have left a file that this commit does not replace.
                remove_file(number_file(thread.path, "snapshots", commit.checkpoint.step))
            files = list(thread.files_of(commit, cursor.head))
            moved = shapes.cursor_file(commit.cursor, last_writer, thread.origin.info.facts_hash)
            for file, data in files:
                self._replace(file, data)
            self._sync(*{file.parent for file, _ in files})
            if commit.takes is not None:
                self._replace(thread.lease_file, shapes.lease_file(commit.takes))
            self._replace(thread.cursor_file, moved)
            self._sync(thread.path)
            if commit.gives_back:
                remove_file(thread.lease_file)

    def delete(self, deletion: Deletion) -> list[LedgerEntry]:
        from hitl_tui.stores.deletion import deletion_entries

        with locked(self.path / LOCK):
            _take_back(self.path)
            deletions.finish(self.path)
            # From here on new writers wait; then we wait for the current ones, one after the other.
            deletions.begin(self.path, ())
            try:
                for name in deletion.versions:
                    with locked(self._thread(name).path / "lock"):
                        pass
                entries = deletion_entries(self, deletion)
                deletions.begin(self.path, entries)
            finally:
                deletions.finish(self.path)
        return entries

    def store_ledger(self, newest: int | None = None) -> list[LedgerEntry]:
        return deletions.entries(self.path, newest)

    def size(self, thread_id: str) -> ThreadSize:
        thread = self._thread(thread_id)
        first = (thread.origin.info.fork_step if thread.origin.info.parent is not None else -1) + 1
        steps = range(first, thread.cursor().head + 1)
        records = [record for step in steps for record in thread.records(step)]
        size = size_of(
            thread_id,
            records,
            steps=len(steps),
            checkpoints=thread.filled("steps"),
            snapshots=thread.filled("snapshots"),
            decisions=thread.filled("decisions"),
        )
        # A step's file includes its updates.
        beside = max(size.checkpoints - sum(size.channels.values()), 0)
        return msgspec.structs.replace(size, checkpoints=beside)

    def space(self) -> Space:
        used = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                with contextlib.suppress(OSError):
                    used += os.lstat(os.path.join(folder, name)).st_size
        return Space(used, 0)

    def vacuum(self) -> Space:
        with locked(self.path / LOCK):
            _take_back(self.path)
            deletions.finish(self.path)
            clear_up(self._directory)
            named = set[str]().union(*(base.graphs_named(self, thread.origin.info) for thread in self._all()))
            # A graph is stored before its thread, so a new graph may belong to a thread that is being made.
            old = time.time() - _GRAPH_SECONDS
            for file in (self.path / "graphs").iterdir():
                if file.stem not in named and file.lstat().st_mtime < old:
                    remove_file(file)
        return self.space()

    def cursor(self, thread_id: str, *, unchecked: bool = False) -> Cursor | None:
        thread = self._find(thread_id)
        return thread.cursor(unchecked=unchecked) if thread else None

    def graph(self, digest: str) -> StoredGraph | None:
        # Only a digest names a file.
        body = read_part(graph_file(self.path, digest)) if _DIGEST.fullmatch(digest) else None
        return None if body is None else StoredGraph(digest, body)

    def faults(self, thread_id: str | None, since: int = 0) -> Iterator[Fault]:
        # Files beyond the cursor were left by a killed writer; nobody reads them.
        if thread_id is None:
            yield from deletions.faults(self.path)
            yield from self._unreadable_directories()
        else:
            thread = self._thread(thread_id)
            yield from thread.spending_faults(thread.cursor(unchecked=True).head, since)
            yield from self._faults_of_present(thread_id)

    def children(self, thread_id: str) -> list[ThreadInfo]:
        threads = [thread for thread in self._all() if thread.origin.info.parent == thread_id]
        threads.sort(key=lambda thread: (thread.origin.info.created_at, thread.order))
        return [thread.origin.info for thread in threads]

    def inner_names(self, thread_id: str) -> list[str]:
        threads: list[ThreadFiles] = []
        for name in self._directories():
            with contextlib.suppress(
                LogCorrupt
            ):  # `faults` reports a directory that does not say which thread it holds
                if (thread := self._listed(name)) is not None:
                    threads.append(thread)
        threads = [thread for thread in threads if base.is_inside(thread.origin.info, thread_id, ())]
        threads.sort(key=lambda thread: (thread.origin.info.created_at, thread.order))
        return [thread.origin.info.thread_id for thread in threads]

    def _unreadable_directories(self) -> Iterator[Fault]:
        for name in self._directories():
            try:
                self._listed(name)
            except LogCorrupt as error:
                yield Fault("thread", None, None, error.message)

    def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> list[ThreadSummary]:
        part = ascii_lower(query)
        known = {thread.origin.info.thread_id: thread for thread in self._all()}
        rows = [
            (self._glance(thread), thread)
            for name, thread in known.items()
            if part in ascii_lower(name) and base.is_inside(thread.origin.info, within, known)
        ]
        now = time.time_ns() // 1000
        counted = known.values() if within is not None else ()
        inside = base.child_counts(t.origin.info for t in counted)
        placed = (
            (
                thread.origin.info,
                as_opened(seen.cursor, holder(thread.lease(), now)) if waiting else seen.cursor,
                thread.order,
                (seen, thread),
            )
            for seen, thread in rows
        )
        last = None
        if after is not None:
            before = known.get(after.info.thread_id)
            last = after, before.order if before else 0
        page = page_of(placed, limit, last, within, waits=waiting)
        return [
            _summary(thread, seen, None if within is None else inside[thread.origin.info.thread_id])
            for seen, thread in page
        ]

    def summary(self, thread_id: str) -> ThreadSummary | None:
        thread = self._find(thread_id)
        return _summary(thread, self._glance(thread)) if thread else None

    def list_threads(self) -> list[str]:
        return sorted(
            thread.origin.info.thread_id for thread in self._all() if self._glance(thread).cursor.head >= 0
        )

    def held(self) -> list[str]:
        held = (thread for thread in self._all() if thread.lease_file.exists())
        return sorted(thread.origin.info.thread_id for thread in held)

    def lease(self, thread_id: str) -> Lease | None:
        thread = self._find(thread_id)
        return thread.lease() if thread else None

    def acquire(self, thread_id: str, lease: Lease, now: int) -> Lease | None:
        thread = self._thread(thread_id)
        with self._locked(thread):
            dead = refuse_takeover(thread_id, thread.lease(), lease, now)
            self._replace(thread.lease_file, shapes.lease_file(lease))
            return dead

    def renew(self, thread_id: str, token: str, expires_at: int) -> None:
        thread = self._thread(thread_id)
        with self._locked(thread):
            held = thread.lease()
            if held is None or held.token != token:
                raise lease_lost(thread_id, held)
            kept = msgspec.structs.replace(held, expires_at=expires_at)
            self._replace(thread.lease_file, shapes.lease_file(kept))

    def release(self, thread_id: str, token: str) -> None:
        with releasing(token):
            thread = self._find(thread_id)
            if thread is None:
                return
            with self._locked(thread):
                held = thread.lease()
                if held is not None and held.token == token:
                    remove_file(thread.lease_file)

    def request_pause(self, thread_id: str, request: PauseRequest | None) -> None:
        thread = self._thread(thread_id)
        with self._locked(thread):
            if request is not None:
                self._replace(thread.pause_file, shapes.pause_file(request))
            elif thread.pause() is not None:
                remove_file(thread.pause_file)

    def pause_request(self, thread_id: str) -> PauseRequest | None:
        thread = self._find(thread_id)
        return thread.pause() if thread else None

    def attend(self, thread_id: str, presence: Presence, now: int, over: str = "") -> None:
        thread = self._thread(thread_id)
        with self._locked(thread):
            self._keep_attending(thread, with_presence(thread.attending(), presence, now, over))

    def leave(self, thread_id: str, token: str) -> None:
        with releasing(token):
            thread = self._find(thread_id)
            if thread is None or not thread.attending():
                return
            with self._locked(thread):
                left = tuple(at for at in thread.attending() if at.lease.token != token)
                self._keep_attending(thread, left)

    def attending(self, thread_id: str, now: int) -> tuple[Presence, ...]:
        thread = self._find(thread_id)
        return still_present(thread.attending(), now) if thread else ()

    def _keep_attending(self, thread: ThreadFiles, attending: tuple[Presence, ...]) -> None:
        if attending:
            replace_file(thread.presence_file, shapes.presence_file(attending), durable=False)
        else:
            remove_file(thread.presence_file)

    def close(self) -> None:
        """Nothing to release: no file stays open between calls."""

    # -- over one thread's own rows ---------------------------------------------------------------

    def _origin(self, thread_id: str) -> Origin | None:
        thread = self._find(thread_id)
        return thread.origin if thread else None

    def _own_checkpoints(self, thread_id: str, first: int, last: int, limit: int) -> list[Checkpoint]:
        thread = self._thread(thread_id)
        last = min(last, thread.cursor().head)
        return [thread.point(step) for step in range(last, max(first, last - limit + 1) - 1, -1)]

    def _own_records(self, thread_id: str, first: int, last: int) -> Iterator[UpdateRecord]:
        thread = self._thread(thread_id)
        for step in range(first, min(last, thread.cursor().head) + 1):
            yield from thread.records(step)

    def _own_snapshot(self, thread_id: str, first: int, last: int) -> tuple[int, bytes] | None:
        thread = self._thread(thread_id)
        return thread.snapshot(first, min(last, thread.cursor().head))

    def _own_ledger(self, thread_id: str, first: int, last: int, *, call_data: bool) -> list[LedgerEntry]:
        thread = self._thread(thread_id)
        return [thread.entry(n) for n in range(first, min(last, thread.cursor().ledger_n) + 1)]

    def _own_spending(self, thread_id: str, last: int) -> list[Spending]:
        thread = self._thread(thread_id)
        return thread.spending(min(last, thread.cursor().head))

    # -- directories ------------------------------------------------------------------------------

    def _thread(self, thread_id: str) -> ThreadFiles:
        thread = self._find(thread_id)
        if thread is None:
            raise unknown_thread(thread_id)
        return thread

    def _find(self, thread_id: str) -> ThreadFiles | None:
        # As in the other stores, no thread has a name that is no valid text; creating one reports it.
        return self._thread_in(directory_name(thread_id)) if isinstance(thread_id, str) else None

    def _thread_in(self, name: str) -> ThreadFiles | None:
        """Return the thread in a directory, None if there is no such directory."""
        thread, path = self._known.get(name), self._directory / name
        # A thread's info file is never replaced: another file means another thread.
        if thread is not None and thread.identity != ThreadFiles.identity_of(path):
            self._lineages.clear()
            del self._known[name]
            thread = None
        if thread is None:
            if not os.path.lexists(path):
                self._check_there()
                return None
            thread = self._known[name] = ThreadFiles.open(path)
        return thread

    def _check_there(self) -> None:
        """Raise an error if the whole store is gone, so that callers do not report parts as missing."""
        check_directory(self._directory)

    def _check_still(self, thread: ThreadFiles) -> None:
        """Raise an error if a thread was deleted, or replaced by another of its name."""
        if thread.identity != ThreadFiles.identity_of(thread.path):
            self._check_there()
            raise unknown_thread(thread.origin.info.thread_id)

    def _all(self) -> Iterator[ThreadFiles]:
        return (thread for name in self._directories() if (thread := self._listed(name)) is not None)

    def _directories(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._directory) if _OURS.fullmatch(name))
        except OSError as error:
            raise translate(error, self._directory) from error

    def _listed(self, name: str) -> ThreadFiles | None:
        """Return the thread in a directory that was just listed."""
        try:
            return self._thread_in(name)
        except StoreUnusable:
            if os.path.lexists(self._directory / name):
                raise
            self._check_there()
            return None

    def _glance(self, thread: ThreadFiles) -> _Seen:
        """Return the cursor for lists, read again only if its file has changed."""
        file = thread.cursor_file
        try:
            facts = os.lstat(file)
        except OSError as error:
            raise translate(error, file) from error
        stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        seen = self._seen.get(file)
        if seen is None or seen.stamp != stamp or facts.st_mtime_ns > seen.at - _RACY_NS:
            seen = self._seen[file] = _Seen(stamp, time.time_ns(), *thread.standing(unchecked=True))
        return seen

    @contextlib.contextmanager
    def _making(self, origin: Origin) -> Iterator[ThreadFiles]:
        """Make a temporary directory for a thread; removed at the end unless it was moved into place."""
        thread_id = check_thread_id(origin.info.thread_id)
        if os.path.lexists(self._directory / directory_name(thread_id)):
            raise name_taken(thread_id)
        with making(self._directory) as path, _no_surrogates():
            self._replace(path / "info.json", shapes.info_file(origin, time.time_ns()))
            yield ThreadFiles(path, origin)

    def _replace(self, file: Path, data: bytes) -> None:
        replace_file(file, data, durable=self._synced)

    def _sync(self, *directories: Path) -> None:
        for directory in directories if self._synced else ():
            sync_directory(directory)

    def _place(self, written: Sequence[ThreadFiles]) -> None:
        place(self.path, [(thread.path, thread.origin.info.thread_id) for thread in written])

    @contextlib.contextmanager
    def _locked(self, thread: ThreadFiles) -> Iterator[None]:
        while True:
            with contextlib.ExitStack() as held, _no_surrogates():
                try:
                    held.enter_context(locked(thread.path / "lock"))
                except StoreUnusable:
                    self._check_still(thread)
                    raise
                # The last holder of the lock may have deleted it.
                self._check_still(thread)
                if not deletions.is_begun(self.path):
                    yield
                    return
            with locked(self.path / LOCK):
                deletions.finish(self.path)


def _fill(
    thread: ThreadFiles, cursor: Cursor, commits: Iterable[Commit], root: Path, *, durable: bool = False
) -> None:
    """Write a thread into a hidden directory, and its graphs to the store.

    Args:
        cursor: the cursor before the first of the commits.
    """
    info = thread.origin.info
    last_writer = info.created_by or ""
    folders = {thread.path}
    for commit in commits:
        for file, data in thread.files_of(commit, cursor.head):
            replace_file(file, data, durable=durable)
            folders.add(file.parent)
        if commit.graph is not None:
            _keep_graph(root, commit.graph, durable=durable)
        cursor = commit.cursor
        last_writer = writer(commit.checkpoint) if commit.checkpoint else last_writer
    moved = shapes.cursor_file(cursor, last_writer, info.facts_hash)
    replace_file(thread.cursor_file, moved, durable=durable)
    for folder in folders if durable else ():
        sync_directory(folder)


def _keep_graph(root: Path, graph: StoredGraph, *, durable: bool) -> None:
    """Write a graph to the store unless it already exists; threads share graphs."""
    file = graph_file(root, graph.digest)
    if read_file(file) == graph.body:
        with contextlib.suppress(OSError):
            os.utime(file)  # keeps it from being removed before its thread exists
        return
    with locked(root / LOCK):
        replace_file(file, graph.body, durable=durable)
        if durable:
            sync_directory(file.parent)


def _summary(thread: ThreadFiles, seen: _Seen, inside: int | None = None) -> ThreadSummary:
    now = time.time_ns() // 1000
    return summary_of(
        thread.origin.info,
        seen.cursor,
        seen.last_writer,
        thread.lease(),
        now,
        inside=inside,
        attending=still_present(thread.attending(), now),
    )


@contextlib.contextmanager
def _no_surrogates() -> Iterator[None]:
    try:
        yield
    except UnicodeEncodeError as error:
        raise ValueRejected(f"a text has a lone surrogate: {error}") from error
