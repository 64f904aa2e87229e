"""Deletes threads from a store: which others are deleted with them, what is kept of them.

And sizes of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from hitl_tui.engine.log.records import NO_DECISIONS, Cursor, LedgerEntry, Status
from hitl_tui.engine.log.signing import DECISIONS
from hitl_tui.engine.log.store import Store, all_threads
from hitl_tui.engine.log.threads import Deletion, ThreadInfo, ThreadSize, ThreadSummary
from hitl_tui.engine.log.units import Maybe, Time, about, span_of, span_words
from hitl_tui.engine.nodes.children import started_children
from hitl_tui.engine.thread.hashes import ledger_hash
from hitl_tui.engine.thread.journal import account
from hitl_tui.errors import HitlError, StaleWriter, ThreadBusy, UnknownThread, UsageError
from hitl_tui.suggest import did_you_mean

Why = Literal["named", "inside", "fork"]
Watch = Callable[[int, int], object]
_NOTHING: Final = ": nothing is deleted"
_MANY: Final = 5_000
"""From this number of threads on, all threads of a store are read at once."""
_KNOWN: Final = 1_000
"""Threads whose names are compared with one that is unknown."""
_BATCH: Final = 2_000
"""Threads that are deleted in one transaction, during which nobody else can write."""
Kept = Literal["newest", "young", "waits", "decided", "forked", "open"]


class Leaving(msgspec.Struct, frozen=True):
    """A thread that is to be deleted, and why.

    `version` is that of its cursor, `of` the thread with which it is deleted, "" for one that was named.
    """

    thread_id: Annotated[str, about("The thread.", name="thread")]
    version: int
    step: Annotated[int, about("Its newest step; -1 for none.")]
    status: Annotated[Status, about("Its status.")]
    why: Annotated[
        Why, about("`named`, or deleted with another thread: as a thread `inside` it, or a `fork` of it.")
    ]
    of: Annotated[Maybe, about("The thread that it is deleted with.")]
    updated_at: Annotated[Time, about("When it last changed.")]


class Retention(msgspec.Struct, frozen=True):
    """Which threads `prune` keeps; it deletes all that no part of the rule keeps.

    Args:
        older_than: microseconds since its last change after which a thread may be deleted; None for any age.
        keep_last: this many of the most recently changed threads are kept.
        keep_decided: threads with a decision of a person are kept.
    """

    older_than: int | None = None
    keep_last: int = 0
    keep_decided: bool = False

    @property
    def words(self) -> str:
        """The rule as text, as the ledger keeps it."""
        parts = [] if self.older_than is None else [f"older than {span_words(self.older_than)}"]
        parts += [f"keep the last {self.keep_last}"] if self.keep_last else []
        parts += ["keep what was decided in"] if self.keep_decided else []
        return "prune: " + (", ".join(parts) or "all")


def read_rule(given: Mapping[str, object]) -> Retention:
    """Read the rule of `prune` from its parts: `older_than`, `keep_last`, `keep_decided`.

    Raises:
        UsageError: there is none, or one can't be read.
    """
    if not given:
        raise UsageError(
            "no rule says what to delete",
            "give --older-than, --keep-last or --keep-decided, or [retention]",
        )
    age = given.get("older_than")
    try:
        older_than = None if age is None else span_of(str(age))
    except ValueError as error:
        raise UsageError(f"--older-than: {error}") from None
    last = given.get("keep_last", 0)
    return Retention(older_than, last if isinstance(last, int) else 0, bool(given.get("keep_decided")))


class DeletionPlan(msgspec.Struct, frozen=True):
    """What would be deleted, and what would not.

    Args:
        stays: named threads that are kept, each with the reason as text.
        kept: for a rule, how many top-level threads are kept for which reason.
        rule: the rule as text, "" if threads were named.
        force: running and waiting threads are deleted, too.
    """

    going: tuple[Leaving, ...]
    stays: Mapping[str, str] = {}
    kept: Mapping[Kept, int] = {}
    rule: str = ""
    force: bool = False


class _Families:
    """Forks and child threads, read thread by thread."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def summary(self, name: str) -> ThreadSummary | None:
        return self.store.summary(name)

    def info(self, name: str) -> ThreadInfo | None:
        return self.store.info(name)

    def forks(self, name: str) -> Sequence[ThreadInfo]:
        return self.store.children(name)

    def inside(self, name: str) -> Iterable[str]:
        return started_children(self.store, name)


