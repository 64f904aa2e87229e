"""Stores that are none of ours, or not whole: what is said, the exit code, and that nothing is changed."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.program import APP, COUNTER
from tests.support.terminal import Terminal


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
                assert "this is a bug" not in done.err, (name, place, arguments, done.err)
            shutil.rmtree(copy)


def damage_newest(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "UPDATE checkpoint SET hashes = zeroblob(length(hashes)) "
            "WHERE id = (SELECT max(id) FROM checkpoint)"
        )


def choose(terminal: Terminal, thread: str) -> None:
    """Open a thread from the list of threads."""
    terminal.press("t")
    terminal.wait_for("search: part of a name")
    terminal.press("/", *thread, "enter", "enter")


def test_a_damaged_thread_is_reported_on_screen_and_another_one_can_be_opened(
    app: App, tmp_path: Path
) -> None:
    path = tmp_path / "runs.db"
    for thread in ("good", "bad"):
        app.expect(0, "run", COUNTER, "--headless", "--thread", thread, "--store", str(path))
    damage_newest(path)
    with Terminal([*APP, "resume", "bad", "--store", str(path)]) as terminal:
        terminal.wait_for("This thread can't be opened")
        terminal.wait_for("was changed in the store, and not by hitl-tui")
        terminal.wait_for("state_hash")
        terminal.press("enter")
        choose(terminal, "good")
        terminal.wait_for("thread good")
        terminal.press("q")
        assert terminal.wait_exit() == 0
    with Terminal([*APP, "resume", "bad", "--store", str(path)]) as terminal:
        terminal.wait_for("state_hash")
        terminal.press("q")
        assert terminal.wait_exit() == 1
        assert "was changed in the store" in terminal.text()


def test_a_damaged_thread_opened_from_another_one_is_reported_with_the_key_to_go_back(
    app: App, tmp_path: Path
) -> None:
    path = tmp_path / "runs.db"
    for thread in ("good", "fine", "bad"):
        app.expect(0, "run", COUNTER, "--headless", "--thread", thread, "--store", str(path))
    damage_newest(path)
    with Terminal([*APP, "resume", "good", "--store", str(path)]) as terminal:
        terminal.wait_for("thread good")
        choose(terminal, "bad")
        terminal.wait_for("This thread can't be opened")
        terminal.wait_for("state_hash")
        terminal.wait_for("esc Back")
        terminal.press("q")
        terminal.wait_for("thread good")
        choose(terminal, "bad")
        terminal.wait_for("state_hash")
        choose(terminal, "fine")
        terminal.wait_for("thread fine")
        terminal.press("q")
        assert terminal.wait_exit() == 0
