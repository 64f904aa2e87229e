"""Mirror of LangGraph threads in our store, checkpoint by checkpoint.

Each line in a thread's tree of checkpoints is a thread of ours: the oldest has the thread's name; each other
line is a fork called `<thread>~<id>`, after its first own checkpoint.  A step keeps the id of its checkpoint
(`Checkpoint.origin`); checkpoints that change nothing, such as the copy that starts a replay, are no steps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from hitl_tui.drivers.langgraph import graph
from hitl_tui.drivers.langgraph.interrupts import (
    AskedInterrupt,
    asked_by,
    kept_answers,
    request_of,
    stops_compiled_in,
    whole_subgraphs,
    without_answers,
)
from hitl_tui.drivers.langgraph.pregel import App, Saved, config_of
from hitl_tui.drivers.langgraph.server_names import SERVER, server_thread
from hitl_tui.drivers.langgraph.steps import (
    RAN,
    Reduction,
    facts_of,
    inside_of,
    moved,
    names_in,
    place_of,
    position_of,
)
from hitl_tui.drivers.langgraph.subgraphs import START_NODE, namespace, open_subgraphs, thread_name
from hitl_tui.drivers.langgraph.values import as_json
from hitl_tui.engine.commands.command import Fork
from hitl_tui.engine.commands.decisions import CHECKPOINT, UPDATE_STATE, decision_entry
from hitl_tui.engine.commands.forking import fork
from hitl_tui.engine.log.outcomes import HASHED, ErrorInfo
from hitl_tui.engine.log.records import Cursor, LedgerEntry, Source
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.signing import Signer
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ORIGIN, WITHIN, Owner, ThreadInfo
from hitl_tui.engine.nodes.activity import newest_texts
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.earlier import with_earlier
from hitl_tui.engine.thread.graph_change import change_graph
from hitl_tui.engine.thread.interrupts import breakpoint_request
from hitl_tui.engine.thread.journal import StepFacts
from hitl_tui.engine.thread.logged import decisions, logged_digest
from hitl_tui.engine.thread.run_inputs import INPUT, context_facts
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError

SOURCE: Final = "langgraph"
"""Key in `ThreadInfo.source` of the LangGraph thread's id."""
_FIRST_PAGE, _PAGE = 50, 500
_HELD = 500
"""Number of mirrored steps after which a line is released for a moment: a lease lasts half a minute."""
_BINDS_SAID: Final = 'in the payload, "binds": [{}]'
"""How a graph names the parts of a request that the hash covers, for hints."""
_NOT_HANDED_OVER: Final = "the answer was not handed over: the thread was edited before it went on"


def their_thread(info: ThreadInfo) -> str:
    """Return the id of the LangGraph thread of which a thread of ours is a line."""
    kept = info.source.get(SOURCE)
    return str(kept.get("thread", info.thread_id)) if isinstance(kept, Mapping) else info.thread_id


class SubgraphRun(NamedTuple):
    """Identifies one run of a subgraph.

    Attributes:
        name: the thread in the mirror with the subgraph's first checkpoints.
        owner: the line whose task runs the subgraph, and its node.
        at: the checkpoint that the task starts from.
    """

    name: str
    owner: Owner
    at: str


def namespace_of(info: ThreadInfo) -> str:
    """Return the checkpoint namespace of a subgraph's thread."""
    return str(info.source[SOURCE]["ns"])


