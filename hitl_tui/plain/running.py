"""Running a thread in plain text mode: its input, steps, runs, answers and undo, and its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitl_tui.drivers.breakpoints import fits, read_breakpoint
from hitl_tui.drivers.protocol import ContextField, Snapshot
from hitl_tui.engine.commands import (
    CancelAttempt,
    Pause,
    PrepareGraph,
    Run,
    Start,
    Step,
)
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.log.events import RunEnded
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.plain.console import confirm, refusal
from hitl_tui.plain.context import Context
from hitl_tui.plain.deciding import card_of, decide, ready_to, waiting_request
from hitl_tui.view.format import json_or_text, typed_input
from hitl_tui.view.lines import content, name, short_id
from hitl_tui.view.repeats import repeat_lines
from hitl_tui.view.request_lines import question
from hitl_tui.view.status import standing_line
from hitl_tui.view.transcript import channel_lines, failed_at, running_at, unfinished_lines


def begin(context: Context) -> None:
    """Ask for the input of a new thread, again until it fits."""
    snapshot = context.snapshot()
    fields = context.run(context.driver.context_fields()) if snapshot.progress.head < 0 else ()
    if not snapshot.graph.inputs and not any(field.required for field in fields):
        fields = ()
    while snapshot.progress.head < 0:
        graph = snapshot.graph
        given = {
            field.name: typed_input(graph, field.name, _ask_for(context, field)) for field in graph.inputs
        }
        more = _context_for(context, fields)
        try:
            context.run(context.driver.execute(Start(given, context.actor, context=more or None)))
        except HitlError as error:
            if not given and not more:
                raise
            context.console.say(*refusal(error))
        snapshot = context.snapshot()


def _ask_for(context: Context, field: InputField) -> str:
    """Ask for an input."""
    example = f" (as in: {name(field.example)})" if field.example else ""
    while not (typed := context.console.ask(f"{name(field.label)}{example}:")):
        context.console.say("It is required; ctrl+d quits.")
    return typed


def _context_for(context: Context, fields: Sequence[ContextField]) -> dict[str, Any]:
    """Ask for the fields of the graph's context; an empty line leaves one out."""
    given: dict[str, Any] = {}
    for field in fields:
        default = f" (as in: {name(field.default)})" if field.default else ""
        while not (typed := context.console.ask(f"{name(field.name)}, context{default}:")):
            if not field.required:
                break
            context.console.say("It is required; ctrl+d quits.")
        if typed:
            given[field.name] = typed if field.type == "text" else json_or_text(typed)
    return given


def look(context: Context) -> None:
    """Print the state of the thread, its values and its requests."""
    snapshot = context.snapshot()
    context.console.say(f"Thread {short_id(snapshot.thread_id)}, graph {name(snapshot.graph.name)}.")
    if unbuilt := context.driver.refusal(PrepareGraph):
        context.console.say("Note:", *content([unbuilt]))
    if snapshot.notice:
        context.console.say(f"Note: {name(snapshot.notice)}.")
    newest = snapshot.checkpoints[-1:]
    tainted = [taint.channel for point in newest for taint in point.tainted]
    context.console.say(*channel_lines(snapshot.values, tainted))
    say_standing(context, snapshot)


def where(context: Context) -> None:
    """Print where the code of running nodes is now, with abandoned attempts, or where a node failed."""
    if not (lines := _running_at(context)):
        lines = failed_at(context.snapshot().progress) or ["None of your code runs in this process."]
    context.console.say(*lines)


def _running_at(context: Context) -> list[str]:
    """Return the stacks of the nodes whose code runs in this process."""
    lines: list[str] = []
    for node in context.snapshot().graph.nodes:
        for frames in context.run(context.driver.where(node.name)):
            lines += running_at(node.name, frames)
    return lines


def say_standing(context: Context, snapshot: Snapshot) -> None:
    context.console.say(standing_line(snapshot.progress, snapshot.held_by, snapshot.ledger))
    context.console.say(*unfinished_lines(snapshot.unfinished))
    if snapshot.owners:
        context.console.say(f"It runs inside {short_id(snapshot.owners[-1].thread_id)}: i back goes there.")
    request = waiting_request(snapshot)
    if request is not None:
        card = card_of(context, snapshot, request)
        context.console.say(*question(card, snapshot.values, context.hub.now()), "d decides.")


def step(context: Context, typed: str) -> None:
    """Run one step: over a subgraph, into it, or out of one."""
    if typed not in ("", "into", "out"):
        raise UsageError(f"there is no step {typed!r}", "s, s into or s out")
    if typed == "out":
        owners = context.snapshot().owners
        if not owners:
            raise UsageError("this is not a subgraph thread", "s steps")
        open_thread(context, owners[-1].thread_id)
    _go(context, Step(typed == "into", armed(context)))
    inside = context.snapshot().unfinished
    if typed == "into" and inside is not None and inside.child:
        open_thread(context, inside.child)


