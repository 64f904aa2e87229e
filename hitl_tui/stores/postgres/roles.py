"""Who may do what in a store: roles of the database, given to its users, and what each may write (SPEC 10).

The database holds to it whatever program its user runs: rows of the log are only added, and each entry of
the ledger names the login that wrote it.
"""

from __future__ import annotations

from typing import Final

from hitl_tui.engine.log.signing import DECISIONS

_APPENDED = "record, checkpoint, snapshot, spending, ledger"
_ALL = f"store, thread, cursor, lease, pause, presence, {_APPENDED}, store_ledger, graph"

ROLES: Final[dict[str, tuple[str, ...]]] = {
    "hitl_viewer": (f"SELECT ON {_ALL}",),
    "hitl_reviewer": (
        f"SELECT ON {_ALL}",
        f"INSERT ON {_APPENDED}, pause, presence, graph",
        "UPDATE ON cursor",
        "UPDATE (body) ON graph",
        "DELETE ON pause, presence",
    ),
    "hitl_worker": (
        f"SELECT ON {_ALL}",
        f"INSERT ON thread, cursor, {_APPENDED}, pause, presence, graph",
        "UPDATE ON cursor",
        "UPDATE (body) ON graph",
        "UPDATE (threads) ON store",
        "DELETE ON pause, presence",
    ),
    "hitl_operator": (
        f"SELECT ON {_ALL}",
        f"INSERT ON thread, cursor, {_APPENDED}, pause, presence, graph, store_ledger",
        "UPDATE ON cursor",
        "UPDATE (body) ON graph",
        "UPDATE (threads) ON store",
        f"DELETE ON thread, cursor, {_APPENDED}, pause, presence, graph",
    ),
}
"""What each role may do.  A viewer looks; a reviewer decides in threads that are there; a worker begins and
runs threads and decides nothing; an operator does all of it, and deletes, which the store's ledger keeps."""

_DECISIONS = ", ".join(f"'{kind}'" for kind in sorted(DECISIONS))
# What the engine itself notes has no actor.
_POLICIES = (
    "CREATE POLICY looks ON ledger FOR SELECT USING (true)",
    "CREATE POLICY decides ON ledger FOR INSERT TO hitl_reviewer, hitl_operator WITH CHECK (true)",
    "CREATE POLICY runs ON ledger FOR INSERT TO hitl_worker "
    f"WITH CHECK (kind NOT IN ({_DECISIONS}) OR actor IS NULL)",
    "CREATE POLICY deletes ON ledger FOR DELETE TO hitl_operator USING (true)",
)


def statements(schema: str) -> list[str]:
    """What makes the roles, where they are missing, and gives them their rights in the tables of a schema."""
    created = [
        f"DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$" for role in ROLES
    ]
    granted = [
        statement
        for role, rights in ROLES.items()
        for statement in (
            f'GRANT USAGE ON SCHEMA "{schema}" TO {role}',
            f"REVOKE ALL ON {_ALL} FROM {role}",
            *(f"GRANT {right} TO {role}" for right in rights),
        )
    ]
    names = [policy.split()[2] for policy in _POLICIES]
    dropped = [f"DROP POLICY IF EXISTS {name} ON ledger" for name in names]
    return [*created, *granted, "ALTER TABLE ledger ENABLE ROW LEVEL SECURITY", *dropped, *_POLICIES]
