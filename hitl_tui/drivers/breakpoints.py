"""Breakpoints of a run: read from text, checked against a graph, and checked during the run.

    [before] NODE        after NODE       change CHANNEL[.path]       tool [NAME]       error [NODE]

each optionally followed by ` hit N`, ` log "a text with n={n}"` and `: CONDITION`, in this order.
A node inside a subgraph is `outer/inner`, a branch `group/member`, `scan[2]` or `scan[*]`.

A run never stops twice at the same place: if a breakpoint, a pause or a failure had stopped the thread, the
run does not stop before its first node. After an answer it can, since it has not stopped there yet.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec.structs import replace

from hitl_tui.drivers.expressions import (
    Expression,
    ExpressionInvalid,
    ExpressionUndefined,
    check_expression,
)
from hitl_tui.engine.graph.description import GraphInfo, NodeInfo
from hitl_tui.engine.log.events import BreakpointHit, Progress
from hitl_tui.engine.log.outcomes import Frame
from hitl_tui.engine.log.records import NOTE, LedgerEntry
from hitl_tui.engine.state.canonical import equal
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.breakpoints import Breakpoint, StopKind
from hitl_tui.suggest import did_you_mean

if TYPE_CHECKING:
    from hitl_tui.engine.thread.session import Session

KINDS: Final[tuple[StopKind, ...]] = get_args(StopKind)
FACTS: Final[Mapping[str, tuple[str, ...]]] = {
    "before": ("item", "index"),
    "after": (),
    "change": ("old", "new"),
    "tool": ("tool", "arguments"),
    "error": ("error", "message"),
}
"""What an expression may name besides channels, by the kind of breakpoint."""
_ANSWERS = ("answer", "timeout")
_STEPS_LOOKED_AT = 20
_LONGEST_VALUE: Final = 200
_LONGEST_LINE: Final = 2_000
_MOST_HITS: Final = 1_000_000_000


class BreakpointInvalid(ExpressionInvalid):
    """A breakpoint that can't be read, or whose place the graph lacks; `column` says where."""

    title = "The breakpoint can't be read"


def _as_json(value: Any) -> str:
    import json  # only a log breakpoint needs it, and every status line imports this module

    return json.dumps(value, ensure_ascii=False, default=str)


def describe(point: Breakpoint) -> str:
    """Return a breakpoint as `read_breakpoint` takes it, as in "before worker: revision_n > 2"."""
    words = [point.kind, point.place]
    if point.hit:
        words.append(f"hit {point.hit}")
    if point.log:
        words.append(f"log {_as_json(point.log)}")
    text = " ".join(word for word in words if word)
    return f"{text}: {point.condition}" if point.condition else text


_HIT = re.compile(r" +hit +(\S+?)(?=[ :]|$)")
_LOG = re.compile(r" +log +")
_OPENS, _CLOSES = "([{", ")]}"


def read_breakpoint(text: str, graph: GraphInfo) -> Breakpoint:
    """Read the text of a breakpoint of this graph; names of nodes may contain colons and option words.

    Raises:
        BreakpointInvalid: it can't be read, or there is no such place.
    """
    return _Reader(text, graph).read()


def read_breakpoints(texts: Iterable[str], graph: GraphInfo) -> tuple[Breakpoint, ...]:
    """Read several breakpoints; raises as `read_breakpoint`."""
    return tuple(read_breakpoint(text, graph) for text in texts)


def check_breakpoint(point: Breakpoint, graph: GraphInfo) -> None:
    """Check that a run of this graph can have a breakpoint.

    Raises:
        BreakpointInvalid: it can't.
    """
    read_breakpoint(describe(point), graph)


def put(points: Sequence[Breakpoint], point: Breakpoint) -> tuple[Breakpoint, ...]:
    """Return the breakpoints with one more; of two that stop, or log, at one place the new one counts."""
    same = [_mark(other) == _mark(point) for other in points]
    if any(same):
        return tuple(point if alike else other for other, alike in zip(points, same, strict=True))
    return (*points, point)