class Mirror:
    """Mirrors the threads of one compiled graph and its checkpointer in our store.

    Attributes:
        outer: the mirror of the graph around this one, None for the outermost.
        place: for a subgraph: the run that is mirrored.
        opens: the nodes that are subgraphs and can be stepped into.

    Args:
        app: the graph.
        store: where its threads are mirrored.
        name: the name of the graph.
        source: how it is loaded again (`ThreadInfo.source`).
    """

    def __init__(
        self,
        app: App,
        store: Store,
        name: str,
        source: Mapping[str, Any],
        *,
        signer: Signer | None = None,
    ) -> None:
        self.app = app
        self.store = store
        self.info = graph.describe(app.graph, name)
        self.graph = graph.recorded(self.info)
        self.reduction = Reduction(app.graph, graph.bound_channels(app.graph))
        self.outer: Mirror | None = None
        self.place: SubgraphRun | None = None
        self.source = dict(source)
        self._signer = signer
        self._notices: dict[str, str] = {}
        self.opens = open_subgraphs(app.graph).keys()
        self._whole = whole_subgraphs(app.graph)
        self._mirrors: dict[str, Mirror] = {}

    def inside(self, node: str, ns: str, place: SubgraphRun) -> Mirror:
        """Return the mirror of one run of a subgraph.

        Args:
            ns: the namespace of its checkpoints.
        """
        if node not in self._mirrors:
            within = [*self.source.get(WITHIN, ()), node]
            app, source = self.app.inside(node, ns), {**self.source, WITHIN: within}
            self._mirrors[node] = Mirror(app, self.store, node, source, signer=self._signer)
        inner = copy(self._mirrors[node])
        inner.app = self.app.inside(node, ns)
        inner.outer, inner.place = self, place
        return inner

    def copy_for_run(self) -> Mirror:
        """Return a copy, for a line that runs beside others."""
        other = copy(self)
        other.app = self.app.copy_for_run()
        return other

    def thread_of_name(self, name: str) -> str:
        """Return the LangGraph thread that a person means by a name.

        On a LangGraph server that takes only UUIDs, a new name is turned into one.
        """
        if SERVER not in self.source or self.app.runs_through or self.store.info(name) is not None:
            return name
        return server_thread(name)

    def line(self, thread: str) -> str:
        """Return the name of a LangGraph thread's first line."""
        return self.place.name if self.place else thread

    async def sync_inside(self, line: str, saved: Saved, *, settles: bool = True) -> dict[str, str]:
        """Bring the subgraphs of a checkpoint's tasks up to date; returns their threads by task.

        Args:
            line: the one that has the checkpoint.
            settles: as for `sync`.
        """
        threads: dict[str, str] = {}
        for task in saved.tasks if self.opens else ():
            if task.name in self.opens:
                ns = namespace(self.app.ns, task.name, task.id)
                name = thread_name(line, task.name, task.id)
                inner = self.inside(task.name, ns, SubgraphRun(name, Owner(line, task.name), saved.id))
                info = self.store.info(line)
                thread = their_thread(info) if info else line
                if await inner.sync(thread, settles=settles, is_over=not task.is_unfinished):
                    threads[task.id] = name
                if not settles and inner.opens and (leaf := await inner.app.state(config_of(thread))):
                    await inner.sync_inside(name, leaf, settles=False)
        return threads

    def in_store(self, store: Store) -> Mirror:
        """Return the same mirror in another store."""
        return Mirror(self.app, store, self.info.name, self.source, signer=self._signer)

    def new(self, thread: str, actor: str | None = None, context: Mapping[str, Any] | None = None) -> Session:
        """Return the session of a new thread, which does not exist yet on either side."""
        place = {"thread": thread}
        source = {**self.source, SOURCE: place}
        if self.place is not None:
            place["ns"] = self.app.ns
            source[ORIGIN] = self.place.at
        return Session.new(
            self.graph,
            self.store,
            self.line(thread),
            source=source,
            actor=actor,
            context=context,
            owner=self.place.owner if self.place else None,
            signer=self._signer,
        )

    def open(self, line: str) -> Session:
        """Open a mirrored line with the current graph."""
        info, cursor = self.store.info(line), self.store.cursor(line)
        if info is None or cursor is None or logged_digest(info, cursor) == self.graph.digest:
            session = Session.open(self.graph, self.store, line, signer=self._signer)
        else:
            session = Session.recorded(self.store, line, signer=self._signer)
            with session.writing():
                change_graph(session, self.graph)
        return session

    def notice(self, line: str, words: str) -> None:
        """Keep a notice about a line for when it is opened next."""
        self._notices[line] = ". ".join(filter(None, (self._notices.get(line, ""), words)))

    def notice_of(self, line: str) -> str:
        """Take the kept notice about a line, "" for none."""
        return self._notices.pop(line, "")

    async def sync(
        self,
        thread: str,
        opened: Sequence[Session] = (),
        on_progress: Callable[[int, int], object] = lambda done, total: None,
        *,
        settles: bool = True,
        is_over: bool = False,
    ) -> dict[str, str]:
        """Bring the lines of a LangGraph thread up to date.

        Args:
            opened: sessions of lines that are open here: the pass writes with these.
            on_progress: called with the number of checkpoints mirrored and the number of all; an error that
                it raises stops the pass, and the next one continues there.
            settles: set each line's status by its newest checkpoint; otherwise it is running.
            is_over: the task that runs this subgraph has ended, even if the subgraph did not reach its end: a
                node may have continued in the parent graph (`Command.PARENT`).

        Returns:
            The newest checkpoint of each line, copies included that are no steps.
        """
        return await _Sync(self, thread, opened, on_progress).run(settles=settles, is_over=is_over)

    def append(
        self,
        session: Session,
        before: Saved | None,
        after: Saved,
        facts: StepFacts,
        *,
        pauses: bool = False,
        begins: bool = False,
        context: Mapping[str, Any] | None = None,
        ledger: Sequence[LedgerEntry] = (),
    ) -> None:
        """Add a checkpoint to its line as a step; the session's lease is held.

        Args:
            before: the checkpoint before it, with its tasks' writes; None for the first.
            pauses: the run ends with it (see `Session.commit_step`).
            begins: it is the first step of the line, even if a checkpoint precedes it.
            context: the thread's context from here on; None keeps the one it has.
            ledger: entries about the step.
        """
        edited = facts.source in ("human", "fork")
        known = None if begins else before
        changes = self.reduction.changes(session.state, known, after, edited=edited)
        ledger = withdrawals(session, session.cursor.pending, facts.actor, ledger)
        for request_id in kept_answers(session.cursor) if edited else ():
            ledger.append(
                decision_entry(session, ledger, "withdrawn", request_id=request_id, note=_NOT_HANDED_OVER)
            )
        cursor = moved(session.cursor, facts, after)
        if context is not None:
            cursor = replace(cursor, context=context)
            data = context_facts(context, ())
            step = session.cursor.head + 1
            ledger.append(decision_entry(session, ledger, INPUT, step=step, actor=facts.actor, data=data))
        if facts.source in RAN:  # earlier attempts were counted when they ended
            kept = session.cursor
            streamed = newest_texts((*kept.streamed, *facts.streamed)) if kept.streamed else facts.streamed
            facts = replace(facts, uses=(*kept.uses, *facts.uses), streamed=streamed)
        session.commit_step(cursor, changes, facts, pauses=pauses, ledger=ledger)

    def settle(self, session: Session, leaf: Saved) -> None:
        """Set a line's status by its newest checkpoint: done, failed, waiting for answers or paused."""
        cursor, known = self.settled(session, leaf), {each.id: each for each in session.cursor.pending}
        if cursor == session.cursor:
            return
        pending = tuple(
            each if each.id in known else self._compared(session, each) for each in cursor.pending
        )
        cursor = replace(cursor, pending=pending)
        asked = {request.id for request in pending}
        ledger = withdrawals(session, [each for each in session.cursor.pending if each.id not in asked])
        for request in pending:
            if request is not known.get(request.id):
                said = journal.after_entries(session.cursor, ledger)
                ledger.append(journal.request_entry(said, request, session.clock()))
        session.commit_cursor(cursor, ledger)

    def settled(self, session: Session, leaf: Saved) -> Cursor:
        """Return a line's cursor after its newest checkpoint.

        Args:
            leaf: read with `subgraphs=True`.
        """
        cursor = session.cursor
        if self.outer is not None and cursor.status == "completed":
            return cursor  # the task that ran it has ended
        # An answer that LangGraph got before the program ended is not asked for again.
        asked = {each.id for each in self.asked_by(leaf)}
        cursor = without_answers(cursor, kept_answers(cursor).keys() - asked)
        pending = self._pending(session, cursor, leaf)
        failed = next((task for task in leaf.tasks if task.error), None)
        cursor = replace(cursor, position=position_of(leaf), pending=pending)
        if pending:
            return replace(cursor, status="waiting", reason="interrupt", error=None)
        if failed is not None:
            error = cursor.error or ErrorInfo(failed.name, cursor.attempt, "node failed", str(failed.error))
            return replace(cursor, status="failed", reason="node_error", error=error)
        if not leaf.tasks:
            return replace(cursor, status="completed", reason="end", error=None)
        if cursor.status == "cancelled":
            return cursor
        return replace(cursor, status="waiting", reason="paused", error=None)

    def _compared(self, session: Session, request: Request) -> Request:
        """Return a new request, with its node's previous request at that place if that one was withdrawn."""
        ledger = decisions(self.store, session.thread_id)
        asked = next((entry for entry in reversed(ledger) if _is_asked_at(entry, request)), None)
        if (
            asked is None
            or asked.request_id == request.id
            or self._has_run(session, request.node, asked.step)
        ):
            return request
        fate = {entry.kind: entry for entry in ledger[asked.n :] if entry.request_id == asked.request_id}
        answer = fate.get("answer") or fate.get("timeout")
        if answer is not None and not fate.keys() & {"withdrawn", "unused"}:
            return request  # the node has its answer and asks something else
        return with_earlier(request, asked, answer, _BINDS_SAID)

    def _has_run(self, session: Session, node: str, step: int) -> bool:
        """Whether a node has finished since a step."""
        head, nodes = session.cursor.head, self.app.graph.nodes
        points = self.store.checkpoints(session.thread_id, None, head - step) if head > step else []
        return any(point.source in RAN and node in names_in(point.node, nodes) for point in points)

    def asked_by(self, leaf: Saved) -> tuple[AskedInterrupt, ...]:
        """Return the interrupts that wait at a checkpoint, also inside subgraphs.

        Args:
            leaf: read with `subgraphs=True`.
        """
        return asked_by(leaf, self._whole)

    def _pending(self, session: Session, cursor: Cursor, leaf: Saved) -> tuple[Request, ...]:
        """Return the requests that wait for a person: unanswered interrupts, else where the graph stops.

        Args:
            cursor: with the answers that are still valid.
        """
        known = {request.id: request for request in session.cursor.pending}
        answered, asked = kept_answers(cursor), self.asked_by(leaf)
        if asked:
            fresh = [request_of(each, step=cursor.head, now=leaf.at) for each in asked]
            return tuple(known.get(request.id, request) for request in fresh if request.id not in answered)
        if held := self._held_before(session, cursor, leaf):
            return held
        stops = () if cursor.passed else self.stops_compiled_in(session, leaf)[:1]
        stopped = [breakpoint_request(cursor, place_of(leaf.next), "before", leaf.at, stop) for stop in stops]
        same = {request.request_hash: request for request in session.cursor.pending}
        return tuple(same.get(request.request_hash, request) for request in stopped)

    def _held_before(self, session: Session, cursor: Cursor, leaf: Saved) -> tuple[Request, ...]:
        """Return the stop at which a server held this thread earlier, maybe in another process.

        Its graph does not tell that it was compiled to stop before all nodes.
        """
        if not self.app.is_on_server or self.app.has_stops or not leaf.tasks:
            return ()
        return tuple(
            asked for asked in session.cursor.pending if asked.breakpoint and asked.step == cursor.head
        )

    def stops_compiled_in(self, session: Session, leaf: Saved) -> tuple[str, ...]:
        """Return the compiled-in stops between a line's newest step and the next one."""
        if not self.app.has_stops:
            return ()
        app = self.app.graph
        point = self.store.checkpoint(session.thread_id, session.cursor.head)
        ran = names_in(point.node, app.nodes) if point else ()
        return stops_compiled_in(ran, leaf, app.interrupt_before_nodes, app.interrupt_after_nodes)


