"""Giving an answered request a second reading."""

from __future__ import annotations

import pytest

from hitl_tui.engine.commands import ReadAgain
from tests.support.commands import App
from tests.verbs.flows import ASKING, stopped
from tests.verbs.hosts import Case, Hosts, each_host

TERMS = 'subject="text", second_reading=1, rubric=["tone"], one_account=True'
SAMPLED = ASKING.replace('"Print it?", choices', f'"Print it?", choices, {TERMS}')
"""A graph whose answered question is always read again."""
ID = "22042cea7893"
"""The id of that question, in the thread `r`."""


def answered(app: App) -> None:
    """Let "bob" answer the request of the thread `r`."""
    stopped(app)
    app.expect(0, "approve", "r", "--as", "bob", "--note", "as agreed")


AGAIN = {"choice": "revise", "text": "dull"}

test_each_host = each_host(
    Case("with a reason and a score", "reread", SAMPLED, answered,
         (ReadAgain(ID, AGAIN, "ann", "dull", scores={"tone": 2}),),
         {"note": "dull", "score": "tone=2"}, choice="revise", only=("screen",)),
    Case("by words", "reread", SAMPLED, answered,
         (ReadAgain(ID, AGAIN, "ann", "dull", scores={"tone": 2}),),
         {"answer": "revise", "note": "dull", "score": "tone=2"}, only=("plain", "subcommand")),
)  # fmt: skip


@pytest.fixture
def sampled(app: App, hosts: Hosts) -> App:
    hosts.prepared(Case("", "reread", SAMPLED, answered, ()))
    return app


def test_the_first_answer_is_not_shown(sampled: App) -> None:
    done = sampled.expect(0, "reread", "r", "--as", "ann")
    assert "Print it?" in done.out
    assert "A memo." in done.out
    shown = sampled.expect(0, "reread", "r", "--as", "ann", "--json")
    document = shown.document
    assert (document["title"], document["value"], document["rubric"]) == ("Print it?", "A memo.", ["tone"])
    assert [choice["id"] for choice in document["choices"]] == ["approve", "revise"]
    for text in (done.out, shown.out):
        assert "bob" not in text
        assert "as agreed" not in text


def test_it_is_recorded_once_and_only_for_others(sampled: App) -> None:
    assert (
        "nothing in thread 'r' needs a second reading by bob"
        in sampled.expect(2, "reread", "r", "approve", "--as", "bob").err
    )
    assert "is not an allowed answer" in sampled.expect(4, "reread", "r", "burn", "--as", "ann").err
    assert "Your second reading is recorded" in sampled.expect(0, "reread", "r", "approve", "--as", "ann").out
    assert "nothing in thread 'r' needs" in sampled.expect(2, "reread", "r", "approve", "--as", "cy").err
    sampled.expect(0, "verify", "r", "--strict")
