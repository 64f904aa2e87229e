"""What a LangGraph graph asks, as requests; answers, as what resumes it (SPEC 11).

A question is known by its interrupt's id and answered by that alone: a bare resume answers whatever waits,
which may be nothing that anybody has seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from langgraph import types
from langgraph.types import Command, Interrupt, StateSnapshot
from msgspec.structs import replace

from hitl_tui.engine.audit.rerun import outside_of
from hitl_tui.engine.log.outcomes import Exchange
from hitl_tui.engine.log.repeats import NodeRepeat, Repeats
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread import approval_formats
from hitl_tui.engine.thread.interrupts import ANSWER, answer_schema
from hitl_tui.errors import AnswerRefused, GraphInvalid, UsageError

if TYPE_CHECKING:
    from langgraph.types import PregelTask

    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.log.records import Cursor

TITLES: Final = ("title", "question", "message", "prompt", "instruction", "description", "text")
"""Where a payload that is a mapping says what is asked, the likeliest first."""
_LONGEST_TITLE: Final = 200
ALL: Final = "*"
"""What `interrupt_before` and `interrupt_after` say for every node."""


class Asked(msgspec.Struct, frozen=True):
    """An interrupt that waits, and where it stands.

    Args:
        node: the node of the root graph whose task asks.
        path: the place below it, as `review[1]` of a fan-out or `team/ask` in a subgraph; "" for the node
            itself.
        task_id: of the root graph's task.
        given: how many answers that task has been given already.
    """

    interrupt: Interrupt
    node: str
    path: str
    task_id: str
    given: int = 0

    @property
    def id(self) -> str:
        """What an answer names: one for each question, also where several of a task have the same id.

        Before LangGraph counted a task's answers into the id all its questions shared one.
        """
        return f"{self.interrupt.id}.{self.given}" if self.given else self.interrupt.id


def task_paths(tasks: Sequence[PregelTask]) -> list[str]:
    """A name for each task of a superstep: its node's, with a number where several run the same."""
    several = {name for name, times in Counter(task.name for task in tasks).items() if times > 1}
    numbers: Counter[str] = Counter()
    paths = []
    for task in tasks:
        paths.append(f"{task.name}[{numbers[task.name]}]" if task.name in several else task.name)
        numbers[task.name] += 1
    return paths


def is_unfinished(task: PregelTask) -> bool:
    """Whether a task has yet to run to its end: a finished one is never asked about again."""
    return task.result is None


def asked_by(snapshot: StateSnapshot, given: Mapping[str, int] | None = None) -> tuple[Asked, ...]:
    """The interrupts that wait at a snapshot, in the order of their tasks.

    A snapshot of a named checkpoint also has those that were answered: the tasks that finished tell.

    Args:
        snapshot: taken with `subgraphs=True`, where the place inside a subgraph is wanted.
        given: how many answers each task has been given, where the ids don't tell; see `answers_given`.
    """
    counts = given or {}
    waiting: dict[str, Asked] = {}
    for task, path in zip(snapshot.tasks, task_paths(snapshot.tasks), strict=True):
        if not is_unfinished(task):
            continue
        below = dict(_below(task, path))
        for interrupt in (*task.interrupts, *(each for _, each in below.values())):
            place = below[interrupt.id][0] if interrupt.id in below else path
            asked = Asked(
                interrupt, task.name, "" if place == task.name else place, task.id, counts.get(task.id, 0)
            )
            waiting.setdefault(interrupt.id, asked)
    return tuple(waiting.values())


def _below(task: PregelTask, path: str) -> Iterator[tuple[str, tuple[str, Interrupt]]]:
    """The interrupts inside a task's subgraph by id, each with its place."""
    if not isinstance(task.state, StateSnapshot):
        return
    inner = task.state.tasks
    for child, name in zip(inner, task_paths(inner), strict=True):
        if not is_unfinished(child):
            continue
        place = f"{path}/{name}"
        deeper = dict(_below(child, place))
        yield from deeper.items()
        yield from ((each.id, (place, each)) for each in child.interrupts if each.id not in deeper)