def _is_asked_at(entry: LedgerEntry, request: Request) -> bool:
    """Whether a ledger entry opened a request at the same place as another request."""
    data = entry.data if isinstance(entry.data, Mapping) else {}
    if entry.kind != "request" or (data.get("node"), data.get("when")) != (request.node, request.when):
        return False
    return bool(data.get(HASHED, {}).get("path", "") == request.path)


def withdrawals(
    session: Session,
    requests: Iterable[Request],
    actor: str | None = None,
    written: Iterable[LedgerEntry] = (),
) -> list[LedgerEntry]:
    """Return withdrawal entries for requests that the graph no longer makes and nobody answered here.

    Args:
        written: entries that precede them; they are returned too.
    """
    ledger = list(written)
    for request in requests:
        ledger.append(decision_entry(session, ledger, "withdrawn", request=request, actor=actor))
    return ledger


class _Sync:
    """One pass over a LangGraph thread that mirrors its new checkpoints."""

    def __init__(
        self,
        mirror: Mirror,
        thread: str,
        opened: Iterable[Session],
        on_progress: Callable[[int, int], object],
    ) -> None:
        self._mirror = mirror
        self._on_progress = on_progress
        self._total = 0
        self._store = mirror.store
        self._thread = thread
        self._lines: dict[str, Session] = {session.thread_id: session for session in opened}
        self._line = mirror.line(thread)
        self._ids = _line_ids(self._store, self._line)
        self._leaves: dict[str, Saved | str] = {}
        self._places: dict[str, tuple[str, int]] = {}
        self._same: dict[str, str] = {}
        self._batch: dict[str, Saved] = {}
        self._held = ExitStack()

    async def run(self, *, settles: bool, is_over: bool) -> dict[str, str]:
        """See `Mirror.sync`."""
        newest = ""
        for line in self._ids:
            head = self._store.checkpoints(line, None, 1)
            if head and head[0].origin:
                self._places[head[0].origin] = (line, head[0].step)
                self._leaves[line] = head[0].origin
                newest = max(newest, head[0].origin)
        done, last = 0, newest
        try:
            with self._held:
                async for page in self._fresh(newest):
                    self._batch = {**self._newest_of_batch(), **{saved.id: saved for saved in page}}
                    for saved in page:
                        await self._place(saved)
                        done, last = done + 1, saved.id
                        if done % _HELD == 0:
                            self._held.close()
                        if done % _FIRST_PAGE == 0:
                            self._on_progress(done, self._total)
        except BaseException:
            self._pause_unfinished()
            raise
        if settles:
            await self._settle(last, is_over=is_over)
        return {line: leaf if isinstance(leaf, str) else leaf.id for line, leaf in self._leaves.items()}

    async def _fresh(self, newest: str) -> AsyncIterator[list[Saved]]:
        """Yield the checkpoints after one, oldest first, in pages: a long thread would fill memory."""
        app, bounds = self._mirror.app, list[str]()
        bound, page = "", await app.history(self._thread, limit=_FIRST_PAGE)
        first = page
        while page and page[-1].id > newest:
            bounds.append(bound)
            self._total += len(page)
            self._on_progress(0, self._total)
            bound = page[-1].id
            page = await app.history(self._thread, before=bound, limit=_PAGE)
        if rest := [saved for saved in page if saved.id > newest]:
            self._total += len(rest)
            yield rest[::-1]
        for bound in reversed(bounds):
            # Checkpoints newer than the first page are left for the next pass.
            page = await app.history(self._thread, before=bound, limit=_PAGE) if bound else first
            yield page[::-1]

    def _newest_of_batch(self) -> dict[str, Saved]:
        """Return the checkpoint that the next page most likely follows."""
        return {leaf.id: leaf for leaf in self._leaves.values() if isinstance(leaf, Saved)}

    async def _saved(self, identity: str) -> Saved | None:
        if not identity:
            return None
        if identity not in self._batch:
            saved = await self._mirror.app.state(config_of(self._thread, identity))
            if saved is None:
                return None
            self._batch[identity] = saved
        return self._batch[identity]

    async def _place(self, saved: Saved) -> None:
        """Add a checkpoint to the line that ends with its parent, or to a new line."""
        if saved.id in self._places:
            return
        before = await self._saved(saved.parent)
        place = await self._place_of(saved.parent)
        if is_no_step(before, saved):
            if before is not None:
                self._same[saved.id] = before.id
            if place is not None:
                line = self._line_at(place) or self._branch_off(place, saved)
                self._leaves[line] = saved
            return
        line, entry = self._intended(saved)
        facts = facts_of(before, saved)
        if entry is not None:
            forked = self._store.cursor(line)
            info = self._store.info(line)
            begins = info and forked and info.parent is not None and forked.head == info.fork_step
            facts = replace(facts, **edit_facts(entry, "fork" if begins else "human"))
            self._mirror.notice(line, f"an edit by {entry.actor or 'somebody'} was found and written down")
        elif place:
            line = self._line_at(place) or self._branch_off(place, saved)
        elif self._find_root(saved):
            return
        else:
            line = self._root(saved)
        session = self._session(line)
        if before is not None:
            facts = inside_of(facts, before, await self._mirror.sync_inside(line, before))
        self._hold(session)
        with committing_at(session, saved.at):
            self._mirror.append(session, before, saved, facts)
        self._places[saved.id] = (line, session.cursor.head)
        self._leaves[line] = saved

    def _pause_unfinished(self) -> None:
        """Set lines that are still running, as they were mirrored only partly, to paused."""
        for session in self._lines.values():
            if session.cursor.status == "running":
                with suppress(HitlError), session.writing():
                    session.commit_cursor(replace(session.cursor, status="waiting", reason="paused"))

    def _hold(self, session: Session) -> None:
        """Keep a line locked for writing until another one is needed: most steps go to the same line."""
        if session.is_held:
            return
        self._held.close()
        self._held.enter_context(session.writing())

    def _intended(self, saved: Saved) -> tuple[str, LedgerEntry | None]:
        """Return the line and the ledger entry of the intended edit that made a checkpoint."""
        for line in self._ids if saved.source == "update" else ():
            entry = open_edit(self._store, line)
            if entry is not None and entry.data[CHECKPOINT] == saved.parent:
                return line, entry
        return "", None

    async def _place_of(self, identity: str) -> tuple[str, int] | None:
        """Return the line and step of a checkpoint; if it is no step, those of the checkpoint before it."""
        if identity in self._places:
            return self._places[identity]
        while identity and identity not in self._places:
            if identity in self._same:
                identity = self._same[identity]
                continue
            if self._look_up(identity):
                break
            saved = await self._saved(identity)
            identity = saved.parent if saved else ""
        return self._places.get(identity)

    def _look_up(self, identity: str) -> bool:
        """Search all mirrored steps for a checkpoint."""
        for line in self._ids:
            before: int | None = None
            while page := self._store.checkpoints(line, before, _PAGE):
                for point in page:
                    if point.origin:
                        self._places.setdefault(point.origin, (point.thread_id, point.step))
                before = page[-1].step
                if identity in self._places or before <= 0:
                    break
        return identity in self._places

    def _line_at(self, place: tuple[str, int]) -> str:
        """Return the oldest line that ends at a step, "" if none does."""
        line, step = place
        for name in self._ids:
            cursor = self._store.cursor(name)
            if cursor is None or cursor.head != step:
                continue
            head = self._store.checkpoints(name, None, 1)
            if name == line or (head and head[0].thread_id == line):
                return name
        return ""

    def _find_root(self, saved: Saved) -> bool:
        """Find lines that start at a checkpoint without parent, if the thread's own line starts elsewhere.

        A thread that was deleted and started again has such lines; its own line is not related to them.
        """
        name = self._free_name(saved)
        if self._store.info(self._line) is None or self._store.info(name) is None or name in self._ids:
            return False
        for line in _line_ids(self._store, name):
            self._ids.append(line)
            for point in self._store.checkpoints(line, None, _PAGE):
                if point.origin:
                    self._places.setdefault(point.origin, (point.thread_id, point.step))
                    self._leaves.setdefault(line, point.origin)
        return True

    def _root(self, saved: Saved) -> str:
        """Return the line of a checkpoint without parent: the thread's own or another."""
        new = self._mirror.new(self._thread)
        line = self._line if self._store.info(self._line) is None else self._free_name(saved)
        session = Session.new(
            self._mirror.graph,
            self._store,
            line,
            source=new.info.source,
            owner=new.info.owner,
            clock=lambda: saved.at,
        )
        self._lines[line] = session
        self._ids.append(line)
        return line

    def _branch_off(self, place: tuple[str, int], saved: Saved) -> str:
        name = self._free_name(saved)
        if self._store.info(name) is None:
            fork(self._session(place[0]), Fork(place[1], name))
        if name not in self._ids:
            self._ids.append(name)
        return name

    def _free_name(self, saved: Saved) -> str:
        """Name a line by its first own checkpoint; the id begins with the time, so its middle is used."""
        digits = saved.id.replace("-", "")
        return f"{self._line}~{digits[4:12]}"

    def _session(self, line: str) -> Session:
        if line not in self._lines:
            self._lines[line] = self._mirror.open(line)
        return self._lines[line]

    async def _settle(self, newest: str, *, is_over: bool) -> None:
        """Set the status of the newest line, and of each line that moved, by its newest checkpoint."""
        for line, leaf in self._leaves.items():
            self._drop_intended(line)
            identity = leaf if isinstance(leaf, str) else leaf.id
            if isinstance(leaf, str) and identity != newest:
                continue
            pinned = "" if identity == newest else identity
            saved = await self._mirror.app.state(config_of(self._thread, pinned), subgraphs=True)
            if saved is None or saved.id != identity:
                self._mirror.notice(
                    line, "LangGraph's checkpointer has lost its newest step: see `hitl-tui verify`"
                )
                continue
            await self._mirror.sync_inside(line, saved)
            if is_over and identity == newest:
                saved = saved._replace(tasks=())
            session = self._session(line)
            if session.exists and self._mirror.settled(session, saved) != session.cursor:
                with session.writing(), committing_at(session, saved.at):
                    self._mirror.settle(session, saved)

    def _drop_intended(self, line: str) -> None:
        """Record that an edit never reached LangGraph because the program ended first."""
        entry = open_edit(self._store, line)
        if entry is None:
            return
        session = self._session(line)
        note = f"an edit by {entry.actor or 'somebody'} was not stored: the program ended before it was"
        with session.writing():
            session.commit_cursor(session.cursor, [decision_entry(session, [], "withdrawn", note=note)])
        self._mirror.notice(line, note)


