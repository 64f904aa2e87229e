"""Whatever of a cursor is changed, with its digest made again, is found by `verify` and on opening, and an
export with it is refused.
"""

from __future__ import annotations

import copy
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    Limits,
    MemoryCheckpointer,
    NodeResult,
    ScriptedModel,
    SQLiteCheckpointer,
    StateGraph,
)
from hitl_tui.engine.audit.anchor import anchor
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.engine.thread.logged import checked_cursor
from hitl_tui.errors import HitlError, LogCorrupt, NodeFailed
from hitl_tui.stores.transfer import export_thread, import_thread

UNCHAINED = {
    "version": "it only counts commits: a writer that expects another one is refused as stale",
    "updated_at": "it only orders lists and says since when a paused thread waits; no run reads it",
}
"""The fields of a cursor that nothing in the log accounts for, and why that decides nothing."""


def graph(checkpointer: Any) -> Any:
    def fails(state: Any, config: Any) -> Any:
        config.interrupt({"title": "how much?"})
        raise ValueError("no")

    use = ModelUse("a", "p", "m", 3, 4, 0.5)
    built = StateGraph({"n": Channel(0), "did": Channel("")}, name="pay")
    built.add_node("a", lambda state: NodeResult({"n": 1}, usage=[use]))
    built.add_node("pay", fails)
    built.add_edge(START, "a").add_edge("a", "pay").add_edge("pay", END)
    return built.compile(checkpointer=checkpointer, interrupt_before=["pay"], limits=Limits(max_tokens=99))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Threads that stopped before a node, at a question inside it, and because it failed."""
    path = tmp_path_factory.mktemp("made") / "runs.db"
    with closing(SQLiteCheckpointer(path)) as store:
        runner = graph(store)
        for thread in THREADS:
            given = {"goal": {"pay": 10}, "constraints": ["today"]}
            runner.invoke(given, thread_id=thread, context={"tenant": "acme"})
            if thread != "before":
                runner.invoke(thread_id=thread)
            if thread == "failed":
                (request,) = checked_cursor(store, thread)[1].pending
                runner.answer(thread, request.id, "10", actor="ann", step=request.step)
                with suppress(HitlError):
                    runner.invoke(thread_id=thread)
            assert runner.run_info(thread).status == ("failed" if thread == "failed" else "waiting")
    return path


THREADS = ("before", "asks", "failed")


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values of a JSON document that hold no others."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = False
    for name, item in inner:
        found = True
        yield from leaves(item, (*place, name))
    if not found:
        yield place


def changed(value: Any) -> Any:
    """Another value of about the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        digest = value.startswith("sha256:") and len(value) > 8
        return f"{value[:-1]}{'0' if value[-1] != '0' else '1'}" if digest else f"{value}x"
    return "x"


def tampered(document: Any, place: tuple[Any, ...]) -> Any:
    """A copy of a document with another value at a place."""
    document = copy.deepcopy(document)
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = changed(inner[place[-1]])
    return document


@pytest.mark.parametrize("thread", THREADS)
@pytest.mark.slow
def test_every_changed_field_of_a_cursor_is_found_by_verify_and_on_opening(
    made: Path, tmp_path: Path, thread: str
) -> None:
    path = tmp_path / "runs.db"
    shutil.copy(made, path)
    with closing(SQLiteCheckpointer(path)) as store, closing(sqlite3.connect(path)) as db:
        runner = graph(store)
        compiled: CompiledGraph = runner.graph
        now = anchor(store, thread, 0)
        assert verify_tree(store, thread, compiled, strict=True, anchors=[now]).ok
        key, facts = db.execute("SELECT key, facts_hash FROM thread WHERE id = ?", [thread]).fetchone()
        (body,) = db.execute("SELECT body FROM cursor WHERE thread = ?", [key]).fetchone()
        whole = msgspec.to_builtins(msgspec.json.decode(body))
        missed: list[tuple[Any, ...]] = []
        for place in leaves(whole):
            forged = msgspec.json.encode(tampered(whole, place))
            values = [forged, chained(forged, facts), key]
            db.execute("UPDATE cursor SET body = ?, digest = ? WHERE thread = ?", values)
            db.commit()
            found = not verify_tree(store, thread, compiled, strict=True, anchors=[now]).ok
            try:
                checked_cursor(store, thread)
                refused = False
            except HitlError:
                refused = True
            if not (found and refused):
                missed.append((*place, found, refused))
    assert {place[0] for place in missed} <= UNCHAINED.keys(), missed


def sealed(lines: list[bytes], end: dict[str, Any]) -> list[bytes]:
    """An export with another last line, and its checksum made again."""
    body = msgspec.json.encode(end["cursor"])
    digest = sha256(b"".join(lines[:-1]) + body).hexdigest()
    return [*lines[:-1], msgspec.json.encode({**end, "sha256": digest}) + b"\n"]