class _FamiliesOfStore(_Families):
    """Forks and child threads, read at once for all threads of a store."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._rows = {row.info.thread_id: row for row in all_threads(store)}
        self._forks: dict[str, list[ThreadInfo]] = {}
        self._inside: dict[str, list[str]] = {}
        for name, row in self._rows.items():
            if row.info.parent is not None:
                self._forks.setdefault(row.info.parent, []).append(row.info)
            if row.info.owner is not None:
                self._inside.setdefault(row.info.owner.thread_id, []).append(name)

    def summary(self, name: str) -> ThreadSummary | None:
        return self._rows.get(name) or super().summary(name)

    def info(self, name: str) -> ThreadInfo | None:
        return self._rows[name].info if name in self._rows else super().info(name)

    def forks(self, name: str) -> Sequence[ThreadInfo]:
        return self._forks.get(name, ())

    def inside(self, name: str) -> Iterable[str]:
        return self._inside.get(name, ())


def _families(store: Store, threads: int) -> _Families:
    return _FamiliesOfStore(store) if threads > _MANY else _Families(store)


def leaving(
    store: Store, threads: Iterable[str], *, forks: bool = False, force: bool = False
) -> list[Leaving]:
    """Return all threads that are deleted with the given ones: child threads are always included.

    Args:
        forks: also their forks, which share their steps.
        force: also running and waiting threads.

    Raises:
        UnknownThread: there is no such thread.
        UsageError: a fork would be left without its parent (without `forks`), or one is a child of a kept
            thread.
        ThreadBusy: one runs or waits, without `force`.
    """
    wanted = list(threads)
    families = _families(store, len(wanted))
    going = _with_families(families, wanted, forks=forks)
    for name in going:
        _check_families(families, name, going)
        if not force:
            _check_at_rest(families.summary(name))
    return list(going.values())


def plan_deletion(
    store: Store, threads: Iterable[str], *, force: bool = False, spared: str = ""
) -> DeletionPlan:
    """Return which of the named threads are deleted, with forks and child threads, and why the rest is kept.

    Args:
        force: also running and waiting threads.
        spared: an open thread that is kept, with those with which it would be deleted.
    """
    going: dict[str, Leaving] = {}
    stays: dict[str, str] = {}
    for name in dict.fromkeys(threads):
        try:
            family = leaving(store, [name], forks=True, force=force) if name != spared else []
            if name == spared or any(thread.thread_id == spared for thread in family):
                raise UsageError(f"{spared!r} is open here{_NOTHING}", "open another thread first")
        except HitlError as error:
            stays[name] = error.message.removesuffix(_NOTHING)
        else:
            going |= {thread.thread_id: thread for thread in family if thread.thread_id not in going}
    left = {name: why for name, why in stays.items() if name not in going}
    return DeletionPlan(tuple(going.values()), left, force=force)


def _with_families(families: _Families, threads: Iterable[str], *, forks: bool) -> dict[str, Leaving]:
    """Return threads with all that is deleted with them, each after the one with which it is deleted."""
    going: dict[str, Leaving] = {}
    todo: deque[tuple[str, Why, str]] = deque((name, "named", "") for name in threads)
    while todo:
        name, why, of = todo.popleft()
        if name in going:
            continue
        going[name] = _leaving(families.store, name, why, of)
        todo += [(inside, "inside", name) for inside in families.inside(name)]
        if forks:
            todo += [(fork.thread_id, "fork", name) for fork in families.forks(name)]
    return going


def delete(
    store: Store,
    going: Sequence[Leaving],
    *,
    actor: str | None,
    note: str | None,
    at: int,
    why: str = "",
    force: bool = False,
) -> list[LedgerEntry]:
    """Delete threads from a store; see `Store.delete`."""
    versions = {thread.thread_id: thread.version for thread in going}
    return store.delete(Deletion(versions, actor, note, at, why, force))


def delete_in_batches(
    store: Store,
    going: Sequence[Leaving],
    *,
    actor: str | None,
    note: str | None,
    at: int,
    why: str = "",
    force: bool = False,
    at_once: int | None = None,
) -> Iterator[list[LedgerEntry]]:
    """Delete many threads from a store in batches of whole families: each batch completely or not at all.

    Others can write between two batches. If the caller stops iterating, the batches so far are deleted, with
    their entries in the ledger of the store.

    Args:
        at_once: how many threads make a batch; None for a large one.

    Raises: as `Store.delete`, for the batch it is in.
    """
    for batch in _batches(store, going, at_once or _BATCH):
        yield delete(store, batch, actor=actor, note=note, at=at, why=why, force=force)


def _batches(store: Store, going: Sequence[Leaving], size: int) -> Iterator[list[Leaving]]:
    """Yield threads in groups of at least `size`.

    Forks and child threads are in one group with their parents.
    """
    if len(going) <= size:
        yield [*going]
        return
    family: dict[str, str] = {thread.thread_id: thread.thread_id for thread in going}

    def root(name: str) -> str:
        while family[name] != name:
            family[name] = family[family[name]]
            name = family[name]
        return name

    for thread in going:
        info = store.info(thread.thread_id)
        owner = info.owner.thread_id if info and info.owner else ""
        for other in (thread.of, owner, (info.parent if info else None) or ""):
            if other in family:
                family[root(thread.thread_id)] = root(other)
    families: dict[str, list[Leaving]] = {}
    for thread in going:
        families.setdefault(root(thread.thread_id), []).append(thread)
    batch: list[Leaving] = []
    for threads in families.values():
        batch += threads
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def deletion_entries(store: Store, deletion: Deletion) -> list[LedgerEntry]:
    """Return what the ledger of a store keeps of threads.

    Called by the store while nobody else can write to it.

    Raises: as `Store.delete`.
    """
    ledger = store.store_ledger(newest=1)
    n, previous = (ledger[-1].n, ledger[-1].hash) if ledger else (0, b"")
    entries = []
    families = _families(store, len(deletion.versions))
    for name, version in deletion.versions.items():
        info, cursor = _standing(store, name)
        _check_families(families, name, deletion.versions)
        if not deletion.force:
            if cursor.version != version:
                raise StaleWriter(f"thread {name!r} has changed since you saw it{_NOTHING}", "look again")
            _check_at_rest(families.summary(name))
        n += 1
        entry = LedgerEntry(
            thread_id=name,
            n=n,
            kind="delete",
            step=cursor.head,
            request_id=None,
            actor=deletion.actor,
            note=deletion.note,
            seen=b"",
            data=_last_facts(store, info, cursor, deletion.why),
            at=deletion.at,
            prev_hash=previous,
            hash=b"",
            account=account(),
        )
        previous = ledger_hash(entry)
        entries.append(msgspec.structs.replace(entry, hash=previous))
    return entries


def _last_facts(store: Store, info: ThreadInfo, cursor: Cursor, why: str) -> dict[str, Any]:
    """Return what identified the thread, and the last hashes of its chains; no values."""
    facts: dict[str, Any] = {
        "graph": info.graph_name,
        "status": cursor.status,
        "records": cursor.last_seq,
        "decisions": _decisions(store, info.thread_id),
        "facts_hash": info.facts_hash.hex(),
        "record_hash": cursor.last_record_hash.hex(),
        "checkpoint_hash": cursor.checkpoint_hash.hex(),
        "ledger_hash": cursor.ledger_hash.hex(),
        "created_at": info.created_at,
        "updated_at": cursor.updated_at,
    }
    if info.parent is not None:
        facts |= {"parent": info.parent, "fork_step": info.fork_step}
    if info.owner is not None:
        facts["inside"] = info.owner.thread_id
    return facts | ({"rule": why} if why else {})


def _standing(store: Store, name: str) -> tuple[ThreadInfo, Cursor]:
    # Unchecked: damaged threads can be deleted, too.
    info, cursor = store.info(name), store.cursor(name, unchecked=True)
    if info is None or cursor is None:
        raise UnknownThread(f"there is no thread {name!r}", "list the threads to see what there is")
    return info, cursor


def _leaving(store: Store, name: str, why: Why, of: str) -> Leaving:
    try:
        _, cursor = _standing(store, name)
    except UnknownThread as error:
        known = [summary.info.thread_id for summary in store.threads(limit=_KNOWN)]
        raise UnknownThread(error.message, did_you_mean(name, known) or error.hint) from None
    return Leaving(name, cursor.version, cursor.head, cursor.status, why, of, cursor.updated_at)


def _decisions(store: Store, name: str) -> int | None:
    """Return how many decisions a thread has, without recorded calls; None if they can't be read."""
    try:
        return sum(entry.kind not in NO_DECISIONS for entry in store.ledger(name, call_data=False))
    except HitlError:
        return None


