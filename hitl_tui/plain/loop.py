"""A session in lines: says where the thread stands, asks for a command, does it, and says what happened."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from msgspec.structs import replace

from hitl_tui.drivers.breakpoints import (
    describe,
    fits,
    put,
    read_breakpoint,
    read_breakpoints,
    toggled,
)
from hitl_tui.drivers.node_streams import interruptible, keyboard_kept
from hitl_tui.drivers.protocol import Check, Checked, Driver, Hub, Snapshot
from hitl_tui.engine.commands import (
    Cancel,
    CancelAttempt,
    ExtendLimits,
    Pause,
    PrepareGraph,
    ReloadGraph,
    Rerun,
    Rollback,
    Run,
    Start,
    Step,
)
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.log.events import RunEnded
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.loading.known import KnownGraph
from hitl_tui.loading.trust import Question
from hitl_tui.plain.agents import agents
from hitl_tui.plain.claims import allow, claim, hand_over
from hitl_tui.plain.comments import comment
from hitl_tui.plain.comparing import compare, list_family
from hitl_tui.plain.console import Console, Left, Terminal, confirm, refusal
from hitl_tui.plain.context import Context
from hitl_tui.plain.copying import take_along
from hitl_tui.plain.deciding import card_of, decide, give_back, ready_to, waiting_request
from hitl_tui.plain.editing import edit, fork, show_value
from hitl_tui.plain.history import find, list_steps, walk, watches
from hitl_tui.plain.inside import look_within
from hitl_tui.plain.lists import list_graphs, list_items, list_threads, list_workers
from hitl_tui.plain.queue import decide_several, list_queue
from hitl_tui.plain.store import delete, prune, sizes
from hitl_tui.plain.trust import declassify, reveal, why_tainted
from hitl_tui.view.answers import read_limit
from hitl_tui.view.family import free_name
from hitl_tui.view.findings import MEANING, checked_words, finding_line
from hitl_tui.view.format import capital, typed_input
from hitl_tui.view.lines import content, name
from hitl_tui.view.notices import Notice
from hitl_tui.view.queue import QueueRow
from hitl_tui.view.repeats import repeat_lines, standing_words
from hitl_tui.view.request_lines import question
from hitl_tui.view.rollback import entry_line, remaining, summary
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.status import standing_code, standing_line
from hitl_tui.view.transcript import NodeText, channel_lines, unfinished_lines

_WIDE = 600


def change_breakpoints(context: Context, typed: str) -> None:
    """Set a breakpoint, as `--break` takes it; NODE takes those before it away again; a number takes away the
    one with that number, `off 2` and `on 2` switch it; without a word they are listed.

    Raises:
        UsageError: it can't be read, or there is none with that number.
    """
    graph = context.snapshot().graph
    word, _, rest = typed.strip().partition(" ")
    if word.isdigit() or (word in ("on", "off") and rest.strip().isdigit()):
        _change_numbered(context, word, int(rest if word in ("on", "off") else word))
    elif typed.strip() in {point.place for point in context.breakpoints if point.kind == "before"}:
        context.keep_breakpoints(toggled(context.breakpoints, typed.strip()))
    elif typed:
        context.keep_breakpoints(put(context.breakpoints, read_breakpoint(typed.strip(), graph)))
    for number, point in enumerate(context.breakpoints, 1):
        off = ", switched off" if point.off else "" if fits(point, graph) else ", which the graph has no more"
        does = "tells" if point.log else "stops"
        context.console.say(f"{number}. It {does} {sanitise_line(describe(point), _WIDE)}{off}.")
    if not context.breakpoints:
        context.console.say("There is no breakpoint.")


def _change_numbered(context: Context, word: str, number: int) -> None:
    points = list(context.breakpoints)
    if not 0 < number <= len(points):
        raise UsageError(f"there is no breakpoint {number}", "b lists them")
    point = points.pop(number - 1)
    if word in ("on", "off"):
        points.insert(number - 1, replace(point, off=word == "off"))
    context.keep_breakpoints(tuple(points))


_KINDS: dict[str, Check] = {"": "log", "log": "log", "strict": "strict", "replay": "replay"}
_SHOWN = 50


def check(context: Context, typed: str) -> None:
    """Check the log against itself; "strict" reduces every update again, "replay" runs the graph again."""
    kind = _KINDS.get(typed)
    if kind is None:
        raise UsageError(f"there is no check {typed!r}", "V, V strict or V replay")
    checked: Checked = context.run(context.driver.check(kind, lambda done, total: None))
    words = checked_words(checked)
    context.console.say(f"{capital(words)}.")
    for mismatch in checked.mismatches[:_SHOWN]:
        context.console.say(*content([finding_line(mismatch)]), f"  {MEANING[mismatch.kind]}")
    if len(checked.mismatches) > _SHOWN:
        context.console.say(f"And {len(checked.mismatches) - _SHOWN} more.")


OpenDriver = Callable[[], Awaitable[tuple[Hub, Driver]]]
BeginNotices = Callable[[Callable[[str], object], Callable[[Notice], bool]], Callable[[], object]]

HELP: Final = (
    "s: run one step.  s into: into a subgraph; s out: out of it.",
    "c: continue until something waits, fails or ends; c NODE: up to there; ctrl+c pauses.",
    "d: decide on what waits; d 2: on the second of several.  e CHANNEL: edit a channel.  f: fork.",
    "m: raise the limit that stopped it.  x: end the thread.  u: undo what its nodes did outside.",
    "b NODE: stop before a node, or no more; b after NODE, b change CHANNEL, b tool, b error; b: list them.",
    'b NODE: n > 2: only where that holds; b NODE hit 3; b NODE log "n={n}": tell it; b 2: away; b off 2.',
    "w: where it stands, all channels.  v CHANNEL: a whole value.  l: the last steps.",
    "l mine: what you decided, with what became of it and how to take it back; l mine all: in all threads.",
    "/ TEXT: find it in all steps; / ? n > 2: when that began to hold; /: the next; \\: the one before.",
    "W EXPRESSION: watch it, or no longer; W: what is watched, now and over the run; W step 3: as of step 3.",
    "=: compare a fork with its parent's end; = THREAD, = THREAD@3, = @3: with that step.  H: all forks.",
    "Z WORD: items of the graph's long-term store.  j: the workers, what they run, what is queued.",
    "y CHANNEL: why it is tainted.  Y CHANNEL: declassify it, with a reason.",
    "r CHANNEL: show a private value; the ledger keeps that you looked.",
    "V: verify the log; V strict; V replay.",
    "i: what is inside, branches or a thread; i 2: the second; i step 4: inside step 4; i back: out again.",
    "a: the agents; a AGENT: one with its turns; a AGENT.model=NAME: change it; a forget AGENT.",
    "n FILTER: what waits, most urgent first; n sort:-due: otherwise; n 2: open the second.",
    "D ANSWER 1 3: decide those alike.",
    "D @FILE 1 3: decide those by the rules of a policy; without numbers all that n listed.",
    'C: passages to comment on; C 3 WORDS or C "a passage" WORDS: say something about one; C back: no more.',
    "K value CHANNEL, K diff CHANNEL, K card, K command: copy it to the clipboard.",
    "k: claim what waits, or give it back; k over NAME: take it over.  @ NAME WHY: hand it over.",
    "+: what is allowed unasked; + call: the call that waits; + TOOL NAME=PATTERN; + revoke ID.",
    "t WORD: list threads.  o THREAD: open another thread.  N: what can be started; N 2: start the second.",
    "X THREAD...: delete them, with forks and what ran inside; X THREAD force: also what runs or waits.",
    "P older 30d last 5 decided: prune, but for these; P: by [retention].  R: run again what changed.",
    "S: what fills the store; S THREAD: one, by channel; S vacuum: give back what is free; S deleted.",
    "h: this help.  q: leave; what is committed stays.",
)
_ENTRIES: Final = 200


def run_plain(
    open_driver: OpenDriver,
    *,
    actor: str,
    go_on: Callable[[str], str],
    console: Console | None = None,
    breaks: Sequence[str] = (),
    claim_minutes: float = 15,
    notices: BeginNotices = lambda tell, sees: lambda: None,
) -> int:
    """Talk about a thread until the person leaves; returns the exit code for where it then stands.

    Args:
        notices: begins to tell, from any thread, what happens in the store and the person does not see;
            gives what ends it.
        claim_minutes: how long a claim lasts.
        go_on: the command that goes on with a thread, "" where none can.
        breaks: breakpoints to begin with, as `--break` takes them.
    """
    said = console or Terminal()
    with keyboard_kept(), asyncio.Runner() as runner, _woken_by_signals(runner.get_loop()):

        async def opened() -> tuple[Hub, Driver]:
            hub, driver = await open_driver()
            if console is not None or sys.stdin.isatty():
                hub.ask_by(ask)
            return hub, driver

        async def ask(question: Question) -> bool:
            said.say(f"{capital(question.why)}. It would run:")
            said.say(*content(question.lines, len(question.lines)))
            with interruptible(), suppress(Left):
                return confirm(said, "Trust it, and run it?")
            return False

        hub, driver = runner.run(opened())
        try:
            context = Context(runner.run, hub, driver, said, actor, claim_minutes)
            context.bring_breakpoints(read_breakpoints(breaks, context.snapshot().graph))
            session = _Session(context, go_on)
            with ExitStack() as ends:
                try:
                    ends.callback(notices(session.news.append, session.shows))
                except HitlError as error:
                    said.say(*refusal(error))
                return session.until_left()
        finally:
            said.say(*runner.run(hub.close()))


@contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """A ctrl+c just as the loop falls asleep is heard at once, not when something else wakes it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are heard elsewhere
        return
    ours, wakes = socket.socketpair()
    with ours, wakes:
        for end in (ours, wakes):
            end.setblocking(False)
        before = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        loop.add_reader(ours, ours.recv, 4096)
        try:
            yield
        finally:
            loop.remove_reader(ours)
            signal.set_wakeup_fd(before)


