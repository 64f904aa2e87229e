"""Run without a screen: events as they happen, requests that wait for a person, and the exit code."""

from __future__ import annotations

import asyncio
import shlex
import time
from typing import TYPE_CHECKING

from hitl_tui.cli.invocation import same_store, store_ends_with_process
from hitl_tui.cli.opening import Choose, OpenStore, execute_in_turn, open_target, start, stops_at_start
from hitl_tui.cli.output import emit, say
from hitl_tui.cli.thread import OpenThread, work_on
from hitl_tui.collector import collect_as_usual
from hitl_tui.engine.log.records import ROLLBACK
from hitl_tui.errors import ExitCode, UsageError
from hitl_tui.shell import command_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hitl_tui.config import Settings
    from hitl_tui.drivers.protocol import ContextField, Driver, Snapshot
    from hitl_tui.engine.commands import Command, Run, Step
    from hitl_tui.engine.log.events import Event
    from hitl_tui.engine.log.requests import Request
    from hitl_tui.engine.thread.approval_formats import ToolAction
    from hitl_tui.engine.thread.breakpoints import Breakpoint
    from hitl_tui.view.form import Field, Form


ENDED_WITH_PROCESS = (
    "its store is in memory and ends with this command: nothing can continue this thread later"
)
_TOGETHER = 0.02
"""Seconds; events within them are written together."""
_MOST_LINES = 12
_MOST_FIELDS = 20
_WHOLE = "--json has all of it"


def request_lines(snapshot: Snapshot, request: Request) -> list[str]:
    """Return a request, and how to answer it from a shell if another command can."""
    from hitl_tui.view.card import actions, answer_form, review_card
    from hitl_tui.view.lines import content, name, spans
    from hitl_tui.view.request_lines import terms
    from hitl_tui.view.run_view import open_view

    store, running, in_memory = same_store(), same_store(runs=True), store_ends_with_process()
    thread = snapshot.thread_id
    if request.breakpoint:
        resume = command_line("resume", thread, options=f"--headless{running}")
        return [] if in_memory else [f"  continue with: {resume}"]
    step = f"--step {request.step}{running}"

    def answer(*given: str, options: str = "") -> str:
        return command_line("answer", thread, request.id, *given, options=f"{options} {step}")

    form, edits, asked = answer_form(request), request.kind == "edit", actions(request)
    answers = "an edited value" if edits else "a form" if form and _is_object(form) else "a value"
    answers = ", ".join(name(choice.id) for choice in request.choices) or answers
    lines = [f"  request {request.id} at step {request.step}, answers: {answers}"]
    lines += content(request.notes, _MOST_LINES)
    card = review_card(request, open_view(snapshot), snapshot.values)
    for term, more in terms(card, snapshot.now):
        lines += [f"  {term}", *spans(more, _MOST_LINES)]
    lines += _actions(asked) if asked else spans(card.words, _MOST_LINES, _WHOLE)
    lines += _subject(snapshot, request, store)
    if request.thread and not in_memory:
        inside = command_line("show", request.thread, options=store)
        lines.append(f"  a subgraph asks it: {inside}")
    if form and _is_object(form):
        lines += [f"  field {_field_line(field)}" for field in form.fields[:_MOST_FIELDS]]
        wanted = [field for field in form.fields if field.required] or form.fields[:1]
        if in_memory:
            return lines
        given = " ".join(f"--set {shlex.quote(field.label)}=..." for field in wanted)
        return [*lines, f"  answer with: {answer(options=given)}"]
    if in_memory:
        return lines
    if request.choices or not edits:
        lines.append(f"  answer with: {answer('ANSWER')}")
    if edits:
        lines.append(f"  answer with: {answer(options='--value JSON')}")
    if len(asked) > 1:
        each = ", ".join('"approve"' for _ in asked)
        one_by_one = answer(options=f"--value '[{each}]'")
        lines.append(f"  one by one:  {one_by_one}")
    return lines


