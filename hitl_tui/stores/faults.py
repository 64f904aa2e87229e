"""Finds rows that belong to no thread, and columns that differ from what they were copied from.

The hash chains cover what a thread reads. This finds other rows, which somebody may have put into the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.threads import Fault
from hitl_tui.stores import rows
from hitl_tui.stores.base import writer
from hitl_tui.stores.lineage import Origin, Spending, sum_by_node

Rows = Callable[..., list[Any]]
"""Runs a statement with its values."""

NUMBERED = ("record", "checkpoint", "ledger", "snapshot", "spending")
"""Tables whose rows have an id made of thread and number."""
KEYED = ("cursor", "lease", "pause", "presence")
"""Tables with rows of a thread."""
_MOST = 10
"""Most rows of one kind that are named one by one."""
_LAST_KEY = (1 << 31) - 1
# Ids between those of one thread and those of the next belong to no thread.
_STRAY = """
    SELECT stray FROM (
        SELECT (SELECT min(id) FROM {table} WHERE id BETWEEN low AND high) AS stray FROM (
            SELECT coalesce((lag(key) OVER (ORDER BY key) + 1) << 32, :first) AS low, (key << 32) - 1 AS high
            FROM thread WHERE key BETWEEN 0 AND :last
            UNION ALL
            SELECT coalesce((max(key) + 1) << 32, :first), ((:last << 32) | 4294967295)
            FROM thread WHERE key BETWEEN 0 AND :last HAVING coalesce(max(key), 0) < :last
        ) AS free
    ) AS found WHERE stray IS NOT NULL ORDER BY stray
"""


def of_store(run: Rows, given: int) -> Iterator[Fault]:
    """Yield rows that belong to no thread, and threads that were removed without a ledger entry.

    Args:
        given: how many keys the store has given to threads.
    """
    for (key,) in run("SELECT key FROM thread WHERE key NOT BETWEEN 0 AND ? ORDER BY key", (_LAST_KEY,)):
        yield Fault("thread.key", None, None, key)
    for table in NUMBERED:
        for (row_id,) in run(_STRAY.format(table=table), {"first": -(1 << 63), "last": _LAST_KEY}):
            yield Fault(table, row_id & rows.NUMBER, None, "a row of no thread")
    for table in KEYED:
        for _ in run(f"SELECT 1 FROM {table} WHERE thread NOT IN (SELECT key FROM thread) LIMIT 1"):
            yield Fault(table, None, None, "a row of no thread")
    for (name,) in run(f"SELECT id FROM thread WHERE parent NOT IN (SELECT key FROM thread) LIMIT {_MOST}"):
        yield Fault("thread.parent", None, None, name)
    yield from _deleted(run, given)
    for (name,) in run(f"SELECT id FROM thread WHERE key NOT IN (SELECT thread FROM cursor) LIMIT {_MOST}"):
        yield Fault("cursor", None, name, None)


def _deleted(run: Rows, given: int) -> Iterator[Fault]:
    """Yield missing threads that have no entry in the ledger of the store."""
    there, deleted = run("SELECT (SELECT count(*) FROM thread), (SELECT count(*) FROM store_ledger)")[0]
    if given != there + deleted:
        yield Fault("store_ledger", None, f"{given} threads", f"{there}, and {deleted} deleted")


def of_thread(
    run: Rows, key: int, origin: Origin, cursor: Cursor | None, since: int, *, spending: str
) -> Iterator[Fault]:
    """Yield rows of a thread that nothing refers to, and columns that differ from what they were copied from.

    Args:
        since: the recorded spending of the steps before this one is not checked.
        spending: see `Dialect`.
    """
    if cursor is None:
        return
    info, base = origin.info, key << 32
    forked = info.parent is not None
    steps = (info.fork_step if forked else -1, cursor.head)
    reached = {
        "record": (info.fork_seq if forked else 0, cursor.last_seq),
        "ledger": (origin.shared_entries if forked else 0, cursor.ledger_n),
    }
    for table in NUMBERED:
        after, last = reached.get(table, steps)
        sql = f"SELECT id FROM {table} WHERE id BETWEEN ? AND ? ORDER BY id LIMIT {_MOST}"
        for first, end in ((base, base + after), (base + last + 1, base + rows.NUMBER)):
            for (row_id,) in run(sql, (first, end)):
                yield Fault(table, row_id & rows.NUMBER, None, "a row that is no part of the log")
    yield from _columns(run, key, origin, cursor)
    yield from _spending(run, base, since, spending)


def _columns(run: Rows, key: int, origin: Origin, cursor: Cursor) -> Iterator[Fault]:
    """Yield wrong columns of a cursor from which lists are made."""
    names = (*rows.CURSOR.split(", ")[:-2], "touched")
    fetched = run(f"SELECT {', '.join(names)} FROM cursor WHERE thread = ?", (key,))
    base = key << 32
    newest = run(
        f"SELECT {rows.CHECKPOINT} FROM checkpoint WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
        (base, base + max(cursor.head, 0)),
    )
    wrote = (
        writer(rows.checkpoint_of(cursor.thread_id, newest[0])) if newest else origin.info.created_by or ""
    )
    copied = rows.cursor_row(cursor, b"", wrote)[:-2]
    should = (*copied, cursor.updated_at >> rows.TOUCHED_SHIFT)
    for name, expected, actual in zip(names, should, fetched[0], strict=True):
        if actual != (None if (name, expected) == ("waiting_since", rows.NEVER) else expected):
            yield Fault(f"cursor.{name}", None, expected, actual)


def _spending(run: Rows, base: int, since: int, spending: str) -> Iterator[Fault]:
    """Yield recorded sums of spending that differ from the steps."""
    place, earlier = base - 1, list[Spending]()
    for row_id, body in run(
        "SELECT id, body FROM spending WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
        (base, base + since - 1),
    ):
        place, earlier = row_id, rows.spending_of(body)
    for row_id, body in run(
        "SELECT id, body FROM spending WHERE id > ? AND id <= ? ORDER BY id", (place, base + rows.NUMBER)
    ):
        expected = sum_by_node([*earlier, *map(rows.spent_of, run(spending, (place, row_id)))])
        place, earlier = row_id, rows.spending_of(body)
        if expected != earlier:
            yield Fault("spending", row_id & rows.NUMBER, str(expected), str(earlier))
