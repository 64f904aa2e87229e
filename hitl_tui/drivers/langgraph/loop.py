"""The run loop of a LangGraph thread: one superstep of theirs after the other, each mirrored as it is saved.

It has the face of `engine.run.loop.RunLoop`, so that whoever drives a run drives both.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncGenerator, Callable
from typing import Any

from msgspec.structs import replace

from hitl_tui.drivers.langgraph.mirror import Mirror, is_no_step, their_thread
from hitl_tui.drivers.langgraph.pregel import START_NODE, Part, Saved, TaskRun, config_of, saved_of_event
from hitl_tui.drivers.langgraph.steps import branch_path, facts_of, in_order, model_use, place_of, tool_use
from hitl_tui.engine.log.events import (
    AttemptDropped,
    AttemptFailed,
    BranchEnded,
    BranchStarted,
    Event,
    ModelCalled,
    NodeStarted,
    RunEnded,
    RunStarted,
    TextStreamed,
    ToolCalled,
)
from hitl_tui.engine.log.outcomes import BranchOutcome, ErrorInfo
from hitl_tui.engine.log.records import START
from hitl_tui.engine.nodes.activity import StreamKeeper
from hitl_tui.engine.nodes.attempt import masks_of
from hitl_tui.engine.nodes.calling import SyncCaller
from hitl_tui.engine.nodes.frames import frames_of
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.breakpoints import Stops
from hitl_tui.engine.thread.interrupts import ANSWER
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, NodeFailed, StaleWriter


class Dropped(BaseException):
    """The superstep in flight is given up; nothing of theirs catches it."""


class Superstep:
    """One superstep while it runs: what it was begun on, what its tasks have done, what came of it.

    Args:
        tell: gets events; it may be called in any thread.
        leaf: the checkpoint that it must go on from.
        pinned: it goes on from an older one than the thread's newest.
        given: the input that it begins with, None where it goes on.
    """

    def __init__(
        self,
        session: Session,
        tell: Callable[[Event], None],
        leaf: str,
        *,
        pinned: bool = False,
        given: Any = None,
    ) -> None:
        self._session = session
        self._tell = tell
        self._leaf = leaf
        self._pinned = pinned
        self._given = given
        self.before: Saved | None = None
        self.after: list[tuple[Saved | None, Saved]] = []
        """The checkpoints that it has saved, each with the one before."""
        self.moved_to = ""
        """The checkpoint that the thread was at in place of `leaf`, "" for that."""
        self.streams = StreamKeeper()
        self.durations: dict[str, int] = {}
        self._started: dict[str, int] = {}
        self._tasks: dict[str, TaskRun] = {}
        self._announced = False
        self._asked: dict[str, Any] = {}

    @property
    def node(self) -> str:
        """What runs now."""
        return place_of(dict.fromkeys(task.name for task in self._tasks.values()))

    @property
    def failed(self) -> str:
        """The node of a task that has begun and not ended."""
        open_tasks = [task.name for key, task in self._tasks.items() if key not in self.durations]
        return open_tasks[0] if open_tasks else self.node

    def hear(self, part: Part) -> bool:
        """Take what the run tells; False where it must not go on."""
        ns, mode, data = part
        if mode == "checkpoints" and not ns:
            return self._checkpoint(data)
        if mode == "tasks" and not ns:
            self._task(data)
        elif mode == "messages":
            self._message(*data, ns=ns)
        elif mode == "custom":
            self._text("" if isinstance(data, str) else "custom", _words(data), path="/".join(ns))
        return True

    def _checkpoint(self, data: Any) -> bool:
        now = self._session.clock()
        saved = saved_of_event(data, now)
        if self.before is None:
            if not self._follows(saved):
                self.moved_to = saved.id
                return False
            self.before = saved
            if saved.id != self._leaf:
                self.after.append((None, saved))
            return True
        self.after.append((self.before._replace(tasks=self._done(self.before)), saved))
        self.before = saved
        self._tasks, self._started, self._announced = {}, {}, False
        return True

    def _follows(self, saved: Saved) -> bool:
        """Whether a run that begins with this checkpoint goes on from where it should.

        Input makes a checkpoint of its own, as does what is pinned to an older one.
        """
        if self._given is not None:
            return (saved.source, saved.parent) == ("input", self._leaf)
        copied = self._pinned and (saved.source, saved.parent) == ("fork", self._leaf)
        return copied or saved.id == self._leaf

    def _done(self, before: Saved) -> tuple[TaskRun, ...]:
        """The tasks with what they have written; of the one that takes the input nothing is told."""
        if [task.name for task in before.tasks] == [START_NODE]:
            return (before.tasks[0]._replace(result=self._given),)
        return tuple(self._tasks.get(task.id, task) for task in before.tasks)

    def _task(self, data: Any) -> None:
        now, key = self._session.clock(), data["id"]
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
        self._tasks[key] = known._replace(result=data["result"], error=data["error"], interrupts=interrupts)
        tasks = in_order(self._tasks.values())
        place = [task.id for task in tasks].index(key)
        if len(tasks) > 1 and not interrupts:
            status: Any = "failed" if data["error"] else "ok"
            path = branch_path(tasks, place)
            outcome = BranchOutcome(path, known.name, place, status, attempts=1, duration=self.durations[key])
            self._tell(BranchEnded(place_of(dict.fromkeys(task.name for task in tasks)), outcome, now))

    def _announce(self) -> None:
        """Tell what runs, once all of its tasks are known."""
        if self._announced or not self._tasks:
            return
        self._announced = True
        tasks = in_order(self._tasks.values())
        now = self._session.clock()
        node, step = place_of(dict.fromkeys(task.name for task in tasks)), self._session.cursor.head + 1
        self._tell(NodeStarted(node, step, self._session.cursor.attempt, now))
        for place, task in enumerate(tasks):
            if len(tasks) > 1:
                path = branch_path(tasks, place)
                self._tell(BranchStarted(node, path, task.name, place, len(tasks), 1, now))

    def _path(self, task_id: str) -> str:
        tasks = in_order(self._tasks.values())
        place = next((place for place, task in enumerate(tasks) if task.id == task_id), None)
        return "" if place is None else branch_path(tasks, place)

    def _message(self, message: Any, about: Any, *, ns: tuple[str, ...]) -> None:
        """A message, or a piece of one, that a model or a node has written."""
        self._announce()
        scope = str(about.get("langgraph_checkpoint_ns") or "").split("|")[0]
        task_id = scope.partition(":")[2]
        path = "/".join(filter(None, (self._path(task_id), *(part.partition(":")[0] for part in ns))))
        agent = str(about.get("lc_agent_name") or about.get("ls_model_name") or "model")
        for call in getattr(message, "tool_calls", None) or ():
            self._asked[str(call.get("id"))] = (call.get("name"), call.get("args"))
        if message.type == "tool":
            _, arguments = self._asked.get(message.tool_call_id, ("", None))
            use = tool_use(message, arguments, agent, path)
            self._tell(ToolCalled(self.node, agent, use.tool, use.arguments, use.result, use.error, 0, path))
            return
        if message.type not in ("ai", "AIMessageChunk"):
            return
        self._text(agent, _words(message.content), path=path)
        if (used := model_use(message, agent)) is not None and (used.tokens_in or used.tokens_out):
            model = used.model or str(about.get("ls_model_name") or "")
            self._tell(ModelCalled(self.node, agent, model, used.tokens_in, used.tokens_out, None, 0, path))

    def _text(self, agent: str, text: str, *, path: str = "") -> None:
        if text:
            self._announce()
            self.streams.add(text, agent, path, self._session.cursor.attempt)
            self._tell(TextStreamed(self.node, agent, text, path))


def _words(content: Any) -> str:
    """The text of a message's content, or of what a node has written to its stream."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_words(block) for block in content)
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else "" if "type" in content else f"{content}\n"
    return f"{content}\n"


