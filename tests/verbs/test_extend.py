"""Raising limits."""

from __future__ import annotations

import pytest

from hitl_tui.engine.commands import ExtendLimits
from tests.verbs.flows import COUNTING, stopped
from tests.verbs.hosts import Case, Hosts, each_host

test_each_host = each_host(
    Case(
        "of nodes",
        "extend",
        COUNTING,
        stopped,
        (ExtendLimits({"max_iterations": 9}, "ann"),),
        {"max_iterations": "9"},
    ),
    Case(
        "of what had none",
        "extend",
        COUNTING,
        stopped,
        (
            ExtendLimits(
                {"max_iterations": 9, "max_cost_usd": 0.5, "on_unknown_price": "stop"}, "ann", "go on"
            ),
        ),
        {"max_iterations": "9", "max_cost_usd": "0.5", "on_unknown_price": "stop", "note": "go on"},
    ),
)


@pytest.mark.parametrize("typed", ["inf", "nan", "-1", "many", "1e999"])
@pytest.mark.parametrize("host", ["plain", "subcommand"])
def test_a_limit_that_is_not_a_number_is_refused(hosts: Hosts, host: str, typed: str) -> None:
    case = Case("", "extend", COUNTING, stopped, (), {"max_iterations": typed}, codes=(2,))
    assert hosts.play(host, case, hosts.prepared(case)) == []


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["inf", "nan"])
def test_on_screen_it_is_asked_for_again_with_the_reason(hosts: Hosts, typed: str) -> None:
    case = Case("", "extend", COUNTING, stopped, (), {"max_iterations": typed}, asked_again="is not a limit")
    assert hosts.play("screen", case, hosts.prepared(case)) == []
