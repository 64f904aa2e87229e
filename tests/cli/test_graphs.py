"""`graphs`: what a thread can be started of."""

from __future__ import annotations

import pytest

from tests.cli.test_batch_decisions import twelve
from tests.support import rich_queue
from tests.support.commands import App

__all__ = ["twelve"]


@pytest.mark.slow
def test_graphs_of_threads_come_first_and_run_accepts_each(twelve: App) -> None:
    rows = twelve.expect(0, "graphs", "--json").document["graphs"]
    assert {row["name"] for row in rows[:9]} == {asking.graph for asking in rich_queue.TWELVE}
    assert all(row["origin"].startswith("as thread ") for row in rows[:9])
    assert {row["origin"] for row in rows[-5:]} == {"a sample"}
    (order,) = [row for row in rows if row["graph"].endswith("queue_graphs.py:order")]
    twelve.expect(3, "run", order["graph"], "--headless", "--thread", "new", "--input", "topic=a boat")
    assert "new" in twelve.expect(0, "threads", "new").out


def test_samples_are_listed_before_any_store_exists(app: App) -> None:
    rows = app.expect(0, "graphs", "adv", "isor", "--json").document["graphs"]
    assert [(row["name"], row["origin"]) for row in rows] == [("advisor", "a sample")]
    assert "there is no store" in app.expect(2, "graphs", "--store", "none.db").err


@pytest.mark.slow
def test_a_word_filters_by_name_and_file(twelve: App) -> None:
    heading, *rows = twelve.expect(0, "graphs", "webpage").out.splitlines()
    assert heading.split() == ["GRAPH", "KNOWN", "RUN", "TAKES"]
    assert [row.split()[0] for row in rows] == ["webpage", "webpage"]
    assert twelve.expect(0, "graphs", "nothing-such").out == "no graph matches\n"
