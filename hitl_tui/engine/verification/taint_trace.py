"""Following taint through a log, as `verify` does (SPEC 8, 12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hitl_tui.engine.log.records import Checkpoint, UpdateRecord
from hitl_tui.engine.log.taint import Tainted, spread


class TaintFinding(NamedTuple):
    """Taint that does not follow from the records; `record` is None where the checkpoint says it."""

    record: UpdateRecord | None
    field: str
    expected: Any
    actual: Any


class TaintTrace:
    """The tainted channels of a thread, followed step by step; unknown after a gap until the next step."""

    def __init__(self) -> None:
        self._known: Tainted | None = {}

    def lose(self) -> None:
        """Something between is missing."""
        self._known = None

    def follow(
        self, point: Checkpoint, records: Sequence[UpdateRecord], intact: bool
    ) -> tuple[TaintFinding, ...]:
        """Take the taint one step further; what follows is checked against what the checkpoint says.

        Args:
            intact: no record of the step was changed, so their lineages are as they were written.
        """
        before = self._known
        plain = not point.tainted and not any(record.tainted or record.lineage for record in records)
        if plain and not before:
            self._known = {}
            return ()
        self._known = {one.channel: one for one in point.tainted}
        if before is None or not intact:
            return ()
        found: list[TaintFinding] = []
        tainted = set(before)
        for record in records:
            found += _of_record(record, point, before, tainted)
            if record.lineage:
                tainted.add(record.channel)
        after = spread(before, [(record.channel, record.lineage) for record in records])
        if after != self._known:
            names = (sorted(after), sorted(self._known))
            shown = names if names[0] != names[1] else (list(after.values()), list(point.tainted))
            found.append(TaintFinding(None, "tainted", *map(str, shown)))
        return tuple(found)


def _of_record(
    record: UpdateRecord, point: Checkpoint, before: Tainted, tainted: set[str]
) -> Iterator[TaintFinding]:
    lineage = record.lineage
    if lineage is not None and lineage.cleared:
        if record.tainted:
            yield TaintFinding(record, "tainted", False, True)
        if record.previous_hash != record.next_hash:
            yield TaintFinding(record, "next_hash", record.previous_hash, record.next_hash)
        return
    expected = lineage is not None or record.channel in tainted
    if record.tainted != expected:
        yield TaintFinding(record, "tainted", expected, record.tainted)
    named = set(lineage.channels) if lineage else set()
    read = {name.partition(".")[0] for name in point.read} & before.keys()
    from_node = record.source == "node" and not record.path
    wanted = read if from_node and point.read else named & before.keys()
    if named != wanted:
        yield TaintFinding(record, "lineage", ", ".join(sorted(wanted)), ", ".join(sorted(named)))