def run_on(context: Context, typed: str) -> None:
    """Run until something waits, or up to a node."""
    points = armed(context)
    if typed:
        points = (*points, read_breakpoint(typed, context.snapshot().graph))
    _go(context, Run(points))


def armed(context: Context) -> tuple[Breakpoint, ...]:
    """Return the breakpoints that the graph can have as it is now."""
    graph = context.snapshot().graph
    return tuple(point for point in context.breakpoints if fits(point, graph))


def _go(context: Context, command: Step | Run) -> None:
    """Run, and print what happens until it stops."""
    once = isinstance(command, Step)
    snapshot = context.snapshot()
    if waiting_request(snapshot) is not None:
        raise UsageError("it waits for your decision", "d decides")
    if snapshot.progress.status in ("completed", "cancelled"):
        raise UsageError(f"the run is {snapshot.progress.status}", "f forks from any of its steps")
    ready_to(context, Step if once else Run)
    context.stepping = once
    if _may_try_again(context, snapshot) and context.in_turn(command):
        follow(context)


def _may_try_again(context: Context, snapshot: Snapshot) -> bool:
    """Print what failed or was stopped and will run again; if it has side effects, ask first."""
    progress = snapshot.progress
    if progress.status != "failed" and not progress.uses:
        return True
    repeats = context.run(context.driver.preview(Run())).repeats
    context.console.say(*(repeat_lines(repeats) if repeats else ()))
    return repeats is None or not repeats.outside or confirm(context.console, "Try it again?")


def decide_and_go_on(context: Context, typed: str) -> None:
    """Ask for a decision; then the thread continues to its next stop unless it was being stepped through."""
    if not decide(context, typed):
        return
    print_events(context)
    context.deadline_passed = False  # the run continues after this answer in any case
    if not context.snapshot().progress.pending:
        _continue(context)


def _continue(context: Context) -> None:
    """Run to the next stop after an answer, unless the person was stepping or a server runs the thread."""
    snapshot = context.snapshot()
    stays = context.stepping or snapshot.handed or context.driver.refusal(Run)
    if snapshot.progress.status == "waiting" and not stays:
        _go(context, Run(armed(context)))
    else:
        say_standing(context, snapshot)


def continue_after_deadline(context: Context) -> bool:
    """Report that a deadline has answered, and continue the run as after a person's answer.

    Returns:
        False if no deadline has answered since the last run began.
    """
    print_events(context)
    if not context.deadline_passed:
        return False
    context.deadline_passed = False
    progress = context.snapshot().progress
    if progress.pending or progress.status in ("running", "completed", "cancelled"):
        return False
    answered = "has answered" if progress.status != "failed" else "was missed"
    context.console.say(f"The deadline {answered}.")
    if not context.driver.refusal(Run):
        _continue(context)
    return True


def follow(context: Context) -> None:
    """Print what happens until the run has ended; ctrl+c pauses it."""
    driver = context.driver
    asked = False
    while True:
        try:
            context.run(_until_ended(context))
            break
        except KeyboardInterrupt:
            context.stepping = True
            context.run(driver.execute(CancelAttempt() if asked else Pause(context.actor)))
            if not asked:
                context.console.say("Pausing after this node; ctrl+c again stops the node.")
                context.console.say(*_running_at(context))
            asked = True
    say_standing(context, context.snapshot())


async def _until_ended(context: Context) -> None:
    while True:
        await context.driver.changed(context.seen)
        if print_events(context):
            return


def print_events(context: Context) -> bool:
    """Print the events since the last time; return True if a run has ended among them."""
    ended = False
    while context.unprinted:
        context.console.say(*context.node_text.lines(context.unprinted.pop(0)))
    for stamped in context.driver.events(context.seen):
        context.seen = stamped.number
        context.note(stamped.event)
        context.console.say(*context.node_text.lines(stamped.event))
        ended = ended or isinstance(stamped.event, RunEnded)
    return ended


def open_thread(context: Context, typed: str) -> None:
    """Switch to another thread; without a name ask for it, and for an empty one switch to the owner.

    Raises:
        UnknownThread: there is none of that name.
    """
    owners = context.snapshot().owners
    back = f" (empty for {short_id(owners[-1].thread_id)})" if owners else ""
    thread = typed or context.console.ask(f"Thread{back}:") or (owners[-1].thread_id if owners else "")
    context.open(context.run(context.hub.open(thread)))
    look(context)
