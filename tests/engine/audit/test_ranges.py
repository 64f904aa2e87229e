"""A log is checked in ranges, apart from one another or not: the findings are the same."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.engine.audit import processes, steps
from hitl_tui.engine.audit import verify as verify_module
from hitl_tui.engine.audit.findings import VerifyReport
from hitl_tui.engine.audit.processes import Faults, Processes, processes_for
from hitl_tui.engine.audit.steps import RangeReport, Task, check_range
from hitl_tui.engine.audit.verify import verify, verify_tree
from hitl_tui.engine.log.store import Store
from hitl_tui.errors import LogCorrupt
from tests.engine.audit.logs import run
from tests.support.spec import spec

pytestmark = spec("12")

WINDOW, RANGES = 8, 4


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "runs.db"
    with closing(SQLiteCheckpointer(path, durability="none")) as store:
        run(store)
    return path


@pytest.fixture
def copy(log: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(log, tmp_path / "copy.db"))


@pytest.fixture(autouse=True)
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (steps, verify_module):
        monkeypatch.setattr(module, "WINDOW", WINDOW)


class Apart:
    """Checks ranges as processes do, here: each knows nothing of the others."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reports: list[RangeReport | None] = []

    def ranges(self, steps: int) -> int:
        return RANGES

    @contextmanager
    def checks(self, tasks: Sequence[Task], far: Callable[[int], object]) -> Iterator[Apart]:
        self.reports = [self._check(task) for task in tasks]
        yield self

    def _check(self, task: Task) -> RangeReport | None:
        try:
            return check_range(self.store, task)
        except LogCorrupt:
            return None

    def result(self, index: int) -> RangeReport | None:
        return self.reports[index]

    def report_progress(self, step: int) -> None:
        pass

    def faults(self, thread_id: str, since: int) -> Any:
        faults = Faults.of(self.store, thread_id, since)
        return type("Done", (), {"result": lambda self: faults})()


def both(path: Path, **options: Any) -> tuple[VerifyReport, VerifyReport, Apart]:
    """The reports of one check and of one in ranges."""
    with closing(SQLiteCheckpointer(path)) as store:
        apart: Any = Apart(store)
        return verify(store, "t", **options), verify(store, "t", processes=apart, **options), apart


@pytest.mark.slow
def test_ranges_of_a_whole_log_join(log: Path) -> None:
    whole, ranges, apart = both(log)
    assert whole == ranges
    assert whole.ok
    assert len(apart.reports) == RANGES
    joined = [report for report in apart.reports if report is not None]
    assert all(after.follows(before.end_after(before.entry)) for before, after in pairwise(joined))


