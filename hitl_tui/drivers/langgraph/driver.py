"""The driver of a LangGraph thread: LangGraph runs it; reading, decisions and the log use its mirror."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from hitl_tui.drivers.breakpoints import RunStops
from hitl_tui.drivers.langgraph.audit import compare
from hitl_tui.drivers.langgraph.discovery import run_of, stale
from hitl_tui.drivers.langgraph.editing import Editor
from hitl_tui.drivers.langgraph.graph import entry_of, functions
from hitl_tui.drivers.langgraph.interrupts import repeats_of_answer, whole_subgraphs
from hitl_tui.drivers.langgraph.loop import PregelLoop
from hitl_tui.drivers.langgraph.mirror import Mirror, their_thread
from hitl_tui.drivers.langgraph.owners import OVER, Owners
from hitl_tui.drivers.langgraph.pregel import config_of
from hitl_tui.drivers.langgraph.run_context import checked, context_fields, fields_given
from hitl_tui.drivers.langgraph.subgraphs import NO_STEPS
from hitl_tui.drivers.langgraph.values import from_json
from hitl_tui.drivers.langgraph.window import Window
from hitl_tui.drivers.langgraph.window_driver import WindowDriver
from hitl_tui.drivers.protocol import Check, Checked, ContextField, Snapshot
from hitl_tui.engine.commands import (
    Command,
    DoubleText,
    Fork,
    Rerun,
    Run,
    Start,
    Step,
    UpdateState,
)
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.log.events import Preview
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import StaleWriter, UsageError

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Previewed

R = TypeVar("R")
NO_TEST: Final = (
    "LangGraph runs no single node with recorded replies: call the node's function in a test of your own, "
    "with the state that `show THREAD@STEP --json` gives"
)
NO_AGENTS: Final = "the agents of a LangGraph graph are set up in its code"
_WHY_NOT: Final[Mapping[str, str]] = {
    "rollback": "LangGraph keeps nothing that says how to undo a node",
    "rerun": "LangGraph does not tell which code a step was made by",
    "reload_graph": "a LangGraph graph is loaded anew with the program",
    "configure_agents": NO_AGENTS,
    "extend_limits": "the limit of a LangGraph thread is its graph's recursion_limit: resume the thread "
    "to run as many supersteps again, or raise it in the graph's config",
    "clear_turns": "chat turns of a LangGraph graph are in its channels: edit those",
    "write_test": NO_TEST,
    "declassify": "LangGraph does not follow what came from outside",
    "allow": "what a LangGraph graph asks is answered each time",
    "revoke": "what a LangGraph graph asks is answered each time",
}
_INSIDE_NOT: Final[Mapping[str, str]] = {
    "start": "its input comes from the node that runs it",
    "fork": "LangGraph forks a whole thread: fork the one that it runs for",
    "cancel": "it ends with the thread that it runs for: cancel that one",
}
"""What the thread of a subgraph's run can't be told, and why, by verb."""
_MOVES: Final = ("run", "step", "answer", "update_state")


class LangGraphDriver(WindowDriver):
    """Drives one line of a LangGraph thread.

    Args:
        line: the thread of the mirror.
        mirror: the mirror of its graph's threads.
        leaf: the line's newest checkpoint, "" for a thread that does not exist yet.
        newest: the newest checkpoint of the LangGraph thread, on any line.
        actor, context: who starts a thread that does not exist yet, and its context.
        window: the newest page, shown while the thread is still being mirrored.
        options: of `WindowDriver`.
    """

    def __init__(
        self,
        line: str,
        mirror: Mirror,
        leaf: str,
        newest: str,
        *,
        actor: str | None = None,
        context: Mapping[str, Any] | None = None,
        window: Window | None = None,
        **options: Any,
    ) -> None:
        def open_session() -> Session:
            session = mirror.open(line) if leaf else mirror.new(line, actor, context)
            session.notice = ". ".join(filter(None, (session.notice, mirror.notice_of(line))))
            return session

        inside = _INSIDE_NOT if mirror.outer else {}
        refusals = {**_WHY_NOT, **inside, **getattr(mirror.app.root, "refusals", {})}
        super().__init__(line, open_session, mirror.store, window=window, refusals=refusals, **options)
        self._owners = Owners(mirror)
        self._mirror = mirror
        self._refused = refusals
        self._leaf = leaf
        self._newest = newest
        self._awaited_runs: frozenset[str] = frozenset()
        self._entry: dict[str, Any] = {}
        """The input that the next run takes, and its context; empty if the input is a step already."""
        handlers: dict[type[Command[Any]], Any] = {Start: self._take_input, UpdateState: self._update_state}
        self._handlers.update(handlers)

    def _set_leaves(self, leaves: Mapping[str, str]) -> None:
        newest = max(leaves, key=leaves.__getitem__)
        self._leaf, self._newest = leaves[self.thread_id], leaves[newest]
        if newest != self.thread_id:
            self._mirror.notice(self.thread_id, f"the thread has gone on in {newest}")

    def _functions(self, session: Session, node: str) -> tuple[Any, ...]:
        return functions(self._mirror.app.graph, node)

    async def snapshot(self) -> Snapshot:
        """Return everything a screen needs to begin."""
        await self._engine.call(self._check_owner())
        return await super().snapshot()

    async def close(self) -> str:
        """Stop at once and end the worker threads that this line's runs kept."""
        try:
            return await super().close()
        finally:
            self._mirror.app.end_threads()

    async def _check_owner(self) -> None:
        """For a subgraph's thread: check whether its parent's task still waits for it."""
        if self._mirror.outer is None:
            return
        newest = self._leaf == self._newest
        is_open = newest and await self._owners.are_unfinished(their_thread(self._opened().info))
        self._refusals = self._refused if is_open else {**dict.fromkeys(_MOVES, OVER), **self._refused}

    async def _with_graph(self, *, ask: bool = True) -> Session:
        """Return the session: LangGraph runs the graph, so there is none to load."""
        return self._opened()

    async def context_fields(self) -> tuple[ContextField, ...]:
        """See `Driver.context_fields`."""

        def wanted(session: Session) -> tuple[ContextField, ...]:
            given = session.exists or fields_given(session.cursor.context)
            return () if given else context_fields(self._mirror.app.root)

        return await self._on_engine(wanted)

    async def _take_input(self, command: Start) -> int:
        session = self._opened()
        self._refuse_running()
        await self._refuse_busy()
        await self._refuse_moved()
        context = command.context
        if context is not None:
            # A new thread may have been named by a part of its name.
            before = {} if session.exists else session.cursor.context
            context = checked(self._mirror.app.root, {**before, **context})
        if not isinstance(command.inputs, Mapping):
            raise UsageError("the input is not a dict", 'give a dict, as {"messages": "…"}')
        entry = {"given": entry_of(self._mirror.app.graph, _input(command.inputs)), "context": context}
        if command.unattended and self._runs_as_one():
            self._entry = entry
        else:
            await self._take(entry)
        return session.cursor.head

    def _runs_as_one(self) -> bool:
        """Whether an unattended run of the thread can be a single run of a server, which takes its input."""
        app = self._mirror.app
        on_its_own = app.is_on_server and not app.runs_through and self._mirror.outer is None
        return on_its_own and self._leaf == self._newest

    async def _take(self, entry: Mapping[str, Any]) -> None:
        """Commit an input as a step."""
        place: dict[str, Any] = {"leaf": self._leaf, "newest": self._newest, **entry}
        run = PregelLoop(self._opened(), mirror=self._mirror, threads=self._callers, **place)
        await run.take_input()
        self._leaf, self._newest = run.leaf, run.newest
        if run.error is not None:
            raise run.error

    async def _read_head(self) -> Session:
        """Return the session, brought up to date with what others did to the thread."""
        self._refuse_window()
        session = self._opened()
        self._catch_up()
        if session.exists and self._run is None:
            leaves = await self._mirror.sync(their_thread(session.info), [session])
            self._leaf = leaves.get(self.thread_id, self._leaf)
            self._newest = max(leaves.values(), default="")
        return session

    async def _refuse_moved(self) -> None:
        """Read the thread's head again before a run, and show what others have written.

        Raises:
            StaleWriter: somebody else has continued from the end of this line.
        """
        session, leaf = self._opened(), self._leaf
        awaited, self._awaited_runs = self._awaited_runs, frozenset()
        thread = their_thread(session.info)
        if (head := await self._mirror.app.head(thread)) in ("", self._newest):
            return
        if self._mirror.outer is not None and self._is_mirrored(session, head):
            # Its parent thread has moved it, or another process has stepped through it.
            self._leaf = self._newest = head
            return
        if not session.exists:
            raise StaleWriter(f"another program has started thread {thread!r}", "open it again")
        if head < self._newest:
            raise StaleWriter(
                f"what thread {thread!r} had saved last was taken back: it is at checkpoint {head} again",
                "fork from the step before that",
            )
        await self._read_head()
        if leaf != self._leaf and await run_of(self._mirror.app, thread, self._leaf) not in awaited:
            raise await stale(self._mirror.app, thread, self._leaf)

    async def _refuse_busy(self) -> None:
        """Refuse a thread that a LangGraph server runs for somebody else; raises `ServerBusy`."""
        app, thread = self._mirror.app, their_thread(self._opened().info)
        if hasattr(app.root, "refuse_busy"):
            await app.call(lambda: app.root.refuse_busy(thread))

    async def _free_thread(self, command: DoubleText) -> None:
        """End or await the server's run of the thread, record who asked for that, and show what it did."""
        session, app = self._opened(), self._mirror.app
        if not hasattr(app.root, "make_room"):
            return
        thread = their_thread(session.info)
        room = await app.call(lambda: app.root.make_room(thread, command.strategy))
        # A server may report the end of a run before it has saved the run's last checkpoint.
        self._awaited_runs = room.known
        session = await self._read_head()
        if room.ended and command.strategy != "enqueue" and session.exists:
            data = {"double_texting": command.strategy, "runs": list(room.ended)}
            with session.writing():
                entry = decision_entry(session, [], "stop", actor=command.actor, note=command.note, data=data)
                session.commit_cursor(session.cursor, [entry])
        self._resync()

    def _is_mirrored(self, session: Session, checkpoint: str) -> bool:
        self._catch_up()
        session.reload()
        heads = self._mirror.store.checkpoints(self.thread_id, None, 1)
        return bool(heads) and heads[0].origin == checkpoint

    async def _commit(self, command: Command[R]) -> R:
        await self._read_head()
        return await super()._commit(command)

    async def preview(self, command: Previewed) -> Preview:
        """Return what a command would do, without doing it."""
        if isinstance(command, Rerun) and (why := self.refusal(Rerun)):
            raise UsageError(f"thread {self.thread_id!r} can't be rerun", why)
        if not isinstance(command, UpdateState):
            return await super().preview(command)
        if why := self.refusal(UpdateState):
            raise UsageError(f"the thread can't be edited: {why}")

        async def work() -> Preview:
            session = await self._read_head()
            preview = await Editor(session, self._mirror, self._leaf).preview(command)
            if preview.forks and command.expected_step is not None:
                repeats = await self._repeats_after(session, command.expected_step)
                return replace(preview, repeats=repeats, moves=their_thread(session.info))
            return preview

        return await self._engine.call(work())

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Check the thread's log against itself, and against LangGraph's checkpointer."""
        self._refuse_window()
        if kind == "replay":
            raise UsageError(
                "LangGraph nodes can't be given their recorded results",
                "fork from a step: what comes after it runs again",
            )
        await self._on_engine(lambda session: session)
        checked = await asyncio.to_thread(self._checked, None, kind, watch)
        theirs = await self._engine.call(compare(self._mirror, self.thread_id, watch))
        return replace(checked, kind=kind, mismatches=(*checked.mismatches, *theirs))

    async def _update_state(self, command: UpdateState) -> int:
        self._refuse_running()
        await self._refuse_busy()
        session = await self._read_head()
        await self._refuse_finished_subgraph()
        self._owners.hold()
        try:
            with session.writing():
                self._leaf = await Editor(session, self._mirror, self._leaf).edit(command)
            self._newest = max(self._newest, self._leaf)
            await self._owners.settle()
        finally:
            self._owners.release()
        return session.cursor.head

    async def _refuse_finished_subgraph(self) -> None:
        await self._check_owner()
        if why := self.refusal(Run):
            raise UsageError(f"thread {self.thread_id!r} is read-only", why)

    async def _fork(self, command: Fork) -> str:
        session = await self._read_head()
        if command.canary:
            raise UsageError("a thread of LangGraph can't have canaries", "they take a gate of our graphs")
        if command.changes:
            if why := self.refusal(UpdateState):
                raise UsageError(f"the fork can't start with changes: {why}", "fork without them")
            editor = Editor(session, self._mirror, self._leaf)
            await editor.check(command.changes, command.as_node, command.step)
        await super()._fork(replace(command, changes=None, as_node=None))
        if command.changes:
            child = self._mirror.open(command.new_thread_id)
            point = self._mirror.store.checkpoint(child.thread_id, command.step)
            editor = Editor(child, self._mirror, point.origin or "" if point else "")
            facts = {"actor": command.actor, "note": command.note, "seen": b""}
            with child.writing():
                await editor.write(command.changes, command.as_node, "fork", facts, command.step)
        return command.new_thread_id

    async def _preview_repeats(self, command: Fork | Rerun | Run | Step) -> Preview:
        preview = await super()._preview_repeats(command)
        session = self._opened()
        if isinstance(command, Fork):
            return replace(preview, moves=their_thread(session.info))
        if isinstance(command, Rerun) or not self._leaf:
            return preview
        thread, app = their_thread(session.info), self._mirror.app
        saved = await app.state(config_of(thread, self._leaf), subgraphs=True)
        whole = whole_subgraphs(app.graph)
        repeats = repeats_of_answer(saved, session.cursor, self._mirror.info, whole) if saved else None
        return replace(preview, repeats=repeats or preview.repeats)

    async def _step(self, command: Step) -> None:
        await self._go(command.breakpoints, once=True, into=command.into)

    async def _run_on(self, command: Run) -> None:
        await self._go(command.breakpoints, once=False, unattended=command.unattended)

    async def _go(
        self,
        breakpoints: tuple[Breakpoint, ...],
        *,
        once: bool,
        into: bool = False,
        unattended: bool = False,
    ) -> None:
        self._refuse_running()
        entry, self._entry = self._entry, {}
        if into and hasattr(self._mirror.app.root, "make_room"):
            raise UsageError("a server does not stop inside a subgraph", NO_STEPS)
        await self._refuse_busy()
        await self._refuse_moved()
        await self._refuse_finished_subgraph()
        if breakpoints and (why := self.refusal(Step)):
            raise UsageError("breakpoints do not stop a run there", why)
        at_once = unattended and not breakpoints and self._runs_as_one()
        if entry and not at_once:
            await self._take(entry)
            entry = {}
        stops = RunStops(breakpoints, self._opened().graph.info, self._hits) if breakpoints else None

        def make(session: Session, **options: Any) -> Any:
            # A fork without own checkpoints starts where its parent may also continue: pin its checkpoint.
            head = session.cursor.head
            shared = session.info.parent is not None and head == session.info.fork_step
            if shared and (point := self._mirror.store.checkpoint(session.thread_id, head)) is not None:
                shared = point.origin == self._leaf
            place: dict[str, Any] = {"leaf": self._leaf, "newest": "" if shared else self._newest}
            place |= {"owners": self._owners, "once": once, "into": into, "at_once": at_once, **entry}
            return PregelLoop(session, mirror=self._mirror, stops=stops, **place, **options)

        self._owners.hold()
        try:
            await self._launch(make)
        except BaseException:
            self._owners.release()
            raise

    async def _drive(self, run: Any, session: Session) -> None:
        try:
            await super()._drive(run, session)
        finally:
            self._leaf, self._newest = run.leaf, run.newest
            self._owners.release()


def _input(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: from_json(value) for name, value in inputs.items()}
