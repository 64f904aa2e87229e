"""A thread carried between any two stores, and files that are no such thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import Channel, GraphRunner, StateGraph, append
from hitl_tui.engine.audit.verify import verify
from hitl_tui.engine.log.records import END, START
from hitl_tui.errors import HitlError, LogCorrupt, StoreUnusable, ThreadBusy, UsageError
from hitl_tui.stores import Checkpointer, MemoryCheckpointer, SQLiteCheckpointer
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.support.odd_files import VALUES, leaves, put
from tests.support.spec import spec

pytestmark = spec("10")

DEEP = b'{"format":"hitl-tui thread","version":5,"info":%s1%s}\n'
"""A header whose facts are nested deeper than anything should follow."""


def graph() -> StateGraph:
    def write(state: Any, _config: Any) -> dict[str, Any]:
        n = state["n"]
        return {"notes": f"{n} " + "x" * 400, "n": n + 1, "best": n % 7, "secret": f"pw-{n}"}

    return (
        StateGraph(
            {
                "notes": Channel(["first"], reducer=append()),
                "n": Channel(0),
                "best": Channel(3, reducer="max"),
                "secret": Channel("", visibility="private"),
            }
        )
        .add_node("write", write)
        .add_edge(START, "write")
        .add_conditional_edge(
            "write", lambda s: "end" if s["n"] >= 200 else "on", {"end": END, "on": "write"}
        )
    )


def runner_on(store: Checkpointer) -> GraphRunner:
    return graph().compile(checkpointer=store)


def looks(store: Checkpointer, thread_id: str) -> list[Any]:
    cursor = store.cursor(thread_id)
    assert cursor is not None
    # What comes next is chained to the thread as it is called here.
    links = {"last_record_hash": b"", "checkpoint_hash": b"", "ledger_hash": b""}
    return [
        msgspec.structs.replace(cursor, thread_id="", **links),
        store.checkpoints(thread_id, None, 999),
        list(store.records(thread_id, 0, 999)),
        # A login is of the store that has the entry.
        [msgspec.structs.replace(entry, login="") for entry in store.ledger(thread_id)],
        [
            (found[0], store.load_step(thread_id, s))
            for s in range(0, cursor.head, 37)
            if (found := store.snapshot(thread_id, s))
        ],
        store.totals(thread_id, cursor.head),
    ]


def run(store: Checkpointer, thread_id: str = "t", iterations: int = 60) -> GraphRunner:
    runner = runner_on(store)
    runner.invoke({"notes": "go"}, thread_id=thread_id, max_iterations=iterations)
    runner.update_state(thread_id, {"best": 5}, actor="ann", note="better")
    return runner


class TestThere:
    def test_a_thread_arrives_as_it_was(self, store: Checkpointer, other: Checkpointer) -> None:
        run(store)
        assert import_thread(other, export_thread(store, "t", private=True)) == "t"
        assert looks(other, "t") == looks(store, "t")
        assert other.snapshot("t", 60) is not None
        info, own = store.info("t"), other.info("t")
        assert info is not None
        assert own is not None
        assert msgspec.structs.replace(own, facts_hash=info.facts_hash) == info
        assert verify(other, "t", graph().compile().graph.channels, strict=True).ok

    @pytest.mark.slow
    def test_under_another_name_its_rows_keep_theirs(self, store: Checkpointer, other: Checkpointer) -> None:
        run(store)
        before = looks(store, "t")
        assert import_thread(other, export_thread(store, "t", private=True), "new") == "new"
        assert looks(other, "new") == before
        runner = runner_on(other)
        runner.extend_limits("new", actor="ann", max_iterations=80)
        runner.invoke(thread_id="new", max_iterations=80)
        runner.fork("new", 10, "below")
        runner.fork("new", 70, "above")
        cursor = other.cursor("new")
        assert cursor is not None
        assert cursor.head > 61
        for thread in ("new", "below", "above"):
            assert verify(other, thread, runner.graph.channels, strict=True).mismatches == ()
        names = [record.thread_id for record in other.records("new", 61, 62)]
        assert set(names) == {"t", "new"}
        assert other.totals("new", 70).visits == {"write": 69}

    def test_a_fork_brings_what_it_shares(self, store: Checkpointer, other: Checkpointer) -> None:
        runner = run(store)
        runner.fork("t", 20, "f", changes={"best": 9}, actor="ann")
        runner.fork("f", 21, "g", actor="ann")
        runner.update_state("g", {"n": 7}, actor="ann")
        runner.fork("g", 4, "early", changes={"n": 1})
        for thread in ("f", "g", "early"):
            import_thread(other, export_thread(store, thread, private=True))
            assert looks(other, thread)[:4] == looks(store, thread)[:4]
            assert other.load_latest(thread) == store.load_latest(thread)
            assert verify(other, thread, runner.graph.channels, strict=True).mismatches == ()
            info = other.info(thread)
            assert info is not None
            assert info.parent is None
        assert other.info("t") is None

    def test_there_and_back_again_and_further(self, store: Checkpointer, other: Checkpointer) -> None:
        runner = run(store, iterations=5)
        import_thread(other, export_thread(store, "t", private=True), "u")
        runner_on(other).update_state("u", {"n": 3}, actor="bob")
        import_thread(store, export_thread(other, "u", private=True), "v")
        runner.update_state("v", {"n": 4}, actor="bob")
        names = {record.thread_id for record in store.records("v", 0, 99)}
        assert names == {"t", "u", "v"}
        assert verify(store, "v", runner.graph.channels, strict=True).ok
        import_thread(store, export_thread(store, "v", private=True), "w")
        assert verify(store, "w", runner.graph.channels, strict=True).ok

    def test_an_empty_thread_and_one_in_the_middle_of_a_run(
        self, store: Checkpointer, other: Checkpointer
    ) -> None:
        runner = runner_on(store)
        stream = runner.stream({"notes": "go"}, thread_id="t", max_iterations=9)
        next(stream)
        lines = list(export_thread(store, "t", private=True))
        stream.close()
        import_thread(other, lines)
        cursor = other.cursor("t")
        assert cursor is not None
        assert (cursor.status, cursor.reason, cursor.attempt) == ("waiting", "paused", 2)

    def test_a_long_export_is_checked_in_temporary_files(
        self, other: Checkpointer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hitl_tui.stores.transfer._MOST_IN_MEMORY", 4096)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        source = MemoryCheckpointer()
        run(source)
        lines = list(export_thread(source, "t", private=True))
        forged = line(lines, 3, lambda data: data["step"].update(note="forged"))
        with pytest.raises(LogCorrupt, match="step 0: checkpoint checkpoint_hash"):
            import_thread(other, signed(forged))
        import_thread(other, lines)
        assert looks(other, "t") == looks(source, "t")
        assert list(tmp_path.glob("tmp*")) == []

    def test_a_running_thread_with_other_limits_is_refused(self, other: Checkpointer) -> None:
        source = MemoryCheckpointer()
        run(source)
        lines = list(export_thread(source, "t", private=True))
        last = len(lines)
        running = line(lines, last, lambda data: data["cursor"].update(status="running", reason=""))
        raised = line(running, last, lambda data: data["cursor"]["limits"].update(max_iterations=9999))
        with pytest.raises(LogCorrupt, match="cursor is not the one"):
            import_thread(other, signed(raised))
        assert other.threads() == []


class TestPrivate:
    def test_private_values_and_their_hashes_are_left_out(self, store: Checkpointer) -> None:
        run(store)
        store_text = b"".join(export_thread(store, "t", private=True))
        text = b"".join(export_thread(store, "t"))
        assert b"pw-3" in store_text
        assert b"pw-" not in text
        assert b"sha256:" not in text
        assert b'"snapshot":' not in text
        assert json.loads(text.splitlines()[0])["left_out"] == ["secret"]

    def test_such_a_file_can_not_be_imported(self, store: Checkpointer, other: Checkpointer) -> None:
        run(store)
        with pytest.raises(UsageError, match="line 1: the values of secret were left out"):
            import_thread(other, export_thread(store, "t"))
        assert other.threads() == []

    def test_a_thread_without_private_values_needs_no_option(
        self, store: Checkpointer, other: Checkpointer
    ) -> None:
        store.save("t", 0, {"a": [1]})
        store.save("t", 1, {"a": [1, 2]})
        import_thread(other, export_thread(store, "t"))
        assert other.load_latest("t") == (1, {"a": [1, 2]})


def signed(lines: list[bytes]) -> list[bytes]:
    """Return the lines with a correct checksum; unchanged if their text can't be encoded."""
    end = json.loads(lines[-1])
    try:
        body = msgspec.json.encode(end["cursor"])
    except UnicodeEncodeError:
        return lines
    end |= {"lines": len(lines) - 1, "sha256": sha256(b"".join(lines[:-1]) + body).hexdigest()}
    return [*lines[:-1], msgspec.json.encode(end) + b"\n"]


