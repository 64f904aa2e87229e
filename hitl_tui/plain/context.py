"""What the parts of a session in plain text mode share: the open driver, its view, and the person."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from hitl_tui.drivers.breakpoints import put
from hitl_tui.drivers.kept_breakpoints import KeptBreakpoints, kept_breakpoints
from hitl_tui.drivers.protocol import Driver, Hub, Snapshot
from hitl_tui.engine.commands import Command, DoubleText, PrepareGraph
from hitl_tui.engine.commands.command import DoubleTexting
from hitl_tui.engine.log.events import Event, GraphChanged, HolderChanged, LedgerWritten, RunStarted
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.engine.thread.measures import Reason
from hitl_tui.errors import ServerBusy
from hitl_tui.loading.known import KnownGraph
from hitl_tui.plain.console import Console
from hitl_tui.view.comments import in_order
from hitl_tui.view.followed import DecisionOutcome
from hitl_tui.view.format import capital
from hitl_tui.view.lines import content
from hitl_tui.view.notices import Notice
from hitl_tui.view.queue import QueueRow
from hitl_tui.view.spans import Line
from hitl_tui.view.transcript import NodeText

T = TypeVar("T")


@dataclass(frozen=True)
class Places:
    """Places found in the history, and which of them was shown last.

    Each line comes with the inner thread that it is in, "" for this one, and its step.
    """

    lines: tuple[tuple[str, int, Line], ...] = ()
    at: int = 0


def is_timeout(event: Event) -> bool:
    """Whether an event says that the deadline of a request has passed."""
    return isinstance(event, LedgerWritten) and event.entry.kind == "timeout"


@dataclass
class Context:
    """Session of a thread in plain text mode.

    Args:
        run: waits for a coroutine. The person may take any time between two of them: the driver's own
            thread continues meanwhile.
        breakpoints: those of the graph, as they are kept for it.
        claim_minutes: how long a claim lasts.
        reasons: those to pick from.
        seen: the number of the last printed event.
        places: the results of the last search.
        stepping: whether the person was stepping just before, so that an answer lets nothing run.
        node_text: what nodes write, as far as it was printed.
        listed: the last list of requests.
        decisions: the last list of decisions.
        graphs: the last list of known graphs.
        news: events elsewhere in the store that were not printed yet.
        unprinted: events of the thread from outside that were not printed yet.
        comments: comments on passages of a request's subject, by its thread and the id of the request.
        deadline_passed: whether a deadline has answered and the run has not continued yet.
        within: the step whose inside was listed last, None for a running node or the newest such step.
    """

    run: Callable[[Coroutine[Any, Any, Any]], Any]
    hub: Hub
    driver: Driver
    console: Console
    actor: str
    claim_minutes: float
    reasons: tuple[Reason, ...] = ()
    seen: int = 0
    breakpoints: tuple[Breakpoint, ...] = ()
    within: int | None = None
    places: Places = Places()
    stepping: bool = False
    node_text: NodeText = field(default_factory=NodeText)
    listed: tuple[QueueRow, ...] = ()
    decisions: tuple[DecisionOutcome, ...] = ()
    graphs: tuple[KnownGraph, ...] = ()
    news: list[str] = field(default_factory=list)
    unprinted: list[Event] = field(default_factory=list)
    comments: dict[tuple[str, str], tuple[Comment, ...]] = field(default_factory=dict)
    deadline_passed: bool = False

    def comments_on(self, request: Request) -> tuple[Comment, ...]:
        """Return the comments on a request's subject, in the order of the text."""
        return in_order(self.comments.get(self._asked(request), ()))

    def add_comment(self, request: Request, comment: Comment) -> None:
        """Keep a comment on a passage; it is sent with the answer."""
        asked = self._asked(request)
        self.comments[asked] = (*self.comments.get(asked, ()), comment)

    def drop_comment(self, request: Request) -> None:
        """Undo the newest comment."""
        asked = self._asked(request)
        self.comments[asked] = self.comments[asked][:-1]

    def forget_comments(self, request: Request) -> None:
        """Forget the comments, which were sent with an answer."""
        self.comments.pop(self._asked(request), None)

    def _asked(self, request: Request) -> tuple[str, str]:
        return self.driver.thread_id, request.id

    def shows(self, notice: Notice) -> bool:
        """Whether the person sees here what a notice says."""
        home = self.hub.inbox.home.source
        return (notice.source or home, notice.thread) == (self.hub.source, self.driver.thread_id)

    def snapshot(self) -> Snapshot:
        """Return where the thread is now; everything up to it counts as printed.

        `unprinted` keeps a changed graph file or another holder for the next prompt.
        """
        snapshot: Snapshot = self.run(self.driver.snapshot())
        for stamped in self.driver.events(self.seen):
            if stamped.number <= snapshot.last_event:
                self.note(stamped.event)
                if isinstance(stamped.event, (GraphChanged, HolderChanged)):
                    self.unprinted.append(stamped.event)
        self.seen = max(self.seen, snapshot.last_event)
        return snapshot

    def note(self, event: Event) -> None:
        """Remember whether a deadline answered after the newest run."""
        if isinstance(event, RunStarted):
            self.deadline_passed = False
        elif is_timeout(event):
            self.deadline_passed = True

    def in_turn(self, command: Command[Any]) -> bool:
        """Carry out a command; if a server already runs the thread, first ask what to do about that run.

        Returns:
            Whether it was carried out.
        """
        try:
            self.run(self.driver.execute(command))
        except ServerBusy as busy:
            self.console.say(
                f"{capital(busy.message)}.",
                "enqueue waits for it; interrupt ends it and keeps its saved steps, rollback drops them.",
            )
            known: dict[str, DoubleTexting] = {word: word for word in get_args(DoubleTexting)}
            strategy = known.get(self.console.ask("Which? Empty to leave it:"))
            if strategy is None:
                self.console.say("Nothing was run.")
                return False
            self.run(self.driver.execute(DoubleText(strategy, self.actor)))
            return self.in_turn(command)
        return True

    def prepare(self) -> Snapshot:
        """Let the thread's graph be built, and print what is known about it then."""
        before = self.snapshot().notice
        self.run(self.driver.execute(PrepareGraph()))
        snapshot = self.snapshot()
        if snapshot.notice != before:
            self.console.say("Note:", *content([snapshot.notice]))
        return snapshot

    @property
    def _kept(self) -> KeptBreakpoints:
        snapshot = self.snapshot()
        return kept_breakpoints(snapshot.graph.name, snapshot.source)

    def bring_breakpoints(self, more: Sequence[Breakpoint] = ()) -> None:
        """Load the breakpoints that are kept for the graph, and add others that are not kept."""
        kept = self._kept
        self.breakpoints = kept.load()
        for point in more:
            self.breakpoints = put(self.breakpoints, point)
        self._report_problem(kept)

    def keep_breakpoints(self, breakpoints: tuple[Breakpoint, ...]) -> None:
        """Set the breakpoints and save them for the next session."""
        self.breakpoints = breakpoints
        kept = self._kept
        kept.save(breakpoints)
        self._report_problem(kept)

    def _report_problem(self, kept: KeptBreakpoints) -> None:
        if kept.problem:
            self.console.say("Note:", *content([kept.problem]))

    def open(self, driver: Driver) -> None:
        """Switch to another thread."""
        self.driver = driver
        self.bring_breakpoints()
        self.seen = 0
        self.within = None
        self.places = Places()
        self.stepping = False
        self.deadline_passed = False
