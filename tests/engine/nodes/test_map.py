"""Map: branches, their order, joins and failures."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui import MemoryCheckpointer, NodeFailed, NodeResult, RetryPolicy, quorum
from hitl_tui.engine.log.events import BranchEnded, BranchStarted, NodeRetrying, TextStreamed
from hitl_tui.stores import Checkpointer
from tests.engine.nodes.graphs import Events, mapped, outcomes, statuses
from tests.support.spec import spec

pytestmark = spec("7")


def failing_at(*places: int) -> Callable[..., Any]:
    """A node that appends its item, but fails at some places."""

    def node(_state: Any, config: Any) -> dict[str, Any]:
        if config.index in places:
            raise ValueError(f"no {config.index}")
        return {"log": config.item}

    return node


class TestBranches:
    def test_a_branch_finds_its_item_and_its_place(self) -> None:
        result = mapped(lambda _s, c: {"log": [c.item, c.index]}).invoke({"items": ["a", "b"]})
        assert result["log"] == [["a", 0], ["b", 1]]

    def test_over_may_be_a_path_into_a_channel(self) -> None:
        runner = mapped(lambda _s, c: {"log": c.item}, over="plan.steps")
        assert runner.invoke({"plan": {"steps": [1, 2]}})["log"] == [1, 2]

    def test_every_branch_reads_the_state_as_it_was_when_the_map_began(self) -> None:
        runner = mapped(lambda s, _c: {"total": 1, "log": s["total"]}, max_concurrent=1)
        assert runner.invoke({"items": [0, 0, 0]})["log"] == [0, 0, 0]

    def test_an_empty_list_commits_a_step_without_updates(self, store: Checkpointer) -> None:
        runner = mapped(lambda _s, c: {"log": c.item}, store)
        assert runner.invoke({"items": []}, thread_id="t").status == "completed"
        assert (outcomes(runner), runner.updates("t", 1)) == ([], ())

    def test_a_map_is_one_step_and_one_iteration(self, store: Checkpointer) -> None:
        runner = mapped(lambda _s, c: {"log": c.item}, store)
        runner.invoke({"items": [1, 2, 3]}, thread_id="t")
        step = runner.history("t", limit=1)[0]
        assert (step.step, step.iteration, step.node, step.source) == (1, 1, "scan", "map")
        assert [update.path for update in runner.updates("t", 1)] == ["scan[0]", "scan[1]", "scan[2]"]

    @pytest.mark.slow
    def test_the_memory_it_takes_grows_with_its_branches_and_not_with_their_square(self) -> None:
        async def scan(_state: Any, config: Any) -> dict[str, Any]:
            return {"log": config.item}

        runner = mapped(scan, MemoryCheckpointer(), max_items=4_000, max_concurrent=50)

        def peak(branches: int) -> int:
            tracemalloc.start()
            try:
                assert len(runner.invoke({"items": list(range(branches))})["log"]) == branches
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        peak(10)  # what is loaded once
        assert peak(4_000) < 6 * peak(1_000)

    def test_the_updates_of_a_branch_come_by_channel_name(self, store: Checkpointer) -> None:
        runner = mapped(lambda _s, c: {"total": 1, "found": [c.item], "log": c.item}, store)
        runner.invoke({"items": [1, 2]}, thread_id="t")
        assert [one.channel for one in runner.updates("t", 1)] == ["found", "log", "total"] * 2

    def test_each_branch_has_its_own_idempotency_key_for_all_attempts(self) -> None:
        keys: list[tuple[int, str]] = []

        def node(_state: Any, config: Any) -> None:
            keys.append((config.index, config.idempotency_key))
            if config.attempt == 1:
                raise ValueError("once more")

        mapped(node, retry=RetryPolicy(2, wait=0)).invoke({"items": [0, 0]})
        assert len(keys) == 4
        assert len(set(keys)) == 2

    def test_a_branch_may_return_text_and_it_is_kept_with_the_checkpoint(self, store: Checkpointer) -> None:
        runner = mapped(lambda _s, c: NodeResult({"log": c.item}, text=f"read {c.item}"), store)
        runner.invoke({"items": ["a", "b"]}, thread_id="t")
        assert runner.history("t")[0].text == "scan[0]: read a\nscan[1]: read b"

    def test_reading_outside_reads_fails_the_branch(self, store: Checkpointer) -> None:
        runner = mapped(lambda s, _c: {"log": s["plan"]}, store, reads=["log"], writes=["log"])
        runner.invoke({"items": [1]}, thread_id="t")
        assert "not among the node's reads" in outcomes(runner)[0].error.message  # type: ignore[union-attr]

    def test_a_later_place_wins_an_overwrite_channel_and_the_checkpoint_says_so(
        self, store: Checkpointer
    ) -> None:
        runner = mapped(lambda _s, c: {"last": c.item}, store)
        assert runner.invoke({"items": ["a", "b", "c"]}, thread_id="t")["last"] == "c"
        assert [one.overridden for one in outcomes(runner)] == [("last",), ("last",), ()]


class TestItems:
    @pytest.mark.parametrize(
        ("items", "message"),
        [
            ([1, 2, 3], "'items' has 3 items, more than max_items=2"),
            ("abc", "'items' holds text, not a list"),
            (None, "'items' holds null, not a list"),
        ],
        ids=["more items than max_items is an error", "a text is no list", "null is no list"],
    )
    def test_nothing_runs(self, items: Any, message: str) -> None:
        ran: list[int] = []
        with pytest.raises(NodeFailed, match=message):
            mapped(lambda _s, c: ran.append(c.index), max_items=2).invoke({"items": items})
        assert ran == []


class TestConcurrency:
    @pytest.mark.parametrize("at_once", [1, 3])
    def test_async_branches_run_side_by_side_but_at_most_max_concurrent(self, at_once: int) -> None:
        running, most = 0, 0

        async def node() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            for _ in range(5):
                await asyncio.sleep(0)
            running -= 1

        mapped(lambda _s: node(), max_concurrent=at_once).invoke({"items": [0] * 7})

        async def real(_state: Any) -> None:
            await node()

        most = 0
        mapped(real, max_concurrent=at_once).invoke({"items": [0] * 7})
        assert most == at_once

    def test_sync_branches_run_in_threads_side_by_side(self) -> None:
        all_are_here = threading.Barrier(3, timeout=20)
        mapped(lambda _s: all_are_here.wait() and None, max_concurrent=3).invoke({"items": [0] * 3})
        assert not all_are_here.broken

    def test_async_branches_of_invoke_share_one_loop(self) -> None:
        loops: set[int] = set()

        async def node(_state: Any) -> None:
            loops.add(id(asyncio.get_running_loop()))

        mapped(node).invoke({"items": [0] * 4})
        assert len(loops) == 1

    @given(order=st.permutations(range(5)), broken=st.sets(st.integers(0, 4), max_size=2))
    @pytest.mark.slow
    def test_commits_do_not_depend_on_the_order_in_which_branches_end(
        self, order: list[int], broken: set[int]
    ) -> None:
        def run(order: list[int]) -> list[Any]:
            turns = {place: asyncio.Event() for place in range(6)}
            turns[0].set()

            async def node(_state: Any, config: Any) -> dict[str, Any]:
                turn = order.index(config.index)
                await turns[turn].wait()
                turns[turn + 1].set()
                if config.index in broken:
                    raise ValueError("no")
                return {"log": config.item, "found": [turn * 0 + config.index], "last": config.item}

            store = MemoryCheckpointer()
            runner = mapped(node, store)
            runner.invoke({"items": list("abcde")}, thread_id="t")
            point = runner.history("t")[0]
            records = [(one.path, one.channel, one.next_hash) for one in store.records("t", 1, 1)]
            return [point.state_hash, records, [(one.path, one.status) for one in point.branches]]

        assert run(order) == run(sorted(order))


class TestFailures:
    def test_a_failed_branch_contributes_nothing_and_is_recorded(self, store: Checkpointer) -> None:
        runner = mapped(failing_at(1), store)
        assert runner.invoke({"items": ["a", "b", "c"]}, thread_id="t")["log"] == ["a", "c"]
        assert statuses(runner) == {"scan[0]": "ok", "scan[1]": "failed", "scan[2]": "ok"}
        error = outcomes(runner)[1].error
        assert error is not None
        assert error.message == "branch 'scan[1]', attempt 1: ValueError: no 1"
        assert "Traceback" in error.details

    def test_a_branch_whose_update_does_not_fit_after_the_others_is_a_failed_one(
        self, store: Checkpointer
    ) -> None:
        runner = mapped(lambda _s, c: {"total": c.item}, store)
        result = runner.invoke({"items": [1e308, 1e308, 1]}, thread_id="t")
        assert result["total"] == 1e308
        assert statuses(runner) == {"scan[0]": "ok", "scan[1]": "failed", "scan[2]": "ok"}

    def test_on_error_fail_fails_the_node_and_commits_nothing(self, store: Checkpointer) -> None:
        runner = mapped(failing_at(1), store, on_error="fail")
        with pytest.raises(NodeFailed, match=r"branch 'scan\[1\]', attempt 1: ValueError: no 1"):
            runner.invoke({"items": ["a", "b"]}, thread_id="t")
        info = runner.run_info("t")
        assert (info.status, info.reason) == ("failed", "node_error")
        assert runner.get_state("t")["log"] == []

    def test_resuming_a_failed_map_runs_only_the_branches_that_failed(self, store: Checkpointer) -> None:
        ran: list[int] = []
        broken = True

        def node(_state: Any, config: Any) -> dict[str, Any]:
            ran.append(config.index)
            if broken and config.index == 2:
                raise ValueError("no")
            return {"log": config.item}

        runner = mapped(node, store, on_error="fail", max_concurrent=1)
        with pytest.raises(NodeFailed):
            runner.invoke({"items": ["a", "b", "c", "d"]}, thread_id="t")
        broken = False
        assert runner.invoke(thread_id="t")["log"] == ["a", "b", "c", "d"]
        assert ran == [0, 1, 2, 2, 3]

    def test_an_edit_before_the_resume_makes_every_branch_run_again(self, store: Checkpointer) -> None:
        broken = True

        def node(state: Any, config: Any) -> dict[str, Any]:
            if broken and config.index == 1:
                raise ValueError("no")
            return {"log": [config.item, state["last"]]}

        runner = mapped(node, store, on_error="fail", max_concurrent=1)
        with pytest.raises(NodeFailed):
            runner.invoke({"items": ["a", "b"]}, thread_id="t")
        broken = False
        runner.update_state("t", {"last": "mended"})
        assert runner.invoke(thread_id="t")["log"] == [["a", "mended"], ["b", "mended"]]

    def test_retries_are_for_each_branch(self, store: Checkpointer) -> None:
        def node(_state: Any, config: Any) -> dict[str, Any]:
            if config.attempt <= config.index:
                raise ValueError("again")
            return {"log": config.item}

        events = Events()
        runner = mapped(node, store, retry=RetryPolicy(2, wait=0))
        runner.invoke({"items": ["a", "b", "c"]}, thread_id="t", on_event=events)
        assert [(one.status, one.attempts) for one in outcomes(runner)] == [
            ("ok", 1),
            ("ok", 2),
            ("failed", 2),
        ]
        assert sorted(event.path for event in events.of(NodeRetrying)) == ["scan[1]", "scan[2]"]
        assert [record.attempt for record in store.records("t", 1, 1)] == [1, 2]
        assert runner.run_info("t").retry_count == 2

    def test_a_timeout_is_for_each_branch(self, store: Checkpointer) -> None:
        async def node(_state: Any, config: Any) -> dict[str, Any]:
            if config.index == 0:
                await asyncio.Event().wait()
            return {"log": config.item}

        runner = mapped(node, store, timeout=0.2)
        assert runner.invoke({"items": ["a", "b"]}, thread_id="t")["log"] == ["b"]
        assert "took longer than 0.2 s" in outcomes(runner)[0].error.message  # type: ignore[union-attr]


class TestJoins:
    @pytest.mark.parametrize(
        ("join", "failing", "log", "expected"),
        [
            ("first", (), ["a"], ["ok", "unneeded", "unneeded", "unneeded"]),
            ("first", (0,), ["b"], ["failed", "ok", "unneeded", "unneeded"]),
            (quorum(2), (), ["a", "b"], ["ok", "ok", "unneeded", "unneeded"]),
            (quorum(2), (0, 2), ["b", "d"], ["failed", "ok", "failed", "ok"]),
            ("all", (0, 1, 2, 3), [], ["failed"] * 4),
        ],
        ids=[
            "first takes the first success",
            "first counts successes only",
            "quorum gives up the rest",
            "quorum counts successes only",
            "all goes on where every branch has failed",
        ],
    )
    def test_one_after_the_other(
        self, join: Any, failing: tuple[int, ...], log: list[str], expected: list[str]
    ) -> None:
        runner = mapped(failing_at(*failing), MemoryCheckpointer(), join=join, max_concurrent=1)
        assert runner.invoke({"items": list("abcd")}, thread_id="t")["log"] == log
        assert list(statuses(runner).values()) == expected

    def test_branches_that_run_when_the_join_is_settled_are_cancelled(self, store: Checkpointer) -> None:
        cancelled: list[int] = []

        async def node(_state: Any, config: Any) -> dict[str, Any]:
            if config.index != 1:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled.append(config.index)
                    raise
            return {"log": config.item}

        runner = mapped(node, store, join="first")
        assert runner.invoke({"items": ["a", "b", "c"]}, thread_id="t")["log"] == ["b"]
        assert statuses(runner) == {"scan[0]": "cancelled", "scan[1]": "ok", "scan[2]": "cancelled"}
        assert sorted(cancelled) == [0, 2]

    def test_sync_branches_that_still_run_then_are_not_waited_for_and_write_nothing(
        self, store: Checkpointer
    ) -> None:
        may_continue = threading.Event()
        all_began, all_went_on = threading.Barrier(3, timeout=20), threading.Barrier(3, timeout=20)

        def node(_state: Any, config: Any) -> dict[str, Any]:
            all_began.wait()
            if config.index:
                may_continue.wait()
                all_went_on.wait()
            return {"log": config.item}

        runner = mapped(node, store, join="first", max_concurrent=3)
        assert runner.invoke({"items": ["a", "b", "c"]}, thread_id="t")["log"] == ["a"]
        may_continue.set()
        all_went_on.wait()
        assert list(statuses(runner).values()) == ["ok", "cancelled", "cancelled"]
        assert runner.get_state("t")["log"] == ["a"]
        assert runner.verify("t", strict=True).ok

    @pytest.mark.parametrize(
        ("join", "items", "message"),
        [
            (quorum(3), 4, r"quorum\(3\) of 4 branches can't be reached: 2 failed"),
            (quorum(3), 2, r"quorum\(3\) of 2 branches can't be reached"),
            ("first", 0, 'join "first" of 0 branches can\'t be reached'),
            ("first", 1, "no 0"),
        ],
        ids=["too many failures", "too few items", "no items at all", "the error says why"],
    )
    def test_a_join_that_cannot_be_reached_is_a_node_failure(
        self, join: Any, items: int, message: str
    ) -> None:
        runner = mapped(failing_at(0, 1), join=join)
        with pytest.raises(NodeFailed, match=message):
            runner.invoke({"items": list(range(items))})

    def test_an_unreachable_quorum_fails_at_once(self) -> None:
        ran: list[int] = []

        def node(_state: Any, config: Any) -> None:
            ran.append(config.index)
            raise ValueError("no")

        with pytest.raises(NodeFailed, match="can't be reached: 2 failed"):
            mapped(node, join=quorum(3), max_concurrent=1).invoke({"items": [0] * 4})
        assert ran == [0, 1]


class TestEvents:
    def test_branches_emit_start_and_end_with_their_path(self) -> None:
        events = Events()

        def node(_state: Any, config: Any) -> dict[str, Any]:
            config.emit(f"reading {config.item}")
            return {"log": config.item}

        mapped(node, max_concurrent=1).invoke({"items": ["a", "b"]}, on_event=events)
        moves = [
            (type(one).__name__, one.outcome.path if isinstance(one, BranchEnded) else one.path)
            for one in events.of(BranchStarted, BranchEnded, TextStreamed)
        ]
        assert moves == [
            ("BranchStarted", "scan[0]"),
            ("TextStreamed", "scan[0]"),
            ("BranchEnded", "scan[0]"),
            ("BranchStarted", "scan[1]"),
            ("TextStreamed", "scan[1]"),
            ("BranchEnded", "scan[1]"),
        ]
        assert {(one.node, one.total) for one in events.of(BranchStarted)} == {("scan", 2)}
