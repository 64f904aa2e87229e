"""Delete threads with their subgraphs.

All of them, or none if one can't be deleted. Threads that run or wait for a person need --force, and
those whose steps a fork shares need --forks. The ledger of the store keeps who did it, when, why, and
the last hashes; `deleted` shows it. Without --yes it shows what would be deleted, and asks.

    hitl-tui delete r1 --dry-run
    hitl-tui delete r1 r2 --forks --yes --note "an experiment"
"""

from __future__ import annotations

from typing import Final

from hitl_tui.errors import UsageError
from hitl_tui.verbs.conversation import NOTE, AskField, AskReply, At, Begin, Talk, Verb
from hitl_tui.verbs.deleting import DRY_RUN, FORCE, deletion
from hitl_tui.view.actions import Action

_THREADS: Final = AskField("threads", "the threads", metavar="THREAD", required=True, many=True, thread=True)
_FORKS: Final = AskField(
    "forks",
    "also their forks: yes or no",
    about="Also delete their forks, which share their steps.",
    switch=True,
)


async def _talk(at: At) -> Talk:
    """Delete the named threads."""
    given = AskReply("", at.given)
    names = given.words(_THREADS.name)
    if not names:
        raise UsageError("no thread is named", "delete THREAD...; threads lists them")
    yield Begin(deletion(at, names, forks=given.yes(_FORKS.name)), part=True)


VERB = Verb(
    None,
    _talk,
    Action(
        "threads.delete",
        "delete,X",
        "Delete",
        "Delete marked or selected threads, with their forks and subgraph threads",
        "Threads",
    ),
    after="threads.mark",
    letter="X",
    arguments=(_THREADS,),
    options=(_FORKS, FORCE, NOTE),
    dry_run=DRY_RUN,
    confirms=True,
    about="store",
)