class PregelLoop:
    """One run of a thread of theirs, or one superstep of it.

    Args:
        session: the line in the mirror.
        leaf: the newest checkpoint of the line.
        once: stop after one superstep.
        given: the input to begin with; None goes on.
    """

    def __init__(
        self,
        session: Session,
        *,
        mirror: Mirror,
        leaf: str,
        once: bool = False,
        given: Any = None,
        stops: Stops | None = None,
        threads: SyncCaller | None = None,
    ) -> None:
        self.session = session
        self.error: HitlError | None = None
        self.ended = False
        self.stopped_by = ""
        self.leaf = leaf
        self._mirror = mirror
        self._thread = their_thread(session.info)
        self._once = once
        self._given = given
        self._stops = stops
        self._due = ""
        self._pause_asked = False
        self._trouble: HitlError | None = None
        self._drop_reason = ""
        self._pinned: bool | None = None
        self._superstep: Superstep | None = None
        self._task: asyncio.Task[object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def node_in_flight(self) -> str:
        """What runs now, "" between supersteps."""
        return self._superstep.node if self._superstep else ""

    def pause(self) -> None:
        """Stop behind the superstep in flight."""
        self._pause_asked = True

    def break_off(self, error: HitlError) -> None:
        """End behind the superstep in flight because of something that no node is to blame for."""
        self._trouble = error
        self.pause()

    def give_up(self) -> None:
        """Let the superstep in flight know that its run ends."""
        self.drop_attempt("the run ends")

    def drop_attempt(self, why: str) -> bool:
        """Give up the superstep in flight; False where none is.  Call it on the run's loop."""
        self._pause_asked = True
        if self._superstep is None or self._task is None:
            return False
        self._drop_reason = why
        if self._mirror.app.is_async:
            self._task.cancel()
        else:
            self._mirror.app.interrupt(Dropped)
        return True

    async def steps(self) -> AsyncGenerator[str, None]:
        """Run until something stops it; yields what ran after each superstep."""
        session = self.session
        self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        session.stops = self._stops
        begun = False
        try:
            with session.writing(), session.keeping():
                try:
                    if self._may_begin():
                        begun = True
                        session.commit_cursor(
                            replace(session.cursor, status="running", reason="", error=None)
                        )
                        session.emit(RunStarted(session.thread_id, session.progress))
                        first = True
                        while self._goes_on(first):
                            before = session.state
                            node = await self._run_superstep()
                            if not node:
                                break
                            first = False
                            if self._stops:
                                self._due = self._stops.after(session, node, before)
                            yield node
                finally:
                    self.ended = True
                    if session.cursor.status == "running":
                        session.commit_cursor(replace(session.cursor, status="waiting", reason="paused"))
        finally:
            session.stops = None
            if begun:
                session.emit(RunEnded(session.progress))

    async def take_input(self) -> None:
        """Commit the input as a step; nothing else runs."""
        self._loop = asyncio.get_running_loop()
        with self.session.writing():
            await self._run_superstep()

    def _may_begin(self) -> bool:
        cursor = self.session.cursor
        if cursor.head < 0 or cursor.status in ("completed", "cancelled"):
            return False
        # One that waits for several answers goes on with those that it has.
        return not cursor.pending or any(kept.key.startswith(ANSWER) for kept in cursor.exchanges)

    def _goes_on(self, first: bool) -> bool:
        session, cursor = self.session, self.session.cursor
        if cursor.status != "running":
            return False
        if self._trouble:
            raise self._trouble
        if self._pause_asked or self._due or (self._once and not first):
            self.stopped_by = self._due
            return False
        node = cursor.next_node or ""
        if self._stops and not self._once and (why := self._stops.before(session, node, first)):
            self.stopped_by = why
            return False
        return True

    async def _run_superstep(self) -> str:
        """Run one superstep and mirror it; "" where the run is over."""
        if self._pinned is None:
            newest = await self._mirror.app.state(config_of(self._thread))
            self._pinned = newest is not None and newest.id != self.leaf
        superstep = self._superstep = Superstep(
            self.session, self._tell, self.leaf, pinned=self._pinned, given=self._given
        )
        error: BaseException | None = None
        config = config_of(self._thread, self.leaf if self._pinned else "")
        given = self._resumption() if self._given is None else self._given
        stop = "interrupt_after" if self._given is None else "interrupt_before"
        try:
            await self._mirror.app.run(given, config, superstep.hear, **{stop: "*"})
        except (Exception, Dropped, asyncio.CancelledError) as raised:
            error = raised
        finally:
            self._superstep = None
        return await self._settle(superstep, error)

    def _tell(self, event: Event) -> None:
        """Tell an event from the graph's thread, in order with what is told on the run's loop."""
        if self._mirror.app.is_async:
            self.session.emit(event)
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(self.session.emit, event)

    def _resumption(self) -> Any:
        """What the run is begun with: answers by their interrupts' ids, or None."""
        answers = {
            kept.key.removeprefix(ANSWER): kept.value
            for kept in self.session.cursor.exchanges
            if kept.key.startswith(ANSWER)
        }
        if not answers:
            return None
        from langgraph.types import Command

        return Command(resume=answers)

    async def _settle(self, superstep: Superstep, error: BaseException | None) -> str:
        session = self.session
        if superstep.moved_to:
            raise StaleWriter(
                f"somebody else has run thread {self._thread!r}: it is at checkpoint {superstep.moved_to}",
                "look at what changed, then go on",
            )
        node = ""
        for before, saved in superstep.after:
            self.leaf, self._pinned = saved.id, False
            if is_no_step(before, saved):
                continue
            facts = facts_of(
                before,
                saved,
                duration=max(superstep.durations.values(), default=0),
                durations=superstep.durations,
                streamed=superstep.streams.texts if superstep.streams.used else (),
            )
            self._mirror.append(session, before, saved, facts)
            node = facts.node or START
        if error is not None:
            self._failed(superstep, error)
            return ""
        leaf = superstep.before
        if not node:
            # Nothing was saved: it waits for answers, or there was nothing to run.
            leaf = await self._mirror.app.state(config_of(self._thread, self.leaf if self._pinned else ""))
        if leaf is not None and not (node and leaf.tasks):
            self._mirror.settle(session, leaf)
        return node

    def _failed(self, superstep: Superstep, error: BaseException) -> None:
        session = self.session
        cursor = replace(session.cursor, attempt=session.cursor.attempt + 1)
        node = superstep.failed or cursor.next_node or ""
        if isinstance(error, (Dropped, asyncio.CancelledError)):
            if self._task and isinstance(error, asyncio.CancelledError):
                self._task.uncancel()
            session.commit_cursor(replace(cursor, status="waiting", reason="paused"))
            session.emit(AttemptDropped(node, session.cursor.attempt - 1, self._drop_reason))
            return
        message = f"node {node!r} failed: {type(error).__name__}: {error}"
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
