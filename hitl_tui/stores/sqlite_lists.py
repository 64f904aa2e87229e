"""The statements that list the threads of a store file (the tables are in sqlite_schema)."""

from __future__ import annotations

from typing import Any

from hitl_tui.stores import sqlite_rows as rows

_OWNER = "json_extract(CAST({}.owner AS TEXT), '$.thread_id')"
# A thread inside another is named after it: "/" is followed by "0" in the order of names.
_INSIDE = "{0}.id > {1} || '/' AND {0}.id < {1} || '0' AND " + _OWNER.format("{0}") + " = {1}"
_COUNT = f"(SELECT count(*) FROM thread AS i WHERE {_INSIDE.format('i', 't.id')})"
_SUMMARIES = (
    f"SELECT {rows.THREAD}, {rows.SUMMARY}, {{inside}} FROM cursor AS c JOIN thread AS t ON t.key = c.thread "
    "LEFT JOIN thread AS p ON p.key = t.parent LEFT JOIN lease AS l ON l.thread = c.thread WHERE {where}"
)
_ORDER = " ORDER BY c.touched DESC, c.updated_at DESC, c.thread DESC LIMIT ? OFFSET ?"
_BY_AGE = " ORDER BY t.created_at, t.id LIMIT ? OFFSET ?"
_BY_WAIT = " ORDER BY c.waiting_since, t.id LIMIT ? OFFSET ?"
_TOP = f"(t.owner IS NULL OR NOT EXISTS (SELECT 1 FROM thread AS o WHERE o.id = {_OWNER.format('t')}))"

ONE = _SUMMARIES.format(inside="NULL", where="c.thread = ?")
"""The line of one thread, given its key."""


def listing(
    query: str, limit: int, offset: int, within: str | None, *, waiting: bool
) -> tuple[str, tuple[Any, ...]]:
    """The statement for a page of `Store.threads`, and its values."""
    conditions: list[str] = []
    values: list[Any] = []
    if within == "":
        conditions.append(_TOP)
    elif within is not None:
        conditions.append(_INSIDE.format("t", "?1"))
        values.append(within)
    if query:
        conditions.append("instr(lower(t.id), lower(?))")
        values.append(query)
    if waiting:
        conditions.append("c.waiting_since IS NOT NULL")
    sql = _SUMMARIES.format(
        inside="NULL" if within is None else _COUNT, where=" AND ".join(conditions) or "1"
    )
    return sql + (_BY_WAIT if waiting else _BY_AGE if within else _ORDER), (*values, limit, offset)
