"""`decide`: the same answer to many requests, after a look at the list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from tests.support import rich_queue
from tests.support.commands import App


@pytest.fixture
def twelve(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    """The command line over a store in which twelve threads wait."""
    path = tmp_path / "twelve.db"
    store = SQLiteCheckpointer(path)
    rich_queue.fill(store)
    store.close()
    monkeypatch.setenv("HITL_TUI_STORE", str(path))
    return app


def waiting(app: App) -> set[str]:
    """The threads that ask something."""
    rows = app.expect(0, "threads", "--waiting", "--json").document["threads"]
    return {row["thread"] for row in rows if row["reason"] != "paused"}


ALL = {asking.thread for asking in rich_queue.TWELVE}


@pytest.mark.slow
def test_a_dry_run_lists_what_it_would_decide_and_why_not_the_rest(twelve: App) -> None:
    output = twelve.expect(3, "decide", "--filter", "", "--answer", "approve", "--dry-run").out
    assert re.search(
        "^blog-joins +Approve this draft\\? \\(advisor: approved\\) +approve", output, re.MULTILINE
    )
    assert re.search(r"^press-q3 +Publish the quarterly numbers\? +left: high risk", output, re.MULTILINE)
    assert "it asks for a form with 4 fields" in output
    assert waiting(twelve) == ALL


@pytest.mark.slow
def test_many_requests_are_decided_only_after_yes(twelve: App) -> None:
    refused = twelve.expect(2, "decide", "--filter", "graph:advisor", "--answer", "approve")
    assert "decide these 4: this must be confirmed" in refused.err
    assert "blog-joins" in refused.err
    assert waiting(twelve) == ALL
    done = twelve.expect(0, "decide", "--filter", "graph:advisor", "--answer", "approve", "--yes")
    assert "4 decided" in done.out
    assert re.search("^blog-joins .* approve", done.out, re.MULTILINE)
    assert done.err == ""
    assert waiting(twelve) == {name for name in ALL if not name.startswith("blog-")}
    assert twelve.expect(0, "log", "blog-joins", "--json").document["decisions"][-1]["actor"] == "tester"
    twelve.expect(0, "verify", "blog-joins", "--strict")


@pytest.mark.slow
def test_threads_are_named_or_filtered_and_json_has_a_row_for_each(twelve: App) -> None:
    order = ("decide", "memo-42", "press-q3", "--answer", "revise", "--note", "shorter", "--yes", "--json")
    document = twelve.expect(3, *order).document
    assert [(row["thread"], row["outcome"]) for row in document["decisions"]] == [
        ("memo-42", "decided"),
        ("press-q3", "left"),
    ]
    first = document["decisions"][0]
    assert first["answer"] == {"choice": "revise", "text": "shorter"}
    assert (first["step"], first["risk"], first["why"]) == (1, "normal", None)
    assert document["dry_run"] is False


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--answer", "approve"), "no requests were named"),
        (("nobody", "--answer", "approve"), "there is no thread 'nobody'"),
        (("--filter", "grph:x", "--answer", "approve"), "did you mean 'graph'"),
    ],
)
@pytest.mark.slow
def test_what_can_not_be_done_is_refused_in_words(twelve: App, words: tuple[str, ...], says: str) -> None:
    assert says in twelve.expect(2, "decide", *words).err


@pytest.mark.slow
def test_the_queue_as_text_and_json_has_the_id_and_step_of_each_request(twelve: App) -> None:
    heading, *lines = twelve.expect(0, "threads", "--waiting").out.splitlines()
    assert heading.split("  ")[0] == "ASKS"
    assert len(lines) == 12
    row = ["Publish the quarterly numbers?", "press-q3", "release", "2 h", "in 17 m", "high"]
    assert re.split("  +", lines[0])[:6] == row
    assert "1 of 2, one yes" in lines[1]
    first = twelve.expect(0, "threads", "--waiting", "--json").document["requests"][0]
    shown = twelve.expect(0, "show", "press-q3", "--json").document["standing"]["pending"][0]
    assert (first["thread"], first["request"], first["step"]) == ("press-q3", shown["id"], shown["step"])
    assert (first["risk"], first["expired"], first["claimed_by"], first["votes"]) == ("high", False, None, [])
    filtered = ("threads", "--waiting", "--filter", "graph:advisor", "--sort", "thread")
    names = [re.split("  +", line)[1] for line in twelve.expect(0, *filtered).out.splitlines()[1:]]
    assert names == ["blog-closures", "blog-indexes", "blog-joins", "blog-windows"]
    reverse = twelve.expect(0, *filtered, "--reverse").out.splitlines()[1:]
    turned = [re.split("  +", line)[1] for line in reverse]
    assert turned == names[::-1]
    assert "did you mean 'thread'" in twelve.expect(2, "threads", "--waiting", "--sort", "thred").err
    assert "did you mean 'graph'" in twelve.expect(2, "threads", "--waiting", "--filter", "grph:x").err
    assert "--waiting" in twelve.expect(2, "threads", "--sort", "due").err


@pytest.mark.slow
def test_threads_as_json_have_what_they_ask_though_nobody_wanted_the_queue(twelve: App) -> None:
    queue = twelve.expect(0, "threads", "--waiting", "--json").document["requests"]
    assert twelve.expect(0, "threads", "--json").document["requests"] == queue
    twelve.expect(0, "approve", "memo-42", "--run")
    two = twelve.expect(0, "threads", "mail", "--json").document["requests"]
    assert [row["thread"] for row in two] == ["mail-bot-1", "mail-bot-2"]
    assert twelve.expect(0, "threads", "memo", "--json").document["requests"] == []
