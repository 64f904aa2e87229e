"""Tapes of an advisor workflow, made by hand: for tests of views and screens.

START -> worker -> advisor -> (approved: END | revise: worker), waiting at step 4 for a person to
decide on the advisor's second verdict.  Times are fixed, so that pictures are too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hitl_tui.drivers import protocol as dp
from hitl_tui.engine.graph.description import EdgeInfo, GraphInfo, InputField, NodeInfo
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log import records as rec
from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.engine.log.threads import ThreadInfo, ThreadSummary
from hitl_tui.engine.state.channel import ChannelInfo
from tests.support.replay_driver import ReplayDriver

T0 = 1_763_000_000_000_000
SECOND = 1_000_000
THREAD = "closure-explainer"
FORK = "closure-explainer-b"

TASK = "Explain closures in Python to a cook."
DRAFT_1 = """A closure is a function together with the
variables it was born with.

Technically it captures its lexical
environment, kept after the call returns.

In Python, an inner function keeps the names
it uses from the function around it, and may
change them with nonlocal."""
DRAFT_2 = DRAFT_1.replace(
    """Technically it captures its lexical
environment, kept after the call returns.""",
    """Picture a lunch box: the function is the
lunch, the variables are packed beside it.
Wherever you open it, they are still there.""",
)
FEEDBACK_1 = "Too abstract."
FEEDBACK_2 = "Use a concrete analogy a cook would know. Keep the\nPython example, drop the word “lexical”."
HOSTILE = (
    "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u202eevil\u202c [bold]x[/ "
    "a\u0301\u0301\u0301\u0301\u0301\u0301 \ud800 \x9b1m \u200b\ufeff"
)

REDUCERS = {
    "messages": "append",
    "latest_draft": "overwrite",
    "advisor_feedback": "overwrite",
    "advisor_verdict": "overwrite",
    "revision_n": "sum",
}
TYPES = {"messages": "list", "revision_n": "number"}
INITIAL: dict[str, Any] = {
    "messages": [],
    **dict.fromkeys(("latest_draft", "advisor_feedback"), ""),
    "advisor_verdict": "revise",
    "revision_n": 0,
}
VERDICT = {"verdict": "revise", "draft": 2, "round": 2, "rounds": 3, "agent": "advisor"}
CHOICES = (
    Choice("accept", "agree: send it back", "enter", "optional"),
    Choice("approve", "approve the draft", "a", "optional"),
    Choice("revise", "send back with feedback", "r", "required"),
    Choice("edit", "edit the draft first", "e", "optional"),
)


@dataclass(frozen=True)
class Tape:
    """A start, the events that follow, and what the end looks like."""

    begin: dp.Snapshot
    events: tuple[dp.Stamped, ...]
    end: dp.Snapshot
    states: Mapping[int, Mapping[str, Any]]
    updates: Mapping[int, tuple[ev.AppliedUpdate, ...]]
    family: tuple[dp.Relative, ...] = ()

    def driver(self, *, at_end: bool = False, **options: Any) -> ReplayDriver:
        """A driver that begins at the tape's start, or at its end."""
        return ReplayDriver(
            self.end if at_end else self.begin,
            () if at_end else self.events,
            self.states,
            self.updates,
            checkpoints=self.end.checkpoints,
            family=self.family,
            **options,
        )


