"""Reasons to pick from, and scores for a rubric: with an answer in the ledger, and refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hitl_tui.errors import UsageError
from hitl_tui.loading.reasons import read_reasons
from hitl_tui.view.reasons import pick_reasons, reason_words, typed_reasons
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.support.spec import spec

pytestmark = spec("11")

SCORED = """
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
choices = [GateChoice("approve", "ok", "a"), GateChoice("revise", "again", "r", text="required")]
gate = Gate("write", title="Publish it?", choices=choices, subject="draft", rubric=["accuracy", "tone"])
graph = StateGraph({"draft": Channel("A text.")}).add_node("write", lambda state: {})
graph = graph.add_edge(START, "write").add_edge("write", END)
graph = graph.compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
"""
REASONS = """# why we send texts back
too-long: It is too long
wrong-tone: Wrong tone!
Facts are missing
"""


@pytest.fixture
def scored(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    (tmp_path / "scored.py").write_text(SCORED)
    (tmp_path / "reasons.txt").write_text(REASONS)
    monkeypatch.setenv("HITL_TUI_REASONS", str(tmp_path / "reasons.txt"))
    app.expect(3, "run", str(tmp_path / "scored.py"), "--headless", "--thread", "s")
    return app


def data_of(app: App, kind: str = "answer") -> dict[str, Any]:
    decisions = app.expect(0, "log", "s", "--json").document["decisions"]
    return next(entry["data"] for entry in decisions if entry["decision"] == kind)


def test_reasons_and_scores_are_in_the_ledger_and_the_reasons_are_the_words(scored: App) -> None:
    picks = ("--reason", "too-long", "--reason", "3", "--note", "Cut it.")
    scored.expect(0, "revise", "s", *picks, "--score", "tone=2", "--score", "accuracy=5")
    said = "It is too long. Facts are missing. Cut it."
    assert data_of(scored) == {
        "answer": {"choice": "revise", "text": said},
        "reasons": ["too-long", "Facts are missing"],
        "scores": {"tone": 2, "accuracy": 5},
    }
    assert scored.expect(0, "verify", "s", "--strict").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--reason", "dull"), "there is no reason 'dull'"),
        (("--reason", "4"), "there is no reason '4'"),
        (("--reason", "1", "--score", "tone=6"), "'tone=6' is not a score"),
        (("--reason", "1", "--score", "length=1"), "there is no criterion 'length' to score"),
        (("--reason", "1", "--score", "tone=x"), "'tone=x' is not a score"),
    ],
)
def test_what_is_not_known_is_refused_and_nothing_is_stored(
    scored: App, words: tuple[str, ...], says: str
) -> None:
    assert says in scored.expect(2, "revise", "s", *words).err
    decisions = scored.expect(0, "log", "s", "--json").document["decisions"]
    assert "answer" not in [entry["decision"] for entry in decisions]


def test_a_wrong_file_is_named_with_its_line(
    scored: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reasons.txt").write_text("dull: Dull\ndull: Also dull\n")
    assert (
        "reasons.txt:2: the reason 'dull' is there twice"
        in scored.expect(2, "revise", "s", "--reason", "dull").err
    )
    monkeypatch.setenv("HITL_TUI_REASONS", "reasons.txt")
    assert "must be the whole path of a file" in scored.expect(2, "revise", "s").err


def test_toml_names_the_reasons_by_keys(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('too-long = "It is too long"\n"wrong tone" = "Wrong tone"\n')
    assert read_reasons(tmp_path / "r.toml") == (
        ("too-long", "It is too long"),
        ("wrong tone", "Wrong tone"),
    )
    (tmp_path / "r.toml").write_text("too-long = 5\n")
    with pytest.raises(UsageError, match=r"r\.toml:1: what 'too-long' means must be"):
        read_reasons(tmp_path / "r.toml")


@pytest.mark.parametrize(
    ("typed", "ids", "words"),
    [
        ("2", ["b"], ""),
        ("1 2", ["a", "b"], ""),
        ("1,2", ["a", "b"], ""),
        ("2: and dull", ["b"], "and dull"),
        ("2 pages too long", [], "2 pages too long"),
        ("Note: shorter", [], "Note: shorter"),
        ("2024", [], "2024"),
        ("", [], ""),
    ],
)
def test_numbers_pick_and_words_stay_words(typed: str, ids: list[str], words: str) -> None:
    known = read_reasons_of("a: A\nb: B\n")
    picked, rest = typed_reasons(known, typed)
    assert ([reason.id for reason in picked], rest) == (ids, words)


def read_reasons_of(text: str) -> Any:
    from hitl_tui.engine.thread.measures import Reason

    return tuple(Reason(*line.split(": ")) for line in text.splitlines())


def test_what_is_said_are_sentences() -> None:
    known = read_reasons_of("a: Too long\nb: Why?\n")
    assert reason_words(pick_reasons(known, ["b", "a"]), " Cut. ") == "Why? Too long. Cut."


def test_plain_text_mode_asks_by_number(scored: App, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talker(scored, monkeypatch)
    output = talk("d\nrevise\n1 9\n2: Cut it.\n7\n4\n\nq\n", "resume", "s", "--plain").out
    assert "1. It is too long\n2. Wrong tone!\n3. Facts are missing" in output
    assert "there is no reason '9'" in output
    assert "is not a score" in output
    assert data_of(scored) == {
        "answer": {"choice": "revise", "text": "Wrong tone! Cut it."},
        "reasons": ["wrong-tone"],
        "scores": {"accuracy": 4},
    }
