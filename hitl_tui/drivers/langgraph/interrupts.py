"""Converts a LangGraph graph's interrupts to requests, and answers to the command that resumes it.

A request is identified by its interrupt's id and a hash of its payload, and an answer applies to that
request only. A bare resume would answer any open interrupt, maybe one that nobody has seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
from langgraph.types import Command, Interrupt, StateSnapshot
from msgspec.structs import replace

from hitl_tui.drivers.langgraph.pregel import Saved, TaskRun, saved_of
from hitl_tui.drivers.langgraph.steps import branch_path, in_order
from hitl_tui.drivers.langgraph.values import as_json, bounded
from hitl_tui.engine.audit.costs import spent_by
from hitl_tui.engine.audit.rerun import side_effects_of
from hitl_tui.engine.log.outcomes import KeptAnswer
from hitl_tui.engine.log.repeats import NodeRepeat, Repeats
from hitl_tui.engine.log.requests import Request, Terms
from hitl_tui.engine.state.canonical import item_hash
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread import approval_formats
from hitl_tui.engine.thread.binding import bound_parts, request_hash
from hitl_tui.engine.thread.interrupts import answer_schema
from hitl_tui.engine.thread.titles import question_title
from hitl_tui.errors import AnswerRefused, GraphInvalid, UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.log.records import Cursor

_HASH_DIGITS: Final = 16
_SHARED_ID: Final = "placeholder-id"
"""LangGraph's name of each interrupt that a node raises itself (`NodeInterrupt`)."""
ALL: Final = "*"
"""Value of `interrupt_before` and `interrupt_after` for every node."""
BINDS: Final = "binds"
"""In a payload that is a mapping: the names of its parts that count, as `binds=` of our own questions."""
PLACE_AND_HASH: Final = "."
"""Stands in a request's id between the place of its interrupt and the hash of its payload."""


class AskedInterrupt(msgspec.Struct, frozen=True):
    """An open interrupt, and its place.

    Args:
        node: the node of the root graph whose task asks.
        path: the place below it, as `review[1]` of a fan-out or `team/ask` in a subgraph; "" for the node
            itself.
        task_id: of the root graph's task.
        given: how many answers that task has been given already, where the id does not tell.
        refused: whether the answer that its task was given failed.
        payload_hash: the first digits of the hash of its payload.
        asker: the id of the task that asks, where LangGraph gives all interrupts of its kind one id: those
            that a node raises itself (`NodeInterrupt`), which take no answer. "" for any other.
    """

    interrupt: Interrupt
    node: str
    path: str
    task_id: str
    payload_hash: str
    given: int = 0
    refused: bool = False
    asker: str = ""

    @property
    def place(self) -> str:
        """Which question of its task it is, whatever it asks; older versions give all of them the same id."""
        if self.asker:
            return self.asker
        return f"{self.interrupt.id}.{self.given}" if self.given else self.interrupt.id

    @property
    def id(self) -> str:
        """The id that an answer names; different for each question, also where LangGraph's id is the same.

        LangGraph gives a node that runs again the same id, whatever it asks.
        """
        return f"{self.place}{PLACE_AND_HASH}{self.payload_hash}"


def asked_by(saved: Saved, whole: Collection[str] = ()) -> tuple[AskedInterrupt, ...]:
    """Return the open interrupts of a checkpoint, in the order of its tasks.

    A checkpoint that was read by its id also has those that were answered: the tasks that finished tell.

    Args:
        saved: read with `subgraphs=True`, where the place inside a subgraph is wanted.
        whole: the nodes that are a subgraph themselves. What such a task is said to ask may have been
            answered, or withdrawn, inside: only the subgraph tells.
    """
    waiting: dict[str, AskedInterrupt] = {}
    tasks = in_order(saved.tasks)
    for place, task in enumerate(tasks):
        if not task.is_unfinished:
            continue
        path = branch_path(tasks, place)
        below = dict(_below(task, path or task.name))
        inner = inside(task)
        is_asked_inside = inner is not None and (bool(inner.tasks) or task.name in whole)
        own = () if is_asked_inside else [(_identity(each, task), each) for each in task.interrupts]
        for identity, interrupt in (*own, *((name, each) for name, (_, each) in below.items())):
            where = below[identity][0] if identity in below else path
            digits = payload_hash(interrupt.value)
            asker = "" if identity == interrupt.id else identity
            refused = bool(task.error)
            asked = AskedInterrupt(interrupt, task.name, where, task.id, digits, task.answers, refused, asker)
            waiting.setdefault(identity, asked)
    return tuple(waiting.values())