@dataclass
class Recorder:
    """Plays the engine's part: reduces, numbers, hashes and writes the tape."""

    thread_id: str = THREAD
    private: frozenset[str] = frozenset()
    values: dict[str, Any] = field(default_factory=lambda: dict(INITIAL))
    checkpoints: list[rec.Checkpoint] = field(default_factory=list)
    states: dict[int, dict[str, Any]] = field(default_factory=dict)
    updates: dict[int, tuple[ev.AppliedUpdate, ...]] = field(default_factory=dict)
    events: list[dp.Stamped] = field(default_factory=list)
    visits: dict[str, int] = field(default_factory=dict)
    ledger: list[rec.LedgerEntry] = field(default_factory=list)
    now: int = T0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    active: int = 0
    parent: str | None = None
    fork_step: int = -1

    def progress(self, status: rec.Status, position: str, reason: str = "", **more: Any) -> ev.Progress:
        rest: dict[str, Any] = {"pending": (), "error": None, "limits": rec.Limits(), **more}
        return ev.Progress(
            status=status,
            reason=reason,
            head=len(self.checkpoints) - 1,
            position=position,
            next_node=rec.next_of(position),
            invocation=0,
            iteration=sum(self.visits.values()),
            visits=dict(self.visits),
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost=self.cost,
            cost_known=True,
            active=self.active,
            **rest,
        )

    def emit(self, event: ev.Event) -> None:
        self.events.append(dp.Stamped(len(self.events) + 1, event))

    def seen(self, channel: str, value: Any) -> Any:
        return ev.PRIVATE if channel in self.private else value

    def applied(
        self, channel: str, update: Any, source: rec.Source, op: rec.Operation, actor: str | None
    ) -> ev.AppliedUpdate:
        before = self.values[channel]
        reducer = REDUCERS.get(channel, "overwrite")
        if op == "set" or reducer == "overwrite":
            after = update
        else:
            after = [*before, update] if reducer == "append" else before + update
        self.values[channel] = after
        shown = (self.seen(channel, value) for value in (before, update, after))
        visibility: rec.Visibility = "private" if channel in self.private else "public"
        return ev.AppliedUpdate(channel, op, reducer, visibility, source, *shown, before != after, actor)

    def commit(
        self,
        node: str,
        changes: Mapping[str, Any],
        position: str,
        *,
        source: rec.Source = "node",
        duration: int = 0,
        use: tuple[int, int, float] = (0, 0, 0.0),
        actor: str | None = None,
        model: str = "",
    ) -> None:
        op: rec.Operation = "set" if source == "human" else "reduce"
        updates = tuple(self.applied(name, value, source, op, actor) for name, value in changes.items())
        step = len(self.checkpoints)
        self.now += duration
        self.active += duration
        self.tokens_in += use[0]
        self.tokens_out += use[1]
        self.cost += use[2]
        digest = hashlib.sha256(json.dumps([step, self.values]).encode()).digest()
        checkpoint = rec.Checkpoint(
            thread_id=self.thread_id,
            step=step,
            parent_thread=self.thread_id if step else None,
            parent_step=step - 1,
            source=source,
            node=node,
            position=position,
            status="running",
            reason="",
            invocation=0,
            iteration=sum(self.visits.values()),
            attempt=1,
            duration=duration,
            tokens_in=use[0],
            tokens_out=use[1],
            cost=use[2],
            state_hash=digest,
            first_seq=0,
            last_seq=0,
            at=self.now,
            actor=actor,
            uses=(rec.ModelUse(node, "demo", model, *use),) if model else (),
        )
        self.checkpoints.append(checkpoint)
        self.states[step] = {name: self.seen(name, value) for name, value in self.values.items()}
        self.updates[step] = updates
        self.emit(ev.StepCommitted(checkpoint, ev.KnownOutcome(updates, self.progress("running", position))))

    def run_node(self, node: str, text: str, changes: Mapping[str, Any], position: str) -> None:
        """A node that streams `text` through its agent and commits."""
        model, duration = ("opus", 1_900_000) if node == "advisor" else ("haiku", 2_300_000)
        self.emit(ev.NodeStarted(node, len(self.checkpoints), 1, self.now))
        words = text.split(" ")
        for at in range(0, len(words), 4):
            self.emit(ev.TextStreamed(node, node, " " * (at > 0) + " ".join(words[at : at + 4])))
        self.emit(ev.ModelCalled(node, node, model, 180, 123, 0.003075, duration))
        self.visits[node] = self.visits.get(node, 0) + 1
        self.commit(node, changes, position, duration=duration, use=(180, 123, 0.003075), model=model)

    def snapshot(self, progress: ev.Progress, last_event: int) -> dp.Snapshot:
        return dp.Snapshot(
            thread_id=self.thread_id,
            graph=advisor_graph(self.private),
            progress=progress,
            values=self.states.get(progress.head, dict(INITIAL)),
            checkpoints=tuple(self.checkpoints),
            updates=self.updates.get(progress.head, ()),
            ledger=tuple(self.ledger),
            parent=self.parent,
            fork_step=self.fork_step,
            last_event=last_event,
        )


