"""No change of a store passes: `verify` finds it, or it is shown nowhere.

Each column of each table, each leaf of the JSON in them, each row and each file is changed, deleted, copied
and swapped.  Each kind of change is made once in rows that are alike.
"""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import LogCorrupt, SQLiteCheckpointer
from hitl_tui.engine.audit.verify import verify_tree
from tests.engine.audit.flipping import spans
from tests.engine.audit.rich import Seal, Stored, filled

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
    "presence",
    "store_ledger",
    "sqlite_sequence",
)
"""All tables of a store file; a test compares them with the file's own."""

MANY = 6
"""How many rows of a table are deleted, moved and copied."""


PARTS = 4
"""Into how many tests the longest walks are cut, so that several processes share them."""


KINDS = (
    "hitl-tui-store.json",
    "graphs",
    "info.json",
    "cursor.json",
    "steps",
    "decisions",
    "snapshots",
    "lease.json",
    "pause.json",
    "presence.json",
    "deleted",
    "deleted.json",
)
"""The files of a files store, by their names or their directories."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return filled(tmp_path_factory.mktemp("rich") / "runs.db")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    path = tmp_path_factory.mktemp("rich") / "runs"
    path.mkdir()
    return filled(path)


def changed(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values of a column, each with the way in which it differs."""
    match value:
        case None:
            yield from (("a number", 1), ("a text", "x"), ("a list", b"[]"))
        case bytes():
            yield "a number", 7
            yield from leaves(value)
            yield "shorter", value[:-1]
            yield "another first bit", bytes([value[0] ^ 1]) + value[1:] if value else b"x"
        case str():
            yield from (("longer", f"{value}x"), ("shorter", value[:-1] if value else "node"))
            yield from (("upper case", value.upper()), ("bytes", b"\xff"))
        case _:
            yield from (("more", value + 1), ("negative", -value - 1), ("a text", "x"))
    if value is not None:
        yield "nothing", None


def leaves(text: bytes) -> Iterator[tuple[str, bytes]]:
    """JSON with one leaf changed, taken away or given twice, each with its place; none for other texts."""
    try:
        value = json.loads(text)
    except ValueError:
        return
    for way, other in others(value, "$"):
        yield way, msgspec.json.encode(other)


