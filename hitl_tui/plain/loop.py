"""Session in plain text mode: print the thread's state, ask for a command, do it, and print the outcome."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress

from hitl_tui.drivers.breakpoints import read_breakpoints
from hitl_tui.drivers.node_streams import interruptible, keyboard_kept
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.thread.measures import Reason
from hitl_tui.errors import HitlError
from hitl_tui.loading.trust import Question
from hitl_tui.plain.commands import find_command
from hitl_tui.plain.console import Console, Left, PromptEnded, Terminal, confirm, refusal
from hitl_tui.plain.context import Context
from hitl_tui.plain.running import begin, continue_after_deadline, look
from hitl_tui.plain.waking import ended_by_deadline
from hitl_tui.view.format import capital
from hitl_tui.view.lines import content, name
from hitl_tui.view.notices import Notice
from hitl_tui.view.status import standing_code

OpenDriver = Callable[[], Awaitable[tuple[Hub, Driver]]]
BeginNotices = Callable[[Callable[[str], object], Callable[[Notice], bool]], Callable[[], object]]


def run_plain(
    open_driver: OpenDriver,
    *,
    actor: str,
    go_on: Callable[[str, str], str],
    console: Console | None = None,
    breaks: Sequence[str] = (),
    claim_minutes: float = 15,
    reasons: Sequence[Reason] = (),
    notices: BeginNotices = lambda print_line, sees: lambda: None,
) -> int:
    """Show a thread in plain text mode until the person leaves; returns the exit code for its state.

    Args:
        notices: starts to print, from any thread, events of the store that the person does not see;
            returns a function that stops it.
        claim_minutes: how long a claim lasts.
        reasons: those to pick from.
        go_on: returns the command that continues a thread of a source, or "" if there is none.
        breaks: breakpoints to set at the start, as `--break` takes them.
    """
    said = console or Terminal()
    lend = nullcontext if console is None and sys.stdin.isatty() else None
    with keyboard_kept(lend=lend), asyncio.Runner() as runner, _woken_by_signals(runner.get_loop()):

        async def opened() -> tuple[Hub, Driver]:
            hub, driver = await open_driver()
            if console is not None or sys.stdin.isatty():
                hub.inbox.ask_by(ask)
            return hub, driver

        async def ask(question: Question) -> bool:
            said.say(f"{capital(question.why)}. It would run:")
            said.say(*content(question.lines, len(question.lines)))
            with interruptible(), suppress(Left):
                return confirm(said, "Trust it, and run it?")
            return False

        hub, driver = runner.run(opened())
        try:
            context = Context(runner.run, hub, driver, said, actor, claim_minutes, tuple(reasons))
            context.bring_breakpoints(read_breakpoints(breaks, context.snapshot().graph))
            with ExitStack() as ends:
                try:
                    ends.callback(notices(context.news.append, context.shows))
                except HitlError as error:
                    said.say(*refusal(error))
                return _until_left(context, go_on)
        finally:
            said.say(*runner.run(hub.inbox.close()))


@contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let ctrl+c wake the loop at once, even if it comes just as that falls asleep."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled elsewhere
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


def _until_left(context: Context, go_on: Callable[[str, str], str]) -> int:
    """Run the session; return the exit code."""
    say = context.console.say
    try:
        begin(context)
        look(context)
        say("help lists the commands.")
        while _one_command(context):
            pass
    except Left:
        pass
    progress = context.snapshot().progress
    if progress.head < 0:
        say("Quit before it started: there is no thread yet.")
    elif progress.status not in ("completed", "cancelled"):
        command = go_on(context.hub.source, context.driver.thread_id)
        say(f"Left. Continue with: {command}" if command else "Left.")
    return int(standing_code(progress))


def _one_command(context: Context) -> bool:
    """Ask for a command and do it; return False to leave."""
    _continued(context)
    while context.news:
        context.console.say("Elsewhere:", *content([context.news.pop(0)]))
    try:
        with ended_by_deadline(context):
            typed = context.console.ask("Command:")
    except PromptEnded:
        return True
    word, _, rest = typed.partition(" ")
    if word.startswith("/") and len(word) > 1:  # the text may follow the letter directly
        word, rest = "/", f"{word[1:]} {rest}"
    if word in ("q", "quit", "exit"):
        return False
    if _continued(context):
        if word:
            context.console.say(f"Your command {name(word)} was not carried out. Look, then give it again.")
        return True
    command = find_command(word)
    if command is not None:
        try:
            command(context, rest.strip())
        except PromptEnded:
            context.console.say("The deadline answered first. Nothing of yours was sent.")
        except HitlError as error:
            context.console.say(*refusal(error))
    elif word:
        context.console.say(f"There is no command {name(word)}; help lists the commands.")
    return True


def _continued(context: Context) -> bool:
    """Continue the run if a deadline has answered; return whether it has."""
    try:
        return continue_after_deadline(context)
    except HitlError as error:
        context.console.say(*refusal(error))
        return True
