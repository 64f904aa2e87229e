"""The fold: what a screen shows is a function of snapshot and events, however they arrive."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hitl_tui.drivers.protocol import Stamped
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log.outcomes import BranchOutcome
from hitl_tui.view.run_view import STREAM_TAIL, RunView, add_older, fold, is_gap, open_view
from tests.support import tape as tapes
from tests.support.spec import spec
from tests.support.tape import Tape

pytestmark = spec("10")

TAPES = (
    tapes.advisor_tape,
    tapes.private_tape,
    tapes.hostile_tape,
    tapes.failed_tape,
    tapes.finished_tape,
)
SHARED = ("progress", "values", "checkpoints", "head_updates", "ledger", "error", "last_event", "parent")


def played(tape: Tape) -> RunView:
    return fold(open_view(tape.begin), tape.events)


@pytest.mark.parametrize("make", TAPES)
def test_folding_all_events_shows_what_a_later_snapshot_shows(make: Callable[[], Tape]) -> None:
    tape = make()
    live, reopened = played(tape), open_view(tape.end)
    for name in SHARED:
        assert getattr(live, name) == getattr(reopened, name), name


@given(st.sampled_from(TAPES), st.lists(st.integers(min_value=0, max_value=40)))
def test_batches_may_be_cut_anywhere(make: Callable[[], Tape], cuts: list[int]) -> None:
    tape = make()
    view = open_view(tape.begin)
    for start, end in zip((0, *sorted(cuts)), (*sorted(cuts), len(tape.events)), strict=True):
        view = fold(view, tape.events[start:end])
    assert view == played(tape)


@given(st.sampled_from(TAPES), st.lists(st.booleans(), max_size=12))
def test_of_quick_steps_a_batch_shows_what_they_show_one_by_one(
    make: Callable[[], Tape], fast: list[bool]
) -> None:
    tape = make()
    begins = [stamped.event for stamped in tape.events if isinstance(stamped.event, ev.NodeStarted)]
    steps = [stamped.event for stamped in tape.events if isinstance(stamped.event, ev.StepCommitted)]
    order = [(begins if begin else steps)[n % 2] for n, begin in enumerate(fast)]
    view = slow = open_view(tape.begin)
    events = [Stamped(view.last_event + n, event) for n, event in enumerate(order, 1)]
    for stamped in events:
        slow = fold(slow, [stamped])
    assert fold(view, events) == slow


def test_an_event_that_comes_twice_counts_once() -> None:
    tape = tapes.advisor_tape()
    view = played(tape)
    assert fold(view, tape.events) is view


def test_a_gap_in_the_numbers_asks_for_a_snapshot() -> None:
    tape = tapes.advisor_tape()
    view = open_view(tape.begin)
    assert not is_gap(view, ())
    assert not is_gap(view, tape.events)
    assert is_gap(view, tape.events[1:])


def test_while_a_node_runs_its_text_time_and_use_are_shown() -> None:
    tape = tapes.advisor_tape()
    at = next(n for n, one in enumerate(tape.events) if isinstance(one.event, ev.ModelCalled))
    view = fold(open_view(tape.begin), tape.events[: at + 1])
    assert view.running_node == "worker"
    assert view.running_since == tapes.T0
    assert view.stream.text == tapes.DRAFT_1
    assert view.stream.length == len(tapes.DRAFT_1)
    assert view.stream.live
    assert view.stream.model == "haiku"
    assert view.stream.tokens_in == 180
    after = fold(view, tape.events[at + 1 : at + 2])
    assert after.running_node is None
    assert not after.stream.live
    assert after.stream.duration == 2_300_000


def test_a_retry_is_shown_until_the_next_attempt() -> None:
    tape = tapes.failed_tape()
    at = next(n for n, one in enumerate(tape.events) if isinstance(one.event, ev.NodeRetrying))
    view = fold(open_view(tape.begin), tape.events[: at + 1])
    assert view.retry is not None
    assert view.retry.max_attempts == 2
    assert fold(view, tape.events[at + 1 : at + 2]).retry is None
    failed = played(tape)
    assert failed.error is not None
    assert failed.running_node is None


def test_forks_and_dropped_attempts_are_kept() -> None:
    view = open_view(tapes.advisor_tape().end)
    first = view.last_event + 1
    view = fold(
        view,
        [
            Stamped(first, ev.ThreadForked("b", 2)),
            Stamped(first + 1, ev.AttemptDropped("worker", 1, "cancelled")),
        ],
    )
    assert view.forks == (("b", 2),)
    assert view.dropped == "worker, attempt 1: cancelled"


def test_two_agents_of_a_node_are_separate_in_the_stream() -> None:
    texts = [("a", "one"), ("b", "two")]
    events = [Stamped(n, ev.TextStreamed("node", agent, text)) for n, (agent, text) in enumerate(texts, 1)]
    assert fold(open_view(tapes.advisor_tape().begin), events).stream.text == "one\ntwo"


def test_a_stream_keeps_its_tail() -> None:
    events = [Stamped(n, ev.TextStreamed("node", "", f"{n:05}" * 200)) for n in range(1, 201)]
    stream = fold(open_view(tapes.advisor_tape().begin), events).stream
    assert len(stream.text) == STREAM_TAIL
    assert stream.length == 200_000
    assert stream.text.endswith("00200")


def test_older_pages_go_in_front_and_stay() -> None:
    tape = tapes.advisor_tape()
    whole = open_view(tape.end)
    newest = replace(whole, checkpoints=whole.checkpoints[3:])
    assert newest.checkpoint(1) is None
    filled = add_older(newest, reversed(whole.checkpoints[:4]))
    assert filled == whole
    step = filled.checkpoint(1)
    assert step is not None
    assert step.node == "worker"


def test_a_long_history_keeps_its_newest_steps() -> None:
    tape = tapes.advisor_tape()
    view = open_view(tape.end)
    point = view.checkpoints[-1]
    branches = (BranchOutcome("scan[0]", "scan", 0, "failed"),)
    points = tuple(
        msgspec.structs.replace(point, step=step, branches=branches if step % 400 == 0 else ())
        for step in range(21_000)
    )
    steps = points[20_000:]
    view = add_older(replace(view, checkpoints=points[19_999:20_000]), points[:19_999])
    events = [
        Stamped(
            view.last_event + n, ev.StepCommitted(step, ev.KnownOutcome(view.head_updates, view.progress))
        )
        for n, step in enumerate(steps, 1)
    ]
    for at in range(0, 1_000, 30):
        view = fold(view, events[at : at + 30])
    assert view.checkpoints[-1].step == 20_999
    assert len(view.checkpoints) == 20_000
    assert [branched.step for branched in view.branched] == list(range(1_200, 21_000, 400))
