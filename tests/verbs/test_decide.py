"""Deciding several requests at once."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hitl_tui.drivers.policies import read_policy
from hitl_tui.engine.commands import Answer
from tests.support.commands import App
from tests.verbs.flows import ASKED, ASKING, stopped
from tests.verbs.hosts import Case, each_host

RULES = "[[rule]]\nname = 'memos'\nwhen = \"graph == 'memo'\"\nanswer = 'approve'\nnote = 'as agreed'\n"


def with_rules(app: App) -> None:
    """Write a policy beside the thread `r`."""
    stopped(app)
    Path("policy.toml").write_text(RULES)


def by_rules(directory: Path) -> Answer:
    """What the policy sends."""
    file = directory / "policy.toml"
    file.write_text(RULES)
    policy = read_policy(file)
    (rule,) = policy.rules
    value = {"choice": "approve", "text": rule.note}
    return Answer(ASKED, value, 1, "ann", policy.note(rule), policy=policy.named(rule))


with TemporaryDirectory() as directory:
    BY_RULES = by_rules(Path(directory))

QUEUE: dict[str, Any] = {
    "keys": ("Q",),
    "ready": "1 WAITS FOR YOU",
    "selected": ("threads", "answer", "filter"),
}
"""How the screen comes to the queue, where the thread is selected."""

test_each_host = each_host(
    Case("one answer", "decide", ASKING, stopped, (Answer(ASKED, "approve", 1, "ann"),),
         {"threads": "r", "answer": "approve"}, listed=0, **QUEUE),
    Case("with every field", "decide", ASKING, stopped,
         (Answer(ASKED, {"choice": "revise", "text": "shorter"}, 1, "ann", "shorter"),),
         {"threads": "r", "filter": "graph:memo", "answer": "revise", "note": "shorter"}, listed=1, **QUEUE),
    Case("by rules", "decide", ASKING, with_rules, (BY_RULES,), {"threads": "r", "policy": "policy.toml"},
         choice="list", key="p", listed=0, **QUEUE),
)  # fmt: skip