def advisor_graph(private: frozenset[str] = frozenset()) -> GraphInfo:
    """The picture of the advisor workflow."""
    channels = tuple(
        ChannelInfo(
            name,
            TYPES.get(name, "text"),
            reducer,
            "private" if name in private else "public",
            f"About {name}.",
            {},
        )
        for name, reducer in REDUCERS.items()
    )
    nodes = (
        NodeInfo("worker", ("messages", "advisor_feedback"), ("latest_draft", "messages", "revision_n")),
        NodeInfo(
            "advisor", ("latest_draft", "messages"), ("advisor_verdict", "advisor_feedback", "messages")
        ),
    )
    edges = (
        EdgeInfo(rec.START, "worker", ""),
        EdgeInfo("worker", "advisor", ""),
        EdgeInfo("advisor", rec.END, "approved"),
        EdgeInfo("advisor", "worker", "revise"),
    )
    return GraphInfo("advisor", nodes, edges, channels, (InputField("task", "messages", "Task"),))


def verdict_request(feedback: str = FEEDBACK_2, **changes: Any) -> Request:
    """What waits at step 4."""
    given: dict[str, Any] = {
        "id": "req-1",
        "kind": "approve",
        "node": "advisor",
        "when": "after",
        "step": 4,
        "title": "Approve this draft?",
        "payload": {**VERDICT, "feedback": feedback},
        "subject": "latest_draft",
        "choices": CHOICES,
        "recommended": "accept",
        "asked_at": T0 + 9 * SECOND,
    }
    return Request(**{**given, **changes})


def _begin(recorder: Recorder, task: str = TASK) -> dp.Snapshot:
    begin = recorder.snapshot(recorder.progress("pending", "node:worker"), 0)
    recorder.commit("", {"messages": task}, "node:worker", source="input")
    recorder.emit(ev.RunStarted(recorder.thread_id, recorder.progress("running", "node:worker")))
    return begin


def _finish(recorder: Recorder, begin: dp.Snapshot, progress: ev.Progress) -> Tape:
    recorder.emit(ev.RunEnded(progress))
    end = recorder.snapshot(progress, len(recorder.events))
    forks = family(recorder.thread_id, min(progress.head, 2))
    return Tape(begin, tuple(recorder.events), end, recorder.states, recorder.updates, forks)


def _advice(feedback: str) -> dict[str, Any]:
    verdict = {"advisor_feedback": feedback, "advisor_verdict": "revise"}
    return {**verdict, "messages": f"revise: {feedback}"}


def advisor_tape(
    *,
    thread_id: str = THREAD,
    private: Sequence[str] = (),
    drafts: tuple[str, str] = (DRAFT_1, DRAFT_2),
    feedback: tuple[str, str] = (FEEDBACK_1, FEEDBACK_2),
) -> Tape:
    """Four steps after the input, then waiting for a person to decide on the second verdict."""
    recorder = Recorder(thread_id, frozenset(private))
    begin = _begin(recorder)
    for at, (draft, advice) in enumerate(zip(drafts, feedback, strict=True)):
        written = {"latest_draft": draft, "messages": draft, **({"revision_n": 1} if at else {})}
        recorder.run_node("worker", draft, written, "node:advisor")
        recorder.run_node("advisor", f"revise: {advice}", _advice(advice), "route:advisor")
    request = verdict_request(feedback[1])
    entry = rec.LedgerEntry(
        thread_id, 1, "request", 4, request.id, None, None, b"", None, recorder.now, b"", b"\1" * 32
    )
    recorder.ledger.append(entry)
    recorder.emit(ev.LedgerWritten(entry))
    waiting = recorder.progress("waiting", "route:advisor", "approval", pending=(request,))
    recorder.emit(ev.ProgressChanged(waiting))
    return _finish(recorder, begin, waiting)


