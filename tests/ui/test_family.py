"""The family of a thread on screen: the page of the tree, and what a fork is compared with."""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from tests.support import tape as tapes
from tests.support.tape import FORK, THREAD
from tests.ui.harness import desk


async def test_the_page_of_the_family_is_a_tree_and_goes_to_the_thread_that_is_chosen() -> None:
    async with desk(tapes.advisor_tape()) as it:
        await it.press("H")
        await it.shows("of the family", FORK, "parts behind step 2")
        await it.press("escape")
        await it.gone("of the family")


async def test_a_fork_is_compared_with_its_parents_end_and_another_is_chosen_from_a_list() -> None:
    tape = tapes.advisor_tape()
    end = replace(tape.end, parent=THREAD, fork_step=2)
    async with desk(dataclasses.replace(tape, end=end)) as it:
        await it.press("=")
        await it.shows(f"{THREAD} @ 4")
        await it.press("slash")
        await it.shows("of the family", "Compare")
