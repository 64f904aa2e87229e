"""Several stores in one queue on the command line: `[[inbox]]`, and --store several times."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.cli.notify import SessionNotices
from hitl_tui.config import config_path, load_settings
from hitl_tui.stores import open_store
from hitl_tui.view.notices import title_bytes
from tests.cli.test_langgraph import flow
from tests.support.commands import App
from tests.support.two_stores import asking, newest_decision


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the stores support.db and finance.db, in each of which thread `t` waits."""
    monkeypatch.chdir(tmp_path)
    for name in ("support", "finance"):
        asking(tmp_path / f"{name}.db", "t")
    return tmp_path


@pytest.fixture
def configured(two: Path) -> Callable[[str], None]:
    def write(text: str) -> None:
        config_path().parent.mkdir(parents=True, exist_ok=True)
        config_path().write_text(text)

    return write


__all__ = ["flow"]

BOTH = ("--store", "support.db", "--store", "finance.db")


def test_the_queue_of_several_stores_names_the_source_of_each_row(app: App, two: Path) -> None:
    lines = app.expect(0, "threads", "--waiting", *BOTH).out.splitlines()
    assert ["support" in lines[1], "finance" in lines[2], len(lines)] == [True, True, 3]
    document = app.expect(0, "threads", "--waiting", *BOTH, "--json").document
    assert [(row["source"], row["thread"]) for row in document["requests"]] == [
        ("support", "t"),
        ("finance", "t"),
    ]
    assert len(document["threads"]) == 2
    assert document["sources"] == [
        {"name": "support", "url": "support.db", "status": "ready", "problem": None},
        {"name": "finance", "url": "finance.db", "status": "ready", "problem": None},
    ]


def test_one_store_is_no_inbox(app: App, two: Path) -> None:
    document = app.expect(0, "threads", "--waiting", "--store", "support.db", "--json").document
    assert document["sources"] == []
    assert [row["source"] for row in document["requests"]] == [None]


def test_a_source_that_is_down_is_named_and_hides_no_other(app: App, two: Path) -> None:
    done = app.expect(0, "threads", "--waiting", *BOTH, "--store", "gone.db")
    assert done.err == "gone is unavailable: there is no store gone.db\n"
    assert len(done.out.splitlines()) == 3
    document = app.expect(0, "threads", "--waiting", *BOTH, "--store", "gone.db", "--json").document
    assert document["sources"][2] == {
        "name": "gone", "url": "gone.db", "status": "unavailable", "problem": "there is no store gone.db",
    }  # fmt: skip


def test_a_filter_narrows_to_a_source(app: App, two: Path) -> None:
    document = app.expect(0, "threads", "--waiting", *BOTH, "--filter", "source:fin", "--json").document
    assert [row["source"] for row in document["requests"]] == ["finance"]


def test_several_stores_without_the_queue_are_refused(app: App, two: Path) -> None:
    assert "several stores have one queue, not one list" in app.expect(2, "threads", *BOTH).err


def test_tables_of_the_configuration_join_the_queue(app: App, configured: Callable[[str], None]) -> None:
    configured('[[inbox]]\nname = "money"\nstore = "finance.db"\n[[inbox]]\nstore = "support.db"\n')
    document = app.expect(0, "threads", "--waiting", "--json").document
    assert [source["name"] for source in document["sources"]] == ["money", "support"]
    assert {row["source"] for row in document["requests"]} == {"money", "support"}
    alone = app.expect(0, "threads", "--waiting", "--store", "support.db", "--json").document
    assert alone["sources"] == []


def test_the_store_of_the_settings_is_the_first_source(app: App, configured: Callable[[str], None]) -> None:
    configured('store = "support.db"\n[[inbox]]\nname = "money"\nstore = "finance.db"\n')
    document = app.expect(0, "threads", "--waiting", "--json").document
    assert [source["name"] for source in document["sources"]] == ["support", "money"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "a table must name a store or a server, one of the two"),
        ('store = "a.db"\nserver = "http://x"', "a table must name a store or a server, one of the two"),
        ('store = "a.db"\nasistant = "x"', "inbox.asistant: unknown key: did you mean 'assistant'?"),
        ('server = "x"', "inbox.server: must begin with http:// or https://"),
        ('store = "a.db"\nassistant = "x"', "only a server has assistants"),
        ('store = "a.db"\nname = "a"\n[[inbox]]\nstore = "b.db"\nname = "a"', "two tables have the name 'a'"),
    ],
)
def test_a_wrong_table_is_reported_with_its_place(
    app: App, configured: Callable[[str], None], table: str, said: str
) -> None:
    configured(f"[[inbox]]\n{table}\n")
    assert said in app.expect(2, "threads", "--waiting").err
    assert f"{config_path()}:" in app("threads", "--waiting").err


