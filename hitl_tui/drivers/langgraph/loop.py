"""Run loop of a LangGraph thread: runs one superstep after the other, and mirrors each when it is saved.

It has the interface of `engine.run.loop.RunLoop`, so that drivers can use both.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from hitl_tui.drivers.langgraph.continuing import RESUMING, Leg
from hitl_tui.drivers.langgraph.discovery import stale
from hitl_tui.drivers.langgraph.guard import AnswerGuard, answers_given, can_guard, guarded
from hitl_tui.drivers.langgraph.interrupts import (
    ALL,
    AskedInterrupt,
    kept_answers,
    refusal_of,
    resume,
    without_answers,
)
from hitl_tui.drivers.langgraph.live import LiveRuns
from hitl_tui.drivers.langgraph.mirror import Mirror, is_no_step, their_thread
from hitl_tui.drivers.langgraph.owners import Owners
from hitl_tui.drivers.langgraph.pregel import (
    Dropped,
    Part,
    Saved,
    TaskRun,
    config_of,
    is_drained,
    result_of_event,
    saved_of_event,
)
from hitl_tui.drivers.langgraph.retries import RETRY, FailedAttempt
from hitl_tui.drivers.langgraph.run_context import configurable_of, context_of
from hitl_tui.drivers.langgraph.server_requests import is_limit_of_server
from hitl_tui.drivers.langgraph.steps import (
    branch_path,
    facts_of,
    in_order,
    inside_of,
    messages_in,
    model_use,
    names_in,
    place_of,
    tool_use,
)
from hitl_tui.drivers.langgraph.subgraphs import START_NODE
from hitl_tui.drivers.langgraph.values import as_json, copied
from hitl_tui.engine.commands.answering import pass_breakpoints
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.log.events import (
    AttemptDropped,
    AttemptFailed,
    BranchEnded,
    BranchStarted,
    ChildMoved,
    ModelCalled,
    NodeRetrying,
    NodeStarted,
    RunEnded,
    RunStarted,
    TextStreamed,
    ToolCalled,
)
from hitl_tui.engine.log.outcomes import BranchOutcome, ErrorInfo, KeptAnswer, ModelUse, StreamedText
from hitl_tui.engine.log.records import START, Cursor, LedgerEntry, Limits
from hitl_tui.engine.nodes.activity import StreamKeeper, newest_texts
from hitl_tui.engine.nodes.attempt import masks_of
from hitl_tui.engine.nodes.calling import SyncCaller
from hitl_tui.engine.nodes.frames import frames_of
from hitl_tui.engine.run.loop import await_cancel
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.breakpoints import Stops
from hitl_tui.engine.thread.interrupts import unused_entry
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import AnswerRefused, HitlError, NodeFailed, ServerBusy, ServerRefused, described

_PAGE = 100
_RETURNED = "__return__"
_TASK = "task"
"""Name shown as the writer of a `@task`'s result."""
_LONGEST_RESULT = 4_000
"""Maximum number of characters shown of a `@task`'s result."""
_FIRST_LOOK, _LAST_LOOK = 0.02, 10.0
"""Seconds between checks whether a subgraph has saved something."""
log = logging.getLogger(__name__)


class Moved(Exception):
    """A run would begin at a wrong checkpoint."""