@pytest.mark.parametrize("thread", THREADS)
@pytest.mark.slow
def test_an_export_with_any_changed_field_is_refused(made: Path, thread: str) -> None:
    with closing(SQLiteCheckpointer(made)) as store:
        lines = list(export_thread(store, thread, private=True))
    import_thread(MemoryCheckpointer(), lines)
    end = msgspec.json.decode(lines[-1])
    missed = []
    for place in leaves(end["cursor"]):
        forged = sealed(lines, {**end, "cursor": tampered(end["cursor"], place)})
        raw = [*lines[:-1], msgspec.json.encode({**end, "cursor": tampered(end["cursor"], place)}) + b"\n"]
        with pytest.raises(HitlError):
            import_thread(MemoryCheckpointer(), raw)
        try:
            import_thread(MemoryCheckpointer(), forged)
        except HitlError:
            continue
        missed.append(place)
    assert {place[0] for place in missed} <= UNCHAINED.keys(), missed
    for number, line in enumerate(lines[:-1]):
        document = msgspec.json.decode(line)
        for place in leaves(document):
            forged = sealed(
                [
                    *lines[:number],
                    msgspec.json.encode(tampered(document, place)) + b"\n",
                    *lines[number + 1 :],
                ],
                end,
            )
            try:
                import_thread(MemoryCheckpointer(), forged)
            except HitlError:
                continue
            missed.append((number, *place))
    assert [place for place in missed if isinstance(place[0], int)] == []


class TestWhatARunTakesFromTheLog:
    """What a run reads of old entries is compared with the chains before it is used."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "runs.db"

    def change(self, path: Path, sql: str, *values: Any) -> None:
        with closing(sqlite3.connect(path)) as db:
            assert db.execute(sql, values).rowcount == 1
            db.commit()

    def test_a_changed_reply_of_a_model_is_refused_in_place_of_being_used(self, path: Path) -> None:
        failing = [True]

        def ask(_state: Any, config: Any) -> dict[str, Any]:
            said = config.agents["a"].chat("go")
            if failing:
                raise ValueError("no")
            return {"said": said}

        def made(store: Any) -> Any:
            built = StateGraph({"said": Channel("")}, name="talk").add_node("ask", ask)
            built.add_edge(START, "ask").add_edge("ask", END)
            agents = {"a": Agent("a", ScriptedModel(["pay ann"], pace=0))}
            return built.compile(checkpointer=store, agents=agents)

        with closing(SQLiteCheckpointer(path, "none")) as store, suppress(NodeFailed):
            made(store).invoke({}, thread_id="t")
        change = "UPDATE ledger SET data = CAST(replace(data, 'pay ann', ?) AS BLOB) WHERE kind = 'call'"
        self.change(path, change, "pay eve")
        failing.clear()
        with (
            closing(SQLiteCheckpointer(path, "none")) as store,
            pytest.raises(LogCorrupt, match="decision 1"),
        ):
            made(store).invoke(thread_id="t")
        self.change(path, change.replace("'pay ann'", "'pay eve'"), "pay ann")
        with closing(SQLiteCheckpointer(path, "none")) as store:
            assert made(store).invoke(thread_id="t").state["said"] == "pay ann"

    def test_a_changed_compensation_is_refused_in_place_of_being_run(self, path: Path) -> None:
        refunded: list[Any] = []

        def made(store: Any) -> Any:
            undo = ("refund", {"to": "ann"})
            built = StateGraph({"n": Channel(0)}, name="pay")
            built.add_node("pay", lambda _state: NodeResult({"n": 1}, compensation=undo))
            built.add_node("tell", lambda _state: {"n": 2})
            built.add_compensation("refund", lambda _state, _config, args: refunded.append(args))
            built.add_edge(START, "pay").add_edge("pay", "tell").add_edge("tell", END)
            return built.compile(checkpointer=store)

        with closing(SQLiteCheckpointer(path, "none")) as store:
            runner = made(store)
            runner.invoke({}, thread_id="t")
            runner.fork("t", 1, "fork")
        self.change(
            path,
            "UPDATE checkpoint SET compensations = CAST(replace(compensations, 'ann', 'eve') AS BLOB) "
            "WHERE compensations IS NOT NULL",
        )
        with closing(SQLiteCheckpointer(path, "none")) as store:
            for thread in ("t", "fork"):
                with pytest.raises(LogCorrupt, match="step 1"):
                    made(store).rollback(thread)
        assert refunded == []

    def test_a_changed_step_is_refused_in_place_of_being_forked(self, path: Path) -> None:
        def made(store: Any) -> Any:
            built = StateGraph({"n": Channel(0)}, name="pay").add_node("a", lambda _state: {"n": 1})
            built.add_node("check", lambda _state: {}).add_node("pay", lambda _state: {"n": 3})
            built.add_edge(START, "a").add_edge("a", "check").add_edge("check", "pay").add_edge("pay", END)
            return built.compile(checkpointer=store)

        with closing(SQLiteCheckpointer(path, "none")) as store:
            made(store).invoke({}, thread_id="t")
            made(store).fork("t", 1, "f")
        change = "UPDATE checkpoint SET position = 'node:pay' WHERE id & 4294967295 = 1"
        self.change(path, change)
        with closing(SQLiteCheckpointer(path, "none")) as store:
            for thread, step in (("t", 1), ("f", 1)):
                with pytest.raises(LogCorrupt, match="step 1"):
                    made(store).fork(thread, step, "g")
            made(store).fork("t", 2, "g")
