"""Makes a subcommand of a verb: its options are the fields of its conversation, which it then answers."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

from hitl_tui.cli.options import complete_thread, thread_argument
from hitl_tui.cli.output import emit, one_line, progress, say, table
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.drivers.node_streams import own_out
from hitl_tui.errors import ExitCode, HitlError, UsageError
from hitl_tui.suggest import did_you_mean
from hitl_tui.verbs.conversation import (
    MOST_LISTED,
    Ask,
    AskChoice,
    AskField,
    AskReply,
    At,
    Begin,
    BeginEach,
    Consequences,
    Copy,
    Do,
    Follow,
    Listing,
    Open,
    Save,
    Show,
    ShowValue,
    Talk,
    TalkStep,
    Verb,
    Work,
    advance,
)
from hitl_tui.view.format import capital
from hitl_tui.view.value_lines import value_lines

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.engine.commands import Command
    from hitl_tui.verbs import VerbEntry
    from hitl_tui.view.shapes import Document


class TypedOptions(NamedTuple):
    """Arguments of the command line for a verb."""

    fields: Mapping[str, str]
    choice: str = ""
    yes: bool = False
    dry_run: bool = False


class _Stopped(Exception):
    """The conversation ends here, with an exit code."""

    def __init__(self, code: ExitCode) -> None:
        self.code = code


def command_of(entry: VerbEntry) -> click.Command:
    """Return the subcommand of a verb."""
    verb = entry.load()
    builds = verb.builds or (verb.command is not None and verb.command.takes_graph)
    work = on_thread(acts=True, builds=builds)(_work(verb))
    for decorate in reversed(_parameters(verb)):
        work = decorate(work)
    return click.command(entry.name, help=entry.help)(work)


def _parameters(verb: Verb) -> list[Callable[[Any], Any]]:
    """Return the decorators of a verb's own arguments and options, in the order of `--help`."""
    parameters: list[Callable[[Any], Any]] = []
    if verb.at_step:
        parameters.append(click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread))
    elif verb.about == "thread":
        parameters.append(thread_argument)
    parameters += [_argument(field) for field in verb.arguments]
    if verb.pairs:
        required = not any(field.required for field in verb.arguments)
        metavar = f"{verb.pairs}..." if required else f"[{verb.pairs}]..."
        parameters.append(click.argument("pairs", nargs=-1, required=required, metavar=metavar))
    parameters += [_option(field) for field in verb.options if not field.pair]
    parameters += [
        click.option(f"--{choice.name}", choice.name, is_flag=True, help=choice.flag)
        for choice in verb.choices
    ]
    if verb.dry_run:
        parameters.append(click.option("--dry-run", is_flag=True, help=verb.dry_run))
    if verb.confirms:
        parameters.append(click.option("--yes", is_flag=True, help="Don't ask first."))
    return parameters


def _argument(field: AskField) -> Callable[[Any], Any]:
    complete = complete_thread if field.thread else None
    if not field.many:
        return click.argument(field.name, required=field.required, shell_complete=complete)
    metavar = f"{field.metavar}..." if field.required else f"[{field.metavar}]..."
    return click.argument(
        field.name, nargs=-1, required=field.required, metavar=metavar, shell_complete=complete
    )


def _option(field: AskField) -> Callable[[Any], Any]:
    name = f"--{field.name.replace('_', '-')}"
    if field.switch:
        return click.option(name, field.name, is_flag=True, help=field.about)
    return click.option(
        name,
        field.name,
        metavar=field.metavar,
        required=field.required,
        multiple=field.many,
        help=field.about,
    )


def _work(verb: Verb) -> Callable[..., Any]:
    async def work(opened: OpenThread, **words: Any) -> ExitCode:
        from hitl_tui.cli.inputs import named_place

        given = _given(verb, words)
        driver, step = None, None
        if verb.at_step:
            driver, step = await named_place(opened, words["place"])
        elif verb.about == "thread":
            driver = await opened.thread(words["thread"])
        at = At(
            driver,
            opened.hub,
            opened.settings.reviewer,
            step=step,
            claim_minutes=opened.settings.claim_minutes,
            leaves=True,
            dry_run=given.dry_run,
            signs=opened.settings.signing_key is not None,
            given=given.fields,
            chosen=given.choice,
        )
        player = _Player(opened, at, given)
        try:
            await player.play(verb.talk(at))
        except _Stopped as stopped:
            return stopped.code
        except HitlError:
            if player.interrupted:
                raise click.Abort from None
            raise
        if player.interrupted:
            raise click.Abort
        return await player.report()

    return work


