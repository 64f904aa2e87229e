"""Names that LangGraph uses, with what to write here: hints for people who know it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

from hitl_tui.suggest import nearest

BUILDING: Final[Mapping[str, str]] = {
    "add_conditional_edges": "write add_conditional_edge(source, route_fn, route_map)",
    "add_sequence": "write add_node and add_edge for each node",
    "set_conditional_entry_point": "let a first node decide, by add_conditional_edge",
    "set_entry_point": "write add_edge(START, node)",
    "set_finish_point": "write add_edge(node, END)",
}
"""Methods of a graph under construction."""
RUNNING: Final[Mapping[str, str]] = {
    "abatch": "call ainvoke for each input",
    "aget_state": "write get_state(thread_id)",
    "aupdate_state": "write update_state(thread_id, values)",
    "batch": "call invoke for each input",
    "get_graph": "write to_mermaid() or to_dot()",
    "get_state_history": "write history(thread_id)",
    "with_config": "give thread_id and context to each call",
}
"""Methods of a compiled graph."""
ARGUMENTS: Final[Mapping[str, str]] = {
    "config": 'write thread_id="…" and context={…}',
    "configurable": 'write thread_id="…" and context={…}',
    "durability": "every step is stored before the next one runs",
    "interrupt_after": "give it to compile",
    "interrupt_before": "give it to compile",
    "recursion_limit": "write max_iterations=…",
    "stream_mode": "stream yields a StepResult for each step; on_event=… gets every event",
}
"""Arguments of its methods."""


def refuse_attribute(owner: object, what: str, name: str, elsewhere: Mapping[str, str]) -> NoReturn:
    """Raise `AttributeError` for a missing attribute, with a hint if there is one.

    Args:
        what: the object in words, as "a StateGraph".
    """
    private = name.startswith("_")
    known: Iterable[str] = (each for each in dir(type(owner)) if not each.startswith("_"))
    hint = "" if private else elsewhere.get(name) or nearest(name, known)
    raise AttributeError(
        f"{what} has no attribute {name!r}{hint and f'; {hint}'}",
        name=name,
        obj=owner,
    )


def thread_in_config(config: Any) -> str:
    """Return the thread id in a LangGraph config, "" if it has none."""
    inner = config.get("configurable") if isinstance(config, Mapping) else None
    found = inner.get("thread_id") if isinstance(inner, Mapping) else None
    return found if isinstance(found, str) else ""
