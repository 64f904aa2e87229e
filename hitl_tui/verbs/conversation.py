"""What a verb is, and the steps of the conversation that leads to its commands.

A conversation is an async generator. It yields what it wants and is sent the reply. Three hosts play it:
dialogs on screen (`hitl_tui.ui.conversations`), questions in plain text mode
(`hitl_tui.plain.conversations`) and the options of a subcommand (`hitl_tui.cli.verbs`). So each of them
sends the same command with the same fields. If the engine refuses a command, the error is raised at the
`yield`, so that the conversation can ask again.

See docs/architecture.md, "Know how a verb is played".
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.commands import Command
from hitl_tui.errors import ExitCode, HitlError, UsageError
from hitl_tui.view.actions import Action
from hitl_tui.view.shapes import Document
from hitl_tui.view.spans import Line
from hitl_tui.view.value_lines import ValuePart

if TYPE_CHECKING:
    from hitl_tui.view.queue import QueueRow


class AskField(msgspec.Struct, frozen=True):
    """Something to type.

    Args:
        name: its name as an option, with underscores, and in the reply.
        label: what to type, for a dialog and a question.
        value: what the dialog proposes. Other hosts name it; their reply lacks a field that was not typed.
        about: its sentence in the subcommand's `--help`.
        metavar: the placeholder for its value in `--help`, as "NAME".
        required: a subcommand refuses to run without it, a dialog asks again, and plain text mode takes an
            empty one for leaving.
        pair: the subcommand takes it as NAME=VALUE.
        many: the subcommand takes several; the reply has them as words of a shell (`shlex.split`). For an
            option, plain text mode takes what it can't assign to another field.
        rest: in plain text mode it is all that was typed after the verb, without quotation marks.
        rare: a dialog shows it on request, and plain text mode does not ask for it.
        switch: yes or no: a subcommand and plain text mode take its name alone for "yes".
        long: it may have several lines, so the dialog has an area for it.
        only_for: the choices that need it; plain text mode asks for it only then. () if all do.
        thread: it names threads, which a shell completes.
        begins: a dialog begins with it, even if it may be left empty.
    """

    name: str
    label: str
    value: str = ""
    about: str = ""
    metavar: str = "TEXT"
    required: bool = False
    pair: bool = False
    many: bool = False
    rest: bool = False
    rare: bool = False
    switch: bool = False
    long: bool = False
    only_for: tuple[str, ...] = ()
    thread: bool = False
    begins: bool = False


class AskChoice(msgspec.Struct, frozen=True):
    """One of the answers to a question.

    Args:
        name: its name in the reply.
        key: the key that chooses it on screen, and in plain text mode.
        label: what it does, for a dialog and a question.
        note: a few words beside the label.
        final: it cannot be undone, so that enter alone does not choose it.
        flag: its sentence in the subcommand's `--help`, which has an option of its name; "" for the choice
            that the subcommand takes where none of the others is given.
        action: for a choice that only leads to another question: the action whose keys choose it beside a
            list on screen, where enter takes the choice without one.
        switch: the field of the verb that says the same; only a dialog offers this choice, as the others
            take that field.
    """

    name: str
    key: str
    label: str
    note: str = ""
    final: bool = False
    flag: str = ""
    action: str = ""
    switch: str = ""


class ListRow(msgspec.Struct, frozen=True):
    """One of several things that a verb is used on at once.

    Args:
        key: unique among them.
        name: of its thread.
        text: what it is.
        outcome: what would be done with it, or was done; or why not.
        state: whether it would be done, is left out, is done, or was refused.
    """

    key: tuple[str, str, str]
    name: str
    text: str
    outcome: str
    state: Literal["would", "left", "done", "refused"]

    @property
    def words(self) -> str:
        """The outcome, for a host that shows the state in no other way."""
        return f"{self.state}: {self.outcome}" if self.state in ("left", "refused") else self.outcome


class Listing(msgspec.Struct, frozen=True):
    """Several things that a verb is used on at once; those that are left out come last.

    Args:
        headings: of the names, texts and outcomes, for a table.
    """

    headings: tuple[str, str, str]
    rows: tuple[ListRow, ...]


class AskRows(msgspec.Struct, frozen=True):
    """Things that a question is about, a row each. A dialog scrolls them, other hosts show the first few."""

    rows: tuple[str, ...]
    heading: str = ""

    def first(self, most: int) -> list[str]:
        """Return the heading, some rows, and how many more there are."""
        rest = len(self.rows) - most
        shown = [*self.rows[:most], *([f"and {rest:,} more"] if rest > 0 else [])]
        return [self.heading, *shown] if shown and self.heading else shown


class Consequences(msgspec.Struct, frozen=True):
    """What would come of what is asked.

    Args:
        text: sentences, sanitised by the host.
        document: the same for a program, printed by `--dry-run --json`.
    """

    text: tuple[str, ...]
    document: Document | None = None


class Ask(msgspec.Struct, frozen=True):
    """A question; the reply is an `AskReply`, or None if it is left without an answer.

    Args:
        text: sentences, sanitised by the host.
        choices: what can be done. If there is none, a person only reads the text, and a subcommand fails.
        rows: what the text is about, below it.
        beside: what it is about, which the screen shows beside the dialog; plain text mode prints it.
        refused: why the last reply was not accepted.
        confirm: a subcommand shows the text and asks for a yes, or takes `--yes`.
        document: the same as `text` for a program, printed by `--dry-run --json`.
        settled: what the fields propose is taken where nothing is typed, so plain text mode does not ask.
        find_out: finds out what would come of it, which may take a while: a dialog opens without that and
            adds it when it is there; the other hosts wait for it.
        listing: what it is about, for a verb that is used on several things. The screen shows the list in
            place of a dialog, until the conversation ends and the person closes it.
        anew: returns the question as it is with these texts in its fields. The screen shows that while the
            person types; plain text mode asks again if the list differs.
    """

    title: str
    text: tuple[str, ...]
    choices: tuple[AskChoice, ...]
    fields: tuple[AskField, ...] = ()
    refused: HitlError | None = None
    confirm: bool = False
    document: Document | None = None
    beside: tuple[str, ...] = ()
    rows: tuple[AskRows, ...] = ()
    settled: bool = False
    find_out: Callable[[], Coroutine[Any, Any, Consequences]] | None = None
    listing: Listing | None = None
    anew: Callable[[Mapping[str, str]], Ask] | None = None

    @property
    def typed_choices(self) -> tuple[AskChoice, ...]:
        """The choices of a host that takes the switches."""
        return tuple(choice for choice in self.choices if not choice.switch)

    def missing(self, typed: Mapping[str, str]) -> UsageError | None:
        """Return what is wrong with a reply that leaves a required field empty."""
        left = [each.label for each in self.fields if each.required and not typed.get(each.name, "").strip()]
        return UsageError(f"nothing was typed: {left[0]}") if left else None


class AskReply(msgspec.Struct, frozen=True):
    """The choice, and the texts of fields: in a dialog of all, else of those that were typed."""

    choice: str
    fields: Mapping[str, str]

    def text(self, name: str) -> str | None:
        """Return a field's text without blanks around it; None if it is empty or was not typed."""
        return self.fields.get(name, "").strip() or None

    def yes(self, name: str) -> bool:
        """Return whether a switch is on.

        Raises:
            UsageError: something else than yes or no was typed.
        """
        typed = (self.text(name) or "no").lower()
        if typed not in ("yes", "y", "no", "n"):
            raise UsageError(f"{name.replace('_', ' ')}: {typed!r} is neither yes nor no", "type yes or no")
        return typed in ("yes", "y")

    def words(self, name: str) -> list[str]:
        """Return the words of a field that takes many, split as a shell does.

        Raises:
            UsageError: a quotation mark is not closed.
        """
        try:
            return shlex.split(self.fields.get(name, ""))
        except ValueError as error:
            raise UsageError(
                f"{self.fields[name]!r} can't be read: {error}", "close the quotation mark"
            ) from None


