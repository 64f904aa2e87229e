"""The private functions of LangGraph that this package replaces; nothing else here replaces any.

LangGraph has no public way to hand an answer to the interrupt that asks for it, to let several runs count
as one, to reuse threads, or to report failed attempts.
A replacement calls the original, and acts only in a run of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple


class PrivateFunction(NamedTuple):
    """A function of LangGraph that is not public.

    Attributes:
        module, owner: where it is defined; `owner` is the class, "" for a function of the module.
        name: what it is called there.
        purpose: what does not work without it.
    """

    module: str
    owner: str
    name: str
    purpose: str

    def owning_object(self) -> Any:
        """Return the module or class that has it, or None if this LangGraph has no such function."""
        try:
            found: Any = import_module(self.module)
            found = getattr(found, self.owner) if self.owner else found
        except (ImportError, AttributeError):
            return None
        return found if hasattr(found, self.name) else None


SCRATCHPAD: Final = PrivateFunction(
    "langgraph.pregel._algo", "", "_scratchpad", "answers go to an interrupt by their order, whatever it asks"
)
FIRST_INPUT: Final = PrivateFunction(
    "langgraph.pregel._loop",
    "PregelLoop",
    "_first",
    "each superstep counts as a run of its own for recursion_limit and subgraphs with their own memory",
)
EXECUTOR: Final = PrivateFunction(
    "langgraph.pregel._executor", "", "get_executor_for_config", "each superstep starts threads of its own"
)
RETRY_ON: Final = PrivateFunction(
    "langgraph.pregel._retry", "", "_should_retry_on", "attempts that fail before a retry are not shown"
)
ALL: Final = (SCRATCHPAD, FIRST_INPUT, EXECUTOR, RETRY_ON)
_MARK: Final = "replaces_private_function_of_langgraph"


def replace_function(function: PrivateFunction, wrap: Callable[[Any], Any]) -> bool:
    """Replace a private function of LangGraph, once; return whether it is replaced.

    Args:
        wrap: gets the original and returns what is called in its place.
    """
    owner = function.owning_object()
    if owner is None:
        return False
    original = getattr(owner, function.name)
    if not getattr(original, _MARK, False):
        replacement = wrap(original)
        replacement.__wrapped__ = original
        setattr(replacement, _MARK, True)
        setattr(owner, function.name, replacement)
    return True
