"""Threads as rows of SQL tables: reading them from any database.

Rows of a thread have the id `thread << 32 | number`; the columns are those of `rows`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import lt
from typing import Any, ClassVar, TypeVar

import msgspec

from hitl_tui.engine.log.records import (
    CALL,
    Checkpoint,
    Commit,
    Cursor,
    Effect,
    LedgerEntry,
    StoredGraph,
    UpdateRecord,
)
from hitl_tui.engine.log.signing import DECIDING
from hitl_tui.engine.log.threads import (
    DecisionPlace,
    Fault,
    Lease,
    Part,
    PauseRequest,
    Presence,
    ThreadInfo,
    ThreadSize,
    ThreadSummary,
    Waiting,
)
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.errors import HitlError
from hitl_tui.shell import command_line
from hitl_tui.stores import faults, rows, snapshots
from hitl_tui.stores.base import Checkpointer, commit_refusal, still_present, unknown_thread
from hitl_tui.stores.lease import holder
from hitl_tui.stores.lineage import Origin, Spending

T = TypeVar("T")

# Records that are read at a time: long logs are read in pieces, so that a writer never waits for a reader.
_CHUNK = 512
SPENDING_STEPS = 128
"""After this many steps, their total use is stored, so that totals need not read all steps."""

_FEW = 1000
_OF_THREAD = " FROM cursor AS c JOIN thread AS t ON t.key = c.thread "
_STANDING = ", c.body, c.digest, k.hashes"
# The page is chosen first, so that details and counts are looked up only for its lines.
_CHOSEN = f"SELECT c.thread, {{since}} AS since, t.id AS name{_OF_THREAD}WHERE {{where}}"
_ORDER = " ORDER BY c.touched DESC, c.updated_at DESC, c.thread DESC"
_BEHIND = (
    "c.touched <= :touched AND (c.touched, c.updated_at, c.thread) < "
    "(:touched, :moved, coalesce((SELECT key FROM thread WHERE id = :name), 0))"
)
_BY_AGE = " ORDER BY t.created_at, t.id"
_YOUNGER = "(t.created_at, t.id) > (:created, :name)"
_BY_WAIT = " ORDER BY since, name"
_LATER = "{0} >= :since AND ({0}, t.id) > (:since, :name)"
_RUNNING = (
    f"SELECT cursor.thread, {', '.join(f'lease.{name}' for name in rows.LEASE.split(', '))} "
    "FROM cursor LEFT JOIN lease ON lease.thread = cursor.thread WHERE status = 'running'"
)
_VERSION = "SELECT version FROM cursor WHERE thread = ?"
_FROM_THREAD = "FROM thread AS t LEFT JOIN thread AS p ON p.key = t.parent"
_THREAD = f"SELECT {rows.THREAD}, t.shared_entries, t.past, t.key {_FROM_THREAD} WHERE t.id = ?"
_CHILDREN = f"SELECT {rows.THREAD} {_FROM_THREAD} WHERE t.parent = ? ORDER BY t.created_at, t.key"
_CHECKPOINTS = f"SELECT {rows.CHECKPOINT} FROM checkpoint WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
_RECORDS = f"SELECT {rows.RECORD} FROM record WHERE id > ? AND id <= ? ORDER BY id LIMIT {_CHUNK}"
_EFFECTS = f"SELECT {rows.EFFECT} FROM record WHERE id > ? AND id <= ? ORDER BY id LIMIT {_CHUNK}"
_SEQ = "SELECT last_seq FROM checkpoint WHERE id BETWEEN ? AND ? ORDER BY id {} LIMIT 1"
_SEQS = f"SELECT ({_SEQ.format('DESC')}), ({_SEQ.format('ASC')})"
_SNAPSHOT = "SELECT id, body FROM snapshot WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1"
_PARTS = "SELECT id, body FROM snapshot WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
_SNAPSHOTS = "SELECT id, body FROM snapshot WHERE id BETWEEN ? AND ? ORDER BY id"
_LEDGER = "SELECT {} FROM ledger WHERE id BETWEEN ? AND ? ORDER BY id"
_IS_DECISION = f"kind IN {DECIDING}"
_DECISIONS = (
    "SELECT l.at, t.id, l.id, l.actor FROM ledger AS l JOIN thread AS t ON t.key = l.id >> 32 "
    f"WHERE l.{_IS_DECISION} AND l.at <= ? AND (l.at, l.id) < (?, ?) "
    f"ORDER BY l.at DESC, l.id DESC LIMIT {_CHUNK}"
)
DECISION_INDEX = f"CREATE INDEX ledger_decided ON ledger (at, id) WHERE {_IS_DECISION}"
"""Makes pages of decisions quick; other entries are not in it, so that only a decision writes it."""
_DATA_BUT_OF_CALLS = f"CASE WHEN kind = '{CALL}' THEN ? ELSE data END"
_LAST_SPENDING = "SELECT id, body FROM spending WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1"
_SIZE_OF_CHANNELS = (
    "SELECT channel, sum(length(change) + coalesce(length(result), 0)) "
    "FROM record WHERE id BETWEEN ? AND ? GROUP BY channel"
)
_SIZE_OF = "SELECT count(*), coalesce(sum({}), 0) FROM {} WHERE id BETWEEN ? AND ?"
_CHECKPOINT_BYTES = " + ".join(
    f"coalesce(length({name}), 0)"
    for name in (
        "hashes",
        "note",
        "text",
        "uses",
        "branches",
        "tainted",
        "read",
        "compensations",
        "calls",
        "streamed",
        "artifacts",
        "origin",
    )
)
_NO_TIME = 2**63 - 1
"""Later than every row's time."""
_UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError)
"""The errors of decoding a damaged row."""
_LET_GO = (
    "it only says who uses the thread: if nobody does, delete the rows of the tables lease, pause and "
    "presence"
)
_ATTENDING = "SELECT t.id, p.body FROM presence AS p JOIN thread AS t ON t.key = p.thread"
_HELD = "SELECT t.id FROM lease AS l JOIN thread AS t ON t.key = l.thread ORDER BY t.id"
_LEASE = f"SELECT {rows.LEASE} FROM lease WHERE thread = ?"