def _identity(interrupt: Interrupt, task: TaskRun) -> str:
    """Return the unique identity of an interrupt: its id, or its task's if all interrupts have one id."""
    return task.id if interrupt.id == _SHARED_ID else interrupt.id


def _below(task: TaskRun, path: str) -> Iterator[tuple[str, tuple[str, Interrupt]]]:
    """The interrupts inside a task's subgraph by what tells them apart, each with its place."""
    tasks = in_order(inner.tasks) if (inner := inside(task)) else []
    for number, child in enumerate(tasks):
        if not child.is_unfinished:
            continue
        place = f"{path}/{branch_path(tasks, number).rpartition('/')[2] or child.name}"
        deeper = dict(_below(child, place))
        yield from deeper.items()
        own = ((_identity(each, child), each) for each in child.interrupts)
        yield from ((identity, (place, each)) for identity, each in own if identity not in deeper)


def inside(task: TaskRun) -> Saved | None:
    """Return the state of a task's subgraph, None if it has not started or was not read."""
    return saved_of(task.state) if isinstance(task.state, StateSnapshot) else None


def request_of(asked: AskedInterrupt, *, step: int, now: int) -> Request:
    """An interrupt as a request: in the format of an approval where its payload is one, else with the form
    that its schema makes, else anything as JSON.

    Args:
        step: the step that it is about.
        now: microseconds since the Unix epoch.
    """
    payload = _payload(asked.interrupt.value)
    shape = approval_formats.shape_of(payload)
    actions = approval_formats.actions_of(shape, payload)
    request = Request(
        id=asked.id,
        kind="approve" if shape else "ask",
        node=asked.node,
        when="inside",
        step=step,
        title=approval_formats.title_of(actions)
        if shape
        else question_title(payload, asked.path or asked.node),
        payload=payload,
        choices=approval_formats.choices_of(actions),
        asked_at=now,
        shape=shape,
        path=asked.path,
        key=asked.id,
        terms=Terms(binds=_binds(payload) or (("name",) if _lacks_arguments(shape, payload) else ())),
    )
    schema = getattr(asked.interrupt, "response_schema", None)
    if isinstance(schema, Mapping):
        checked = replace(request, schema=thaw(as_json(schema)))
        # Without it LangGraph itself checks the answer by what the schema was made from.
        with suppress(GraphInvalid):
            answer_schema(checked)
            request = checked
    return replace(request, request_hash=request_hash(request))


def payload_hash(value: Any) -> str:
    """Return the first digits of the hash of a payload, or of the parts that it names to be hashed."""
    payload = _payload(value)
    binds = _binds(payload)
    return item_hash(bound_parts(payload, binds) if binds else payload).hex()[:_HASH_DIGITS]


def _payload(value: Any) -> Any:
    return bounded(as_json(value))


def _lacks_arguments(shape: str, payload: Any) -> bool:
    """Whether a request to approve a call lacks the call's arguments."""
    return shape == "tool_approval" and "args" not in payload


def _binds(payload: Any) -> tuple[str, ...]:
    """Return the parts of a payload that it names to be hashed; () for all of it."""
    names = payload.get(BINDS) if isinstance(payload, Mapping) else None
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return ()
    try:
        bound_parts(payload, names)
    except UsageError:
        return ()
    return tuple(names)


def stops_compiled_in(
    ran: Iterable[str], saved: Saved, before: str | Collection[str], after: str | Collection[str]
) -> tuple[str, ...]:
    """Describe the compiled stops at this point: after the nodes that ran, and before the next ones.

    A task that has started has passed the stop before it.

    Args:
        before, after: `interrupt_before` and `interrupt_after` of the graph: names, or "*" for all.
    """
    fresh = [task.name for task in saved.tasks if task.is_unfinished and not _has_started(task)]
    if not saved.tasks:
        return ()
    stops = [f"stopped after {name}" for name in _named(ran, after)] if len(fresh) == len(saved.tasks) else []
    return (*stops, *(f"stopped before {name}" for name in _named(fresh, before)))


def _named(names: Iterable[str], nodes: str | Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if nodes == ALL or name in nodes))


def _has_started(task: TaskRun) -> bool:
    inner = inside(task)
    return bool(task.error or task.interrupts or (inner and inner.tasks))


# Answers


