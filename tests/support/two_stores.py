"""Files in which threads wait for a person, as sources of an inbox."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from hitl_tui.cli.opening import trust_in
from hitl_tui.loading.sources import open_graph
from hitl_tui.stores import open_store

GRAPH = str(Path(__file__).with_name("reviewed_flow.py"))


def asking(file: Path, *threads: str) -> None:
    """Write a store in which each of these threads waits for an approval."""
    store = open_store(str(file))
    runner = open_graph(GRAPH, store)
    trust_in(store).record(runner.source, "named")
    for thread in threads:
        runner.invoke({}, thread_id=thread)
    store.close()


def newest_decision(file: Path, thread: str) -> tuple[str | None, object] | None:
    """Who answered last in a thread, and how; None if nobody did."""
    with closing(open_store(str(file))) as store:
        answers = [entry for entry in store.ledger(thread) if entry.kind == "answer"]
    return (answers[-1].actor, answers[-1].data["answer"]) if answers else None
