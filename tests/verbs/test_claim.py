"""Claiming a request, releasing it, and taking it over."""

from __future__ import annotations

from hitl_tui.engine.commands import Claim, Unclaim
from tests.verbs.flows import ASKED, ASKING, claimed, claimed_by_ann, stopped
from tests.verbs.hosts import Case, each_host

HERE, LASTING = ("screen", "plain"), ("plain", "subcommand")

test_each_host = each_host(
    Case("of nobody", "claim", ASKING, stopped, (Claim(ASKED, "ann"),), only=HERE, keys=("d",)),
    Case("that outlives the process", "claim", ASKING, stopped, (Claim(ASKED, "ann", lasts=True),),
         only=("subcommand",)),
    Case("for a time with a reason", "claim", ASKING, stopped,
         (Claim(ASKED, "ann", 120, lasts=True, note="mine"),),
         {"request": ASKED, "for": "2h", "note": "mine"}, only=LASTING),
    Case("taken over by name", "claim", ASKING, claimed,
         (Claim(ASKED, "ann", 120, lasts=True, take_over="bob", note="ill"),),
         {"take_over": "bob", "for": "2h", "note": "ill"}, only=LASTING),
    Case("taken over after a question", "claim", ASKING, claimed, (Claim(ASKED, "ann", take_over="bob"),),
         choice="take", only=HERE, keys=("d",)),
    Case("released by the same key", "claim", ASKING, claimed_by_ann, (Unclaim(ASKED, "ann"),),
         only=HERE, keys=("d",)),
    Case("prolonged", "claim", ASKING, claimed_by_ann, (Claim(ASKED, "ann", lasts=True),),
         only=("subcommand",)),
)  # fmt: skip
