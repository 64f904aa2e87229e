"""What a LangGraph graph asks, as requests; answers, as what resumes it (SPEC 11).

A question is known by its interrupt's id and answered by that alone: a bare resume answers whatever waits,
which may be nothing that anybody has seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from langgraph.types import Command, Interrupt, StateSnapshot
from msgspec.structs import replace

from hitl_tui.drivers.langgraph.pregel import Saved, TaskRun, saved_of
from hitl_tui.drivers.langgraph.steps import branch_path, in_order
from hitl_tui.drivers.langgraph.values import as_json, bounded
from hitl_tui.engine.audit.costs import spent_by
from hitl_tui.engine.audit.rerun import outside_of
from hitl_tui.engine.log.outcomes import Exchange
from hitl_tui.engine.log.repeats import NodeRepeat, Repeats
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread import approval_formats
from hitl_tui.engine.thread.interrupts import ANSWER, answer_schema
from hitl_tui.errors import AnswerRefused, GraphInvalid, UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.log.records import Cursor

TITLES: Final = ("title", "question", "message", "prompt", "instruction", "description", "text")
"""Where a payload that is a mapping says what is asked, the likeliest first."""
_LONGEST_TITLE: Final = 200
ALL: Final = "*"
"""What `interrupt_before` and `interrupt_after` say for every node."""


class AskedInterrupt(msgspec.Struct, frozen=True):
    """An interrupt that waits, and where it stands.

    Args:
        node: the node of the root graph whose task asks.
        path: the place below it, as `review[1]` of a fan-out or `team/ask` in a subgraph; "" for the node
            itself.
        task_id: of the root graph's task.
        given: how many answers that task has been given already, where the id does not tell.
        refused: whether the answer that its task was given failed.
    """

    interrupt: Interrupt
    node: str
    path: str
    task_id: str
    given: int = 0
    refused: bool = False

    @property
    def id(self) -> str:
        """What an answer names: one for each question, also where several of a task have the same id.

        Before LangGraph counted a task's answers into the id all its questions shared one.
        """
        return f"{self.interrupt.id}.{self.given}" if self.given else self.interrupt.id


def asked_by(saved: Saved, whole: Collection[str] = ()) -> tuple[AskedInterrupt, ...]:
    """The interrupts that wait at a checkpoint, in the order of its tasks.

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
        told_inside = inner is not None and (bool(inner.tasks) or task.name in whole)
        for interrupt in (*(() if told_inside else task.interrupts), *(each for _, each in below.values())):
            where = below[interrupt.id][0] if interrupt.id in below else path
            asked = AskedInterrupt(interrupt, task.name, where, task.id, task.answers, bool(task.error))
            waiting.setdefault(interrupt.id, asked)
    return tuple(waiting.values())


def _below(task: TaskRun, path: str) -> Iterator[tuple[str, tuple[str, Interrupt]]]:
    """The interrupts inside a task's subgraph by id, each with its place."""
    tasks = in_order(inner.tasks) if (inner := inside(task)) else []
    for number, child in enumerate(tasks):
        if not child.is_unfinished:
            continue
        place = f"{path}/{branch_path(tasks, number).rpartition('/')[2] or child.name}"
        deeper = dict(_below(child, place))
        yield from deeper.items()
        yield from ((each.id, (place, each)) for each in child.interrupts if each.id not in deeper)


def inside(task: TaskRun) -> Saved | None:
    """Where the subgraph that a task runs stands, None where it was not begun or not asked for."""
    return saved_of(task.state) if isinstance(task.state, StateSnapshot) else None


def request_of(asked: AskedInterrupt, *, step: int, now: int) -> Request:
    """An interrupt as a request: in the format of an approval where its payload is one, else with the form
    that its schema makes, else anything as JSON.

    Args:
        step: the step that it is about.
        now: microseconds since the Unix epoch.
    """
    payload = bounded(as_json(asked.interrupt.value))
    shape = approval_formats.shape_of(payload)
    actions = approval_formats.actions_of(shape, payload)
    request = Request(
        id=asked.id,
        kind="approve" if shape else "ask",
        node=asked.node,
        when="inside",
        step=step,
        title=approval_formats.title_of(actions) if shape else _title(payload, asked),
        payload=payload,
        choices=approval_formats.choices_of(actions),
        asked_at=now,
        shape=shape,
        path=asked.path,
        key=asked.id,
    )
    schema = getattr(asked.interrupt, "response_schema", None)
    if not isinstance(schema, Mapping):
        return request
    checked = replace(request, schema=thaw(as_json(schema)))
    try:
        answer_schema(checked)
    except GraphInvalid:
        return request  # LangGraph itself checks the answer by what the schema was made from
    return checked