def _subject(snapshot: Snapshot, request: Request, store: str) -> list[str]:
    """Return the channel that the decision is about; "" if text has already named it."""
    from hitl_tui.engine.log.events import PRIVATE
    from hitl_tui.view.lines import content, name
    from hitl_tui.view.value_lines import value_lines

    subject = request.subject
    if subject is None or request.thread or request.policy or subject not in snapshot.values:
        return []
    value = snapshot.values[subject]
    if value is PRIVATE and store_ends_with_process():
        return [f"  about {name(subject)}, which is private"]
    if value is PRIVATE:
        reveal = command_line("reveal", snapshot.thread_id, name(subject), options=store)
        return [f"  about {name(subject)}, which is private: {reveal}"]
    show = command_line("show", snapshot.thread_id, options=f"--channel {name(subject)}{store}")
    all_of_it = f"{show} has all of it"
    whole = _WHOLE if store_ends_with_process() else all_of_it
    return [f"  about {name(subject)}:", *content(value_lines(value, "text"), _MOST_LINES, whole)]


def _actions(asked: Sequence[ToolAction]) -> list[str]:
    """Return every action with all its arguments: one answer may be for all of them."""
    from hitl_tui.view.lines import content
    from hitl_tui.view.value_lines import value_lines

    lines: list[str] = []
    for number, action in enumerate(asked, 1):
        about = value_lines(action.description, "text") if action.description else ()
        whole = [f"{number} of {len(asked)}  {action.name}", *about, *value_lines(action.args, "json")]
        lines += content(whole, _MOST_LINES, _WHOLE)
    return lines


def _is_object(form: Form) -> bool:
    return bool(form.fields) and form.fields[0].path != ()


def _field_line(field: Field) -> str:
    words = " or ".join(option.word for option in field.options) or field.hint or field.kind
    return f"{field.label}: {words}{'' if field.required else ', may be left out'}"


def run_headless(
    settings: Settings,
    open_store: OpenStore,
    choose: Choose,
    *,
    breaks: Sequence[str] = (),
    kept: bool = False,
    command: Callable[[tuple[Breakpoint, ...]], Run | Step] | None = None,
    as_json: bool,
) -> ExitCode:
    """Run a thread without a screen until it waits, fails or ends.

    Args:
        breaks: breakpoints, as `drivers.breakpoints` reads them.
        kept: whether the breakpoints kept for the graph count as well, as far as they fit it.
        command: what to do; by default run until something waits.

    Raises:
        UsageError: the new thread's graph asks for inputs, and none were given.
    """
    from hitl_tui.drivers.breakpoints import read_breakpoints
    from hitl_tui.engine.commands import PrepareGraph, Run

    async def work(opened: OpenThread) -> ExitCode:
        target = await asyncio.to_thread(choose, opened.store)
        driver = await open_target(opened.hub, target, settings, breaks, unattended=True)
        await driver.execute(PrepareGraph())
        collect_as_usual()
        begins = target.inputs is not None
        if (snapshot := await driver.snapshot()).progress.head < 0 and not begins:
            ask_for_inputs(snapshot, await driver.context_fields())
            await start(driver, {}, settings, unattended=True)
            begins = True
        if begins and await stops_at_start(driver):
            return await report(driver, as_json=as_json)
        if snapshot.notice:
            say(f"hitl-tui: {snapshot.notice}", err=True)
        if not as_json:
            await print_repeats(driver, Run(), as_json=False)
        stops = read_breakpoints(breaks, snapshot.graph)
        if kept:
            stops = (*_kept(snapshot), *stops)
        return await run_on(driver, settings, command=(command or _run)(stops), as_json=as_json)

    return work_on(settings, open_store, work, as_json=as_json)


