"""The queue on screen: live, most urgent first, filtered, previewed; several decided at once."""

from __future__ import annotations

import asyncio
import json
import string
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from hitl_tui import SQLiteCheckpointer
from hitl_tui.config import queue_file
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.policies import read_policy
from hitl_tui.engine.commands import Answer, Claim, Command
from hitl_tui.engine.log.threads import Waiting
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.stores import Checkpointer, open_store
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.screens.queue import QueueScreen
from hitl_tui.ui.terminal_input import BurstKey
from hitl_tui.ui.theme import Look
from hitl_tui.ui.widgets.choices import Choices
from tests.support import rich_queue
from tests.ui.harness import Screen, booted

NAMES = [asking.thread for asking in rich_queue.TWELVE]
ORDER = [
    "press-q3", "recall-k2", "page-news", "order-7", "mail-bot-1", "mail-bot-2", "memo-42", "blog-indexes",
    "plan-trip", "blog-joins", "blog-closures", "blog-windows",
]  # fmt: skip


@asynccontextmanager
async def queue(
    store: Checkpointer,
    *,
    size: tuple[int, int] = (120, 40),
    theme: str = "",
    first: str = "order-7",
    says: str = "live",
) -> AsyncIterator[Screen]:
    """The app with the queue open in front of a thread that waits.

    Args:
        says: what the list says of itself by then.
    """
    hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))

    async def open_driver() -> Any:
        return hub, await hub.open(first)

    app = HitlApp(AppStart(open_driver, "tester"), Look(theme=theme))
    try:
        async with booted(app, size=size) as pilot:
            it = Screen(app, pilot)
            await it.until(
                lambda: app.run_screen is not None and app.screen is app.run_screen, "the run screen"
            )
            await it.press("Q")
            await it.shows("FOR YOU", says)
            yield it
    finally:
        await hub.close()


@pytest.fixture
def twelve(tmp_path: Path) -> SQLiteCheckpointer:
    """A store in which twelve threads wait."""
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    rich_queue.fill(store)
    return store


def shown(it: Screen) -> list[str]:
    """The threads of the rows, in order."""
    return [row.name for row in it.app.screen.query_one("#queue").rows]  # type: ignore[attr-defined]


def statuses(store: Checkpointer) -> dict[str, str]:
    return {row.info.thread_id: row.status for row in store.threads()}


@pytest.mark.slow
async def test_the_queue_lists_all_requests_most_urgent_first(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve) as it:
        assert shown(it) == ORDER
        await it.shows("12 WAIT FOR YOU", "Publish the quarterly numbers?", "in 17 m", "1 of 2, one yes")
        await it.shows(
            "Revenue rose by 4 %.", "to team@example.org · subject Minutes", "item · amount · wrapping"
        )
        await it.shows("version 2, back from you")
        await it.shows("form, 4 fields", "tainted: read_page", "2 actions", "most urgent first")


@pytest.mark.parametrize(
    ("first", "at_once", "key", "then_on"),
    [(1, ["page-news"], "", "press-q3"), (3, ["press-q3", "page-news", "order-7"], "down", "page-news")],
    ids=["nobody moves", "somebody has moved"],
)
@pytest.mark.slow
async def test_the_first_are_painted_before_the_rest_is_read(
    twelve: SQLiteCheckpointer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    first: int,
    at_once: list[str],
    key: str,
    then_on: str,
) -> None:
    rest, waiting = asyncio.Event(), LocalHub.waiting

    async def waiting_late(self: LocalHub, limit: int) -> tuple[Waiting, ...]:
        if limit > first:
            await rest.wait()
        return await waiting(self, limit)

    monkeypatch.setattr("hitl_tui.ui.screens.queue._FIRST", first)
    monkeypatch.setattr(LocalHub, "waiting", waiting_late)
    async with queue(twelve, says=f"{first}, reading on") as it:
        assert f"{first}+ WAIT FOR YOU" in it.text()
        assert shown(it) == at_once
        if key:
            await it.press(key)
        rest.set()
        await it.shows("12 WAIT FOR YOU", "12, live")
        assert shown(it) == ORDER
        assert it.app.screen.query_one("#queue").selected.name == then_on  # type: ignore[attr-defined]


