"""No change of a store passes: `verify` finds it, or it is shown nowhere (SPEC 12).

Each column of each table, each leaf of the JSON in them, each row and each file is changed, deleted, copied
and swapped.  The core run takes a sample of the rows; `-m slow` takes them all.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from hitl_tui.engine.verification.verify_tree import verify_tree
from hitl_tui.errors import HitlError
from hitl_tui.stores import Checkpointer, FileCheckpointer, SQLiteCheckpointer
from tests.engine_verify.rich import fill, outputs

TABLES = (
    "graph",
    "thread",
    "cursor",
    "record",
    "checkpoint",
    "ledger",
    "snapshot",
    "spending",
    "lease",
    "pause",
)
"""All tables of a store file; a test compares them with the file's own."""

SAMPLE = 2
"""How many rows of a table the core run changes."""


class Stored(NamedTuple):
    """A store at rest, and what can be read of it."""

    path: Path
    names: list[str]
    shown: list[Any]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return stored(SQLiteCheckpointer, tmp_path_factory.mktemp("rich") / "runs.db")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return stored(FileCheckpointer, tmp_path_factory.mktemp("rich") / "runs")


def stored(kind: Callable[[Path], Checkpointer], path: Path) -> Stored:
    with closing(kind(path)) as store:
        fill(store)
        names = sorted(row.info.thread_id for row in store.threads("", 999))
        assert undetected(store, names, []) is not None
        return Stored(path, names, outputs(store, names))


def undetected(store: Checkpointer, names: list[str], shown: list[Any]) -> list[Any] | None:
    """What is shown in place of `shown` though no check finds a thing; None where one does, or nothing is."""
    try:
        if any(verify_tree(store, name).mismatches for name in names):
            return None
        now = outputs(store, names)
    except HitlError:
        return None
    return now if now != shown else None


def changed(value: Any) -> Iterator[Any]:
    """Other values of a column."""
    match value:
        case None:
            yield from (1, "x", b"[]")
        case bytes():
            yield from leaves(value)
            yield value[:-1]
            yield bytes([value[0] ^ 1]) + value[1:] if value else b"x"
        case str():
            yield from (f"{value}x", value[:-1] if value else "node", value.upper())
        case _:
            yield from (value + 1, -value - 1)
    if value is not None:
        yield None


def leaves(text: bytes) -> Iterator[bytes]:
    """JSON with one leaf changed, taken away or given twice; nothing where it is no JSON."""
    try:
        value = json.loads(text)
    except ValueError:
        return
    for other in others(value):
        yield msgspec.json.encode(other)


def others(value: Any) -> Iterator[Any]:
    match value:
        case bool():
            yield not value
        case int() | float():
            yield value + 1
        case str():
            yield f"{value}x"
        case None:
            yield 1
        case list():
            for at, item in enumerate(value):
                yield from ([*value[:at], other, *value[at + 1 :]] for other in others(item))
                yield value[:at] + value[at + 1 :]
                yield [*value[:at], item, *value[at:]]
        case dict():
            for name, item in value.items():
                yield from ({**value, name: other} for other in others(item))
                yield {key: kept for key, kept in value.items() if key != name}


