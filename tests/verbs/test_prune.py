"""Deleting threads by a rule."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands import App
from tests.verbs.flows import COUNTING, stopped
from tests.verbs.hosts import Case, DeletedFrom, each_host
from tests.verbs.test_delete import ended


def configured(app: App) -> None:
    """Leave a thread that is not kept by the rule of the configuration."""
    ended(app)
    Path("config.toml").write_text("[retention]\nolder_than = '0s'\n")


def three(app: App) -> None:
    """Leave `r`, in which a person has decided, `old`, which a limit has stopped, and a newer one."""
    stopped(app)
    app.expect(0, "cancel", "r", "--as", "bob")
    for name in ("old", "young"):
        app("run", "flow.py", "--headless", "--thread", name)


test_each_host = each_host(
    Case(
        "by the configuration",
        "prune",
        COUNTING,
        configured,
        (DeletedFrom(("old",), rule="prune: older than 0s"),),
        choice="list",
        then=("delete",),
        keys=("f12",),
        ready="2 threads, on the disk: ",
    ),
    Case(
        "with every field",
        "prune",
        COUNTING,
        three,
        (
            DeletedFrom(
                ("old",), "weekly", "prune: older than 0s, keep the last 1, keep what was decided in", True
            ),
        ),
        fields={
            "older_than": "0s",
            "keep_last": "1",
            "keep_decided": "yes",
            "force": "yes",
            "note": "weekly",
        },
        choice="list",
        then=("force", "delete"),
        keys=("f12",),
        ready="3 threads, on the disk: ",
        selected=("force",),
    ),
)