def test_doctor_says_which_sources_can_be_read(app: App, configured: Callable[[str], None]) -> None:
    configured('[[inbox]]\nstore = "finance.db"\n[[inbox]]\nname = "away"\nstore = "gone.db"\n')
    found = [each for each in app("doctor", "--json").document["doctor"] if each["about"] == "inbox"]
    assert [(each["value"], each["ok"]) for each in found] == [
        ("finance: can be read", True),
        ("away: there is no store gone.db", False),
    ]


def test_the_settings_show_the_inbox_without_passwords(app: App, configured: Callable[[str], None]) -> None:
    configured('[[inbox]]\nstore = "postgresql://ann:secret@db/work"\n')
    (shown,) = (row for row in app.expect(0, "config", "--json").document["config"] if row["name"] == "inbox")
    assert "secret" not in str(shown)
    assert "secret" not in app.expect(0, "config").out


def _typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    given = iter(lines)

    def ask(_prompt: str = "") -> str:
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("hitl_tui.plain.console.own_input", ask)


def test_plain_text_mode_opens_and_decides_in_the_source_of_a_row(
    app: App, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _typed(monkeypatch, "n", "n 2", "d", "approve", "", "q")
    done = app("review", *BOTH, "--store", "gone.db", "--plain", "--as", "ann")
    assert "support" in done.out
    assert "gone is unavailable" in done.out
    assert newest_decision(two / "finance.db", "t") == ("ann", "approve")
    assert newest_decision(two / "support.db", "t") is None


def test_review_opens_the_most_urgent_request_of_all_stores(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asking(tmp_path / "finance.db", "invoice")
    asking(tmp_path / "support.db", "reply")
    _typed(monkeypatch, "q")
    done = app("review", *BOTH, "--plain")
    assert "invoice" in done.out
    assert "hitl-tui resume invoice --store finance.db" in done.out


def test_the_command_that_continues_names_the_store_of_the_thread(
    app: App, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _typed(monkeypatch, "n", "n 2", "q")
    done: Any = app("review", *BOTH, "--plain")
    assert "hitl-tui resume t --store finance.db" in done.out


THEIRS = ("--store", "support.db", "--store", "langgraph:flow.py")


def test_threads_of_langgraph_are_in_the_same_queue(flow: App, tmp_path: Path) -> None:
    asking(tmp_path / "support.db", "t")
    document = flow.expect(0, "threads", "--waiting", *THEIRS, "--json").document
    requests = [(row["source"], row["thread"]) for row in document["requests"]]
    assert requests == [("flow.py", "t"), ("support", "t")]
    assert [source["url"] for source in document["sources"]] == ["support.db", "langgraph:flow.py"]


def test_a_request_of_langgraph_is_answered_from_the_queue_of_several_stores(
    flow: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking(tmp_path / "support.db", "s")
    _typed(monkeypatch, "n", "n 1", "d", "yes", "", "q")
    done = flow("review", "--filter", "thread:s", *THEIRS, "--plain")
    assert "Is it good?: t of flow" in done.out
    shown = flow.expect(0, "show", "t", "--json", "--store", "langgraph:flow.py").document
    assert shown["standing"]["pending"] == []


def test_a_session_watches_all_open_stores(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    written: list[str] = []
    news = threading.Condition()

    def write(text: str) -> None:
        with news:
            written.append(text)
            news.notify()

    settings = load_settings()
    notices = SessionNotices(settings, lambda error: None)
    with closing(open_store("support.db")) as support, closing(open_store("finance.db")) as finance:
        notices.add(support, settings)
        stop = notices.start(write, lambda notice: False)
        with news:
            assert news.wait_for(lambda: title_bytes(1) in written, 30)
        notices.add(finance, settings, "finance")
        with news:
            assert news.wait_for(lambda: title_bytes(2) in written, 30)
        stop()