def toggled(points: Sequence[Breakpoint], node: str) -> tuple[Breakpoint, ...]:
    """Return the breakpoints without those that stop before a node; with a new one if there were none."""
    rest = tuple(point for point in points if (point.kind, point.place, point.log) != ("before", node, ""))
    return rest if len(rest) < len(points) else (*points, Breakpoint("before", node))


def _mark(point: Breakpoint) -> tuple[str, str, bool]:
    return point.kind, point.place, bool(point.log)


def fits(point: Breakpoint, graph: GraphInfo) -> bool:
    """Whether a run of this graph can have a breakpoint; a saved one may be for an older version."""
    try:
        check_breakpoint(point, graph)
    except BreakpointInvalid:
        return False
    return True


class _Reader:
    def __init__(self, text: str, graph: GraphInfo) -> None:
        self.text = text
        self.graph = graph
        self.at = 0

    def read(self) -> Breakpoint:
        self._skip()
        begin = self.at
        kind: StopKind = "before"
        place = self._known_node(begin)
        if place is None:
            word = re.compile(r"[a-z]+(?=[ :]|$)").match(self.text, begin)
            if word and word[0] in KINDS:
                kind = next(known for known in KINDS if known == word[0])
                self.at = word.end()
                self._skip()
            begin = self.at
            place = self._known_node(begin) if kind != "change" else None
            place = self._until_option(begin) if place is None else place
        hit, log = self._hit(), self._log()
        condition = self._condition()
        self._check_place(kind, place, begin)
        point = Breakpoint(kind, place, condition, hit, log)
        self._check_expressions(point)
        return point

    def _skip(self) -> None:
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1

    def _known_node(self, begin: int) -> str | None:
        """Return the longest name of a node at this position that is followed only by options."""
        names = sorted((node.name for node in self.graph.nodes), key=len, reverse=True)
        for name in names:
            rest = self.text[begin + len(name) :]
            if self.text.startswith(name, begin) and (
                not rest.strip() or rest.lstrip().startswith(":") or _HIT.match(rest) or _LOG.match(rest)
            ):
                self.at = begin + len(name)
                return name
        return None

    def _until_option(self, begin: int) -> str:
        """Return the text up to a colon, ` hit ` or ` log `, ignoring those in brackets and quotes."""
        depth, quote, at = 0, "", begin
        while at < len(self.text):
            char = self.text[at]
            if quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char in _OPENS or char in _CLOSES:
                depth += 1 if char in _OPENS else -1
            elif depth <= 0 and (char == ":" or _HIT.match(self.text, at) or _LOG.match(self.text, at)):
                break
            at += 1
        self.at = at
        return self.text[begin:at].strip()

    def _hit(self) -> int:
        match = _HIT.match(self.text, self.at)
        if match is None:
            return 0
        number = match[1]
        if not (
            number.isascii() and number.isdigit() and 0 < int(number[:10]) <= _MOST_HITS and len(number) <= 10
        ):
            raise self._wrong("hit takes a number from 1", match.start(1), "as in: hit 3")
        self.at = match.end()
        return int(number)

    def _log(self) -> str:
        match = _LOG.match(self.text, self.at)
        if match is None:
            return ""
        import json

        begin = match.end()
        try:
            log, self.at = json.JSONDecoder().raw_decode(self.text, begin)
        except ValueError:
            log = None
        if not isinstance(log, str) or not log:
            raise self._wrong("log takes a text in double quotes", begin, 'as in: log "n={n}"')
        return log

    def _condition(self) -> str:
        self._skip()
        rest = self.text[self.at :]
        if rest and not rest.startswith(":"):
            raise self._wrong('here only hit N, log "TEXT" or : and a condition can stand', self.at)
        return rest[1:].strip()

    def _check_place(self, kind: StopKind, place: str, begin: int) -> None:
        if not place:
            if kind not in ("tool", "error"):
                what = "a channel" if kind == "change" else "a node"
                raise self._wrong(f"{kind} takes {what}", begin)
        elif kind == "change":
            graph, path = inside_graph(self.graph, place)
            offset = begin + len(place) - len(path)
            self._check_expression(path, graph, offset)
        elif kind != "tool":
            self._check_node(kind, place, begin)

    def _check_node(self, kind: StopKind, place: str, begin: int) -> None:
        graph, name = inside_graph(self.graph, place)
        names = [node.name for node in graph.nodes]
        if name in names:
            return
        node, branch = branch_of(graph, name)
        if node is not None and kind == "after":
            why = f"a branch commits with its step: break after {node.name}"
            raise self._wrong(why, begin)
        if node is None or branch is None:
            known = names if node is None else [f"{node.name}/{member.name}" for member in node.members]
            hint = did_you_mean(name, known)
            raise self._wrong(f"the graph {graph.name!r} has no node {name!r}", begin, hint)

    def _check_expressions(self, point: Breakpoint) -> None:
        graph = self.graph if point.kind == "tool" else inside_graph(self.graph, point.place)[0]
        facts = FACTS[point.kind]
        if point.condition:
            begin = self.text.index(":", self.at) + 1
            begin += len(self.text[begin:]) - len(self.text[begin:].lstrip())
            self._check_expression(point.condition, graph, begin, facts)
        for part in template(point.log):
            if isinstance(part, tuple):
                # Its position in the text is known as long as nothing in it is escaped.
                begin = max(self.text.find("{" + part[0], 0), 0) + 1
                self._check_expression(part[0], graph, begin, facts)

    def _check_expression(
        self, expression: str, graph: GraphInfo, begin: int, facts: Sequence[str] = ()
    ) -> None:
        try:
            check_expression(expression, graph.channels, facts)
        except ExpressionInvalid as error:
            raise BreakpointInvalid(self.text, error.why, begin + error.column) from None

    def _wrong(self, why: str, at: int, hint: str = "") -> BreakpointInvalid:
        return BreakpointInvalid(self.text, why, min(at, len(self.text)) + 1, hint)