class Do(msgspec.Struct, frozen=True):
    """A command to carry out; the reply is its result.

    Args:
        driver: whose thread it is for; None for the thread of the conversation.
    """

    command: Command[Any]
    driver: Driver | None = None


class Begin(msgspec.Struct, frozen=True):
    """Another conversation, about the same thread, to have before this one continues; the reply is None.

    Args:
        part: it is a part of this one, so that it takes what was typed after the verb.
    """

    talk: Talk
    part: bool = False


class BeginEach(msgspec.Struct, frozen=True):
    """Conversations about several threads; the screen has some of them at a time. The reply is None.

    A person can stop it: then no more of them begin.

    Args:
        text: what is being done.
        so_far: returns what has come of it.
        undo_seconds: how long a person on screen can still undo all of it before it begins.
    """

    text: str
    talks: Sequence[Talk]
    so_far: Callable[[], Show]
    undo_seconds: float = 0.0


class Continue(msgspec.Struct, frozen=True):
    """A thread that can continue now; the reply is None.

    The screen runs it in the background, plain text mode waits until it stops, and a subcommand leaves it.
    """

    thread_id: str
    hub: Hub


class Follow(msgspec.Struct, frozen=True):
    """A command that starts a run; the host shows the run until it ends. The reply is None.

    To a `Run` the host adds the breakpoints that are set there, and whether nobody watches it.

    Args:
        driver: as in `Do`.
        progress: returns how far the run is. The screen shows that in a dialog, again after each event,
            then in its place what the next `Show` says; if the dialog is closed before, the conversation
            ends there. Other hosts print the events.
        title: of that dialog.
        text: what is being done, said there.
    """

    command: Command[None]
    driver: Driver | None = None
    progress: Callable[[], Coroutine[Any, Any, Sequence[Line]]] | None = None
    title: str = ""
    text: str = ""


