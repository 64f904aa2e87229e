"""Handing a request over."""

from __future__ import annotations

from hitl_tui.engine.commands import Claim, HandOver
from tests.verbs.flows import ASKED, ASKING, claimed, stopped
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case("with a note", "hand-over", ASKING, stopped,
         (HandOver(ASKED, 1, "cleo", "ann", "you know them"),),
         {"name": "@cleo", "note": "you know them"}, keys=("d",)),
    Case("without one", "hand-over", ASKING, stopped, (HandOver(ASKED, 1, "cleo", "ann"),),
         {"name": "cleo"}, keys=("d",)),
    Case("of somebody else", "hand-over", ASKING, claimed,
         (Claim(ASKED, "ann", take_over="bob", note="ill"), HandOver(ASKED, 1, "cleo", "ann", "ill")),
         {"name": "cleo", "take_over": "bob", "note": "ill"}, keys=("d",)),
)  # fmt: skip
