"""The status line: in words, what is going on and whose turn it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hitl_tui import Agent, MemoryCheckpointer, ScriptedModel, debate_workflow
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.log.requests import Vote
from hitl_tui.view.glyphs import ASCII
from hitl_tui.view.run_view import RunView, fold, open_view
from hitl_tui.view.status import raised_limit, retry_words, standing_line, status
from tests.support import tape as tapes
from tests.support.spec import spec

pytestmark = spec("9")


def played(tape: tapes.Tape) -> RunView:
    return fold(open_view(tape.begin), tape.events)


@pytest.mark.parametrize(
    ("tape", "changes", "word", "turn"),
    [
        pytest.param(
            tapes.advisor_tape(),
            {},
            "WAITING",
            "Approve this draft? — your turn, press d",
            id="a verdict waits",
        ),
        pytest.param(
            tapes.advisor_tape(),
            {"status": "pending", "pending": (), "position": "node:worker", "next_node": "worker"},
            "READY",
            "worker is next — press s to step or c to continue",
            id="ready to begin",
        ),
        pytest.param(
            tapes.advisor_tape(),
            {"status": "pending", "pending": (), "head": -1},
            "READY",
            "needs its input",
            id="without input",
        ),
        pytest.param(
            tapes.advisor_tape(),
            {"reason": "paused", "pending": (), "next_node": None},
            "PAUSED",
            "next: choosing the route — press s to step or c to continue",
            id="paused before a route",
        ),
        pytest.param(
            tapes.advisor_tape(),
            {"reason": "limit", "pending": (), "limits": Limits(max_tokens=1_000)},
            "WAITING",
            "limit reached: 1,212 of 1,000 tokens",
            id="stopped by a limit of tokens",
        ),
        pytest.param(
            tapes.advisor_tape(),
            {"pending": (tapes.verdict_request(breakpoint=True),)},
            "WAITING",
            "stopped after advisor — press s to step or c to continue",
            id="a breakpoint",
        ),
        pytest.param(
            tapes.advisor_tape(),
            {
                "pending": (
                    tapes.verdict_request(
                        reviewers=("ann", "bob"), quorum=2, votes=(Vote("ann", "a", 0),), deadline=tapes.T0
                    ),
                )
            },
            "WAITING",
            "Approve this draft? — waits for bob, 1 of 2 votes, expired",
            id="a quorum past its deadline",
        ),
        pytest.param(
            tapes.failed_tape(),
            {},
            "FAILED",
            "advisor — press s to try again, e to edit, f to fork",
            id="a node failed",
        ),
        pytest.param(
            tapes.advisor_tape(), {"status": "failed", "reason": "deadline", "pending": ()}, "FAILED",
            "nobody decided before the deadline", id="the deadline passed",
        ),
        pytest.param(
            tapes.finished_tape(), {}, "DONE", "reached the end — f forks from any step", id="completed"
        ),
        pytest.param(
            tapes.finished_tape(), {"reason": "termination"}, "DONE",
            "ended by its stop condition — f forks from any step",
            id="terminated",
        ),
        pytest.param(
            tapes.finished_tape(), {"status": "cancelled", "reason": "user"}, "CANCELLED",
            "ended by a person", id="cancelled",
        ),
    ],
)  # fmt: skip
def test_the_status_says_in_words(tape: tapes.Tape, changes: dict[str, Any], word: str, turn: str) -> None:
    view = played(tape)
    view = replace(view, progress=msgspec.structs.replace(view.progress, **changes))
    line = status(view, tapes.T0 + 60 * tapes.SECOND)
    assert (line.word, line.turn) == (word, turn)


def test_where_nothing_can_be_decided_the_status_says_why() -> None:
    keys = {"unable": "the store is read-only: its file or its directory can't be written"}
    line = status(played(tapes.advisor_tape()), tapes.T0, keys=keys)
    assert line.turn == "Approve this draft? — the store is read-only"


def test_a_running_node_is_timed() -> None:
    tape = tapes.advisor_tape()
    view = fold(open_view(tape.begin), tape.events[:4])
    line = status(view, tapes.T0 + 3_200_000, glyphs=ASCII)
    assert (line.glyph, line.word, line.turn) == (">", "RUNNING", "worker · 3.2 s")
    assert line.figures == "step 0 · 3.2 s"
    assert status(view, tapes.T0, pausing=True).turn.endswith("— pausing after worker")
    assert status(view, tapes.T0, pausing=True).brief == "pausing after worker"


def test_a_retry_says_why() -> None:
    tape = tapes.failed_tape()
    at = next(n for n, one in enumerate(tape.events) if type(one.event).__name__ == "NodeRetrying")
    line = status(fold(open_view(tape.begin), tape.events[: at + 1]), tapes.T0)
    assert line.turn == "advisor: retry 2 of 2 in 0.5 s: ModelFailed: rate limit"


@pytest.mark.parametrize(
    ("attempt", "most", "wait", "words"),
    [
        (1, 4, 8.0, "retry 2 of 4 in 8 s"),
        (2, 4, 0.5, "retry 3 of 4 in 0.5 s"),
    ],
)
def test_a_retry_shows_its_number_the_total_and_the_wait(
    attempt: int, most: int, wait: float, words: str
) -> None:
    assert retry_words(attempt, most, wait) == words


@pytest.mark.parametrize(
    ("tape", "changes", "brief"),
    [
        (tapes.advisor_tape(), {"status": "pending", "pending": ()}, "next: choosing the route — press s"),
        (tapes.failed_tape(), {}, "advisor"),
        (tapes.advisor_tape(), {}, "Approve this draft? — your turn, press d"),
    ],
    ids=["ready", "failed", "waiting"],
)
def test_where_there_is_little_room_the_status_names_one_key_or_the_node(
    tape: tapes.Tape, changes: dict[str, Any], brief: str
) -> None:
    view = played(tape)
    view = replace(view, progress=msgspec.structs.replace(view.progress, **changes))
    assert status(view, tapes.T0).brief == brief


def test_durations_below_a_tenth_of_a_second_are_left_out() -> None:
    view = played(tapes.finished_tape())
    view = replace(view, progress=msgspec.structs.replace(view.progress, active=99_000))
    assert status(view, tapes.T0).elapsed == ""


def test_a_run_that_ended_by_its_termination_condition_says_by_which() -> None:
    runner = debate_workflow(
        {name: Agent(name, ScriptedModel(["x"] * 4, pace=0)) for name in "ab"},
        max_rounds=1,
        checkpointer=MemoryCheckpointer(),
    )
    runner.invoke({"task": "t"}, thread_id="t")
    store = runner.store
    assert store is not None
    view = played(tapes.finished_tape())
    progress = msgspec.structs.replace(view.progress, reason="termination")
    view = replace(view, progress=progress, ledger=tuple(store.ledger("t")))
    assert status(view, tapes.T0).turn == "ended by its stop condition: 2 turns — f forks from any step"


def test_a_failure_in_plain_text_mode_says_what_to_edit() -> None:
    line = standing_line(played(tapes.failed_tape("advisor_feedback")).progress)
    assert line == "Failed at step 1: KeyError: 'verdict' Edit advisor_feedback to fix it."


@pytest.mark.parametrize(
    ("limits", "used", "raised"),
    [
        ({"max_iterations": 12}, {"iteration": 12}, "max_iterations=24"),
        ({"max_tokens": 100}, {"tokens_in": 90, "tokens_out": 30}, "max_tokens=240"),
        ({"max_seconds": 0.5}, {"active": 700_000}, "max_seconds=2"),
        ({"max_cost_usd": 0.01}, {"cost": 0.0123}, "max_cost_usd=0.0246"),
    ],
)
def test_the_limit_that_was_reached_is_named_with_a_higher_value(
    limits: dict[str, Any], used: dict[str, Any], raised: str
) -> None:
    progress = played(tapes.advisor_tape()).progress
    none = {"tokens_in": 0, "tokens_out": 0, "active": 0, "cost": 0.0}
    assert raised_limit(replace(progress, limits=Limits(**limits), **{**none, **used})) == raised
