"""`claim`, `unclaim`, `hand-over` and `--take-over`: whose it is to decide, from the command line."""

from __future__ import annotations

import pytest

from tests.cli.test_decisions import pending
from tests.support.commands import App
from tests.support.spec import spec

pytestmark = spec("11")


@pytest.mark.slow
def test_a_claim_outlives_its_command_until_it_is_released(review: App) -> None:
    claimed = review.expect(0, "claim", "r", "--for", "2h", "--as", "ann", "--json").document
    (there,) = claimed["attending"]
    assert (there["actor"], there["claims"], claimed["request"]) == ("ann", True, pending(review, "r"))
    refused = review.expect(4, "approve", "r", "--as", "bob")
    assert "ann" in refused.err
    assert "has claimed it, for 120 min still" in refused.err
    assert "--take-over ann" in refused.err
    review.expect(4, "unclaim", "r", "--as", "bob")
    assert "no longer claimed" in review.expect(0, "unclaim", "r", "--as", "ann").out
    assert "nobody had claimed it" in review.expect(0, "unclaim", "r", "--as", "ann").out
    review.expect(0, "approve", "r", "--as", "bob")


def test_a_claim_lasts_as_long_as_the_setting_says(review: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITL_TUI_CLAIM_MINUTES", "45")
    assert "you have claimed it until " in review.expect(0, "claim", "r", "--as", "ann").out
    assert "for 45 min still" in review.expect(4, "claim", "r", "--as", "bob").err
    for wrong in ("soon", "0"):
        monkeypatch.setenv("HITL_TUI_CLAIM_MINUTES", wrong)
        assert "claim_minutes" in review.expect(2, "claim", "r").err


@pytest.mark.slow
def test_a_claim_is_taken_over_by_name_with_or_before_the_answer(review: App) -> None:
    review.expect(0, "claim", "r", "--as", "ann")
    review.expect(4, "claim", "r", "--as", "bob", "--take-over", "cleo")
    review.expect(0, "claim", "r", "--as", "bob", "--take-over", "ann", "--note", "ann is ill")
    review.expect(0, "approve", "r", "--as", "cleo", "--take-over", "bob")
    decisions = review.expect(0, "log", "r", "--json").document["decisions"]
    assert [
        (entry["actor"], entry["note"], entry["facts"] if "facts" in entry else entry["data"])
        for entry in decisions
        if entry["decision"] == "claim_taken"
    ] == [("bob", "ann is ill", {"from": "ann"}), ("cleo", None, {"from": "bob"})]
    review.expect(0, "verify", "r", "--strict")


def test_a_request_is_handed_over_with_a_note(review: App) -> None:
    result = review.expect(0, "hand-over", "r", "@bob", "--note", "you know them", "--as", "ann")
    assert "handed to bob by ann: “you know them”" in result.out
    document = review.expect(0, "show", "r", "--json").document["standing"]["pending"][0]
    assert (document["handed"]["to"], document["handed"]["by"]) == ("bob", "ann")
    assert "handed to you by ann" in review.expect(0, "unclaim", "r", "--as", "bob").out
    review.expect(0, "approve", "r", "--as", "bob")
    review.expect(0, "verify", "r", "--strict")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("claim", "r", "--for", "soon"), "is not a time"),
        (("claim", "r", "--request", "x"), "no request 'x' waits"),
        (("claim", "none"), "there is no thread 'none'"),
        (("hand-over", "r", " "), "two names"),
    ],
)
def test_impossible_claims_are_refused_with_a_reason(review: App, words: tuple[str, ...], says: str) -> None:
    assert says in review.expect(2, *words).err


def test_allowing_calls_records_no_state_as_seen(review: App) -> None:
    review.expect(0, "allow", "r", "send_mail", "--as", "ann")
    entry = review.expect(0, "log", "r", "--json").document["decisions"][-1]
    assert (entry["decision"], entry["actor"], entry["seen"]) == ("allowed", "ann", None)
