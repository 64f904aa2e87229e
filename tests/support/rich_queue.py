"""A store in which twelve threads wait for a person, each in another way.

    python -m tests.support.rich_queue STORE

They are trusted by whoever runs it, as graphs are that one has named.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from hitl_tui.config import trust_file
from hitl_tui.engine.commands import Answer, Start
from hitl_tui.loading.sources import open_graph
from hitl_tui.loading.trust import Trust
from hitl_tui.stores import Checkpointer, open_store
from tests.support.flows import Clock, Desk

GRAPHS = Path(__file__).with_name("queue_graphs.py")
MINUTE = 60


class Asking(NamedTuple):
    """A thread: the function that builds its graph, and how many minutes it has waited.

    `due` are the minutes until its deadline, 0 for none; `verdict` is what its advisor says.
    """

    thread: str
    graph: str
    minutes: float
    due: float = 0
    verdict: str = ""


TWELVE = (
    Asking("press-q3", "release", 120, due=18),
    Asking("recall-k2", "recall", 41, due=240),
    Asking("blog-indexes", "advisor", 12, verdict="revise"),
    Asking("blog-closures", "advisor", 3),
    Asking("blog-joins", "advisor", 3.5),
    Asking("blog-windows", "advisor", 2),
    Asking("memo-42", "review", 25),
    Asking("mail-bot-1", "assistant", 31),
    Asking("mail-bot-2", "assistant", 30),
    Asking("order-7", "order", 60),
    Asking("plan-trip", "planner", 5),
    Asking("page-news", "webpage", 121),
)
MOST_URGENT = "press-q3"
APPROVABLE = frozenset(
    {
        "recall-k2", "blog-indexes", "blog-closures", "blog-joins", "blog-windows", "memo-42", "mail-bot-1",
        "mail-bot-2", "plan-trip",
    }
)  # fmt: skip
"""Those that one sweep can approve: not of high risk, and no form."""


def fill(store: Checkpointer, wanted: tuple[Asking, ...] = TWELVE, *, trusted: bool = True) -> None:
    """Make the threads, each as long ago as it has waited.

    Args:
        trusted: the user may run their graphs from this store in other processes, too.
    """
    now = time.time_ns() // 1000
    trust = Trust(trust_file(), str(getattr(store, "path", "")))
    for asking in wanted:
        options: dict[str, Any] = {"verdict": asking.verdict} if asking.verdict else {}
        if asking.due:
            options["due"] = (asking.due + asking.minutes) * MINUTE
        runner = open_graph(f"{GRAPHS}:{asking.graph}", store, options)
        if trusted:
            trust.record(runner.source, "named")
        desk = Desk(runner, asking.thread, Clock(now - int(asking.minutes * MINUTE * 1e6)))
        desk.do(Start({}, "ann"))
        desk.run()
        (request,) = desk.session.cursor.pending
        if asking.graph == "advisor":
            words = {"choice": "revise", "text": "concrete first"}
            desk.do(Answer(request.id, words, request.step, "tester"))
            desk.run()
        elif asking.graph == "recall":
            desk.do(Answer(request.id, "approve", request.step, "ben"))


if __name__ == "__main__":
    with_threads = open_store(sys.argv[1])
    fill(with_threads)
    with_threads.close()
