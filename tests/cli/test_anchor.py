"""`anchor` writes a line, `verify --anchor` reads it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.support.commands import App


def test_a_thread_is_checked_against_lines_kept_elsewhere(review: App, tmp_path: Path) -> None:
    kept = tmp_path / "anchors.jsonl"
    kept.write_text(review.expect(0, "anchor", "r").out)
    review.expect(0, "verify", "r", "--anchor", str(kept))
    kept.write_text(kept.read_text().replace('"checkpoint_hash": "sha256:', '"checkpoint_hash": "sha256:00'))
    found = review.expect(1, "verify", "r", "--anchor", str(kept), "--json").document["mismatches"]
    assert [(one["kind"], one["field"]) for one in found] == [("anchor", "checkpoint_hash")]


def test_lines_are_read_from_stdin(review: App, monkeypatch: pytest.MonkeyPatch) -> None:
    line = review.expect(0, "anchor", "r").out
    for text, code in ((line, 0), (line.replace('"ledger_hash": "', '"ledger_hash": "0'), 1), ("", 2)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        review.expect(code, "verify", "r", "--anchor", "-")


def test_a_file_without_an_anchor_is_a_usage_error(review: App, tmp_path: Path) -> None:
    kept = tmp_path / "anchors.jsonl"
    for text in ("", "no\n", '{"thread": "r"}\n'):
        kept.write_text(text)
        review.expect(2, "verify", "r", "--anchor", str(kept))
    review.expect(2, "verify", "r", "--anchor", str(tmp_path / "none"))
