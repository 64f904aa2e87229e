"""A session in lines: says where the thread stands, asks for a command, does it, and says what happened."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Final

from hitl_tui.drivers.breakpoints import read_breakpoints
from hitl_tui.drivers.node_streams import interruptible, keyboard_kept
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.errors import HitlError
from hitl_tui.loading.trust import Question
from hitl_tui.plain.agents import agents
from hitl_tui.plain.breakpoints import change_breakpoints
from hitl_tui.plain.claims import allow, claim, hand_over
from hitl_tui.plain.comments import comment
from hitl_tui.plain.comparing import compare, list_family
from hitl_tui.plain.console import Console, Left, PromptEnded, Terminal, confirm, refusal
from hitl_tui.plain.context import Context
from hitl_tui.plain.copying import take_along
from hitl_tui.plain.editing import edit, fork, show_value
from hitl_tui.plain.history import check, find, list_steps, walk, watches
from hitl_tui.plain.inside import look_within
from hitl_tui.plain.lists import list_items, list_threads, list_workers, new_thread
from hitl_tui.plain.queue import decide_several, queue
from hitl_tui.plain.running import (
    begin,
    cancel,
    continue_after_deadline,
    decide_and_go_on,
    extend,
    look,
    open_thread,
    roll_back,
    run_again,
    run_on,
    step,
    where,
)
from hitl_tui.plain.store import delete, prune, sizes
from hitl_tui.plain.trust import declassify, reveal, why_tainted
from hitl_tui.plain.waking import ended_by_deadline
from hitl_tui.view.format import capital
from hitl_tui.view.lines import content, name
from hitl_tui.view.notices import Notice
from hitl_tui.view.status import standing_code

OpenDriver = Callable[[], Awaitable[tuple[Hub, Driver]]]
BeginNotices = Callable[[Callable[[str], object], Callable[[Notice], bool]], Callable[[], object]]

HELP: Final = (
    "s: run one step.  s into: into a subgraph; s out: out of it.",
    "c: continue until it waits, fails or ends; c NODE: up to that node; ctrl+c pauses.",
    "d: answer the request; d 2: the second of several.  e CHANNEL: edit a channel.  f: fork.",
    "m: raise the limit that stopped it.  x: cancel the thread.  u: undo the side effects of its nodes.",
    "b NODE: stop before a node, or not; b after NODE, b change CHANNEL, b tool, b error; b: list them.",
    'b NODE: n > 2: only if that is true; b NODE hit 3; b NODE log "n={n}": print it; b 2: remove; b off 2.',
    "w: status and all channels.  v CHANNEL: a whole value.  l: the last steps.",
    "where: where a node failed or is now: its lines and local variables.",
    "l mine: your decisions, what followed and how to undo them; l mine all: in all threads.",
    "l route 3: what the route after step 3 returned, what it read, and its code.",
    "/ TEXT: find it in all steps; / ? n > 2: when that became true; /: the next; \\: the one before.",
    "W EXPRESSION: add or remove a watch; W: all watches, now and over the run; W step 3: as of step 3.",
    "=: compare a fork with its parent's end; = THREAD, = THREAD@3, = @3: with that step.  H: all forks.",
    "Z WORD: items of the graph's long-term store.  j: the workers, what they run, what is queued.",
    "y CHANNEL: why it is untrusted.  Y CHANNEL: trust it, with a reason.",
    "r CHANNEL: show a private value; that you looked is logged.",
    "V: verify the log; V strict; V replay.",
    "i: branches or a subgraph thread; i 2: the second; i step 4: inside step 4; i back: out again.",
    "a: the agents; a AGENT: one with its turns; a AGENT.model=NAME: change it; a forget AGENT.",
    "n FILTER: requests, most urgent first; n sort:-due: in another order; n 2: open the second.",
    "D ANSWER 1 3: give these the same answer.",
    "D @FILE 1 3: decide these by the rules of a policy; without numbers all that n listed.",
    'C: passages to comment on; C 3 TEXT or C "a passage" TEXT: comment on one; C back: undo the last.',
    "K value CHANNEL, K diff CHANNEL, K card, K command: copy it to the clipboard.",
    "k: claim the request, or give it back; k over NAME: take it over.  @ NAME WHY: hand it over.",
    "+: what is allowed without asking; + call: the waiting call; + TOOL NAME=PATTERN; + revoke ID.",
    "t WORD: list threads.  o THREAD: open another thread.  N: known graphs; N 2: start the second.",
    "X THREAD...: delete, with forks and subgraph threads; X THREAD force: also running or waiting ones.",
    "P older 30d last 5 decided: prune all but these; P: by [retention].  R: run again what changed.",
    "S: what fills the store; S THREAD: one, by channel; S vacuum: free unused space; S deleted.",
    "h: this help.  q: quit; saved steps are kept.",
)
COMMANDS: Final[Mapping[str, Callable[[Context, str], None]]] = {
    "s": step,
    "c": run_on,
    "d": decide_and_go_on,
    "e": edit,
    "f": lambda context, _: fork(context),
    "m": lambda context, _: extend(context),
    "R": lambda context, _: run_again(context),
    "b": change_breakpoints,
    "x": lambda context, _: cancel(context),
    "u": lambda context, _: roll_back(context),
    "y": why_tainted,
    "Y": declassify,
    "r": reveal,
    "V": check,
    "a": agents,
    "where": lambda context, _: where(context),
    "w": lambda context, _: look(context),
    "v": show_value,
    "l": list_steps,
    "t": list_threads,
    "k": claim,
    "@": hand_over,
    "C": comment,
    "K": take_along,
    "+": allow,
    "X": delete,
    "P": prune,
    "S": sizes,
    "N": new_thread,
    "o": open_thread,
    "n": queue,
    "D": decide_several,
    "i": look_within,
    "H": lambda context, _: list_family(context),
    "=": compare,
    "/": find,
    "\\": lambda context, _: walk(context, -1),
    "Z": list_items,
    "j": lambda context, _: list_workers(context),
    "W": watches,
    **dict.fromkeys(("h", "help", "?"), lambda context, _: context.console.say(*HELP)),
}


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
    lend = nullcontext if console is None and sys.stdin.isatty() else None
    with keyboard_kept(lend=lend), asyncio.Runner() as runner, _woken_by_signals(runner.get_loop()):

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
            with ExitStack() as ends:
                try:
                    ends.callback(notices(context.news.append, context.shows))
                except HitlError as error:
                    said.say(*refusal(error))
                return _until_left(context, go_on)
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


def _until_left(context: Context, go_on: Callable[[str], str]) -> int:
    """The conversation; returns the exit code."""
    say = context.console.say
    try:
        begin(context)
        look(context)
        say("h lists the commands.")
        while _one_command(context):
            pass
    except Left:
        pass
    progress = context.snapshot().progress
    if progress.head < 0:
        say("Quit before it started: there is no thread yet.")
    elif progress.status not in ("completed", "cancelled"):
        command = go_on(context.driver.thread_id)
        say(f"Left. Continue with: {command}" if command else "Left.")
    return int(standing_code(progress))


def _one_command(context: Context) -> bool:
    """Ask for a command and do it; False to leave."""
    _continued(context)
    while context.news:
        context.console.say("Elsewhere:", *content([context.news.pop(0)]))
    try:
        with ended_by_deadline(context):
            typed = context.console.ask("Command:")
    except PromptEnded:
        return True
    word, _, rest = typed.partition(" ")
    if word.startswith("/") and len(word) > 1:  # the text may stand beside it
        word, rest = "/", f"{word[1:]} {rest}"
    if word in ("q", "quit", "exit"):
        return False
    if _continued(context):
        if word:
            context.console.say(f"Your command {name(word)} was not carried out. Look, then give it again.")
        return True
    command = COMMANDS.get(word)
    if command is not None:
        try:
            command(context, rest.strip())
        except PromptEnded:
            context.console.say("The deadline answered first. Nothing of yours was sent.")
        except HitlError as error:
            context.console.say(*refusal(error))
    elif word:
        context.console.say(f"There is no command {name(word)}; h lists the commands.")
    return True


def _continued(context: Context) -> bool:
    """Continue the run where a deadline has answered; whether it has."""
    try:
        return continue_after_deadline(context)
    except HitlError as error:
        context.console.say(*refusal(error))
        return True