def _given(verb: Verb, words: Mapping[str, Any]) -> TypedOptions:
    """Return what was typed, by field.

    Raises:
        UsageError: a pair has no "=", or no field has its name.
    """
    fields = {
        field.name: _text(field, words[field.name])
        for field in (*verb.arguments, *verb.options)
        if words.get(field.name) not in (None, (), False)
    }
    names = [field.name for field in verb.options if field.pair]
    for pair in words.get("pairs", ()):
        name, equals, text = pair.partition("=")
        if not equals or name not in names:
            hint = did_you_mean(name, names) or f"the names are {', '.join(names)}"
            raise UsageError(f"{pair!r} is not {verb.pairs}", hint)
        fields[name] = text
    chosen = next((choice.name for choice in verb.choices if words.get(choice.name)), "")
    return TypedOptions(fields, chosen, bool(words.get("yes")), bool(words.get("dry_run")))


def _text(field: AskField, given: Any) -> str:
    if field.switch:
        return "yes"
    return shlex.join(given) if field.many else given


class _Player:
    """Answers a conversation from the command line; nobody can be asked, except for a yes."""

    def __init__(self, opened: OpenThread, at: At, given: TypedOptions) -> None:
        self._opened, self._at, self._given = opened, at, given
        self._shown = at.thread
        self._made_step: int | None = None
        self._done = True
        self._code: ExitCode | None = None
        self._broken = ExitCode.DONE
        self._listed = set[tuple[tuple[str, str, str], str]]()
        self._asked_to_stop = False
        self.interrupted = False
        """Whether ctrl+c has ended some work before it was done."""

    async def play(self, talk: Talk) -> None:
        """Answer each step, and send errors back, until the conversation ends."""
        reply, error = None, None
        while (step := await advance(talk, reply, error)) is not None:
            reply, error = None, None
            try:
                reply = await self._reply(step)
            except HitlError as refused:
                error = refused

    async def report(self) -> ExitCode:
        """Print the state of the thread, unless the conversation has reported its outcome."""
        from hitl_tui.cli.headless import report

        if self._code is not None or self._shown is None:
            return self._code or ExitCode.DONE
        if notice := (await self._shown.snapshot()).notice:
            say(f"hitl-tui: {notice}", err=True)
        return await report(
            self._shown,
            as_json=self._opened.as_json,
            done=self._done,
            made_step=self._made_step,
            broken=self._broken,
        )

    async def _reply(self, step: TalkStep) -> Any:
        match step:
            case Ask():
                return await self._answer(step)
            case Begin(talk):
                await self.play(talk)
            case BeginEach(talks=talks):
                for each in talks:
                    await self.play(each)
            case Do(command, driver):
                result = await (driver or self._at.driver).execute(command)
                if isinstance(result, int):
                    self._made_step = result
                return result
            case Follow(command, driver):
                await self._follow(command, driver or self._at.driver)
            case Open(thread_id):
                self._shown = await self._opened.hub.open(thread_id)
                return self._shown
            case Copy(text, document):
                await self._copy(text, document)
            case Save(text=text, document=document):
                self._print([text.removesuffix("\n")], document)
            case Work():
                return await self._work(step)
            case Show():
                lines = [*await self._standing(), *self._table(step.listing), step.text]
                self._print(lines, step.document, step.code)
                say(*step.more, err=True)
            case ShowValue(value=value, document=document):
                self._print(value_lines(value, "text"), document)
        return None

    async def _work(self, step: Work) -> Any:
        """Wait for some work and show how far it is; ctrl+c stops it, if that is possible.

        Raises:
            HitlError: ctrl+c was pressed again, which cancels what is left of it.
        """
        if not step.stopping:
            return await step.run(lambda done, of: True)
        with progress(step.text, as_json=self._opened.as_json) as watch, self._stopped_by_signal():

            def report(done: int, of: int) -> bool:
                if watch and of:
                    watch(done, of)
                self.interrupted = self._asked_to_stop and (done < of or not of)
                return not self.interrupted

            try:
                return await step.run(report)
            except KeyboardInterrupt:
                self.interrupted = True
                raise HitlError("stopped") from None

    @contextmanager
    def _stopped_by_signal(self) -> Iterator[None]:
        def hear(_number: int, _frame: object) -> None:
            if self._asked_to_stop:
                raise KeyboardInterrupt
            self._asked_to_stop = True

        before = signal.signal(signal.SIGINT, hear)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    async def _answer(self, ask: Ask) -> AskReply:
        if self._asked_to_stop:
            raise click.Abort
        if ask.refused is not None:
            raise ask.refused
        if self._given.dry_run or ask.confirm or ask.document is not None or ask.find_out is not None:
            await self._show(ask)
        if self._given.dry_run:
            raise _Stopped(ExitCode.DONE)
        if not ask.typed_choices:
            raise UsageError("\n".join(ask.text))
        choice = _chosen(ask, self._given.choice)
        if ask.confirm and not self._given.yes and not _agreed(ask, choice):
            say("Nothing was done.", err=True)
            raise _Stopped(ExitCode.USAGE)
        given, asked = self._given.fields, {field.name for field in ask.fields}
        return AskReply(choice.name, {name: text for name, text in given.items() if name in asked})

    async def _show(self, ask: Ask) -> None:
        dry_run = self._given.dry_run
        if self._opened.as_json and not dry_run:
            return
        found = await ask.find_out() if ask.find_out is not None else Consequences((), ask.document)
        if not self._opened.as_json:
            rows = [row for listed in ask.rows for row in listed.first(MOST_LISTED)]
            listing = None if self._given.yes else ask.listing
            titled = [ask.title] if listing is not None else []
            say(*self._table(listing), *titled, *ask.text, *rows, *found.text, err=not dry_run)
        elif found.document is not None:
            emit(found.document)

    async def _follow(self, command: Command[None], driver: Driver) -> None:
        from hitl_tui.cli.headless import print_run
        from hitl_tui.engine.commands import Run

        self._shown, self._done, self._code = driver, False, None
        if isinstance(command, Run):
            command = replace(command, unattended=True)
        self._broken = await print_run(driver, command, self._opened.settings, as_json=self._opened.as_json)

    async def _standing(self) -> list[str]:
        """Return the state of the thread after a run."""
        from hitl_tui.cli.headless import standing_lines

        if self._done or self._shown is None:
            return []
        return standing_lines(await self._shown.snapshot())

    def _table(self, listing: Listing | None) -> list[str]:
        """Return a list as lines, without the rows that were printed before."""
        if listing is None:
            return []
        rows = [row for row in listing.rows if (row.key, row.outcome) not in self._listed]
        if not rows:
            return []
        self._listed.update((row.key, row.outcome) for row in rows)
        cells = ((row.name, row.text, row.words) for row in rows)
        lines = ((one_line(name, 40), one_line(text, 60), one_line(what, 120)) for name, text, what in cells)
        return table([listing.headings, *lines], give=(1, 0), prose=True)

    async def _copy(self, text: str, document: Document) -> None:
        from hitl_tui.view import clipboard

        if self._opened.as_json or not own_out().isatty():
            self._print([text.rstrip("\n")], document)
            return
        copied = await clipboard.copy(clipboard.to_own_terminal(), text)
        if not copied.done:
            raise HitlError(copied.words, "write it through a pipe: `hitl-tui copy … | less`")
        self._print([copied.words], None)

    def _print(self, lines: Sequence[str], document: Document | None, code: ExitCode = ExitCode.DONE) -> None:
        if not self._opened.as_json:
            say(*lines)
        elif document is not None:
            emit(document)
        else:
            return
        self._code = code


def _chosen(ask: Ask, name: str) -> AskChoice:
    """Return the choice whose option was given, else the one that needs no option."""
    choices = ask.typed_choices
    if not name:
        return next((choice for choice in choices if not choice.flag), choices[0])
    for choice in choices:
        if choice.name == name:
            return choice
    raise UsageError(f"--{name} is not possible now: {ask.title}", "leave it out")


def _agreed(ask: Ask, choice: AskChoice) -> bool:
    """Ask the person at the terminal to agree; a program must say so with --yes."""
    if not sys.stdin.isatty():
        raise UsageError(f"{choice.label}: this must be confirmed", "confirm it with --yes")
    return click.confirm(f"{capital(choice.label)}?", default=False, err=True)
