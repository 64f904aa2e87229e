"""What `compile` and `add_node` are given, checked by kind: a wrong one is told where it is given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hitl_tui.engine.graphs.retry import RetryPolicy
from hitl_tui.engine.graphs.termination import Termination
from hitl_tui.engine.log.records import Limits
from hitl_tui.errors import GraphInvalid, in_words


def check_compiled_with(checkpointer: Any, agents: Any, termination: Any, limits: Any) -> None:
    """Refuse options of `compile` that are of another kind; raises `GraphInvalid`."""
    if isinstance(checkpointer, (str, os.PathLike)):
        raise _wrong("checkpointer", checkpointer, f"write SQLiteCheckpointer({os.fspath(checkpointer)!r})")
    if agents is not None and not isinstance(agents, Mapping):
        raise _wrong("agents", agents, 'give a dict by name, as {"writer": Agent("writer", …)}')
    if termination is not None and not isinstance(termination, Termination):
        instead = "write custom_condition(function)" if callable(termination) else "as in max_turns(8)"
        raise _wrong("termination", termination, instead)
    if limits is not None and not isinstance(limits, Limits):
        raise _wrong("limits", limits, "as in Limits(max_tokens=50_000)")


def check_tried(what: str, retry: Any, timeout: Any) -> None:
    """Refuse a retry or a timeout of another kind, or a time that can't be; raises `GraphInvalid`.

    Args:
        what: whose they are, as "node 'write'".
    """
    if retry is not None and not isinstance(retry, RetryPolicy):
        tries = retry if isinstance(retry, int) and not isinstance(retry, bool) else 3
        raise _wrong(f"{what}: retry", retry, f"write RetryPolicy(max_attempts={tries})")
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise _wrong(f"{what}: timeout", timeout, "give seconds, as timeout=30")
    if not timeout > 0:  # nan, too
        raise GraphInvalid(f"{what}: timeout {timeout!r} must be above 0 seconds")


def _wrong(what: str, value: Any, instead: str) -> GraphInvalid:
    return GraphInvalid(f"{what} is {in_words(value)}", instead)
