"""A model of how people, one worker and the store work on a thread, in plain Python.

The graph: a node drafts an amount; a gate after it asks two reviewers whether to pay that amount; the node
`pay` makes two calls, `look` and `send`.  `send` must not run twice, and a rule decides whether a person must
agree to it.

`steps(state)` gives every step that anybody can take next.  Each step is one commit, one effect in the world,
or one crash, so a crash can happen between any two of them.  `faults(state)` judges a state by what happened
and by the ledger, not by the rules that led there, so that it finds out a model with a broken rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

REVIEWERS = ("ann", "bob")
QUORUM = 2
DEADLINE = "the deadline"
"""Who gives the answer of a gate that waited too long."""
VALUES = (0, 1)

Call = Literal["look", "send"]
CALLS: tuple[Call, ...] = ("look", "send")
About = Literal["gate", "send", "in flight"]
"""What a request asks: may it be paid, may `send` be called, was `send` called when the process died."""


class Asked(NamedTuple):
    """What a request asks; this stands for the request hash."""

    about: About
    value: int


class Entry(NamedTuple):
    """An answer in the ledger."""

    asked: Asked
    who: str
    verdict: str


class Request(NamedTuple):
    """A request that waits, with the votes given so far."""

    asked: Asked
    votes: frozenset[tuple[str, str]] = frozenset()
    claimed_by: str = ""


class Thread(NamedTuple):
    """What the store holds of a thread.

    Attributes:
        before: the value before the last edit, for undo.
        passed: what the gate was passed for; it counts until the gate asks again.
        kept: answers to questions inside `pay` that its next attempt is given.
        recorded, started: calls of `pay` that completed, and those that may have been made.
    """

    value: int
    before: int | None = None
    status: Literal["open", "done", "stopped"] = "open"
    request: Request | None = None
    passed: Asked | None = None
    kept: frozenset[tuple[Asked, str]] = frozenset()
    recorded: frozenset[tuple[Call, int]] = frozenset()
    started: frozenset[int] = frozenset()
    ledger: frozenset[Entry] = frozenset()


Phase = Literal["claimed", "ready", "started", "made"]


class Worker(NamedTuple):
    """What the process that runs a thread has in memory.

    Attributes:
        call: the number of its next call.
        by_rule: the rule said that nobody must agree to the call under way.
        unwritten: completed calls that are not in the store yet; only a broken rule leaves any.
    """

    thread: int
    phase: Phase = "claimed"
    call: int = 0
    by_rule: bool = False
    unwritten: frozenset[tuple[Call, int]] = frozenset()


class Budget(NamedTuple):
    """How often each of these may still happen; this bounds the exploration."""

    edits: int = 1
    forks: int = 0
    kills: int = 1
    failures: int = 0
    deadlines: int = 0
    claims: int = 0
    rule_changes: int = 0


class Facts(NamedTuple):
    """What happened in the world, which no rule reads.

    Attributes:
        completed: calls that have returned to the node.
        made: calls of `send` that were made.
        acknowledged: answers whose author was told that they are stored.
        wrong: what was done that must not be.
    """

    completed: frozenset[tuple[int, Call, int]] = frozenset()
    made: frozenset[tuple[int, int]] = frozenset()
    acknowledged: frozenset[tuple[int, Entry]] = frozenset()
    wrong: frozenset[str] = frozenset()


class State(NamedTuple):
    """Everything there is; `unacknowledged` are answers on their way between a reviewer and the store."""

    threads: tuple[Thread, ...] = (Thread(0),)
    worker: Worker | None = None
    unacknowledged: tuple[int, Entry] | None = None
    rule_asks: bool = True
    facts: Facts = Facts()
    budget: Budget = Budget()


class Rules(NamedTuple):
    """The rules that keep the promises; a test breaks one of them at a time."""

    answers_match_by_hash: bool = True
    kept_answer_comes_before_rule: bool = True
    calls_are_recorded_at_once: bool = True
    votes_end_with_their_request: bool = True
    gate_is_bound_to_hash: bool = True
    stored_before_acknowledged: bool = True
    asks_about_call_in_flight: bool = True


RULES = Rules()
Step = tuple[str, State]


def steps(state: State, rules: Rules = RULES) -> Iterator[Step]:
    """All that can happen next: (what happens, the state after it)."""
    if state.unacknowledged is not None:
        yield from _end_of_answer(state, rules)
        return  # the order of an acknowledgement and what others do meanwhile changes nothing in the store
    if state.worker is not None:
        yield from _work(state, state.worker, rules)
        if state.budget.kills:
            yield "kill the worker", _spend(state._replace(worker=None), "kills")
        return  # it holds the lease: commands of others are refused and change nothing
    if state.budget.rule_changes:
        yield (
            f"the rule now asks for {'no' if state.rule_asks else 'an'} approval of send",
            _spend(state._replace(rule_asks=not state.rule_asks), "rule_changes"),
        )
    for number, thread in enumerate(state.threads):
        if thread.status == "open":
            for label, after in _on_thread(state, number, thread, rules):
                yield (f"{label} (thread {number})" if len(state.threads) > 1 else label), after


def _on_thread(state: State, number: int, thread: Thread, rules: Rules) -> Iterator[Step]:
    budget = state.budget
    if thread.request is None:
        yield "the worker takes the lease", state._replace(worker=Worker(number))
    else:
        yield from _answers(state, number, thread, thread.request, rules)
    if budget.edits:
        for value in VALUES:
            if value != thread.value:
                label = "undo the edit" if value == thread.before else f"edit the amount to {value}"
                yield label, _spend(_put(state, number, edited(thread, value, rules)), "edits")
    if budget.forks:
        yield "fork", _spend(state._replace(threads=(*state.threads, forked(thread))), "forks")


# Requests and answers


def edited(thread: Thread, value: int, rules: Rules = RULES) -> Thread:
    """A thread whose amount a person has set: a waiting gate asks about the new one, without votes."""
    request = thread.request
    if request is not None and request.asked.about == "gate":
        votes = frozenset() if rules.votes_end_with_their_request else request.votes
        request = Request(Asked("gate", value), votes)
    return thread._replace(value=value, before=thread.value, request=request)


def forked(thread: Thread) -> Thread:
    """A new thread from the newest step: it shares what the gate decided, but neither votes nor calls.

    What was decided about calls is part of the parent's attempt at `pay`; the fork asks about its own calls.
    """
    asked = thread.request.asked if thread.request else None
    request = Request(Asked("gate", thread.value)) if asked and asked.about == "gate" else None
    ledger = frozenset(entry for entry in thread.ledger if entry.asked.about == "gate")
    return Thread(thread.value, thread.before, request=request, passed=thread.passed, ledger=ledger)


def _answers(state: State, number: int, thread: Thread, request: Request, rules: Rules) -> Iterator[Step]:
    asked, about = request.asked, request.asked.about
    verdicts = ("made", "again") if about == "in flight" else ("yes", "no")
    voted = {who for who, _ in request.votes}
    # Both may give any answer; one reviewer stands for both where a single answer settles the request.
    for who in REVIEWERS if about == "gate" or request.claimed_by else REVIEWERS[:1]:
        if who in voted or request.claimed_by not in ("", who):
            continue
        for verdict in verdicts:
            entry = Entry(asked, who, verdict)
            yield f"{who} answers {verdict} to {_words(asked)}", _given(state, number, entry, rules)
    if state.budget.claims and not request.claimed_by:
        for who in (one for one in REVIEWERS if one not in voted):
            claimed = thread._replace(request=request._replace(claimed_by=who))
            yield f"{who} claims {_words(asked)}", _spend(_put(state, number, claimed), "claims")
    if about == "gate" and state.budget.deadlines:
        late = settled(thread, Entry(asked, DEADLINE, "yes"))
        yield "the deadline answers yes", _spend(_put(state, number, late), "deadlines")


def _given(state: State, number: int, entry: Entry, rules: Rules) -> State:
    """The first half of an answer: it is stored; or, by a broken rule, only acknowledged."""
    state = state._replace(unacknowledged=(number, entry))
    if not rules.stored_before_acknowledged:
        return _acknowledged(state, number, entry)
    return _put(state, number, answered(state.threads[number], entry))


def _end_of_answer(state: State, rules: Rules) -> Iterator[Step]:
    assert state.unacknowledged is not None
    number, entry = state.unacknowledged
    over = state._replace(unacknowledged=None)
    if rules.stored_before_acknowledged:
        yield f"{entry.who} is told that the answer is stored", _acknowledged(over, number, entry)
    else:
        yield "the answer is stored", _put(over, number, answered(state.threads[number], entry))
    if state.budget.kills:
        yield f"kill the process of {entry.who}", _spend(over, "kills")


def _acknowledged(state: State, number: int, entry: Entry) -> State:
    facts = state.facts
    return state._replace(facts=facts._replace(acknowledged=facts.acknowledged | {(number, entry)}))


def answered(thread: Thread, entry: Entry) -> Thread:
    """A thread whose request got an answer: a vote, or what settles it."""
    request = thread.request
    assert request is not None
    if entry.asked.about != "gate":
        return settled(thread, entry)
    votes = request.votes | {(entry.who, entry.verdict)}
    if sum(verdict == entry.verdict for _, verdict in votes) >= QUORUM:
        return settled(thread, entry)
    return thread._replace(
        request=request._replace(votes=votes, claimed_by=""), ledger=thread.ledger | {entry}
    )


def settled(thread: Thread, entry: Entry) -> Thread:
    """A thread whose request was settled."""
    thread = thread._replace(request=None, ledger=thread.ledger | {entry})
    if entry.asked.about != "gate":
        return thread._replace(kept=thread.kept | {(entry.asked, entry.verdict)})
    if entry.verdict == "no":
        return thread._replace(status="stopped")
    return thread._replace(passed=entry.asked)


# The worker


def _work(state: State, worker: Worker, rules: Rules) -> Iterator[Step]:
    """The next step of the process that holds the lease; there is one, except at the end of the node."""
    thread = state.threads[worker.thread]
    gate = Asked("gate", thread.value)
    if worker.phase == "claimed":
        if thread.passed == gate or (thread.passed and not rules.gate_is_bound_to_hash):
            yield "the worker passes the gate", state._replace(worker=worker._replace(phase="ready"))
        else:
            yield f"the worker asks {_words(gate)}", _asked(state, worker, gate)
    elif worker.call == len(CALLS):
        yield from _end_of_node(state, worker, thread)
    elif (CALLS[worker.call], thread.value) in thread.recorded | worker.unwritten:
        yield f"{CALLS[worker.call]} was recorded before", state._replace(worker=_next_call(worker))
    elif worker.phase == "ready":
        yield _begin_call(state, worker, thread, rules)
    elif worker.phase == "started":
        yield f"{CALLS[worker.call]} is made", _made(state, worker, thread)
    else:
        yield _record(state, worker, thread, rules)


def _begin_call(state: State, worker: Worker, thread: Thread, rules: Rules) -> Step:
    """Decide whether the next call is made, and write down that it starts."""
    call, value = CALLS[worker.call], thread.value
    if call != "send":
        return f"{call} is allowed", state._replace(worker=worker._replace(phase="started"))
    asked = Asked("send", value)
    verdict = _kept(thread, asked, rules)
    by_rule = not state.rule_asks and (verdict is None or not rules.kept_answer_comes_before_rule)
    if not by_rule and verdict is None:
        return f"the worker asks {_words(asked)}", _asked(state, worker, asked)
    if not by_rule and verdict == "no":
        recorded = thread._replace(recorded=thread.recorded | {(call, value)})
        return "send is refused", _put(state, worker.thread, recorded)._replace(worker=_next_call(worker))
    if value in thread.started and rules.asks_about_call_in_flight:
        in_flight = Asked("in flight", value)
        verdict = _kept(thread, in_flight, rules)
        if verdict is None:
            return f"the worker asks {_words(in_flight)}", _asked(state, worker, in_flight)
        kept = thread.kept - {(in_flight, verdict)}
        if verdict == "made":
            recorded = thread.recorded | {(call, value)}
            made = thread._replace(recorded=recorded, started=thread.started - {value}, kept=kept)
            return "send counts as made", _put(state, worker.thread, made)._replace(worker=_next_call(worker))
        thread = thread._replace(kept=kept)
    started = thread._replace(started=thread.started | {value})
    now = worker._replace(phase="started", by_rule=by_rule)
    return "the start of send is recorded", _put(state, worker.thread, started)._replace(worker=now)


def _kept(thread: Thread, asked: Asked, rules: Rules) -> str | None:
    """The kept answer to a question of `pay`."""
    for kept, verdict in sorted(thread.kept):
        if kept == asked or (kept.about == asked.about and not rules.answers_match_by_hash):
            return verdict
    return None


def _made(state: State, worker: Worker, thread: Thread) -> State:
    """A call has its effect in the world; what it breaks is noted."""
    call, value, facts = CALLS[worker.call], thread.value, state.facts
    wrong = {
        *_without_answer(thread, call, value, by_rule=worker.by_rule),
        *(_made_again(facts, thread, (worker.thread, call, value))),
    }
    made = facts.made | {(worker.thread, value)} if call == "send" else facts.made
    return state._replace(
        worker=worker._replace(phase="made"), facts=facts._replace(made=made, wrong=facts.wrong | wrong)
    )


def _without_answer(thread: Thread, call: Call, value: int, *, by_rule: bool) -> Iterator[str]:
    """Why nothing in the ledger allows a call; nothing where something does."""
    yes = {entry.who for entry in thread.ledger if entry[0] == ("gate", value) and entry.verdict == "yes"}
    if DEADLINE not in yes and len(yes) < QUORUM:
        yield f"{call} of {value} was made, and the gate was not passed for {value}"
    if call == "send":
        said = {entry.verdict for entry in thread.ledger if entry.asked == ("send", value)}
        if "no" in said:
            yield f"send of {value} was made, and a person refused it"
        elif not said and not by_rule:
            yield f"send of {value} was made, and nobody agreed to it"


def _made_again(facts: Facts, thread: Thread, made: tuple[int, Call, int]) -> Iterator[str]:
    number, call, value = made
    if made in facts.completed:
        yield f"{call} of {value} was made again after it completed"
    again = any(entry[0] == ("in flight", value) and entry.verdict == "again" for entry in thread.ledger)
    if call == "send" and (number, value) in facts.made and not again:
        yield f"send of {value} was made again, and nobody was asked"


def _record(state: State, worker: Worker, thread: Thread, rules: Rules) -> Step:
    """The call returns to the node, with its result in the store."""
    call, value = CALLS[worker.call], thread.value
    completed = state.facts.completed | {(worker.thread, call, value)}
    state = state._replace(facts=state.facts._replace(completed=completed))
    if not rules.calls_are_recorded_at_once:
        now = _next_call(worker)._replace(unwritten=worker.unwritten | {(call, value)})
        return f"{call} completes", state._replace(worker=now)
    thread = thread._replace(recorded=thread.recorded | {(call, value)})
    if call == "send":
        thread = thread._replace(started=thread.started - {value})
    return f"{call} is recorded", _put(state, worker.thread, thread)._replace(worker=_next_call(worker))


def _end_of_node(state: State, worker: Worker, thread: Thread) -> Iterator[Step]:
    over = state._replace(worker=None)
    done = Thread(thread.value, status="done", ledger=thread.ledger)
    yield "the step is committed", _put(over, worker.thread, done)
    if state.budget.failures:
        written = thread._replace(recorded=thread.recorded | worker.unwritten)
        yield (
            "the node fails, and will be tried again",
            _spend(_put(over, worker.thread, written), "failures"),
        )


def _asked(state: State, worker: Worker, asked: Asked) -> State:
    """A question is committed, and the lease given back."""
    thread = state.threads[worker.thread]
    passed = None if asked.about == "gate" else thread.passed
    recorded = thread.recorded | worker.unwritten
    asking = thread._replace(request=Request(asked), passed=passed, recorded=recorded)
    return _put(state._replace(worker=None), worker.thread, asking)


def _next_call(worker: Worker) -> Worker:
    return worker._replace(phase="ready", call=worker.call + 1, by_rule=False)


def _words(asked: Asked) -> str:
    if asked.about == "gate":
        return f'"pay {asked.value}?"'
    return f'"send {asked.value}?"' if asked.about == "send" else f'"was {asked.value} sent?"'


def _put(state: State, number: int, thread: Thread) -> State:
    return state._replace(threads=(*state.threads[:number], thread, *state.threads[number + 1 :]))


def _spend(state: State, what: str) -> State:
    budget = state.budget
    return state._replace(budget=budget._replace(**{what: getattr(budget, what) - 1}))


# What must hold in every state


def faults(state: State) -> Iterator[str]:
    """What is wrong in a state, judged by what happened and by the ledger."""
    yield from state.facts.wrong
    if state.facts.acknowledged:
        for number, entry in state.facts.acknowledged:
            if entry not in state.threads[number].ledger:
                yield f"an acknowledged answer is missing: {entry.who} said {entry.verdict}"


class Exploration(NamedTuple):
    """What an exploration has found.

    Attributes:
        ends: states in which nothing more can happen.
        seen: labels of all steps that were taken.
        trace: the shortest way to a state that must not be; () where there is none.
        fault: what is wrong there.
    """

    states: int
    transitions: int
    ends: int
    seen: frozenset[str]
    trace: tuple[str, ...] = ()
    fault: str = ""

    def __str__(self) -> str:
        counted = f"{self.states:,} states, {self.transitions:,} transitions, {self.ends:,} ends"
        if not self.trace:
            return f"no fault in {counted}"
        lines = (f"{number:3}. {label}" for number, label in enumerate(self.trace, 1))
        return "\n".join((f"fault after {counted}: {self.fault}", *lines))


def explore(
    start: State,
    next_steps: Callable[[State], Iterable[Step]] = steps,
    faults_of: Callable[[State], Iterable[str]] = faults,
) -> Exploration:
    """Visit every state that can be reached, nearest first; stop at the first one with a fault."""
    came_from: dict[State, tuple[State, str] | None] = {start: None}
    queue, labels = deque([start]), set[str]()
    transitions = ends = 0
    while queue:
        state = queue.popleft()
        fault = next(iter(faults_of(state)), "")
        if fault:
            trace = tuple(reversed(list(_way_back(came_from, state))))
            return Exploration(len(came_from), transitions, ends, frozenset(labels), trace, fault)
        before = transitions
        for label, after in next_steps(state):
            transitions += 1
            labels.add(label)
            if after not in came_from:
                came_from[after] = (state, label)
                queue.append(after)
        ends += transitions == before
    return Exploration(len(came_from), transitions, ends, frozenset(labels))


def _way_back(came_from: dict[State, tuple[State, str] | None], state: State) -> Iterator[str]:
    while (step := came_from[state]) is not None:
        state, label = step
        yield label