class Superstep:
    """One running superstep: its first checkpoint, what its tasks have done, and its results.

    Args:
        leaf: the checkpoint that it must continue from.
        pinned: whether that is not the thread's newest checkpoint.
        given: the input that it begins with, None if it continues.
        single: whether the graph's state is a single value.
        inside: receives the events of subgraphs.
        on_saved: called after each saved superstep of a run of several, in the run's OS thread; None for a
            single superstep.
    """

    def __init__(
        self,
        session: Session,
        leaf: str,
        *,
        pinned: bool = False,
        given: Any = None,
        single: bool = False,
        inside: LiveRuns | None = None,
        on_saved: Callable[[Superstep], None] | None = None,
    ) -> None:
        self._session = session
        self._inside = inside
        self._on_saved = on_saved
        self._emit = session.emit
        self._leaf = self.leaf = leaf
        self._pinned = pinned
        self._given = given
        self._single = single
        self.first_saved: Saved | None = None
        """The checkpoint that it began with."""
        self.before: Saved | None = None
        self.after: list[tuple[Saved | None, Saved]] = []
        """The checkpoints that it has saved and that are no steps yet, each with the one before."""
        self.mirrored = ""
        """The nodes of the newest step that it became, "" for none yet."""
        self.calls: tuple[BranchOutcome, ...] = ()
        """The `@task`s called by its nodes, in the order in which they began."""
        self.streams = StreamKeeper()
        self.durations: dict[str, int] = {}
        self._started: dict[str, int] = {}
        self._tasks: dict[str, TaskRun] = {}
        self._announced = False
        self.attempts: dict[str, int] = {}
        """Number of attempts of each retried task."""
        self._calls: dict[str, BranchOutcome] = {}
        """Running `@task` calls by id; a call with a cached result reports no end."""
        self._asked: dict[str, Any] = {}
        self._replies: dict[str, tuple[Any, Mapping[str, Any]]] = {}
        """Replies of models with the stream's metadata, by message id."""
        self._unkept: list[ModelUse] = []

    @property
    def node(self) -> str:
        """The names of the running nodes."""
        return place_of(dict.fromkeys(task.name for task in self._tasks.values()))

    @property
    def is_open(self) -> bool:
        """Whether tasks have run after the last reported checkpoint."""
        return bool(self._tasks)

    @property
    def failed(self) -> str:
        """The node of a failed task, or else of an unfinished one."""
        failed = next((task.name for task in self._tasks.values() if task.error), "")
        if failed:
            return failed
        open_tasks = [task.name for key, task in self._tasks.items() if key not in self.durations]
        return open_tasks[0] if open_tasks else self.node

    def on_part(self, part: Part) -> None:
        """Process an event of the run's stream.

        Raises:
            Moved: the run must not continue; nothing has run.
        """
        ns, mode, data = part
        if mode == "checkpoints" and not ns:
            self._checkpoint(data)
        elif mode == "tasks" and not ns:
            self._task(data)
        elif mode == "messages":
            self._message(*data)
        elif mode == RETRY:
            self._retry(data)
        elif mode == "custom":
            self._text("", _words(data), ns)
        elif self._inside is not None:
            self._announce()
            self._inside.on_part(ns, mode, data, self.node, self._path_of((*ns, "")))

    def _checkpoint(self, data: Any) -> None:
        now = self._session.clock()
        saved = saved_of_event(data, now, single=self._single)
        if self.before is None:
            if not self._follows(saved):
                raise Moved(saved.parent if saved.source == "input" else saved.id)
            self.before = self.first_saved = saved
            if self._given is not None:
                self.after.append((None, saved))
            self.leaf = saved.id
            return
        self.close(saved)
        if self._on_saved is not None:
            self._on_saved(self)

    def unread(self, known: Saved | None) -> list[str]:
        """Return the ids, in order, of the checkpoints whose values are known only from the run's stream.

        Args:
            known: a checkpoint that was read from the checkpointer already.
        """
        if not self.after or self.first_saved is None:
            return []
        first = [] if known is not None and known.id == self.first_saved.id else [self.first_saved.id]
        return list(dict.fromkeys([*first, *(saved.id for _, saved in self.after)]))

    def take_saved(self, read: Mapping[str, Saved | None]) -> None:
        """Replace the values of its checkpoints by the saved ones: nodes may have changed those streamed.

        Args:
            read: checkpoints by id; None for one that was never stored, which is dropped.
        """

        def saved(streamed: Saved) -> Saved:
            kept = read.get(streamed.id)
            return streamed if kept is None else streamed._replace(values=kept.values, at=kept.at)

        if self.before is not None:
            self.before = saved(self.before)
        self.after = [
            (None if before is None else saved(before), saved(after))
            for before, after in self.after
            if read.get(after.id) is not None
        ]

    def close(self, saved: Saved) -> None:
        """Record that the tasks have ended with this checkpoint."""
        assert self.before is not None
        tasks = self._done(self.before)
        self.after.append((self.before._replace(tasks=tasks), saved))
        self._count(tasks)
        self.before = saved
        self.calls = tuple(self._calls.values())
        self._tasks, self._started, self._calls, self._announced = {}, {}, {}, False

    def catch_up(self, saved: Iterable[tuple[Saved | None, Saved]]) -> None:
        """Record checkpoints that were not reported, each with the one before, the oldest first."""
        self.after += saved
        self.before = self.after[-1][1]
        self._tasks, self._started, self._calls, self._announced = {}, {}, {}, False

    def begin_next(self) -> None:
        """Forget what was mirrored, in a run of several supersteps."""
        self.first_saved, self.streams = self.before, StreamKeeper()
        self.durations, self.attempts = {}, {}

    def unkept(self) -> tuple[ModelUse, ...]:
        """Return model calls whose replies no task has written: their tokens are recorded nowhere else."""
        self._count(self._tasks.values())
        return tuple(self._unkept)

    def finished_texts(self) -> list[StreamedText]:
        """Return the texts of finished tasks, which do not run again, whatever happens to the others."""
        tasks = in_order(self._tasks.values())
        paths = {branch_path(tasks, place) for place, task in enumerate(tasks) if task.result is not None}
        paths |= {call.path for key, call in self._calls.items() if key in self.durations}
        texts = self.streams.texts if self.streams.used else ()
        return [
            text for text in texts if any(f"{text.path}/".startswith(f"{path}/") for path in paths if path)
        ]

    def _count(self, tasks: Iterable[TaskRun]) -> None:
        written = {message.id for task in tasks for message in messages_in(task.result)}
        for key, (message, about) in self._replies.items():
            if key not in written and (used := model_use(message, _node_of(about), about)) is not None:
                self._unkept.append(used)
        self._replies = {}

    def _follows(self, saved: Saved) -> bool:
        """Whether a run that begins with this checkpoint continues from the right one.

        Input makes its own checkpoint, and so does a run pinned to an older one.
        """
        if self._given is not None:
            return (saved.source, saved.parent) == ("input", self._leaf)
        copied = self._pinned and (saved.source, saved.parent) == ("fork", self._leaf)
        return copied or saved.id == self._leaf

    def _done(self, before: Saved) -> tuple[TaskRun, ...]:
        """Return the tasks with their writes; the stream does not report the one that takes the input."""
        if [task.name for task in before.tasks] == [START_NODE]:
            return (before.tasks[0]._replace(result=self._given),)
        return tuple(self._tasks.get(task.id, task) for task in before.tasks)

    def _task(self, data: Any) -> None:
        now, key = self._session.clock(), data["id"]
        if self.before is not None and all(task.id != key for task in self.before.tasks):
            self._call(data, now)
            return
        if "input" in data:
            pushed = any("push" in str(trigger) for trigger in data["triggers"])
            self._tasks[key] = TaskRun(key, data["name"], pushed)
            self._started[key] = now
            if self.before is not None and len(self._tasks) == len(self.before.tasks):
                self._announce()
            return
        self._announce()
        self.durations[key] = now - self._started.get(key, now)
        known = self._tasks.get(key)
        if known is None:
            return
        interrupts = tuple(data["interrupts"] or ())
        result = copied(result_of_event(data["result"], single=self._single))
        self._tasks[key] = known._replace(result=result, error=data["error"], interrupts=interrupts)
        tasks = in_order(self._tasks.values())
        place = [task.id for task in tasks].index(key)
        if len(tasks) > 1 and not interrupts:
            status: Any = "failed" if data["error"] else "ok"
            path = branch_path(tasks, place)
            tried, took = self.attempts.get(key, 1), self.durations[key]
            outcome = BranchOutcome(path, known.name, place, status, attempts=tried, duration=took)
            if error := data["error"]:
                why = described(error) if isinstance(error, BaseException) else str(error)
                outcome = replace(outcome, error=ErrorInfo(known.name, tried, NodeFailed.title, why))
            self._emit(BranchEnded(place_of(dict.fromkeys(task.name for task in tasks)), outcome, now))

    def _call(self, data: Any, now: int) -> None:
        """Process the start or end of a `@task` called by a node: it is a branch of the step."""
        self._announce()
        key, name = data["id"], str(data["name"])
        if "input" in data:
            number = sum(call.name == name for call in self._calls.values())
            place = len(self._calls) + (len(self._tasks) if len(self._tasks) > 1 else 0)
            call = BranchOutcome(f"{name}[{number}]", name, place, "ok", attempts=1)
            self._calls[key], self._started[key] = call, now
            self._emit(BranchStarted(self.node, call.path, name, place, 0, 1, now))
        elif key in self._calls and not data["interrupts"]:
            status: Any = "failed" if data["error"] else "ok"
            took = self.durations[key] = now - self._started[key]
            ended = self._calls[key] = replace(self._calls[key], status=status, duration=took)
            self._report_result(ended, (data["result"] or {}).get(_RETURNED))
            self._emit(BranchEnded(self.node, ended, now))

    def _retry(self, failed: FailedAttempt) -> None:
        """Report a failed attempt of a task, or of one in a subgraph, that is retried."""
        self._announce()
        known = self._tasks.get(failed.task)
        if known is not None:
            self.attempts[failed.task] = failed.attempt + 1
            tasks = in_order(self._tasks.values())
            path = branch_path(tasks, tasks.index(known))
        else:
            path = f"{self.node}/{failed.name}"
        self._emit(
            NodeRetrying(self.node, failed.attempt, failed.max_attempts, failed.wait, failed.error, path)
        )

    def _report_result(self, call: BranchOutcome, result: Any) -> None:
        """Report a call's result as text, unless it was streamed."""
        if result is None or any(text.path == call.path for text in self.streams.texts):
            return
        text = result if isinstance(result, str) else canonical(as_json(result)).decode()
        self._write(_TASK, f"{text[:_LONGEST_RESULT]}\n", call.path)

    def _announce(self) -> None:
        """Report the running nodes once all tasks are known."""
        if self._announced or not self._tasks:
            return
        self._announced = True
        tasks = in_order(self._tasks.values())
        now = self._session.clock()
        node, step = place_of(dict.fromkeys(task.name for task in tasks)), self._session.cursor.head + 1
        self._emit(NodeStarted(node, step, self._session.cursor.attempt, now))
        for place, task in enumerate(tasks):
            if len(tasks) > 1:
                path = branch_path(tasks, place)
                self._emit(BranchStarted(node, path, task.name, place, len(tasks), 1, now))

    def _path_of(self, ns: Iterable[str]) -> str:
        """Return the path of a namespace: the branch, and the nodes inside subgraphs."""
        scopes = [scope.partition(":") for scope in ns]
        if not scopes or not scopes[0][0]:
            return ""
        for at, (_, _, key) in reversed(list(enumerate(scopes))):
            if key in self._calls:
                return "/".join((self._calls[key].path, *(name for name, _, _ in scopes[at + 1 :])))
        tasks = in_order(self._tasks.values())
        place = next((place for place, task in enumerate(tasks) if task.id == scopes[0][2]), None)
        branch = "" if place is None else branch_path(tasks, place)
        if not branch and len(scopes) > 1:
            branch = scopes[0][0]
        return "/".join(filter(None, (branch, *(name for name, _, _ in scopes[1:]))))

    def _message(self, message: Any, about: Any) -> None:
        """Process a message, or a piece of one, by a model or a node."""
        self._announce()
        ns = tuple(str(about.get("langgraph_checkpoint_ns") or "").split("|"))
        path = self._path_of(ns)
        agent = str(about.get("lc_agent_name") or about.get("ls_model_name") or "model")
        for call in getattr(message, "tool_calls", None) or ():
            self._asked[str(call.get("id"))] = (call.get("name"), call.get("args"))
        if message.type == "tool":
            _, arguments = self._asked.get(message.tool_call_id, ("", None))
            use = tool_use(message, arguments, agent, path)
            self._emit(ToolCalled(self.node, agent, use.tool, use.arguments, use.result, use.error, 0, path))
            return
        if message.type not in ("ai", "AIMessageChunk"):
            return
        self._text(agent, _words(message.content), ns)
        used = model_use(message, agent, about)
        if used is not None and (used.tokens_in or used.tokens_out):
            known = self._replies.get(str(message.id))
            self._replies[str(message.id)] = (message if known is None else known[0] + message, about)
            tokens = used.tokens_in, used.tokens_out
            self._emit(ModelCalled(self.node, agent, used.model, *tokens, used.cost, 0, path))

    def _text(self, agent: str, text: str, ns: tuple[str, ...]) -> None:
        if text:
            self._announce()
            self._write(agent, text, self._path_of(ns))
            if self._inside is not None:
                self._inside.write(ns, agent, text)

    def _write(self, agent: str, text: str, path: str) -> None:
        self.streams.add(text, agent, path, self._session.cursor.attempt)
        self._emit(TextStreamed(self.node, agent, text, path))


