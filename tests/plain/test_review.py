"""Opening the most urgent request from the shell."""

from __future__ import annotations

from pathlib import Path

from tests.plain.talker import Talker
from tests.support import rich_queue
from tests.support.commands import App


def test_the_most_urgent_request_is_opened(twelve: Path, talk: Talker) -> None:
    output = talk("q\n", "review", "--plain", "--as", "ann").out
    assert f"Thread {rich_queue.MOST_URGENT}" in output
    assert "d decides." in output


def test_a_filter_chooses_among_them(twelve: Path, talk: Talker) -> None:
    output = talk("q\n", "review", "--plain", "--filter", "graph:order", "--as", "ann").out
    assert "graph order" in output


def test_where_nothing_waits_it_says_so(app: App) -> None:
    app.expect(0, "run", "counter", "--headless", "--thread", "c")
    assert app.expect(0, "review").out == "No request waits for you.\n"
    output = app.expect(0, "review", "--filter", "risk:high").out
    assert output == "No request that matches waits for you.\n"


def test_a_filter_that_can_not_be_read_is_refused(twelve: Path, app: App) -> None:
    assert "due:" in app.expect(2, "review", "--filter", "due:soonish").err
