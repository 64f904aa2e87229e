"""Releasing a request."""

from __future__ import annotations

from hitl_tui.engine.commands import Unclaim
from tests.verbs.flows import ASKED, ASKING, claimed_by_ann
from tests.verbs.hosts import Case, each_host

PLACES = ("plain", "subcommand")

test_each_host = each_host(
    Case("the only one", "unclaim", ASKING, claimed_by_ann, (Unclaim(ASKED, "ann"),), only=PLACES),
    Case("by its id", "unclaim", ASKING, claimed_by_ann, (Unclaim(ASKED, "ann"),), {"request": ASKED},
         only=PLACES),
)  # fmt: skip