def answers_given(writes: Iterable[tuple[str, str, Any]] | None) -> dict[str, int]:
    """How many answers each task of a checkpoint was given, from the writes that wait at it.

    Nothing, where the ids of LangGraph's interrupts tell them apart.
    """
    counts: dict[str, int] = {}
    if hasattr(types, "_interrupt_id"):
        return counts
    for task_id, channel, value in writes or ():
        if channel == "__resume__":
            counts[task_id] = max(counts.get(task_id, 0), len(value) if isinstance(value, list) else 1)
    return counts


def request_of(asked: Asked, *, step: int, now: int, plain: Callable[[Any], Any]) -> Request:
    """An interrupt as a request: in the format of an approval where its payload is one, else with the form
    that its schema makes, else anything as JSON.

    Args:
        step: the step that it is about.
        now: microseconds since the Unix epoch.
        plain: makes JSON of a value of theirs.
    """
    payload = plain(asked.interrupt.value)
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
    checked = replace(request, schema=plain(schema))
    try:
        answer_schema(checked)
    except GraphInvalid:
        return request  # LangGraph itself checks the answer by what the schema was made from
    return checked


def _title(payload: Any, asked: Asked) -> str:
    if isinstance(payload, Mapping):
        payload = next((payload[key] for key in TITLES if isinstance(payload.get(key), str)), "")
    words = payload.strip().partition("\n")[0] if isinstance(payload, str) else ""
    if not words:
        return f"{asked.path or asked.node} asks"
    return words if len(words) <= _LONGEST_TITLE else f"{words[: _LONGEST_TITLE - 1]}…"


def stops_before(snapshot: StateSnapshot, nodes: str | Collection[str]) -> tuple[str, ...]:
    """The nodes that come next and that the graph was compiled to stop before.

    A task that was begun has passed it.
    """
    fresh = [task.name for task in snapshot.tasks if is_unfinished(task) and not _begun(task)]
    return _named(fresh, nodes)


def stops_after(ran: Iterable[str], nodes: str | Collection[str]) -> tuple[str, ...]:
    """The nodes of a superstep that has ended and that the graph was compiled to stop after."""
    return _named(ran, nodes)


def _named(names: Iterable[str], nodes: str | Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if nodes == ALL or name in nodes))


def _begun(task: PregelTask) -> bool:
    inner = task.state.tasks if isinstance(task.state, StateSnapshot) else ()
    return bool(task.error or task.interrupts or inner)


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


def resume(answers: Mapping[str, Any], waiting: Iterable[Asked]) -> Command[Any]:
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
    snapshot: StateSnapshot, head: int, graph: GraphInfo, whole: Collection[str] = ()
) -> Repeats | None:
    """Which nodes run again from their start once an answer is handed over; None where nothing does.

    All tasks that have not finished do, with whatever they did before they asked: those that were answered,
    and their siblings that were not.

    Args:
        whole: the nodes that are a subgraph themselves: only what asks inside them runs again.
    """
    runs: dict[str, int] = {}
    for node in _runs_again(snapshot, whole, ""):
        runs[node] = runs.get(node, 0) + 1
    if not runs:
        return None
    return Repeats(
        head,
        head,
        tuple(NodeRepeat(node, times, outside_of(graph, node)) for node, times in runs.items()),
    )


def _runs_again(snapshot: StateSnapshot, whole: Collection[str], prefix: str) -> Iterator[str]:
    for task in snapshot.tasks:
        if not is_unfinished(task):
            continue
        place = f"{prefix}{task.name}"
        inner = task.state if isinstance(task.state, StateSnapshot) and task.state.tasks else None
        if inner is None:
            if _begun(task):
                yield place
            continue
        if place not in whole:
            yield place
        yield from _runs_again(inner, whole, f"{place}/")
