"""A store from somebody else: nothing that it names runs unless the user agrees."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hitl_tui import END, START, Channel, SQLiteCheckpointer, StateGraph
from hitl_tui.config import trust_file
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.loading.code import forget_code
from tests.cli.test_deadlines import left_waiting
from tests.support.commands import App
from tests.support.program import APP

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
def test_no_read_only_command_runs_code_named_in_a_store(
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


RUNS = (
    ("step", "t"),
    ("resume", "t", "--headless"),
    ("resume", "t", "--plain"),
    ("resume", "t", "--json"),
    ("update-state", "t", "text=x"),
    ("update-state", "t", "text=x", "--json"),
    ("fork", "t", "u"),
    ("fork", "t", "u", "text=x"),
    ("extend", "t", "max_iterations=9"),
    ("rollback", "t", "--yes"),
    ("verify", "t", "--strict"),
    ("replay", "t"),
    ("approve", "t"),
    ("answer", "t", "1-write", "approve", "--step", "0"),
    ("agents", "t"),
)
"""Commands that run a thread, or build its graph to do something with it."""
LOOKS_FIRST = (("resume", "t", "--plain"), ("rollback", "t", "--yes"), ("agents", "t"))
"""Commands of these that look at a thread, and build its graph only to change something."""
NOTHING_BUILT = (("pause", "t"), ("cancel", "t"))


@pytest.mark.parametrize("kind", range(4), ids=["os:system", "a file", "a graph file", "a module"])
@pytest.mark.slow
def test_no_command_runs_code_named_in_a_store_without_consent(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    monkeypatch.chdir(tmp_path)
    file = planted(tmp_path, sources(tmp_path)[kind])
    before = app.expect(0, "log", "t", "--json", "--store", str(file)).out
    for arguments in RUNS:
        done = app(*arguments, "--store", str(file))
        assert done.code != 0 or arguments in LOOKS_FIRST, arguments
        assert not (tmp_path / "PWNED").exists(), arguments
    for arguments in NOTHING_BUILT:
        app(*arguments, "--store", str(file))
    assert not (tmp_path / "PWNED").exists()
    assert app.expect(0, "log", "t", "--json", "--store", str(file)).out == before


@pytest.mark.parametrize("arguments", [RUNS[0], RUNS[1], RUNS[4], RUNS[10], RUNS[11]], ids=" ".join)
def test_a_refusal_says_how_to_trust_the_code(app: App, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    file = planted(tmp_path, {"graph": str(tmp_path / "evil.py"), "options": {"api_base": "http://evil"}})
    sources(tmp_path)
    stderr = app.expect(2, *arguments, "--store", str(file)).err
    assert "The graph is not trusted: you have not run this graph from this store yet" in stderr
    assert f"file: {tmp_path / 'evil.py'}" in stderr
    assert "option api_base: http://evil" in stderr
    assert "--trust" in stderr


@pytest.mark.slow
def test_a_source_that_builds_no_graph_is_refused_before_it_is_called(app: App, tmp_path: Path) -> None:
    file = planted(tmp_path, sources(tmp_path)[0])
    stderr = app.expect(2, "update-state", "t", "text=x", "--trust", "--store", str(file)).err
    assert "isn't declared to build a graph" in stderr
    app.expect(2, "run", "os:system", "--headless", "--store", str(file))
    assert not (tmp_path / "PWNED").exists()


GRAPH = """
from pathlib import Path
from hitl_tui import END, START, Channel, StateGraph
with Path(__file__).with_name("BUILT").open("a") as built:
    built.write("x")
