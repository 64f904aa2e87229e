"""A thread carried between any two stores, and files that are no such thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import Channel, GraphRunner, StateGraph, append
from hitl_tui.engine.audit.verify import verify
from hitl_tui.engine.log.records import END, START
from hitl_tui.errors import HitlError, LogCorrupt, StoreUnusable, ThreadBusy, UsageError
from hitl_tui.stores import Checkpointer, open_store
from hitl_tui.stores.transfer import export_thread, import_thread
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


@pytest.fixture(params=["memory:", "runs.db", "files:runs", "postgres"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    (tmp_path / "other").mkdir()
    kind, _, name = request.param.rpartition(":")
    url = "memory:" if kind == "memory" else f"{kind and kind + ':'}{tmp_path}/other/{name}"
    if name == "postgres":
        url = f"{request.getfixturevalue('postgres_url')}o"
    opened = open_store(url)
    yield opened
    opened.close()


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


class TestPrivate:
    def test_values_and_what_tells_them_stay_behind(self, store: Checkpointer) -> None:
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
    """Lines with the last one true again."""
    end = json.loads(lines[-1])
    end |= {"lines": len(lines) - 1, "sha256": sha256(b"".join(lines[:-1])).hexdigest()}
    return [*lines[:-1], json.dumps(end).encode() + b"\n"]


def line(lines: list[bytes], number: int, change: Callable[[Any], Any]) -> list[bytes]:
    data = json.loads(lines[number - 1])
    change(data)
    return [*lines[: number - 1], json.dumps(data).encode() + b"\n", *lines[number:]]


class TestRefused:
    @pytest.fixture
    def lines(self, store: Checkpointer) -> list[bytes]:
        for step in range(5):
            store.save("t", step, {"a": [step], "b": "x" * 30})
        return list(export_thread(store, "t", private=True))

    @pytest.mark.parametrize(
        ("break_it", "message"),
        [
            (lambda lines: lines[:-1], "line 7 .* missing"),
            (lambda lines: lines[:3], "line 4 .* missing"),
            (lambda lines: [*lines[:-1], lines[-1][:-20]], "line 7 .* cut off"),
            (lambda lines: [*lines, lines[2]], "line 8 .* more behind"),
            (lambda lines: [*lines[:2], *lines[3:]], "line 3 .* step 1 is missing"),
            (lambda lines: [*lines[:2], b"{]\n", *lines[3:]], "line 3"),
            (lambda lines: [*lines[:2], b"\xff\n", *lines[3:]], "line 3"),
            (lambda lines: [*lines[:2], b"{}\n", *lines[3:]], "line 3 .* no step"),
            (lambda lines: [one.replace(b"xxx", b"xyx", 1) for one in lines], "line 7 .* not those"),
            (lambda lines: signed(line(lines, 3, lambda d: d["records"].pop())), "line 3 .* records"),
            (lambda lines: signed(line(lines, 3, lambda d: d["step"].pop("node"))), "line 3"),
            (
                lambda lines: signed(
                    line(lines, 3, lambda d: d["records"][0].update(record_hash="sha256:00"))
                ),
                "line 3 .* no hash",
            ),
            (lambda lines: signed(line(lines, 7, lambda d: d["cursor"].update(head=9))), "line 7 .* head"),
        ],
    )
    def test_a_damaged_export_leaves_nothing(
        self,
        lines: list[bytes],
        other: Checkpointer,
        break_it: Callable[[list[bytes]], list[bytes]],
        message: str,
    ) -> None:
        with pytest.raises(LogCorrupt, match=message):
            import_thread(other, break_it(lines), "new")
        assert other.info("new") is None
        assert other.threads() == []
        assert import_thread(other, lines, "new") == "new"

    @pytest.mark.parametrize(
        ("first", "kind", "message"),
        [
            (b"hello\n", UsageError, "line 1: this is no thread"),
            (b"{}\n", UsageError, "no thread"),
            (b'{"format":"hitl-tui thread","version":8}\n', StoreUnusable, "newer hitl-tui"),
            (b'{"format":"hitl-tui thread","version":1}\n', StoreUnusable, "an older hitl-tui"),
            (b'{"format":"hitl-tui thread","version":7}\n', LogCorrupt, "line 1"),
            (b"", LogCorrupt, "line 1"),
            (b"[" * 100_000 + b"]" * 100_000 + b"\n", UsageError, "line 1: this is no thread"),
            (DEEP % (b"[" * 100_000, b"]" * 100_000), UsageError, "line 1: this is no thread"),
            (DEEP % (b'{"source":' * 100_000, b"}" * 100_000), UsageError, "line 1: this is no thread"),
        ],
    )
    def test_what_is_no_export_of_ours(
        self, other: Checkpointer, first: bytes, kind: type[HitlError], message: str
    ) -> None:
        with pytest.raises(kind, match=message):
            import_thread(other, [first])
        assert other.threads() == []

    def test_a_name_that_is_taken_or_can_not_be_one(self, lines: list[bytes], store: Checkpointer) -> None:
        with pytest.raises(ThreadBusy, match="a thread 't' already"):
            import_thread(store, lines)
        with pytest.raises(UsageError, match="thread id"):
            import_thread(store, lines, "a\nb")
        assert store.list_threads() == ["t"]
