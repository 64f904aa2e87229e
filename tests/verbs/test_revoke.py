"""Revoking an allowance."""

from __future__ import annotations

from hitl_tui.engine.commands import Revoke
from tests.verbs.flows import ASKING, allowing
from tests.verbs.hosts import Case, each_host

test_each_host = each_host(
    Case("with a reason", "revoke", ASKING, allowing, (Revoke("a2", "ann", "too wide"),),
         {"allowance": "a2", "note": "too wide"}, choice="a2", selected=("allowance",)),
    Case("without one", "revoke", ASKING, allowing, (Revoke("a2", "ann"),),
         {"allowance": "a2"}, choice="a2", selected=("allowance",)),
)  # fmt: skip
