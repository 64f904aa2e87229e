"""Questions to the log of a thread: where a text occurs, when a condition became true, values over time.

Only the store is read, piece by piece, in the caller's thread; private values are never searched. The
caller gets results as they come, and ends the search by raising an error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

from hitl_tui.drivers.expressions import Expression, ExpressionUndefined, check_expression
from hitl_tui.engine.log.records import CHANNELS, Checkpoint, UpdateRecord
from hitl_tui.engine.log.units import Maybe, about
from hitl_tui.engine.thread.logged import LoggedThread, defaults_of
from hitl_tui.engine.thread.rebuild import Decoded, next_value, state_at

if TYPE_CHECKING:
    from hitl_tui.drivers.reading import OpenedThread
    from hitl_tui.engine.log.records import LedgerEntry
    from hitl_tui.engine.log.store import Store

MOST_HITS: Final = 500
"""Most places that a search finds."""
AROUND: Final = 60
"""Characters that are returned before and after a match."""
_FIRST_PIECE, _LARGEST_PIECE = 512, 16_384
_CHUNK = 64
"""Candidate steps whose records are read at once."""

HitKind: TypeAlias = Literal["update", "streamed", "tool", "note", "error"]


class SearchHit(msgspec.Struct, frozen=True):
    """A place in the log that contains a text; texts are raw.

    For an update, `path` is the place in the value of its channel, as `[2].source`.
    """

    step: Annotated[int, about("The step.")]
    node: Annotated[Maybe, about("The writer: a node or a person.")]
    kind: Annotated[HitKind, about("The kind of text that contains the match.")]
    name: Annotated[Maybe, about("The channel, agent, tool or kind of decision.")]
    path: Annotated[Maybe, about("The path in the channel's value.")]
    before: Annotated[str, about("The text before the match.")]
    match: Annotated[str, about("The matching text, as written.")]
    after: Annotated[str, about("The text after the match.")]
    thread: Annotated[Maybe, about("The subgraph's thread that contains it; empty for this thread.")] = ""


HitsCallback: TypeAlias = Callable[[tuple[SearchHit, ...], int, int], object]
"""Called with hits (newest step first), the number of searched steps, and the number of all steps."""


class Moment(msgspec.Struct, frozen=True):
    """A step at which a condition became true.

    `before` and `after` are the values of the expression's channels that the step wrote.
    """

    step: Annotated[int, about("The step.")]
    node: Annotated[Maybe, about("The node that made it.")]
    actor: Annotated[str | None, about("The person who made it.")]
    before: Annotated[Mapping[str, Any], about("The channels that it wrote, with their values before it.")]
    after: Annotated[Mapping[str, Any], about("The same channels, with their values after it.")]


class Asked(msgspec.Struct, frozen=True):
    """When a condition was true.

    Args:
        moments: the steps at which it became true, oldest first.
        holds: whether it is true at the newest step; None if that is unknown.
        undefined: the number of steps at which it was undefined; `why` is for the first of them.
        looked: the number of evaluated steps.
    """

    moments: Annotated[tuple[Moment, ...], about("The steps at which it became true, oldest first.")]
    holds: Annotated[bool | None, about("Whether it is true at the last evaluated step.")]
    undefined: Annotated[int, about("The number of steps at which it was undefined.")]
    why: Annotated[Maybe, about("Why it was undefined at the first of them.")]
    looked: Annotated[int, about("The number of evaluated steps.")]


MomentsCallback: TypeAlias = Callable[[tuple[Moment, ...], int, int], object]


class Sample(msgspec.Struct, frozen=True):
    """The value of an expression at a step; `why` says why it is undefined, "" if it is not."""

    step: Annotated[int, about("The step.")]
    value: Annotated[Any, about("The value; null if the expression is undefined.")] = None
    why: Annotated[Maybe, about("Why the expression is undefined.")] = ""


def search(thread: OpenedThread, store: Store, query: str, report: HitsCallback) -> None:
    """Search all steps for a text, newest first, ignoring case.

    Searches updates, output, tool calls, notes and decisions, and errors. In an edited value, only steps
    that brought the text in count. Threads that ran inside this one follow; for a fork also those of the
    shared steps. Reports at most `MOST_HITS`.
    """
    from hitl_tui.engine.nodes.children import descendants

    head = thread.cursor.head
    if not query.strip() or not thread.exists:
        report((), head + 1, head + 1)
        return
    left = _search(thread, store, query, MOST_HITS, report)
    for child in reversed(descendants(store, thread.cursor)):
        if left <= 0 or store.info(child.thread_id) is None:
            continue

        def report_inside(
            hits: tuple[SearchHit, ...], _looked: int, _of: int, name: str = child.thread_id
        ) -> None:
            report(tuple(msgspec.structs.replace(hit, thread=name) for hit in hits), head + 1, head + 1)

        left = _search(LoggedThread.checked(store, child.thread_id), store, query, left, report_inside)


def _search(thread: OpenedThread, store: Store, query: str, left: int, report: HitsCallback) -> int:
    """Search one thread for a limited number of hits; returns how many more may be reported."""
    head = thread.cursor.head
    finder = _Finder(thread, store, query.casefold())
    last, piece = head, _FIRST_PIECE
    while last >= 0 and left > 0:
        first = max(0, last - piece + 1)
        for some in finder.chunks(query, first, last):
            hits = tuple(hit for step in some for hit in finder.hits(step))[:left]
            left -= len(hits)
            if hits:
                report(hits, head - some[-1] + 1, head + 1)
            if left <= 0:
                return 0
        report((), head - first + 1, head + 1)
        last, piece = first - 1, min(piece * 2, _LARGEST_PIECE)
    return left


class _Finder:
    def __init__(self, thread: OpenedThread, store: Store, wanted: str) -> None:
        self._thread = thread
        self._store = store
        self._wanted = wanted
        declared = thread.declared.channels
        self._private = {channel.name for channel in declared if channel.visibility == "private"}
        self._reduced = {channel.name for channel in declared if channel.reducer != "overwrite"}
        """Channels whose updates are only a part of their value."""
        self._decoded = Decoded()
        self._entries: dict[int, list[LedgerEntry]] = defaultdict(list)
        for entry in store.ledger(thread.thread_id, call_data=False):
            if self._stands_in(entry.kind, entry.actor, entry.note):
                self._entries[entry.step].append(entry)
        self._records: dict[int, list[UpdateRecord]] = {}
        self._points: dict[int, Checkpoint] = {}

    def chunks(self, query: str, first: int, last: int) -> Iterator[list[int]]:
        """Yield the steps that may contain the text, newest first, in chunks whose rows are read together."""
        thread_id, store = self._thread.thread_id, self._store
        steps = {*store.steps_with(thread_id, first, last, query)}
        steps |= {step for step in self._entries if first <= step <= last}
        newest_first = sorted(steps, reverse=True)
        for at in range(0, len(newest_first), _CHUNK):
            some = newest_first[at : at + _CHUNK]
            low, high = some[-1], some[0]
            near = high - low < 4 * len(some)
            spans = [(low, high)] if near else [(step, step) for step in some]
            self._records = defaultdict(list)
            self._points = {}
            for start, end in spans:
                for record in store.records(thread_id, start, end):
                    self._records[record.step].append(record)
                for point in store.checkpoints(thread_id, end + 1, end - start + 1):
                    self._points[point.step] = point
            yield some

    def hits(self, step: int) -> Iterator[SearchHit]:
        """Return the matches in a step."""
        for record in self._records.get(step, ()):
            if record.visibility == "public" and record.channel not in self._private:
                yield from self._in_update(record)
        if point := self._points.get(step):
            yield from self._in_point(point)
        for entry in self._entries.get(step, ()):
            kind: HitKind = "error" if entry.kind == "failed" else "note"
            for text in (entry.note, entry.actor, entry.kind):
                if hit := self._cut(text):
                    yield SearchHit(step, entry.actor or "", kind, entry.kind, "", *hit)
                    break

    def _in_update(self, record: UpdateRecord) -> Iterator[SearchHit]:
        values = [] if record.patched else [record.update]
        before: Any = None
        if record.patched or record.result is not msgspec.UNSET:
            before, after = self._edited(record)
            values.append(after)
        for at, value in enumerate(values):
            place = self._place(value)
            is_update = at == 0 and not record.patched
            if place is not None and (is_update or not self._place(before)):
                path, hit = place
                if is_update and record.channel in self._reduced:
                    path = self._path_in_channel(record, path)
                who = record.actor or record.node or record.source
                yield SearchHit(record.step, who, "update", record.channel, path, *hit)
                return
        if noted := self._cut(record.note):
            yield SearchHit(record.step, record.actor or record.node, "note", record.channel, "", *noted)

    def _path_in_channel(self, record: UpdateRecord, path: str) -> str:
        """Return the path in the channel's value; `path` is the one in the update."""
        after = self._edited(record)[1]
        if not _is_nested(after):
            return ""
        written = dict(leaves(record.update)).get(path) if _is_nested(record.update) else record.update
        # New elements are at the end of a list.
        places = [(place, leaf) for place, leaf in leaves(after) if self._cut(leaf)]
        ending = [(place, leaf) for place, leaf in places if place.endswith(path.partition("]")[2])]
        same = [(place, leaf) for place, leaf in ending if leaf == written]
        return (same or ending or places or [(path, "")])[-1][0]

    def _edited(self, record: UpdateRecord) -> tuple[Any, Any]:
        """Return the values of a record's channel before and after it."""
        name, defaults = record.channel, defaults_of(self._thread.declared)
        value = defaults.get(name)
        if record.step > 0:
            thread_id, step = self._thread.thread_id, record.step - 1
            state = state_at(self._store, thread_id, step, defaults, {name}, decoded=self._decoded)
            value = state.get(name)
        before = value
        for earlier in self._records[record.step]:
            if earlier.channel == name and earlier.seq <= record.seq:
                before, value = value, next_value(earlier, value)
        return before, value

    def _in_point(self, point: Checkpoint) -> Iterator[SearchHit]:
        node = point.node or point.source
        for said in point.streamed:
            if hit := self._cut(said.text) or self._cut(said.end):
                yield SearchHit(point.step, node, "streamed", said.agent or said.path, "", *hit)
        for call in point.calls:
            for value in (call.tool, call.arguments, call.result, call.error):
                if value is not None and (place := self._place(value)):
                    yield SearchHit(point.step, node, "tool", call.tool, "", *place[1])
                    break
        for name, text in (("says", point.text), ("decision", point.decision), ("note", point.note)):
            if hit := self._cut(text):
                yield SearchHit(point.step, point.actor or node, "note", name, "", *hit)
        for branch in point.branches:
            if branch.error and (hit := self._cut(branch.error.message)):
                yield SearchHit(point.step, node, "error", branch.path, "", *hit)

    def _stands_in(self, *texts: str | None) -> bool:
        return any(text and self._wanted in text.casefold() for text in texts)

    def _place(self, value: Any) -> tuple[str, tuple[str, str, str]] | None:
        """Return the first place in a value that contains the text, as a path, and the text around it."""
        if isinstance(value, str):
            hit = self._cut(value)
            return ("", hit) if hit else None
        if not isinstance(value, (list, dict)):
            hit = self._cut(msgspec.json.encode(value).decode())
            return ("", hit) if hit else None
        for path, leaf in leaves(value):
            if hit := self._cut(leaf):
                return path, hit
        return None

    def _cut(self, text: str | None) -> tuple[str, str, str] | None:
        """Return the text before the match, the match as it is written there, and the text after it."""
        if not text:
            return None
        folded = text.casefold()
        at = folded.find(self._wanted)
        if at < 0:
            return None
        if len(folded) != len(text):  # positions in one are not those in the other
            return "", text[: 2 * AROUND], ""
        end = at + len(self._wanted)
        return text[max(0, at - AROUND) : at], text[at:end], text[end : end + 2 * AROUND]


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | dict)


