"""A graph whose second node never returns in the process that runs this module."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from hitl_tui import GraphRunner, open_store
from hitl_tui.stores import Checkpointer
from tests.support.flows import line


def calls(store_path: Path) -> Path:
    """Where nodes write down that they ran, out of reach of any transaction."""
    return store_path.with_suffix(".calls")


def runner(store: Checkpointer, store_path: Path, *, hang: bool = False) -> GraphRunner:
    def note(config: Any, node: str) -> None:
        call = {"node": node, "attempt": config.attempt, "key": config.idempotency_key, "pid": os.getpid()}
        call["context"] = config.context
        with calls(store_path).open("a") as file:
            file.write(json.dumps(call) + "\n")

    def first(state: Any, config: Any) -> dict[str, Any]:
        note(config, "a")
        return {"log": "one"}

    def second(state: Any, config: Any) -> dict[str, Any]:
        note(config, "b")
        if hang:
            print("in the node", flush=True)
            threading.Event().wait()
        return {"log": "two"}

    return line(store, first, second)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    runner(open_store(sys.argv[1]), path, hang=True).invoke({}, thread_id="t", context={"tenant": "acme"})
