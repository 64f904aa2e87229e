"""Deleting threads by name."""

from __future__ import annotations

from tests.support.commands import App
from tests.verbs.flows import COUNTING, stopped
from tests.verbs.hosts import Case, DeletedFrom, each_host


def ended(app: App) -> None:
    """Leave a thread `old`, which is cancelled, beside `r`."""
    stopped(app)
    app("run", "flow.py", "--headless", "--thread", "old")
    app.expect(0, "cancel", "old")


def forked(app: App) -> None:
    """Leave a fork of `old`, and one that is not marked on screen."""
    ended(app)
    app.expect(0, "fork", "old@1", "young")


test_each_host = each_host(
    Case(
        "without a reason",
        "delete",
        COUNTING,
        ended,
        (DeletedFrom(("old",)),),
        fields={"threads": "old"},
        choice="delete",
        keys=("t",),
        ready="2 threads",
        selected=("threads",),
    ),
    Case(
        "with every field",
        "delete",
        COUNTING,
        forked,
        (DeletedFrom(("old", "young"), "a try", force=True),),
        fields={"threads": "old young", "forks": "yes", "force": "yes", "note": "a try"},
        choice="force",
        keys=("t", "m", "m"),
        ready="2 marked",
        selected=("threads", "forks", "force"),
        then=("delete",),
    ),
)