def template(log: str) -> list[str | tuple[str]]:
    """Split a logged text into parts: text, and expressions as tuples of one; `{{` is a brace.

    A brace that is not closed stands for itself.
    """
    parts: list[str | tuple[str]] = []
    words, at = "", 0
    while at < len(log):
        if log[at : at + 2] in ("{{", "}}"):
            words, at = words + log[at], at + 2
        elif log[at] == "{" and (end := _closing(log, at)) is not None:
            parts += [words, (log[at + 1 : end],)]
            words, at = "", end + 1
        else:
            words, at = words + log[at], at + 1
    return [part for part in (*parts, words) if part]


def _closing(log: str, begin: int) -> int | None:
    depth = 0
    for at in range(begin, len(log)):
        depth += {"{": 1, "}": -1}.get(log[at], 0)
        if not depth:
            return at
    return None


def inside_graph(graph: GraphInfo, place: str) -> tuple[GraphInfo, str]:
    """Return the graph that a path of subgraph nodes leads to, and the rest of the path."""
    while True:
        names = (node for node in graph.nodes if node.graph is not None and place.startswith(f"{node.name}/"))
        node = max(names, key=lambda node: len(node.name), default=None)
        if node is None or node.graph is None or any(other.name == place for other in graph.nodes):
            return graph, place
        graph, place = node.graph, place[len(node.name) + 1 :]


_BRANCH = re.compile(r"(.+)\[(\d{1,9}|\*)\]")


def branch_of(graph: GraphInfo, place: str) -> tuple[NodeInfo | None, str | None]:
    """Return the map or parallel whose branch a place names, and the branch; None for no such branch."""
    if (match := _BRANCH.fullmatch(place)) and (node := graph.node(match[1])) and node.kind == "map":
        return node, match[2]
    for node in graph.nodes:
        if node.kind == "parallel" and place.startswith(f"{node.name}/"):
            member = place[len(node.name) + 1 :]
            return node, member if any(other.name == member for other in node.members) else None
    return None, None


