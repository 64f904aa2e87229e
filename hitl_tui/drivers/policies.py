"""Policies: a TOML file of rules that answer requests, each if its condition is true.

A condition is an expression as for breakpoints, over the public channels of the thread and facts of its
request. A fact has precedence over a channel of its name, which an agent may have written: `state.risk` is
the channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from hitl_tui.drivers.expressions import (
    Expression,
    ExpressionInvalid,
    check_expression,
    check_syntax,
    state_names,
)
from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.state.canonical import item_hash
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.approval_formats import actions_of
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.loading.toml import TomlFile, read_toml
from hitl_tui.suggest import did_you_mean

FACTS: Final = (
    "thread", "graph", "node", "step", "kind", "title", "risk", "subject", "recommended", "reviewers",
    "quorum", "votes", "waits", "deadline", "payload", "tools", "state",
)  # fmt: skip
"""What a condition may name besides channels."""
_RISKS: Final = ("low", "high")
_MOST = 1_000
_SECOND = 1_000_000


class Rule(msgspec.Struct, frozen=True):
    """One rule: if its condition is true, the request gets its answer.

    Args:
        number: its position in the file, from 1.
        name: its name, "" to use its number.
        when: its condition.
        answer: the id of an answer; "approve" is whatever approves.
        note: the note for the ledger.
        risk: "high" lets it also answer requests of high risk.
        stop_at_first_difference: whether nothing more is answered once its answer would differ from the
            recommended one.
    """

    number: int
    when: str
    answer: str
    name: str = ""
    note: str | None = None
    risk: Literal["low", "high"] = "low"
    stop_at_first_difference: bool = False

    @property
    def label(self) -> str:
        """The rule's name in messages."""
        return f"{self.name!r}" if self.name else str(self.number)

    @property
    def digest(self) -> str:
        """The hash of everything it says."""
        return f"sha256:{item_hash(msgspec.to_builtins(self)).hex()}"


class Policy(msgspec.Struct, frozen=True):
    """A file of rules; the first one whose condition is true answers.

    Args:
        name: the file's.
        digest: the hash of its text.
    """

    name: str
    rules: tuple[Rule, ...]
    digest: str

    def named(self, rule: Rule) -> dict[str, str]:
        """Return what the ledger keeps about an answer of a rule."""
        return {
            "policy": self.name,
            "policy_hash": self.digest,
            "rule": rule.name or str(rule.number),
            "rule_hash": rule.digest,
        }

    def note(self, rule: Rule) -> str:
        """Return the note for the ledger about an answer of a rule."""
        by = f"rule {rule.label} of {self.name}"
        return f"{rule.note} ({by})" if rule.note else by


class Matched(NamedTuple):
    """The rule that answers a request, or why none does."""

    rule: Rule | None
    why: str = ""


def read_policy(path: Path) -> Policy:
    """Read the rules of a file.

    Raises:
        UsageError: it can't be read; names each problem with file, line and key.
    """
    file = read_toml(path)
    problems: list[str] = []
    tables = file.values.get("rule")
    for key in file.values.keys() - {"rule", "stop_at_first_difference"}:
        hint = did_you_mean(key, ("rule", "stop_at_first_difference"))
        problems.append(f"{file.place(key)}: unknown key {key!r}; {hint or 'rules stand below [[rule]]'}")
    stops = file.values.get("stop_at_first_difference", False)
    if not isinstance(stops, bool):
        problems.append(f"{file.place('stop_at_first_difference')}: it must be true or false")
    if not isinstance(tables, list) or not tables or len(tables) > _MOST:
        problems.append(f"{file.path}: a policy has 1 to {_MOST:,} rules, each below [[rule]]")
        tables = []
    rules = [_rule(file, number, table, stops, problems) for number, table in enumerate(tables, 1)]
    if problems:
        raise UsageError("\n".join(problems), "docs/reviewing.md explains policies")
    digest = sha256(file.text.encode()).hexdigest()
    return Policy(path.name, tuple(rule for rule in rules if rule), f"sha256:{digest}")