class Open(msgspec.Struct, frozen=True):
    """A thread to turn to; the reply is its driver."""

    thread_id: str


class Show(msgspec.Struct, frozen=True):
    """What came of it; the reply is None.

    Args:
        text: a sentence; after a run a subcommand prints the state of the thread before it.
        title: one or two words before it, on screen.
        document: the same for a program, printed by `--json`.
        visible: the screen shows it by itself, and says nothing.
        hint: an action, and what its key does now; said on screen.
        more: further sentences; a subcommand writes them to stderr.
        code: how the subcommand exits.
        listing: what came of each of several things. Rows that were printed already are not printed again.
    """

    text: str
    title: str = ""
    document: Document | None = None
    visible: bool = False
    hint: tuple[str, str] | None = None
    more: tuple[str, ...] = ()
    code: ExitCode = ExitCode.DONE
    listing: Listing | None = None


class ShowValue(msgspec.Struct, frozen=True):
    """The value of a channel at a step; the reply is None.

    Args:
        document: the same for a program, printed by `--json`.
    """

    channel: str
    step: int
    value: Any
    document: Document


Report: TypeAlias = Callable[[int, int], bool]
"""Says from any thread how far some work is, as (done, in all), and returns whether to continue."""


class Work(msgspec.Struct, frozen=True):
    """Something for a hub that takes its time; the host says so meanwhile.

    The reply is its result; None if it was stopped before it began.

    Args:
        text: what is being done.
        run: does it, and reports how far it is.
        title: of the list that is being made; the screen opens it. "" for work that changes something.
        stopping: what happens once a person stops it, as it ends at its next report; "" if it can't be
            stopped.
    """

    text: str
    run: Callable[[Report], Coroutine[Any, Any, Any]]
    title: str = ""
    stopping: str = ""


class Copy(msgspec.Struct, frozen=True):
    """A text for the clipboard; a subcommand prints it, if its output is no terminal. The reply is None.

    Args:
        document: the same for a program, printed by `--json`.
    """

    text: str
    document: Document


class Save(msgspec.Struct, frozen=True):
    """A text for the person to keep: a subcommand prints it, other hosts write a new file. The reply is None.

    Args:
        name: of the file; see `hitl_tui.new_files.file_name`.
        media_type: for a browser, which downloads it.
        document: the same for a program, printed by `--json`.
    """

    name: str
    text: str
    media_type: str
    title: str
    document: Document


