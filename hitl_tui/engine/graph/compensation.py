"""Compensation: how side effects of steps are undone, and which are still to be undone.

A node that books, sends or charges returns `NodeResult(..., compensation=(handler, args))`. The entry is
kept with its step; whether it was undone is in the ledger.

Specified in docs/spec/rollback.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Self

import msgspec

from hitl_tui.declared import declares
from hitl_tui.engine.graph.options import check_retry
from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.log.outcomes import Compensation
from hitl_tui.engine.log.records import ROLLBACK
from hitl_tui.engine.log.units import Maybe, about
from hitl_tui.engine.state.values import is_name, normalise
from hitl_tui.errors import GraphInvalid, HitlError, in_words
from hitl_tui.suggest import did_you_mean

UNDONE, UNDO_FAILED = "undone", "undo_failed"


class Handler(msgspec.Struct, frozen=True):
    """A function that undoes what a node did: `(state, config, args) -> mapping | NodeResult | None`."""

    name: str
    function: Callable[..., Any]
    retry: RetryPolicy
    timeout: float | None


class RollbackEntry(msgspec.Struct, frozen=True):
    """One side effect to undo.

    Args:
        step, index: the step that had it, and the entry's place among that step's entries.
        invocation: the number of that step's invocation.
        node: the node that had it; a branch with its path, as in `book[2]`.
        handler, args: the registered name of the function that undoes it, and its arguments.
        state: "open", "done", "failed" (it will be tried again), or "inherited": the thread is a fork, and
            only its parent can undo it.
        error: why it failed the last time.
        attempts: how often it failed.
        thread: for a step in a subgraph, the subgraph's thread; "" for the thread's own steps.
    """

    step: Annotated[int, about("The step with the side effect.")]
    index: Annotated[int, about("The entry's index in that step.")]
    invocation: Annotated[int, about("The number of the invocation.")]
    node: Annotated[str, about("The node, with the path of its branch.")]
    handler: Annotated[str, about("The handler's name.")]
    args: Annotated[Any, about("The handler's arguments.")]
    state: Annotated[
        Literal["open", "done", "failed", "inherited"],
        about("Whether it was undone; `inherited` means that only the parent of the fork can."),
    ]
    error: Annotated[Maybe, about("Why the handler failed.")] = ""
    attempts: Annotated[int, about("The number of failed attempts.")] = 0
    thread: Annotated[Maybe, about("The subgraph's thread that has the entry.")] = ""

    @property
    def runs_as(self) -> str:
        """The name under which its handler runs."""
        return f"<{ROLLBACK}>/{self.node}"

    @property
    def remains(self) -> bool:
        """Whether a rollback of the thread would run it."""
        return self.state in ("open", "failed")


class Compensating:
    """The part of a graph under construction that registers handlers."""

    _compensations: dict[str, Handler]

    @declares()
    def add_compensation(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Register a handler that undoes side effects.

        Nodes name it in `NodeResult(compensation=(name, args))`.

        Args:
            fn: a sync or async function `(state, config, args) -> mapping | NodeResult | None`; what it
                returns is reduced into the state as a step of its own.
            retry, timeout: as for nodes.

        Raises:
            GraphInvalid: a bad or duplicate name, or no such function.
        """
        self._compensations[name] = make_handler(name, fn, self._compensations, retry, timeout)
        return self


def make_handler(
    name: str,
    function: Callable[..., Any],
    known: Mapping[str, Handler],
    retry: RetryPolicy | None,
    timeout: float | None,
) -> Handler:
    """Make a handler; raises `GraphInvalid` for a bad or taken name, or an unsuitable function."""
    if not is_name(name):
        raise GraphInvalid(f"compensation name {name!r} is not allowed", "give it a name of letters")
    if name in known:
        raise GraphInvalid(f"compensation {name!r} was added twice", "give each handler its own name")
    if not callable(function):
        raise GraphInvalid(
            f"compensation {name!r} is {in_words(function)}", "it is a function (state, config, args)"
        )
    if not _takes_three_arguments(function):
        raise GraphInvalid(f"compensation {name!r} must take (state, config, args)", "give it these three")
    check_retry(f"compensation {name!r}", retry, timeout)
    return Handler(name, function, retry or RetryPolicy(max_attempts=1), timeout)


def _takes_three_arguments(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def check_compensation(given: Any, handlers: Mapping[str, Handler], path: str = "") -> Compensation:
    """Return the `compensation` that a node returned, in the form in which it is stored.

    Raises:
        HitlError: it is not a pair of a registered handler's name and JSON arguments.
    """
    pair = list(given) if isinstance(given, (tuple, list)) else []
    if len(pair) != 2 or not isinstance(pair[0], str):
        raise HitlError(
            f"its compensation is {given!r:.200}", "return compensation=(handler, args): a name and any JSON"
        )
    if pair[0] not in handlers:
        raise unknown_handler(pair[0], handlers)
    return Compensation(pair[0], normalise(pair[1], what="the arguments of its compensation"), path)


def unknown_handler(name: str, handlers: Iterable[str]) -> HitlError:
    """Return the error for a handler's name that the graph does not have."""
    known = list(handlers)
    hint = did_you_mean(name, known) or f"handlers: {', '.join(known) or 'none'}"
    return HitlError(
        f"the graph has no compensation handler {name!r}", f"{hint}; add_compensation(name, fn) registers one"
    )
