"""The threads that subgraphs ran in travel with their parent, and are found again under its new name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hitl_tui import GraphRunner
from hitl_tui.engine.audit.findings import Mismatch
from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.run.rollback import rollback_entries
from hitl_tui.errors import LogCorrupt, ThreadBusy, UsageError
from hitl_tui.stores import Checkpointer, MemoryCheckpointer
from hitl_tui.stores.transfer import ChildPlace, Header, Names, export_thread, import_thread
from tests.engine.run.booking import World, states
from tests.engine.run.nested_trip import DESK, TEAM, nested
from tests.stores.asking_desk import asking
from tests.support.spec import spec

pytestmark = [spec("7"), spec("10")]


def booked(store: Checkpointer) -> GraphRunner:
    runner = nested(store, World())
    runner.invoke({"note": "x"}, thread_id="t")
    return runner


def names(store: Checkpointer) -> set[str]:
    return {one.info.thread_id for one in store.threads()}


def made_by(store: Checkpointer, thread: str) -> list[str]:
    """The threads that a thread's steps lead to."""
    points = store.checkpoints(thread, None, 99)
    return [one.thread for point in points for one in point.branches if one.thread]


def entries_of(store: Checkpointer, thread: str) -> tuple[RollbackEntry, ...]:
    cursor = store.cursor(thread)
    assert cursor is not None
    return rollback_entries(store, cursor)


def facts(store: Checkpointer, thread_id: str) -> tuple[ThreadInfo, Cursor]:
    """What is fixed about a thread and where it stands, but for what comes next is chained to."""
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    assert info is not None
    assert cursor is not None
    links = {"last_record_hash": b"", "checkpoint_hash": b"", "ledger_hash": b""}
    return replace(info, facts_hash=b""), replace(cursor, **links)


