"""What only the files store promises: its files, their names, and what is wrong with them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.errors import HitlError, LogCorrupt, StoreUnusable, ValueRejected
from hitl_tui.stores import FileCheckpointer, open_store
from hitl_tui.stores.files import directory
from tests.stores.log_writer import Writer, entry, info
from tests.support.spec import spec

pytestmark = spec("10")


def thread_of(root: Path) -> Path:
    (found,) = (root / "threads").iterdir()
    return found


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestChangesBehindItsBack:
    def test_a_list_of_threads_shows_what_another_store_on_it_wrote_a_moment_ago(
        self, files: FileCheckpointer
    ) -> None:
        writer = Writer(files)
        other = FileCheckpointer(files.path)
        for head in range(30):
            writer.step({"n": head})
            assert [row.head for row in other.threads()] == [head]

    def test_a_list_of_threads_shows_a_change_that_left_its_file_looking_the_same(
        self, root: Path, files: FileCheckpointer
    ) -> None:
        Writer(files).step()
        before = files.threads()[0].updated_at
        file = thread_of(root) / "cursor.json"
        facts = file.stat()
        file.write_text(file.read_text().replace(f'"updated_at": {before}', f'"updated_at": {before + 1}'))
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert files.threads()[0].updated_at == before + 1

    def test_a_snapshot_of_a_writer_that_was_killed_is_not_taken_for_the_next_ones(
        self, root: Path, files: FileCheckpointer
    ) -> None:
        writer = Writer(files)
        writer.step(snapshot=b"zero")
        parts = thread_of(root) / "snapshots"
        (parts / "00000001.part").write_bytes((parts / "00000000.part").read_bytes())
        assert files.snapshot("t", 9) == (0, b"zero")
        writer.step()
        assert files.snapshot("t", 9) == (0, b"zero")


class TestNames:
    HOSTILE = (
        "../../x",
        "..",
        "/etc/passwd",
        "CON",
        "con",
        "Con",
        "nul.txt",
        "a/b",
        "a\\b",
        "ä",
        "a\u0308",
        "x" * 200,
        "X" * 200,
        "😀" * 200,
        "-rf",
        ".hidden",
        "a b",
        "a:b",
        "%00",
        "\u202e",
        "~",
        "*",
    )

    def test_any_id_has_its_own_safe_directory(self, root: Path, files: FileCheckpointer) -> None:
        for n, name in enumerate(self.HOSTILE):
            Writer(files, name).step({"n": n})
        assert files.list_threads() == sorted(self.HOSTILE)
        names = [path.name for path in (root / "threads").iterdir()]
        assert len({name.casefold() for name in names}) == len(self.HOSTILE)
        for name in names:
            assert name == name.lower()
            assert name.isascii()
            assert len(name) <= 60
            assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789-")
        again = FileCheckpointer(root)
        for n, name in enumerate(self.HOSTILE):
            assert [record.update for record in again.records(name, 0, 0)] == [n]
        assert sorted(path.name for path in root.parent.iterdir()) == ["runs"]

    def test_a_name_is_readable(self, root: Path, files: FileCheckpointer) -> None:
        Writer(files, "Report 11/21")
        assert thread_of(root).name.startswith("report-11-21-")


class TestFile:
    def test_a_step_is_one_readable_file(self, root: Path, files: FileCheckpointer) -> None:
        writer = Writer(files)
        writer.step({"messages": {"z": 1, "a": [1.0, "ä"]}}, ledger=(entry(writer.cursor),))
        text = (thread_of(root) / "steps" / "00000000.json").read_text()
        data = json.loads(text)
        assert text.startswith('{\n  "checkpoint": {\n    "thread_id": "t",\n    "step": 0,')
        assert '"ä"' in text
        (record,) = data["records"]
        assert record["update"] == {"z": 1, "a": [1.0, "ä"]}
        assert record["update_hash"].startswith("sha256:")
        assert json.loads((thread_of(root) / "decisions" / "00000001.json").read_text())["kind"] == "answer"
        names = sorted(path.name for path in thread_of(root).iterdir())
        assert names == [
            "cursor.json",
            "decisions",
            "info.json",
            "lease.json",
            "lock",
            "snapshots",
            "steps",
        ]

    def test_all_is_for_its_owner_alone(self, root: Path) -> None:
        umask = os.umask(0)
        try:
            store = FileCheckpointer(root / "new" / "deep")
            Writer(store).step(snapshot=b"s")
        finally:
            os.umask(umask)
        for path in [root, *root.rglob("*")]:
            assert mode(path) == (0o700 if path.is_dir() else 0o600), path

    @pytest.mark.parametrize("form", ["files:{}", "{}", "{}/"])
    def test_is_opened_by_a_url_or_a_path(self, root: Path, form: str) -> None:
        FileCheckpointer(root).save("t", 0, {"a": 1})
        with closing(open_store(form.format(root))) as store:
            assert isinstance(store, FileCheckpointer)
            assert store.load_latest("t") == (0, {"a": 1})

    @pytest.mark.parametrize("change", [{"actor": "\ud800"}, {"text": "\udc80 draft"}])
    def test_text_that_no_file_can_hold_is_refused(
        self, files: FileCheckpointer, change: dict[str, Any]
    ) -> None:
        writer = Writer(files)
        with pytest.raises(ValueRejected, match="surrogate"):
            writer.step(point=change)
        with pytest.raises(ValueRejected, match="surrogate"):
            files.create_thread(info("u", created_by="\ud800"), writer.cursor)
        assert writer.step().cursor.version == 1
        assert files.list_threads() == ["t"]

    @pytest.mark.slow
    def test_a_thread_locked_for_too_long_says_so(
        self, files: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(directory, "BUSY_SECONDS", 0.02)
        writer = Writer(files)
        with (
            directory.locked(thread_of(files.path) / "lock"),
            pytest.raises(StoreUnusable, match="locked"),
        ):
            writer.step()
        writer.step()
        assert writer.cursor.head == 0


def text_in_it(root: Path) -> None:
    root.mkdir()
    (root / "notes.txt").write_text("mine")


def threads_without_a_mark(root: Path) -> None:
    (root / "threads").mkdir(parents=True)


def another_mark(root: Path) -> None:
    root.mkdir()
    (root / directory.MARKER).write_text('{"kind": "cookies", "version": 1}')


def link_for_a_mark(root: Path) -> None:
    root.mkdir()
    (root / directory.MARKER).symlink_to("/etc/hostname")


class TestNotOurs:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (text_in_it, "holds 'notes.txt'"),
            (threads_without_a_mark, "holds 'threads'"),
            (another_mark, "is a 'cookies', not a files store"),
            (link_for_a_mark, "symbolic link"),
            (Path.touch, "can't be used"),
        ],
    )
    def test_is_refused_and_not_touched(
        self, root: Path, make: Callable[[Path], object], message: str
    ) -> None:
        make(root)
        before = [(path, path.lstat()) for path in [root, *root.rglob("*")]]
        with pytest.raises(StoreUnusable, match=message) as caught:
            FileCheckpointer(root)
        assert str(root) in caught.value.message
        assert [(path, path.lstat()) for path in [root, *root.rglob("*")]] == before

    @pytest.mark.parametrize(
        ("version", "age", "hint"),
        [(directory.VERSION - 1, "an older", "name another"), (directory.VERSION + 1, "a newer", "upgrade")],
    )
    def test_a_store_of_another_version_is_refused(
        self, root: Path, files: FileCheckpointer, version: int, age: str, hint: str
    ) -> None:
        mark = root / directory.MARKER
        mark.write_text(mark.read_text().replace(str(directory.VERSION), str(version)))
        with pytest.raises(StoreUnusable, match=f"{age} hitl-tui") as caught:
            FileCheckpointer(root)
        assert caught.value.hint.startswith(hint)

    def test_a_damaged_marker_file_says_how_to_fix_it(self, root: Path, files: FileCheckpointer) -> None:
        (root / directory.MARKER).write_text("{")
        with pytest.raises(LogCorrupt, match=r'should read .*"hitl-tui files store"'):
            FileCheckpointer(root)

    def test_foreign_things_among_the_threads_are_left_alone(
        self, root: Path, files: FileCheckpointer
    ) -> None:
        Writer(files).step()
        (root / "threads" / "lost+found").mkdir()
        (root / "threads" / "README").write_text("mine")
        assert FileCheckpointer(root).list_threads() == ["t"]

    def test_a_read_only_store_is_read(
        self, root: Path, files: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Writer(files).step()
        monkeypatch.setattr(os, "access", lambda _path, wanted: not wanted & os.W_OK)
        store = FileCheckpointer(root)
        assert store.list_threads() == ["t"]
        assert "read-only" in store.why_read_only


class TestDamage:
    @pytest.fixture
    def thread(self, root: Path, files: FileCheckpointer) -> Path:
        writer = Writer(files)
        for step in range(5):
            writer.step({"a": "x" * 500}, snapshot=b"s%d" % step, ledger=(entry(writer.cursor),))
        return thread_of(root)

    def read_all(self, thread: Path) -> None:
        store = FileCheckpointer(thread.parents[1])
        store.threads()
        store.cursor("t")
        store.lease("t")
        store.checkpoints("t", None, 99)
        list(store.records("t", 0, 99))
        store.ledger("t")

    NAMES = ("info.json", "cursor.json", "lease.json", "steps/00000002.json", "decisions/00000003.json")

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize(
        "harm",
        [
            lambda data: b"",
            lambda data: data[: len(data) // 2],
            lambda data: b"\xff" + data,
            lambda data: data.replace(b"{", b"[", 1),
            lambda data: b"null",
            lambda data: b"[" * 100_000,
        ],
        ids=["empty", "cut off", "no text", "no JSON", "null", "deep"],
    )
    def test_a_damaged_file_is_named(self, thread: Path, name: str, harm: Callable[[bytes], bytes]) -> None:
        file = thread / name
        file.write_bytes(harm(file.read_bytes()))
        with pytest.raises(LogCorrupt, match="is damaged") as caught:
            self.read_all(thread)
        assert str(file) in caught.value.message
        assert ("delete the file" if name == "lease.json" else "backup") in caught.value.hint

    @pytest.mark.parametrize("name", [name for name in NAMES if name != "lease.json"])
    def test_a_missing_file_is_named(self, thread: Path, name: str) -> None:
        (thread / name).unlink()
        with pytest.raises(HitlError) as caught:
            self.read_all(thread)
        assert str(thread / name) in caught.value.message

    @pytest.mark.parametrize("name", ["cursor.json", "steps", "steps/00000002.json"])
    def test_a_link_is_refused_wherever_it_leads(self, thread: Path, name: str) -> None:
        real = thread.parents[2] / "elsewhere"
        (thread / name).rename(real)
        (thread / name).symlink_to(real)
        with pytest.raises((LogCorrupt, StoreUnusable), match="symbolic link") as caught:
            self.read_all(thread)
        assert str(thread / name) in caught.value.message

    def test_a_pipe_does_not_hold_up_a_reader(self, thread: Path) -> None:
        (thread / "cursor.json").unlink()
        os.mkfifo(thread / "cursor.json")
        with pytest.raises(LogCorrupt, match="not a file"):
            self.read_all(thread)

    def test_a_directory_of_another_name_is_refused(self, thread: Path) -> None:
        thread.rename(thread.with_name("u-0123456789abcdef"))
        with pytest.raises(LogCorrupt, match="another thread, 't'"):
            self.read_all(thread)

    def test_a_swapped_step_file_is_reported(self, root: Path, files: FileCheckpointer) -> None:
        writer = Writer(files)
        writer.step()
        writer.step()
        steps = thread_of(root) / "steps"
        (steps / "00000001.json").write_bytes((steps / "00000000.json").read_bytes())
        with pytest.raises(LogCorrupt, match="it holds step 0"):
            files.checkpoint("t", 1)

    def test_a_snapshot_with_a_flipped_byte_is_damaged(self, root: Path) -> None:
        store = FileCheckpointer(root)
        for step in range(3):
            store.save("t", step, {"a": ["x" * 9000] * (step + 1), "b": "y" * 9000})
        (file,) = list((thread_of(root) / "snapshots").iterdir())[-1:]
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        with pytest.raises(LogCorrupt, match="not as it was written") as caught:
            store.load_latest("t")
        assert "cache" in caught.value.hint