RECORD = "SELECT id FROM record WHERE step = {} ORDER BY id {} LIMIT 1"
DEEDS = {
    "an update": "UPDATE record SET change = '7' WHERE id = ({first})",
    "hashes": "UPDATE record SET hashes = zeroblob(96) WHERE id = ({first})",
    "a note": "UPDATE record SET note = 'x' WHERE id = ({last})",
    "the step of a record": "UPDATE record SET step = {seam} WHERE id = ({last})",
    "no first record": "DELETE FROM record WHERE id = ({first})",
    "no last record": "DELETE FROM record WHERE id = ({last})",
    "no records of the step": "DELETE FROM record WHERE step = {seam}",
    "no step": "DELETE FROM checkpoint WHERE id & 4294967295 = {seam}",
    "no step before": "DELETE FROM checkpoint WHERE id & 4294967295 = {seam} - 1",
    "a reason": "UPDATE checkpoint SET reason = 'x' WHERE id & 4294967295 = {seam}",
    "a reason before": "UPDATE checkpoint SET reason = 'x' WHERE id & 4294967295 = {seam} - 1",
    "the first seq": "UPDATE checkpoint SET first_seq = first_seq + 1 WHERE id & 4294967295 = {seam}",
    "the last seq before": "UPDATE checkpoint SET last_seq = last_seq + 1 WHERE id & 4294967295 = {seam} - 1",
    "the hashes of a step": "UPDATE checkpoint SET hashes = zeroblob(96) WHERE id & 4294967295 = {seam}",
    "the hashes of the step before": (
        "UPDATE checkpoint SET hashes = zeroblob(96) WHERE id & 4294967295 = {seam} - 1"
    ),
    "a step twice": (
        "UPDATE checkpoint SET (hashes, first_seq, last_seq, at) = (SELECT hashes, first_seq, last_seq, at "
        "FROM checkpoint WHERE id & 4294967295 = {seam} - 1) WHERE id & 4294967295 = {seam}"
    ),
    "no type": "UPDATE checkpoint SET node = 7 WHERE id & 4294967295 = {seam}",
    "no JSON": "UPDATE record SET change = x'7b' WHERE id = ({last})",
    "no snapshots": "DELETE FROM snapshot WHERE id & 4294967295 BETWEEN 1 AND {seam}",
    "snapshots of another step": (
        "UPDATE snapshot SET body = (SELECT body FROM snapshot ORDER BY id DESC LIMIT 1) "
        "WHERE id & 4294967295 < {seam} AND id & 4294967295 > 0"
    ),
    "damaged snapshots": (
        "UPDATE snapshot SET body = x'66' WHERE id & 4294967295 BETWEEN {seam} - 16 AND {seam}"
    ),
}


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("seam", [48, *(pytest.param(step, marks=pytest.mark.slow) for step in (24, 72))])
def test_what_is_changed_at_a_seam_is_found_alike(copy: Path, deed: str, seam: int) -> None:
    places = {"first": RECORD.format(seam, "ASC"), "last": RECORD.format(seam - 1, "DESC"), "seam": seam}
    change(copy, DEEDS[deed].format(**places))
    whole, ranges, _ = both(copy)
    assert not whole.ok
    assert ranges == whole


@pytest.mark.parametrize("table", ["record", "checkpoint"])
def test_ranges_that_changed_places_are_found_alike(copy: Path, table: str) -> None:
    """Every row of the steps 24..47 lies where one of 48..71 was, and the other way round."""
    size = 9 if table == "record" else 1
    first, far = (RECORD.format(24, "ASC"), 24 * size) if table == "record" else (None, 24)
    with closing(sqlite3.connect(copy)) as db:
        key = 1 << 32
        begin = db.execute(first).fetchone()[0] if first else key + 24
        end, away = begin + 24 * size, 1 << 40
        db.execute(f"UPDATE {table} SET id = id + ? WHERE id >= ? AND id < ?", (away, begin, end))
        db.execute(
            f"UPDATE {table} SET id = id - ? WHERE id >= ? AND id < ?",
            (far, begin + far, end + far),
        )
        db.execute(f"UPDATE {table} SET id = id - ? + ? WHERE id >= ?", (away, far, begin + away))
        db.commit()
    whole, ranges, _ = both(copy)
    assert not whole.ok
    assert ranges == whole


@pytest.mark.slow
def test_a_rewritten_range_whose_own_hashes_hold_is_found_at_its_seams(log: Path, tmp_path: Path) -> None:
    """Steps of another run of the graph in the place of this one's: each range agrees with itself."""
    other, here = tmp_path / "other.db", Path(shutil.copy(log, tmp_path / "here.db"))
    with closing(SQLiteCheckpointer(other, durability="none")) as store:
        run(store)
    with closing(sqlite3.connect(here)) as db:
        db.execute("ATTACH ? AS other", (str(other),))
        low, high = "id & 4294967295 >= 24", "id & 4294967295 < 48"
        for table, where in (
            ("checkpoint", f"{low} AND {high}"),
            ("snapshot", f"{low} AND {high}"),
            ("record", "step >= 24 AND step < 48"),
        ):
            db.execute(f"DELETE FROM {table} WHERE {where}")
            db.execute(f"INSERT INTO {table} SELECT * FROM other.{table} WHERE {where}")
        db.commit()
    whole, ranges, _ = both(here)
    assert ranges == whole
    places = {found.step for found in whole.mismatches if found.field == "record_hash"}
    assert places == {24, 48}


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["no step", "an update", "the hashes of a step"])
def test_a_change_after_the_step_that_a_check_begins_with_is_found(copy: Path, deed: str) -> None:
    places = {"first": RECORD.format(60, "ASC"), "last": RECORD.format(59, "DESC"), "seam": 60}
    change(copy, DEEDS[deed].format(**places))
    assert not both(copy, since=48)[0].ok
    assert both(copy, since=60)[0].mismatches == both(copy, since=60)[1].mismatches != ()


