"""Plays the conversation of a verb in plain text mode: what was typed after the verb, then questions."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Run
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.new_files import new_file
from hitl_tui.plain.console import confirm, refusal
from hitl_tui.plain.context import Context
from hitl_tui.plain.deciding import give_back, ready_to
from hitl_tui.plain.running import armed, follow, look, say_standing
from hitl_tui.suggest import did_you_mean
from hitl_tui.verbs import VerbEntry
from hitl_tui.verbs.conversation import (
    MOST_LISTED,
    Ask,
    AskChoice,
    AskField,
    AskReply,
    At,
    Begin,
    BeginEach,
    Continue,
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
from hitl_tui.view.clipboard import copy, to_own_terminal
from hitl_tui.view.continuing import run_on
from hitl_tui.view.format import capital
from hitl_tui.view.lines import content, name, sentence, short_id
from hitl_tui.view.value_lines import value_lines

_ROWS: Final = 100
"""Number of rows of a question's subject."""
_SOON: Final = 0.5
"""Seconds after which work is named that has not ended."""


class Typed(NamedTuple):
    """Input after a verb: texts by field, and the named choice."""

    fields: dict[str, str]
    choice: str = ""


def play(context: Context, entry: VerbEntry, words: str) -> None:
    """Play the conversation of a verb to its end, then print the state of the thread.

    Args:
        words: the input after the verb.

    Raises:
        UsageError: the words do not fit the verb, or the verb can't be used on the thread.
        HitlError: a command was refused.
    """
    verb = entry.load()
    typed = read_words(entry.name, verb, words)
    snapshot = ready_to(context, verb.command) if verb.command else context.snapshot()
    step = _step(typed.fields.pop("step", ""), snapshot.progress.head)
    at = At(
        context.driver if verb.about == "thread" else None,
        context.hub,
        context.actor,
        snapshot.state_hash,
        step=step,
        claim_minutes=context.claim_minutes,
        signs=bool(snapshot.signing_key),
        listed=context.listed,
        opened=context.driver.thread_id,
        given=typed.fields,
        chosen=typed.choice,
    )
    optional = {field.name for field in verb.options}
    player = _Player(context, typed, asks=typed.fields.keys().isdisjoint(optional))
    try:
        player.play(verb.talk(at))
    except HitlError as error:
        texts = [(f"{label} was", text) for label, text in player.texts.items() if text]
        if not texts:
            raise
        give_back(context, error, snapshot.progress.head, *texts)
        return
    if player.opened:
        look(context)
    elif player.has_shown:
        return
    elif player.done:
        say_standing(context, context.snapshot())
    else:
        context.console.say("Nothing was done.")