def ask_for_inputs(snapshot: Snapshot, context: Sequence[ContextField] = ()) -> None:
    """Refuse to start a new thread without the inputs that its graph asks for.

    Args:
        context: the given fields of its context; missing required ones are named, too.

    Raises:
        UsageError: the graph asks for inputs.
    """
    if asked := snapshot.graph.inputs:
        examples = [(field.name, shlex.quote(field.example) if field.example else "…") for field in asked]
        words = " ".join(f"--input {name}={example}" for name, example in examples)
        words += "".join(f" --context {shlex.quote(field.name)}=…" for field in context if field.required)
        raise UsageError(f"the graph {snapshot.graph.name!r} asks for its input", f"give {words}")


async def print_repeats(driver: Driver, command: Run | Step, *, as_json: bool) -> None:
    """Print what a command would run again; text goes to stderr, because it is not a result."""
    from hitl_tui.view.repeats import fork_lines
    from hitl_tui.view.shapes import RepeatsDocument

    preview = await driver.preview(command)
    repeats = preview.repeats
    if as_json:
        emit(RepeatsDocument(thread=driver.thread_id, repeats=repeats, moves=preview.moves or None))
    else:
        say(*fork_lines(preview), err=True)


def _run(breakpoints: tuple[Breakpoint, ...]) -> Run:
    from hitl_tui.engine.commands import Run

    return Run(breakpoints, unattended=True)


def _kept(snapshot: Snapshot) -> tuple[Breakpoint, ...]:
    """Return the breakpoints that are kept for the graph, as far as they fit it now."""
    from hitl_tui.drivers.breakpoints import fits
    from hitl_tui.drivers.kept_breakpoints import kept_breakpoints

    kept = kept_breakpoints(snapshot.graph.name, snapshot.source)
    points = kept.load()
    if kept.problem:
        say(f"hitl-tui: {kept.problem}", err=True)
    return tuple(point for point in points if fits(point, snapshot.graph))


async def run_on(
    driver: Driver, settings: Settings, *, command: Run | Step | None = None, as_json: bool
) -> ExitCode:
    """Run a thread until it waits, fails or ends, and print what happens.

    Args:
        command: how to run; by default until something waits. A single step is done after one step.

    Raises:
        ThreadBusy: another process runs it.
    """
    from hitl_tui.engine.commands import Run, Step

    before = (await driver.snapshot()).notice
    broken = await print_run(driver, command or Run(unattended=True), settings, as_json=as_json)
    snapshot = await driver.snapshot()
    if snapshot.notice not in ("", before):
        say(f"hitl-tui: {snapshot.notice}", err=True)
    progress = snapshot.progress
    stepped = isinstance(command, Step) and progress.status == "waiting" and progress.reason == "paused"
    return await report(driver, as_json=as_json, done=stepped, broken=broken)


async def print_run(driver: Driver, command: Command[None], settings: Settings, *, as_json: bool) -> ExitCode:
    """Start a run and print its events until it has ended; a signal stops the run.

    Returns:
        The exit code of an interrupted run, else 0.
    """
    snapshot = await driver.snapshot()
    printer = _EventPrinter(driver, snapshot, as_json)
    try:
        await execute_in_turn(driver, command, settings)
        printed_at = -_TOGETHER
        while not printer.ended:
            await driver.changed(printer.seen)
            # Fast events are printed in batches: writing each event alone costs more than a step.
            await asyncio.sleep(printed_at + _TOGETHER - time.monotonic())
            printer.print_news()
            printed_at = time.monotonic()
        return printer.exit_code
    except asyncio.CancelledError:
        # The run is suspended first, so its end is the last event that is printed.
        lost = await driver.close()
        printer.print_news()
        say(*([lost] if lost else []), err=True)
        raise