@pytest.mark.slow
async def test_new_requests_appear_and_decided_ones_disappear(
    twelve: SQLiteCheckpointer,
) -> None:
    async with queue(twelve, size=(120, 60)) as it:
        elsewhere = SQLiteCheckpointer(twelve.path)
        await it.press("down")
        new = rich_queue.Asking("new-one", "review", 1)
        await asyncio.to_thread(rich_queue.fill, elsewhere, (new,))
        await it.shows("new-one", "13 WAIT FOR YOU")
        runner = open_graph(f"{rich_queue.GRAPHS}:review", elsewhere)
        (request,) = elsewhere.cursor("memo-42").pending  # type: ignore[union-attr]
        runner.answer("memo-42", request.id, "approve", step=request.step)
        await it.until(
            lambda: (
                not any(row.asks for row in it.app.screen.query_one("#queue").rows if row.name == "memo-42")
            ),  # type: ignore[attr-defined]
            "the memo being answered",
        )
        assert it.app.screen.query_one("#queue").selected.name == "recall-k2"  # type: ignore[attr-defined]


WAITS = """
import sys
from hitl_tui.stores import open_store
from tests.support import rich_queue
store = open_store(sys.argv[1])
rich_queue.fill(store, (rich_queue.Asking("new-one", "review", 1),))
store.close()
"""