def _like(part: str) -> str:
    """Return the pattern of names that contain a part, ignoring (ASCII) case."""
    return "%" + re.sub("([%_!])", r"!\1", part) + "%"


class Dialect(msgspec.Struct, frozen=True):
    """The differences between the SQL of databases.

    Args:
        owner: the id of the parent of the child thread `{}`.
        members: the numbers in the JSON list `{}`.
        json: a column of JSON as text.
        like: the pattern operator that ignores the case of A to Z.
        named: whether a name matches `:like`, ignoring the case of A to Z.
        spending: what the steps between two ids have used, as columns of `rows.spent_of`.
        ledger: the columns of a decision: `rows.LEDGER`, then the login that wrote it, if the database has
            logins.
    """

    owner: str
    members: str
    json: str
    like: str
    named: str
    spending: str
    ledger: str = rows.LEDGER

    def one_summary(self) -> str:
        """The statement for the line of one thread, given its key."""
        return self._summaries(inside="NULL", standing="", where="c.thread = ?")

    def matches(self) -> str:
        """The statement for keys of threads that match `:like`, at most `:most`."""
        return f"SELECT t.key FROM thread AS t WHERE {self.named} LIMIT :most"

    def among(self, name: str) -> str:
        """Return the condition that a thread is in a list of keys."""
        return f"c.thread IN ({self.members.format(':' + name)})"

    def steps_of_records(self) -> str:
        """The statement for steps whose records contain a text.

        Patches always count, since no row has their whole value.
        """
        held = self._holds(("note", "actor"), ("change", "result"))
        edited = f"flags & {rows.PATCHED_FLAGS} <> 0"
        return f"SELECT step FROM record WHERE id > ? AND id <= ? AND ({edited} OR {held})"

    def steps_of_points(self) -> str:
        """The statement for steps whose checkpoints contain a text."""
        held = self._holds(("text", "note", "decision", "actor"), ("streamed", "calls", "branches"))
        return f"SELECT id & {rows.NUMBER} FROM checkpoint WHERE id BETWEEN ? AND ? AND ({held})"

    def _holds(self, texts: Sequence[str], jsons: Sequence[str]) -> str:
        columns = [*texts, *map(self.json.format, jsons)]
        return " OR ".join(f"{column} {self.like} ? ESCAPE '\\'" for column in columns)

    def _inside(self, thread: str, owner: str) -> str:
        # The name of a child starts with its parent's name and "/"; "0" follows "/" in the order of names.
        return (
            f"{thread}.id > {owner} || '/' AND {thread}.id < {owner} || '0' "
            f"AND {self.owner.format(thread)} = {owner}"
        )

    def _summaries(self, *, inside: str, standing: str, where: str) -> str:
        return (
            f"SELECT {rows.THREAD}, {rows.SUMMARY}, {inside}{standing}{_OF_THREAD}"
            "LEFT JOIN thread AS p ON p.key = t.parent LEFT JOIN lease AS l ON l.thread = c.thread "
            f"LEFT JOIN checkpoint AS k ON k.id = (c.thread << 32 | c.head) WHERE {where}"
        )

    def listing(
        self,
        last: ThreadSummary | None,
        within: str | None,
        *,
        waiting: bool,
        abandoned: bool = False,
        named: str = "",
        standing: bool = False,
    ) -> str:
        """Return the statement for a page of `Store.threads`; its values are named like its parameters.

        Args:
            last: the last line of the page before.
            abandoned: in a list of waiting threads, include those in `:abandoned`.
            named: a condition on their names.
            standing: include the columns of `rows.waiting_of`.
        """
        conditions = [named] if named else []
        if within is not None:
            top = f"NOT EXISTS (SELECT 1 FROM thread AS o WHERE o.id = {self.owner.format('t')})"
            conditions.append(self._inside("t", ":within") if within else f"(t.owner IS NULL OR {top})")
        if waiting:
            kinds = [("c.waiting_since", "c.waiting_since IS NOT NULL")]
            if abandoned:
                # Only the lease shows that a runner has died; its thread waits since the last commit.
                among = self.among("abandoned")
                kinds.append(("c.updated_at", f"c.waiting_since IS NULL AND {among}"))
            later = [_LATER] if last else []
            chosen = " UNION ALL ".join(
                _CHOSEN.format(
                    since=since,
                    where=" AND ".join([kind, *conditions, *(part.format(since) for part in later)]),
                )
                for since, kind in kinds
            )
            page, order = f"{chosen}{_BY_WAIT}", " ORDER BY coalesce(c.waiting_since, c.updated_at), t.id"
        else:
            order, following = (_BY_AGE, _YOUNGER) if within else (_ORDER, _BEHIND)
            where = " AND ".join([*conditions, *([following] if last else [])]) or "TRUE"
            page = _CHOSEN.format(since="NULL", where=where) + order
        count = f"(SELECT count(*) FROM thread AS i WHERE {self._inside('i', 't.id')})"
        return self._summaries(
            inside="NULL" if within is None else count,
            standing=_STANDING if standing else "",
            where=f"c.thread IN (SELECT thread FROM ({page} LIMIT :limit) AS page){order}",
        )