async def report(
    driver: Driver,
    *,
    as_json: bool,
    done: bool = False,
    made_step: int | None = None,
    broken: ExitCode = ExitCode.DONE,
) -> ExitCode:
    """Print the state of a thread; return the exit code for it.

    Args:
        done: whether the command has done its work, whatever the state of the thread.
        made_step: the step that the command made.
        broken: the exit code of an interrupted run.
    """
    from msgspec import UNSET

    from hitl_tui.view.shapes import ResultDocument
    from hitl_tui.view.status import standing_code

    snapshot = await driver.snapshot()
    progress = snapshot.progress
    code = broken or (ExitCode.DONE if done else standing_code(progress))
    if as_json:
        emit(
            ResultDocument(
                thread=driver.thread_id,
                progress=progress,
                state=snapshot.values,
                exit_code=int(code),
                made_step=UNSET if made_step is None else made_step,
            )
        )
    else:
        say(*standing_lines(snapshot))
    return code


def standing_lines(snapshot: Snapshot) -> list[str]:
    """Return the state of a thread, and for each request what is asked and how to answer it."""
    from hitl_tui.view.lines import name, short_id
    from hitl_tui.view.status import standing_line

    stands = standing_line(snapshot.progress, snapshot.held_by, snapshot.ledger)
    lines = [f"{short_id(snapshot.thread_id)}: {stands}"]
    lines += _next_commands(snapshot)
    unfinished = snapshot.unfinished
    if unfinished and unfinished.child and not store_ends_with_process():
        inside = command_line("step", unfinished.child, options=same_store(runs=True))
        lines.append(f"  one step inside {name(unfinished.node)}: {inside}")
    for request in snapshot.progress.pending:
        lines += request_lines(snapshot, request)
    return lines


def _next_commands(snapshot: Snapshot) -> list[str]:
    """Return the command that continues a thread which waits for no answer, or why there is none."""
    progress, thread, store = snapshot.progress, snapshot.thread_id, same_store(runs=True)
    resume = command_line("resume", thread, options=f"--headless{store}")
    if store_ends_with_process():
        unfinished = progress.status in ("failed", "pending", "waiting")
        return [f"  {ENDED_WITH_PROCESS}"] if unfinished else []
    if progress.position == ROLLBACK and progress.status in ("failed", "pending", "waiting"):
        return [f"  roll back the rest with: {command_line('rollback', thread, options=store)}"]
    if progress.status == "failed":
        return [f"  try again with: {resume}"]
    if progress.pending or progress.status not in ("pending", "waiting"):
        return []
    if progress.reason == "limit":
        from hitl_tui.view.status import raised_limit

        extend = command_line("extend", thread, raised_limit(progress), options=store)
        return [f"  raise it with: {extend}"]
    return [f"  continue with: {resume}"]


class _EventPrinter:
    """Prints the events of a run, as documents or as text."""

    def __init__(self, driver: Driver, snapshot: Snapshot, as_json: bool) -> None:
        from hitl_tui.cli.documents import has_secrets
        from hitl_tui.view.transcript import NodeText

        self.seen = snapshot.last_event
        self.ended = False
        self.exit_code = ExitCode.DONE
        self._driver = driver
        self._thread_id = driver.thread_id
        self._secret = has_secrets(snapshot.graph)
        self._as_json = as_json
        self._node_text = NodeText()

    def print_news(self) -> None:
        """Print the events since the last call."""
        from hitl_tui.engine.log.events import RunEnded

        news = self._driver.events(self.seen)
        if not news:
            return
        events = [stamped.event for stamped in news]
        if (lost := news[0].number - self.seen - 1) > 0:
            say(f"({lost} events came too fast to be printed; `hitl-tui log` has the steps)", err=True)
        self.seen = news[-1].number
        for event in events:
            if isinstance(event, RunEnded):
                self.ended, self.exit_code = True, ExitCode(event.exit_code)
        self._print_events(events)

    def _print_events(self, events: Sequence[Event]) -> None:
        """Print events; only programs get starts and ends, because people read those in the last line."""
        if self._as_json:
            from hitl_tui.view.shapes import EventDocument

            documents = (EventDocument(thread=self._thread_id, event=event) for event in events)
            emit(*documents, secret=self._secret)
        else:
            say(*(line for event in events for line in self._node_text.lines(event)))
