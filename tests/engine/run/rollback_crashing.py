"""A trip of which one handler never returns in the process that runs this module."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from hitl_tui import GraphRunner, SQLiteCheckpointer
from hitl_tui.stores import Checkpointer
from tests.engine.run.booking import World, graph
from tests.engine.run.nested_trip import part


def calls(store_path: Path) -> Path:
    """Where handlers write down that they ran, out of reach of any transaction."""
    return store_path.with_suffix(".calls")


def runner(store: Checkpointer, store_path: Path, *, hang: bool = False, inside: bool = False) -> GraphRunner:
    """The trip of `booking`; or with the hotel in a team `inside`, between a bus and a taxi."""

    def cancel(state: Any, config: Any, args: Any) -> dict[str, Any]:
        with calls(store_path).open("a") as file:
            file.write(f"{args['ref']} {config.attempt} {config.idempotency_key}\n")
        if hang:
            print("in the handler", flush=True)
            threading.Event().wait()
        return {"booked": {"hotel": None}}

    if not inside:
        return (
            graph(World(), without="hotel")
            .add_compensation("cancel_hotel", cancel)
            .compile(checkpointer=store)
        )
    team = part(World(), "team", ["bus", "hotel", "taxi"], without="hotel")
    team.add_compensation("cancel_hotel", cancel)
    return part(World(), "trip", ["flight", "team", "car"], team).compile(checkpointer=store)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    trip = runner(SQLiteCheckpointer(path), path, hang=True, inside="inside" in sys.argv)
    trip.invoke(thread_id="t")
    trip.rollback("t")