def _node_of(about: Mapping[str, Any]) -> str:
    """Return the node of the running graph in or below which a model was called."""
    return str(about.get("langgraph_checkpoint_ns") or "").partition(":")[0]


def _words(content: Any) -> str:
    """Return the text of a message's content, or of a value that a node has streamed."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_words(block) for block in content)
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else "" if "type" in content else f"{content}\n"
    return f"{content}\n"


_MORE_WHEN_RESUMED: Final = 2
"""Supersteps beyond its limit that LangGraph allows a resumed run: it counts two for input."""


class PregelLoop:
    """One run of a LangGraph thread, or one superstep of it.

    Args:
        session: the line in the mirror.
        leaf: the newest checkpoint of the line.
        newest: the newest checkpoint of the LangGraph thread; if it is not `leaf`, it belongs to another
            line.
        once: stop after one superstep.
        owners: the parent threads that move with it; already held for writing.
        into: with `once`: stop before the first node of each subgraph that begins.
        given: the input to begin with; None to continue.
        context: the thread's new context; None to keep it.
        at_once: let a server run all supersteps as one run, and mirror each as it is saved.
    """

    def __init__(
        self,
        session: Session,
        *,
        mirror: Mirror,
        leaf: str,
        newest: str,
        threads: SyncCaller,
        once: bool = False,
        into: bool = False,
        owners: Owners | None = None,
        given: Any = None,
        context: Mapping[str, Any] | None = None,
        stops: Stops | None = None,
        at_once: bool = False,
    ) -> None:
        self.session = session
        self.error: HitlError | None = None
        self.ended = False
        self.stopped_by = ""
        self.leaf = leaf
        self.newest = newest
        self._mirror = mirror
        self._thread = their_thread(session.info)
        self._once = once
        self._into = into
        self._guard: AnswerGuard | None = None
        """Answers that tasks may have received before, while they run again."""
        self._owners = owners
        self._given = given
        self._context = context
        self._stops = stops
        self._at_once = at_once
        self._appending = asyncio.Lock()
        self._append_error: Exception | None = None
        """What went wrong when a superstep was mirrored while the run went on."""
        self._due = ""
        self._pause_asked = False
        self.is_being_cancelled = False
        self._run_error: HitlError | None = None
        self._stop_reason = ""
        self._threads = threads
        self._superstep: Superstep | None = None
        self._task: asyncio.Task[object] | None = None
        self._inside: LiveRuns | None = None
        self._unmirrored = False
        self._mirroring: asyncio.Task[None] | None = None
        self._continues = True
        """Whether the next superstep continues an earlier run, as LangGraph counts."""
        self._may_be_held = False
        """Whether a server checked before the superstep whether the graph was compiled to stop there."""
        self._woken = asyncio.Event()
        """Set when a subgraph has saved something, or the superstep is over."""

    @property
    def node_in_flight(self) -> str:
        """The running superstep's nodes, "" between supersteps."""
        return self._superstep.node if self._superstep else ""

    def pause(self) -> None:
        """Stop after the running superstep; in a subgraph after the subgraph's running superstep."""
        self._pause_asked = True
        self._mirror.app.drain()

    def end_with_error(self, error: HitlError) -> None:
        """End after the running superstep with an error that no node has caused."""
        self._run_error = error
        self.pause()

    def stop_attempt(self, why: str) -> bool:
        """Stop the running superstep; returns False if none runs.  Call it on the run's loop."""
        self._pause_asked = True
        if self._superstep is None or self._task is None:
            return False
        self._stop_reason = why
        self._mirror.app.drop()
        self._task.cancel()
        return True

    async def steps(self) -> AsyncGenerator[str, None]:
        """Run until something stops it; yields the nodes of each superstep after it."""
        session = self.session
        self._task = asyncio.current_task()
        session.stops = self._stops
        has_started = idle = False
        code = 0
        try:
            with session.writing(self._resumed_cursor()) as taken, session.keeping_lease():
                try:
                    if taken or self._may_begin():
                        self._guard = self._answers_given()
                        command = None if taken or self._takes_input else await self._begin()
                        has_started = True
                        session.emit(RunStarted(session.thread_id, session.progress))
                        first = True
                        while self._goes_on(first):
                            before = session.state
                            node = await self._run_superstep(command)
                            if not node:
                                break
                            first, command, self._guard, self._given = False, None, None, None
                            self._due = self._stopped_after(node, before)
                            yield node
                    idle = not has_started
                except HitlError as error:
                    # No node has caused it: the run was refused, or somebody else has moved the thread.
                    code, session.notice = int(error.exit_code), str(error)
                    raise
                finally:
                    self.ended = True
                    if session.cursor.status == "running":
                        session.commit_cursor(replace(session.cursor, status="waiting", reason="paused"))
        finally:
            session.stops = None
            if has_started and self._owners is not None:
                await self._owners.settle()
            if self.is_being_cancelled:
                await await_cancel(session)
            if has_started or idle:
                session.emit(RunEnded(session.progress, code))

    async def take_input(self) -> None:
        """Commit the input as a step, without running nodes."""
        with self.session.writing():
            await self._run_superstep()

    @property
    def _takes_input(self) -> bool:
        """Whether the run begins with an input."""
        return self._given is not None

    def _resumed_cursor(self) -> Cursor | None:
        """The running cursor of a thread that is merely paused, with no requests or answers; else None."""
        if self._takes_input:
            return None
        cursor = self.session.cursor
        paused = (cursor.status, cursor.reason) == ("waiting", "paused") and not cursor.pending
        if not paused or cursor.head < 0 or kept_answers(cursor):
            return None
        return _running(cursor)

    async def _begin(self) -> Any:
        """Set the cursor to running; returns the input or command that starts the run."""
        session, before = self.session, self.session.cursor
        pass_breakpoints(session)
        command = await self._resumption()
        cursor = _running(session.cursor)
        limit = self._mirror.app.recursion_limit
        if before.pending or before.status == "failed" or command is not None:
            # For LangGraph this is a new run, which counts its supersteps from here.
            allowed = cursor.iteration + limit + _MORE_WHEN_RESUMED
            cursor = replace(cursor, limits=Limits(max_iterations=allowed))
            self._continues = False
        session.commit_cursor(cursor)
        return command

    def _steps_left(self, cursor: Cursor) -> int:
        """Return the number of supersteps left of the graph's recursion_limit."""
        return (cursor.limits.max_iterations or self._mirror.app.recursion_limit) - cursor.iteration

    def _is_out_of_steps(self, cursor: Cursor) -> bool:
        """Whether the graph's recursion_limit is reached."""
        return not self._mirror.app.runs_through and self._steps_left(cursor) <= 0

    def _stop_at_limit(self, note: str) -> None:
        session = self.session
        cursor = replace(session.cursor, status="failed", reason="limit")
        entry = journal.ledger_entry(cursor, "stop", at=session.clock(), note=note, data={"reason": "limit"})
        session.commit_cursor(cursor, [entry])

    def _may_begin(self) -> bool:
        cursor = self.session.cursor
        if self._takes_input:
            return True
        if cursor.head < 0 or cursor.status in ("completed", "cancelled"):
            return False
        # A thread that waits for several answers continues with those that it has.
        return all(request.breakpoint for request in cursor.pending) or bool(kept_answers(cursor))

    def _goes_on(self, first: bool) -> bool:
        session, cursor = self.session, self.session.cursor
        if self._takes_input:
            return True
        if cursor.status != "running":
            return False
        if self._run_error:
            raise self._run_error
        if self._is_out_of_steps(cursor):
            self._stop_at_limit(f"recursion_limit of {self._mirror.app.recursion_limit} supersteps")
            return False
        if self._pause_asked or self._due or (self._once and not first):
            self.stopped_by = self._due
            return False
        node = cursor.next_node or ""
        if self._stops and not self._once:
            for name in names_in(node, self._mirror.app.graph.nodes):
                self.stopped_by = self._stops.before(session, name, first) or self.stopped_by
        return not self.stopped_by

    def _stopped_after(self, node: str, before: LiveState) -> str:
        """Return the breakpoint that stops after a superstep, "" for none."""
        if self._stops is None:
            return ""
        asked = [
            self._stops.after(self.session, name, before)
            for name in names_in(node, self._mirror.app.graph.nodes)
        ]
        return next(filter(None, asked), "")

    async def _run_superstep(self, command: Any = None) -> str:
        """Run one superstep and mirror it; returns its nodes, "" if the run is over.

        Args:
            command: the answers that it begins with; None to continue.
        """
        given = command if self._given is None else self._given
        superstep, error = await self._run(given, pinned=self.leaf != self.newest)
        if isinstance(error, Moved) and self.leaf == self.newest:
            # Another line has the thread's newest checkpoint, or another program has continued this one.
            await self._check_leaf(str(error))
            self.newest = str(error)
            superstep, error = await self._run(given, pinned=True)
        if isinstance(error, Moved):
            raise await stale(self._mirror.app, self._thread, str(error))
        return await self._settle(superstep, error)

    async def _run(self, given: Any, *, pinned: bool) -> tuple[Superstep, BaseException | None]:
        app = self._mirror.app
        inside = self._inside = self._live_runs() if self._mirror.opens else None
        superstep = Superstep(
            self.session,
            self.leaf,
            pinned=pinned,
            given=self._given,
            single=app.single,
            inside=inside,
            on_saved=self._on_saved() if self._at_once else None,
        )
        leg = self._leg()
        context = self.session.cursor.context if self._context is None else self._context
        config = config_of(self._thread, self.leaf if pinned else "")
        config["configurable"] = {**configurable_of(context), **config["configurable"]}
        checks_first = app.is_on_server and leg.continues and not pinned and not self._has_failed()
        if checks_first:
            config["configurable"][RESUMING] = False
        self._may_be_held = checks_first or self._at_once
        options: dict[str, Any] = {"into": self._into, "leg": leg}
        if self._at_once:
            options["durability"] = "sync"  # a superstep is mirrored as soon as it is reported
        else:
            options["interrupt_before" if self._takes_input else "interrupt_after"] = "*"
        if (given_context := context_of(app.root, context)) is not None:
            options["context"] = given_context
        self._superstep = superstep
        app.carried, self._continues = None, True
        try:
            if app.is_async:
                with guarded(self._guard):
                    await app.run_async(given, config, superstep.on_part, **options)
            else:
                work = partial(self._run_guarded, given, config, superstep.on_part, **options)
                job = self._threads.job(work, ()) if app.was_quick and not self._at_once else None
                await (job or self._threads.call(work))
        except (AnswerRefused, ServerBusy, ServerRefused):
            raise
        except (Exception, Dropped, asyncio.CancelledError) as raised:
            if self._append_error is not None:
                await self._stop_server()
                raise self._append_error from None
            if isinstance(raised, Moved) and self._at_once:
                await self._stop_server()
            return superstep, None if is_drained(raised) else raised
        finally:
            self._superstep = None
            await self._end_inside(superstep)
        app.carried = leg.end()
        return superstep, None

    def _has_failed(self) -> bool:
        """Whether the next superstep was tried before: what its tasks have done is kept."""
        return self.session.cursor.attempt > 1

    def _leg(self) -> Leg:
        """Return which part of a LangGraph run the next superstep is."""
        app = self._mirror.app
        if self._given is not None or app.ns or app.runs_through:
            return Leg()
        left = self._steps_left(self.session.cursor)
        return Leg(left, continues=self._continues, carried=app.carried)

    def _run_guarded(self, *given: Any, **options: Any) -> None:
        with guarded(self._guard):
            self._mirror.app.run(*given, **options)

    def _answers_given(self) -> AnswerGuard | None:
        """Return the answers that re-run tasks may get; None if there are no answers."""
        cursor, store = self.session.cursor, self._mirror.store
        again = cursor.pending or kept_answers(cursor) or cursor.status == "failed" or cursor.attempt > 1
        if not again or not can_guard(self._mirror.app.root):
            return None
        given = answers_given(decisions(store, self.session.thread_id))
        return AnswerGuard(given) if given else None

    def _unused(
        self, node: str, asked: Collection[AskedInterrupt] | None, written: Sequence[LedgerEntry] = ()
    ) -> list[LedgerEntry]:
        """Return ledger entries for answers that nodes did not use when they ran again.

        Args:
            asked: the open interrupts; None if the nodes have ended.
            written: earlier entries of the same commit.
        """
        session, entries = self.session, list(written)
        handed = kept_answers(session.cursor)
        waiting, places = {each.id for each in asked or ()}, {each.place for each in asked or ()}
        for given in self._guard.unserved() if self._guard else ():
            is_over = given.request in handed if asked is None else given.place in places
            if is_over and given.request not in waiting:
                said = journal.after_entries(session.cursor, entries)
                kept = KeptAnswer("", given.value, given.n)
                entries.append(unused_entry(session, said, kept, node))
        return entries[len(written) :]

    def _live_runs(self) -> LiveRuns:
        loop = asyncio.get_running_loop()

        def saved() -> None:
            with suppress(RuntimeError):  # the thread was closed in the meantime
                loop.call_soon_threadsafe(self._saved_inside)

        return LiveRuns(self.session, self._mirror, saved)

    def _saved_inside(self) -> None:
        """Mirror what subgraphs have saved, while they run."""
        self._unmirrored = True
        self._woken.set()
        if self._mirroring is None and self._superstep is not None and self._superstep.before is not None:
            self._mirroring = asyncio.get_running_loop().create_task(self._mirror_inside(self._superstep))

    async def _mirror_inside(self, superstep: Superstep) -> None:
        """Mirror subgraphs; may need several attempts, as LangGraph reports a checkpoint before saving it."""
        wait = _FIRST_LOOK
        try:
            while self._superstep is superstep and superstep.before is not None and wait < _LAST_LOOK:
                self._unmirrored, complete = False, False
                try:
                    await self._mirror.sync_inside(self.session.thread_id, superstep.before, settles=False)
                    complete = self._inside is None or self._inside.report_mirrored(self._mirror.store)
                except Exception as error:  # ignored: everything is mirrored again at the superstep's end
                    log.info("thread %s: what runs inside is mirrored later: %s", self._thread, error)
                if self._unmirrored:
                    wait = _FIRST_LOOK
                elif complete:
                    return
                else:
                    self._woken.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._woken.wait(), wait)
                    wait *= 2
        finally:
            self._mirroring = None

    async def _end_inside(self, superstep: Superstep) -> None:
        if self._mirroring is not None:
            self._woken.set()
            await asyncio.wait([self._mirroring])
        inside, self._inside = self._inside, None
        if inside is not None and inside.end() and superstep.before is not None and superstep.is_open:
            await self._mirror.sync_inside(self.session.thread_id, superstep.before)

    async def _check_leaf(self, newest: str) -> None:
        """Check that nobody has continued from the leaf; any newer checkpoint must be of another line.

        Raises:
            StaleWriter: somebody has continued from it.
        """
        app, before = self._mirror.app, ""
        while page := await app.history(self._thread, before=before, limit=_PAGE):
            if any(saved.parent == self.leaf for saved in page):
                raise await stale(app, self._thread, newest)
            before = page[-1].id
            if before <= self.leaf:
                return

    async def _resumption(self) -> Any:
        """Return the command that starts the run: answers by interrupt id, or None.

        Raises:
            AnswerRefused: the graph no longer asks what was answered.
        """
        if not kept_answers(self.session.cursor):
            return None
        leaf = await self._mirror.app.state(config_of(self._thread, self.leaf), subgraphs=True)
        if leaf is not None:
            self._mirror.settle(self.session, leaf)
        answers = kept_answers(self.session.cursor)
        return resume(answers, self._mirror.asked_by(leaf)) if leaf and answers else None

    async def _settle(self, superstep: Superstep, error: BaseException | None) -> str:
        session = self.session
        if not superstep.mirrored and superstep.leaf != self.leaf:
            self.leaf = self.newest = superstep.leaf
        if self._at_once and (error is None or is_limit_of_server(error)):
            await self._read_missed(superstep)
        elif error is None and superstep.before is not None and superstep.is_open:
            # An older LangGraph does not report the checkpoint after which it stops.
            newest = await self._mirror.app.state(config_of(self._thread), subgraphs=True)
            if newest is not None and (newest.source, newest.parent) == ("loop", superstep.before.id):
                superstep.close(newest)
            elif newest is not None and newest.id != superstep.before.id:
                raise await stale(self._mirror.app, self._thread, newest.id)
        if superstep.after:
            await self._read_saved(superstep)
        await self._append_saved(superstep, is_over=error is None)
        node = superstep.mirrored
        if not node or self._at_once:
            self._keep_attempt(superstep)
        refusal = refusal_of(error) if error is not None else None
        if error is not None and refusal is None:
            if is_limit_of_server(error):
                self._stop_at_limit("recursion_limit of the graph on its server")
            else:
                self._failed(superstep, error)
            return ""
        leaf = superstep.before
        if not node:
            # Nothing was saved: the run waits for answers, or there was nothing to run.
            config = config_of(self._thread, self.leaf if self.leaf != self.newest else "")
            leaf = await self._mirror.app.state(config, subgraphs=True)
            self._hand_woken(leaf, refusal)
            if leaf is not None:
                self._note_held(superstep, leaf)
                await self._report_inside(leaf)
        elif self._mirror.app.runs_through or self._at_once:
            leaf = await self._mirror.app.state(config_of(self._thread), subgraphs=True)
            if leaf is not None:
                self._note_held(superstep, leaf)
        is_over = self._mirror.app.runs_through or self._at_once or not (node and leaf and leaf.tasks)
        if leaf is not None and (is_over or self._mirror.stops_compiled_in(session, leaf)):
            self._mirror.settle(session, leaf)
        return node

    async def _append_saved(self, superstep: Superstep, *, is_over: bool) -> None:
        """Mirror the checkpoints that a superstep has saved.

        Args:
            is_over: the run has ended, without an error.
        """
        async with self._appending:
            while superstep.after:
                (before, saved), is_last = superstep.after.pop(0), not superstep.after
                await self._append_step(superstep, before, saved, is_last=is_last, ends=is_over and is_last)

    async def _append_step(
        self, superstep: Superstep, before: Saved | None, saved: Saved, *, is_last: bool, ends: bool
    ) -> None:
        session = self.session
        self.leaf = self.newest = saved.id
        if is_no_step(before, saved):
            return
        facts = facts_of(
            before,
            saved,
            duration=max(superstep.durations.values(), default=0),
            durations=superstep.durations,
            attempts=superstep.attempts,
            streamed=superstep.streams.texts if superstep.streams.used else (),
            unkept=superstep.unkept() if is_last else (),
            calls=superstep.calls,
        )
        if before is not None:
            threads = await self._mirror.sync_inside(session.thread_id, before)
            facts = inside_of(facts, before, threads)
        pauses = self._once and ends and bool(saved.tasks) and not self._mirror.app.has_stops
        unused = [] if superstep.mirrored else self._unused(facts.node, None)
        options: dict[str, Any] = {"context": self._context, "ledger": unused}
        self._mirror.append(session, before, saved, facts, pauses=pauses, **options)
        self._context = None
        superstep.mirrored = facts.node or START

    def _on_saved(self) -> Callable[[Superstep], None]:
        """Return a function that mirrors a saved superstep while the run continues, and waits until it is."""
        loop, ours = asyncio.get_running_loop(), copy_context()  # the run's thread has one of its own

        async def mirror(superstep: Superstep) -> None:
            if self._superstep is not superstep:
                raise Dropped  # the run was given up
            try:
                await self._read_saved(superstep, while_running=True)
                await self._append_saved(superstep, is_over=False)
                if self.session.cursor.status == "pending":  # the step was the input
                    self.session.commit_cursor(_running(self.session.cursor))
            except Exception as error:
                self._append_error = error
                raise
            superstep.begin_next()
            if self._pause_asked:
                self.stop_attempt("paused")

        def wait(superstep: Superstep) -> None:
            ours.run(asyncio.run_coroutine_threadsafe, mirror(superstep), loop).result()

        return wait

    async def _stop_server(self) -> None:
        """Cancel a server's run of the thread: nobody follows it any more."""
        app = self._mirror.app
        with suppress(HitlError):
            await app.call(partial(app.root.cancel, self._thread))

    async def _read_missed(self, superstep: Superstep) -> None:
        """Read what a run has saved while the connection to its server was lost.

        Raises:
            StaleWriter: the thread's newest checkpoint does not follow the one that was reported last.
        """
        app = self._mirror.app
        reported = superstep.before.id if superstep.before else self.leaf
        line = [saved for saved in [await app.state(config_of(self._thread))] if saved is not None]
        while line and line[-1].id != reported and line[-1].parent:
            before = await app.state(config_of(self._thread, line[-1].parent))
            if before is None:
                break
            line.append(before)
        if line and line[-1].id != reported and reported:
            raise await stale(app, self._thread, line[0].id)
        line.reverse()
        if len(line) == 2 and reported and superstep.is_open:
            superstep.close(line[1])  # an older LangGraph does not report the checkpoint after which it stops
        elif saved := line[1:] if reported else line:
            superstep.catch_up(zip(line if reported else (None, *line), saved, strict=False))

    def _note_held(self, superstep: Superstep, leaf: Saved) -> None:
        """Note that a server's graph was compiled to stop before all nodes; its drawing does not tell."""
        waits = any(task.error or task.interrupts for task in leaf.tasks)
        if not self._may_be_held or self._pause_asked or superstep.is_open or waits or not leaf.tasks:
            return
        if not self._mirror.stops_compiled_in(self.session, leaf):
            self._mirror.app.root.interrupt_before_nodes = ALL

    async def _read_saved(self, superstep: Superstep, *, while_running: bool = False) -> None:
        """Read a superstep's saved checkpoints; LangGraph reports each before it is stored.

        Args:
            while_running: those that were not stored yet are mirrored as they were reported.
        """
        app = self._mirror.app
        known, read = app.newest, dict[str, Saved | None]()
        if known is not None:
            read[known.id] = known
        try:
            for checkpoint in superstep.unread(known):
                read[checkpoint] = await app.saved(self._thread, checkpoint)
        except Exception as error:  # if it can't be read, it most likely was not written
            log.info("thread %s: what was stored is looked up later: %s", self._thread, error)
        if not while_running or all(read.get(saved.id) for _, saved in superstep.after):
            superstep.take_saved(read)
        app.newest = read.get(superstep.after[-1][1].id) if superstep.after else known

    def _keep_attempt(self, superstep: Superstep) -> None:
        """Record the use of an attempt that saved no checkpoint, and the texts of its finished tasks."""
        session, unkept, texts = self.session, superstep.unkept(), superstep.finished_texts()
        if unkept or texts:
            cursor = journal.with_use(session.cursor, unkept, 0)
            streamed = newest_texts((*cursor.streamed, *texts))
            session.commit_cursor(replace(cursor, uses=(*cursor.uses, *unkept), streamed=streamed))

    async def _report_inside(self, leaf: Saved) -> None:
        """Mirror the subgraphs that have started, and report their progress."""
        session, store = self.session, self._mirror.store
        node = place_of(leaf.next)
        for thread in (await self._mirror.sync_inside(session.thread_id, leaf)).values():
            child = Session.recorded(store, thread)
            if child.cursor.status != "completed":
                session.emit(ChildMoved(node, node, thread, "", child.progress))

    def _hand_woken(self, leaf: Saved | None, refusal: AnswerRefused | None) -> None:
        """Drop answers that the graph has received or refused; keep those that it has not reached."""
        session = self.session
        answers = kept_answers(session.cursor)
        asked = {each.id: each for each in self._mirror.asked_by(leaf)} if leaf else {}
        kept = {name for name in answers if refusal and name in asked and not asked[name].refused}
        ledger: list[LedgerEntry] = []
        for name in answers:
            if refusal and name in asked and asked[name].refused:
                data = {"answer": answers[name], "why": refusal.message}
                ledger.append(decision_entry(session, ledger, "refused", request_id=name, data=data))
        ledger += self._unused(place_of(leaf.next) if leaf else "", asked.values(), ledger)
        self.error = refusal
        if answers or ledger:
            session.commit_cursor(without_answers(session.cursor, answers.keys() - kept), ledger)

    def _failed(self, superstep: Superstep, error: BaseException) -> None:
        session = self.session
        cursor = replace(session.cursor, attempt=session.cursor.attempt + 1)
        node = superstep.failed or cursor.next_node or ""
        if isinstance(error, (Dropped, asyncio.CancelledError)):
            if self._task and isinstance(error, asyncio.CancelledError):
                self._task.uncancel()
            session.commit_cursor(replace(cursor, status="waiting", reason="paused"))
            session.emit(AttemptDropped(node, session.cursor.attempt - 1, self._stop_reason))
            return
        message = f"node {node!r} failed: {described(error)}"
        self.error = NodeFailed(message, "")
        info = ErrorInfo(
            node,
            session.cursor.attempt,
            self.error.title,
            message,
            "",
            "".join(traceback.format_exception(error)),
            frames=frames_of(error, masks_of(session.graph, session.state)),
        )
        entry = journal.ledger_entry(cursor, "failed", at=session.clock(), note=message, data={"node": node})
        session.commit_cursor(replace(cursor, status="failed", reason="node_error", error=info), [entry])
        session.emit(AttemptFailed(info))


def _running(cursor: Cursor) -> Cursor:
    return replace(cursor, status="running", reason="", error=None)
