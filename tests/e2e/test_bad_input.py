"""Bad input of every kind: what is said, the exit code, and that nothing is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commands import App, close_log
from tests.support.hostile import unexpected
from tests.support.openai_server import Hang, Refuse, openai_server
from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
APP = [str(Path(sys.executable).with_name("hitl-tui"))]
COUNTER = str(ROOT / "sample_graphs" / "counter.py")
ADVISOR = str(ROOT / "sample_graphs" / "advisor.py")


def call(*arguments: str, cwd: Path, **options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*APP, *arguments],
        cwd=cwd,
        env={**os.environ, **options},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


@pytest.fixture
def app(capsys: pytest.CaptureFixture[str]) -> Iterator[App]:
    yield App(capsys)
    close_log()


# GRAPH and its code

FILES = {
    "missing_import.py": "import no_such_library\n",
    "syntax.py": "graph = (\n",
    "exits.py": "import sys\nsys.exit(7)\n",
    "no_graph.py": "x = 1\n",
    "not_built.py": (
        "from hitl_tui import StateGraph, Channel, START\n"
        "graph = StateGraph({'a': Channel(0)}).add_node('n', lambda s: {}).add_edge(START, 'm')\n"
    ),
    "recursion.py": "def graph():\n    return graph()\n",
    "wrong_type.py": "graph = 3\n",
    "not_utf8.py": b"x = '\xff'\n",
    "broken.toml": "[channels\n",
}
CODE = [
    (
        "missing_import.py",
        "ModuleNotFoundError: No module named 'no_such_library'",
        'missing_import.py", line 1',
    ),
    ("syntax.py", "SyntaxError", 'syntax.py", line 1'),
    ("exits.py", "SystemExit: 7", 'exits.py", line 2'),
    ("no_graph.py", "has no graph", "no_graph.py:NAME"),
    ("not_built.py", "The graph can't be built", "'m'"),
    ("recursion.py", "RecursionError", 'recursion.py", line 2'),
    ("wrong_type.py", "type int", "StateGraph"),
    ("not_utf8.py", "SyntaxError", "not_utf8.py"),
    ("broken.toml", "broken.toml:1:10", "TOML"),
    (".", "doesn't name a graph", "module:attribute"),
    ("no.such.module:graph", "there is no module", "path/to/file.py"),
]


@pytest.mark.parametrize(("graph", "what", "where"), CODE, ids=[row[0] for row in CODE])
def test_a_graph_that_can_not_be_had(graph: str, what: str, where: str, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    done = call("run", graph, "--headless", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("hitl-tui: ")
    assert what in done.stderr
    assert where in done.stderr
    assert "hitl_tui/" not in done.stderr.replace("hitl_tui/sample", "")
    assert "unexpected" not in done.stderr
    assert len(done.stderr) < 4_000
    assert done.stdout == ""


INPUTS = [
    (["limt=2"], "'limt'", "limit"),
    (["limit=two"], "limit", "integer"),
    (["limit=[1]"], "limit", "integer"),
    (["limit=1e400"], "limit", ""),
    (["@none.json"], "none.json", "can't be read"),
    (["@list.json"], "list.json", "JSON object"),
    (["@broken.json"], "broken.json", "JSON object"),
    (["limit=1", "limit=2"], "limit", "twice"),
]


@pytest.mark.parametrize("row", INPUTS, ids=[" ".join(row[0]) for row in INPUTS])
def test_input_that_does_not_fit(
    row: tuple[list[str], str, str], app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, what, how = row
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "broken.json").write_text('{"limit": ')
    options = [word for text in given for word in ("--input", text)]
    done = app("run", COUNTER, "--headless", "--thread", "c", *options)
    assert done.code in (1, 2)
    assert what in done.err
    assert how in done.err
    assert "unexpected" not in done.err
    listed = app("threads")
    assert "c  " not in listed.out


# Stores


def not_ours(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipes (name)")
    other.close()


def newer(path: Path) -> None:
    with sqlite3.connect(path) as store:
        store.execute("PRAGMA user_version = 9999")
    store.close()


def truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 100)


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "holiday.jpg").write_bytes(b"\xff\xd8")


def a_picture(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n" * 300)


STORES: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "not ours": (
        lambda path: (path.unlink(), not_ours(path), None)[-1],
        ("of another program",),
    ),
    "newer": (newer, ("newer",)),
    "truncated": (truncated, ("damaged", "malformed")),
    "a directory": (a_directory, ("director", "store")),
    "a picture": (a_picture, ("not", "isn't", "no ")),
}


@pytest.mark.parametrize("damage", STORES)
def test_a_store_that_can_not_be_used(damage: str, app: App, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    app.expect(0, "run", COUNTER, "--headless", "--thread", "c", "--store", str(path))
    spoil, words = STORES[damage]
    spoil(path)
    before = contents(path)
    for arguments in (
        ("threads",),
        ("show", "c"),
        ("resume", "c", "--headless"),
        ("run", COUNTER, "--headless", "--thread", "d"),
        ("doctor",),
    ):
        done = app(*arguments, "--store", str(path))
        assert done.code in (1, 2), arguments
        said = done.err + (done.out if arguments == ("doctor",) else "")
        assert any(word in said for word in words), (arguments, said)
        assert "unexpected" not in said
    assert contents(path) == before


def contents(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return {str(one): one.read_bytes() for one in files}


def test_a_store_with_any_byte_flipped(app: App, tmp_path: Path) -> None:
    whole = tmp_path / "whole.db"
    app.expect(0, "run", COUNTER, "--headless", "--thread", "c", "--store", str(whole))
    size = whole.stat().st_size
    for place in [*range(16, 108, 9), *range(110, size, max(1, size // 40))]:
        path = tmp_path / f"{place}.db"
        data = bytearray(whole.read_bytes())
        data[place] ^= 0xFF
        path.write_bytes(data)
        for arguments in (
            ("threads",),
            ("show", "c"),
            ("log", "c"),
            ("verify", "c"),
            ("resume", "c", "--headless"),
        ):
            done = app(*arguments, "--store", str(path))
            assert done.code in (0, 1, 2, 3, 4)
            assert "unexpected" not in done.err, (place, arguments, done.err)
            assert (done.code == 0) or done.err or done.out, (place, arguments)
        path.unlink()


def test_a_files_store_with_any_byte_flipped(app: App, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    app.expect(0, "run", COUNTER, "--headless", "--thread", "c", "--store", f"files:{whole}")
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    assert files
    for name in files:
        size = (whole / name).stat().st_size
        for place in range(0, size, max(1, size // 5)):
            copy = tmp_path / "copy"
            shutil.copytree(whole, copy)
            data = bytearray((copy / name).read_bytes())
            data[place] ^= 0xFF
            (copy / name).write_bytes(data)
            for arguments in (("threads",), ("show", "c"), ("verify", "c"), ("resume", "c", "--headless")):
                done = app(*arguments, "--store", f"files:{copy}")
                assert done.code in (0, 1, 2, 3, 4)
                assert "unexpected" not in done.err, (name, place, arguments, done.err)
            shutil.rmtree(copy)


def test_a_full_disk_and_on_screen(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=False, capture_output=True
    ).returncode:
        pytest.skip("a file system can't be mounted here")
    try:
        ballast = disk / "ballast"
        with contextlib.suppress(OSError):
            ballast.write_bytes(b"\0" * 2_000_000)
        store = str(disk / "runs.db")
        done = call("run", COUNTER, "--headless", "--thread", "c", "--store", store, cwd=tmp_path)
        assert done.returncode == 1
        assert "no space is left" in done.stderr
        ballast.write_bytes(b"\0" * 850_000)
        with Terminal(
            [*APP, "run", COUNTER, "--thread", "c", "--store", store, "--input", "limit=9999"]
        ) as terminal:
            terminal.wait_for("increment is next")
            terminal.press("c")
            terminal.wait_for("no space is left")
            terminal.settle()
            terminal.press("q")
            assert terminal.wait_exit() == 0
        ballast.unlink()
        done = call("verify", "c", "--store", store, cwd=tmp_path)
        assert done.returncode == 0, done.stderr + done.stdout
        assert call("step", "c", "--store", store, cwd=tmp_path).returncode in (0, 3)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_store_that_somebody_keeps_locked(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    begun = call("run", COUNTER, "--headless", "--thread", "c", "--store", store, cwd=tmp_path)
    assert begun.returncode == 0
    holder = sqlite3.connect(store, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert call("show", "c", "--store", store, cwd=tmp_path).returncode == 0
        done = call("fork", "c@1", "d", "--store", store, cwd=tmp_path)
    finally:
        holder.close()
    assert done.returncode == 1
    assert "stayed locked by another program" in done.stderr
    assert call("fork", "c@1", "d", "--store", store, cwd=tmp_path).returncode == 0


def test_a_store_that_gets_locked_while_it_is_on_screen(app: App, tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    with Terminal(
        [*APP, "run", COUNTER, "--thread", "c", "--store", store, "--input", "limit=3"]
    ) as terminal:
        terminal.wait_for("increment is next")
        holder = sqlite3.connect(store, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        try:
            terminal.press("s")
            terminal.wait_for("stayed locked by another program")
        finally:
            holder.close()
        terminal.press("c")
        terminal.wait_for("DONE")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    assert "ok" in app.expect(0, "verify", "c", "--store", store).out


@pytest.mark.parametrize("kind", ["sqlite:///{}/runs.db", "files:{}/runs"])
def test_a_file_system_that_is_read_only(kind: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a file system can't be mounted here")
    store = kind.format(disk)
    try:
        run = ("run", COUNTER, "--headless", "--thread", "c", "--store", store)
        assert call(*run, cwd=tmp_path).returncode == 0
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for arguments in (("fork", "c@1", "d"), ("resume", "c", "--headless"), ("threads",), ("show", "c")):
            done = call(*arguments, "--store", store, cwd=tmp_path)
            assert done.returncode in (0, 1)
            assert done.returncode == 0 or "read-only" in done.stderr.lower(), done.stderr
            assert "unexpected" not in done.stderr
        assert call("fork", "c@1", "d", "--store", store, cwd=tmp_path).returncode == 1
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_what_the_first_step_on_screen_can_not_store(tmp_path: Path) -> None:
    with Terminal([*APP, "run", COUNTER, "--thread", "x" * 201], cwd=tmp_path) as terminal:
        assert terminal.wait_exit() == 2
        assert "1 to 200 characters" in " ".join(terminal.text().split())


# Terminals


def test_a_tiny_terminal_and_a_storm_of_sizes() -> None:
    with Terminal([*APP, "demo", "--pace", "0", "--thread", "tiny"], size=(20, 5)) as terminal:
        terminal.wait_for("newest")
        for key in ("s", "?", "escape", "w", "w", "t", "escape", "s", "d", "escape", "e", "escape"):
            terminal.press(key)
            # An escape with a key right behind it would be alt and that key.
            terminal.settle(0.12)
        for step in range(60):
            terminal.resize(*((1, 1), (20, 5), (200, 60), (7, 40), (120, 3))[step % 5])
            terminal.press("w" if step % 7 == 0 else "")
        terminal.resize(120, 40)
        terminal.press("escape")
        terminal.settle()
        terminal.wait_for("WAITING")
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_bytes_that_are_no_text_are_typed_and_pasted() -> None:
    with Terminal([*APP, "demo", "--pace", "0", "--thread", "bytes"]) as terminal:
        terminal.wait_for("worker is next")
        terminal.send(b"\xff\xc3(\x1b[M\xe1\xe2\xe3")
        terminal.press("e")
        terminal.wait_for("Becomes step 1")
        terminal.send(b"a\xffb\x1b[200~" + "\u202e[red][/]\x05\x9b31m".encode() + b"\xfe\x1b[201~")
        terminal.wait_for("[red][/]")
        terminal.settle()
        assert not unexpected(bytes(terminal.raw))
        terminal.press("escape")
        terminal.wait_for("Drop the changes?")
        terminal.press("d")
        terminal.wait_for("worker is next")
        terminal.press("q")
        assert terminal.wait_exit() == 0


# Models

MODEL = ("--model", "openai/gpt-4o-mini", "--input", "task=x", "--headless", "--thread", "m")


@pytest.mark.parametrize("trouble", ["no key", "refused", "no server"])
def test_a_model_that_does_not_answer(trouble: str, tmp_path: Path) -> None:
    keys = {"OPENAI_API_KEY": "" if trouble == "no key" else "sk-wrong"}
    with openai_server() as server:
        server.plan(*[Refuse(401, "Incorrect API key provided: sk-wrong")] * 4)
        address = {"refused": server.api_base, "no server": "http://127.0.0.1:9"}.get(trouble)
        base = ("--api-base", address) if address else ()
        done = call("run", ADVISOR, *MODEL, *base, cwd=tmp_path, **keys)
    assert done.returncode in (1, 2)
    said = done.stderr + done.stdout
    words = {"no key": "OPENAI_API_KEY", "refused": "key", "no server": "openai"}
    assert words[trouble] in said
    assert "sk-wrong" not in said
    assert "Traceback" not in said
    assert call("show", "m", cwd=tmp_path).returncode in (0, 2)


def test_a_model_that_hangs_can_be_left(tmp_path: Path) -> None:
    with openai_server() as server:
        server.plan(Hang(), Hang(), Hang(), Hang())
        argv = [*APP, "run", ADVISOR, "--model", "openai/gpt-4o-mini", "--api-base", server.api_base]
        with Terminal(
            [*argv, "--input", "task=x", "--thread", "m"], cwd=tmp_path, env={"OPENAI_API_KEY": "sk-x"}
        ) as terminal:
            terminal.wait_for("worker is next")
            terminal.press("s")
            terminal.wait_for("worker · ")
            os.kill(terminal.pid, signal.SIGTERM)
            assert terminal.wait_exit() == 128 + signal.SIGTERM
            assert "nothing of it was committed" in " ".join(terminal.text().split())


# The clock

JUMPING = """
import itertools, sys, time
real, calls = time.time_ns, itertools.count()
time.time_ns = lambda: real() - next(calls) * 3_600_000_000_000
from hitl_tui.cli.main import main
sys.argv = ["hitl-tui", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("kind", ["sqlite:///runs.db", "files:runs"])
def test_a_clock_that_jumps_back(kind: str, tmp_path: Path) -> None:
    def jumping(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-c", JUMPING, *arguments, "--store", kind],
            cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip

    assert jumping("step", "c").returncode == 2
    done = jumping("run", COUNTER, "--headless", "--thread", "c", "--input", "limit=5")
    assert done.returncode == 0, done.stderr
    for arguments in (("threads",), ("show", "c"), ("log", "c"), ("verify", "c"), ("fork", "c@2", "d")):
        done = jumping(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_damaged_thread_on_screen_is_told_and_another_one_can_be_opened(app: App, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    for thread in ("good", "bad"):
        app.expect(0, "run", COUNTER, "--headless", "--thread", thread, "--store", str(path))
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "UPDATE checkpoint SET state_hash = x'00' WHERE id = (SELECT max(id) FROM checkpoint)"
        )
    with Terminal([*APP, "resume", "bad", "--store", str(path)]) as terminal:
        terminal.wait_for("This thread can't be opened")
        terminal.wait_for("the log rebuilds another state at step")
        terminal.wait_for("state_hash")
        terminal.press("enter", "t")
        terminal.wait_for("good")
        terminal.press("/", *"good", "enter", "enter")
        terminal.wait_for("thread good")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    with Terminal([*APP, "resume", "bad", "--store", str(path)]) as terminal:
        terminal.wait_for("state_hash")
        terminal.press("q")
        assert terminal.wait_exit() == 1
        assert "the log rebuilds another state" in terminal.text()
