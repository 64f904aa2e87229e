"""Plans many decisions at once: which rows of a queue are decided, how, and why others are not.

Each decision is its own command and passes the same guards as a single one. It carries the hash of the state
that the row was read with: if the thread has moved since, it is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.drivers.policies import Policy, differs, match
from hitl_tui.drivers.protocol import Inbox
from hitl_tui.engine.commands import Answer
from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.engine.thread.interrupts import check_answer
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.view.answers import approving_choice, named_choice
from hitl_tui.view.card import answer_form, choice_answer
from hitl_tui.view.format import count
from hitl_tui.view.queue import Key, QueueRow, left_words
from hitl_tui.view.queue_facts import Planned

APPROVE = "approve"
"""The answer that stands for whatever approves a request, by whichever name."""


class Decider(msgspec.Struct, frozen=True):
    """The person who decides.

    Args:
        actor, account: the name, and the account of the operating system (see `journal.account`).
        signs: whether a key signs their decisions.
        note: their reason, None for none.
    """

    actor: str
    account: str
    signs: bool = False
    note: str | None = None


def planned(
    row: QueueRow,
    wanted: str,
    by: Decider,
    now: int,
    *,
    current: QueueRow | None,
    note: str | None = None,
    high_risk: bool = False,
) -> Planned:
    """Plan an answer to one row.

    Args:
        row: the row as it was marked or read.
        wanted: the id of an answer; "approve" means the one that approves.
        current: the row at its place now, None if there is none.
        note: a reason for this row, instead of the decider's.
        high_risk: whether a rule allows high risk.
    """
    words = by.note if note is None else note
    request = row.request
    plan = Planned(
        source=row.source,
        thread=row.name,
        graph=row.graph,
        request=request.id if request else "",
        step=request.step if request else row.thread.head,
        title=row.title,
        risk=request.risk if request else "normal",
        seen=row.seen,
        note=words,
    )
    if why := _exclusion_reason(row, current, by, now, high_risk=high_risk):
        return replace(plan, why=why)
    assert request is not None
    try:
        choice = _choice(request, wanted, row.name)
        value = choice_answer(choice, words)
        # Whether a key signs is already known, and shown in other words.
        check_answer(
            replace(request, signed=False), value, step=request.step, head=request.step, actor=by.actor,
            account=by.account, signer=None, now=now,
        )  # fmt: skip
    except HitlError as error:
        return replace(plan, why=error.message)
    return replace(plan, outcome="would", answer=value, label=choice.label or choice.id)


def _exclusion_reason(
    row: QueueRow, current: QueueRow | None, by: Decider, now: int, *, high_risk: bool = False
) -> str:
    """Return why a row can't be decided in a batch, whatever the answer; "" if it can."""
    request = row.request
    if request is None or request.breakpoint:
        return "it only stopped; nothing is asked"
    if current is None or current.request is None:
        return "it no longer waits"
    if current.request.id != request.id:
        return "what it is about has changed, so it is asked again: look at it again"
    if current.seen != row.seen:
        return "it has changed since you saw it"
    if request.risk == "high" and not high_risk:
        return "high risk: decide it by itself"
    claim = current.claim(now)
    if claim and claim.actor != by.actor:
        return f"claimed by {claim.actor}, {left_words(claim, now)}"
    if request.signed and not by.signs:
        return "it must be signed, and you have no signing key"
    return "" if request.choices else _asks_for(request)


def _asks_for(request: Request) -> str:
    form = answer_form(request)
    if form:
        return f"it asks for a form with {count(len(form.fields), 'field')}"
    return "it asks for an edit" if request.kind == "edit" else "it asks for a text"


def _choice(request: Request, wanted: str, thread: str) -> Choice:
    """Return the wanted choice; raises `UsageError` if there is none."""
    if wanted == APPROVE:
        try:
            return approving_choice(request, thread)
        except UsageError:
            ids = ", ".join(choice.id for choice in request.choices)
            raise UsageError(f"none of its answers clearly approves ({ids})") from None
    return named_choice(request.choices, wanted)


def plan(
    marked: Iterable[QueueRow], wanted: str, by: Decider, now: int, current: Mapping[Key, QueueRow]
) -> tuple[Planned, ...]:
    """Plan an answer to each row, those that would be decided first.

    Args:
        current: all rows as they are now, by their keys.
    """
    at = {row.place: row for row in current.values()}
    plans = [planned(row, wanted, by, now, current=at.get(row.place)) for row in marked]
    return tuple(sorted(plans, key=lambda plan: not plan.would))


