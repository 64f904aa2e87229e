"""A process that forks a thread where a question waited, and stands still after its first commit."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from hitl_tui import Gate, GateChoice, GraphRunner, open_store
from hitl_tui.stores import Checkpointer
from tests.support.flows import review_loop

GATE = Gate("check", title="verdict", choices=[GateChoice("approve", "ok", values={"verdict": "approved"})])


def runner(store: Checkpointer) -> GraphRunner:
    return review_loop(store, interrupt_after=[GATE])


def _stop(*_: Any) -> None:
    print("committed", flush=True)
    threading.Event().wait()


def main(url: str, changes: str) -> None:
    store = open_store(url)
    forking = runner(store)
    forking.invoke({}, thread_id="t")
    for name in ("create_thread", "commit"):
        write = getattr(store, name)
        setattr(store, name, lambda *given, write=write: _stop(write(*given)))
    forking.fork("t", 2, "f", changes=json.loads(changes))


if __name__ == "__main__":
    main(*sys.argv[1:])