def line(lines: list[bytes], number: int, change: Callable[[Any], Any]) -> list[bytes]:
    data = msgspec.json.decode(lines[number - 1])
    change(data)
    try:
        text = msgspec.json.encode(data)
    except UnicodeEncodeError:
        text = json.dumps(data).encode()
    return [*lines[: number - 1], text + b"\n", *lines[number:]]


class TestRefused:
    @pytest.fixture
    def lines(self, store: Checkpointer) -> list[bytes]:
        for step in range(5):
            store.save("t", step, {"a": [step], "b": "x" * 30})
        return list(export_thread(store, "t", private=True))

    def test_a_damaged_export_leaves_nothing(self, lines: list[bytes], other: Checkpointer) -> None:
        first, second, third, end = lines[0], lines[1], lines[2], lines[-1]
        damages: list[tuple[list[bytes], str]] = [
            (lines[:-1], "line 7 .* missing"),
            (lines[:3], "line 4 .* missing"),
            ([*lines[:-1], end[:-20]], "line 7 .* cut off"),
            ([*lines, third], "line 8 .* more after"),
            ([first, second, *lines[3:]], "line 3 .* step 1 is missing"),
            ([first, second, b"{]\n", *lines[3:]], "line 3"),
            ([first, second, b"\xff\n", *lines[3:]], "line 3"),
            ([first, second, b"{}\n", *lines[3:]], "line 3 .* no step"),
            ([one.replace(b"xxx", b"xyx", 1) for one in lines], "line 7 .* not those"),
            (signed(line(lines, 3, lambda d: d["records"].pop())), "line 3 .* records"),
            (signed(line(lines, 3, lambda d: d["step"].pop("node"))), "line 3"),
            (
                signed(line(lines, 3, lambda d: d["records"][0].update(record_hash="sha256:00"))),
                "line 3 .* no hash",
            ),
            (signed(line(lines, 7, lambda d: d["cursor"].update(head=9))), "line 7 .* head"),
            (signed([first, second.replace(b":", b": ", 1), *lines[2:]]), "line 2 .* not written as"),
            (signed(line(lines, 1, lambda d: d["info"].update(created_by="eve"))), "line 1 .* fixed about"),
            (signed(line(lines, 1, lambda d: d.update(missing=["t/team#1"]))), "line 7 .* different threads"),
            (signed([first, b'{"graph":{}}\n', *lines[1:]]), "line 8 .* graphs that it does not name"),
        ]
        for damaged, message in damages:
            with pytest.raises(LogCorrupt, match=message):
                import_thread(other, damaged, "new")
            assert other.info("new") is None, message
            assert other.threads() == [], message
        assert import_thread(other, lines, "new") == "new"

    def test_a_file_that_is_not_our_export_is_refused(self, other: Checkpointer) -> None:
        firsts: list[tuple[bytes, type[HitlError], str]] = [
            (b"hello\n", UsageError, "line 1: this is not a hitl-tui thread"),
            (b"{}\n", UsageError, "not a hitl-tui thread"),
            (b'{"format":"hitl-tui thread","version":10}\n', StoreUnusable, "newer hitl-tui"),
            (b'{"format":"hitl-tui thread","version":1}\n', StoreUnusable, "an older hitl-tui"),
            (b'{"format":"hitl-tui thread","version":9}\n', LogCorrupt, "line 1"),
            (b"", LogCorrupt, "line 1"),
            (b"[" * 100_000 + b"]" * 100_000 + b"\n", UsageError, "line 1: this is not a hitl-tui thread"),
            (DEEP % (b"[" * 100_000, b"]" * 100_000), UsageError, "line 1: this is not a hitl-tui thread"),
            (
                DEEP % (b'{"source":' * 100_000, b"}" * 100_000),
                UsageError,
                "line 1: this is not a hitl-tui thread",
            ),
        ]
        for first, kind, message in firsts:
            with pytest.raises(kind, match=message):
                import_thread(other, [first])
            assert other.threads() == [], message

    def test_a_name_that_is_taken_or_can_not_be_one(self, lines: list[bytes], store: Checkpointer) -> None:
        with pytest.raises(ThreadBusy, match="a thread 't' already"):
            import_thread(store, lines)
        with pytest.raises(UsageError, match="thread id"):
            import_thread(store, lines, "a\nb")
        assert store.list_threads() == ["t"]


