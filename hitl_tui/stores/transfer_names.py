"""The names of an imported thread and of the threads below it, in the store that takes them in.

What a name was hashed into keeps it: records and decisions are read under the names they were written with
(see `lineage.Past`), and what a decision quotes stays as it was said.  What leads from one thread to
another is no part of a hash, and is written anew: the thread of a step's subgraph, the thread a cursor
waits for, the owner of a child.
"""

from __future__ import annotations

from msgspec.structs import replace

from hitl_tui.engine.log.outcomes import BranchOutcome, BranchState
from hitl_tui.engine.log.records import Checkpoint, Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.threads import Owner, ThreadInfo, child_id
from hitl_tui.engine.subgraphs.children import WITHIN
from hitl_tui.stores.transfer_format import Header, Place


class Names:
    """The new names of all threads of an export.

    Each thread below another is named after it, as the engine does: `parent/node#n`.  A fork brings the
    threads of the steps it shares under its own name; where two would be called the same, one is counted on.

    Args:
        header: of the first thread, which is to be called `name`.
    """

    def __init__(self, header: Header, name: str) -> None:
        self._new = {header.info.thread_id: name}
        self._taken = {name}
        self._of = {place.thread_id: place.of for place in header.inside}
        own = [place for place in header.inside if _is_own(place)]
        for place in (*own, *header.inside):
            if place.of in self._new and place.thread_id not in self._new:
                self._new[place.thread_id] = self._free(_after(self._new[place.of], place))

    def all(self) -> list[str]:
        """Every new name, the first thread's first."""
        return list(self._new.values())

    def of(self, thread_id: str) -> str:
        """The new name of a thread of the export."""
        return self._new[thread_id]

    def info(self, header: Header) -> ThreadInfo:
        """A thread's fixed facts under its new name; it leaves the parent it was forked from behind."""
        old = header.info
        name, above = self._new[old.thread_id], self._of.get(old.thread_id)
        owner = old.owner
        if above is not None and owner is not None:
            owner = Owner(self._new[above], owner.node)
        elif name != old.thread_id:
            owner = None  # of another name, it is not the thread its owner looks for
        return replace(sourceless(old), thread_id=name, parent=None, fork_seq=0, owner=owner)

    def step(self, point: Checkpoint, header: Header) -> Checkpoint:
        """A step that leads to the threads below it under their new names."""
        if not any(outcome.thread for outcome in point.branches):
            return point
        return replace(point, branches=tuple(self._outcome(one, header) for one in point.branches))

    def cursor(self, cursor: Cursor, header: Header) -> Cursor:
        """Where a thread stands, waiting for the threads below it under their new names."""
        return replace(
            cursor,
            thread_id=self._new[header.info.thread_id],
            pending=tuple(self._request(one, header) for one in cursor.pending),
            branches=tuple(self._branch(one, header) for one in cursor.branches),
        )

    def _outcome(self, one: BranchOutcome, header: Header) -> BranchOutcome:
        return replace(one, thread=self._name(one.thread, header))

    def _request(self, one: Request, header: Header) -> Request:
        return replace(one, thread=self._name(one.thread, header))

    def _branch(self, one: BranchState, header: Header) -> BranchState:
        if one.child is None:
            return one
        return replace(one, child=replace(one.child, thread_id=self._name(one.child.thread_id, header)))

    def _name(self, old: str, header: Header) -> str:
        """The new name of a thread below another; of one that is not in the file, too."""
        if not old or old in self._new:
            return self._new.get(old, old)
        for above in (header.info.thread_id, *(past.thread_id for past in header.past)):
            if old.startswith(f"{above}/"):
                return child_id(self._new[header.info.thread_id], old.removeprefix(f"{above}/"))
        return old

    def _free(self, name: str) -> str:
        above, _, own = name.rpartition("/")
        n = 1
        while name in self._taken:
            n += 1
            # Its own part stays: the step that it made has it in its hash.
            name = child_id(f"{above}/{n}", own)
        self._taken.add(name)
        return name


def sourceless(info: ThreadInfo) -> ThreadInfo:
    """A thread's fixed facts without what would build its graph: somebody else's word for what to run here.

    The way to the graph of a subgraph's run, inside the one of the thread it ran for, is kept.
    """
    way = info.source.get(WITHIN)
    named = isinstance(way, list) and all(isinstance(node, str) for node in way)
    return replace(info, source={WITHIN: way} if named else {})


def _is_own(place: Place) -> bool:
    """Whether a thread has the name of the one it is below: else a fork shares it."""
    return place.thread_id.startswith(f"{place.of}/")


def _after(above: str, place: Place) -> str:
    """The name of a thread below one that is now called `above`."""
    own = place.thread_id.removeprefix(f"{place.of}/")
    return child_id(above, own if _is_own(place) else own.rpartition("/")[2])
