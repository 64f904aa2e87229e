"""What the reviews of a store measure: by person and graph, reasons, times, edits, rubrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_reasons import REASONS, SCORED
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