@dataclass
class _Player:
    """Answers a conversation.

    Args:
        asks: whether to ask for missing input even if it is optional.
    """

    context: Context
    typed: Typed
    asks: bool
    done: bool = False
    opened: bool = False
    has_shown: bool = False
    said: tuple[tuple[str, ...], tuple[str, ...], Listing | None] | None = None
    listed: frozenset[tuple[tuple[str, str, str], str]] = frozenset()

    def __post_init__(self) -> None:
        self.texts = dict(self.typed.fields)

    def play(self, talk: Talk) -> None:
        """Answer each step, and send errors back, until the conversation ends."""
        reply, error = None, None
        while (step := self.context.run(advance(talk, reply, error))) is not None:
            reply, error = None, None
            try:
                reply = self._reply(step)
            except HitlError as refused:
                error = refused

    def _reply(self, step: TalkStep) -> Any:
        context = self.context
        match step:
            case Ask():
                return self._ask(step)
            case Begin(talk, part=True):
                self.play(talk)
            case Begin(talk):
                inner = _Player(context, Typed({}), asks=True)
                inner.play(talk)
                self.done, self.has_shown = inner.done, inner.has_shown
            case BeginEach(talks=talks):
                self._each(talks)
            case Continue(thread_id, hub):
                context.run(run_on(hub, thread_id))
            case Do(command, driver):
                result = context.run((driver or context.driver).execute(command))
                self.done = True
                return result
            case Follow(command, driver):
                self._turn_to(driver)
                self.done = self.has_shown = True
                self.opened = False
                if context.in_turn(Run(armed(context)) if isinstance(command, Run) else command):
                    follow(context)
            case Open(thread_id):
                context.open(context.run(context.hub.open(thread_id)))
                self.opened = True
                return context.driver
            case Copy(text):
                context.console.say(sentence(capital(context.run(copy(to_own_terminal(), text)).words)))
                self.done = self.has_shown = True
            case Save(file, text):
                path = new_file(file, text.encode())
                context.console.say(f"Saved as {path} in {name(str(Path.cwd()))}.")
                self.done = self.has_shown = True
            case Work():
                return self._work(step)
            case Show(text, more=more, listing=listing):
                context.console.say(*self._rows(listing), sentence(text), *content(more))
                self.has_shown = True
            case ShowValue(channel, value=value):
                context.console.say(f"{name(channel)}:", *content(value_lines(value, "text")))
                self.has_shown = True
        return None

    def _each(self, talks: Sequence[Talk]) -> None:
        """Have one conversation after another, until ctrl+c."""
        try:
            for talk in talks:
                inner = _Player(self.context, Typed({}), asks=True)
                inner.play(talk)
                self.done = self.done or inner.done
        except KeyboardInterrupt:
            self.context.console.say("Stopped.")
            for talk in talks:
                self.context.run(talk.aclose())

    def _rows(self, listing: Listing | None) -> list[str]:
        """Return a list as lines, without those that were printed before."""
        if listing is None:
            return []
        rows = [row for row in listing.rows if (row.key, row.outcome) not in self.listed]
        self.listed |= {(row.key, row.outcome) for row in rows}
        return [f"{short_id(row.name)}: {name(row.text)}: {name(row.words)}" for row in rows]

    def _work(self, step: Work) -> Any:
        """Wait for some work; ctrl+c stops it, if that is possible."""
        tasks: list[asyncio.Task[Any]] = []
        stopped = False
        seconds: float | None = _SOON

        async def has_ended() -> bool:
            if not tasks:
                tasks.append(asyncio.create_task(step.run(lambda done, of: not stopped)))
            return bool((await asyncio.wait(tasks, timeout=seconds))[0])

        while True:
            try:
                if self.context.run(has_ended()):
                    return tasks[0].result()
                self.context.console.say(sentence(capital(step.text)))
                seconds = None
            except KeyboardInterrupt:
                if not step.stopping:
                    raise
                stopped = True
                self.context.console.say(sentence(capital(step.stopping)))
                if not tasks:
                    return None

    def _turn_to(self, driver: Driver | None) -> None:
        if driver is not None and driver is not self.context.driver:
            self.context.open(driver)

    def _ask(self, ask: Ask) -> AskReply | None:
        say = self.context.console.say
        if ask.refused is not None:
            say(*refusal(ask.refused))
        if (ask.text, ask.beside, ask.listing) != self.said:
            self.said = ask.text, ask.beside, ask.listing
            more = self.context.run(ask.find_out()).text if ask.find_out is not None else ()
            say(
                sentence(ask.title),
                *content(ask.text),
                *content(ask.beside, _ROWS),
                *content(row for listed in ask.rows for row in listed.first(MOST_LISTED)),
                *content(more),
                *self._rows(ask.listing),
            )
        choice = self._choose(ask)
        if choice is None:
            return None
        question = f"{capital(choice.label)}?{f' {sentence(capital(choice.note))}' if choice.note else ''}"
        sole = self.asks and len(ask.typed_choices) == 1 and all(field.rare for field in ask.fields)
        agrees = ask.confirm and not choice.action
        if (choice.final or agrees or sole) and not confirm(self.context.console, question):
            return None
        texts = self._texts(ask, choice)
        anew = ask.anew(texts) if ask.anew is not None else ask
        if anew.listing != ask.listing and not self._agrees(anew, choice):
            return None
        return None if ask.missing(texts) else AskReply(choice.name, texts)

    def _agrees(self, anew: Ask, choice: AskChoice) -> bool:
        """Whether the person still chooses this now that other things are listed."""
        say = self.context.console.say
        say(sentence(anew.title), *self._rows(anew.listing))
        chosen = next((each for each in anew.choices if each.name == choice.name), None)
        return chosen is not None and confirm(self.context.console, f"{capital(chosen.label)}?")

    def _choose(self, ask: Ask) -> AskChoice | None:
        """Return the typed choice, else ask for one; a single one needs no question."""
        choices = ask.typed_choices
        if self.typed.choice:
            for choice in choices:
                if choice.name == self.typed.choice:
                    return choice
            raise UsageError(f"{self.typed.choice} is not possible now", sentence(ask.title))
        if not choices:
            return None
        unnamed = [choice for choice in choices if not choice.flag]
        only = (unnamed or choices)[0]
        if not only.action and (len(choices) == 1 or (self.typed.fields and len(unnamed) == 1)):
            return only
        say = self.context.console.say
        say(
            *(
                f"{choice.key}: {choice.label}{f', {choice.note}' if choice.note else ''}"
                for choice in choices
            )
        )
        word = self.context.console.ask("Which? Empty for none:")
        return next((choice for choice in choices if word in (choice.key, choice.name) and word), None)

    def _texts(self, ask: Ask, choice: AskChoice) -> dict[str, str]:
        """Return the input after the verb if it was accepted, and ask for the other fields."""
        given = {} if ask.refused else self.typed.fields
        texts = {field.name: given[field.name] for field in ask.fields if field.name in given}
        for field in ask.fields:
            asked = ask.refused or (self.asks and not ask.settled)
            wanted = field.required or (asked and not field.rare)
            if choice.name not in (field.only_for or (choice.name,)) or not wanted:
                continue
            if not texts.get(field.name) and (typed := self._text(field)):
                texts[field.name] = self.texts[field.name] = typed
        return texts

    def _text(self, field: AskField) -> str:
        proposed = f" (as in: {name(field.value)})" if field.value else ""
        if field.required:
            proposed += ", empty for none"
        return self.context.console.ask(f"{capital(field.label)}{proposed}:")


