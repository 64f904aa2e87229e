"""What the commands say of a thread whose process was killed: all of them the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.killed import kill_once_it_says
from tests.support.spec import spec

pytestmark = spec("10")


@pytest.mark.parametrize("place", ["runs.db", "runs/"], ids=["sqlite", "files"])
def test_every_command_says_that_a_killed_thread_waits_paused(app: App, tmp_path: Path, place: str) -> None:
    url = f"{tmp_path}/{place}"
    kill_once_it_says("in the node", "tests.engine.commands.crashing", url)
    store = ("--store", url)
    shown = app.expect(0, "show", "t", "--json", *store).document
    (listed,) = app.expect(0, "threads", "--json", *store).document["threads"]
    (waits,) = app.expect(0, "threads", "--waiting", "--json", *store).document["threads"]
    assert waits == listed
    for document in (shown["standing"], listed):
        assert (document["status"], document["reason"]) == ("waiting", "paused")
    for words in (("threads",), ("threads", "--waiting"), ("show", "t")):
        said = app.expect(0, *words, *store).out.lower()
        assert "paused" in said
        assert "running" not in said
