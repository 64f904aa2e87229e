"""Threads are taken out of a store, and what is free is given back, through the hub, whatever the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.threads import Deletion, Space
from hitl_tui.errors import UsageError
from hitl_tui.stores import Checkpointer, open_store
from hitl_tui.stores.deletion import DeletionPlan, Retention
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.support.postgres import PASSWORD, Postgres
from tests.support.spec import spec

pytestmark = spec("10")


@pytest.fixture(params=["memory", "sqlite", "files", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    urls = {"memory": "memory:", "sqlite": str(tmp_path / "runs.db"), "files": f"files:{tmp_path / 'runs'}"}
    with closing(open_store(urls.get(request.param) or request.getfixturevalue("postgres_url"))) as opened:
        yield opened


@pytest.fixture
async def hub(store: Checkpointer) -> AsyncIterator[LocalHub]:
    """A hub over threads `a`, `b` and `c` that have ended, and `waits`, a fork of `c` that has not."""
    runner = counter(store)
    for name in ("a", "b", "c"):
        runner.invoke({}, thread_id=name)
    runner.fork("c", 0, "waits")
    opened = LocalHub(store, lambda info: runner)
    yield opened
    await opened.close()


def counter(store: Checkpointer) -> GraphRunner:
    graph = StateGraph({"n": Channel(0, reducer="sum")}, name="counter")
    graph.add_node("count", lambda _state: {"n": 1}).add_edge(START, "count").add_edge("count", END)
    return graph.compile(checkpointer=store)


async def names(hub: LocalHub) -> set[str]:
    return {row.info.thread_id for row in await hub.threads()}


def always(_gone: Sequence[LedgerEntry]) -> bool:
    return True


async def test_named_threads_go_with_their_forks_and_what_waits_by_force_alone(
    hub: LocalHub, store: Checkpointer
) -> None:
    driver = await hub.open("a")
    plan = await hub.plan_deletion(["a", "c"])
    assert [thread.thread_id for thread in plan.going] == ["a"]
    assert "'waits'" in plan.stays["c"]
    assert await hub.delete(plan, actor="ann", note="a try", on_batch=always) == 1
    assert await names(hub) == {"b", "c", "waits"}
    assert await hub.open("b") is not driver
    plan = await hub.plan_deletion(["b", "c"], force=True, spared="b")
    assert ({thread.thread_id for thread in plan.going}, [*plan.stays]) == ({"c", "waits"}, ["b"])
    assert await hub.delete(plan, actor="ann", note=None, on_batch=always) == 2
    assert await names(hub) == {"b"}
    kept = [(entry.thread_id, entry.actor, entry.note) for entry in store.store_ledger()]
    assert kept == [("a", "ann", "a try"), ("c", "ann", None), ("waits", "ann", None)]
    assert list(store.faults(None)) == []
    assert not verify_tree(store, "b").mismatches


async def test_a_thread_that_moved_since_the_plan_keeps_its_whole_batch(
    hub: LocalHub, store: Checkpointer
) -> None:
    plan = await hub.plan_deletion(["a", "b"])
    counter(store).fork("b", 0, "b-2")
    with pytest.raises(UsageError, match="'b-2' is a fork of 'b'"):
        await hub.delete(plan, actor="ann", note=None, on_batch=always)
    assert await names(hub) == {"a", "b", "b-2", "c", "waits"}
    assert store.store_ledger() == []


async def test_a_rule_prunes_and_what_is_free_is_given_back(hub: LocalHub, store: Checkpointer) -> None:
    sizes, _space = await hub.sizes()
    assert {size.thread_id for size in sizes} == {"a", "b", "c", "waits"}
    assert all(size.bytes > 0 for size in sizes)
    plan = await hub.plan_deletion(Retention(older_than=0), spared="b")
    assert [thread.thread_id for thread in plan.going] == ["a"]
    assert plan.kept == {"waits": 1, "open": 1, "forked": 1}
    assert await hub.delete(plan, actor="ann", note=None, on_batch=always) == 1
    (entry,) = store.store_ledger()
    assert (entry.thread_id, entry.data["rule"]) == ("a", "prune: older than 0s")
    before, after = await hub.vacuum()
    assert after.used <= before.used
    assert {size.thread_id for size in (await hub.sizes())[0]} == {"b", "c", "waits"}
    runner = counter(store)
    runner.invoke(thread_id="waits")
    assert runner.get_state("waits")["n"] == 1


async def test_a_deletion_stops_between_two_batches_on_request(
    hub: LocalHub, store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.hub._DELETED_AT_ONCE", 1)
    plan = await hub.plan_deletion(["a", "b", "c"], force=True)
    batches: list[str] = []

    def on_batch(gone: Sequence[LedgerEntry]) -> bool:
        batches.extend(entry.thread_id for entry in gone)
        return len(batches) < 2

    assert await hub.delete(plan, actor="ann", note=None, on_batch=on_batch) == 2
    assert batches == ["a", "b"]
    assert await names(hub) == {"c", "waits"}
    assert [entry.thread_id for entry in store.store_ledger()] == ["a", "b"]


class Held(MemoryCheckpointer):
    """What takes something out of it waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.started, self.can_continue, self.closed = threading.Event(), threading.Event(), False

    def _hold(self) -> None:
        assert not self.closed
        self.started.set()
        assert self.can_continue.wait(60)
        assert not self.closed

    def delete(self, deletion: Deletion) -> list[LedgerEntry]:
        self._hold()
        return super().delete(deletion)

    def vacuum(self) -> Space:
        self._hold()
        return super().vacuum()

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("gives_up", [False, True], ids=["waits", "gives up"])
async def test_a_hub_that_is_closed_lets_the_batch_at_hand_end_and_says_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch, gives_up: bool
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.hub._DELETED_AT_ONCE", 1)
    store = Held()
    runner = counter(store)
    for name in ("a", "b"):
        runner.invoke({}, thread_id=name)
    hub = LocalHub(store, lambda info: runner)
    plan = await hub.plan_deletion(["a", "b"])
    deleting = asyncio.create_task(hub.delete(plan, actor="ann", note=None, on_batch=always))
    await asyncio.to_thread(store.started.wait, 60)
    if gives_up:  # as a screen does that is taken away
        deleting.cancel()
        await asyncio.wait([deleting])
    closing = asyncio.create_task(hub.close())
    await asyncio.sleep(0)
    store.can_continue.set()
    assert await closing == ("1 of 2 threads that were to be deleted are gone",)
    assert store.closed
    assert [entry.thread_id for entry in store.store_ledger()] == ["a"]
    if not gives_up:
        assert await deleting == 1


