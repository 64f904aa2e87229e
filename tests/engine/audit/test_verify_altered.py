"""Each field of a log changed behind the store's back is one finding, where it is."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui.engine.audit.findings import VerifyReport
from hitl_tui.engine.audit.verify import verify
from hitl_tui.engine.state.canonical import item_hash, show_hash
from hitl_tui.stores import FileCheckpointer, SQLiteCheckpointer
from tests.engine.audit.logs import CHANNELS, graph, mismatches_in, run
from tests.support.spec import spec

pytestmark = spec("12")

ORDER = ("facts", "found", "n", "notes", "recent", "secret", "tags", "total", "word")


def seq(channel: str, step: int) -> int:
    return 1 + (step - 1) * CHANNELS + ORDER.index(channel) + 1


def flip(blob: bytes, at: int) -> bytes:
    return blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]


class TestSQLite:
    @pytest.fixture(scope="class")
    def whole(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        path = tmp_path_factory.mktemp("whole") / "runs.db"
        with closing(SQLiteCheckpointer(path, "none")) as store:
            run(store)
        return path

    @pytest.fixture
    def path(self, whole: Path, tmp_path: Path) -> Path:
        return Path(shutil.copy(whole, tmp_path / "runs.db"))

    def tampered(self, path: Path, sql: str, *values: Any, strict: bool = False) -> VerifyReport:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.create_function("flip", 2, flip)
            assert db.execute(sql, values).rowcount >= 1
        with closing(SQLiteCheckpointer(path)) as store:
            return verify(store, "t", graph().compile().graph.channels, strict=strict)

    @pytest.mark.parametrize("channel", ORDER)
    def test_an_update(self, path: Path, channel: str) -> None:
        number, strict = seq(channel, 30), ORDER.index(channel) % 2 == 0
        report = self.tampered(
            path, "UPDATE record SET change = ? WHERE id & 4294967295 = ?", b"[12345]", number, strict=strict
        )
        assert mismatches_in(report) == [("value", number, 30, channel, "update")]
        shown = "[private]" if channel == "secret" else show_hash(item_hash([12345]))
        assert str(report.mismatches[0].actual) == shown

    def test_a_stored_result(self, path: Path) -> None:
        number = seq("word", 30)
        sql = "UPDATE record SET result = CAST('\"x\"' AS BLOB) WHERE id & 4294967295 = ?"
        assert mismatches_in(self.tampered(path, sql, number)) == [("value", number, 30, "word", "result")]

    @pytest.mark.parametrize(
        "change",
        [
            "node = 'other'",
            "invocation = 2",
            "attempt = 2",
            "path = 'p'",
            "actor = 'eve'",
            "note = 'n'",
            "at = at + 1",
            "flags = flags | 32",
            "reducer = 'last'",
        ],
    )
    def test_a_fact_of_a_record(self, path: Path, change: str) -> None:
        number = seq("n", 30)
        report = self.tampered(path, f"UPDATE record SET {change} WHERE id & 4294967295 = ?", number)
        assert mismatches_in(report) == [("record", number, 30, "n", "record_hash")]

    @pytest.mark.parametrize(
        ("at", "found"),
        [
            (0, ("channel", "previous_hash")),
            (32, ("value", "next_hash")),
            (64, ("record", "record_hash")),
            (96, ("value", "update_hash")),
        ],
    )
    @pytest.mark.parametrize("channel", ["notes", "total", "word"])
    def test_a_hash_of_a_record(self, path: Path, at: int, found: tuple[str, str], channel: str) -> None:
        number = seq(channel, 30)
        sql = "UPDATE record SET hashes = flip(hashes, ?) WHERE id & 4294967295 = ? AND length(hashes) > ?"
        if (channel, at) == ("word", 96):
            pytest.skip("a value that is replaced has the hash of its update, which is stored once")
        report = self.tampered(path, sql, at, number, at)
        (kind, field) = found
        expected = [(kind, number, 30, channel, field)]
        if channel == "word" and at == 32 and len(report.mismatches) == 2:
            expected.insert(0, ("value", number, 30, channel, "update_hash"))
        assert mismatches_in(report) == expected

    def test_a_record_that_is_missing(self, path: Path) -> None:
        number = seq("n", 30)
        report = self.tampered(path, "DELETE FROM record WHERE id & 4294967295 = ?", number)
        assert mismatches_in(report)[0][:3] == ("gap", number + 1, 30)
        assert {found.kind for found in report.mismatches} == {"gap"}
        assert (report.mismatches[0].expected, report.mismatches[0].actual) == (number, number + 1)

    def test_the_last_records_are_missing(self, path: Path) -> None:
        report = self.tampered(path, "DELETE FROM record WHERE step = 81")
        assert {found.kind for found in report.mismatches} == {"gap"}

    def test_a_checkpoint_that_is_missing(self, path: Path) -> None:
        report = self.tampered(path, "DELETE FROM checkpoint WHERE id & 4294967295 = 30")
        assert mismatches_in(report) == [("gap", None, 30, None, "step")]

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ("hashes = flip(hashes, 3)", "state_hash"),
            ("hashes = flip(hashes, 35)", "ledger_hash"),
            ("hashes = flip(hashes, 67)", "checkpoint_hash"),
            ("status = 'failed'", "checkpoint_hash"),
            ("actor = 'eve'", "checkpoint_hash"),
            ("decision = 'approve'", "checkpoint_hash"),
            ("first_seq = first_seq - 1", "first_seq"),
            ("parent_step = 3", "parent_step"),
            ("node = 'other'", "node"),
            ("invocation = 9", "invocation"),
            ("at = at - 1", "at"),
        ],
    )
    def test_a_checkpoint(self, path: Path, change: str, field: str) -> None:
        report = self.tampered(path, f"UPDATE checkpoint SET {change} WHERE id & 4294967295 = 30")
        assert mismatches_in(report) == [("checkpoint", None, 30, None, field)]

    @pytest.mark.parametrize(
        "change", ["kind = 'edit'", "actor = 'eve'", "data = x'31'", "at = 1", "hash = flip(hash, 0)"]
    )
    def test_a_decision(self, path: Path, change: str) -> None:
        report = self.tampered(path, f"UPDATE ledger SET {change} WHERE id & 4294967295 = 2")
        assert mismatches_in(report) == [("ledger", 2, 81, None, "hash")]

    def test_a_decision_that_is_missing(self, path: Path) -> None:
        report = self.tampered(path, "DELETE FROM ledger WHERE id & 4294967295 = 2")
        assert mismatches_in(report) == [("gap", 3, 81, None, "n")]
        report = self.tampered(path, "DELETE FROM ledger WHERE id & 4294967295 = 3")
        assert ("cursor", None, 81, None, "ledger_n") in mismatches_in(report)

    @pytest.mark.parametrize("field", ["last_seq", "ledger_n", "last_record_hash", "ledger_hash"])
    def test_the_cursor(self, path: Path, field: str) -> None:
        value = "1" if field in ("last_seq", "ledger_n") else '"AAAA"'
        report = self.tampered(
            path, f"UPDATE cursor SET body = json_set(CAST(body AS TEXT), '$.{field}', json('{value}'))"
        )
        assert mismatches_in(report)[0] == ("cursor", None, 81, None, field)
        # What the cursor does not reach any more is no part of the log.
        assert {found.kind for found in report.mismatches[1:]} <= {"row"}

    def test_a_snapshot_of_another_state(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            (key,) = db.execute("SELECT id FROM snapshot ORDER BY id DESC LIMIT 1").fetchone()
        step = key & 0xFFFFFFFF
        with closing(SQLiteCheckpointer(path)) as store:
            found = store.snapshot("t", step)
            assert found is not None
            values = msgspec.json.decode(found[1])
            values["total"] += 1
            values["idle"] = None
        forged = msgspec.json.encode(values)
        report = self.tampered(path, "UPDATE snapshot SET body = ? WHERE id = ?", b"o" + forged, key)
        places = [place for place in mismatches_in(report) if place[2] == step]
        assert places == [
            ("snapshot", None, step, "total", "value"),
            ("snapshot", None, step, "idle", "value"),
        ]

    def test_an_unreadable_row_is_reported_and_the_rest_is_checked(self, path: Path) -> None:
        report = self.tampered(path, "UPDATE record SET change = '{' WHERE step = 30")
        kinds = mismatches_in(report)
        assert [place[0] for place in kinds] == ["unreadable"]
        assert kinds[0][2] == 30
        report = self.tampered(path, "UPDATE record SET note = 'x' WHERE step = 60 AND channel = 'n'")
        assert mismatches_in(report)[1:] == [("record", seq("n", 60), 60, "n", "record_hash")]

    def test_a_flipped_byte_of_a_snapshot(self, path: Path) -> None:
        report = self.tampered(path, "UPDATE snapshot SET body = flip(body, 50)")
        assert {found.kind for found in report.mismatches} == {"unreadable"}


class TestFiles:
    @pytest.fixture(scope="class")
    def whole(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        path = tmp_path_factory.mktemp("whole") / "runs"
        run(FileCheckpointer(path, "none"), 6)
        return path

    @pytest.fixture
    def directory(self, whole: Path, tmp_path: Path) -> Path:
        shutil.copytree(whole, tmp_path / "runs")
        (found,) = (tmp_path / "runs" / "threads").iterdir()
        return found

    def tampered(self, file: Path, change: Callable[[Any], Any]) -> VerifyReport:
        data = json.loads(file.read_text())
        change(data)
        file.write_text(json.dumps(data))
        return verify(FileCheckpointer(file.parents[3]), "t", graph().compile().graph.channels, strict=True)

    FIELDS = (
        ("update", [12345], "value", "update"),
        ("previous_hash", "sha256:" + "00" * 32, "channel", "previous_hash"),
        ("update_hash", "sha256:" + "00" * 32, "value", "update_hash"),
        ("next_hash", "sha256:" + "00" * 32, "value", "next_hash"),
        ("prev_record_hash", "sha256:" + "00" * 32, "record", "prev_record_hash"),
        ("record_hash", "sha256:" + "00" * 32, "record", "record_hash"),
        ("seq", 999, "record", "seq"),
        ("step", 4, "record", "step"),
        ("step", 999, "record", "step"),
        ("thread_id", "u", "record", "record_hash"),
        ("node", "other", "record", "record_hash"),
        ("attempt", 7, "record", "record_hash"),
        ("source", "human", "record", "record_hash"),
        ("tainted", True, "record", "record_hash"),
        ("actor", "eve", "record", "record_hash"),
        ("note", "x", "record", "record_hash"),
        ("at", 5, "record", "record_hash"),
    )

    @pytest.mark.parametrize(("field", "value", "kind", "reported_field"), FIELDS)
    def test_a_record(self, directory: Path, field: str, value: Any, kind: str, reported_field: str) -> None:
        place = ORDER.index("notes")
        report = self.tampered(
            directory / "steps" / "00000003.json", lambda data: data["records"][place].update({field: value})
        )
        number = 999 if field == "seq" else seq("notes", 3)
        assert mismatches_in(report) == [(kind, number, 3, "notes", reported_field)]

    def test_a_decision_and_a_checkpoint(self, directory: Path) -> None:
        report = self.tampered(
            directory / "decisions" / "00000001.json",
            lambda data: data.update(prev_hash="sha256:" + "00" * 32),
        )
        assert [found.field for found in report.mismatches] == ["prev_hash"]
        report = self.tampered(
            directory / "steps" / "00000003.json",
            lambda data: data["checkpoint"].update(state_hash="sha256:" + "00" * 32),
        )
        assert mismatches_in(report)[0] == ("checkpoint", None, 3, None, "state_hash")

    def test_a_file_that_is_gone_or_cut_off(self, directory: Path) -> None:
        (directory / "steps" / "00000002.json").unlink()
        file = directory / "steps" / "00000004.json"
        file.write_bytes(file.read_bytes()[:100])
        report = verify(FileCheckpointer(directory.parents[1]), "t", graph().compile().graph.channels)
        assert [(found.kind, found.step) for found in report.mismatches] == [
            ("unreadable", 2),
            ("unreadable", 4),
        ]
        assert "00000002.json is damaged: it is missing" in report.mismatches[0].actual
