"""Edits and forks of a line: recorded as intended, made by `update_state`, mirrored as a step.

The intention is in the ledger, with the checkpoint that it starts from, before LangGraph makes the edit.  A
process killed in between leaves either nothing in their checkpointer, or a checkpoint whose author the next
process can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from hitl_tui.drivers.langgraph import edits
from hitl_tui.drivers.langgraph.mirror import Mirror, edit_facts, their_thread
from hitl_tui.drivers.langgraph.pregel import Saved, config_of
from hitl_tui.drivers.langgraph.steps import facts_of, names_in
from hitl_tui.drivers.langgraph.values import as_json, bounded, from_json
from hitl_tui.engine.commands.decisions import CHECKPOINT, UPDATE_STATE, decision_entry
from hitl_tui.engine.commands.guarding import Runs, open_questions, refusal_of_question
from hitl_tui.engine.log.events import EDIT, AppliedUpdate, Preview
from hitl_tui.engine.log.records import END, START
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import GateUnanswered, StaleWriter, UnknownThread, UsageError, ValueRejected, in_words

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from hitl_tui.engine.commands import UpdateState
    from hitl_tui.engine.log.records import Source


class Editor:
    """Previews and makes edits of one line.

    Args:
        session: the line in the mirror.
        mirror: of its graph's threads.
        leaf: the newest checkpoint of the line.
    """

    def __init__(self, session: Session, mirror: Mirror, leaf: str) -> None:
        self._session = session
        self._mirror = mirror
        self._app = mirror.app.graph
        self._root = mirror.app.root
        self._leaf = leaf
        self._thread = their_thread(session.info)

    async def preview(self, command: UpdateState) -> Preview:
        """Preview an edit at its step, tried on copies, and where it leads as each node."""
        step = self._session.cursor.head if command.expected_step is None else command.expected_step
        past = step != self._session.cursor.head
        saved = await self._saved(step)
        theirs, rejected = _theirs(command.values, saved)
        point = self._mirror.store.checkpoint(self._session.thread_id, step)
        nodes = edits.candidates(self._app, names_in(point.node, self._app.nodes) if point else ())
        async with self._trial(saved) as trial:
            route = await self._route(step, saved)
            tried = await trial.make(theirs, command.as_node, route)
            as_nodes = await edits.as_nodes(trial, theirs, nodes[: trial.most_nodes], route)
        as_nodes = tuple(
            replace(each, problem=str(refused))
            if (refused := self._refusal(each.node, step, each.next_nodes))
            else each
            for each in as_nodes
        )
        problems = {**rejected, **_problems(tried, command.as_node)}
        if refused := self._refusal(command.as_node, step, tried.next_nodes):
            problems[EDIT] = str(refused)
        pending = () if past else self._session.cursor.pending
        return Preview(
            updates=self._applied(command, tried),
            problems=problems,
            next_node=None if tried.problem else ", ".join(tried.next_nodes) or END,
            rebinds=(),
            forks=past,
            withdraws=tuple(request.title for request in pending if not request.breakpoint),
            as_nodes=as_nodes,
        )

    def _applied(self, command: UpdateState, tried: edits.Tried) -> tuple[AppliedUpdate, ...]:
        applied = []
        for name in tried.update:
            before, value = as_json(tried.before.get(name)), command.values[name]
            after = value if tried.problem else as_json(tried.after.get(name))
            channel = self._mirror.reduction.channels[name]
            applied.append(
                AppliedUpdate(
                    channel=name,
                    op="set",
                    reducer=channel.reducer.text,
                    visibility="public",
                    source="human",
                    before=bounded(before),
                    update=value,
                    after=bounded(after),
                    changed=before != after,
                    actor=command.actor,
                    made_by="person",
                )
            )
        return tuple(applied)

    async def edit(self, command: UpdateState) -> str:
        """Make an edit at the head; returns the new leaf.  The session's lease is held.

        Raises:
            StaleWriter: the head is not the one that the edit was made on.
            UsageError: it can't be made; nothing was stored.
        """
        session, cursor = self._session, self._session.cursor
        if not isinstance(command.values, Mapping):
            raise UsageError(
                f"the values of an edit are {in_words(command.values)}", 'give a dict, as {"draft": "…"}'
            )
        if cursor.head < 0:
            raise UsageError(
                f"thread {session.thread_id!r} has no step to edit yet", "start it with an input first"
            )
        if command.expected_step is not None and command.expected_step != cursor.head:
            raise StaleWriter(
                f"thread {session.thread_id!r} is at step {cursor.head}, the edit was made on "
                f"{command.expected_step}",
                "look at what changed, then edit again",
            )
        seen = command.seen
        facts = {"actor": command.actor, "note": command.note, "seen": seen}
        return await self.write(command.values, command.as_node, "human", facts, cursor.head)

    async def write(
        self,
        values: Mapping[str, Any],
        as_node: str | None,
        source: Source,
        facts: Mapping[str, Any],
        at: int,
    ) -> str:
        """Set channels after a step, as the line's next step; returns the new leaf.

        Args:
            facts: who, why and what was seen, for the ledger.
            at: the step.
        """
        session = self._session
        before = await self._saved(at)
        tried = await self._checked(values, as_node, at, before)
        kept = tried.kept or edits.ChosenRoute(as_node or "", ())
        data = {"channels": sorted(values), "as_node": as_node, CHECKPOINT: before.id}
        entry = decision_entry(session, [], UPDATE_STATE, step=at + 1, data=data, **facts)
        session.commit_cursor(session.cursor, [entry])
        try:
            leaf = await self._mirror.app.update(
                config_of(self._thread, before.id),
                dict(tried.update),
                edits.their_node(kept.node or None),
                kept.goto,
            )
        except Exception as error:
            note = f"not stored: {type(error).__name__}: {error}"
            session.commit_cursor(session.cursor, [decision_entry(session, [], "withdrawn", note=note)])
            raise UsageError(f"LangGraph did not take the edit: {error}", "nothing was stored") from error
        after = await self._mirror.app.state(config_of(self._thread, leaf), subgraphs=True)
        assert after is not None
        self._mirror.append(
            session, before, after, replace(facts_of(before, after), **edit_facts(entry, source))
        )
        self._mirror.settle(session, after)
        return leaf

    async def check(self, values: Mapping[str, Any], as_node: str | None, step: int) -> None:
        """Raise `UsageError` if an edit after a step can't be made."""
        await self._checked(values, as_node, step, await self._saved(step))

    async def _checked(
        self, values: Mapping[str, Any], as_node: str | None, step: int, before: Saved
    ) -> edits.Tried:
        """Return the result of an edit tried on copies, with the arguments for `update_state`."""
        theirs, problems = _theirs(values, before)
        async with self._trial(before) as trial:
            tried: edits.Tried = await trial.make(theirs, as_node, await self._route(step, before))
        if problems := {**problems, **_problems(tried, as_node)}:
            words = [": ".join(filter(None, problem)) for problem in problems.items()]
            raise UsageError("\n".join(words), "nothing was stored; see where it leads as each node")
        if refused := self._refusal(as_node, step, tried.next_nodes):
            raise refused
        return tried

    def _refusal(self, as_node: str | None, step: int, next_nodes: Sequence[str]) -> GateUnanswered | None:
        """Return why an edit as a node is refused: a node would run past an open request; None if none would.

        Args:
            next_nodes: what would run next; empty where only the thread around this one continues.
        """
        session, nodes = self._session, self._app.nodes
        if as_node is None or as_node == START or session.store is None:
            return None
        if not (next_nodes or self._mirror.outer):
            return None
        runs = Runs(session.store, session.thread_id, lambda name: names_in(name, nodes))
        ran_after: Callable[[str, int], bool] = runs.ran_after
        ledger = decisions(session.store, session.thread_id)
        if step != session.cursor.head:  # a fork from there is asked again what was asked there
            ledger = [entry for entry in ledger if entry.kind == "request" and entry.step == step]
            ran_after, here = _has_not_run, range(step, step + 1)
        else:
            here = range(runs.newest(), step + 1)
        questions = open_questions(self._mirror.info, ledger, as_node, ran_after, here=here, of_anyone=True)
        asked = next(questions, None)
        return refusal_of_question(f"as_node={as_node!r}", asked) if asked else None

    async def _route(self, step: int, saved: Saved) -> edits.ChosenRoute | None:
        """Return the route that the last node before a step has chosen; edits since then keep it."""
        store, thread = self._mirror.store, self._session.thread_id
        while (point := store.checkpoint(thread, step)) is not None and point.source in ("human", "fork"):
            step -= 1
        if point is None:
            return None
        ran = names_in(point.node, self._app.nodes)
        if hasattr(self._root, "trial"):
            return edits.route_on_server(ran, saved)
        pushed = any(task.pushed for task in saved.tasks)
        sends = await self._mirror.app.sends(config_of(self._thread, saved.id)) if pushed else ()
        return edits.chosen_route(self._app, ran, saved, sends)

    def _trial(self, saved: Saved) -> Any:
        config = cast("RunnableConfig", config_of(self._thread, saved.id, self._mirror.app.ns))
        if hasattr(self._root, "trial"):  # it is on a server
            return self._root.trial(config, self._app)
        return edits.LocalTrial(self._root, self._app, config)

    async def _saved(self, step: int) -> Saved:
        """The checkpoint that a step is, or behind the newest one the line's leaf."""
        identity = self._leaf
        if step != self._session.cursor.head:
            point = self._mirror.store.checkpoint(self._session.thread_id, step)
            identity = (point.origin or "") if point else ""
        saved = await self._mirror.app.state(config_of(self._thread, identity)) if identity else None
        if saved is None:
            raise UnknownThread(
                f"thread {self._session.thread_id!r} has no step {step}", "choose a committed step"
            )
        return saved


def _has_not_run(_node: str, _step: int) -> bool:
    return False


def _theirs(values: Mapping[str, Any], saved: Saved) -> tuple[dict[str, Any], dict[str, str]]:
    """Convert a person's values to LangGraph's, with the reasons for those that can't be converted."""
    theirs: dict[str, Any] = {}
    rejected: dict[str, str] = {}
    for name, value in values.items():
        try:
            theirs[name] = from_json(value, saved.values.get(name))
        except ValueRejected as error:
            rejected[name] = str(error)
    return theirs, rejected


def _problems(tried: edits.Tried, as_node: str | None) -> dict[str, str]:
    """Return the problems of a tried edit by channel; under `EDIT` those of the whole edit."""
    problems = dict(tried.problems)
    if tried.problem:
        problems[EDIT] = tried.problem
    elif tried.lost:
        problems[EDIT] = f"{', '.join(tried.lost)} would not be written as {as_node}"
    return problems