def private_tape() -> Tape:
    """The same with a private channel."""
    return advisor_tape(private=["advisor_feedback"])


def hostile_tape() -> Tape:
    """The same with texts that try to steer the terminal, and a thread id that does."""
    hostile = HOSTILE.replace("\ud800", "")
    return advisor_tape(
        thread_id="x\x1b[2J\u202ey",
        drafts=(HOSTILE, f"{HOSTILE}\n{hostile}"),
        feedback=(hostile, f"[red]{HOSTILE}"),
    )


def failed_tape(channel: str = "") -> Tape:
    """The advisor fails twice at step 2; its error may name a channel to mend."""
    recorder = Recorder()
    begin = _begin(recorder)
    recorder.run_node("worker", DRAFT_1, {"latest_draft": DRAFT_1, "messages": DRAFT_1}, "node:advisor")
    recorder.emit(ev.NodeStarted("advisor", 2, 1, recorder.now))
    recorder.emit(ev.NodeRetrying("advisor", 1, 2, 0.5, "ModelFailed: rate limit"))
    recorder.emit(ev.NodeStarted("advisor", 2, 2, recorder.now + SECOND))
    error = rec.ErrorInfo("advisor", 2, "A node failed", "KeyError: 'verdict'", "", "Traceback …", channel)
    recorder.emit(ev.AttemptFailed(error))
    return _finish(recorder, begin, recorder.progress("failed", "node:advisor", "node_error", error=error))


def finished_tape() -> Tape:
    """Approved at the first verdict: completed at step 2."""
    recorder = Recorder()
    begin = _begin(recorder)
    recorder.run_node("worker", DRAFT_1, {"latest_draft": DRAFT_1, "messages": DRAFT_1}, "node:advisor")
    recorder.run_node(
        "advisor", "approved", dict.fromkeys(("advisor_verdict", "messages"), "approved"), "end"
    )
    return _finish(recorder, begin, recorder.progress("completed", "end", "end"))


def summary(
    thread_id: str, parent: str | None, fork_step: int, head: int, *, status: rec.Status, reason: str = ""
) -> ThreadSummary:
    """A row of a list of threads."""
    info = ThreadInfo(thread_id, "advisor", "0" * 8, {}, parent, fork_step, 0, T0, "ann")
    return ThreadSummary(info, head, status, reason, None, "", None, "advisor", T0)


def relative(
    thread_id: str, parent: str | None, fork_step: int, head: int, status: rec.Status = "completed"
) -> dp.Relative:
    """A thread of the family: a person's edit right after the fork, then worker and advisor in turn."""
    recorder = Recorder(thread_id)
    recorder.commit("", {"messages": TASK}, "node:worker", source="input")
    for step in range(1, head + 1):
        if step == fork_step + 1:
            edit = {"latest_draft": f"Edited in {thread_id}."}
            recorder.commit("", edit, "node:worker", source="human", actor="ann")
        else:
            recorder.commit("worker" if step % 2 else "advisor", {"messages": "…"}, "node:worker")
    return dp.Relative(
        thread_id,
        parent,
        fork_step,
        summary(thread_id, parent, fork_step, head, status=status),
        tuple(recorder.checkpoints),
    )


def family(thread_id: str, fork_step: int) -> tuple[dp.Relative, ...]:
    """One fork, which a person edited and which came to its end."""
    return (relative(FORK, thread_id, fork_step, fork_step + 3),)
