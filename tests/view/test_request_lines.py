"""The terms of a request, in the same words on a shell, in lines and in a status line."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from hitl_tui.engine.log.requests import Request, Vote
from hitl_tui.view.card import ReviewCard, review_card
from hitl_tui.view.request_lines import card_lines, terms
from hitl_tui.view.run_view import RunView, fold, open_view
from hitl_tui.view.status import reason_words, standing_line, status
from tests.support import tape as tapes
from tests.support.spec import spec

pytestmark = spec("11")
MINUTE = 60_000_000


def played(**changes: object) -> RunView:
    tape = tapes.advisor_tape()
    view = fold(open_view(tape.begin), tape.events)
    return replace(view, progress=msgspec.structs.replace(view.progress, **changes))


def card_of(request: Request) -> ReviewCard:
    return review_card(request, played(pending=(request,)), {})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"reviewers": ("ann", "bob")}, "only ann, bob may answer", id="reviewers"),
        pytest.param({"quorum": 2, "votes": (Vote("ann", "accept", 0),)}, "1 of 2 votes so far", id="votes"),
        pytest.param({"signed": True}, "an answer must be signed", id="signed"),
        pytest.param({"deadline": tapes.T0 + 5 * MINUTE}, "expires in 5m 00s", id="deadline"),
        pytest.param({"deadline": tapes.T0 - 1}, "expired", id="passed"),
        pytest.param({"risk": "high"}, "high risk: you must confirm it", id="risk"),
    ],
)
def test_terms_are_the_same_in_plain_text_mode_and_on_the_command_line(
    fields: dict[str, object], words: str
) -> None:
    card = card_of(tapes.verdict_request(**fields))
    assert words in [term for term, _ in terms(card, tapes.T0)]
    assert any(line.lower().startswith(words) for line in card_lines(card, tapes.T0))


def test_a_status_line_has_votes_and_deadline_as_in_the_terms() -> None:
    request = tapes.verdict_request(quorum=2, votes=(Vote("ann", "accept", 0),), deadline=tapes.T0 - 1)
    text = " ".join(term for term, _ in terms(card_of(request), tapes.T0))
    turn = status(played(pending=(request,)), tapes.T0).turn
    for words in ("1 of 2 votes", "expired"):
        assert words in text
        assert words in turn


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "cancelled", "reason": "user"}, "ended by a person"),
        ({"status": "failed", "reason": "dead_end", "error": None}, "no edge leads further"),
        ({"status": "failed", "reason": "deadline", "error": None}, "nobody decided before the deadline"),
        ({"reason": "limit"}, "limit reached: "),
        ({"status": "completed", "reason": "termination"}, "ended by its stop condition"),
        ({"status": "pending", "next_node": "END"}, "the end is next"),
    ],
)
def test_a_sentence_and_a_status_line_give_the_same_reason(changes: dict[str, object], words: str) -> None:
    view = played(**{"pending": (), **changes})
    assert reason_words(view.progress).startswith(words)
    assert words in standing_line(view.progress)
    assert words in status(view, tapes.T0).turn
