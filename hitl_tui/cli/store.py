"""`store init`, `store logins`: the tables of a store in PostgreSQL, and who is who there."""

from __future__ import annotations

from contextlib import closing

import click

from hitl_tui.cli.options import complete_thread, store_option
from hitl_tui.cli.output import one_line, say, table
from hitl_tui.errors import UsageError


@click.group()
def store() -> None:
    """Set up a store in PostgreSQL: tables, roles, logins."""


@store.command()
@click.option("--roles", is_flag=True, help="Make the roles, too, and say what each may do.")
@store_option
def init(*, roles: bool, store: str | None) -> None:
    """Make the tables of a store, or bring them up to date.

    With --roles also hitl_viewer, hitl_reviewer, hitl_worker and hitl_operator, which you then give to
    users of the database, as in GRANT hitl_reviewer TO ann.
    """
    from hitl_tui.cli.storage import open_for_writing
    from hitl_tui.config import load_settings

    with closing(open_for_writing(load_settings({"store": store}))) as opened:
        if roles:
            make_roles = getattr(opened, "make_roles", None)
            if make_roles is None:
                raise UsageError("only a store in PostgreSQL has roles", "name one: --store postgresql://…")
            make_roles()
    say("the tables are there" + (", the roles too: give them to users with GRANT" if roles else ""))


@store.command()
@click.argument("thread", shell_complete=complete_thread)
@store_option
def logins(*, thread: str, store: str | None) -> None:
    """Show which login of the database wrote each entry of a thread's ledger, beside who it claims to be."""
    from hitl_tui.cli.opening import find_thread
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings

    with closing(open_existing(load_settings({"store": store}))) as opened:
        name = find_thread(opened, thread)
        known = getattr(opened, "logins", None)
        if known is None:
            raise UsageError("only a store in PostgreSQL has logins", "see `hitl-tui log` for accounts")
        wrote, entries = known(name), opened.ledger(name)
    rows = [("ENTRY", "DECISION", "WHO", "ACCOUNT", "LOGIN")]
    rows += [
        (str(entry.n), one_line(entry.kind, 20), one_line(entry.actor or "-", 30),
         one_line(entry.account, 40), one_line(wrote.get(entry.n, "-"), 40))
        for entry in entries
    ]  # fmt: skip
    say(*table(rows))
