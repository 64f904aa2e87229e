"""`decisions`: search the decisions of all threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.invocation import same_store
from hitl_tui.cli.opening import find_thread
from hitl_tui.cli.options import complete_thread
from hitl_tui.cli.output import emit, say, table
from hitl_tui.cli.thread import OpenStored, on_log
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.view.followed import DecisionOutcome


@click.command()
@click.argument("words", nargs=-1)
@click.option("--by", metavar="NAME", help="Only by people with this in their names.")
@click.option("--mine", is_flag=True, help="Only your own.")
@click.option(
    "--thread", metavar="THREAD", help="Only in this thread.", shell_complete=complete_thread
)  # fmt: skip
@click.option("--since", metavar="TIME", help="Only since then: 7d, today, yesterday or 2026-11-20.")
@click.option("--until", metavar="TIME", help="Only up to then; a day counts to its end.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many to show.")
@click.option("--long", "whole", is_flag=True, help="Each with all of its reason, and how to undo it.")
@on_log(acts=True)
def decisions(
    opened: OpenStored,
    *,
    words: tuple[str, ...],
    by: str | None,
    mine: bool,
    thread: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    whole: bool,
) -> ExitCode:
    """Search the decisions of all threads, newest first.

    Each is a row: when, who, in which thread, what, why, and the result. WORDS are looked for in the
    question, the reason, the answer, what the question showed, and the text decided about, as it was then.
    Capitals do not matter, and private values are never searched. by:ann, thread:report, since:7d and
    until:2026-11-20 are understood among WORDS, too; after --, "-" before a word leaves out what has it.
    Exit code 1 if nothing matches.

        hitl-tui decisions closures --since 7d
        hitl-tui decisions --mine --long
        hitl-tui decisions --thread r1 --by ann --json
        hitl-tui decisions -- closures -draft
    """
    from hitl_tui.drivers.decided import DecisionSearch, Wanted
    from hitl_tui.view.decisions import read_filter
    from hitl_tui.view.followed import followed

    me, now = opened.settings.reviewer, opened.store.now()
    times = [f"{name}:{value}" for name, value in (("since", since), ("until", until)) if value]
    wanted, problems = read_filter(" ".join([*map(_one_word, words), *times]), now, me)
    if problems:
        raise UsageError("; ".join(problems))
    if by:
        wanted = wanted._replace(people=(*wanted.people, Wanted(by.casefold())))
    if mine:
        wanted = wanted._replace(person=me)
    if thread:
        wanted = wanted._replace(thread=find_thread(opened.store, thread))
    search, options = DecisionSearch(opened.store, wanted), same_store(runs=True)
    found = [followed(decided, options) for decided in search.all(limit)]
    if opened.as_json:
        from hitl_tui.cli.reports import DecisionLogDocument

        emit(DecisionLogDocument(decisions=tuple(found), looked=search.looked, more=not search.ended))
    else:
        _print(found, me, whole=whole)
    return ExitCode.DONE if found else ExitCode.FAILED


def _one_word(word: str) -> str:
    """Return a word as the filter reads it: several that the shell passed as one stay together."""
    return f'"{word}"' if " " in word and '"' not in word and ":" not in word else word


def _print(found: Sequence[DecisionOutcome], me: str, *, whole: bool) -> None:
    from hitl_tui.view.decisions import HEADS, texts_of
    from hitl_tui.view.followed import dated_lines

    if whole:
        for decision in found:
            say(*dated_lines(decision, me))
    elif found:
        say(*table([HEADS, *map(texts_of, found)], give=(4, 5, 3)))
    else:
        say("no decision matches", err=True)
