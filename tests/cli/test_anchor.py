"""`anchor` writes a line, `verify --anchor` reads it."""

from __future__ import annotations

import io
import json
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.cli import output
from hitl_tui.cli.output import progress
from tests.engine.run.booking import World
from tests.engine.run.nested_trip import DESK, TEAM, nested
from tests.support.commands import App


def test_a_thread_is_checked_against_lines_kept_elsewhere(review: App, tmp_path: Path) -> None:
    kept = tmp_path / "anchors.jsonl"
    kept.write_text(review.expect(0, "anchor", "r").out)
    review.expect(0, "verify", "r", "--anchor", str(kept))
    kept.write_text(kept.read_text().replace('"checkpoint_hash":"sha256:', '"checkpoint_hash":"sha256:00'))
    found = review.expect(1, "verify", "r", "--anchor", str(kept), "--json").document["mismatches"]
    assert [(one["kind"], one["field"]) for one in found] == [("anchor", "checkpoint_hash")]


def test_the_anchor_of_a_subgraph_thread_detects_that_it_was_rewritten(app: App, tmp_path: Path) -> None:
    """No hash of a thread covers the log of a thread inside it, so that has an anchor of its own."""
    for name in ("kept.db", "anew.db"):
        with closing(SQLiteCheckpointer(tmp_path / name, "none")) as store:
            nested(store, World()).invoke({"note": name}, thread_id="t")
    lines = app.expect(0, "anchor", "t", "--store", str(tmp_path / "kept.db")).out.splitlines()
    assert [json.loads(line)["thread"] for line in lines] == ["t", TEAM, DESK]
    known = tmp_path / "anchors.jsonl"
    known.write_text("\n".join(lines))
    app.expect(0, "verify", "t", "--store", str(tmp_path / "kept.db"), "--anchor", str(known))
    own = app.expect(0, "anchor", "t", "--store", str(tmp_path / "anew.db")).out.splitlines()
    known.write_text("\n".join([own[0], lines[1], own[2]]))
    done = app.expect(
        1, "verify", "t", "--store", str(tmp_path / "anew.db"), "--anchor", str(known), "--json"
    )
    assert {(one["kind"], one["thread"]) for one in done.document["mismatches"]} == {("anchor", TEAM)}


def test_lines_are_read_from_stdin(review: App, monkeypatch: pytest.MonkeyPatch) -> None:
    line = review.expect(0, "anchor", "r").out
    for text, code in ((line, 0), (line.replace('"ledger_hash":"', '"ledger_hash":"0'), 1), ("", 2)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        review.expect(code, "verify", "r", "--anchor", "-")


def test_a_file_without_an_anchor_is_a_usage_error(review: App, tmp_path: Path) -> None:
    kept = tmp_path / "anchors.jsonl"
    for text in ("", "no\n", '{"thread": "r"}\n'):
        kept.write_text(text)
        review.expect(2, "verify", "r", "--anchor", str(kept))
    review.expect(2, "verify", "r", "--anchor", str(tmp_path / "none"))


def test_a_log_is_checked_from_an_anchor_on(review: App, tmp_path: Path) -> None:
    kept = tmp_path / "anchors.jsonl"
    line = review.expect(0, "anchor", "r").out
    kept.write_text(line)
    step = json.loads(line)["step"]
    said = review.expect(0, "verify", "r", "--anchor", str(kept), "--since", str(step)).out
    assert f"of step {step} and after it; the anchor vouches for the steps before it" in said
    document = review.expect(0, "verify", "r", "--anchor", str(kept), "--since", str(step), "--json").document
    assert (document["since"], document["checkpoints"]) == (step, 1)
    for wrong in (["--since", str(step)], ["--since", str(step + 1), "--anchor", str(kept)]):
        review.expect(2, "verify", "r", *wrong)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_progress_bar_is_drawn_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_BAR_AFTER", 0)
    for screen, as_json, drawn in (
        (Screen(), False, True),
        (Screen(), True, False),
        (io.StringIO(), False, False),
    ):
        monkeypatch.setattr(output, "own_err", lambda screen=screen: screen)
        with progress("verifying", as_json=as_json) as far:
            for step in (0, 256, 512) if far else ():
                far(step, 768)
        assert ("verifying" in screen.getvalue() and "100%" in screen.getvalue()) is drawn


def test_quick_work_draws_no_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(output, "own_err", lambda: screen)
    with progress("verifying", as_json=False) as far:
        assert far is not None
        far(0, 10)
    assert screen.getvalue() == ""