class _Session:
    def __init__(self, context: Context, go_on: Callable[[str], str]) -> None:
        self.context = context
        self._go_on = go_on
        self.say = context.console.say
        self.news: list[str] = []
        """What has happened elsewhere in the store and was not told yet."""
        self._told = NodeText()
        self._listed: tuple[QueueRow, ...] = ()
        self._graphs: tuple[KnownGraph, ...] = ()
        self._commands: dict[str, Callable[[str], None]] = {
            "s": self._step,
            "c": self._run_on,
            "d": self._decide,
            "e": lambda typed: edit(self.context, typed),
            "f": lambda _: self._fork(),
            "m": lambda _: self._extend(),
            "R": lambda _: self._run_again(),
            "b": lambda typed: change_breakpoints(self.context, typed),
            "x": lambda _: self._cancel(),
            "u": lambda _: self._roll_back(),
            "y": lambda typed: why_tainted(self.context, typed),
            "Y": lambda typed: declassify(self.context, typed),
            "r": lambda typed: reveal(self.context, typed),
            "V": lambda typed: check(self.context, typed),
            "a": lambda typed: agents(self.context, typed),
            "w": lambda _: self._look(),
            "v": lambda typed: show_value(self.context, typed),
            "l": lambda typed: list_steps(self.context, typed),
            "t": lambda typed: list_threads(self.context, typed),
            "k": lambda typed: claim(self.context, typed),
            "@": lambda typed: hand_over(self.context, typed),
            "C": lambda typed: comment(self.context, typed),
            "K": lambda typed: take_along(self.context, typed),
            "+": lambda typed: allow(self.context, typed),
            "X": lambda typed: delete(self.context, typed),
            "P": lambda typed: prune(self.context, typed),
            "S": lambda typed: sizes(self.context, typed),
            "N": self._new,
            "o": self._open,
            "n": self._queue,
            "D": lambda typed: decide_several(self.context, self._listed, typed),
            "i": self._within,
            "H": lambda _: list_family(self.context),
            "=": lambda typed: compare(self.context, typed),
            "/": lambda typed: find(self.context, typed),
            "\\": lambda _: walk(self.context, -1),
            "Z": lambda typed: list_items(self.context, typed),
            "j": lambda _: list_workers(self.context),
            "W": lambda typed: watches(self.context, typed),
            **dict.fromkeys(("h", "help", "?"), lambda _: self.say(*HELP)),
        }

    def shows(self, notice: Notice) -> bool:
        """Whether the person sees here what a notice says."""
        return notice.thread == self.context.driver.thread_id

    def until_left(self) -> int:
        """The conversation; returns the exit code."""
        try:
            self._begin()
            self._look()
            self.say("h lists the commands.")
            while self._one_command():
                pass
        except Left:
            pass
        progress = self.context.snapshot().progress
        if progress.head < 0:
            self.say("Left before it began: there is no thread yet.")
        elif progress.status not in ("completed", "cancelled"):
            command = self._go_on(self.context.driver.thread_id)
            self.say(f"Left. Go on with: {command}" if command else "Left.")
        return int(standing_code(progress))

    def _one_command(self) -> bool:
        """Ask for a command and do it; False to leave."""
        self._tell_news()
        while self.news:
            self.say("Elsewhere:", *content([self.news.pop(0)]))
        word, _, rest = self.context.console.ask("Command:").partition(" ")
        if word.startswith("/") and len(word) > 1:  # the text may stand beside it
            word, rest = "/", f"{word[1:]} {rest}"
        if word in ("q", "quit", "exit"):
            return False
        if word:
            command = self._commands.get(word)
            if command is None:
                self.say(f"There is no command {name(word)}; h lists the commands.")
                return True
            try:
                command(rest.strip())
            except HitlError as error:
                self.say(*refusal(error))
        return True

    def _begin(self) -> None:
        """Ask a new thread for its input, again until it fits."""
        snapshot = self.context.snapshot()
        while snapshot.progress.head < 0:
            graph = snapshot.graph
            given = {
                field.name: typed_input(graph, field.name, self._ask_for(field)) for field in graph.inputs
            }
            try:
                self.context.run(self.context.driver.execute(Start(given, self.context.actor)))
            except HitlError as error:
                if not given:
                    raise
                self.say(*refusal(error))
            snapshot = self.context.snapshot()

    def _ask_for(self, field: InputField) -> str:
        """What is typed for an input."""
        example = f" (as in: {name(field.example)})" if field.example else ""
        while not (typed := self.context.console.ask(f"{name(field.label)}{example}:")):
            self.say("It is needed; ctrl+d leaves.")
        return typed

    def _look(self) -> None:
        """Where the thread stands, what it holds and what it asks."""
        snapshot = self.context.snapshot()
        self.say(f"Thread {name(snapshot.thread_id)}, graph {name(snapshot.graph.name)}.")
        if unbuilt := self.context.driver.can(PrepareGraph):
            self.say("Note:", *content([unbuilt]))
        if snapshot.notice:
            self.say(f"Note: {name(snapshot.notice)}.")
        newest = snapshot.checkpoints[-1:]
        tainted = [taint.channel for point in newest for taint in point.tainted]
        self.say(*channel_lines(snapshot.values, tainted))
        self._say_standing(snapshot)

    def _say_standing(self, snapshot: Snapshot) -> None:
        self.say(standing_line(snapshot.progress, snapshot.held_by, snapshot.ledger))
        self.say(*unfinished_lines(snapshot.unfinished))
        if snapshot.owners:
            self.say(f"It runs inside {name(snapshot.owners[-1].thread_id)}: i back goes there.")
        request = waiting_request(snapshot)
        if request is not None:
            card = card_of(self.context, snapshot, request)
            self.say(*question(card, snapshot.values, self.context.hub.now()), "d decides.")

    def _step(self, typed: str) -> None:
        """One step: over a subgraph, into it, or out of one."""
        if typed not in ("", "into", "out"):
            raise UsageError(f"there is no step {typed!r}", "s, s into or s out")
        if typed == "out":
            owners = self.context.snapshot().owners
            if not owners:
                raise UsageError("this thread runs for no other one", "s steps")
            self._open(owners[-1].thread_id)
        self._go(Step(typed == "into", self._points))
        inside = self.context.snapshot().unfinished
        if typed == "into" and inside is not None and inside.child:
            self._open(inside.child)

    def _run_on(self, typed: str) -> None:
        """Run on and on, or up to a node."""
        points = self._points
        if typed:
            points = (*points, read_breakpoint(typed, self.context.snapshot().graph))
        self._go(Run(points))

    @property
    def _points(self) -> tuple[Breakpoint, ...]:
        """The breakpoints that the graph can have as it is now."""
        graph = self.context.snapshot().graph
        return tuple(point for point in self.context.breakpoints if fits(point, graph))

    def _go(self, command: Step | Run) -> None:
        """Run, and tell what happens until it stops."""
        once = isinstance(command, Step)
        snapshot = self.context.snapshot()
        if waiting_request(snapshot) is not None:
            raise UsageError("it waits for your decision", "d decides")
        if snapshot.progress.status in ("completed", "cancelled"):
            raise UsageError(f"the run is {snapshot.progress.status}", "f forks from any of its steps")
        ready_to(self.context, Step if once else Run)
        self.context.stepping = once
        if self._may_try_again(snapshot) and self.context.in_turn(command):
            self._follow()

    def _may_try_again(self, snapshot: Snapshot) -> bool:
        """Tell what failed or was given up and is tried again; where it reaches outside, ask first."""
        progress = snapshot.progress
        if progress.status != "failed" and not progress.uses:
            return True
        repeats = self.context.run(self.context.driver.preview(Run())).repeats
        self.say(*(repeat_lines(repeats) if repeats else ()))
        return repeats is None or not repeats.outside or confirm(self.context.console, "Try it again?")

    def _decide(self, typed: str) -> None:
        """Ask for a decision; the thread goes on to its next stop unless it was being stepped through."""
        if not decide(self.context, typed):
            return
        self._tell_news()
        snapshot = self.context.snapshot()
        if snapshot.progress.pending:
            return
        if snapshot.progress.status == "waiting" and not (self.context.stepping or snapshot.handed):
            self._go(Run(self._points))
        else:
            self._say_standing(snapshot)

    def _follow(self) -> None:
        """Tell what runs until it has ended; ctrl+c pauses it."""
        driver = self.context.driver
        asked = False
        while True:
            try:
                self.context.run(self._until_ended())
                break
            except KeyboardInterrupt:
                self.context.stepping = True
                self.context.run(driver.execute(CancelAttempt() if asked else Pause()))
                if not asked:
                    self.say("Pausing after this node; ctrl+c again gives the node up.")
                asked = True
        self._say_standing(self.context.snapshot())

    async def _until_ended(self) -> None:
        while True:
            await self.context.driver.changed(self.context.seen)
            if self._tell_news():
                return

    def _tell_news(self) -> bool:
        """Tell the events since the last time; True if a run has ended among them."""
        ended = False
        for stamped in self.context.driver.events(self.context.seen):
            self.context.seen = stamped.number
            self.say(*self._told.lines(stamped.event))
            ended = ended or isinstance(stamped.event, RunEnded)
        return ended

    def _fork(self) -> None:
        fork(self.context)
        self._look()

    def _run_again(self) -> None:
        """Say what stands under the code as it is now; run on from there in a fork, or load it here."""
        context = self.context
        ready_to(context, Rerun)
        family = context.run(context.driver.family())
        new = free_name(context.driver.thread_id, {relative.thread_id for relative in family})
        repeats = context.run(context.driver.preview(Rerun(new))).repeats
        if repeats is not None:
            self.say(standing_words(repeats), *repeat_lines(repeats))
        if repeats is not None and confirm(context.console, f"Run it again in the fork {name(new)}?"):
            context.run(context.driver.execute(Rerun(new, context.actor)))
            context.open(context.run(context.hub.open(new)))
            self.say(f"Made {name(new)} from step {repeats.step}; this is it now.")
            self._go(Run(self._points))
        elif context.snapshot().graph_changed is not None and confirm(context.console, "Load it here?"):
            self._reload()

    def _reload(self) -> None:
        """Go on with the graph as it is in its file now."""
        differences = self.context.run(self.context.driver.execute(ReloadGraph(self.context.actor)))
        self.say("The graph was loaded again.", *content([*differences], 40))
        self._say_standing(self.context.snapshot())

    def _extend(self) -> None:
        seen = ready_to(self.context, ExtendLimits).state_hash
        typed = self.context.console.ask("Which limit, as in max_iterations=50; empty changes none:")
        if typed:
            limits = dict([read_limit(typed)])
            self.context.run(self.context.driver.execute(ExtendLimits(limits, self.context.actor, seen=seen)))
            self._say_standing(self.context.snapshot())

    def _cancel(self) -> None:
        snapshot = ready_to(self.context, Cancel)
        if not confirm(self.context.console, "End this thread for good?"):
            self.say("It goes on as it was.")
            return
        note = self.context.console.ask("Why, for the record; empty for nothing:") or None
        try:
            self.context.run(
                self.context.driver.execute(Cancel(self.context.actor, note, snapshot.state_hash))
            )
        except HitlError as error:
            give_back(self.context, error, snapshot.progress.head, ("words were", note))
            return
        self._say_standing(self.context.snapshot())

    def _roll_back(self) -> None:
        """Say what would be undone, in its order, and do it after a yes."""
        snapshot = ready_to(self.context, Rollback)
        entries = self.context.run(self.context.driver.rollback_entries())
        left = remaining(entries)
        if not left:
            self.say(f"Nothing is left to undo: {summary(entries)}.")
            return
        self.say("These would run, in this order:", *content([entry_line(entry) for entry in left], _ENTRIES))
        if not confirm(self.context.console, "Run them?"):
            self.say("Nothing was undone.")
            return
        note = self.context.console.ask("Why, for the record; empty for nothing:") or None
        try:
            self.context.run(self.context.driver.execute(Rollback(self.context.actor, note)))
        except HitlError as error:
            give_back(self.context, error, snapshot.progress.head, ("words were", note))
            return
        self._follow()

    def _within(self, typed: str) -> None:
        if look_within(self.context, typed):
            self._look()

    def _queue(self, typed: str) -> None:
        """List what waits, or open one of those that were listed by its number."""
        if typed.isdigit() and 1 <= int(typed) <= len(self._listed):
            self._open(self._listed[int(typed) - 1].name)
            self.say(f"It is {int(typed)} of {len(self._listed)} that wait.")
        else:
            self._listed = list_queue(self.context, typed)

    def _new(self, typed: str) -> None:
        """List the graphs that are known, or start a thread of one by its number, with its input."""
        if typed.isdigit() and 1 <= int(typed) <= len(self._graphs):
            graph = self._graphs[int(typed) - 1]
            self.context.open(self.context.run(self.context.hub.start(graph, self.context.actor)))
            self._begin()
            self._look()
        else:
            self._graphs = list_graphs(self.context, typed)

    def _open(self, typed: str) -> None:
        owners = self.context.snapshot().owners
        back = f" (empty for {name(owners[-1].thread_id)})" if owners else ""
        thread = (
            typed or self.context.console.ask(f"Thread{back}:") or (owners[-1].thread_id if owners else "")
        )
        self.context.open(self.context.run(self.context.hub.open(thread)))
        self._look()
