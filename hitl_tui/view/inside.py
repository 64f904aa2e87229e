"""Shows what happens inside a node: tool calls, branches of a map or a parallel, a subgraph's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from hitl_tui.drivers.protocol import Unfinished
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log.events import Progress, ToolCalled
from hitl_tui.engine.log.outcomes import BranchOutcome, ToolUse
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.view.format import count, duration, inline
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, trusted, untrusted

_NAME: Final = 64
_ARGUMENTS: Final = 200
_RESULT: Final = 240


def tool_line(event: ToolCalled) -> str:
    """Describe a tool call: `tool weather {"city": "Graz"} -> “sunny” (0.3 s)`; sanitised."""
    call = f"tool {sanitise_line(event.tool, _NAME)} {_arguments(event.arguments)}"
    took = f" ({duration(event.duration)})" if event.duration else ""
    if event.error is not None:
        return f"{call} failed: {sanitise_line(event.error, _RESULT)}{took}"
    return f"{call} -> {inline(event.result, _RESULT)}{took}"


def call_lines(calls: Sequence[ToolUse], glyphs: Glyphs = UNICODE) -> tuple[Line, ...]:
    """Return the calls of a committed step, each as a title with its arguments and result below.

    writer called weather
      {"city": "Graz"}
      → 0.3 s  “sunny”
    """
    return tuple(line for call in calls for line in _lines_of(call, glyphs))


def calls_of_step(checkpoint: Checkpoint, glyphs: Glyphs = UNICODE) -> tuple[Line, ...]:
    """Return the calls of the successful attempts at a step; for others see `calls_of_failed`."""
    return call_lines([call for call in checkpoint.calls if not _is_of_failed(call, checkpoint)], glyphs)


def calls_of_failed(checkpoint: Checkpoint, glyphs: Glyphs = UNICODE) -> tuple[Line, ...]:
    """Return the calls of failed attempts at a step, below a line that says so; () if there are none."""
    failed = [call for call in checkpoint.calls if _is_of_failed(call, checkpoint)]
    if not failed:
        return ()
    title = (trusted(f"{count(len(failed), 'call')} made in failed attempts", "dim"),)
    return (title, *((trusted("  "), *line) for line in call_lines(failed, glyphs)))


def _is_of_failed(call: ToolUse, checkpoint: Checkpoint) -> bool:
    branch = next((each for each in checkpoint.branches if call.path and each.path == call.path), None)
    if branch is None:
        return call.attempt < checkpoint.attempt and not call.path
    return branch.status == "failed" or call.attempt < branch.attempts


def _lines_of(call: ToolUse, glyphs: Glyphs) -> tuple[Line, ...]:
    where = (untrusted(call.path, "node", _NAME), trusted(" ")) if call.path else ()
    title: Line = (
        *where,
        untrusted(call.agent, "name", _NAME),
        trusted(" called ", "dim"),
        untrusted(call.tool, "name", _NAME),
        *((trusted(f"  attempt {call.attempt}", "dim"),) if call.attempt > 1 else ()),
    )
    took = f"{duration(call.duration)}  " if call.duration else ""
    came = trusted(f"  {glyphs.arrow} {took}", "dim")
    if call.error is not None:
        result: Line = (came, trusted("failed: ", "error"), untrusted(call.error, "error", _RESULT))
    else:
        result = (came, trusted(inline(call.result, _RESULT), "value"))
    return (title, (trusted("  "), trusted(_arguments(call.arguments), "value")), result)


def _arguments(value: Any) -> str:
    """Return a call's arguments on one line, as the model wrote them."""
    import json

    if not isinstance(value, str):
        try:
            value = json.dumps(thaw(value), ensure_ascii=False)
        except (TypeError, ValueError):
            return inline(value, _ARGUMENTS)
    return sanitise_line(value, _ARGUMENTS)


TEXT_TAIL: Final = 8 * 1024
"""Characters kept of a branch's output; there may be a thousand branches."""

BranchPhase = Literal["running", "waiting", "next", "ok", "failed", "cancelled", "unneeded"]


class BranchView(msgspec.Struct, frozen=True):
    """A branch, or a node inside a subgraph.

    Args:
        path: as in its records: `scan[0]`, `group/member`; inside a subgraph `team/node`.
        index: its place, -1 if only its path is known.
        phase: "next" has its answer and runs when the thread is resumed; the rest as in `BranchOutcome`.
        asks: its request to a person, "" for none.
        error: why its last attempt failed, "" if none did.
        text: the tail of what it streamed; `length` counts all of it.
        since: when it started, in microseconds, or None if unknown.
    """

    path: str
    name: str = ""
    index: int = -1
    phase: BranchPhase = "running"
    attempt: int = 1
    since: int | None = None
    outcome: BranchOutcome | None = None
    asks: str = ""
    error: str = ""
    text: str = ""
    length: int = 0
    agent: str = ""
    model: str = ""
    tokens: int = 0