graph = StateGraph({"text": Channel("")}, name="sent")
graph.add_node("write", lambda state: {"text": state["text"] + "a"})
graph.add_node("more", lambda state: {"text": state["text"] + "b"})
graph.add_edge(START, "write").add_edge("write", "more").add_edge("more", END)
"""


def sent(app: App, folder: Path) -> list[str]:
    """A store with a thread at step 1 that another user ran, and the graph beside it; gives --store FILE."""
    (folder / "flow.py").write_text(GRAPH)
    store = ["--store", str(folder / "sent.db")]
    app.expect(3, "run", str(folder / "flow.py"), "--headless", "--break", "more", "--thread", "t", *store)
    forget_code(folder)
    trust_file().unlink()
    (folder / "BUILT").unlink()
    return store


@pytest.mark.slow
def test_trusted_code_runs_and_stays_trusted(app: App, tmp_path: Path) -> None:
    store = sent(app, tmp_path)
    app.expect(2, "fork", "t", "u", *store)
    assert not (tmp_path / "BUILT").exists()
    app.expect(0, "fork", "t", "u", "--trust", *store)
    assert (tmp_path / "BUILT").exists()
    app.expect(0, "resume", "t", "--headless", *store)
    assert "“ab”" in app.expect(0, "show", "t", *store).out


@pytest.mark.slow
def test_your_own_file_is_edited_and_resumed_without_asking(app: App, tmp_path: Path) -> None:
    file = tmp_path / "flow.py"
    file.write_text(GRAPH)
    store = ["--store", str(tmp_path / "own.db")]
    app.expect(3, "run", str(file), "--headless", "--break", "more", "--thread", "t", *store)
    for edit in ("# edited\n", "import helper\n"):
        (tmp_path / "helper.py").write_text("")
        file.write_text(edit + GRAPH)
        forget_code(tmp_path)
        app.expect(0, "update-state", "t", f'text="{edit.strip()}"', *store)
    app.expect(0, "resume", "t", "--headless", *store)


@pytest.mark.slow
def test_a_file_that_others_may_write_is_asked_about_again_when_it_changed(app: App, tmp_path: Path) -> None:
    file = tmp_path / "flow.py"
    file.write_text(GRAPH)
    file.chmod(0o666)
    store = ["--store", str(tmp_path / "own.db")]
    app.expect(3, "run", str(file), "--headless", "--break", "more", "--thread", "t", *store)
    app.expect(0, "update-state", "t", "text=x", *store)
    file.write_text("open('PWNED', 'w')\n" + GRAPH)
    forget_code(tmp_path)
    stderr = app.expect(2, "step", "t", *store).err
    assert "others than you may write them" in stderr
    assert f"changed: {file}" in stderr
    assert not (tmp_path / "PWNED").exists()
    forget_code(tmp_path)
    file.write_text(GRAPH)
    app.expect(0, "step", "t", *store)


@pytest.mark.slow
def test_a_copied_store_is_another_store(app: App, tmp_path: Path) -> None:
    store = sent(app, tmp_path)
    app.expect(0, "fork", "t", "u", "--trust", *store)
    shutil.copy(tmp_path / "sent.db", tmp_path / "copy.db")
    app.expect(2, "step", "t", "--store", str(tmp_path / "copy.db"))


@pytest.mark.slow
def test_naming_the_graph_is_trust(app: App, tmp_path: Path) -> None:
    store = sent(app, tmp_path)
    app.expect(0, "step", "t", "--graph", str(tmp_path / "flow.py"), *store)
    app.expect(0, "fork", "t", "u", *store)


@pytest.mark.slow
def test_a_passed_deadline_does_not_build_untrusted_code(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_waiting(tmp_path, "approve", monkeypatch)
    text = (tmp_path / "late.py").read_text()
    (tmp_path / "late.py").write_text(f"open({str(tmp_path / 'PWNED')!r}, 'w').close()\n{text}")
    forget_code(tmp_path)
    assert "expired" in app.expect(0, "show", "t").out
    app.expect(0, "pause", "t")
    assert not (tmp_path / "PWNED").exists()
    app.expect(2, "resume", "t", "--headless")
    assert not (tmp_path / "PWNED").exists()
    assert "expired" in app.expect(0, "show", "t").out
    app.expect(0, "resume", "t", "--headless", "--trust")
    assert "approved" in app.expect(0, "show", "t").out


def test_an_imported_thread_names_no_code_to_run(app: App, tmp_path: Path) -> None:
    file = planted(tmp_path, sources(tmp_path)[1])
    store = ["--store", str(file)]
    app.expect(0, "export", "t", str(tmp_path / "t.jsonl"), "--private", *store)
    app.expect(0, "import", str(tmp_path / "t.jsonl"), "--thread", "new", *store)
    with sqlite3.connect(file) as db:
        (kept,) = db.execute("SELECT source FROM thread WHERE id = 'new'").fetchone()
    assert msgspec.json.decode(kept) == {}
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("reducer", ["evil:fold", 'by_type({"a":"evil:fold"})'])
def test_no_read_only_command_imports_a_reducer_named_in_a_record(
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
    result = app("show", "t", "--store", str(file))
    assert result.code != 0
    assert "evil:fold" in result.err


@pytest.mark.integration
def test_nothing_in_the_current_directory_is_read_or_imported(tmp_path: Path) -> None:
    mark = tmp_path / "PWNED"
    for name in ("msgspec.py", "click.py", "sitecustomize.py", "usercustomize.py", "litellm.py"):
        (tmp_path / name).write_text(f"open({str(mark)!r}, 'w').close()\n")
    (tmp_path / "config.toml").write_text('api_base = "http://elsewhere"\n')
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "planted.toml").write_text('name = "planted"\n')
    for program in ([sys.executable, "-m", "hitl_tui"], APP):
        for arguments in (["threads"], ["config"], ["themes"], ["run", "counter", "--headless"]):
            done = subprocess.run(
                [*program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
            )
            assert "elsewhere" not in done.stdout
            assert "planted" not in done.stdout
            assert not mark.exists(), (program, arguments)


@pytest.mark.integration
def test_a_file_env_names_no_server_for_a_key(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://elsewhere\n")
    code = (
        "import os; from hitl_tui.agents.litellm_backend import preload; preload().result();"
        "print(os.environ.get('OPENAI_BASE_URL'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "None"


def test_a_workflow_of_ours_imports_nothing_from_the_directory_of_a_record(app: App, tmp_path: Path) -> None:
    mark = tmp_path / "PWNED"
    for name in ("random.py", "hitl_tui.py", "litellm.py"):
        (tmp_path / name).write_text(f"open({str(mark)!r}, 'w').close()\n")
    file = planted(tmp_path, {"graph": "hitl_tui.workflows.demo:build", "directory": str(tmp_path)})
    app("update-state", "t", "text=x", "--store", str(file))
    assert not mark.exists()
    assert str(tmp_path) not in sys.path