class TestFile:
    """One SQLite file."""

    @pytest.mark.parametrize("table", TABLES)
    def test_a_sample_of_each_column(self, file: Stored, tmp_path: Path, table: str) -> None:
        self.each_column(file, tmp_path, table, SAMPLE)

    @pytest.mark.slow
    @pytest.mark.parametrize("table", TABLES)
    def test_each_column_of_each_row(self, file: Stored, tmp_path: Path, table: str) -> None:
        self.each_column(file, tmp_path, table, None)

    @pytest.mark.parametrize("table", TABLES)
    def test_a_sample_of_rows(self, file: Stored, tmp_path: Path, table: str) -> None:
        self.each_row(file, tmp_path, table, SAMPLE)

    @pytest.mark.slow
    @pytest.mark.parametrize("table", TABLES)
    def test_each_row(self, file: Stored, tmp_path: Path, table: str) -> None:
        self.each_row(file, tmp_path, table, None)

    def test_all_tables_are_walked(self, file: Stored) -> None:
        with closing(sqlite3.connect(file.path)) as db:
            found = {row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        assert found == set(TABLES)

    def each_column(self, file: Stored, tmp_path: Path, table: str, most: int | None) -> None:
        with closing(sqlite3.connect(file.path)) as db:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            rows = db.execute(f"SELECT {columns[0]}, * FROM {table}").fetchall()
        key = columns[0]
        missed = [
            f"{table}.{column} of row {row[0]}: {was!r} -> {value!r}: {why}"
            for row in sample(rows, most)
            for column, was in zip(columns, row[1:], strict=True)
            for value in changed(was)
            if (
                why := self.passes(
                    file, tmp_path, [(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (value, row[0]))]
                )
            )
        ]
        assert missed == []

    def each_row(self, file: Stored, tmp_path: Path, table: str, most: int | None) -> None:
        """Rows deleted, put behind the last one of their thread, and the bodies of two swapped."""
        with closing(sqlite3.connect(file.path)) as db:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            rows = db.execute(f"SELECT {columns[0]}, * FROM {table}").fetchall()
        key, *rest = columns
        assign = ", ".join(f"{name} = ?" for name in rest)
        copy = f"INSERT INTO {table} SELECT ?, {', '.join(rest)} FROM {table} WHERE {key} = ?"
        deeds: list[tuple[str, list[tuple[str, tuple[Any, ...]]]]] = []
        for row in sample(rows, most):
            deeds.append((f"without {row[0]}", [(f"DELETE FROM {table} WHERE {key} = ?", (row[0],))]))
            for place in places(row[0]):
                deeds.append((f"{row[0]} also as {place}", [(copy, (place, row[0]))]))
                move = f"UPDATE {table} SET {key} = ? WHERE {key} = ?"
                deeds.append((f"{row[0]} as {place}", [(move, (place, row[0]))]))
            for other in sample(rows, most):
                if other[0] > row[0]:
                    set_row = f"UPDATE {table} SET {assign} WHERE {key} = ?"
                    swap = [(set_row, (*other[2:], row[0])), (set_row, (*row[2:], other[0]))]
                    deeds.append((f"{row[0]} and {other[0]} swapped", swap))
        missed = [
            f"{table}: {name}: {why}" for name, deed in deeds if (why := self.passes(file, tmp_path, deed))
        ]
        assert missed == []

    def passes(self, file: Stored, tmp_path: Path, deed: list[tuple[str, tuple[Any, ...]]]) -> str:
        """What a change shows though no check finds it, in a few words; "" where one does."""
        copy = shutil.copy(file.path, tmp_path / "copy.db")
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            try:
                for sql, values in deed:
                    db.execute(sql, values)
            except sqlite3.Error:
                return ""
        try:
            with closing(SQLiteCheckpointer(copy)) as store:
                now = undetected(store, file.names, file.shown)
        except HitlError:
            return ""
        return difference(file.shown, now) if now is not None else ""


class TestDirectory:
    """A directory of files."""

    def test_each_file(self, directory: Stored, tmp_path: Path) -> None:
        self.each_file(directory, tmp_path, step=23)

    @pytest.mark.slow
    def test_each_leaf_of_each_file(self, directory: Stored, tmp_path: Path) -> None:
        self.each_file(directory, tmp_path, step=1)

    def each_file(self, directory: Stored, tmp_path: Path, step: int) -> None:
        root = tmp_path / "copy"
        shutil.copytree(directory.path, root)
        files = sorted(path for path in root.rglob("*") if path.is_file() and path.stat().st_size)
        missed = []
        for number, path in enumerate(files):
            text = path.read_bytes()
            deeds = [*list(leaves(text))[number % step :: step], None, files[number - 1].read_bytes()]
            deeds += [text[:-9], bytes([text[0] ^ 1]) + text[1:]]
            for deed in deeds:
                if deed is None:
                    path.unlink()
                else:
                    path.write_bytes(deed)
                if why := self.passes(directory, root):
                    missed.append(f"{path.relative_to(root)}: {deed and deed[:2000]!r}: {why}")
                path.write_bytes(text)
        assert missed == []

    def passes(self, directory: Stored, root: Path) -> str:
        try:
            with closing(FileCheckpointer(root)) as store:
                now = undetected(store, directory.names, directory.shown)
        except HitlError:
            return ""
        return difference(directory.shown, now) if now is not None else ""


def places(key: Any) -> tuple[Any, ...]:
    """Other keys for a row."""
    if isinstance(key, str):
        return f"{key}0", ""
    return key + 1, key + 50, (77 << 32) + 1, key | 0xFFFFFFFF


def sample(rows: list[Any], most: int | None) -> list[Any]:
    """The first, the last and some between them."""
    if most is None or len(rows) <= most:
        return rows
    return [rows[at * (len(rows) - 1) // (most - 1)] for at in range(most)]


def difference(shown: list[Any], now: list[Any]) -> str:
    """Where two outputs part."""
    pairs = ((str(one), str(other)) for one, other in zip(shown, now, strict=False) if one != other)
    one, other = next(pairs, (str(len(shown)), str(len(now))))
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return f"...{one[max(0, at - 40) : at + 60]} is ...{other[max(0, at - 40) : at + 60]}"


class TestDamage:
    """Bits flipped anywhere in the file, and the file torn: an error in words or the same output, soon."""

    def test_at_some_places(self, file: Stored) -> None:
        self.damage(file, 200)

    @pytest.mark.slow
    def test_at_ten_thousand_places(self, file: Stored) -> None:
        self.damage(file, 10_000)

    def damage(self, file: Stored, places: int) -> None:
        command = [sys.executable, "-m", "tests.engine_verify.flipping", str(file.path), str(places)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
