"""A recording plays a thread at a pace, without changing the thread it was made from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from hitl_tui import END, START, Agent, Channel, MemoryCheckpointer, ScriptedModel, StateGraph
from hitl_tui.agents.tempo import Tempo
from hitl_tui.drivers.played import PlayedThread
from hitl_tui.engine.commands import Fork, Step, UpdateState
from hitl_tui.engine.log.events import Event, RunEnded, StepCommitted, TextStreamed
from hitl_tui.errors import UsageError
from hitl_tui.stores.transfer import export_thread, import_thread
from hitl_tui.view.run_view import fold, is_gap, open_view

SAID = "A closure is a function together with what it holds on to."


class Looks:
    """Whoever waits looks here whether that is over: never, and several times."""

    def __init__(self) -> None:
        self._count = 0
        self.several = asyncio.Event()

    def __call__(self) -> bool:
        self._count += 1
        if self._count == 3:
            self.several.set()
        return False


class AtOnce(Tempo):
    """A tempo that waits for nothing, unless it is held."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = Looks()

    async def wait(self, seconds: float, enough: object = None) -> None:
        while self.held:
            self.looks()
            await asyncio.sleep(0)
        await asyncio.sleep(0)


@pytest.fixture
def store() -> MemoryCheckpointer:
    """Has the thread `t`: three steps, of which an agent wrote one, and a private channel."""
    store = MemoryCheckpointer()

    def write(state: dict[str, object], config: object) -> dict[str, object]:
        return {"draft": config.agents["writer"].fresh().chat("go"), "secret": "hidden"}  # type: ignore[attr-defined]

    graph = (
        StateGraph({"draft": Channel(""), "n": Channel(0), "secret": Channel("", visibility="private")})
        .add_node("write", write)
        .add_node("count", lambda state: {"n": state["n"] + 1})
        .add_edge(START, "write")
        .add_edge("write", "count")
        .add_edge("count", END)
        .compile(checkpointer=store, agents={"writer": Agent("writer", ScriptedModel([SAID], pace=0))})
    )
    graph.invoke({}, thread_id="t")
    return store


@pytest.fixture
def forks() -> list[Fork]:
    return []


@pytest.fixture
def tempo() -> AtOnce:
    return AtOnce()


@pytest.fixture
def tape(store: MemoryCheckpointer, tempo: AtOnce, forks: list[Fork]) -> Iterator[PlayedThread]:
    copy = MemoryCheckpointer()
    import_thread(copy, export_thread(store, "t", private=True), "t-tape")

    async def fork(command: Fork) -> str:
        forks.append(command)
        return command.new_thread_id

    played = PlayedThread("t-tape", copy, tempo, fork)
    yield played
    asyncio.run(played.close())


async def all_events(tape: PlayedThread, since: int) -> list[Event]:
    await tape.ended(since)
    return [stamped.event for stamped in tape.events(since)]


async def test_a_played_recording_ends_in_the_threads_state(tape: PlayedThread) -> None:
    view = open_view(await tape.snapshot())
    assert view.progress.head == 0
    await tape.ended(view.last_event)
    view = fold(view, tape.events(view.last_event))
    assert (view.progress.status, view.progress.head, view.values["n"]) == ("completed", 2, 1)
    assert [point.step for point in view.checkpoints] == [0, 1, 2]
    await tape.close()


async def test_a_recording_streams_model_output_again_without_private_values(tape: PlayedThread) -> None:
    events = await all_events(tape, (await tape.snapshot()).last_event)
    assert "".join(event.text for event in events if isinstance(event, TextStreamed)) == SAID
    assert "hidden" not in repr(events)
    steps = [event.checkpoint.step for event in events if isinstance(event, StepCommitted)]
    assert (steps, isinstance(events[-1], RunEnded)) == ([1, 2], True)
    await tape.close()


async def test_a_held_recording_stays_at_its_step(tape: PlayedThread, tempo: AtOnce) -> None:
    tempo.held = True
    snapshot = await tape.snapshot()
    await tempo.looks.several.wait()
    assert (tape.at, snapshot.values["n"], snapshot.progress.visits) == (0, 0, {})
    tempo.held = False
    await tape.ended(snapshot.last_event)
    assert tape.at == 2
    await tape.close()


async def test_a_rewound_recording_plays_from_the_start_for_all_watchers(tape: PlayedThread) -> None:
    view = open_view(await tape.snapshot())
    await tape.ended(view.last_event)
    view = fold(view, tape.events(view.last_event))
    await tape.rewind()
    assert is_gap(view, tape.events(view.last_event))
    tape.tempo.held = True
    view = open_view(await tape.snapshot())
    assert view.progress.head == 0
    tape.tempo.held = False
    await tape.ended(view.last_event)
    assert fold(view, tape.events(view.last_event)).progress.status == "completed"
    await tape.close()


async def test_a_recording_only_allows_to_fork_its_thread(tape: PlayedThread, forks: list[Fork]) -> None:
    await tape.snapshot()
    for command in (Step(), UpdateState({"n": 5}, expected_step=0)):
        with pytest.raises(UsageError):
            await tape.execute(command)  # type: ignore[arg-type]
    assert await tape.execute(Fork(1, "b")) == "b"
    assert [command.step for command in forks] == [1]
    await tape.close()


async def test_playing_a_recording_does_not_change_its_thread(
    store: MemoryCheckpointer, tape: PlayedThread
) -> None:
    before = store.cursor("t")
    await all_events(tape, (await tape.snapshot()).last_event)
    await tape.rewind()
    assert store.cursor("t") == before
    assert [row.info.thread_id for row in store.threads()] == ["t"]
    await tape.close()


async def test_a_tempo_keeps_its_pace_and_a_wait_can_end_early() -> None:
    tempo = Tempo()
    tempo.pace = 8.0
    await asyncio.wait_for(tempo.wait(0.4), 5)
    tempo.held = True
    looks = Looks()
    waiting = asyncio.create_task(tempo.wait(0.0, looks))
    await looks.several.wait()
    assert not waiting.done()
    tempo.held = False
    await asyncio.wait_for(waiting, 5)
    await asyncio.wait_for(tempo.wait(3600, lambda: True), 5)
