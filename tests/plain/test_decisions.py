"""The decisions of all threads in plain text mode."""

from __future__ import annotations

import re

import pytest

from tests.plain.talker import Talker
from tests.support.commands import App


@pytest.mark.slow
def test_decisions_are_searched_listed_and_opened_at_their_step(app: App, talk: Talker) -> None:
    app.expect(3, "run", "review", "--headless", "--input", "task=Hills", "--thread", "r")
    app.expect(3, "revise", "r", "--note", "shorter", "--run", "--as", "ann")
    app.expect(0, "approve", "r", "--run", "--as", "bob")
    output = talk(
        "decisions\ndecisions by:ann SHORTER\ndecisions 1\ndecisions nowhere\ndecisions since:soon\nq\n",
        "resume", "r", "--plain", "--as", "ann",
    ).out  # fmt: skip
    row = (
        r"(\S+ )?\d\d:\d\d, ann, r: sent back “Is this draft good enough\?”; because: shorter; result: asked "
    )
    assert re.search(rf"^1\. (\S+ )?\d\d:\d\d, bob, r: approved .*\n2\. {row}", output, re.MULTILINE)
    assert re.search(rf"^1\. {row}", output, re.MULTILINE)
    assert "Step 2 by check_approval" in output
    assert "fork step=2 decides it again in a new thread." in output
    assert "No decision matches." in output
    assert "since: 'soon' is no time" in output