def newest_mirrored(store: Store, thread: str) -> str:
    """Return the newest mirrored checkpoint of a LangGraph thread, "" if there is none."""
    heads = (store.checkpoints(line, None, 1) for line in _line_ids(store, thread))
    return max((head[0].origin or "" for head in heads if head), default="")


def open_edit(store: Store, line: str) -> LedgerEntry | None:
    """Return the ledger entry of a line's newest intended edit, None if it was completed."""
    cursor = store.cursor(line)
    point = store.checkpoint(line, cursor.head) if cursor and cursor.head >= 0 else None
    if cursor is None or point is None or cursor.ledger_hash == point.ledger_hash:
        return None
    entries = store.ledger(line)
    entry = entries[-1] if entries else None
    meant = entry is not None and entry.kind == UPDATE_STATE and isinstance(entry.data, Mapping)
    return entry if entry and meant and CHECKPOINT in entry.data and entry.step > cursor.head else None


def edit_facts(entry: LedgerEntry, source: Source) -> dict[str, Any]:
    """Return the facts of a step that an edit made: its source, who made it and the note."""
    return {"source": source, "actor": entry.actor, "note": entry.note}


def is_no_step(before: Saved | None, saved: Saved) -> bool:
    """Whether a checkpoint changes nothing: input not yet taken, or the copy that a replay begins with."""
    if saved.source == "input":
        return [task.name for task in saved.tasks] == [START_NODE]
    if saved.source != "fork" or before is None or saved.next != before.next:
        return False
    was, now = before.values, saved.values
    return was.keys() == now.keys() and all(as_json(was[name]) == as_json(now[name]) for name in now)


@contextmanager
def committing_at(session: Session, moment: int) -> Iterator[None]:
    """Set the time of commits to when they happened, in microseconds; 0 for now."""
    clock = session.clock
    if moment:
        session.clock = lambda: moment
    try:
        yield
    finally:
        session.clock = clock


def _line_ids(store: Store, thread: str) -> list[str]:
    """Return the mirrored lines of a LangGraph thread, the oldest first."""
    if store.info(thread) is None:
        return []
    lines, queue = [thread], [thread]
    while queue:
        children: Sequence[ThreadInfo] = store.children(queue.pop(0))
        for child in children:
            lines.append(child.thread_id)
            queue.append(child.thread_id)
    return lines
