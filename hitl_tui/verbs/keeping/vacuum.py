"""Free the space of deleted threads.

Also deletes graphs that no thread uses. While it runs, nothing can be written to the store.

    hitl-tui vacuum
"""

from __future__ import annotations

from typing import Annotated

from hitl_tui.engine.log.units import about
from hitl_tui.errors import UsageError
from hitl_tui.verbs.conversation import Ask, AskChoice, At, Show, Talk, Verb, Work
from hitl_tui.view.actions import Action
from hitl_tui.view.shapes import Document


class VacuumDocument(Document, frozen=True):
    """`vacuum`: the space before and after."""

    before: Annotated[int, about("Bytes on disk before.")]
    after: Annotated[int, about("Bytes on disk now.")]


async def _talk(at: At) -> Talk:
    """Say what is free, and free it."""
    from hitl_tui.view.deletion import space_words, vacuum_words

    if why := at.hub.upkeep_refusal:
        raise UsageError("threads can't be deleted from this store here", why)
    reply = yield Ask(
        "Free unused space?",
        (
            f"Now {space_words(await at.hub.space()) or 'it is on no disk'}.",
            "Graphs that no thread uses are deleted, too. Nobody can write to the store meanwhile.",
        ),
        (AskChoice("vacuum", "v", "free the space"),),
    )
    if reply is None:
        return
    before, after = yield Work("freeing space…", lambda _: at.hub.vacuum())
    yield Show(vacuum_words(before, after), document=VacuumDocument(before=before.used, after=after.used))


VERB = Verb(
    None,
    _talk,
    Action("store.vacuum", "v", "Vacuum", "Free the space of deleted threads", "Pages"),
    after="store.prune",
    about="store",
)