TalkStep: TypeAlias = (
    Ask | Begin | Continue | Copy | Do | BeginEach | Follow | Open | Save | Show | ShowValue | Work
)
Talk: TypeAlias = AsyncGenerator[TalkStep, Any]
"""A conversation about one verb."""


class At(msgspec.Struct, frozen=True):
    """What a verb is used on, and by whom.

    Args:
        thread: the thread; None for a verb about the store.
        seen: the hash of the state that was shown to the person; b"" if nothing was shown.
        step: a step of the thread, if one was named or is shown; None for the newest.
        selected: the channel that is selected.
        agent: the agent that is selected; "" for none.
        request: the id of the request whose card is open, or that is selected in a list; "" for none.
        call: which of the tool calls of that request the open card shows, from 0; None if none is open.
        part: the part of that channel's value that the cursor is on; None for none.
        answering: the choice and the reason on the open card, as they are so far.
        running: the node that runs in this process now; "" if none does.
        claim_minutes: how long a claim lasts.
        leaves: the process ends with the conversation, as that of a subcommand.
        opened: the thread that is open here, for a verb about the store; "" for none.
        dry_run: nothing is to be done; only asked of a verb with `dry_run`.
        signs: a key signs what the person decides.
        listed: the requests that the person has marked, or that were listed last, as they were then.
        given: what was typed after the verb, by field; the fields of `Verb.options` and `Verb.arguments`.
        chosen: the choice that was named after the verb; "" if none was.
    """

    thread: Driver | None
    hub: Hub
    actor: str
    seen: bytes = b""
    step: int | None = None
    selected: str = ""
    agent: str = ""
    request: str = ""
    call: int | None = None
    part: ValuePart | None = None
    answering: tuple[str, str] = ("", "")
    running: str = ""
    claim_minutes: float = 15
    leaves: bool = False
    opened: str = ""
    dry_run: bool = False
    signs: bool = False
    listed: Sequence[QueueRow] = ()
    given: Mapping[str, str] = {}
    chosen: str = ""

    @property
    def driver(self) -> Driver:
        """The thread of a verb about one."""
        assert self.thread is not None
        return self.thread


class Verb(msgspec.Struct, frozen=True):
    """A verb: its conversation, and how each host offers it.

    The first line of its module's docstring is its line in `--help`. The rest of it is the help of the
    subcommand.

    Args:
        command: its command: whether it can be done now is asked about this one; None for a verb that sends
            none to a thread.
        talk: starts the conversation.
        action: its row in the tables of actions; None if the screen offers it in another way.
        after: the id of the action that its row follows.
        letter: its alias in plain text mode.
        alone: what its word alone does in plain text mode, if the summary does not say it.
        arguments: what the subcommand takes without a name, after the thread.
        pairs: the placeholder for the fields that the subcommand takes as NAME=VALUE, as "LIMIT=NUMBER".
        options: the other fields that its conversation may ask for.
        choices: those with a flag.
        at_step: the subcommand takes THREAD@STEP.
        dry_run: what `--dry-run` does; "" for a verb without it.
        confirms: the subcommand has `--yes`.
        builds: the subcommand takes the thread's graph, though the verb's command does not.
        about: what it is used on.
    """

    command: type[Command[Any]] | None
    talk: Callable[[At], Talk]
    action: Action | None = None
    after: str = ""
    letter: str = ""
    alone: str = ""
    arguments: tuple[AskField, ...] = ()
    pairs: str = ""
    options: tuple[AskField, ...] = ()
    choices: tuple[AskChoice, ...] = ()
    at_step: bool = False
    dry_run: str = ""
    confirms: bool = False
    builds: bool = False
    about: Literal["thread", "store"] = "thread"


MOST_LISTED: Final = 12
"""Rows of a list that a host shows which can't scroll it."""
FORK_DRY_RUN: Final = "Only show which nodes would run again, and what they used last time."
NOTE: Final = AskField("note", "why (optional; it is logged)", about="Why, for the record.")


async def advance(talk: Talk, reply: Any = None, error: HitlError | None = None) -> TalkStep | None:
    """Send a conversation the reply to its last step, or the error; return its next step, None at its end."""
    try:
        return await (talk.asend(reply) if error is None else talk.athrow(error))
    except StopAsyncIteration:
        return None
