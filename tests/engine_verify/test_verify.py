"""Each field of a log changed behind the store's back is one finding, where it is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import Channel, GraphRunner, StateGraph, append
from hitl_tui.engine.canonical import item_hash, show_hash
from hitl_tui.engine.records import END, START
from hitl_tui.engine.verify import VerifyReport, verify
from hitl_tui.errors import UnknownThread, UsageError
from hitl_tui.stores import Checkpointer, FileCheckpointer, MemoryCheckpointer, SQLiteCheckpointer


def longest(old: Any, new: Any) -> Any:
    return max(old or "", new, key=len)


def graph(longest: Callable[[Any, Any], Any] = longest, total: str = "sum") -> StateGraph:
    def write(state: Any, _config: Any) -> dict[str, Any]:
        n = state["n"]
        return {
            "notes": f"{n} " + "x" * 300,
            "found": [n, {"n": n}],
            "n": n + 1,
            "total": 2,
            "facts": {f"k{n % 3}": n},
            "recent": n,
            "tags": [n % 4, "t"],
            "word": "w" * (n % 5),
            "secret": f"pw-{n}",
        }

    return (
        StateGraph(
            {
                "notes": Channel(["first"], reducer=append()),
                "found": Channel([], reducer="extend"),
                "n": Channel(0),
                "total": Channel(0, reducer=total),
                "facts": Channel({"given": True}, reducer="merge"),
                "recent": Channel([], reducer="last_n(3)"),
                "tags": Channel([], reducer="set_union"),
                "word": Channel("", reducer=longest),
                "secret": Channel("", visibility="private"),
                "idle": Channel({"never": "written"}),
            }
        )
        .add_node("write", write)
        .add_edge(START, "write")
        .add_conditional_edge("write", lambda s: "end" if s["n"] >= 80 else "on", {"end": END, "on": "write"})
    )


CHANNELS = 9


def run(store: Checkpointer, steps: int = 80) -> GraphRunner:
    runner = graph().compile(checkpointer=store, interrupt_after=["write"] if steps < 80 else ())
    runner.invoke({"notes": "go"}, thread_id="t", max_iterations=90)
    for _ in range(steps - 1 if steps < 80 else 0):
        runner.invoke(thread_id="t", max_iterations=90)
    runner.update_state("t", {"notes": ["edited"], "total": 7}, actor="ann", note="better")
    runner.extend_limits("t", actor="ann", max_iterations=99)
    runner.extend_limits("t", actor="ann", max_iterations=100)
    return runner


@pytest.fixture(params=["memory", "sqlite", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    makers: dict[str, Callable[[], Checkpointer]] = {
        "memory": MemoryCheckpointer,
        "sqlite": lambda: SQLiteCheckpointer(tmp_path / "runs.db"),
        "files": lambda: FileCheckpointer(tmp_path / "runs"),
    }
    opened = makers[request.param]()
    yield opened
    opened.close()


def told(report: VerifyReport) -> list[tuple[Any, ...]]:
    return [(found.kind, found.seq, found.step, found.channel, found.field) for found in report.mismatches]


class TestWhole:
    def test_a_log_that_is_whole_has_nothing_to_tell(self, store: Checkpointer) -> None:
        runner = run(store)
        for report in (runner.verify("t"), runner.verify("t", strict=True)):
            assert report.mismatches == ()
            assert (report.ok, report.records, report.checkpoints) == (True, 1 + 80 * CHANNELS + 2, 82)
            assert report.unchecked == 0

    def test_forks_are_checked_through_their_parents(self, store: Checkpointer) -> None:
        runner = run(store)
        runner.fork("t", 40, "f", changes={"n": 79}, actor="ann")
        runner.invoke(thread_id="f")
        runner.fork("f", 41, "g")
        for thread in ("f", "g"):
            assert runner.verify(thread, strict=True).mismatches == ()

    def test_without_the_graph_it_tells_how_much_it_could_not_compare(self, store: Checkpointer) -> None:
        run(store)
        report = verify(store, "t")
        assert report.mismatches == ()
        # The first snapshot tells of channels that nothing writes.
        assert 0 < report.unchecked < 40

    def test_saved_threads_have_no_other_channels(self, store: Checkpointer) -> None:
        for step in range(20):
            store.save("s", step, {"a": [step], f"c{step}": "x" * 900})
        for report in (verify(store, "s"), graph().compile(checkpointer=store).verify("s")):
            assert report.mismatches == ()
        assert verify(store, "s").unchecked == 0

    def test_an_empty_or_unknown_thread(self, store: Checkpointer) -> None:
        with pytest.raises(UnknownThread):
            verify(store, "none")
        store.save("s", 0, {})
        with pytest.raises(UsageError, match="channels"):
            verify(store, "s", strict=True)
        assert verify(store, "s").ok

    def test_it_changes_nothing(self, store: Checkpointer) -> None:
        runner = run(store)
        before = (store.cursor("t"), store.ledger("t"), store.lease("t"))
        runner.verify("t", strict=True)
        assert (store.cursor("t"), store.ledger("t"), store.lease("t")) == before


class TestStrict:
    def test_a_changed_reducer_of_a_user_is_told_where_it_differs(self, store: Checkpointer) -> None:
        run(store)

        def longest(old: Any, new: Any) -> Any:
            return min(old or "", new, key=len)

        longest.__qualname__ = "longest"
        changed = graph(longest).compile(checkpointer=store)
        assert changed.verify("t").ok
        report = changed.verify("t", strict=True)
        assert {(found.kind, found.channel, found.field) for found in report.mismatches} == {
            ("reducer", "word", "reducer"),
            ("reducer", "word", "result"),
        }

    def test_another_reducer_is_told_once(self, store: Checkpointer) -> None:
        run(store)
        changed = graph(total="max").compile(checkpointer=store)
        report = changed.verify("t", strict=True)
        (found,) = report.mismatches
        assert (found.kind, found.channel, found.expected, found.actual) == ("reducer", "total", "sum", "max")

    def test_a_reducer_that_fails_is_told(self, store: Checkpointer) -> None:
        run(store)

        def longest(_old: Any, _new: Any) -> Any:
            raise ZeroDivisionError("oops")

        longest.__qualname__ = "longest"
        report = graph(longest).compile(checkpointer=store).verify("t", strict=True)
        assert any("oops" in found.actual for found in report.mismatches if found.field == "result")


# -- a SQLite file -------------------------------------------------------------------------------------

ORDER = ("facts", "found", "n", "notes", "recent", "secret", "tags", "total", "word")


def seq(channel: str, step: int) -> int:
    return 1 + (step - 1) * CHANNELS + ORDER.index(channel) + 1


def flip(blob: bytes, at: int) -> bytes:
    return blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]


class TestSQLite:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        with closing(SQLiteCheckpointer(tmp_path / "runs.db")) as store:
            run(store)
        return tmp_path / "runs.db"

    def tampered(self, path: Path, sql: str, *values: Any, strict: bool = False) -> VerifyReport:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.create_function("flip", 2, flip)
            assert db.execute(sql, values).rowcount >= 1
        with closing(SQLiteCheckpointer(path)) as store:
            return verify(store, "t", graph().compile().graph.channels, strict=strict)

    @pytest.mark.parametrize("channel", ORDER)
    @pytest.mark.parametrize("strict", [False, True])
    def test_an_update(self, path: Path, channel: str, strict: bool) -> None:
        number = seq(channel, 30)
        report = self.tampered(
            path, "UPDATE record SET change = ? WHERE id & 4294967295 = ?", b"[12345]", number, strict=strict
        )
        assert told(report) == [("value", number, 30, channel, "update")]
        shown = "[private]" if channel == "secret" else show_hash(item_hash([12345]))
        assert str(report.mismatches[0].actual) == shown

    def test_a_stored_result(self, path: Path) -> None:
        number = seq("word", 30)
        sql = "UPDATE record SET result = '\"x\"' WHERE id & 4294967295 = ?"
        assert told(self.tampered(path, sql, number)) == [("value", number, 30, "word", "result")]

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
        assert told(report) == [("record", number, 30, "n", "record_hash")]

    @pytest.mark.parametrize(
        ("at", "found"),
        [
            (0, ("channel", "previous_hash")),
            (32, ("value", "next_hash")),
            (64, ("record", "record_hash")),
            (96, ("value", "update_hash")),
        ],
    )
    @pytest.mark.parametrize("channel", ["notes", "total", "found", "facts", "recent", "word"])
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
        assert told(report) == expected

    def test_a_record_that_is_missing(self, path: Path) -> None:
        number = seq("n", 30)
        report = self.tampered(path, "DELETE FROM record WHERE id & 4294967295 = ?", number)
        assert told(report)[0][:3] == ("gap", number + 1, 30)
        assert {found.kind for found in report.mismatches} == {"gap"}
        assert (report.mismatches[0].expected, report.mismatches[0].actual) == (number, number + 1)

    def test_the_last_records_are_missing(self, path: Path) -> None:
        report = self.tampered(path, "DELETE FROM record WHERE step = 81")
        assert {found.kind for found in report.mismatches} == {"gap"}

    def test_a_checkpoint_that_is_missing(self, path: Path) -> None:
        report = self.tampered(path, "DELETE FROM checkpoint WHERE id & 4294967295 = 30")
        assert told(report) == [("gap", None, 30, None, "step")]

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ("state_hash = flip(state_hash, 3)", "state_hash"),
            ("first_seq = first_seq - 1", "first_seq"),
            ("parent_step = 3", "parent_step"),
            ("node = 'other'", "node"),
            ("invocation = 9", "invocation"),
            ("at = at - 1", "at"),
        ],
    )
    def test_a_checkpoint(self, path: Path, change: str, field: str) -> None:
        report = self.tampered(path, f"UPDATE checkpoint SET {change} WHERE id & 4294967295 = 30")
        assert told(report) == [("checkpoint", None, 30, None, field)]

    @pytest.mark.parametrize(
        "change", ["kind = 'edit'", "actor = 'eve'", "data = '1'", "at = 1", "hash = flip(hash, 0)"]
    )
    def test_a_decision(self, path: Path, change: str) -> None:
        report = self.tampered(path, f"UPDATE ledger SET {change} WHERE id & 4294967295 = 2")
        assert told(report) == [("ledger", 2, 81, None, "hash")]

    def test_a_decision_that_is_missing(self, path: Path) -> None:
        report = self.tampered(path, "DELETE FROM ledger WHERE id & 4294967295 = 2")
        assert told(report) == [("gap", 3, 81, None, "n")]
        report = self.tampered(path, "DELETE FROM ledger WHERE id & 4294967295 = 3")
        assert ("cursor", None, 81, None, "ledger_n") in told(report)

    @pytest.mark.parametrize("field", ["last_seq", "ledger_n", "last_record_hash", "ledger_hash"])
    def test_the_cursor(self, path: Path, field: str) -> None:
        value = "1" if field in ("last_seq", "ledger_n") else '"AAAA"'
        report = self.tampered(
            path, f"UPDATE cursor SET body = json_set(CAST(body AS TEXT), '$.{field}', json('{value}'))"
        )
        assert told(report) == [("cursor", None, 81, None, field)]

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
        places = [place for place in told(report) if place[2] == step]
        assert places == [
            ("snapshot", None, step, "total", "value"),
            ("snapshot", None, step, "idle", "value"),
        ]

    def test_what_can_not_be_read_is_told_and_the_rest_checked(self, path: Path) -> None:
        report = self.tampered(path, "UPDATE record SET change = '{' WHERE step = 30")
        kinds = told(report)
        assert [place[0] for place in kinds] == ["unreadable"]
        assert kinds[0][2] == 30
        report = self.tampered(path, "UPDATE record SET note = 'x' WHERE step = 60 AND channel = 'n'")
        assert told(report)[1:] == [("record", seq("n", 60), 60, "n", "record_hash")]

    def test_a_flipped_byte_of_a_snapshot(self, path: Path) -> None:
        report = self.tampered(path, "UPDATE snapshot SET body = flip(body, 50)")
        assert {found.kind for found in report.mismatches} == {"unreadable"}


class TestFiles:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        run(FileCheckpointer(tmp_path / "runs"), 6)
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

    @pytest.mark.parametrize(("field", "value", "kind", "told_field"), FIELDS)
    def test_a_record(self, directory: Path, field: str, value: Any, kind: str, told_field: str) -> None:
        place = ORDER.index("notes")
        report = self.tampered(
            directory / "steps" / "00000003.json", lambda data: data["records"][place].update({field: value})
        )
        number = 999 if field == "seq" else seq("notes", 3)
        assert told(report) == [(kind, number, 3, "notes", told_field)]

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
        assert told(report)[0] == ("checkpoint", None, 3, None, "state_hash")

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


def test_it_holds_no_whole_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[int] = []
    with closing(SQLiteCheckpointer(tmp_path / "runs.db")) as store:
        for step in range(600):
            store.save("t", step, {"n": step})
        reading = store.records

        def records(thread_id: str, first: int, last: int) -> Any:
            spans.append(last - first + 1)
            return reading(thread_id, first, last)

        monkeypatch.setattr(store, "records", records)
        assert verify(store, "t").records == 600
    assert max(spans) <= 256
    assert len(spans) == 3
