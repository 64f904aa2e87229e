"""`read`: a text rendered, with its changes and what became of comments on its last version."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import App

FLOW = """
from tests.support.newsroom import FIRST, SECOND, newsroom

def build(checkpointer):
    return newsroom(FIRST, SECOND, store=checkpointer)
"""


@pytest.fixture
def asked(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    (tmp_path / "flow.py").write_text(FLOW)
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    app.expect(3, "run", f"{tmp_path}/flow.py:build", "--headless", "--thread", "t")
    return app


def test_a_text_is_read_rendered_and_with_its_changes(asked: App) -> None:
    first = asked.expect(0, "read", "t").out
    assert first.startswith("draft · version 1\n")
    assert "│ crane, second hand" in first
    assert "**" not in first
    assert "**draft for review**" in asked.expect(0, "read", "t", "--source").out
    comments = ("--comment", "four above", "really?", "--comment", "Nobody believed", "who?")
    asked.expect(0, "revise", "t", "--note", "see below", *comments, "--reviewer", "anna")
    asked.expect(3, "resume", "t", "--headless")
    second = asked.expect(0, "read", "t", "--reviewer", "anna").out
    assert second.startswith(
        "draft · version 2 · 4 changes since you last saw it · 1 of your 2 comments addressed"
    )
    assert "[-four-]{+seven+}" in second
    assert "passage changed" in second
    assert "passage unchanged" in second
    old = asked.expect(0, "read", "t@1", "draft").out
    assert "four above" in old


def test_its_document_lists_headings_changes_and_comments(asked: App) -> None:
    asked.expect(0, "revise", "t", "--note", "x", "--comment", "four above", "really?", "--reviewer", "anna")
    asked.expect(3, "resume", "t", "--headless")
    document = asked.expect(0, "read", "t", "draft", "--json", "--reviewer", "anna").document
    assert document["kind"] == "read"
    assert document["headings"][0] == {"level": 1, "text": "The harbour crane"}
    assert (document["version"], document["changes"], document["since"]) == (2, 4, "since version 1")
    (comment,) = document["comments"]
    assert (comment["fate"], comment["mine"], comment["comment"]["quote"]) == ("changed", True, "four above")


def test_a_channel_that_is_not_there_is_refused(asked: App) -> None:
    assert "there is no channel 'nope'" in asked.expect(2, "read", "t", "nope").err
    assert "no request waits about a text" in asked.expect(2, "read", "t@1").err
