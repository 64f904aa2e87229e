"""`store init`: tables and roles of a store in PostgreSQL."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import store_option
from hitl_tui.cli.output import say
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from hitl_tui.stores import Checkpointer


@click.group()
def store() -> None:
    """Set up a store in PostgreSQL: tables and roles.

    It needs a database user that may create tables.

        hitl-tui store init --store postgresql://owner@db/team --roles
    """


@store.command()
@click.option("--roles", is_flag=True, help="Also create the roles, and print what each may do.")
@store_option
def init(*, roles: bool, store: str | None) -> None:
    """Create the tables of a store, or upgrade them.

    --roles also creates hitl_viewer, hitl_reviewer, hitl_worker and hitl_operator. Grant them to users of
    the database, as in GRANT hitl_reviewer TO ann.
    """
    from hitl_tui.cli.storage import open_for_writing
    from hitl_tui.config import load_settings

    with closing(open_for_writing(load_settings({"store": store}))) as opened:
        queue = _make_queue(opened)
        if roles:
            make_roles = getattr(opened, "make_roles", None)
            if make_roles is None:
                raise UsageError("only a store in PostgreSQL has roles", "name one: --store postgresql://…")
            make_roles()
    say("the tables are there" + (", the roles too: give them to users with GRANT" if roles else ""))
    say(queue)


def _make_queue(store: Checkpointer) -> str:
    """Create the tables of jobs, if possible; say what exists."""
    from hitl_tui.cli.worker import jobs_of

    try:
        jobs_of(store).make()
    except UsageError as error:
        return f"there is no queue for workers: {error.message}; {error.hint}"
    return "the queue for workers is there"
