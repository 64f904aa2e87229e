"""Searching the decisions of a store with 10,000 of them, beside one with 100.

    python -m tests.benchmarks.decisions [--quick] [STORE]

The first page without a filter, the first page with a word in the text of a decision of a week ago, and a
search through all of them for a word that is nowhere.  With STORE it only fills that one, to look at.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from typing import Any

from msgspec.structs import replace

from hitl_tui import Gate, GateChoice, MemoryCheckpointer, open_store
from hitl_tui.drivers.decided import DecisionFilter, DecisionSearch, Wanted
from hitl_tui.engine.commands import Answer, Start
from hitl_tui.engine.log.records import Commit, Cursor
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.thread.hashes import facts_hash
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.lineage import ImportedThread
from tests.benchmarks.terminals import figures
from tests.support.flows import Clock, Desk, review_loop

FEW, MANY, QUICK = 100, 10_000, 2_000
EACH = 4
"""Decisions of a thread: three times sent back, then approved."""
WEEK = 280
"""How many were made since the one that is looked for."""
PAGE = 50
ROUNDS = 5
APART = 9 * 60 * 1_000_000
TEXT = " ".join(f"word{number}" for number in range(400))
_CHOICES = [
    GateChoice("approve", "take it", "a", values={"verdict": "approved"}),
    GateChoice("revise", "write it again", "r", text="required", values=lambda state, text: {}),
]


class _Recorder(MemoryCheckpointer):
    """Keeps the commits of one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[Commit] = []

    def create_thread(self, info: ThreadInfo, cursor: Cursor, first: Commit | None = None) -> None:
        super().create_thread(info, cursor, first)
        self.commits += [first] if first else []

    def commit(self, thread_id: str, commit: Commit) -> Any:
        self.commits.append(commit)
        return super().commit(thread_id, commit)


def _pattern() -> tuple[ThreadInfo, list[Commit]]:
    """A thread of four decisions."""
    store = _Recorder()
    gate = Gate("check", title="Is it good?", subject="draft", choices=_CHOICES)

    def write(state: Any, config: Any) -> dict[str, Any]:
        return {"draft": f"TOPIC {TEXT} version{state['n']}", "n": state["n"] + 1}

    desk = Desk(review_loop(store, {"write": write}, interrupt_after=[gate]), "pattern", Clock())
    desk.do(Start({}, "ann"))
    desk.run()
    for answer in [{"choice": "revise", "text": "too long"}] * (EACH - 1) + ["approve"]:
        (request,) = desk.session.cursor.pending
        desk.do(Answer(request.id, answer, request.step, "ann", "shorter, please"))
        desk.run()
    info = store.info("pattern")
    assert info is not None
    return info, store.commits


def _copy(pattern: tuple[ThreadInfo, list[Commit]], number: int, newest: int) -> ImportedThread:
    """A copy of it whose last decision was the `number`-th from the newest thread's."""
    info, commits = pattern
    name, topic = f"thread-{number:05}", f"topic{number}"
    back = newest - commits[-1].cursor.updated_at - number * EACH * APART
    copied = [
        replace(
            commit,
            cursor=replace(commit.cursor, thread_id=name, updated_at=commit.cursor.updated_at + back),
            records=tuple(
                replace(record, thread_id=name, update=_about(record.update, topic))
                for record in commit.records
            ),
            checkpoint=commit.checkpoint
            and replace(commit.checkpoint, thread_id=name, at=commit.checkpoint.at + back),
            ledger=tuple(replace(entry, thread_id=name, at=entry.at + back) for entry in commit.ledger),
            takes=None,
        )
        for commit in commits
    ]
    info = replace(info, thread_id=name, created_at=info.created_at + back)
    return ImportedThread(replace(info, facts_hash=facts_hash(info)), (), copied)


def _about(update: Any, topic: str) -> Any:
    return update.replace("TOPIC", topic) if isinstance(update, str) else update


def fill(store: Checkpointer, decisions: int) -> None:
    """Make so many decisions, 36 minutes between two threads."""
    pattern = _pattern()
    now = store.now()
    store.write_threads(_copy(pattern, number, now) for number in range(decisions // EACH))


def seconds(store: Checkpointer, word: str = "") -> float:
    """How long the first page takes."""
    began = time.perf_counter()
    words = (Wanted(word),) if word else ()
    found = list(DecisionSearch(store, DecisionFilter(words)).all(PAGE if not word else 1))
    taken = time.perf_counter() - began
    assert bool(found) is (word != "nowhere"), word
    return taken


def main() -> None:
    """Print the times, their ratios and one line of JSON."""
    quick = "--quick" in sys.argv
    many = QUICK if quick else MANY
    if places := [word for word in sys.argv[1:] if not word.startswith("-")]:
        fill(open_store(places[0]), many)
        return
    result: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("sqlite", "files", "memory"):
            urls = {"sqlite": f"{folder}/{{}}.db", "files": f"files:{folder}/{{}}", "memory": "memory:"}
            stores = {count: open_store(urls[kind].format(count), "none") for count in (FEW, many)}
            for count, store in stores.items():
                fill(store, count)
            for what, word in (("page", ""), ("week", "topic{}"), ("nowhere", "nowhere")):
                taken = {
                    count: statistics.median(
                        seconds(store, word.format(min(WEEK // EACH, count // EACH - 1)))
                        for _ in range(ROUNDS)
                    )
                    for count, store in stores.items()
                }
                few, lots = taken[FEW], taken[many]
                result |= {f"{kind} {what}": lots / few, f"{kind} {what} ms": lots * 1e3}
                print(f"{kind:6} {what:8} {FEW}: {few * 1e3:6.1f} ms, {many:,}: {lots * 1e3:7.1f} ms")
    figures("decisions", result)


if __name__ == "__main__":
    main()
