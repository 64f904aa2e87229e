"""Freeing space."""

from __future__ import annotations

from tests.support.commands import App
from tests.verbs.flows import COUNTING, stopped
from tests.verbs.hosts import Case, OnStore, each_host


def deleted(app: App) -> None:
    """Leave free space beside the thread `r`."""
    stopped(app)
    app("run", "flow.py", "--headless", "--thread", "gone")
    app.expect(0, "delete", "gone", "--yes", "--force")


test_each_host = each_host(
    Case(
        "of a deleted thread",
        "vacuum",
        COUNTING,
        deleted,
        (OnStore("vacuum"),),
        choice="vacuum",
        keys=("f12",),
        ready="1 thread, on the disk: ",
    )
)