def leaves(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every key and every plain value in a list or a dict, each with its path, without recursion."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict):
            inner = [(f"{path}.{key}" if key.isidentifier() else f"{path}[{key!r}]", key) for key in item]
            yield from inner
            waiting += [(place, item[key]) for place, key in reversed(inner)]
        elif isinstance(item, list):
            waiting += [(f"{path}[{index}]", item[index]) for index in range(len(item) - 1, -1, -1)]
        else:
            yield path, item if isinstance(item, str) else msgspec.json.encode(item).decode()


def ask(
    thread: OpenedThread, store: Store, text: str, report: MomentsCallback, *, first: bool = False
) -> Asked:
    """Return the steps at which a condition became true, oldest first; reads only the channels it names.

    An undefined condition counts as false. With `first`, only the first step is wanted.

    Raises:
        ExpressionInvalid: it can't be read, or names no public channel.
    """
    names = _names(thread, text)
    expression = Expression(text)
    head = thread.cursor.head
    moments: list[Moment] = []
    held, undefined, why, reported, looked = False, 0, "", 0, 0
    holds: bool | None = None
    for step, before, values in _fold(thread, store, names, 0, head):
        looked = step + 1
        if values is not None:
            try:
                holds = expression.holds(values)
            except ExpressionUndefined as error:
                holds, undefined, why = None, undefined + 1, why or error.message
            if holds and not held:
                moments.append(_moment(store, thread.thread_id, step, before, values))
            held = bool(holds)
        if (first and moments) or looked % _TOLD_EVERY == 0:
            report(tuple(moments[reported:]), looked, head + 1)
            reported = len(moments)
        if first and moments:
            break
    report(tuple(moments[reported:]), looked, head + 1)
    return Asked(tuple(moments), holds, undefined, why, looked)


_TOLD_EVERY = 4_096
"""Steps between two reports of progress."""


def bisect(thread: OpenedThread, store: Store, text: str) -> Asked:
    """Return the first step at which a condition is true that then stays true; reads some twenty states.

    Raises:
        ExpressionInvalid: it can't be read, or names no public channel.
    """
    names = _names(thread, text)
    expression, decoded = Expression(text), Decoded()
    defaults = defaults_of(thread.declared)
    looked, undefined, why = 0, 0, ""

    def check(step: int) -> bool | None:
        nonlocal looked, undefined, why
        looked += 1
        values = state_at(store, thread.thread_id, step, defaults, names, decoded=decoded)
        try:
            return expression.holds(values)
        except ExpressionUndefined as error:
            undefined, why = undefined + 1, why or error.message
            return None

    low, high = 0, thread.cursor.head
    holds = check(high) if high >= 0 else None
    if not holds:
        return Asked((), holds, undefined, why, looked)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if check(middle) else (middle + 1, high)
    ((_, before, values),) = _fold(thread, store, names, low, low)
    moment = _moment(store, thread.thread_id, low, before, values or {})
    return Asked((moment,), True, undefined, why, looked)


def series(
    thread: OpenedThread, store: Store, texts: Sequence[str], last: int, most: int
) -> tuple[tuple[Sample, ...], ...]:
    """Return the values of expressions over the run up to a step: all, or at most `most` samples, evenly.

    An invalid expression says so in its only sample.
    """
    read: dict[str, tuple[Expression, frozenset[str]]] = {}
    samples: dict[str, list[Sample]] = {text: [] for text in texts}
    for text in samples:
        try:
            read[text] = Expression(text), _names(thread, text)
        except Exception as error:
            samples[text] = [Sample(last, None, getattr(error, "why", str(error)))]
    names = frozenset().union(*(named for _, named in read.values()))
    for step, values in _states(thread, store, names, last, most) if read else ():
        for text, (expression, _) in read.items():
            samples[text].append(sample(expression, step, values))
    return tuple(tuple(samples[text]) for text in texts)


def sample(expression: Expression, step: int, values: Mapping[str, Any]) -> Sample:
    """Return the value of an expression for some values."""
    try:
        return Sample(step, expression.value(values))
    except ExpressionUndefined as error:
        return Sample(step, None, error.message)


_FOLDED = 2_000
"""Most steps that are folded one by one; for more, separate states are built."""


def _states(
    thread: OpenedThread, store: Store, names: frozenset[str], last: int, most: int
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    count = min(last + 1, most)
    steps = sorted({round(index * last / max(count - 1, 1)) for index in range(count)})
    if last < _FOLDED:
        wanted = set(steps)
        current: Mapping[str, Any] = {}
        for step, _, values in _fold(thread, store, names, 0, last):
            current = values if values is not None else current
            if step in wanted:
                yield step, current
        return
    decoded, defaults = Decoded(), defaults_of(thread.declared)
    for step in steps:
        yield step, state_at(store, thread.thread_id, step, defaults, names, decoded=decoded)


def _fold(
    thread: OpenedThread, store: Store, names: frozenset[str], first: int, last: int
) -> Iterator[tuple[int, dict[str, Any], dict[str, Any] | None]]:
    """Return for each of some steps the channel values after it, None if it wrote none of them.

    Between them, the written channels keep their values.
    """
    thread_id, defaults = thread.thread_id, defaults_of(thread.declared)
    own = {name: value for name, value in defaults.items() if name in names}
    values = state_at(store, thread_id, first - 1, defaults, names) if first > 0 else own
    # From some steps on there are other channels than before, with values that no record has.
    anew = {entry.step for entry in store.ledger(thread_id, call_data=False) if entry.kind == CHANNELS}
    step, looked_at = first, False
    for at, effects in groupby(store.effects(thread_id, first, last, names), key=lambda effect: effect.step):
        while step < at:
            yield step, {}, None if looked_at else dict(values)
            looked_at, step = True, step + 1
        before = dict(values)
        for effect in effects:
            values[effect.channel] = next_value(effect, values.get(effect.channel))
        if at in anew:
            values = state_at(store, thread_id, at, defaults, names)
        changed = {name: before.get(name) for name in names if values.get(name) is not before.get(name)}
        yield at, changed, dict(values)
        looked_at, step = True, at + 1
    while step <= last:
        yield step, {}, None if looked_at else dict(values)
        looked_at, step = True, step + 1


def _moment(
    store: Store, thread_id: str, step: int, before: Mapping[str, Any], values: Mapping[str, Any]
) -> Moment:
    point = store.checkpoint(thread_id, step)
    node, actor = (point.node or point.source, point.actor) if point else ("", None)
    return Moment(step, node, actor, dict(before), {name: values[name] for name in before})


def _names(thread: OpenedThread, text: str) -> frozenset[str]:
    """Return the channels that an expression names."""
    check_expression(text, thread.declared.channels)
    return Expression(text).names & {channel.name for channel in thread.declared.channels}