def stopped_by(progress: Progress, ledger: Sequence[LedgerEntry]) -> str:
    """Return the breakpoint at which a thread waits, as in "breakpoint before worker"; "" for none.

    Of a pause inside a subgraph it says in which thread; who has paused it is an entry after that, and so
    are notes.
    """
    if progress.status != "waiting" or progress.reason != "paused":
        return ""
    last = next((entry for entry in reversed(ledger) if entry.kind not in ("pause", NOTE)), None)
    return last.note or "" if last and _is_breakpoint(last) and last.step == progress.head else ""


class Hits:
    """Counts how often breakpoints were hit, over several runs and from any thread."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, name: str) -> int:
        """Count one more hit; returns the number of hits."""
        with self._lock:
            self._counts[name] += 1
            return self._counts[name]


class _Armed:
    """A breakpoint with what it needs to be checked.

    Args:
        place: its place in the graph of the thread.
        name: its name in the outermost thread, which counts its hits.
    """

    def __init__(self, point: Breakpoint, place: str, name: str) -> None:
        self.point = point
        self.place = place
        self.name = name
        self.condition = Expression(point.condition) if point.condition else None
        self.parts = [
            Expression(part[0]) if isinstance(part, tuple) else part for part in template(point.log)
        ]
        self.path = Expression(place) if point.kind == "change" else None

    def stops_at(self, place: str) -> bool:
        """Whether it is about a place: a node, a branch or a tool."""
        if self.place in ("", place):
            return True
        return self.place.endswith("[*]") and place.startswith(self.place[:-2])

    def line(self, values: Mapping[str, Any]) -> str:
        """Return the line that it logs."""
        return "".join(part if isinstance(part, str) else _value_text(part, values) for part in self.parts)[
            :_LONGEST_LINE
        ]


def _value_text(expression: Expression, values: Mapping[str, Any]) -> str:
    try:
        value = expression.value(values)
    except ExpressionUndefined as error:
        return f"({error.message})"
    text = value if isinstance(value, str) else _as_json(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


class RunStops:
    """The breakpoints of a run, or of what runs inside it.

    Raises:
        BreakpointInvalid: as `check_breakpoint`.
    """

    def __init__(
        self, breakpoints: Iterable[Breakpoint], graph: GraphInfo, hits: Hits, outer: str = ""
    ) -> None:
        self._graph = graph
        self._hits = hits
        self._outer = outer
        self._returned: tuple[str, tuple[Frame, ...]] = ("", ())
        self._points = [point for point in breakpoints if not point.off]
        self._armed: dict[str, list[_Armed]] = {kind: [] for kind in KINDS}
        for point in self._points:
            check_breakpoint(point, graph)
            if point.kind == "tool" or inside_graph(graph, point.place)[0] is graph:
                name = describe(replace(point, place=f"{outer}{point.place}"))
                self._armed[point.kind].append(_Armed(point, point.place, name))

    def before(self, session: Session, node: str, first: bool) -> str:
        """Check before a node; `first` if the run begins with it."""
        armed = [each for each in self._armed["before"] if each.place == node]
        return self._asked(armed, session, node) if armed and not (first and _stood_here(session)) else ""

    def after(self, session: Session, node: str, state: LiveState) -> str:
        """Check after a node is committed."""
        armed = [each for each in self._armed["after"] if each.place == node]
        why = self._asked(armed, session, node) if armed else ""
        for each in self._armed["change"]:
            old, new = (_value(each, session, values) for values in (state.values, session.state.values))
            if not (old is new or equal(old, new)):
                why = self._asked([each], session, node, {"old": old, "new": new}) or why
        return why

    def shows_return(self, node: str) -> bool:
        """Whether the run may stop after a node because of what it returned."""
        armed = (*self._armed["change"], *(each for each in self._armed["after"] if each.place == node))
        return any(not each.point.log for each in armed)

    def returned(self, node: str, frames: tuple[Frame, ...]) -> None:
        """Note where a node returns."""
        self._returned = (node, frames)

    def branch(self, session: Session, path: str, item: Any, index: int) -> str:
        """Check before a branch."""
        armed = [each for each in self._armed["before"] if each.stops_at(path)]
        return self._asked(armed, session, path, {"item": item, "index": index}) if armed else ""

    def error(self, session: Session, path: str, error: Exception) -> str:
        """Check when an attempt has failed."""
        node = path.partition("[")[0]
        armed = [each for each in self._armed["error"] if each.stops_at(path) or each.place == node]
        if not armed:
            return ""
        cause = error.__cause__ or error
        facts = {"error": type(cause).__name__, "message": getattr(error, "message", str(error))}
        return self._asked(armed, session, path, facts)

    def tool(self, session: Session, path: str, tool: str, arguments: Mapping[str, Any] | str) -> str:
        """Check before a tool is called."""
        armed = [each for each in self._armed["tool"] if each.place in ("", tool)]
        return self._asked(armed, session, path, {"tool": tool, "arguments": arguments}) if armed else ""

    def inside(self, node: str) -> RunStops | None:
        """Return those for a subgraph's thread: inside its node, and for tools and errors anywhere."""
        info = self._graph.node(node)
        if info is None or info.graph is None:
            return None
        prefix = f"{node}/"
        points = [
            replace(point, place=point.place[len(prefix) :])
            for point in self._points
            if point.kind != "tool" and point.place.startswith(prefix)
        ]
        points += [point for point in self._points if _anywhere(point) and fits(point, info.graph)]
        return RunStops(points, info.graph, self._hits, f"{self._outer}{prefix}") if points else None

    def _asked(
        self, armed: Iterable[_Armed], session: Session, node: str, facts: Mapping[str, Any] | None = None
    ) -> str:
        """Return why to stop, "" to continue; every breakpoint that is hit counts it and logs its line."""
        values = {**_public(session, session.state.values), **(facts or {})}
        whys = [self._hit(each, session, node, values) for each in armed]
        return next(filter(None, whys), "")

    def _hit(self, armed: _Armed, session: Session, node: str, values: Mapping[str, Any]) -> str:
        point, doubt = armed.point, ""
        if armed.condition is not None:
            try:
                if not armed.condition.holds(values):
                    return ""
            except ExpressionUndefined as error:
                doubt = f" (it can't be evaluated: {error.message})"
        hits = self._hits.add(armed.name)
        counts = not point.hit or hits == point.hit
        line = armed.line(values) + doubt if point.log and counts else ""
        stops = counts and not point.log
        frames: tuple[Frame, ...] = ()
        if stops and point.kind in ("after", "change") and self._returned[0] == node:
            frames = self._returned[1]
        if session.sink:
            session.emit(BreakpointHit(node, armed.name, hits, stops, line, frames))
        return f"breakpoint {armed.name}{doubt}" if stops else ""


