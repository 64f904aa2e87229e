"""From the words of a command to an answer."""

from __future__ import annotations

import pytest

from hitl_tui import UsageError
from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.view.answers import approving_choice


def asked(*ids: str, recommended: str | None = None) -> Request:
    choices = tuple(Choice(one, one) for one in ids)
    return Request("r1", "choose", "n", "after", 1, "Go?", choices=choices, recommended=recommended)


@pytest.mark.parametrize(
    ("ids", "recommended", "answer"),
    [
        (("stop", "approve", "accept"), "accept", "approve"),
        (("accept", "revise"), None, "accept"),
        (("run", "pass"), "pass", "pass"),
        (("no", "yes"), "no", "yes"),
    ],
)
def test_each_kind_of_request_has_its_approving_choice(
    ids: tuple[str, ...], recommended: str | None, answer: str
) -> None:
    assert approving_choice(asked(*ids, recommended=recommended), "t").id == answer


@pytest.mark.parametrize(
    ("ids", "recommended", "message"),
    [
        (("stop", "ship"), "stop", "no answer that approves; its answers are stop \\(recommended\\), ship"),
        (("run", "pass"), None, "several answers that approve: run, pass"),
        (("run", "pass", "stop"), "stop", "several answers that approve"),
        ((), None, "wants a value, not a choice"),
    ],
)
def test_nothing_is_approved_by_guessing(ids: tuple[str, ...], recommended: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        approving_choice(asked(*ids, recommended=recommended), "t")
