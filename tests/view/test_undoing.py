"""Rollback entries and findings in words."""

from __future__ import annotations

from typing import Any, get_args

from hitl_tui.engine.audit.findings import Kind, Mismatch
from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.view.findings import MEANING, finding_line, finding_row
from hitl_tui.view.rollback import entry_line, entry_rows, remaining, summary
from hitl_tui.view.spans import plain_text
from tests.support.spec import spec

pytestmark = spec("13")


def entry(node: str, state: Any, **facts: Any) -> RollbackEntry:
    return RollbackEntry(2, 0, 1, node, f"cancel_{node}", {"ref": 1}, state, **facts)


ENTRIES = (
    entry("car", "done"),
    entry("hotel", "failed", error="it is \x1b[2Jdown"),
    entry("flight", "open"),
    entry("visa", "inherited"),
)


def test_each_entry_says_what_it_undoes_and_its_status() -> None:
    assert [entry_line(one) for one in ENTRIES] == [
        'car of step 2: cancel_car({"ref": 1}): undone',
        'hotel of step 2: cancel_hotel({"ref": 1}): failed, it is ␛[2Jdown',
        'flight of step 2: cancel_flight({"ref": 1})',
        'visa of step 2: cancel_visa({"ref": 1}): done before the fork; only the other thread can undo it',
    ]


def test_the_rows_say_which_handler_runs() -> None:
    rows = [plain_text(row) for row in entry_rows(ENTRIES, "<rollback>/hotel")]
    assert rows[2] == " 2 ▶ hotel  step 2  runs now"
    assert not any("\x1b" in row for row in rows)


def test_the_summary_counts() -> None:
    assert summary(ENTRIES) == "1 undone, 1 to undo, 1 failed, 1 of the other thread"
    assert [one.node for one in remaining(ENTRIES)] == ["hotel", "flight"]
    assert summary(()) == "nothing to undo"


def test_every_kind_of_finding_is_explained() -> None:
    assert set(MEANING) == set(get_args(Kind))


def test_a_finding_is_one_harmless_line() -> None:
    one = Mismatch("value", 4, 2, "dra\x1b[2Jft", "next_hash", "a\nb", None)
    assert finding_line(one).startswith("value: step 2, seq 4, channel dra")
    assert finding_line(one).endswith("next_hash: expected a↵b, found nothing") or "\n" not in finding_line(
        one
    )
    assert "\x1b" not in finding_line(one) + plain_text(finding_row(one))


def test_a_finding_of_a_thread_inside_names_it() -> None:
    one = Mismatch("gap", None, 2, None, "step", 2, None, thread="t/team#1")
    assert finding_line(one) == "gap: t/team#1, step 2: step: expected 2, found nothing"


def test_an_entry_of_a_thread_inside_names_it() -> None:
    one = entry("spa", "open", thread="t/team#1")
    assert entry_line(one) == 'spa of step 2 in t/team#1: cancel_spa({"ref": 1})'
    rows = [plain_text(row) for row in entry_rows([one], "<rollback>/spa", "t/team#1")]
    assert rows[0] == " 1 ▶ spa  step 2  runs now  in t/team#1"
    assert "runs now" not in plain_text(entry_rows([one], "<rollback>/spa")[0])
