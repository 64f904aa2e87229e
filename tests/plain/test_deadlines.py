"""In plain text mode a run continues after a deadline's answer as after a person's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import GraphRunner, SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Start
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.plain.context import is_timeout
from hitl_tui.plain.loop import run_plain
from tests.plain.person import Line, Person
from tests.support.flows import Clock, Desk
from tests.support.workers import until

SHIP = """
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
ship = Gate("check", title="Ship it?", deadline={deadline}, on_timeout={on_timeout!r}, choices=[
    GateChoice("approve", "ship", values={{"verdict": "approved"}}), GateChoice("stop", "stop")])
graph = (
    StateGraph({{"n": Channel(0), "verdict": Channel("")}}, name="ship")
    .add_node("check", lambda state: {{"n": 1}}).add_node("send", lambda state: {{"n": 2}})
    .add_edge(START, "check").add_edge("check", "send").add_edge("send", END)
    .compile(checkpointer=MemoryCheckpointer(), interrupt_after=[ship])
)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteCheckpointer]:
    with closing(SQLiteCheckpointer(tmp_path / "ship.db")) as opened:
        yield opened


def asked_long_ago(store: SQLiteCheckpointer, file: Path, on_timeout: str | None) -> None:
    """A thread `t` that waits for an answer, and whose deadline has passed."""
    asked(store, file, on_timeout, Clock())


def asked(store: SQLiteCheckpointer, file: Path, on_timeout: str | None, clock: Clock) -> None:
    """A thread `t` that waits for an answer, 60 seconds at most."""
    file.write_text(SHIP.format(deadline=60, on_timeout=on_timeout))
    desk = Desk(open_graph(str(file), store), "t", clock)
    desk.do(Start({}))
    desk.run()
    assert desk.session.cursor.status == "waiting"


def talk(store: SQLiteCheckpointer, *lines: Line) -> tuple[int, list[str]]:
    """A session on thread `t`, whose deadline answers while the person types the first line.

    Returns:
        Its exit code, and what was said.
    """
    typing = threading.Event()
    drivers: list[Driver] = []

    def deadline_answers() -> None:
        typing.set()
        # The event, not the cursor in the store: that is there a moment earlier.
        until(lambda: any(is_timeout(one.event) for one in drivers[0].events(0)), "the deadline answers")

    def build(info: ThreadInfo) -> GraphRunner:
        assert typing.wait(60)
        return reopen_graph(info.thread_id, info.source, store)

    async def opened() -> tuple[LocalHub, Driver]:
        hub = LocalHub(store, build)
        drivers.append(await hub.open("t"))
        return hub, drivers[0]

    person = Person([deadline_answers, *lines])
    return run_plain(opened, actor="ann", go_on=lambda source, thread: "", console=person), person.said


def test_after_a_deadline_the_run_continues_with_the_next_line(
    store: SQLiteCheckpointer, tmp_path: Path
) -> None:
    asked_long_ago(store, tmp_path / "ship.py", "approve")
    with ThreadPoolExecutor(1) as not_the_main_thread:
        code, said = not_the_main_thread.submit(talk, store, "d").result()
    assert code == 0
    assert said.count("The deadline has answered.") == 1
    assert "Your command d was not carried out. Look, then give it again." in said
    words = "\n".join(said)
    assert "Step 2 by the deadline, decision approve" in words
    assert "Step 3 by send" in words


@pytest.mark.parametrize(
    ("lines", "says"),
    [([], ""), (["d"], "The deadline answered first. Nothing of yours was sent.")],
    ids=["at the prompt for a command", "at the prompt for an answer"],
)
def test_after_a_deadline_the_run_continues_without_input(
    store: SQLiteCheckpointer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], says: str
) -> None:
    clock = Clock()
    monkeypatch.setattr(store, "now", clock)
    asked(store, tmp_path / "ship.py", "approve", clock)
    drivers: list[LocalDriver] = []

    async def opened() -> tuple[LocalHub, Driver]:
        hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))
        drivers.append(await hub.open("t"))
        return hub, drivers[0]

    def wait_until_interrupted() -> None:
        clock.advance(61)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, drivers[0].expire())
            threading.Event().wait(60)
        raise AssertionError("the prompt was not interrupted")

    person = Person([*lines, wait_until_interrupted])
    assert run_plain(opened, actor="ann", go_on=lambda source, thread: "", console=person) == 0
    assert person.said.count("The deadline has answered.") == 1
    assert (says in person.said) is bool(says)
    assert "Step 3 by send" in "\n".join(person.said)


def test_a_deadline_without_an_answer_does_not_run_anything(
    store: SQLiteCheckpointer, tmp_path: Path
) -> None:
    asked_long_ago(store, tmp_path / "ship.py", None)
    code, said = talk(store, "")  # a deadline that is missed interrupts nothing
    assert (code, said.count("The deadline was missed.")) == (1, 1)
    assert not any("Step 2" in line for line in said)
