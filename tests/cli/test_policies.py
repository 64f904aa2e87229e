"""`decide --policy`: rules that answer requests, previewed first and named in the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hitl_tui.drivers.policies import read_policy
from hitl_tui.errors import UsageError
from tests.cli.test_batch_decisions import ALL, twelve, waiting
from tests.support.commands import App

__all__ = ["twelve"]

RULES = """
[[rule]]
name = "good drafts"
when = "verdict == 'approved' and risk == 'low'"
answer = "approve"
note = "as agreed on Monday"

[[rule]]
when = "graph == 'advisor'"
answer = "accept"
"""


def policy(tmp_path: Path, text: str = RULES) -> str:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    return str(file)


def rows(app: App, code: int, *words: str) -> dict[str, dict[str, Any]]:
    document = app.expect(code, "decide", *words, "--json").document
    return {row["thread"]: row for row in document["decisions"]}


@pytest.mark.slow
def test_a_policy_dry_run_says_what_each_rule_would_answer_and_why_not_the_rest(
    twelve: App, tmp_path: Path
) -> None:
    plans = rows(twelve, 3, "--policy", policy(tmp_path), "--dry-run")
    assert set(plans) == ALL
    would = {name: (row["answer"], row["rule"]) for name, row in plans.items() if row["outcome"] == "would"}
    assert would
    assert all(name.startswith("blog-") for name in would)
    assert {rule for _, rule in would.values()} == {"good drafts", "2"}
    left = {name: row["why"] for name, row in plans.items() if row["outcome"] == "left"}
    assert all(left.values())
    assert "no rule holds; rule 'good drafts' is passed over: there is no channel" in left["memo-42"]
    assert waiting(twelve) == ALL


@pytest.mark.slow
def test_a_policy_decides_and_the_ledger_names_policy_rule_and_hash(twelve: App, tmp_path: Path) -> None:
    file = policy(tmp_path)
    done = rows(twelve, 3, "--policy", file, "--yes", "--as", "ann")
    rules = read_policy(Path(file))
    decided = [row for row in done.values() if row["outcome"] == "decided" and row["rule"] == "good drafts"]
    assert decided
    (entry,) = [
        entry
        for entry in twelve.expect(0, "log", decided[0]["thread"], "--json").document["decisions"]
        if entry["decision"] == "answer" and entry["actor"] == "ann"
    ]
    assert entry["note"] == "as agreed on Monday (rule 'good drafts' of policy.toml)"
    assert entry["data"]["policy"] == {
        "policy": "policy.toml",
        "policy_hash": rules.digest,
        "rule": "good drafts",
        "rule_hash": rules.rules[0].digest,
    }
    lines = twelve.expect(0, "log", decided[0]["thread"]).out
    assert "rule 'good drafts' of policy.toml" in lines
    assert rules.rules[0].digest in lines
    twelve.expect(0, "verify", decided[0]["thread"], "--strict")


@pytest.mark.slow
def test_high_risk_only_where_the_rule_says_so(twelve: App, tmp_path: Path) -> None:
    rule = "[[rule]]\nwhen = \"thread == 'press-q3'\"\nanswer = 'approve'\n"
    (left,) = rows(twelve, 3, "press-q3", "--policy", policy(tmp_path, rule), "--dry-run").values()
    assert left["why"] == 'high risk, and rule 1 does not say risk = "high"'
    (would,) = rows(
        twelve, 0, "press-q3", "--policy", policy(tmp_path, rule + "risk = 'high'"), "--dry-run"
    ).values()
    assert (would["outcome"], would["rule"]) == ("would", "1")


@pytest.mark.slow
def test_stops_at_the_first_answer_that_is_not_what_is_recommended(twelve: App, tmp_path: Path) -> None:
    order = ("--filter", "graph:advisor", "--dry-run", "--policy")
    rule = "[[rule]]\nwhen = \"graph == 'advisor'\"\nanswer = 'approve'\n"
    alone = rows(twelve, 0, *order, policy(tmp_path, rule))
    assert {row["outcome"] for row in alone.values()} == {"would"}
    stopped = rows(twelve, 3, *order, policy(tmp_path, f"stop_at_first_difference = true\n{rule}"))
    first, *rest = stopped.values()
    assert "rule 1 would answer" in first["why"]
    assert "recommended is accept" in first["why"]
    assert len(rest) == len(alone) - 1
    assert all("nothing after it is answered" in row["why"] for row in rest)


@pytest.mark.slow
def test_an_answer_with_the_same_effect_as_the_recommended_one_is_no_difference(
    twelve: App, tmp_path: Path
) -> None:
    rule = (
        "stop_at_first_difference = true\n[[rule]]\n"
        "when = \"verdict == 'approved' and risk == 'low'\"\nanswer = 'approve'\n"
    )
    plans = rows(twelve, 3, "--filter", "graph:advisor", "--dry-run", "--policy", policy(tmp_path, rule))
    would = {name for name, row in plans.items() if row["outcome"] == "would"}
    assert would == {"blog-joins", "blog-closures", "blog-windows"}
    assert {row["answer"] for row in plans.values() if row["outcome"] == "would"} == {"approve"}
    assert plans["blog-indexes"]["why"] == "no rule holds"


@pytest.mark.slow
def test_a_fact_takes_precedence_over_a_channel_of_that_name(twelve: App, tmp_path: Path) -> None:
    when = "state.latest_draft == latest_draft and len(title) > 0 and votes == []"
    rule = f"[[rule]]\nwhen = \"{when}\"\nanswer = 'accept'\n"
    plans = rows(twelve, 3, "--policy", policy(tmp_path, rule), "--dry-run")
    would = {name for name, row in plans.items() if row["outcome"] == "would"}
    assert would == {name for name in ALL if name.startswith("blog-")}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "1 to 1,000 rules"),
        ("[[rule]]\nanswer = 'x'\n", "policy.toml:1: rule 1: when is missing"),
        ("[[rule]]\nwhen = 'a'\nanswer = 3\n", "policy.toml:3: rule 1, answer: it must be text"),
        ("[[rule]]\nwhen = 'a ='\nanswer = 'x'\n", "policy.toml:2: rule 1, when: at column 3"),
        ("[[rule]]\nwhen = 'open(1)'\nanswer = 'x'\n", "there is not a function 'open'"),
        ("[[rule]]\nwhen = 'a.__class__()'\nanswer = 'x'\n", "only plain functions"),
        ("[[rule]]\nwhen = 'a'\nanswr = 'x'\n", "policy.toml:3: rule 1, answr: unknown key; did you mean"),
        (
            "[[rule]]\nwhen = 'a'\nanswer = 'x'\nrisk = 'normal'\n",
            'policy.toml:4: rule 1, risk: it must be "low"',
        ),
        ("stop_at_first_difference = 1\n[[rule]]\nwhen='a'\nanswer='x'\n", "policy.toml:1: it must be true"),
        ("rules = 1\n", "policy.toml:1: unknown key 'rules'"),
        ("[[rule\n", "must be TOML"),
    ],
)
def test_a_file_that_can_not_be_read_names_its_places(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_policy(Path(policy(tmp_path, text)))
    assert says in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.slow
def test_a_rule_that_can_not_be_evaluated_answers_nothing_and_stops_later_rules(
    twelve: App, tmp_path: Path
) -> None:
    broken = "[[rule]]\nwhen = 'title > 3'\nanswer = 'revise'\n"
    plans = rows(twelve, 3, "--policy", policy(tmp_path, broken + RULES), "--dry-run")
    assert {row["outcome"] for row in plans.values()} == {"left"}
    assert "rule 1 can't be evaluated: " in plans["blog-joins"]["why"]


@pytest.mark.slow
def test_an_answer_and_a_policy_exclude_each_other(twelve: App, tmp_path: Path) -> None:
    assert "--answer ID or --policy FILE" in twelve.expect(2, "decide", "blog-joins").err
    both = ("--answer", "approve", "--policy", policy(tmp_path))
    assert "--answer ID or --policy FILE" in twelve.expect(2, "decide", "blog-joins", *both).err