def others(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    match value:
        case bool():
            yield f"{place} turned", not value
        case int() | float():
            yield f"{place} more", value + 1
        case str():
            yield f"{place} longer", f"{value}x"
        case None:
            yield f"{place} is there", 1
        case list():
            inside = f"{place}[]"
            for at, item in enumerate(value):
                yield from (
                    (way, [*value[:at], other, *value[at + 1 :]]) for way, other in others(item, inside)
                )
                yield f"{inside} taken away", value[:at] + value[at + 1 :]
                yield f"{inside} twice", [*value[:at], item, *value[at:]]
        case dict():
            for name, item in value.items():
                inside = f"{place}.{name}"
                yield from ((way, {**value, name: other}) for way, other in others(item, inside))
                yield f"{inside} taken away", {key: kept for key, kept in value.items() if key != name}


class TestFile:
    """One SQLite file."""

    @pytest.mark.slow
    @pytest.mark.parametrize("table", TABLES)
    def test_each_column(self, file: Stored, tmp_path: Path, table: str) -> None:
        self.each_column(file, tmp_path, table)

    @pytest.mark.slow
    @pytest.mark.parametrize("table", TABLES)
    def test_many_rows(self, file: Stored, tmp_path: Path, table: str) -> None:
        self.each_row(file, tmp_path, table)

    @pytest.mark.slow
    def test_all_tables_are_walked(self, file: Stored) -> None:
        with closing(sqlite3.connect(file.path)) as db:
            found = {row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        assert found == set(TABLES)

    @pytest.mark.slow
    def test_a_changed_signature_is_found_by_the_ledger_and_by_who_knows_the_keys(
        self, file: Stored, tmp_path: Path
    ) -> None:
        with closing(SQLiteCheckpointer(file.path)) as store:
            signed = verify_tree(store, "undone", signers=Seal()).decisions
        assert signed
        assert {one.found.verdict for one in signed} == {"good"}
        copy = Path(shutil.copy(file.path, tmp_path / "copy.db"))
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            db.execute("UPDATE ledger SET signature = 'ff' || signature WHERE kind = 'answer'")
        with closing(SQLiteCheckpointer(copy)) as store:
            by_hash, by_key = verify_tree(store, "undone"), verify_tree(store, "undone", signers=Seal())
        assert "ledger" in {one.kind for one in by_hash.mismatches}
        assert {one.kind for one in by_key.mismatches} - {one.kind for one in by_hash.mismatches} == {
            "signature"
        }

    @pytest.mark.parametrize(("table", "column"), [("record", "hashes"), ("ledger", "hash")])
    def test_a_fork_of_rows_whose_hashes_are_none(
        self, file: Stored, tmp_path: Path, table: str, column: str
    ) -> None:
        copy = Path(shutil.copy(file.path, tmp_path / "copy.db"))
        (parent,) = [key for key, name in file.named.items() if name == "undone"]
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            db.execute(f"UPDATE {table} SET {column} = {1 << 40} WHERE id >> 32 = {parent}")
        with closing(SQLiteCheckpointer(copy)) as store, pytest.raises(LogCorrupt, match="another type"):
            list(store.records("early", 4, 5)) if table == "record" else store.ledger("early")

    def each_column(self, file: Stored, tmp_path: Path, table: str) -> None:
        with closing(sqlite3.connect(file.path)) as db:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            rows = db.execute(f"SELECT {columns[0]}, * FROM {table}").fetchall()
        missed = []
        tried: set[object] = set()
        for row in rows:
            for column, was in zip(columns, row[1:], strict=True):
                sql = f"UPDATE {table} SET {column} = ? WHERE {columns[0]} = ?"
                for way, value in changed(was):
                    if (column, way) in tried:
                        continue
                    tried.add((column, way))
                    if why := self.passes(file, tmp_path, row[0], [(sql, (value, row[0]))]):
                        missed.append(f"{table}.{column} of row {row[0]}: {was!r} -> {value!r}: {why}")
        assert missed == []

    def each_row(self, file: Stored, tmp_path: Path, table: str) -> None:
        """Rows deleted, put behind the last one of their thread, and the bodies of two swapped."""
        with closing(sqlite3.connect(file.path)) as db:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            rows = db.execute(f"SELECT {columns[0]}, * FROM {table}").fetchall()
        key, *rest = columns
        assign = ", ".join(f"{name} = ?" for name in rest)
        copy = f"INSERT INTO {table} SELECT ?, {', '.join(rest)} FROM {table} WHERE {key} = ?"
        deeds: list[tuple[str, Any, list[tuple[str, tuple[Any, ...]]]]] = []
        for row in sample(rows):
            deeds.append((f"without {row[0]}", row[0], [(f"DELETE FROM {table} WHERE {key} = ?", (row[0],))]))
            for place in places(row[0]):
                deeds.append((f"{row[0]} also as {place}", row[0], [(copy, (place, row[0]))]))
                move = f"UPDATE {table} SET {key} = ? WHERE {key} = ?"
                deeds.append((f"{row[0]} as {place}", row[0], [(move, (place, row[0]))]))
            for other in sample(rows):
                if other[0] > row[0]:
                    set_row = f"UPDATE {table} SET {assign} WHERE {key} = ?"
                    swap = [(set_row, (*other[2:], row[0])), (set_row, (*row[2:], other[0]))]
                    deeds.append((f"{row[0]} and {other[0]} swapped", row[0], swap))
        missed = [
            f"{table}: {name}: {why}"
            for name, key, deed in deeds
            if (why := self.passes(file, tmp_path, key, deed))
        ]
        assert missed == []

    def passes(self, file: Stored, tmp_path: Path, key: Any, deed: list[tuple[str, tuple[Any, ...]]]) -> str:
        """What a change of rows shows though no check finds it, in a few words; "" where one does."""
        copy = Path(shutil.copy(file.path, tmp_path / "copy.db"))
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            try:
                for sql, values in deed:
                    db.execute(sql, values)
            except sqlite3.Error:
                return ""
        number = key if key in file.named else key >> 32 if isinstance(key, int) else None
        return file.undetected(copy, file.named.get(number))


class TestDirectory:
    """A directory of files."""

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    def test_each_leaf_of_the_files_of_a_kind(self, directory: Stored, tmp_path: Path, kind: str) -> None:
        root = tmp_path / "copy"
        shutil.copytree(directory.path, root)
        files = list(spans(root))
        missed = []
        tried: set[str] = set()
        for number, path in enumerate(files):
            if next(one for one in KINDS if one in path.relative_to(root).parts) != kind:
                continue
            text = path.read_bytes()
            deeds: list[bytes | None] = [None, files[number - 1].read_bytes(), text[:-9]]
            deeds.append(bytes([text[0] ^ 1]) + text[1:])
            for way, leaf in leaves(text):
                if way not in tried:
                    deeds.append(leaf)
                tried.add(way)
            thread = next((name for key, name in directory.named.items() if key in path.parts), None)
            for deed in deeds:
                if deed is None:
                    path.unlink()
                else:
                    path.write_bytes(deed)
                if why := directory.undetected(root, thread):
                    missed.append(f"{path.relative_to(root)}: {deed and deed[:2000]!r}: {why}")
                path.write_bytes(text)
        assert missed == []


def places(key: Any) -> tuple[Any, ...]:
    """Other keys for a row."""
    if isinstance(key, str):
        return f"{key}0", ""
    return key + 1, key + 50, (77 << 32) + 1, key | 0xFFFFFFFF


def sample(rows: list[Any]) -> list[Any]:
    """The first, the last and some between them."""
    if len(rows) <= MANY:
        return rows
    return [rows[at * (len(rows) - 1) // (MANY - 1)] for at in range(MANY)]


class TestDamage:
    """Bits flipped anywhere and files torn: an error in words, a finding or the same output, soon."""

    @pytest.mark.slow
    @pytest.mark.parametrize("part", range(PARTS))
    def test_bits_at_a_hundred_places_of_a_file(self, file: Stored, part: int) -> None:
        assert damage(file, "flip", range(part, 100, PARTS)) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("part", range(PARTS))
    def test_bits_at_a_hundred_places_of_a_directory(self, directory: Stored, part: int) -> None:
        assert damage(directory, "flip", range(part, 100, PARTS)) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("part", range(PARTS))
    def test_a_file_torn_at_many_lengths(self, file: Stored, part: int) -> None:
        """SQLite reads whole pages: each is torn at hundreds of places, not those of the one before."""
        assert damage(file, "tear", range(127 * part, size(file.path), 127 * PARTS)) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("part", range(PARTS))
    def test_each_file_of_a_directory_torn_at_many_lengths(self, directory: Stored, part: int) -> None:
        assert damage(directory, "tear", range(997 * part, size(directory.path), 997 * PARTS)) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_file_of_each_kind_torn_at_many_lengths(self, directory: Stored, kind: str) -> None:
        """The shortest one of each."""
        own = [part for path, part in spans(directory.path).items() if kind in path.parts]
        assert damage(directory, "tear", min(own, key=len)[::41]) == []

    @pytest.mark.slow
    def test_damage_that_takes_too_long_is_reported_with_its_place(self, file: Stored) -> None:
        assert damage(file, "hang", range(3, 4)) == [f"3: ended by signal {signal.SIGXCPU}"]


def size(path: Path) -> int:
    """The bytes of all files of a store."""
    return max(part.stop for part in spans(path).values())


def damage(store: Stored, deed: str, numbers: range) -> list[str]:
    """What came of damages that was no error in words, finding or the same output, each with its number.

    A process of its own reads what is damaged; where it runs out of its bounds, another one goes on behind.
    """
    places: list[str] = []
    while numbers and len(places) < 10:
        bounds = [str(bound) for bound in (numbers.start, numbers.stop, numbers.step)]
        command = [sys.executable, "-m", "tests.engine.audit.flipping", str(store.path), deed, *bounds]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        places += [line for line in lines if not line.isdigit()]
        if done.returncode == 0:
            break
        numbers = numbers[sum(map(str.isdigit, lines)) :]
        ended = f"signal {-done.returncode}" if done.returncode < 0 else done.stderr[-2000:]
        places.append(f"{numbers.start}: ended by {ended}")
        numbers = numbers[1:]
    return places
