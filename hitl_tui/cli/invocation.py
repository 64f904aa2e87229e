"""Values of this process's command line, for code that depends on them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Final

import click

_OWN_STORE: Final = "hitl_tui.own_store"
_STORES: Final = "hitl_tui.stores"
_IN_MEMORY: Final = "memory:"


def same_store(*, runs: bool = False) -> str:
    """Return the option by which a suggested command finds this store: ` --store URL`, "" if none was given.

    A password is left out, because suggested commands may be kept in a log.

    Args:
        runs: whether the command needs the graph. A file of LangGraph's checkpoints does not have it, so its
            place is shown.
    """
    store = _own_store()
    if not store:
        return ""
    from hitl_tui.stores.opening import without_password

    graph = named_graph()
    if graph and store.startswith("langgraph+sqlite:") and not store.endswith(f"#{graph}"):
        store = f"{store}#{graph}"
    elif runs and store.startswith("langgraph+sqlite:") and "#" not in store:
        store = f"{store}#GRAPH"
    return f" --store {shlex.quote(without_password(store))}"


def keep_stores(ctx: click.Context, _param: click.Parameter, given: Sequence[str]) -> str | None:
    """Keep all stores that were named for `given_stores`; return the first one, None for none."""
    ctx.meta[_STORES] = tuple(dict.fromkeys(given))
    return given[0] if given else None


def given_stores() -> tuple[str, ...]:
    """Return the stores that the command line names, of a command that takes several."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_STORES, ()) if context else ()


def store_ends_with_process() -> bool:
    """Whether the command works on a store in memory, where no other command finds its threads."""
    return _own_store() == _IN_MEMORY


def _own_store() -> str:
    context = click.get_current_context(silent=True)
    return str((context.meta.get(_OWN_STORE) or context.params.get("store") or "") if context else "")


def note_store() -> Callable[[str], None]:
    """Keep the store that the command works on for code in any thread: see `same_store`."""
    meta = click.get_current_context().meta
    return lambda url: meta.__setitem__(_OWN_STORE, url)


def named_graph() -> str | None:
    """Return the GRAPH that was named for a thread, None if its record says which it is."""
    context = click.get_current_context(silent=True)
    return context.meta.get("hitl_tui.own_graph") if context else None


def streaming() -> bool | None:
    """Return whether models of LangGraph graphs are to stream; None leaves it to the graph."""
    context = click.get_current_context(silent=True)
    return context.meta.get("hitl_tui.stream") if context else None


def trusting() -> bool:
    """Whether the command line says to trust the graph that a thread's record names."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get("hitl_tui.trust"))