class TestThere:
    def test_they_arrive_as_they_were(self, store: Checkpointer, other: Checkpointer) -> None:
        booked(store)
        import_thread(other, export_thread(store, "t"))
        assert names(other) == {"t", TEAM, DESK}
        for thread in ("t", TEAM, DESK):
            assert facts(other, thread) == facts(store, thread)
            assert other.checkpoints(thread, None, 99) == store.checkpoints(thread, None, 99)
            assert list(other.records(thread, 0, 99)) == list(store.records(thread, 0, 99))
        report = nested(other, World()).verify("t", strict=True)
        assert (report.mismatches, report.threads, report.missing) == ((), (TEAM, DESK), ())

    def test_under_another_name_they_are_named_after_it(
        self, store: Checkpointer, other: Checkpointer
    ) -> None:
        booked(store)
        import_thread(other, export_thread(store, "t"), "new")
        inside = ("new/team#1", "new/team#1/desk#1")
        assert names(other) == {"new", *inside}
        assert made_by(other, "new") == [inside[0]]
        assert made_by(other, inside[0]) == [inside[1]]
        owner = other.info(inside[1]).owner  # type: ignore[union-attr]
        assert (owner.thread_id, owner.node) == (inside[0], "desk")  # type: ignore[union-attr]
        for strict in (False, True):
            report = nested(other, World()).verify("new", strict=strict)
            assert (report.mismatches, report.threads) == ((), inside)

    @pytest.mark.parametrize(("ran", "new"), [("t" * 200, None), ("t" * 200, "t"), ("t", "t" * 200)])
    def test_the_longest_names_leave_room_for_theirs(
        self, store: Checkpointer, other: Checkpointer, ran: str, new: str | None
    ) -> None:
        nested(store, World()).invoke({"note": "x"}, thread_id=ran)
        name = import_thread(other, export_thread(store, ran), new)
        assert name == (new or ran)
        report = nested(other, World()).verify(name, strict=True)
        assert (report.mismatches, report.missing) == ((), ())
        assert [inside.rpartition("/")[2] for inside in report.threads] == ["team#1", "desk#1"]
        assert {len(inside) for inside in names(other)} == ({1, 8, 15} if name == "t" else {200})

    def test_what_was_hashed_with_a_name_keeps_it(self, store: Checkpointer, other: Checkpointer) -> None:
        booked(store)
        import_thread(other, export_thread(store, "t"), "new")
        assert {one.thread_id for one in other.records("new/team#1/desk#1", 0, 9)} == {DESK}
        hashes = [one.record_hash for one in store.records(DESK, 0, 9)]
        assert [one.record_hash for one in other.records("new/team#1/desk#1", 0, 9)] == hashes

    def test_beside_the_one_it_was_made_from(self, store: Checkpointer) -> None:
        runner = booked(store)
        import_thread(store, export_thread(store, "t"), "copy")
        assert runner.verify("copy", strict=True).threads == ("copy/team#1", "copy/team#1/desk#1")
        assert runner.verify("t", strict=True).threads == (TEAM, DESK)

    def test_there_and_back_under_a_third_name(self, store: Checkpointer, other: Checkpointer) -> None:
        booked(store)
        import_thread(other, export_thread(store, "t"), "u")
        import_thread(store, export_thread(other, "u"), "v")
        report = nested(store, World()).verify("v", strict=True)
        assert (report.mismatches, report.threads) == ((), ("v/team#1", "v/team#1/desk#1"))

    def test_a_child_that_asks_is_answered_where_it_arrives(
        self, store: Checkpointer, other: Checkpointer
    ) -> None:
        asking(store).invoke(thread_id="t")
        import_thread(other, export_thread(store, "t"), "new")
        runner = asking(other)
        request = other.cursor("new").pending[0]  # type: ignore[union-attr]
        assert request.thread == "new/editor#1"
        runner.answer("new", request.id, "print", step=request.step, actor="ann")
        result = runner.invoke(thread_id="new")
        assert (result.status, result.state["article"]) == ("completed", "a draft")
        assert runner.verify("new", strict=True).ok
        assert store.cursor("t").pending  # type: ignore[union-attr]

    def test_an_export_alone_leaves_out_subgraph_threads_and_says_so(
        self, store: Checkpointer, other: Checkpointer
    ) -> None:
        booked(store)
        import_thread(other, export_thread(store, "t", alone=True), "new")
        assert names(other) == {"new"}
        report = nested(other, World()).verify("new")
        assert report.missing == ("new/team#1",)
        assert report.mismatches == (Mismatch("gap", None, 2, None, "thread", "new/team#1", None),)

    def test_a_child_by_itself_under_another_name_is_nobodys(
        self, store: Checkpointer, other: Checkpointer
    ) -> None:
        booked(store)
        import_thread(other, export_thread(store, TEAM), "own")
        import_thread(other, export_thread(store, TEAM))
        assert other.info("own").owner is None  # type: ignore[union-attr]
        assert other.info(TEAM).owner is not None  # type: ignore[union-attr]
        assert made_by(other, "own") == ["own/desk#1"]


class TestForks:
    def test_a_fork_brings_those_of_the_steps_it_shares_under_its_own_name(
        self, store: Checkpointer, other: Checkpointer
    ) -> None:
        booked(store).fork("t", 2, "f")
        import_thread(other, export_thread(store, "f"))
        assert names(other) == {"f", "f/team#1", "f/team#1/desk#1"}
        assert nested(other, World()).verify("f", strict=True).threads == ("f/team#1", "f/team#1/desk#1")

    def test_two_that_would_be_called_the_same_are_counted_on(self) -> None:
        info = ThreadInfo("f", "trip", "", {}, "t", 2, 2, 0)
        inside = (
            ChildPlace("f/team#2", "f"),
            ChildPlace("t/team#2", "f"),
            ChildPlace("t/team#2/desk#1", "t/team#2"),
            ChildPlace("t/team#3", "f"),
        )
        names = Names(Header(info, b"", 0, (), (), inside), "new")
        again = "new/2/team#2"
        assert sorted(names.all()) == ["new", again, f"{again}/desk#1", "new/team#2", "new/team#3"]
        assert names.of("f/team#2") == "new/team#2"


