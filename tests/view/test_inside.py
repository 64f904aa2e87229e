"""What goes on inside maps, parallels and subgraphs: the fold, the rows, the lens, the words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hitl_tui import END, START, MemoryCheckpointer, StateGraph
from hitl_tui.drivers.protocol import Driver, Stamped
from hitl_tui.engine.commands import Answer, Run
from hitl_tui.engine.graph.limits import UNLIMITED
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log.outcomes import BranchOutcome, ErrorInfo, ToolUse
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.threads import Owner, child_id
from hitl_tui.engine.thread.logged import progress_of
from hitl_tui.view.branches import (
    branch_detail,
    branch_lens,
    branch_rows,
    branches_of_step,
    counted,
    item_text,
    short_count,
)
from hitl_tui.view.inside import TEXT_TAIL, BranchView, ChildView, InsideView, calls_of_failed, calls_of_step
from hitl_tui.view.run_view import RunView, crumbs, fold, open_view
from hitl_tui.view.spans import Line, plain_text
from hitl_tui.view.status import status
from hitl_tui.view.step_view import head_step
from hitl_tui.view.transcript import NodeText, branch_lines, inside_lines
from tests.support import nested
from tests.support import tape as tapes
from tests.support.spec import spec
from tests.view.test_panes import played, update

pytestmark = spec("7")

T0 = tapes.T0


def view_of_map() -> RunView:
    """A thread of a graph with a map `scan` and a parallel `group`, about to run the map."""
    graph: Any = StateGraph(nested.CHANNELS)
    graph.add_map("scan", over="items", node=lambda _s: {})
    graph.add_node("left", lambda _s: {}).add_node("right", lambda _s: {})
    graph.add_parallel("group", ["left", "right"])
    graph.add_edge(START, "scan").add_edge("scan", "group").add_edge("group", END)
    begin = tapes.advisor_tape().begin
    progress = msgspec.structs.replace(begin.progress, status="running", pending=())
    begin = msgspec.structs.replace(
        begin,
        graph=graph.compile().graph.info,
        progress=progress,
        values={"items": ["ants", "bees", "crabs"]},
    )
    return replace(open_view(begin), running_node=None)


def outcome(index: int, status: Any = "ok", **more: Any) -> BranchOutcome:
    return BranchOutcome(
        f"scan[{index}]", "scan", index, status, **{"attempts": 1, "duration": 300_000, **more}
    )


def failed(index: int, message: str = "they sting", **more: Any) -> BranchOutcome:
    return outcome(index, "failed", error=ErrorInfo("scan", 1, "Node failed", message), **more)


def begins(index: int, total: int = 3) -> ev.BranchStarted:
    return ev.BranchStarted("scan", f"scan[{index}]", "scan", index, total, 1, T0)


def says(index: int, text: str, agent: str = "") -> ev.TextStreamed:
    return ev.TextStreamed("scan", agent, text, path=f"scan[{index}]")


def after(view: RunView, *events: ev.Event) -> RunView:
    first = view.last_event + 1
    return fold(view, [Stamped(number, event) for number, event in enumerate(events, first)])


RUNNING = (ev.NodeStarted("scan", 1, 1, T0), begins(0), begins(1), begins(2))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["t", "t/team#1", "t/team#1/desk#2"], "t › team#1 › desk#2"),
        (["t" * 200, child_id("t" * 200, "team#1")], f"{'t' * 59}… › team#1"),
    ],
    ids=["named after those around", "too long for that"],
)
def test_the_path_to_a_thread_names_its_parent_nodes(names: list[str], message: str) -> None:
    owners = [Owner(name, "node") for name in names[:-1]]
    assert crumbs(names[-1], owners) == message


def words(lines: Sequence[Line]) -> list[str]:
    return [plain_text(line) for line in lines]


@pytest.mark.parametrize(
    ("events", "said", "short"),
    [
        pytest.param((), "", "", id="before a branch began"),
        pytest.param(RUNNING[1:], "0 of 3 done, 3 running", "0/3", id="all run"),
        pytest.param(
            (*RUNNING[1:], ev.BranchEnded("scan", outcome(0), T0)),
            "1 of 3 done, 2 running",
            "1/3",
            id="one is done",
        ),
        pytest.param(
            (*RUNNING[1:], ev.BranchEnded("scan", failed(1), T0), ev.BranchWaits("scan", "scan[2]", "sure?")),
            "0 of 3 done, 1 failed, 1 running, 1 waiting",
            "0/3 ✗1 ‖1",
            id="one failed and one asks",
        ),
        pytest.param(
            (
                begins(0),
                ev.BranchEnded("scan", outcome(0), T0),
                ev.BranchEnded("scan", outcome(2, "unneeded"), T0),
            ),
            "1 of 3 done, 1 not needed",
            "1/3",
            id="one was not needed",
        ),
    ],
)
def test_branches_are_counted_in_words(events: tuple[ev.Event, ...], said: str, short: str) -> None:
    view = after(view_of_map(), RUNNING[0], *events)
    assert (counted(view.inside), short_count(view.inside)) == (said, short)
    assert said in status(view, T0).turn


def test_what_branches_write_is_kept_apart() -> None:
    view = after(view_of_map(), *RUNNING, says(0, "one "), says(2, "three"), says(0, "more"))
    texts = {path: one.text for path, one in view.inside.branches.items()}
    assert texts == {"scan[0]": "one more", "scan[1]": "", "scan[2]": "three"}
    assert view.stream.text == ""


def test_of_what_a_branch_writes_only_the_tail_is_kept() -> None:
    view = after(view_of_map(), *RUNNING, *[says(0, "x" * 999) for _ in range(20)])
    branch = view.inside.branches["scan[0]"]
    assert (len(branch.text), branch.length) == (TEXT_TAIL, 20 * 999)


def test_a_second_attempt_of_a_branch_clears_its_output() -> None:
    retry = ev.NodeRetrying("scan", 1, 3, 0.5, "no answer", path="scan[1]")
    view = after(view_of_map(), *RUNNING, says(1, "half a "), retry)
    branch = view.inside.branches["scan[1]"]
    assert (branch.text, branch.attempt, branch.error, view.retry) == ("", 2, "no answer", None)


@pytest.mark.parametrize("cut", range(1, 12))
def test_the_fold_is_the_same_however_events_are_cut(cut: int) -> None:
    events = [
        *RUNNING, says(0, "a"), says(1, "b"), says(0, "c", "opus"), ev.BranchEnded("scan", outcome(0), T0),
        ev.NodeRetrying("scan", 1, 2, 0.1, "no", path="scan[1]"), says(1, "d"),
        ev.BranchEnded("scan", failed(1), T0), ev.BranchWaits("scan", "scan[2]", "sure?"),
    ]  # fmt: skip
    whole = after(view_of_map(), *events)
    assert after(after(view_of_map(), *events[:cut]), *events[cut:]) == whole


def test_running_branches_are_cancelled_with_the_node() -> None:
    view = after(view_of_map(), *RUNNING, ev.AttemptDropped("scan", 1, "stopped by you"))
    assert {one.phase for one in view.inside.branches.values()} == {"cancelled"}
    assert not view.inside.live


def test_a_thousand_branches_fold_in_one_batch() -> None:
    events = [event for index in range(1000) for event in (begins(index, 1000), says(index, "x"))]
    view = after(view_of_map(), RUNNING[0], *events)
    assert counted(view.inside) == "0 of 1000 done, 1000 running"


LENS = [
    update([], "ants", ["ants"], "append", path="scan[0]"),
    update("", "ants", "ants", path="scan[0]", channel="newest"),
    update("ants", "crabs", "crabs", path="scan[2]", channel="newest"),
]


def test_the_lens_groups_updates_by_branch_and_names_the_failed_ones() -> None:
    branches = [outcome(0, overridden=("newest",)), failed(1, attempts=2), outcome(2), outcome(3, "unneeded")]
    assert words(branch_lens(LENS, branches)) == [
        "✗ scan[1]  failed after 2 attempts, 0.3 s",
        "  they sting",
        "✔ scan[0]  0.3 s",
        "c  append",
        "  list 0 + “ants”",
        "  → list 1",
        "newest  overwrite",
        "  “” → “ants”",
        "  overwritten by scan[2]",
        "✔ scan[2]  0.3 s",
        "newest  overwrite",
        "  “ants” → “crabs”",
        "· 1 not needed: scan[3]",
    ]


def test_the_lens_of_many_branches_is_bounded() -> None:
    lines = words(branch_lens((), [outcome(index) for index in range(1000)]))
    assert (len(lines), lines[-1]) == (41, "… and 960 more branches")


def test_a_hostile_branch_says_nothing_to_the_terminal() -> None:
    bad = BranchOutcome(tapes.HOSTILE, "scan", 0, "failed", ErrorInfo("x", 1, "t", tapes.HOSTILE))
    view = after(view_of_map(), RUNNING[0], ev.BranchEnded("scan", bad, T0))
    rows = branch_rows(view.inside.in_order(), (), [tapes.HOSTILE], T0)
    shown = "".join([*words(branch_lens((), [bad])), rows[0].label, rows[0].item, rows[0].remark])
    shown += "".join(inside_lines(ev.BranchEnded("scan", bad, T0)))
    assert not any(char in shown for char in "\x1b\x07\x9b\u202e\u200b")


def test_rows_say_what_each_branch_is_about_and_came_to() -> None:
    branches = [
        BranchView("scan[0]", "scan", 0, "ok", outcome=outcome(0, overridden=("newest",))),
        BranchView("scan[1]", "scan", 1, "failed", outcome=failed(1), error="they sting"),
        BranchView("scan[2]", "scan", 2, "running", since=T0 - 2_000_000),
    ]
    rows = branch_rows(branches, LENS, ["ants", {"name": "bees", "n": 2}, "crabs"], T0)
    assert [(row.word, row.item, row.took, row.wrote, row.remark) for row in rows] == [
        ("done", "“ants”", "0.3 s", "c, newest", "newest overwritten by scan[2]"),
        ("failed", "bees", "0.3 s", "", "they sting"),
        ("running", "“crabs”", "2.0 s", "newest", ""),
    ]


def test_nodes_of_one_superstep_are_distinguished_by_name() -> None:
    paths = [
        "search_web+search_wikipedia/search_web",
        "search_web+search_wikipedia/search_wikipedia",
        "group/a",
    ]
    rows = branch_rows([BranchView(path, path, 0, "ok") for path in paths], (), (), T0)
    assert [row.label for row in rows] == ["search_web", "search_wikipedia", "group/a"]


def test_a_branch_without_an_item_is_about_nothing() -> None:
    assert item_text(BranchView("group/left", "left", 0), ()) == ""
    assert item_text(BranchView("scan[7]", "scan", 7), ["one"]) == ""


async def run_until_it_stops(driver: Driver, view: RunView) -> RunView:
    await driver.execute(Run())
    async with asyncio.timeout(20):
        while True:
            view = fold(view, driver.events(view.last_event))
            if view.progress.status != "running":
                return view
            await driver.changed(view.last_event)


async def test_a_real_map_with_a_quorum() -> None:
    bench = nested.Bench(store := MemoryCheckpointer(), nested.settled(store))
    try:
        driver = await bench.thread()
        view = await run_until_it_stops(driver, open_view(await driver.snapshot()))
        point = view.head
        assert point is not None
        shown = words(head_step(view).lens)
        assert [line.split("  ")[0] for line in shown if line.startswith(("✔", "✗"))] == [
            "✗ scan[1]",
            "✔ scan[0]",
            "✔ scan[2]",
        ]
        assert "  overwritten by scan[2]" in shown
        assert "  ValueError: they sting" in shown  # its name and attempt stand in the line above
        text_by_path = {one.path: one.text for one in branches_of_step(point, view.inside)}
        assert text_by_path == {
            f"scan[{at}]": f"looking at {item}" for at, item in enumerate(("ants", "bees", "crabs"))
        }
        assert branch_lines(point)[0] == "Branches: 2 of 3 done, 1 failed."
    finally:
        await bench.hub.close()


async def test_a_thread_that_waits_in_a_branch_shows_all_branches_when_it_is_opened_again() -> None:
    def node(_state: Any, config: Any) -> dict[str, Any]:
        if config.item == "bees":
            config.interrupt("May I?")
        return {"found": config.item}

    bench = nested.Bench(store := MemoryCheckpointer(), nested.mapped(store, node))
    try:
        driver = await bench.thread()
        view = await run_until_it_stops(driver, open_view(await driver.snapshot()))
        reopened = open_view(await driver.snapshot())
        for one in (view, reopened):
            assert counted(one.inside) == "2 of 3 done, 1 waiting"
            assert "May I? — your turn" in status(one, 0).turn
        request = view.progress.pending[0]
        await driver.execute(Answer(request.id, "yes", step=request.step))
        view = fold(view, driver.events(view.last_event))
        assert counted(view.inside) == "2 of 3 done, 1 answered"
        view = await run_until_it_stops(driver, view)
        assert (view.progress.status, view.values["found"]) == ("completed", ["ants", "bees", "crabs"])
    finally:
        await bench.hub.close()


def test_a_subgraph_node_is_listed_once_a_step() -> None:
    text, lines = NodeText(), list[str]()
    for head, node in ((0, "plan"), (0, "plan"), (0, ""), (0, "plan"), (1, "plan"), (1, "plan")):
        progress = progress_of(Cursor("t/team#1", head=head), node or None, UNLIMITED)
        lines += text.lines(ev.ChildMoved("team", "team", "t/team#1", node, progress))
    assert lines == ["Inside team: plan runs, thread t/team#1."] * 2


async def test_a_subgraph_shows_where_it_is_and_what_it_writes() -> None:
    bench = nested.Bench(store := MemoryCheckpointer(), nested.team(store, deeper=True))
    try:
        driver = await bench.thread()
        view = await run_until_it_stops(driver, open_view(await driver.snapshot()))
        assert [(one.path, one.thread_id) for one in view.inside.children] == [
            ("team", "t/team#1"),
            ("team/desk", "t/team#1/desk#1"),
        ]
        assert view.inside.branches["team/desk/write"].text == "writing about moss"
        assert open_view(await driver.snapshot()).inside.child == ChildView("team", "t/team#1")
        child = open_view(await (await bench.hub.open("t/team#1/desk#1")).snapshot())
        assert [one.thread_id for one in child.owners] == ["t", "t/team#1"]
    finally:
        await bench.hub.close()


async def test_a_request_answered_in_the_child_leaves_the_parent() -> None:
    bench = nested.Bench(store := MemoryCheckpointer(), nested.team(store))
    try:
        driver = await bench.thread()
        view = await run_until_it_stops(driver, open_view(await driver.snapshot()))
        assert view.progress.pending[0].thread == "t/team#1"
        child = await bench.hub.open("t/team#1")
        request = (await child.snapshot()).progress.pending[0]
        await child.execute(Answer(request.id, "ok", step=request.step))
        async with asyncio.timeout(20):
            while view.progress.pending:
                await driver.changed(view.last_event)
                view = fold(view, driver.events(view.last_event))
        view = await run_until_it_stops(driver, view)
        assert (view.progress.status, view.values["results"]) == ("completed", ["all about moss"])
    finally:
        await bench.hub.close()


def test_an_inside_of_nothing_counts_nothing() -> None:
    assert counted(InsideView()) == short_count(InsideView()) == ""


def test_a_branch_shows_the_contract_of_its_node():
    graph: Any = StateGraph(nested.CHANNELS)
    graph.add_node("left", lambda _s: {}, reads=["items"], writes=["found"])
    graph.add_node("right", lambda _s: {}, reads=[], writes=["total"]).add_parallel(
        "group", ["left", "right"]
    )
    info = graph.add_edge(START, "group").add_edge("group", END).compile().graph.info
    group = info.node("group")
    for name, reads, writes in (("left", "items", "found"), ("right", "nothing", "total")):
        lines = [
            plain_text(line) for line in branch_detail(BranchView(f"group/{name}", name), (), (), node=group)
        ]
        assert [f"may read        {reads}", f"may write       {writes}"] == lines[1:3]


def test_calls_of_failed_attempts_are_separate_from_those_of_the_step():
    calls = (
        ToolUse("w", "book", {"n": 1}, "booked", attempt=1),
        ToolUse("w", "book", {"n": 2}, "booked", attempt=2),
        ToolUse("w", "look", {"n": 3}, "seen", attempt=1, path="scan[0]"),
        ToolUse("w", "look", {"n": 4}, "seen", attempt=1, path="scan[1]"),
    )
    branches = (outcome(0), outcome(1, "failed"))
    point = replace(played(tapes.advisor_tape()).checkpoints[-1], calls=calls, attempt=2, branches=branches)
    made, failed = [[plain_text(line) for line in lines(point)] for lines in (calls_of_step, calls_of_failed)]
    assert [line.strip() for line in made[1::3]] == ['{"n": 2}', '{"n": 3}']
    assert failed[0] == "2 calls made in failed attempts"
    assert [line.strip() for line in failed[2::3]] == ['{"n": 1}', '{"n": 4}']