def read_words(verb_name: str, verb: Verb, words: str) -> Typed:
    """Parse the input after a verb: values in their order, NAME=VALUE, and names of choices.

    Words after the last value are the note, or belong to the option that takes several.

    Raises:
        UsageError: a word that does not fit.
    """
    if rest := _rest(verb, words):
        return rest
    try:
        parts = shlex.split(words)
    except ValueError:  # an apostrophe, as in "he knows Ann's file"
        parts = words.split()
    fields = {field.name: field for field in (*verb.arguments, *verb.options)}
    flags = {choice.name: choice for choice in verb.choices if choice.flag}
    free = list(verb.arguments)
    some = next((field for field in (*verb.arguments, *verb.options) if field.many), None)
    others = some.name if some in verb.options and some is not None else ""
    typed, chosen = dict[str, str](), ""
    for part in parts:
        label, equals, value = part.removeprefix("--").partition("=")
        label = label.replace("-", "_")
        if equals and label in fields:
            several = fields[label].many and label in typed
            typed[label] = f"{typed[label]} {value}" if several else value
        elif label in flags:
            chosen = label
        elif label in fields and fields[label].switch:
            typed[label] = "yes"
        elif part.startswith("@") and part[1:].isdigit() and verb.at_step:
            typed["step"] = part[1:]
        elif others and (equals or not free):
            typed[others] = _added(typed.get(others, ""), part)
        elif free and free[0].many:
            typed[free[0].name] = _added(typed.get(free[0].name, ""), part)
        elif free:
            typed[free.pop(0).name] = part
        elif verb.arguments and "note" in fields and not equals:
            typed["note"] = f"{typed['note']} {part}" if "note" in typed else part
        else:
            known = [f"{field}=" for field in fields] + [*flags]
            hint = did_you_mean(part, known) or f"it takes {', '.join(known) or 'nothing'}"
            raise UsageError(f"{verb_name} does not take {part!r}", hint)
    return Typed(typed, chosen)


def _added(words: str, word: str) -> str:
    return shlex.join([*shlex.split(words), word])


def _rest(verb: Verb, words: str) -> Typed | None:
    """Return a step and a text as they were typed, for a verb that takes one; None if fields are named."""
    field = next((field for field in verb.arguments if field.rest), None)
    if field is None:
        return None
    found = re.fullmatch(r"(?:@(\d+)(?:\s+|$))?(.*)", words.strip(), re.DOTALL)
    assert found is not None  # it matches anything
    step, text = found.groups()
    if not text or text.startswith((f"{field.name}=", "--")):
        return None
    return Typed({field.name: text, **({"step": step} if step else {})})


def _step(typed: str, head: int) -> int | None:
    if not typed:
        return None
    if int(typed) > head:
        raise UsageError(f"there is no step {typed}", f"steps are 0 to {head}")
    return int(typed)