def _check_families(families: _Families, name: str, going: Collection[str] | Mapping[str, Any]) -> None:
    """Refuse to keep a part of a family that needs a deleted one."""
    for fork in families.forks(name):
        if fork.thread_id not in going:
            raise UsageError(
                f"thread {fork.thread_id!r} is a fork of {name!r} and shares its steps up to "
                f"{fork.fork_step}{_NOTHING}",
                "delete its forks with it (--forks), or export the fork and import it under another name",
            )
    for inside in families.inside(name):
        if inside not in going:
            raise UsageError(f"thread {inside!r} ran inside {name!r}{_NOTHING}", "look again")
    info = families.info(name)
    owner = info.owner.thread_id if info and info.owner else None
    if owner is not None and owner not in going and families.info(owner) is not None:
        raise UsageError(
            f"thread {name!r} ran inside {owner!r}, whose log names it{_NOTHING}",
            f"delete {owner!r}, which deletes this one too",
        )


def _check_at_rest(summary: ThreadSummary | None) -> None:
    """Refuse a thread that runs or waits."""
    if summary is None:
        return
    name = summary.info.thread_id
    if summary.held_by:
        raise ThreadBusy(
            f"thread {name!r} is run by {summary.held_by}{_NOTHING}",
            "wait until it is done, or --force",
        )
    if not _at_rest(summary):
        does = "waits" if summary.waiting_since is not None else "is in the middle of a run"
        raise ThreadBusy(
            f"thread {name!r} {does}{_NOTHING}",
            "decide or cancel it first, or --force",
        )