class TestRollback:
    def test_a_carried_thread_can_undo_what_it_did(self, store: Checkpointer, other: Checkpointer) -> None:
        booked(store)
        import_thread(other, export_thread(store, "t"), "new")
        world = World()
        runner = nested(other, world)
        before = entries_of(other, "new")
        assert {entry.state for entry in before} == {"open"}
        report = runner.rollback("new")
        assert report.ok
        assert [place for place, _ in world.calls] == ["car", "taxi", "spa", "hotel", "flight"]
        assert runner.verify("new", strict=True).ok

    def test_a_carried_fork_still_leaves_alone_what_its_parent_did(
        self, store: Checkpointer, other: Checkpointer
    ) -> None:
        runner = booked(store)
        runner.fork("t", 2, "f")
        runner.invoke(thread_id="f")
        import_thread(other, export_thread(store, "f"), "new")
        import_thread(other, export_thread(other, "new"), "newer")
        for thread in ("new", "newer"):
            entries = entries_of(other, thread)
            assert states(entries) == states(entries_of(store, "f"))
            assert states(entries) == {
                "car": "open",
                "taxi": "inherited",
                "spa": "inherited",
                "hotel": "inherited",
                "flight": "inherited",
            }


def with_inside(lines: list[bytes], inside: list[Any]) -> list[bytes]:
    first = json.loads(lines[0])
    return [json.dumps(first | {"inside": inside}).encode() + b"\n", *lines[1:]]


def at_cursor(lines: list[bytes], nth: int) -> int:
    """The place of the last line of the nth thread."""
    return [n for n, line in enumerate(lines) if line.startswith(b'{"cursor"')][nth]


def without_line(lines: list[bytes], n: int) -> list[bytes]:
    return [*lines[:n], *lines[n + 1 :]]


class TestRefused:
    @pytest.fixture
    def there(self) -> Checkpointer:
        made = MemoryCheckpointer()
        booked(made)
        return made

    def test_a_damaged_export_leaves_nothing_of_any(self, there: Checkpointer, other: Checkpointer) -> None:
        damages: dict[str, Callable[[list[bytes]], list[bytes]]] = {
            "cut off after the parent": lambda lines: lines[: at_cursor(lines, 0) + 1],
            "cut off inside a child": lambda lines: lines[: at_cursor(lines, 1)],
            "without its last line": lambda lines: lines[:-1],
            "a step is missing": lambda lines: without_line(lines, at_cursor(lines, 1) + 3),
            "more lines at the end": lambda lines: [*lines, lines[-1]],
            "changed": lambda lines: [line.replace(b"spa", b"sap") for line in lines],
            "a child that is not announced": lambda lines: with_inside(lines, []),
            "below an unknown thread": lambda lines: with_inside(lines, [[TEAM, "else"]]),
            "below itself": lambda lines: with_inside(lines, [[TEAM, TEAM]]),
            "the thread inside itself": lambda lines: with_inside(lines, [["t", "t"]]),
        }
        lines = list(export_thread(there, "t"))
        for what, damaged in damages.items():
            with pytest.raises(LogCorrupt, match="nothing was imported"):
                import_thread(other, damaged(lines), "new")
            assert names(other) == set(), what
        import_thread(other, lines, "new")
        assert names(other) == {"new", "new/team#1", "new/team#1/desk#1"}

    def test_the_name_of_a_child_is_taken(self, there: Checkpointer, other: Checkpointer) -> None:
        import_thread(other, export_thread(there, DESK))
        with pytest.raises(ThreadBusy, match="'t/team#1/desk#1' already"):
            import_thread(other, export_thread(there, "t"))
        assert names(other) == {DESK}

    def test_a_name_that_is_too_long(self, there: Checkpointer, other: Checkpointer) -> None:
        with pytest.raises(UsageError, match="200 characters"):
            import_thread(other, export_thread(there, "t"), "n" * 201)
        assert names(other) == set()


def test_an_export_without_the_threads_inside_arrives_and_verify_says_so(
    store: Checkpointer, other: Checkpointer
) -> None:
    booked(store)
    import_thread(other, export_thread(store, "t", alone=True))
    report = nested(other, World()).verify("t", strict=True)
    assert [(mismatch.kind, mismatch.step, mismatch.expected) for mismatch in report.mismatches] == [
        ("gap", 2, TEAM)
    ]


def test_a_child_that_has_gone_from_the_store_does_not_stop_the_export(
    store: Checkpointer, other: Checkpointer
) -> None:
    booked(store)
    import_thread(other, export_thread(store, "t", alone=True))
    lines = list(export_thread(other, "t"))
    assert json.loads(lines[0])["inside"] == []
