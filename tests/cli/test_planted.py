"""A store that somebody sent: looking at its threads runs nothing that it names."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest

from hitl_tui import END, START, Channel, SQLiteCheckpointer, StateGraph
from hitl_tui.engine.runner import GraphRunner
from tests.support.commands import App

LOOKS = (
    ("show", "t"),
    ("log", "t"),
    ("diff", "t@0", "t"),
    ("blame", "t", "text"),
    ("cost", "t"),
    ("taint", "t"),
    ("graph", "--thread", "t"),
    ("threads",),
    ("verify", "t"),
    ("export", "t"),
)


def planted(folder: Path, source: dict[str, object]) -> Path:
    """A store with a thread `t` whose record names what builds its graph."""
    file = folder / "sent.db"
    store = SQLiteCheckpointer(file)
    graph = StateGraph({"text": Channel(""), "key": Channel("SECRET", visibility="private")}, name="sent")
    graph.add_node("write", lambda state: {"text": "hello"}).add_edge(START, "write").add_edge("write", END)
    runner: GraphRunner = graph.compile(checkpointer=store)
    runner.with_store(store, source).invoke(thread_id="t")
    store.close()
    return file


def sources(folder: Path) -> list[dict[str, object]]:
    mark = folder / "PWNED"
    code = f"open({str(mark)!r}, 'w').close()\n"
    for name in ("evil.py", "sitecustomize.py"):
        (folder / name).write_text(code)
    (folder / "evil.toml").write_text('tools = ["evil:tool"]\n')
    return [
        {"graph": "os:system", "options": {"command": f"touch {mark}"}},
        {"graph": str(folder / "evil.py")},
        {"graph": str(folder / "evil.toml")},
        {"graph": "evil:build", "directory": str(folder)},
    ]


@pytest.mark.parametrize("kind", range(4), ids=["os:system", "a file", "a graph file", "a module"])
def test_no_look_runs_what_a_store_names(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    monkeypatch.chdir(tmp_path)
    file = planted(tmp_path, sources(tmp_path)[kind])
    for arguments in LOOKS:
        done = app.expect(0, *arguments, "--store", str(file))
        assert "SECRET" not in done.out
    assert "write -> END" in app.expect(0, "graph", "--thread", "t", "--store", str(file)).out
    assert "[private]" in app.expect(0, "show", "t", "--store", str(file)).out
    assert not (tmp_path / "PWNED").exists()


def test_what_builds_no_graph_is_refused_before_it_is_called(app: App, tmp_path: Path) -> None:
    file = planted(tmp_path, sources(tmp_path)[0])
    told = app.expect(2, "update-state", "t", "text=x", "--store", str(file)).err
    assert "isn't declared to build a graph" in told
    app.expect(2, "run", "os:system", "--headless", "--store", str(file))
    assert not (tmp_path / "PWNED").exists()


def test_an_import_brings_no_word_of_what_to_run(app: App, tmp_path: Path) -> None:
    file = planted(tmp_path, sources(tmp_path)[1])
    store = ["--store", str(file)]
    app.expect(0, "export", "t", str(tmp_path / "t.jsonl"), "--private", *store)
    app.expect(0, "import", str(tmp_path / "t.jsonl"), "--thread", "new", *store)
    with sqlite3.connect(file) as db:
        (kept,) = db.execute("SELECT source FROM thread WHERE id = 'new'").fetchone()
    assert msgspec.json.decode(kept) == {}
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("reducer", ["evil:fold", 'by_type({"a":"evil:fold"})'])
def test_no_look_imports_a_reducer_that_a_record_names(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reducer: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    file = planted(tmp_path, sources(tmp_path)[1])
    with sqlite3.connect(file) as db:
        db.execute("UPDATE record SET reducer = ?", (reducer,))
        db.execute("DELETE FROM snapshot")
    for arguments in LOOKS:
        app(*arguments, "--store", str(file))
    assert not (tmp_path / "PWNED").exists()
    told = app("show", "t", "--store", str(file))
    assert told.code != 0
    assert "evil:fold" in told.err