def _at_rest(summary: ThreadSummary) -> bool:
    return (
        not summary.held_by and summary.waiting_since is None and summary.status not in ("running", "waiting")
    )


def prunable(
    store: Store,
    rule: Retention,
    now: int,
    *,
    force: bool = False,
    watch: Watch | None = None,
    spared: str = "",
) -> DeletionPlan:
    """Return which threads a rule deletes, and how many top-level threads are kept for which reason.

    A thread is kept as long as a fork of it, or of one of its child threads, is kept.

    Args:
        watch: called with (threads checked, threads that may be deleted), with (0, 0) while those are still
            looked for; an error that it raises ends this.
        spared: as for `plan_deletion`.
    """
    chosen: dict[str, None] = {}
    kept: dict[Kept, int] = {}
    for place, summary in enumerate(all_threads(store, within="")):
        if watch:
            watch(0, 0)
        why = _reason_kept(store, rule, summary, place, now, force=force)
        if why is None:
            chosen[summary.info.thread_id] = None
        else:
            kept[why] = kept.get(why, 0) + 1
    families = _families(store, len(chosen))
    whole: dict[str, dict[str, Leaving]] = {}
    for name in chosen:
        whole[name] = _with_families(families, [name], forks=True)
        if watch:
            watch(len(whole), len(chosen))
    for name in [name for name in chosen if spared in whole[name]]:
        del chosen[name]
        kept["open"] = kept.get("open", 0) + 1
    while True:
        forked = [
            name
            for name in chosen
            if any(thread.thread_id not in chosen for thread in whole[name].values() if thread.why == "fork")
        ]
        if not forked:
            break
        for name in forked:
            del chosen[name]
            kept["forked"] = kept.get("forked", 0) + 1
    going = {name: thread for root in chosen for name, thread in whole[root].items()}
    named = {name: msgspec.structs.replace(going[name], why="named", of="") for name in chosen}
    return DeletionPlan(tuple((going | named).values()), kept=kept, rule=rule.words, force=force)


def sizes(store: Store, watch: Watch | None = None) -> list[ThreadSize]:
    """Return the size of each thread's own rows, the largest first.

    Args:
        watch: called with (threads measured, all threads); an error that it raises ends this.
    """
    names = [summary.info.thread_id for summary in all_threads(store)]
    filled = []
    for name in names:
        filled.append(store.size(name))
        if watch:
            watch(len(filled), len(names))
    return sorted(filled, key=lambda size: -size.bytes)


def _reason_kept(
    store: Store, rule: Retention, summary: ThreadSummary, place: int, now: int, *, force: bool
) -> Kept | None:
    """Return why a thread is kept, None if it may be deleted.

    `place` is how many threads changed after it.
    """
    if place < rule.keep_last:
        return "newest"
    if rule.older_than is not None and summary.updated_at > now - rule.older_than:
        return "young"
    if not force and not _at_rest(summary):
        return "waits"
    if rule.keep_decided and _decided(store, summary.info.thread_id):
        return "decided"
    return None


def _decided(store: Store, name: str) -> bool:
    """Whether a person has decided something in a thread or its child threads.

    Unreadable threads count, too.
    """
    try:
        if any(entry.kind in DECISIONS and entry.actor for entry in store.ledger(name, call_data=False)):
            return True
    except HitlError:
        return True
    return any(_decided(store, inside) for inside in started_children(store, name))