class TableStore(Checkpointer):
    """A store whose threads are rows of tables; subclasses write them."""

    dialect: ClassVar[Dialect]

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, int] = {}

    @abstractmethod
    def _rows(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> list[Any]:
        """Return the rows of a statement; its parameters are `?`, or `:name` with a dict."""

    @abstractmethod
    def _damaged(self, what: str, hint: str = "") -> HitlError:
        """Return the error for rows that can't be read."""

    @abstractmethod
    def _faults_of_store(self) -> Iterator[Fault]:
        """See `Store.faults`, of the store as a whole."""

    def store_ledger(self, newest: int | None = None) -> list[LedgerEntry]:
        entries: list[LedgerEntry] = []
        previous = b""
        with self._decoding():
            entries_of = f"SELECT thread, {self.dialect.ledger} FROM store_ledger ORDER BY id"
            if newest is None:
                stored = self._rows(entries_of)
            else:  # and the one before them, to whose hash the first one is chained
                stored = self._rows(f"{entries_of} DESC LIMIT ?", (newest + 1,))[::-1]
            for thread, *row in stored:
                entries += rows.ledger_of(rows.value_of(str, (thread,)), (row,), previous)
                previous = entries[-1].hash
        return entries if newest is None else entries[-newest:]

    def size(self, thread_id: str) -> ThreadSize:
        base = self._key(thread_id) << 32
        span = (base, base | rows.NUMBER)

        def filled(column: str, table: str) -> tuple[int, int]:
            number, size = self._rows(_SIZE_OF.format(column, table), span)[0]
            return number, size

        with self._decoding():
            channels = {
                rows.value_of(str, row[:1]): rows.value_of(int, row[1:])
                for row in self._rows(_SIZE_OF_CHANNELS, span)
            }
        steps, checkpoints = filled(_CHECKPOINT_BYTES, "checkpoint")
        return ThreadSize(
            thread_id,
            steps,
            channels,
            checkpoints,
            filled("length(body)", "snapshot")[1],
            filled("length(data) + coalesce(length(note), 0)", "ledger")[1],
        )

    def cursor(self, thread_id: str, *, unchecked: bool = False) -> Cursor | None:
        fetched: list[Any] = []
        # A cached key may belong to a thread that another process has deleted.
        while not fetched:
            known, key = thread_id in self._keys, self._find(thread_id)
            if key is None:
                return None
            fetched = self._rows("SELECT body, digest FROM cursor WHERE thread = ?", (key,))
            if not known:
                break
            if not fetched:
                self._forget(thread_id)
        with self._decoding():
            body, digest = fetched[0]
            cursor = rows.cursor_of(body, None if unchecked else digest, self._facts(thread_id))
            if cursor.thread_id != thread_id:
                raise ValueError(f"the cursor of {thread_id!r} is that of {cursor.thread_id!r}")
            return cursor

    def graph(self, digest: str) -> StoredGraph | None:
        body = self._value(bytes, "SELECT body FROM graph WHERE digest = ?", (digest,))
        return None if body is None else StoredGraph(digest, body)

    def faults(self, thread_id: str | None, since: int = 0) -> Iterator[Fault]:
        if thread_id is None:
            yield from self._faults_of_store()
        elif (origin := self._origin(thread_id)) is not None:
            key, cursor = self._key(thread_id), self.cursor(thread_id, unchecked=True)
            with self._decoding():
                yield from faults.of_thread(
                    self._rows, key, origin, cursor, since, spending=self.dialect.spending
                )
            yield from self._faults_of_present(thread_id)

    def children(self, thread_id: str) -> list[ThreadInfo]:
        fetched = self._rows(_CHILDREN, (self._find(thread_id),))
        with self._decoding():
            return [rows.thread_of(row) for row in fetched]

    def inner_names(self, thread_id: str) -> list[str]:
        # The name of a child starts with its parent's name and "/"; "0" follows "/" in the order of names.
        sql = "SELECT id FROM thread WHERE id > ? AND id < ? ORDER BY created_at, key"
        names = [str(name) for (name,) in self._rows(sql, (f"{thread_id}/", f"{thread_id}0"))]
        return [name for name in names if self._may_be_inside(name, thread_id)]

    def threads(
        self, query: str = "", limit: int = 50, after: ThreadSummary | None = None, within: str | None = None,
        *, waiting: bool = False,
    ) -> list[ThreadSummary]:  # fmt: skip
        values: dict[str, Any] = {"limit": limit, "within": within}
        if after is not None:
            values |= {
                "name": after.info.thread_id,
                "created": after.info.created_at,
                "moved": after.updated_at,
                "touched": after.updated_at >> rows.TOUCHED_SHIFT,
                "since": after.updated_at if after.waiting_since is None else after.waiting_since,
            }
        named = ""
        if query:
            values |= {"like": _like(query), "most": _FEW}
            matches = [key for (key,) in self._rows(self.dialect.matches(), values)]
            named = self.dialect.named if len(matches) == _FEW else self.dialect.among("matches")
            values["matches"] = msgspec.json.encode(matches).decode()
        abandoned = self._abandoned() if waiting else []
        values["abandoned"] = msgspec.json.encode(abandoned).decode()
        sql = self.dialect.listing(after, within, waiting=waiting, abandoned=bool(abandoned), named=named)
        return self._summaries(self._rows(sql, values))

    def waiting(self, limit: int) -> list[Waiting]:
        abandoned = self._abandoned()
        sql = self.dialect.listing(None, "", waiting=True, abandoned=bool(abandoned), standing=True)
        values = {"limit": limit, "within": "", "abandoned": msgspec.json.encode(abandoned).decode()}
        fetched = self._rows(sql, values)
        threads = self._summaries([row[: -rows.STANDING] for row in fetched])
        waiting: list[Waiting] = []
        for thread, row in zip(threads, fetched, strict=True):
            body, digest, hashes = row[-rows.STANDING :]
            if not hashes:  # the step belongs to a fork's parent
                waiting.append(self._waiting(thread))
                continue
            try:
                waiting.append(rows.waiting_of(thread, body, digest, hashes))
            except (ValueError, TypeError):
                waiting.append(Waiting(thread))
        return waiting

    def _abandoned(self) -> list[int]:
        """Return keys of the threads whose status is running although no living process runs them."""
        now = self.now()
        with self._decoding(_LET_GO):
            return [
                key
                for key, *held in self._rows(_RUNNING)
                if holder(rows.lease_of(tuple(held)) if held[0] is not None else None, now) is None
            ]

    def summary(self, thread_id: str) -> ThreadSummary | None:
        fetched = self._summaries(self._rows(self.dialect.one_summary(), (self._find(thread_id),)))
        return fetched[0] if fetched else None

    def list_threads(self) -> list[str]:
        sql = "SELECT id FROM thread JOIN cursor ON thread = key WHERE head >= 0 ORDER BY id"
        with self._decoding():
            return [rows.value_of(str, row) for row in self._rows(sql)]

    def held(self) -> list[str]:
        return [row[0] for row in self._rows(_HELD)]

    def lease(self, thread_id: str) -> Lease | None:
        fetched = self._rows(_LEASE, (self._find(thread_id),))
        with self._decoding(_LET_GO):
            return rows.lease_of(fetched[0]) if fetched else None

    def pause_request(self, thread_id: str) -> PauseRequest | None:
        sql = "SELECT actor, note, at, at_once FROM pause WHERE thread = ?"
        fetched = self._rows(sql, (self._find(thread_id),))
        with self._decoding(_LET_GO):
            return rows.pause_of(fetched[0]) if fetched else None

    def attending(self, thread_id: str, now: int) -> tuple[Presence, ...]:
        return still_present(self._attending(self._find(thread_id)), now)

    def _attending(self, key: int | None) -> list[Presence]:
        fetched = self._rows("SELECT body FROM presence WHERE thread = ?", (key,))
        with self._decoding(_LET_GO):
            return [rows.presence_of(row[0]) for row in fetched]

    def _refusal(self, thread_id: str, key: int, commit: Commit) -> HitlError:
        version = self._value(int, _VERSION, (key,))
        if version is None:
            self._forget(thread_id)
            return unknown_thread(thread_id)
        return commit_refusal(thread_id, commit, version, self.lease(thread_id)) or unknown_thread(thread_id)

    def _summaries(self, fetched: Sequence[Any]) -> list[ThreadSummary]:
        """Return lines of a list from their rows."""
        now = self.now()
        attending: dict[str, list[Presence]] = {}
        # All of them: there are only as many as people using the store.
        present = self._rows(_ATTENDING) if fetched else ()
        with self._decoding(_LET_GO):
            for name, body in present:
                attending.setdefault(name, []).append(rows.presence_of(body))
        summaries: list[ThreadSummary] = []
        for row in fetched:
            try:
                summaries.append(rows.summary_of(row, now, attending))
            except _UNREADABLE as error:
                verify = command_line("verify", str(row[0]))
                hint = f"see what with `{verify}`; restore a backup of the store"
                raise self._damaged(f"the row of thread {row[0]!r} can't be read ({error})", hint) from error
        return summaries

    def _origin(self, thread_id: str) -> Origin | None:
        fetched = self._rows(_THREAD, (thread_id,))
        if not fetched:
            return None
        *facts, shared_entries, past, key = fetched[0]
        if self._keys.get(thread_id, key) != key:  # another process has deleted the thread of that name
            self._forget(thread_id)
        self._keys[thread_id] = key
        with self._decoding():
            return Origin(rows.thread_of(facts), shared_entries, rows.past_of(past))

    def _own_checkpoints(self, thread_id: str, first: int, last: int, limit: int) -> list[Checkpoint]:
        base = self._key(thread_id) << 32
        fetched = self._ordered(
            self._rows(_CHECKPOINTS, (base + first, base + last, limit)), base + first, base + last, down=True
        )
        with self._decoding():
            return [rows.checkpoint_of(thread_id, row) for row in fetched]

    def _own_records(self, thread_id: str, first: int, last: int) -> Iterator[UpdateRecord]:
        for fetched in self._record_rows(_RECORDS, thread_id, first, last):
            previous = self._record_link(thread_id, (fetched[0][0] & rows.NUMBER) - 1)
            with self._decoding():
                records = list(rows.records_of(thread_id, fetched, previous))
            yield from [record for record in records if first <= record.step <= last]

    def _own_effects(
        self, thread_id: str, first: int, last: int, channels: Container[str] | None
    ) -> Iterator[Effect]:
        for fetched in self._record_rows(_EFFECTS, thread_id, first, last):
            with self._decoding():
                effects = [
                    rows.effect_of(row)
                    for row in fetched
                    if first <= row[1] <= last and (channels is None or row[2] in channels)
                ]
            yield from effects

    def _own_steps_with(self, thread_id: str, first: int, last: int, text: str) -> Iterable[int]:
        pattern = rows.like_pattern(text)
        if not pattern:
            return range(first, last + 1)
        base = self._key(thread_id) << 32
        steps: set[int] = set()
        for sql, places in (
            (self.dialect.steps_of_records(), self._seqs(thread_id, first, last)),
            (self.dialect.steps_of_points(), (base + first, base + last)),
        ):
            matching = self._rows(sql, (*places, *[pattern] * sql.count("LIKE ?")))
            steps.update(step for (step,) in matching if isinstance(step, int) and first <= step <= last)
        return sorted(steps)

    def _record_rows(self, sql: str, thread_id: str, first: int, last: int) -> Iterator[list[Any]]:
        """Yield rows of records in pieces: those of steps `first` to `last`, and maybe some others."""
        place, end = self._seqs(thread_id, first, last)
        while fetched := self._ordered(self._rows(sql, (place, end)), place + 1, end):
            place = fetched[-1][0]
            yield fetched
            if len(fetched) < _CHUNK:
                return

    def _seqs(self, thread_id: str, first: int, last: int) -> tuple[int, int]:
        """Return the id before the first record of some steps, and the id of the last one."""
        base = self._key(thread_id) << 32
        # A step's records are those after the last one of the step before.
        span = (base, base + first - 1, base + last, base + rows.NUMBER)
        below, above = self._rows(_SEQS, span)[0]
        with self._decoding():
            return base + (0 if below is None else below), base + (rows.NUMBER if above is None else above)

    def _record_link(self, thread_id: str, seq: int) -> bytes:
        """Return the hash to which the record after `seq` is chained."""
        link = b""
        for segment in self._lineage(thread_id):
            if segment.after_seq < seq <= segment.last_seq:
                row_id = self._key(segment.thread_id) << 32 | seq
                hashes = self._value(bytes, "SELECT hashes FROM record WHERE id = ?", (row_id,))
                link = rows.record_hash_of(hashes or b"")
                break
        return self._begun(thread_id, link, lambda part: part.after_seq == seq)

    def _entry_link(self, thread_id: str, n: int) -> bytes:
        """Return the hash to which the decision after `n` is chained."""
        link = b""
        for segment in self._lineage(thread_id):
            if segment.after_entry < n <= segment.last_entry:
                row_id = self._key(segment.thread_id) << 32 | n
                link = self._value(bytes, "SELECT hash FROM ledger WHERE id = ?", (row_id,)) or b""
                break
        return self._begun(thread_id, link, lambda part: part.after_entry == n)

    def _begun(self, thread_id: str, link: bytes, begins: Callable[[Part], bool]) -> bytes:
        """Return a link chained to the facts of the parts that start after it."""
        for part in self.parts(thread_id):
            if begins(part):
                link = chained(link, part.facts)
        return link

    def _facts(self, thread_id: str) -> bytes:
        lineage = self._lineage(thread_id)
        return lineage[0].facts if lineage else b""

    def _own_snapshot(self, thread_id: str, first: int, last: int) -> tuple[int, bytes] | None:
        base = self._key(thread_id) << 32
        fetched = self._ordered(
            self._rows(_SNAPSHOT, (base + first, base + last)), base + first, base + last, down=True
        )
        if not fetched:
            return None
        with self._decoding():
            return fetched[0][0] & rows.NUMBER, snapshots.whole(
                chain((fetched[0][1],), self._parts(base, fetched[0][0] - 1))
            )

    def _own_snapshots(self, thread_id: str, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        base = self._key(thread_id) << 32
        fetched = self._ordered(
            self._rows(_SNAPSHOTS, (base + first, base + last)), base + first, base + last
        )
        parts = (part for _, part in fetched)
        with self._decoding():
            wholes = list(snapshots.each_whole(parts, self._parts(base, base + first - 1)))
        return zip((row_id & rows.NUMBER for row_id, _ in fetched), wholes, strict=True)

    def _parts(self, base: int, last: int) -> Iterator[bytes]:
        """Yield the parts of the snapshots up to the row `last`, newest first."""
        # Only the reader knows how many it needs: the further it reads, the more are fetched at once.
        count = 1
        while fetched := self._ordered(self._rows(_PARTS, (base, last, count)), base, last, down=True):
            yield from (body for _, body in fetched)
            last, count = fetched[-1][0] - 1, 2 * count

    def _own_ledger(self, thread_id: str, first: int, last: int, *, call_data: bool) -> list[LedgerEntry]:
        base = self._key(thread_id) << 32
        columns, values = self.dialect.ledger, (base + first, base + last)
        if call_data:
            stored = self._rows(_LEDGER.format(columns), values)
        else:
            columns = columns.replace(" data,", f" {_DATA_BUT_OF_CALLS},")
            stored = self._rows(_LEDGER.format(columns), (b"null", *values))
        fetched = self._ordered(stored, *values)
        previous = self._entry_link(thread_id, (fetched[0][0] & rows.NUMBER) - 1) if fetched else b""
        with self._decoding():
            return list(rows.ledger_of(thread_id, fetched, previous))

    def decisions(self) -> Iterator[DecisionPlace]:
        last = _NO_TIME, _NO_TIME
        while fetched := self._rows(_DECISIONS, (last[0], *last)):
            with self._decoding():
                places = list(map(rows.decision_of, fetched))
            yield from places
            last = fetched[-1][0], fetched[-1][2]

    def _own_spending(self, thread_id: str, last: int) -> list[Spending]:
        return self._spending(self._key(thread_id), last)

    def _spending(self, key: int, last: int) -> list[Spending]:
        base = key << 32
        noted = self._rows(_LAST_SPENDING, (base, base + last))
        # A thread's ids start at `base`, the id of step 0.
        place, body = noted[0] if noted else (base - 1, b"[]")
        with self._decoding():
            earlier = rows.spending_of(body)
            return earlier + list(map(rows.spent_of, self._rows(self.dialect.spending, (place, base + last))))

    def _forget(self, thread_id: str) -> None:
        """Forget what is cached about a deleted thread."""
        self._keys.pop(thread_id, None)
        self._lineages.pop(thread_id, None)

    def _key(self, thread_id: str) -> int:
        key = self._find(thread_id)
        if key is None:
            raise unknown_thread(thread_id)
        return key

    def _find(self, thread_id: str) -> int | None:
        key = self._keys.get(thread_id)
        if key is None:
            fetched = self._rows("SELECT key FROM thread WHERE id = ?", (thread_id,))
            if fetched:
                key = self._keys[thread_id] = fetched[0][0]
        return key

    def _ordered(self, fetched: list[Any], first: int, last: int, *, down: bool = False) -> list[Any]:
        """Return rows after checking that their ids go from `first` to `last`, strictly up or down.

        Otherwise reading on might never end.

        Raises:
            LogCorrupt: they do not, for example in a damaged file.
        """
        ids = [row[0] for row in (reversed(fetched) if down else fetched)]
        if ids and not (first <= ids[0] and ids[-1] <= last and all(map(lt, ids, ids[1:]))):
            raise self._damaged("the numbers of its rows do not grow")
        return fetched

    def _value(self, kind: type[T], sql: str, values: tuple[Any, ...]) -> T | None:
        """Return the only column of the first row, None without rows.

        Raises `LogCorrupt` for another type.
        """
        fetched = self._rows(sql, values)
        with self._decoding():
            return rows.value_of(kind, fetched[0]) if fetched else None

    @contextmanager
    def _decoding(self, hint: str = "") -> Iterator[None]:
        try:
            yield
        except _UNREADABLE as error:
            raise self._damaged(f"a row can't be read ({error})", hint) from error
