"""The commands of plain text mode: the words of the subcommands, with letters as aliases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from hitl_tui.plain.agents import agents
from hitl_tui.plain.breakpoints import change_breakpoints
from hitl_tui.plain.comments import comment
from hitl_tui.plain.comparing import compare, list_family
from hitl_tui.plain.context import Context
from hitl_tui.plain.conversations import play
from hitl_tui.plain.decisions import decisions, stats
from hitl_tui.plain.editing import edit, read, show_value
from hitl_tui.plain.history import check, find, list_steps, walk, watches, why_tainted
from hitl_tui.plain.inside import look_within
from hitl_tui.plain.lists import list_items, list_threads, list_workers, new_thread
from hitl_tui.plain.queue import queue
from hitl_tui.plain.running import (
    decide_and_go_on,
    look,
    open_thread,
    run_on,
    step,
    where,
)
from hitl_tui.plain.store import sizes
from hitl_tui.verbs import VerbEntry, verbs
from hitl_tui.verbs.conversation import Verb

Run: TypeAlias = Callable[[Context, str], None]


class PlainCommand(NamedTuple):
    """A row of the table: the words of a command, what it does, and its help.

    Args:
        letter: its alias, "" for none.
        run: a function that does it, called with the text typed after it.
        help: lines for `help`: what may follow the word, and what it does then.
    """

    letter: str
    word: str
    run: Run
    help: tuple[tuple[str, str], ...]

    def help_lines(self) -> list[str]:
        """Return a line for each form of the command, as `help` prints them."""
        names = f"{self.letter}, {self.word}" if self.letter else self.word
        words = [names, *[self.letter or self.word] * (len(self.help) - 1)]
        return [
            f"{f'{word} {after}' if after else word}: {what}."
            for word, (after, what) in zip(words, self.help, strict=True)
        ]


def _without_words(do: Callable[[Context], None]) -> Run:
    return lambda context, _: do(context)


_OTHERS: Final = (
    PlainCommand(
        "s",
        "step",
        step,
        (
            ("", "run one node"),
            ("into", "step into a subgraph"),
            ("out", "finish this thread and the node that runs it"),
        ),
    ),
    PlainCommand(
        "c",
        "resume",
        run_on,
        (
            ("", "run until it waits, fails or ends; ctrl+c pauses"),
            ("NODE", "run, and stop before that node"),
        ),
    ),
    PlainCommand(
        "d", "answer", decide_and_go_on, (("", "answer the request"), ("2", "answer the second of several"))
    ),
    PlainCommand("e", "update-state", edit, (("CHANNEL", "edit a channel"),)),
    PlainCommand(
        "b",
        "breakpoints",
        change_breakpoints,
        (
            ("", "list the breakpoints"),
            ("NODE", "stop before a node, or no longer; after NODE, change CHANNEL, tool and error work too"),
            ("NODE: n > 2", 'only if that is true; NODE hit 3; NODE log "n={n}" prints it'),
            ("2", "remove the second; off 2 turns it off"),
        ),
    ),
    PlainCommand("w", "status", _without_words(look), (("", "show where the thread is, and all channels"),)),
    PlainCommand(
        "",
        "read",
        read,
        (
            ("", "read what the request is about, rendered, with its changes"),
            ("CHANNEL", "read that"),
        ),
    ),
    PlainCommand("v", "show", show_value, (("CHANNEL", "show a whole value"),)),
    PlainCommand(
        "l",
        "log",
        list_steps,
        (
            ("", "list the last steps"),
            ("mine", "your decisions in this thread, their results and how to undo them"),
            ("route 3", "what the route after step 3 returned, what it read, and its code"),
        ),
    ),
    PlainCommand(
        "",
        "decisions",
        decisions,
        (
            ("WORDS", "search the decisions of all threads; by:me, thread:r1 and since:7d narrow it down"),
            ("2", "open the second at its step"),
        ),
    ),
    PlainCommand(
        "",
        "stats",
        _without_words(stats),
        (("", "count decisions by person and graph, reasons, times, scores and agreement"),),
    ),
    PlainCommand(
        "",
        "where",
        _without_words(where),
        (("", "where a node failed or is now: its lines and local variables"),),
    ),
    PlainCommand(
        "/",
        "find",
        find,
        (
            ("TEXT", "find a text in all steps; without one, the next match"),
            ("? n > 2", "find when that became true"),
        ),
    ),
    PlainCommand("\\", "previous", lambda context, _: walk(context, -1), (("", "the match before"),)),
    PlainCommand(
        "W",
        "values",
        watches,
        (
            ("EXPRESSION", "watch it, or stop watching it"),
            ("", "all watches, now and over the run; step 3: as of step 3"),
        ),
    ),
    PlainCommand(
        "=",
        "diff",
        compare,
        (
            ("", "compare a fork with its parent's end"),
            ("THREAD@3", "compare with that step; THREAD and @3 work too"),
        ),
    ),
    PlainCommand("H", "family", _without_words(list_family), (("", "list all forks"),)),
    PlainCommand("Z", "items", list_items, (("WORD", "items of the graph's long-term store"),)),
    PlainCommand(
        "j", "workers", _without_words(list_workers), (("", "the workers, what they run, what is queued"),)
    ),
    PlainCommand("y", "taint", why_tainted, (("CHANNEL", "why it is untrusted"),)),
    PlainCommand("V", "verify", check, (("", "check the log; strict and replay check more"),)),
    PlainCommand(
        "i",
        "inside",
        look_within,
        (
            ("", "branches or a subgraph thread; 2: the second; back: out again"),
            ("step 4", "inside step 4"),
        ),
    ),
    PlainCommand(
        "a",
        "agents",
        agents,
        (
            ("", "list the agents"),
            ("AGENT", "show one with its turns"),
        ),
    ),
    PlainCommand(
        "n",
        "queue",
        queue,
        (
            ("FILTER", "requests, most urgent first; sort:-due: in another order"),
            ("2", "open the second"),
        ),
    ),
    PlainCommand(
        "C",
        "comment",
        comment,
        (
            ("", "list passages to comment on; back: undo the last comment"),
            ("3 TEXT", 'comment on one; "a passage" TEXT works too'),
        ),
    ),
    PlainCommand("t", "threads", list_threads, (("WORD", "list threads"),)),
    PlainCommand("o", "open", open_thread, (("THREAD", "open another thread"),)),
    PlainCommand("N", "graphs", new_thread, (("", "list the known graphs"), ("2", "start the second"))),
    PlainCommand(
        "S",
        "size",
        sizes,
        (
            ("", "what fills the store; THREAD: one, by channel"),
            ("deleted", "what was deleted"),
        ),
    ),
)


def _of_verb(entry: VerbEntry, verb: Verb) -> PlainCommand:
    run = lambda context, words: play(context, entry, words)  # noqa: E731
    summary = entry.summary.removesuffix(".")
    arguments = " ".join(field.name.upper() for field in verb.arguments)
    more = [
        field.name.replace("_", "-") if field.switch else f"{field.name}={field.metavar}"
        for field in verb.options
    ]
    more += [choice.name for choice in verb.choices if choice.flag]
    help_lines = [("", verb.alone)] if verb.alone else []
    help_lines += [(arguments, summary[:1].lower() + summary[1:])]
    help_lines += [(" ".join(more), "its options")] if more else []
    return PlainCommand(verb.letter, entry.name, run, tuple(help_lines))


@cache
def plain_commands() -> tuple[PlainCommand, ...]:
    """Return all commands."""
    return (*_OTHERS, *(_of_verb(entry, entry.load()) for entry in verbs().values()))


def find_command(word: str) -> Run | None:
    """Return the function for a command, None if there is none with that word or letter."""
    if word in ("h", "help", "?"):
        return _help
    named = (row for row in plain_commands() if word and word in (row.word, row.letter))
    command = next(named, None)
    return command and command.run


def _help(context: Context, _: str) -> None:
    context.console.say(*(line for row in plain_commands() for line in row.help_lines()))
    context.console.say("h, help: this list.", "q, quit: quit; saved steps are kept.")