class ChildView(msgspec.Struct, frozen=True):
    """The thread of a subgraph's run; `running` is its node in flight, "" between nodes."""

    path: str
    thread_id: str
    running: str = ""
    progress: Progress | None = None


class InsideView(msgspec.Struct, frozen=True):
    """What happens inside the newest node that has branches or a subgraph.

    Args:
        node: that node, "" if none has run yet.
        step: the step as which it is, or will be, committed.
        total: the number of branches, 0 if not known yet.
        branches: started branches by path, in the order in which they started or ended.
        children: the threads of subgraphs by their place, as `team` and `team/inner`.
        live: the node is running.
    """

    node: str = ""
    step: int = -1
    total: int = 0
    branches: Mapping[str, BranchView] = {}
    children: tuple[ChildView, ...] = ()
    live: bool = False

    @property
    def child(self) -> ChildView | None:
        """The subgraph's thread that runs directly in the node."""
        return self.children[0] if self.children else None

    def in_order(self) -> list[BranchView]:
        """The branches sorted by their index."""
        return sorted(self.branches.values(), key=lambda branch: branch.index)

    def phases(self) -> dict[BranchPhase, int]:
        """The number of branches in each phase, without those inside a subgraph's thread."""
        counts: dict[BranchPhase, int] = {}
        for branch in self.branches.values():
            if branch.index >= 0:
                counts[branch.phase] = counts.get(branch.phase, 0) + 1
        return counts


EMPTY: Final = InsideView()


def place_of(path: str, members: Sequence[str] = ()) -> int:
    """Return the index of a branch from its path, -1 if the path has none."""
    number = path.rpartition("[")[2].removesuffix("]")
    if path.endswith("]") and number.isdecimal():
        return int(number)
    member = path.rpartition("/")[2]
    return members.index(member) if member in members else -1


def inside_at_start(
    unfinished: Unfinished | None, pending: Sequence[Request], members: Sequence[str]
) -> InsideView:
    """Return what is inside the node at which a thread was suspended, from its snapshot."""
    if unfinished is None:
        return EMPTY
    inside = InsideFold(EMPTY)
    inside.begin(unfinished.node, unfinished.step, pending, members)
    inside.total = unfinished.total
    for outcome in unfinished.outcomes:
        inside.branches[outcome.path] = _ended(inside.branches.get(outcome.path), outcome)
    if unfinished.child:
        inside.children[unfinished.node] = ChildView(unfinished.node, unfinished.child)
    inside.end()
    return inside.build()