async def test_a_hub_that_is_closed_waits_for_a_vacuum() -> None:
    store = Held()
    hub = LocalHub(store, lambda info: counter(store))
    vacuum = asyncio.create_task(hub.vacuum())
    await asyncio.to_thread(store.started.wait, 60)
    closing = asyncio.create_task(hub.close())
    await asyncio.sleep(0)
    store.can_continue.set()
    assert await closing == ("what was free in the store was given back",)
    await vacuum


LOGINS = {"vi": "hitl_viewer", "rae": "hitl_reviewer", "wil": "hitl_worker", "op": "hitl_operator"}


@pytest.fixture
def roles(postgres_url: str, postgres: Postgres) -> str:
    """A store with a thread that has ended, and a login of each role."""
    with closing(open_store(postgres_url)) as store:
        assert isinstance(store, PostgresCheckpointer)
        store.make_roles()
        counter(store).invoke({}, thread_id="a")
    for login, role in LOGINS.items():
        postgres.login(login)
        postgres.grant(role, login)
    return postgres_url


@pytest.mark.parametrize("person", [*LOGINS, "nobody", ""])
@pytest.mark.parametrize("guest", [True, False], ids=["in a browser", "by a login of their own"])
async def test_in_a_team_an_operator_takes_threads_out_and_nobody_else(
    roles: str, postgres: Postgres, person: str, guest: bool
) -> None:
    if not guest and person not in LOGINS:
        pytest.skip("there is no such login")
    own = postgres.url(user=person, password=PASSWORD, schema=roles.rpartition("=")[2])
    store = open_store(roles if guest else own)
    hub = LocalHub(store, lambda info: counter(store), guest=person if guest else None)
    with ExitStack() as refuses:
        if person != "op":
            refuses.enter_context(pytest.raises(UsageError))
        plan = await hub.plan_deletion(["a"])
        assert await hub.delete(plan, actor=person, note=None, on_batch=always) == 1
    if person != "op":
        for refused in (hub.delete(DeletionPlan(()), actor=person, note=None, on_batch=always), hub.vacuum()):
            with pytest.raises(UsageError) as error:
                await refused
            assert f"{person!r}" in error.value.hint
            assert "hitl_operator" in error.value.hint
    assert await names(hub) == (set() if person == "op" else {"a"})
    await hub.close()


@pytest.mark.parametrize("guest", ["ann", ""], ids=["by name", "without one"])
async def test_a_guest_takes_nothing_out_of_a_store_without_logins(tmp_path: Path, guest: str) -> None:
    store = open_store(str(tmp_path / "runs.db"))
    counter(store).invoke({}, thread_id="a")
    hub = LocalHub(store, lambda info: counter(store), guest=guest)
    for refused in (hub.plan_deletion(["a"]), hub.plan_deletion(Retention(older_than=0)), hub.vacuum()):
        with pytest.raises(UsageError):
            await refused
    assert await names(hub) == {"a"}
    assert {size.thread_id for size in (await hub.sizes())[0]} == {"a"}
    await hub.close()