def _anywhere(point: Breakpoint) -> bool:
    """Whether a breakpoint applies to whatever runs, also inside, if the thing it names exists there."""
    return point.kind == "tool" or (point.kind == "error" and not point.place)


def _public(session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    channels = session.graph.channels
    return {
        name: value
        for name, value in values.items()
        if name in channels and channels[name].visibility == "public"
    }


def _value(armed: _Armed, session: Session, values: Mapping[str, Any]) -> Any:
    """Return the value at a path, None if there is none (yet)."""
    assert armed.path is not None
    if armed.place in values:
        return values[armed.place]
    try:
        return armed.path.value(_public(session, values))
    except ExpressionUndefined:
        return None


def _stood_here(session: Session) -> bool:
    """Whether the thread already stopped before its next node, for another reason than a request."""
    cursor, store = session.cursor, session.store
    if any(gate.when == "before" for gate in cursor.passed) or cursor.answers or cursor.branches:
        return True
    if store is None:
        return False
    steps = store.checkpoints(session.thread_id, None, _STEPS_LOOKED_AT)
    newest = next((point for point in steps if point.source != "human"), None)
    since = newest.step if newest else 0
    for entry in reversed(store.ledger(session.thread_id)):
        if entry.kind == NOTE:  # it may be about an older step
            continue
        if entry.step < since:
            break
        if _is_breakpoint(entry):
            return True
        if entry.kind in _ANSWERS:
            return False
    return newest is not None and newest.source != "input"


def _is_breakpoint(entry: LedgerEntry) -> bool:
    return entry.kind == "stop" and bool(entry.note) and entry.data == {"reason": "paused"}
