"""A trip whose second handler never returns in the process that runs this module."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from hitl_tui import GraphRunner, SQLiteCheckpointer
from hitl_tui.stores import Checkpointer
from tests.engine_rollback.booking import World, graph


def calls(store_path: Path) -> Path:
    """Where handlers write down that they ran, out of reach of any transaction."""
    return store_path.with_suffix(".calls")


def runner(store: Checkpointer, store_path: Path, *, hang: bool = False) -> GraphRunner:
    made = graph(World(), without="hotel")

    def cancel(state: Any, config: Any, args: Any) -> dict[str, Any]:
        with calls(store_path).open("a") as file:
            file.write(f"{args['ref']} {config.attempt} {config.idempotency_key}\n")
        if hang:
            print("in the handler", flush=True)
            threading.Event().wait()
        return {"booked": {"hotel": None}}

    return made.add_compensation("cancel_hotel", cancel).compile(checkpointer=store)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    trip = runner(SQLiteCheckpointer(path), path, hang=True)
    trip.invoke(thread_id="t")
    trip.rollback("t")
