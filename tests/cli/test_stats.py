"""What the reviews of a store measure: by person and graph, reasons, times, edits, rubrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hitl_tui.view.stats import cohens_kappa
from tests.cli.test_reasons import REASONS, SCORED
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.support.spec import spec

pytestmark = spec("11")


@pytest.fixture
def scored(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    """Three threads: ann approves one after an edit, ann and bob send one back each, with reasons."""
    (tmp_path / "scored.py").write_text(SCORED.replace("StateGraph({", "StateGraph(name='essay', channels={"))
    (tmp_path / "reasons.txt").write_text(REASONS)
    monkeypatch.setenv("HITL_TUI_REASONS", str(tmp_path / "reasons.txt"))
    for name in "abc":
        app.expect(3, "run", str(tmp_path / "scored.py"), "--headless", "--thread", name)
    app.expect(0, "update-state", "a", "draft=Better", "--as", "ann")
    app.expect(0, "approve", "a", "--as", "ann", "--score", "tone=5", "--score", "accuracy=4")
    app.expect(0, "revise", "b", "--as", "ann", "--reason", "too-long", "--score", "tone=2")
    picks = ("--reason", "too-long", "--reason", "wrong-tone")
    app.expect(0, "revise", "c", "--as", "bob", *picks)
    return app


def stats(app: App, *options: str) -> dict[str, Any]:
    document = app.expect(0, "stats", *options, "--json").document
    assert document["kind"] == "stats"
    return document


def test_decisions_are_counted_by_person_and_by_graph(scored: App) -> None:
    found = stats(scored)
    assert found["decisions"] == 3
    ann, bob = found["people"]
    assert (ann["name"], ann["decisions"], ann["answers"], ann["edited"]) == (
        "ann", 2, {"approve": 1, "revise": 1}, 0.5,
    )  # fmt: skip
    assert (bob["name"], bob["decisions"], bob["answers"], bob["edited"]) == ("bob", 1, {"revise": 1}, 0.0)
    assert all(share["median"] >= 0 and share["mean"] >= 0 for share in (ann, bob))
    (graph,) = found["graphs"]
    assert (graph["name"], graph["decisions"], graph["edited"]) == ("essay", 3, 0.3333)


def test_reasons_and_scores_are_counted(scored: App) -> None:
    found = stats(scored)
    assert found["reasons"] == [
        {"reason": "too-long", "count": 2, "people": {"ann": 1, "bob": 1}},
        {"reason": "wrong-tone", "count": 1, "people": {"bob": 1}},
    ]
    assert found["rubric"] == [
        {"graph": "essay", "criterion": "accuracy", "scores": 1, "mean": 4.0},
        {"graph": "essay", "criterion": "tone", "scores": 2, "mean": 3.5},
    ]


def test_only_some_are_counted_if_asked(scored: App) -> None:
    assert stats(scored, "--by", "bob")["decisions"] == 1
    assert stats(scored, "--graph", "other")["decisions"] == 0
    assert stats(scored, "--since", "1h")["decisions"] == 3
    assert stats(scored, "--until", "2020-01-01")["decisions"] == 0
    assert "is no time" in scored.expect(2, "stats", "--since", "soon").err


def test_what_a_fork_shares_with_its_parent_counts_once(scored: App) -> None:
    scored.expect(0, "fork", "c@2", "d")
    assert stats(scored)["decisions"] == 3


def test_the_text_has_tables(scored: App) -> None:
    done = scored.expect(0, "stats").out
    assert done.startswith("3 decisions by 2 people.\n\nPeople\nPERSON")
    for words in ("GRAPH", "too-long", "ann 1, bob 1", "accuracy", "3.50", "50%"):
        assert words in done
    assert scored.expect(0, "stats", "--by", "nobody").out == "Nobody has decided anything here.\n"


SAMPLED = SCORED.replace("rubric=", "second_reading=1, one_account=True, rubric=").replace(
    "StateGraph({", "StateGraph(name='essay', channels={"
)


@pytest.fixture
def sampled(app: App, tmp_path: Path) -> App:
    """Four answered threads; ann and bob agree about three of them, and one is not read again yet."""
    (tmp_path / "scored.py").write_text(SAMPLED)
    firsts, seconds = ("approve", "approve", "revise", "approve"), ("approve", "revise", "revise", "")
    for name, first, second in zip("abcd", firsts, seconds, strict=True):
        app.expect(3, "run", str(tmp_path / "scored.py"), "--headless", "--thread", name)
        words = ("--note", "dull") if first == "revise" else ()
        app.expect(0, first, name, "--as", "ann", *words)
        if second:
            app.expect(0, "reread", name, second, "--as", "bob", "--note", "hm")
    return app


def test_second_readings_measure_agreement(sampled: App) -> None:
    found = stats(sampled, "--as", "bob")
    assert found["agreement"] == [
        {"graph": "essay", "read": 3, "waiting": 1, "agreed": 2, "kappa": 0.4, "low": -0.5602, "high": 1.0}
    ]
    assert [(each["thread"], each["title"]) for each in found["to_read"]] == [("d", "Publish it?")]
    assert stats(sampled, "--as", "ann")["to_read"] == []
    assert found["decisions"] == 4, "second readings are no decisions"
    done = sampled.expect(0, "stats", "--as", "bob").out
    for words in ("To be read again", "0.40", "-0.56 to 1.00", "2 (67%)"):
        assert words in done


@pytest.mark.parametrize(
    ("pairs", "kappa"),
    [
        ([], None),
        ([("a", "a")] * 3, None),
        ([("a", "a"), ("b", "b")], (1.0, 1.0, 1.0)),
        ([("a", "b"), ("b", "a")], (-1.0, -1.0, -1.0)),
        # Cohen's own kind of table: 45 and 30 alike of 100, 15 and 10 apart.
        (
            [("y", "y")] * 45 + [("n", "n")] * 30 + [("y", "n")] * 15 + [("n", "y")] * 10,
            (0.4898, 0.3166, 0.6630),
        ),
    ],
)
def test_cohens_kappa(pairs: list[tuple[str, str]], kappa: Any) -> None:
    assert cohens_kappa(pairs) == kappa


def test_canaries_count_who_caught_them_and_nothing_else(app: App, tmp_path: Path) -> None:
    (tmp_path / "scored.py").write_text(SCORED)
    app.expect(3, "run", str(tmp_path / "scored.py"), "--headless", "--thread", "a")
    for name in ("a-2", "a-3"):
        app.expect(0, "fork", "a", name, 'draft="Bad."', "--canary", "approve", "--as", "lead")
    assert "canary" not in app.expect(0, "show", "a-2").out + app.expect(0, "log", "a-2", "--json").out
    queue = app.expect(0, "threads", "--waiting").out
    assert all(name in queue for name in ("a-2", "a-3"))
    app.expect(0, "approve", "a-2", "--as", "ann")
    app.expect(0, "revise", "a-3", "--as", "ann", "--note", "Bad.")
    assert "known to be bad" in app.expect(0, "show", "a-2").out
    assert stats(app)["canaries"] == [{"person": "ann", "canaries": 2, "caught": 1}]
    assert (stats(app)["decisions"], stats(app)["reasons"]) == (0, [])
    assert "1 (50%)" in app.expect(0, "stats").out
    assert "runs nothing" in app.expect(2, "fork", "a-2", "a-4").err
    assert "is not one of the answers" in app.expect(2, "fork", "a", "x", "draft=Bad", "--canary", "no").err


def test_plain_text_mode_prints_the_same_tables(sampled: App, monkeypatch: pytest.MonkeyPatch) -> None:
    output = Talker(sampled, monkeypatch)("stats\nq\n", "resume", "a", "--plain", "--as", "bob").out
    for words in ("4 decisions by 1 person.", "Second readings", "0.40", "To be read again"):
        assert words in output