class InsideFold(msgspec.Struct):
    """Folds a batch of events into an `InsideView`, with a single copy of the branches."""

    view: InsideView
    node: str = ""
    step: int = -1
    total: int = 0
    live: bool = False
    branches: dict[str, BranchView] = {}
    children: dict[str, ChildView] = {}
    _pieces: dict[str, list[str]] = {}

    def __post_init__(self) -> None:
        view = self.view
        self.node, self.step, self.total, self.live = view.node, view.step, view.total, view.live
        self.branches = dict(view.branches)
        self.children = {child.path: child for child in view.children}

    def build(self) -> InsideView:
        """Return the view after the batch."""
        for path, pieces in self._pieces.items():
            branch = self.branches[path]
            self.branches[path] = replace(branch, text="".join((branch.text, *pieces))[-TEXT_TAIL:])
        self._pieces.clear()
        return InsideView(
            self.node, self.step, self.total, self.branches, tuple(self.children.values()), self.live
        )

    # Events of the engine

    def begin(self, node: str, step: int, pending: Sequence[Request], members: Sequence[str] = ()) -> None:
        """Start a node with branches or a subgraph, or continue it after a branch was answered."""
        same = node == self.node and step == self.step
        again = self.branches if same else {}
        asked = [
            request for request in pending if request.node == node and request.path and not request.thread
        ]
        self.node, self.step, self.live = node, step, True
        self.total = self.total if again else 0
        self._pieces.clear()
        self.branches = {}
        for request in asked:
            known = again.get(request.path) or BranchView(
                request.path, request.path, place_of(request.path, members)
            )
            self.branches[request.path] = replace(known, phase="waiting", asks=request.title)
        self.children = self.children if same else {}

    def started(self, event: ev.BranchStarted) -> None:
        """Start a branch."""
        self.total = event.total
        self._pieces.pop(event.path, None)
        self.branches[event.path] = BranchView(
            event.path, event.name, event.index, attempt=event.attempt, since=event.at
        )

    def ended(self, event: ev.BranchEnded) -> None:
        """End a branch."""
        outcome = event.outcome
        self.total = max(self.total, outcome.index + 1)
        self.branches[outcome.path] = _ended(self.branches.get(outcome.path), outcome)

    def waits(self, event: ev.BranchWaits) -> None:
        """Mark a branch that waits for a person."""
        branch = self._branch(event.path)
        self.branches[event.path] = replace(branch, phase="waiting", asks=event.title)

    def moved(self, event: ev.ChildMoved) -> None:
        """Update a subgraph's thread; a node that starts there gets an empty text."""
        known = self.children.get(event.path)
        if event.running and (known is None or known.running != event.running):
            path = f"{event.path}/{event.running}"
            if path in self.branches:
                self._pieces.pop(path, None)
                self.branches[path] = replace(self.branches[path], text="", phase="running", error="")
        if known is not None and known.running and known.running != event.running:
            self._rest(f"{event.path}/{known.running}")
        self.children[event.path] = ChildView(event.path, event.thread_id, event.running, event.progress)

    def write(self, path: str, agent: str, text: str) -> None:
        """Add text that a branch wrote."""
        branch = self._branch(path)
        if branch.agent != agent and branch.length and branch.agent:
            text = f"\n{text}"
        self.branches[path] = replace(branch, agent=agent, error="", length=branch.length + len(text))
        self._pieces.setdefault(path, []).append(text)

    def called_model(self, event: ev.ModelCalled) -> None:
        """Add the use of a branch's model call."""
        branch = self._branch(event.path)
        used = branch.tokens + event.tokens_in + event.tokens_out
        self.branches[event.path] = replace(
            branch, agent=event.agent or branch.agent, model=event.model, tokens=used
        )

    def called_tool(self, event: ev.ToolCalled) -> None:
        """Add a line for a tool call in a branch."""
        self.write(event.path, event.agent, f"{tool_line(event)}\n")

    def retrying(self, event: ev.NodeRetrying) -> None:
        """Retry a failed branch: its text belonged to the failed attempt."""
        branch = self._branch(event.path)
        self._pieces.pop(event.path, None)
        self.branches[event.path] = replace(
            branch, attempt=event.attempt + 1, error=event.error, text="", length=0
        )

    def asked(self, pending: Sequence[Request]) -> None:
        """Update the waiting requests: a branch whose request was answered runs next."""
        paths = {request.path for request in pending}
        for path, branch in self.branches.items():
            if branch.phase == "waiting" and path not in paths:
                self.branches[path] = replace(branch, phase="next", asks="")

    def committed(self, step: int, outcomes: Sequence[BranchOutcome]) -> None:
        """Take the final outcomes of the branches from the committed step."""
        if step != self.step:
            return
        for outcome in outcomes:
            if not outcome.thread:
                self.branches[outcome.path] = _ended(self.branches.get(outcome.path), outcome)

    def end(self) -> None:
        """End the node's run: running branches were stopped, requests to people still wait."""
        self.live = False
        for path, branch in self.branches.items():
            if branch.phase == "running":
                self.branches[path] = replace(branch, phase="ok" if branch.index < 0 else "cancelled")
        for path, child in self.children.items():
            if child.running:
                self.children[path] = replace(child, running="")

    def _branch(self, path: str) -> BranchView:
        """Return a branch by its path; an unknown one is a node inside a subgraph."""
        return self.branches.get(path) or BranchView(path, path.rpartition("/")[2])

    def _rest(self, path: str) -> None:
        """End a node inside a subgraph."""
        if path in self.branches:
            self.branches[path] = replace(self.branches[path], phase="ok")


def _ended(known: BranchView | None, outcome: BranchOutcome) -> BranchView:
    branch = known or BranchView(outcome.path)
    return replace(
        branch,
        name=outcome.name,
        index=outcome.index,
        phase=outcome.status,
        attempt=max(outcome.attempts, 1),
        outcome=outcome,
        asks="",
        error=why_failed(outcome),
    )


def why_failed(outcome: BranchOutcome) -> str:
    """Return why a branch failed, without its name and attempt, which are shown beside; "" if it did not."""
    error = outcome.error
    return error.message.removeprefix(f"branch {outcome.path!r}, attempt {error.attempt}: ") if error else ""