async def plan_by(
    policy: Policy,
    inbox: Inbox,
    marked: Iterable[QueueRow],
    by: Decider,
    now: int,
    *,
    current: Mapping[Key, QueueRow],
) -> tuple[Planned, ...]:
    """Return what the rules of a policy would answer to each row, in their order, and why others are left.

    The rules judge each row as it is now.  Where a rule says so, no row after the first difference from what
    an asker recommends is answered.

    Args:
        current: all rows as they are now, by their keys.
    """
    plans: list[Planned] = []
    stopped = ""
    at = {row.place: row for row in current.values()}
    for listed in marked:
        row = current.get(listed.key, listed)
        request = row.request
        left = planned(row, APPROVE, by, now, current=at.get(row.place), high_risk=True)
        if request is None or request.breakpoint or row.key not in current:
            plans.append(left)
            continue
        async with inbox.hub_of(row.source).borrow(row.name, look=True) as driver:
            matched = match(policy, await driver.snapshot(), request, now)
        rule = matched.rule
        if rule is None or stopped:
            plans.append(replace(left, outcome="left", answer=None, why=stopped or matched.why, label=""))
            continue
        words = rule.note if rule.note is not None else by.note
        plan = planned(row, rule.answer, by, now, current=row, note=words or "", high_risk=True)
        plan = replace(
            plan, rule=rule.name or str(rule.number), note=policy.note(rule), policy=policy.named(rule)
        )
        if (
            plan.would
            and differs(rule, plan.answer, request)
            and not await _same_effect(inbox, plan, request)
        ):
            stopped = f"a rule goes against the recommendation in {row.name}: nothing after it is answered"
            why = f"rule {rule.label} would answer {plan.label}, recommended is {request.recommended}"
            plan = replace(plan, outcome="left", answer=None, why=why, label="")
        plans.append(plan)
    return tuple(sorted(plans, key=lambda plan: not plan.would))


async def _same_effect(inbox: Inbox, plan: Planned, request: Request) -> bool:
    """Whether an answer sets the same values and leads to the same node as the recommended one.

    With several votes only equal answers count together, so there no other answer is the same.
    """
    if request.quorum > 1:
        return False
    effects: list[tuple[str | None, dict[str, Any]]] = []
    try:
        async with inbox.hub_of(plan.source).borrow(plan.thread) as driver:
            for value in (plan.answer, request.recommended):
                would = await driver.preview(Answer(request.id, value, request.step))
                changes = {update.channel: update.after for update in would.updates if update.changed}
                effects.append((would.next_node, changes))
    except HitlError:  # unknown without its graph
        return False
    return effects[0] == effects[1] and effects[0][0] is not None


def answers_of(rows: Sequence[QueueRow]) -> tuple[tuple[str, str, int], ...]:
    """Return the answers that rows allow: id, label, number of rows; those that approve come first."""
    known: dict[str, str] = {}
    times: Counter[str] = Counter()
    for row in rows:
        request = row.request
        if request is None or row.high_risk:
            continue
        for choice in request.choices:
            label = choice.label or choice.id
            # Labels can depend on each thread's state; only the id says the same for all of them.
            known[choice.id] = label if known.get(choice.id, label) == label else choice.id
            times[choice.id] += 1
        try:
            approving = approving_choice(request, row.name) if request.choices else None
        except UsageError:
            approving = None
        if approving is not None and approving.id != APPROVE:
            times[APPROVE] += 1
    known[APPROVE] = APPROVE
    order = sorted(known, key=lambda name: (name != APPROVE, -times[name]))
    return tuple((name, known[name], times[name]) for name in order)


def plan_words(plans: Sequence[Planned]) -> str:
    """ "9 would be decided, 3 not"."""
    yes = sum(plan.would for plan in plans)
    left = len(plans) - yes
    return f"{yes} would be decided" + (f", {left} not" if left else "")


def result_words(results: Sequence[Planned]) -> str:
    """ "8 decided, 1 vote given, 1 refused"."""
    times = Counter(plan.outcome for plan in results)
    words = [
        f"{times['decided']} decided" if times["decided"] or not times["voted"] else "",
        f"{count(times['voted'], 'vote')} given" if times["voted"] else "",
        f"{times['refused']} refused" if times["refused"] else "",
    ]
    return ", ".join(word for word in words if word)