def odd_exports() -> Iterator[tuple[str, list[bytes]]]:
    """An export with another value in the place of each of its own, its last line true again."""
    store = MemoryCheckpointer()
    run(store, "t", 2)
    lines = list(export_thread(store, "t", private=True))
    seen: set[object] = set()
    for number, data in enumerate(lines, 1):
        whole = json.loads(data)
        for path in leaves(whole):
            place = (next(iter(whole)), *("each" if isinstance(key, int) else key for key in path))
            if place in seen or "graph" in place[:2]:
                continue
            seen.add(place)
            for what, value in VALUES.items():
                changed = line(lines, number, lambda data, at=path, new=value: put(data, at, new))
                if path not in (("lines",), ("sha256",)):
                    changed = signed(changed)
                yield f"line {number}, {path}: {what}", changed


@pytest.mark.slow
def test_whatever_value_an_export_holds_it_is_taken_in_whole_or_refused_in_words(tmp_path: Path) -> None:
    with closing(SQLiteCheckpointer(tmp_path / "s.db", "none")) as other:
        for number, (what, lines) in enumerate(odd_exports()):
            name = f"new-{number}"
            try:
                import_thread(other, lines, name)
            except HitlError:
                assert other.info(name) is None, what
            except Exception as error:
                pytest.fail(f"{what}: {error!r}")
            else:
                verify(other, name)


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1, 1 << 200])
def test_a_number_that_no_column_holds_is_refused_with_its_line_and_its_field(
    store: Checkpointer, other: Checkpointer, number: int
) -> None:
    store.save("t", 0, {"a": 1 << 200})
    lines = list(export_thread(store, "t"))
    import_thread(other, lines, "huge values are fine")
    for path in (("info", "created_at"), ("step", "at"), ("cursor", "updated_at")):
        row = next(place for place, data in enumerate(lines, 1) if path[0] in json.loads(data))
        with pytest.raises(LogCorrupt, match=rf"line {row} .*{path[-1]} does not fit into 64 bits"):
            import_thread(other, signed(line(lines, row, lambda data, at=path: put(data, at, number))), "n")
    assert other.info("n") is None