def kept_answers(cursor: Cursor) -> dict[str, Any]:
    """Return the answers that were not handed to the graph yet, by request."""
    answers = [*cursor.answers, *(answer for branch in cursor.branches for answer in branch.answers)]
    return {answer.key: answer.value for answer in answers}


def without_answers(cursor: Cursor, ids: Collection[str]) -> Cursor:
    """Return the cursor after answers were handed to the graph."""

    def rest(answers: tuple[KeptAnswer, ...]) -> tuple[KeptAnswer, ...]:
        return tuple(kept for kept in answers if kept.key not in ids)

    branches = tuple(replace(branch, answers=rest(branch.answers)) for branch in cursor.branches)
    return replace(cursor, answers=rest(cursor.answers), branches=branches)


def resume(answers: Mapping[str, Any], waiting: Iterable[AskedInterrupt]) -> Command[Any] | None:
    """What hands answers to the graph, each to the interrupt that it names.

    None runs the nodes that wait again: what a node raises itself takes no answer.

    Raises:
        AnswerRefused: one names what no longer waits: another interrupt is never answered in its place.
        UsageError: there is none; the graph would be resumed blind.
    """
    ids = {asked.id: "" if asked.asker else asked.interrupt.id for asked in waiting}
    if not answers:
        raise UsageError("nothing was answered", "answer a waiting question")
    if gone := [name for name in answers if name not in ids]:
        raise AnswerRefused(
            f"request {gone[0]} no longer waits in the graph",
            "it must be asked again: continue the thread, then answer what it asks",
        )
    handed = {ids[name]: thaw(value) for name, value in answers.items() if ids[name]}
    return Command(resume=handed) if handed else None


def refusal_of(error: BaseException) -> AnswerRefused | None:
    """Describe an answer that the graph's own check refused; None for any other error.

    Nothing was saved: the request waits as before.
    """
    problems = _invalid(error)
    if problems is None:
        return None
    messages = [f"{place}: {message}" if place else message for place, message in problems]
    return AnswerRefused(
        f"the graph refused the answer: {'; '.join(messages) or error}", "correct it, then answer again"
    )


def _invalid(error: BaseException) -> list[tuple[str, str]] | None:
    """Return the places and messages of a validation error of an answer, or None for another error."""
    try:
        from langgraph.errors import is_invalid_resume
    except ImportError:
        return None  # before 1.2 no schema is checked by the graph
    if not isinstance(error, Exception) or not is_invalid_resume(error):
        return None
    problems = error.errors(include_url=False) if hasattr(error, "errors") else []
    return [(".".join(map(str, problem["loc"])), str(problem["msg"])) for problem in problems]


# What runs again


def repeats_of_answer(
    saved: Saved, cursor: Cursor, graph: GraphInfo, whole: Collection[str] = ()
) -> Repeats | None:
    """Return the nodes that run again from their start after an answer; None if none does.

    All tasks that have not finished do, with whatever they did before they asked: those that were answered,
    and their siblings that were not.

    Args:
        saved: read with `subgraphs=True`.
        cursor: of the line; what attempts have used so far was for nothing then.
        whole: the nodes that are a subgraph themselves: only what asks inside them runs again.
    """
    runs: dict[str, int] = {}
    for node in _runs_again(saved, whole, ""):
        runs[node] = runs.get(node, 0) + 1
    if not runs:
        return None
    spent = spent_by(cursor.uses)
    return Repeats(
        cursor.head,
        cursor.head,
        tuple(NodeRepeat(node, times, side_effects_of(graph, node)) for node, times in runs.items()),
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
        cost=spent.cost,
        cost_known=spent.cost_known,
    )


def whole_subgraphs(app: Any, prefix: str = "") -> set[str]:
    """The nodes that are a subgraph themselves, by their places; others run one inside code of their own."""
    places: set[str] = set()
    for name, inner in app.get_subgraphs():
        if app.nodes[name].bound is inner:
            places |= {f"{prefix}{name}", *whole_subgraphs(inner, f"{prefix}{name}/")}
    return places


def _runs_again(saved: Saved, whole: Collection[str], prefix: str) -> Iterator[str]:
    for task in in_order(saved.tasks):
        if not task.is_unfinished:
            continue
        place, inner = f"{prefix}{task.name}", inside(task)
        if inner is None or not inner.tasks:
            if _has_started(task):
                yield place
            continue
        if place not in whole:
            yield place
        yield from _runs_again(inner, whole, f"{place}/")