def _title(payload: Any, asked: AskedInterrupt) -> str:
    if isinstance(payload, Mapping):
        payload = next((payload[key] for key in TITLES if isinstance(payload.get(key), str)), "")
    words = payload.strip().partition("\n")[0] if isinstance(payload, str) else ""
    if not words:
        return f"{asked.path or asked.node} asks"
    return words if len(words) <= _LONGEST_TITLE else f"{words[: _LONGEST_TITLE - 1]}…"


def stops_compiled_in(
    ran: Iterable[str], saved: Saved, before: str | Collection[str], after: str | Collection[str]
) -> tuple[str, ...]:
    """Where the graph was compiled to stop, in words: after what ran, and before what comes next.

    A task that was begun has passed the stop before it.

    Args:
        before, after: `interrupt_before` and `interrupt_after` of the graph: names, or "*" for all.
    """
    fresh = [task.name for task in saved.tasks if task.is_unfinished and not _begun(task)]
    if not saved.tasks:
        return ()
    stops = [f"stopped after {name}" for name in _named(ran, after)] if len(fresh) == len(saved.tasks) else []
    return (*stops, *(f"stopped before {name}" for name in _named(fresh, before)))


def _named(names: Iterable[str], nodes: str | Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if nodes == ALL or name in nodes))


def _begun(task: TaskRun) -> bool:
    inner = inside(task)
    return bool(task.error or task.interrupts or (inner and inner.tasks))


# Answers


def kept_answers(cursor: Cursor) -> dict[str, Any]:
    """The answers that the thread was given and that have not been handed to the graph yet, by request."""
    exchanges = [
        *cursor.exchanges,
        *(exchange for branch in cursor.branches for exchange in branch.exchanges),
    ]
    return {
        exchange.key.removeprefix(ANSWER): exchange.value
        for exchange in exchanges
        if exchange.key.startswith(ANSWER)
    }


def without_answers(cursor: Cursor, ids: Collection[str]) -> Cursor:
    """The cursor once answers have been handed to the graph."""

    def rest(exchanges: tuple[Exchange, ...]) -> tuple[Exchange, ...]:
        return tuple(kept for kept in exchanges if kept.key.removeprefix(ANSWER) not in ids)

    branches = tuple(replace(branch, exchanges=rest(branch.exchanges)) for branch in cursor.branches)
    return replace(cursor, exchanges=rest(cursor.exchanges), branches=branches)


def resume(answers: Mapping[str, Any], waiting: Iterable[AskedInterrupt]) -> Command[Any]:
    """What hands answers to the graph, each to the interrupt that it names.

    Raises:
        AnswerRefused: one names what no longer waits: another interrupt is never answered in its place.
        UsageError: there is none; the graph would be resumed blind.
    """
    ids = {asked.id: asked.interrupt.id for asked in waiting}
    if not answers:
        raise UsageError("nothing was answered", "answer a question that waits")
    if gone := [name for name in answers if name not in ids]:
        raise AnswerRefused(
            f"request {gone[0]} no longer waits in the graph",
            "it must be asked anew: go on with the thread, then answer what it asks",
        )
    return Command(resume={ids[name]: thaw(value) for name, value in answers.items()})


def refusal_of(error: BaseException) -> AnswerRefused | None:
    """An answer that the graph's own check refused, in words; None for any other error.

    Nothing of it was saved: the question waits as before.
    """
    problems = _invalid(error)
    if problems is None:
        return None
    told = [f"{place}: {message}" if place else message for place, message in problems]
    return AnswerRefused(
        f"the graph does not take the answer: {'; '.join(told) or error}", "correct it, then answer again"
    )


def _invalid(error: BaseException) -> list[tuple[str, str]] | None:
    """What a validation error of an answer names: places and messages; None where it is none."""
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
    """Which nodes run again from their start once an answer is handed over; None where nothing does.

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
        tuple(NodeRepeat(node, times, outside_of(graph, node)) for node, times in runs.items()),
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
            if _begun(task):
                yield place
            continue
        if place not in whole:
            yield place
        yield from _runs_again(inner, whole, f"{place}/")