def test_a_check_since_a_step_looks_at_no_step_before_it(copy: Path) -> None:
    change(copy, "UPDATE checkpoint SET reason = 'x' WHERE id & 4294967295 = 20")
    whole, since = both(copy)[0], both(copy, since=48)[0]
    assert [found.step for found in whole.mismatches] == [20]
    assert since.ok
    assert (since.since, since.checkpoints) == (48, whole.checkpoints - 48)


# -- processes ------------------------------------------------------------------------------------


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SMALLEST", 10)
    monkeypatch.setattr(processes, "cores", lambda: 2)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pids(running: Processes) -> list[int]:
    return [child.pid for child in running._children]


@pytest.mark.integration
@pytest.mark.usefixtures("two_cores")
class TestProcesses:
    """Real processes, on a log that is long to them."""

    def test_they_find_what_one_process_finds(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with closing(SQLiteCheckpointer(copy)) as store:
            here = verify_tree(store, "t")
            assert here.ok
            change(copy, DEEDS["a reason"].format(seam=48))
            change(copy, "INSERT INTO spending (id, body) VALUES (99 << 32, x'5b5d')")
            apart = verify_tree(store, "t")
            monkeypatch.setattr(processes, "cores", lambda: 1)
            assert verify_tree(store, "t") == apart != here

    def test_processes_report_their_progress(self, log: Path) -> None:
        far: list[tuple[int, int]] = []
        with closing(SQLiteCheckpointer(log)) as store:
            assert verify_tree(store, "t", watch=lambda *at: far.append(at)).ok
        assert far == sorted(far)
        assert far
        assert {of for _, of in far} == {82}

    def test_the_processes_end_when_the_check_ends_or_is_cancelled(self, log: Path) -> None:
        started: list[int] = []
        with closing(SQLiteCheckpointer(log)) as store:
            with processes_for(store, 80) as running:
                assert running is not None
                started += pids(running)
                assert verify(store, "t", processes=running).ok

            def give_up(*_: int) -> None:
                raise KeyboardInterrupt

            def given_up() -> None:
                with processes_for(store, 80) as running:
                    assert running is not None
                    started.extend(pids(running))
                    verify(store, "t", processes=running, watch=give_up)

            with pytest.raises(KeyboardInterrupt):
                given_up()
        assert len(started) == 4
        assert not any(map(alive, started))

    def test_the_work_of_a_killed_process_is_done_by_the_caller(self, log: Path) -> None:
        with closing(SQLiteCheckpointer(log)) as store, processes_for(store, 80) as running:
            assert running is not None
            for pid in pids(running):
                os.kill(pid, 9)
            assert verify(store, "t", processes=running) == verify(store, "t")

    def test_no_process_is_started_for_a_short_thread_or_one_core(
        self, log: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with closing(SQLiteCheckpointer(log)) as store:
            with processes_for(store, 9) as running:
                assert running is None
            monkeypatch.setattr(processes, "cores", lambda: 1)
            with processes_for(store, 1_000_000) as running:
                assert running is None

    def test_no_process_is_started_for_a_store_that_only_this_process_has(self, copy: Path) -> None:
        with closing(SQLiteCheckpointer(copy)) as store:
            away = copy.rename(copy.with_name("elsewhere.db"))
            with processes_for(store, 80) as running:
                assert running is None
            away.rename(copy)


def change(path: Path, sql: str) -> None:
    """Change a store behind its back, and something of it."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(sql).rowcount > 0
        db.commit()
