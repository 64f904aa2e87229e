"""Database roles of a store, to be granted to its users (docs/roles.md).

The database enforces them whatever program a user runs: only functions write the log, they check
each commit, and each entry of the ledger names the login that wrote it.
"""

from __future__ import annotations

from typing import Final

from hitl_tui.stores import rows
from hitl_tui.stores.postgres.writing import BEGINS, COMMITS, DELETES


def _execute(*functions: str) -> tuple[str, ...]:
    return tuple(f"EXECUTE ON FUNCTION {function}" for function in functions)


_ALL = (
    "store, thread, cursor, lease, pause, presence, record, checkpoint, snapshot, spending, ledger, "
    "store_ledger, graph"
)
# Leases, pause requests and presence are in no log: these rows are written directly.
_PRESENT = ("INSERT, DELETE ON pause, presence", f"UPDATE ({rows.LEASE}) ON cursor")

ROLES: Final[dict[str, tuple[str, ...]]] = {
    "hitl_viewer": (f"SELECT ON {_ALL}",),
    "hitl_reviewer": (f"SELECT ON {_ALL}", *_PRESENT, *_execute(COMMITS)),
    "hitl_worker": (f"SELECT ON {_ALL}", *_PRESENT, *_execute(COMMITS, *BEGINS)),
    "hitl_operator": (f"SELECT ON {_ALL}", *_PRESENT, *_execute(COMMITS, *BEGINS, *DELETES)),
}
"""Rights of each role.  A viewer reads; a reviewer also decides in existing threads; a worker starts and runs
threads and decides nothing; an operator does all of this, and deletes threads, which the store's ledger
records.  The functions check what each role writes (see `writing`)."""


def statements(schema: str) -> list[str]:
    """Return the SQL that makes missing roles and gives them their rights in the tables of a schema."""
    created = [
        f"DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$" for role in ROLES
    ]
    granted = [
        statement
        for role, rights in ROLES.items()
        for statement in (
            f'GRANT USAGE ON SCHEMA "{schema}" TO {role}',
            f"REVOKE ALL ON {_ALL} FROM {role}",
            f'REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA "{schema}" FROM {role}',
            *(f"GRANT {right} TO {role}" for right in rights),
        )
    ]
    return [*created, *granted]
