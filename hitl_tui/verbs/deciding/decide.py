"""Give many requests the same answer, after you see the list.

For the THREADs, or for all requests that match --filter. Each decision is a ledger entry of its own, about
the request in the list. If a thread has changed since, its decision is refused. Some requests are left for
you, and listed: high risk, other answers, a text or a form, claimed by somebody else, or not yours.

With --policy each gets the answer of the first rule of FILE whose condition is true; the ledger names the
rule. Without THREADs and --filter that is for all requests.

    hitl-tui decide blog-1 blog-2 --answer approve
    hitl-tui decide --filter "graph:advisor risk:low" --answer approve --dry-run
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.units import about
from hitl_tui.errors import ExitCode, HitlError, UsageError
from hitl_tui.suggest import did_you_mean
from hitl_tui.verbs.conversation import (
    Ask,
    AskChoice,
    AskField,
    AskReply,
    At,
    BeginEach,
    Continue,
    Do,
    Listing,
    ListRow,
    Show,
    Talk,
    Verb,
    Work,
)
from hitl_tui.view.actions import Action
from hitl_tui.view.format import count
from hitl_tui.view.queue_facts import Outcome, Planned
from hitl_tui.view.shapes import Document

if TYPE_CHECKING:
    from hitl_tui.drivers.policies import Policy
    from hitl_tui.view.batch import Decider
    from hitl_tui.view.queue import Key, QueueRow

_UNDO_SECONDS: Final = 4.0
"""As for a single decision."""
_THREADS: Final = AskField("threads", "which threads", metavar="THREAD", many=True, thread=True)
_FILTER: Final = AskField(
    "filter", "all that match", about='Requests that match, as "graph:advisor due:today".'
)
_ANSWER: Final = AskField(
    "answer", "the answer", about='The answer; "approve" is whatever approves.', metavar="ID"
)
_POLICY: Final = AskField(
    "policy", "file of rules", about="Answer by the rules of a file, instead of --answer.", metavar="FILE"
)
_NOTE: Final = AskField(
    "note",
    "your comment, logged with every decision (optional)",
    about="Why, for the record.",
    only_for=("decide",),
)
_NOTE_OF_RULES: Final = AskField("note", "why, where a rule says nothing (optional)", rare=True)
_TITLE: Final = "What would be decided"
_HEADINGS: Final = ("THREAD", "ASKS", "ANSWER, OR WHY NOT")
_OTHER: Final = "batch.answer"
_STOPPED: Final = "you stopped before it was sent"
_STATES: Final[Mapping[Outcome, Literal["would", "left", "done", "refused"]]] = {
    "would": "would",
    "left": "left",
    "decided": "done",
    "voted": "done",
    "refused": "refused",
}


class DecisionsDocument(Document, frozen=True):
    """`decide`: what was decided of many requests, or would be."""

    decisions: Annotated[tuple[Planned, ...], about("The requests; those that would be decided come first.")]
    dry_run: Annotated[bool, about("Whether it was a dry run.")]


class _Batch(msgspec.Struct, frozen=True):
    """The requests that were chosen, and what is known to answer them.

    Args:
        rows: each as the person saw it.
        current: all requests as they are now.
        now: when they were read: whatever ends later changes nothing in the list that the person sees.
        by_rules: the answers of a policy, which is asked only once.
    """

    now: int
    rows: Sequence[QueueRow]
    current: Mapping[Key, QueueRow]
    by: Decider
    rules: Policy | None
    by_rules: tuple[Planned, ...]

    def plans(self, answer: str, note: str | None) -> tuple[Planned, ...]:
        """Return what would become of each request."""
        from hitl_tui.view.batch import plan

        if self.rules is not None:
            return self.by_rules
        return plan(self.rows, answer, replace(self.by, note=note), self.now, self.current)

    def answers(self, note: str | None) -> list[str]:
        """Return the answers that some of them allow; the first one is "approve" unless that decides none."""
        from hitl_tui.view.batch import APPROVE, answers_of

        if self.rules is not None:
            return [self.rules.name]
        known = answers_of(self.rows)
        names = [name for name, _, _ in known]
        if any(plan.would for plan in self.plans(APPROVE, note)):
            return names
        most = names.index(max(known, key=lambda answer: answer[2])[0])
        return names[most:] + names[:most]


async def _talk(at: At) -> Talk:
    """Show what would be decided of which requests; after a yes decide each, and show what came of it."""
    note = at.given.get("note", "").strip() or None
    answer, file = at.given.get("answer", ""), at.given.get("policy")
    if (answer and file) or (at.leaves and not answer and not file):
        raise UsageError("give --answer ID or --policy FILE", "they give the answers")
    rules: Policy | None = None
    refused: HitlError | None = None
    while file is not None and rules is None:
        if not file or refused is not None:
            reply = yield _which_policy(at, file, note, refused)
            if reply is None:
                return
            file, note = reply.text("policy") or "", reply.text("note")
        try:
            rules = _read_policy(file)
        except UsageError as error:
            if at.leaves:
                raise
            refused = error
    batch: _Batch = yield Work("looking…", lambda _: _read(at, rules, note), _TITLE)
    answers = [answer] if answer else batch.answers(note)
    plans = batch.plans(answers[0], note)
    if at.dry_run or (at.leaves and not any(plan.would for plan in plans)):
        yield _shown(plans, dry_run=at.dry_run)
        return
    reply = AskReply("other", {})
    while reply.choice == "other":
        reply = yield _question(batch, answers, note)
        if reply is None:
            return
        note = reply.text("note") or (note if rules is not None else None)
        plans = batch.plans(answers[0], note)
        answers = [*answers[1:], answers[0]]
    results: dict[Key, Planned] = {}

    def so_far() -> list[Planned]:
        return [results.get(plan.key, plan) for plan in plans]

    talks = decisions(at, plans, results)
    yield BeginEach("deciding…", talks, lambda: _shown(so_far()), 0.0 if at.leaves else _UNDO_SECONDS)
    done = [replace(plan, outcome="left", why=_STOPPED) if plan.would else plan for plan in so_far()]
    yield _shown(done)
    if not at.leaves:
        decided = (plan for plan in done if plan.outcome == "decided")
        for source, thread in dict.fromkeys((plan.source, plan.thread) for plan in decided):
            yield Continue(thread, at.hub.inbox.hub_of(source))


def _which_policy(at: At, file: str, note: str | None, refused: HitlError | None) -> Ask:
    of = f"Of {count(len(at.listed), 'request')}; nothing" if at.listed else "Nothing"
    return Ask(
        "Decide by a policy",
        (f"{of} is decided before you see the list.",),
        (AskChoice("list", "l", "list what it would decide"),),
        (replace(_POLICY, value=file, required=True), replace(_NOTE_OF_RULES, value=note or "")),
        refused,
    )


def _read_policy(file: str) -> Policy:
    from hitl_tui.drivers.policies import read_policy
    from hitl_tui.given_files import expanded

    return read_policy(expanded(file))


async def _read(at: At, rules: Policy | None, note: str | None) -> _Batch:
    """Return the requests that are meant; a policy says at once what it would answer.

    Raises:
        UsageError: none was named, the filter can't be read, or nothing waits in a thread.
        UnknownThread: there is no such thread.
    """
    from hitl_tui.engine.thread.journal import account
    from hitl_tui.view.batch import Decider, plan_by
    from hitl_tui.view.queue import MOST, rows_of

    waiting = rows_of(await at.hub.inbox.waiting(MOST))
    current = {row.key: row for row in waiting}
    rows = await _chosen(at, waiting, rules is not None)
    by = Decider(at.actor, account(), at.signs, note)
    now = at.hub.now()
    plans = await plan_by(rules, at.hub.inbox, rows, by, now, current=current) if rules else ()
    return _Batch(now, rows, current, by, rules, plans)


async def _chosen(at: At, waiting: Sequence[QueueRow], by_rules: bool) -> list[QueueRow]:
    """Return the rows of the named threads, of the numbers in the list, or of those that match the filter."""
    from hitl_tui.view.queue import QueueView, read_filter

    words = list(dict.fromkeys(shlex.split(at.given.get("threads", ""))))
    wanted = at.given.get("filter")
    if not words and wanted is None:
        if at.listed:
            return [row for row in at.listed if row.asks]
        if not by_rules:
            raise UsageError("no requests were named", "name threads, or give a filter")
    if problems := read_filter(wanted or "").problems:
        raise UsageError(problems[0], 'as in "graph:advisor risk:high due:today words"')
    shown = QueueView(wanted or "").shown(waiting, at.hub.now(), at.actor)
    if not words:
        return [row for row in shown if row.asks]
    names = {row.name for row in waiting}
    for word in words:
        if word not in names and not _number(at, word):
            async with at.hub.borrow(word, look=True):
                hint = did_you_mean(word, sorted(names)) or "see `show`"
                raise UsageError(f"nothing waits in thread {word!r}", hint)
    numbered = [at.listed[int(word) - 1] for word in words if word not in names]
    return [*numbered, *(row for row in shown if row.name in words)]


def _number(at: At, word: str) -> bool:
    """Whether a word is a number in the list; raises `UsageError` if the list is shorter."""
    if not at.listed or not word.isdecimal():
        return False
    if not 1 <= int(word) <= len(at.listed):
        raise UsageError(f"there is no number {word!r} in the list", f"give 1 to {len(at.listed)}")
    return True


def _question(batch: _Batch, answers: Sequence[str], note: str | None) -> Ask:
    """Return what would be decided with the first of some answers, and whether to do that."""
    from hitl_tui.view.batch import plan_words

    plans = batch.plans(answers[0], note)
    would = sum(plan.would for plan in plans)
    these = "this one" if would == 1 else f"these {would}"
    choices = [AskChoice("decide", "d", f"decide {these}")] if would else []
    if len(answers) > 1:
        choices.append(AskChoice("other", "o", f"answer “{answers[1]}”", action=_OTHER))
    by = f"By {answers[0]}" if batch.rules else f"Answer “{answers[0]}”"
    return Ask(
        f"{by}: {plan_words(plans)}",
        (),
        tuple(choices),
        () if batch.rules else (replace(_NOTE, value=note or ""),),
        confirm=True,
        listing=_listing(plans),
        anew=lambda typed: _question(batch, answers, typed.get("note", "").strip() or None),
    )


def decisions(at: At, plans: Sequence[Planned], results: dict[Key, Planned]) -> list[Talk]:
    """Return a conversation for each thread in which something would be decided.

    Args:
        results: what comes of each request, by its key.
    """
    threads: dict[tuple[str, str], list[Planned]] = {}
    for plan in plans:
        if plan.would:
            threads.setdefault((plan.source, plan.thread), []).append(plan)
    return [_decide(at, group, results) for group in threads.values()]


async def _decide(at: At, plans: Sequence[Planned], results: dict[Key, Planned]) -> Talk:
    """Decide the requests of a thread, one after another; a refusal is a result and ends nothing."""
    from hitl_tui.view.card import vote_given

    for plan in plans:
        # A subcommand shows no state.
        command = replace(plan, seen=b"" if at.leaves else plan.seen).command(at.actor)
        try:
            async with at.hub.inbox.hub_of(plan.source).borrow(plan.thread) as driver:
                yield Do(command, driver)
                pending = (await driver.snapshot()).progress.pending
        except HitlError as error:
            results[plan.key] = replace(plan, outcome="refused", why=error.message)
            continue
        voted = next((request for request in pending if request.id == plan.request and request.votes), None)
        result = replace(plan, outcome="voted", why=vote_given(voted)) if voted else None
        results[plan.key] = result or replace(plan, outcome="decided")


def _shown(plans: Sequence[Planned], *, dry_run: bool = False) -> Show:
    """Return what is to be shown of requests that were decided, or would be."""
    from hitl_tui.view.batch import plan_words, result_words

    outcomes = {plan.outcome for plan in plans}
    code = ExitCode.WAITING if "left" in outcomes or not plans else ExitCode.DONE
    decided = outcomes & {"decided", "voted", "refused"}
    words = result_words(plans) if decided else plan_words(plans)
    return Show(
        words if plans else "nothing waits that could be decided",
        document=DecisionsDocument(decisions=tuple(plans), dry_run=dry_run),
        code=ExitCode.CONFLICT if "refused" in outcomes else code,
        listing=_listing(plans),
    )


def _listing(plans: Sequence[Planned]) -> Listing:
    return Listing(
        _HEADINGS,
        tuple(
            ListRow(plan.key, _name(plan), plan.title, _outcome(plan), _STATES[plan.outcome])
            for plan in plans
        ),
    )


def _name(plan: Planned) -> str:
    return f"{plan.source} · {plan.thread}" if plan.source else plan.thread


def _outcome(plan: Planned) -> str:
    """Return the answer for a request, or why it gets none."""
    if plan.outcome not in ("would", "decided"):
        return plan.why or ""
    return f"{plan.label}, by rule {plan.rule}" if plan.rule else plan.label


VERB = Verb(
    None,
    _talk,
    Action("queue.decide", "a", "Decide", "Give marked requests one answer, after you see the list", "Queue"),
    after="queue.all",
    letter="D",
    arguments=(_THREADS,),
    options=(_FILTER, _ANSWER, _POLICY, _NOTE),
    dry_run="Only list what would be decided, and why the rest is left.",
    confirms=True,
    builds=True,
    about="store",
)