@pytest.fixture(params=["sqlite", "files", pytest.param("postgres", marks=pytest.mark.slow)])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that several processes can open."""
    kind = request.param
    return (
        request.getfixturevalue("postgres_url") if kind == "postgres" else f"{kind}:///{tmp_path / 'store'}"
    )


@pytest.mark.integration
async def test_changes_by_another_process_are_shown(shared: str) -> None:
    store = open_store(shared)
    await asyncio.to_thread(rich_queue.fill, store, (rich_queue.Asking("order-7", "order", 1),))
    async with queue(store) as it:
        await it.shows("1 WAITS FOR YOU")
        command = [sys.executable, "-c", WAITS, shared]
        other = await asyncio.create_subprocess_exec(*command)
        await it.shows("new-one", "2 WAIT FOR YOU")
        assert await other.wait() == 0


@pytest.mark.slow
async def test_the_store_is_checked_at_least_every_two_seconds(
    twelve: SQLiteCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paces: list[tuple[float, Any]] = []
    monkeypatch.setattr(HitlApp, "set_interval", lambda self, pace, do: paces.append((pace, do)))
    monkeypatch.setattr(LocalHub, "subscribe", lambda self, wake: None)
    async with queue(twelve, size=(120, 60)) as it:
        elsewhere = SQLiteCheckpointer(twelve.path)
        new = rich_queue.Asking("new-one", "review", 1)
        await asyncio.to_thread(rich_queue.fill, elsewhere, (new,))
        elsewhere.close()
        await it.pilot.pause()
        assert "new-one" not in it.text()
        ((pace, look),) = paces
        assert pace <= 2
        look()
        await it.shows("new-one", "13 WAIT FOR YOU")


@pytest.mark.slow
async def test_many_changes_are_read_together(
    twelve: SQLiteCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wakes: list[Callable[[], object]] = []
    reads: list[float] = []
    waiting = LocalHub.waiting

    async def counted(self: LocalHub, limit: int) -> tuple[Waiting, ...]:
        reads.append(time.monotonic())
        return await waiting(self, limit)

    monkeypatch.setattr(LocalHub, "subscribe", lambda self, wake: wakes.append(wake))
    monkeypatch.setattr(LocalHub, "changes", lambda self: None)
    monkeypatch.setattr(LocalHub, "waiting", counted)
    async with queue(twelve) as it:
        await it.shows("12, live")
        for _ in range(200):
            writing = threading.Thread(target=wakes[0])  # which knows nothing of the app
            writing.start()
            writing.join()
            await asyncio.sleep(0.002)
        last = time.monotonic()
        await it.until(lambda: reads[-1] >= last, "a look behind the last of them")
        apart = [later - earlier for earlier, later in pairwise(reads)]
        assert min(apart) >= QueueScreen.READ_APART


def dead_keys(it: Screen, *meant: str) -> list[str]:
    """The letters and digits that are keys of nothing here."""
    alive = {*it.app.screen.active_bindings, *meant}
    return [key for key in string.ascii_letters + string.digits if key not in alive]


@pytest.mark.slow
async def test_a_key_that_means_nothing_costs_nothing(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve) as it:
        before = {name: twelve.ledger(name) for name in NAMES}
        keys = dead_keys(it, "Q")
        assert len(keys) > 40
        await it.press(*keys)
        assert isinstance(it.app.screen, QueueScreen)
        assert shown(it) == ORDER
        await it.shows("12, live", "most urgent first")
        await it.press("slash", *"memo", "enter", "enter")
        await it.shows("Your answer", "Is this draft good enough?")
        await it.until(lambda: it.card.review.state == "open", "keys that decide")
        choices = it.run.query_one(Choices).options
        keys = dead_keys(it, *(option.key for option in choices))
        assert keys
        await it.press(*keys)
        await it.shows("Your answer", "Is this draft good enough?", "approve", "send back")
        assert it.app.screen is it.run
        assert it.card.review.state == "open"
        assert {name: twelve.ledger(name) for name in NAMES} == before


@pytest.mark.slow
async def test_filter_and_order_are_kept_when_the_queue_reopens(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve) as it:
        await it.press("slash", *"graph:advisor", "enter")
        await it.until(lambda: len(shown(it)) == 4, "four of the advisor")
        await it.press("o")
        await it.shows("Sort by", "w    waiting", "as it is now")
        await it.press("w")
        await it.shows("sorted by waiting")
        await it.press("O", "escape")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        assert json.loads(queue_file().read_text()) == {
            "filter": "graph:advisor", "sort": "waits", "reverse": True,
        }  # fmt: skip
        await it.press("Q")
        await it.shows("sorted by waiting, reversed", "4 of 12", "graph:advisor")
        assert shown(it) == ["blog-windows", "blog-closures", "blog-joins", "blog-indexes"]
        await it.press("slash", *"risk:high", "enter")  # typed over the filter that was kept
        await it.until(lambda: it.app.screen.query_one(Input).value == "risk:high", "the new filter alone")
        await it.press("slash", "end", *" grph:x", "enter")
        await it.press("slash", "end", *" nothing")
        await it.shows("there is no grph: to filter by; did you mean 'graph'?")


@pytest.mark.slow
async def test_enter_opens_the_thread_with_the_card_of_the_request(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve) as it:
        await it.press("enter")
        await it.until(lambda: it.session.thread_id == "press-q3", "the most urgent")
        await it.shows("Your answer", "publish them", "high risk")
        await it.press("escape")
        await it.press("n")
        await it.until(lambda: it.session.thread_id == "recall-k2", "the next")
        await it.shows("2 of 12 · step 1")


@pytest.mark.slow
async def test_working_through_the_queue_shows_the_position(
    twelve: SQLiteCheckpointer,
) -> None:
    async with queue(twelve, size=(80, 24)) as it:
        await it.press("slash", *"graph:advisor", "enter", "down", "enter")
        await it.until(lambda: it.session.thread_id == "blog-joins", "the second of four")
        await it.shows("Your answer", "1 of 4 · step 5", "undoes it")
        for place, thread in ((2, "blog-indexes"), (3, "blog-closures"), (4, "blog-windows")):
            await it.press("n")
            await it.until(lambda thread=thread: it.session.thread_id == thread, thread)  # type: ignore[misc]
            await it.shows("Your answer", f"{place} of 4 · step 5", "undoes it")
        await it.press("N")
        await it.until(lambda: it.session.thread_id == "blog-closures", "the one before")
        await it.shows("Your answer", "3 of 4 · step 5", "undoes it")
        await it.press("Q")
        await it.shows("4 of 12, live")
        assert it.app.screen.query_one("#queue").selected.name == "blog-closures"  # type: ignore[attr-defined]
        await it.press("slash", "end", *" thread:windows", "enter", "enter")
        await it.shows("1 of 1 · step 5", "undoes it")
        await it.press("n")
        await it.shows("no other thread that matches")
        await it.press("N")
        await it.shows("no earlier thread still waits")


@pytest.mark.slow
async def test_text_that_does_not_fit_is_in_the_preview_of_the_selected_row(
    twelve: SQLiteCheckpointer,
) -> None:
    (request,) = twelve.cursor("press-q3").pending  # type: ignore[union-attr]
    runner = open_graph(f"{rich_queue.GRAPHS}:release", twelve)
    runner._execute("press-q3", Claim(request.id, "ann", minutes=90, lasts=True))
    async with queue(twelve, size=(80, 24)) as it:
        row = next(line for line in it.text().splitlines() if "press-q3" in line)
        assert "Publish the qua" in row
        assert "Publish the quarterly numbers?" not in row
        await it.shows("Publish the quarterly numbers?   high risk", "ann has claimed it until")


@pytest.mark.slow
async def test_mark_all_leaves_out_high_risk_and_forms(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve) as it:
        await it.press("asterisk")
        await it.shows("12 marked, 12, live", "a Decide the 12 marked")
        await it.press("a")
        await it.shows("Answer “approve”: 9 would be decided, 3 not", "high risk: decide it by itself")
        it.app.post_message(BurstKey("enter", "\r"))
        await it.shows("Nothing was decided")
        assert set(statuses(twelve).values()) == {"waiting"}
        await it.press("enter")
        await it.shows("9 decided")
        await it.press("enter")
        await it.until(lambda: shown(it) == ["press-q3", "page-news", "order-7"], "three are left")
        await it.shows("3 marked, 3, live")

        def done() -> set[str]:
            return {name for name, status in statuses(twelve).items() if status == "completed"}

        await it.until(lambda: done() == rich_queue.APPROVABLE, "they went on")


@pytest.mark.slow
async def test_stopping_a_batch_finishes_the_current_ones_and_keeps_the_rest_marked(
    twelve: SQLiteCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    can_continue, known = asyncio.Event(), asyncio.Event()
    waiting, execute = LocalHub.waiting, LocalDriver.execute

    async def decided_late(driver: LocalDriver, command: Command[Any]) -> Any:
        if isinstance(command, Answer):
            await can_continue.wait()
        return await execute(driver, command)

    async def waiting_late(self: LocalHub, limit: int) -> tuple[Waiting, ...]:
        await known.wait()
        return await waiting(self, limit)

    monkeypatch.setattr("hitl_tui.ui.conversations._AT_ONCE", 2)
    monkeypatch.setattr(LocalDriver, "execute", decided_late)
    async with queue(twelve) as it:
        await it.press("asterisk")
        await it.shows("12 marked")
        monkeypatch.setattr(LocalHub, "waiting", waiting_late)
        await it.press("a")
        await it.shows("What would be decided", "looking…")
        await it.press("enter")  # before there is a list it decides nothing
        known.set()
        await it.shows("9 would be decided, 3 not")
        await it.press("enter")
        await it.shows("deciding…", "esc Stop")
        await it.press("escape")
        await it.shows("stopping after those that are being sent")
        can_continue.set()
        await it.shows("2 decided", "enter esc Back")
        await it.press("enter")
        await it.shows("10 marked")
        assert sum(status == "waiting" for status in statuses(twelve).values()) == 10


@pytest.mark.slow
async def test_a_request_that_moved_since_it_was_marked_is_refused_and_stays_marked(
    twelve: SQLiteCheckpointer,
) -> None:
    async with queue(twelve) as it:
        await it.press("slash", *"memo", "enter")
        await it.until(lambda: shown(it) == ["memo-42"])
        await it.press("space")
        runner = open_graph(f"{rich_queue.GRAPHS}:review", twelve)
        runner.update_state("memo-42", {"text": "another"}, actor="ann")
        await it.press("a")
        await it.shows("0 would be decided, 1 not", "it is asked again")
        await it.press("escape", "space", "space", "a")
        await it.until(lambda: "1 would be decided" in it.text())
        runner.update_state("memo-42", {"text": "a third one"}, actor="ann")
        await it.press("enter")
        await it.shows("1 refused")
        await it.press("enter")
        await it.shows("1 marked", "not decided: request")
        assert statuses(twelve)["memo-42"] == "waiting"


@pytest.mark.slow
async def test_a_list_that_is_closed_before_it_is_there_stays_closed(
    twelve: SQLiteCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, read, waiting = asyncio.Event(), asyncio.Event(), LocalHub.waiting

    async def waiting_late(self: LocalHub, limit: int) -> tuple[Waiting, ...]:
        await known.wait()
        try:
            return await waiting(self, limit)
        finally:
            read.set()

    async with queue(twelve) as it:
        await it.press("asterisk")
        await it.shows("12 marked")
        monkeypatch.setattr(LocalHub, "waiting", waiting_late)
        await it.press("a")
        await it.shows("What would be decided", "looking…")
        await it.press("escape")
        await it.shows("12 marked")
        known.set()
        await read.wait()
        await it.shows("12 marked, 12, live")
        assert isinstance(it.app.screen, QueueScreen)
        assert set(statuses(twelve).values()) == {"waiting"}


RULES = """
[[rule]]
name = "good drafts"
when = "verdict == 'approved' and risk == 'low'"
answer = "approve"
note = "as agreed on Monday"
"""


@pytest.mark.slow
async def test_the_rules_of_a_file_decide_what_is_shown_after_a_look_at_the_list(
    twelve: SQLiteCheckpointer, tmp_path: Path
) -> None:
    file = tmp_path / "policy.toml"
    async with queue(twelve, size=(160, 40)) as it:
        await it.press("slash", *"blog", "enter")
        await it.until(lambda: len(shown(it)) == 4, "four of the advisor")
        await it.press("p")
        await it.shows("Decide by a policy", "Of 4 requests")
        await it.paste(str(file))
        await it.press("enter")
        await it.shows("can't be read")
        file.write_text(RULES)
        await it.press("enter")
        await it.shows("By policy.toml: 3 would be decided, 1 not", "approve the draft, by rule good drafts")
        await it.shows("no rule holds")
        await it.press("tab", "r")
        assert set(statuses(twelve).values()) == {"waiting"}
        await it.press("enter")
        await it.shows("3 decided")
        await it.press("enter")
        await it.until(lambda: shown(it) == ["blog-indexes"], "one is left")
        entry = next(entry for entry in twelve.ledger("blog-joins") if "policy" in entry.data)
        rules = read_policy(file)
        assert (entry.actor, entry.note) == (
            "tester",
            "as agreed on Monday (rule 'good drafts' of policy.toml)",
        )
        assert entry.data["policy"] == rules.named(rules.rules[0])


@pytest.mark.slow
async def test_what_is_marked_is_all_that_a_policy_is_asked_about(
    twelve: SQLiteCheckpointer, tmp_path: Path
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[[rule]]\nwhen = "True"\nanswer = "approve"\n')
    async with queue(twelve) as it:
        await it.press("space", "space", "p")
        await it.shows("Of 2 requests")
        await it.paste(str(file))
        await it.press("enter")
        await it.shows("By policy.toml: 1 would be decided, 1 not", "high risk, and rule 1 does not say")
        await it.press("escape")
        await it.shows("2 marked, 12, live")
        assert set(statuses(twelve).values()) == {"waiting"}


@pytest.mark.slow
async def test_the_palette_has_policies_and_a_browser_opens_no_file_of_the_machine(
    twelve: SQLiteCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with queue(twelve) as it:
        named = {command.title: command for command in it.app.get_system_commands(it.app.screen)}
        assert "Decide by a policy  (p)" in named
        monkeypatch.setattr("hitl_tui.ui.screens.queue.in_browser", lambda: True)
        await it.press("p")
        await it.shows("in a browser you can't open files")
        assert isinstance(it.app.screen, QueueScreen)


@pytest.mark.slow
async def test_another_answer_takes_its_words(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve) as it:
        await it.press("slash", *"memo", "enter")
        await it.until(lambda: shown(it) == ["memo-42"])
        await it.press("a")
        await it.shows("approve", "Answer “revise”")
        await it.press("tab")
        await it.shows("the answer 'revise' needs a comment")
        await it.press("r", *"shorter", "enter")
        await it.shows("Answer “revise”: 1 would be decided")
        await it.press("enter")
        await it.shows("1 decided")
        entry = next(entry for entry in reversed(twelve.ledger("memo-42")) if entry.kind == "answer")
        assert entry.data["answer"] == {"choice": "revise", "text": "shorter"}


@pytest.mark.slow
async def test_the_subject_is_shown_below_the_queue_and_from_140_columns_beside_it(
    twelve: SQLiteCheckpointer,
) -> None:
    async with queue(twelve, size=(200, 60)) as it:
        at = ORDER.index("blog-indexes")
        await it.press(*["down"] * at)
        await it.shows("latest_draft of step 4 by worker", "phone book, not with B-trees", "Without one")
        await it.shows("last time  tester chose “send back with feedback” at step", "concrete first”")
        await it.shows("the end or worker")
        for width, beside in ((139, False), (140, True)):
            await it.pilot.resize_terminal(width, 40)
            await it.shows("last time")
            pane, left = (it.app.screen.query_one(name) for name in ("#preview", "#queue-left"))
            await it.until(
                lambda pane=pane, left=left, beside=beside: (  # type: ignore[misc]
                    (pane.region.x >= left.region.right) is beside
                    and (pane.region.y >= left.region.bottom) is not beside
                ),
                f"the preview at {width} columns",
            )


@pytest.mark.slow
async def test_at_80_by_24_a_small_preview_shows_the_text(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve, size=(80, 24)) as it:
        await it.press(*["down"] * ORDER.index("memo-42"))
        await it.shows("Is this draft good enough?   asked")
        assert it.text().count("A memo about memos.") == 2  # in the row, and in the preview


@pytest.mark.slow
async def test_what_is_new_is_marked_until_it_is_selected(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve, size=(120, 60)) as it:
        assert "•" not in it.text()  # nobody has looked before
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        new = rich_queue.Asking("new-one", "review", 0)
        await asyncio.to_thread(rich_queue.fill, SQLiteCheckpointer(twelve.path), (new,))
        await it.press("Q")
        await it.shows("13, live")
        marked = [line for line in it.text().splitlines() if "•" in line]
        assert ["new-one" in line for line in marked] == [True]
        await it.press("end")
        await it.gone("•")


@pytest.mark.slow
async def test_what_is_due_within_five_minutes_moves_up_by_itself(
    twelve: SQLiteCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with queue(twelve) as it:
        await it.press("o", "t")
        await it.until(lambda: shown(it) == sorted(NAMES), "the order of names")
        screen, now = it.app.screen, time.time_ns() // 1000
        assert isinstance(screen, QueueScreen)
        for place in (screen, screen._list):
            monkeypatch.setattr(place, "_now", lambda: now + 14 * 60_000_000)
        screen.look()
        assert shown(it) == ["press-q3", *(name for name in sorted(NAMES) if name != "press-q3")]
        await it.shows("1 due in 3 m", "then the thread fails", "due in 3 m")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
@pytest.mark.slow
async def test_the_columns_fit(twelve: SQLiteCheckpointer, size: tuple[int, int]) -> None:
    async with queue(twelve, size=size) as it:
        row = next(line for line in it.text().splitlines() if "press-q3" in line and "high" in line)
        assert "in 17 m" in row
        votes = next(line for line in it.text().splitlines() if "recall-k2" in line and "in 3 h" in line)
        assert "1 of 2, one yes" in votes


@pytest.mark.slow
async def test_the_list_of_threads_leads_there_and_back(twelve: SQLiteCheckpointer) -> None:
    async with queue(twelve) as it:
        await it.press("w")
        await it.shows("12 threads")
        await it.press("w")
        await it.shows("12 WAIT FOR YOU")
        await it.press("ctrl+d")
        await it.shows("result")
        await it.press("ctrl+d")
        await it.press("w")
        await it.shows("12 threads")
        await it.press("ctrl+d")
        await it.shows("result")
        await it.press("ctrl+d")
        await it.press("Q")
        await it.shows("12 WAIT FOR YOU")
        await it.press("Q")
        await it.until(lambda: it.app.screen is it.run, "the run screen")


@pytest.mark.slow
async def test_a_row_is_claimed_released_and_handed_over_in_the_queue(
    twelve: SQLiteCheckpointer,
) -> None:
    def there() -> list[tuple[str | None, bool]]:
        return [(at.actor, at.claims) for at in twelve.attending("press-q3", time.time_ns() // 1000)]

    async with queue(twelve) as it:
        await it.shows("c Claim  @ Hand over")
        await it.press("c")
        await it.shows("yours, 14 m left")
        assert there() == [("tester", True)]
        await it.press("c")
        await it.gone("yours, ")
        assert there() == []
        await it.press("at")
        await it.shows("Hand over", "Publish the quarterly numbers?")
        await it.press(*"@ann", "enter", *"you know them", "enter")
        await it.shows("handed to ann by tester")
        (request,) = twelve.cursor("press-q3").pending  # type: ignore[union-attr]
        assert request.handed is not None
        assert (request.handed.to, request.handed.note) == ("ann", "you know them")
        await it.press("at")
        await it.shows("It becomes theirs")
        await it.press("enter", "enter")
        await it.shows("nothing was typed: to (name)")
        await it.press("escape")
        (recall,) = twelve.cursor("recall-k2").pending  # type: ignore[union-attr]
        runner = open_graph(f"{rich_queue.GRAPHS}:recall", twelve)
        runner._execute("recall-k2", Claim(recall.id, "cy", lasts=True))
        await it.press("down")
        await it.shows("claimed by cy, 14")
        await it.press("c")
        await it.shows("Take it over?", "take it over from cy")
        await it.press("down", "enter")
        await it.shows("yours, 14 m left")
        assert twelve.ledger("recall-k2")[-1].kind == "claim_taken"


@pytest.mark.slow
async def test_a_claim_that_ends_in_silence_is_shown_no_longer_within_seconds(
    twelve: SQLiteCheckpointer,
) -> None:
    async with queue(twelve) as it:
        screen = it.app.screen
        assert isinstance(screen, QueueScreen)
        assert screen.read_every == 20
        (request,) = twelve.cursor("press-q3").pending  # type: ignore[union-attr]
        runner = open_graph(f"{rich_queue.GRAPHS}:release", twelve)
        runner._execute("press-q3", Claim(request.id, "cy", minutes=0.05, lasts=True))
        await it.shows("claimed by cy")
        assert screen.read_every == 2
        await it.gone("claimed by cy")
        await it.until(lambda: screen.read_every == 20, "nobody being at anything")


@pytest.mark.slow
async def test_an_empty_queue_says_so(tmp_path: Path) -> None:
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    await asyncio.to_thread(rich_queue.fill, store, (rich_queue.Asking("memo-42", "review", 1),))
    async with queue(store, first="memo-42") as it:
        assert isinstance(it.app.screen, QueueScreen)
        await it.press("space", "a")
        await it.shows("1 would be decided")
        await it.press("enter")
        await it.shows("1 decided")
        await it.press("enter")
        await it.shows("nothing waits for a human", "0 WAIT FOR YOU")


@pytest.mark.slow
async def test_a_batch_is_undone_before_it_is_sent(twelve: Path):
    async with queue(twelve) as it:
        await it.press("asterisk")
        await it.shows("12 marked")
        await it.press("a")
        await it.shows("9 would be decided, 3 not")
        await it.press("enter")
        await it.shows("sending in", "z undoes it")
        await it.press("z")
        await it.gone("sending in")
        await it.press("escape")
        await it.shows("12 marked")
        assert all(status == "waiting" for status in statuses(twelve).values())


@pytest.mark.slow
async def test_a_batch_is_sent_at_once_by_a_second_enter(twelve: Path):
    async with queue(twelve) as it:
        await it.press("asterisk")
        await it.shows("12 marked")
        await it.press("a")
        await it.shows("9 would be decided, 3 not")
        await it.press("enter")
        await it.shows("enter Send now")
        await it.press("enter")
        await it.shows("9 decided")