def _rule(file: TomlFile, number: int, table: Any, stops: object, problems: list[str]) -> Rule | None:
    """Read a rule of the file; None, with its problems noted, if it is invalid."""
    before = len(problems)

    def problem(key: str, why: str) -> None:
        place = file.place("rule", number - 1, key) if key else file.place("rule", number - 1)
        problems.append(f"{place}: rule {number}{f', {key}' if key else ''}: {why}")

    if not isinstance(table, Mapping):
        problem("", "it is no table")
        return None
    known = [field for field in Rule.__struct_fields__ if field != "number"]
    for key in table.keys() - set(known):
        problem(key, f"unknown key; {did_you_mean(key, known) or ', '.join(known)}")
    for key in ("when", "answer", "name", "note"):
        text = table.get(key)
        if text is None and key in ("when", "answer"):
            problem("", f"{key} is missing")
        elif text is not None and (not isinstance(text, str) or not text.strip()):
            problem(key, "it must be text")
    if table.get("risk", "low") not in _RISKS:
        problem("risk", 'it must be "low" or "high"')
    if not isinstance(table.get("stop_at_first_difference", False), bool):
        problem("stop_at_first_difference", "it must be true or false")
    if isinstance(when := table.get("when"), str) and when.strip():
        try:
            check_syntax(when)
        except ExpressionInvalid as error:
            problem("when", error.message)
    if len(problems) > before:
        return None
    return Rule(number, **{"stop_at_first_difference": bool(stops), **table})


def match(policy: Policy, snapshot: Snapshot, request: Request, now: int) -> Matched:
    """Return the first rule whose condition is true for a request.

    A rule that names a private channel, or one that the graph lacks, is skipped. An undefined condition
    stops the search, as the rule might be the right one. `now` is in microseconds since the epoch.
    """
    facts = _facts(snapshot, request, now)
    channels = {
        channel.name: thaw(snapshot.values.get(channel.name))
        for channel in snapshot.graph.channels
        if channel.visibility == "public" and snapshot.values.get(channel.name) is not PRIVATE
    }
    values = {**channels, **facts, "state": channels}
    passed_over = ""
    for rule in policy.rules:
        try:
            check_expression(rule.when, snapshot.graph.channels, FACTS)
            if missing := state_names(rule.when) - channels.keys():
                raise ExpressionInvalid(rule.when, f"there is no channel {min(missing)!r}")
        except ExpressionInvalid as error:
            passed_over = passed_over or f"; rule {rule.label} is passed over: {error.why}"
            continue
        try:
            holds = Expression(rule.when).holds(values)
        except HitlError as error:
            return Matched(None, f"rule {rule.label} can't be evaluated: {error.message}")
        if holds and request.risk == "high" and rule.risk != "high":
            return Matched(None, f'high risk, and rule {rule.label} does not say risk = "high"')
        if holds:
            return Matched(rule)
    return Matched(None, f"no rule holds{passed_over}")


def differs(rule: Rule, answer: Any, request: Request) -> bool:
    """Whether a rule stops here because its answer differs from the recommended one."""
    chosen = answer["choice"] if isinstance(answer, Mapping) and "choice" in answer else answer
    recommends = request.recommended is not None and chosen != request.recommended
    return rule.stop_at_first_difference and recommends


def _facts(snapshot: Snapshot, request: Request, now: int) -> dict[str, Any]:
    actions: Sequence[Any] = actions_of(request.shape, thaw(request.payload))
    return {
        "thread": snapshot.thread_id,
        "graph": snapshot.graph.name,
        "node": request.node,
        "step": request.step,
        "kind": request.kind,
        "title": request.title,
        "risk": "high" if request.risk == "high" else "low",
        "subject": request.subject,
        "recommended": request.recommended,
        "reviewers": list(request.reviewers),
        "quorum": request.quorum,
        "votes": [{"actor": vote.actor, "answer": thaw(vote.answer)} for vote in request.votes],
        "waits": (now - request.asked_at) / _SECOND,
        "deadline": None if request.deadline is None else (request.deadline - now) / _SECOND,
        "payload": thaw(request.payload),
        "tools": [{"name": action.name, "args": action.args} for action in actions],
    }
