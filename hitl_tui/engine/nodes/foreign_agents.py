"""Meters a user's own agents: their model calls are counted, limited and recorded.

An agent is anything with `chat(prompt)` or `achat(prompt)`. The methods of our own agents meter themselves,
and are marked so. For others it is done here, with tokens estimated from prompts and replies.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from hashlib import sha256
from typing import Any, Final

from hitl_tui.engine.log.outcomes import ESTIMATED, ModelUse, rough_tokens
from hitl_tui.engine.nodes.activity import (
    MISSING,
    Activity,
    OwnAgentsCalled,
    current_activity,
    own_agents_called,
)
from hitl_tui.engine.thread.agent_settings import Agents

METERED: Final = ("chat", "achat", "chat_structured", "achat_structured", "stream")
"""Methods that call a model."""
_COPIES: Final = ("fresh", "aside")
"""Methods that return another agent of the same kind."""


def is_foreign(agent: Any) -> bool:
    """Whether an agent has a method that calls a model and does not meter itself."""
    return any(_needs_meter(getattr(agent, name, None)) for name in ("chat", "achat"))


def _needs_meter(method: Any) -> bool:
    return callable(method) and getattr(method, "meters_itself", None) is not True


def metered_agents(agents: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return agents by name, with foreign ones metered."""
    if not any(map(is_foreign, agents.values())):
        return agents
    return Agents((name, _metered_agent(agent, name)) for name, agent in agents.items())


def metered(method: Callable[..., Any], agent: Any, name: str) -> Callable[..., Any]:
    """Wrap a method of an agent that calls a model, so that its calls are metered, limited and recorded.

    Args:
        name: the agent's name if it has none of its own.
    """

    @wraps(method)
    def ask(*args: Any, **options: Any) -> Any:
        activity = current_activity.get()
        if activity is None:
            return method(*args, **options)
        call = _Call(activity, agent, name, method.__name__, (*args, *options.items()))
        make = lambda: method(*args, **options)  # noqa: E731
        return call.call_async(make) if inspect.iscoroutinefunction(method) else call.call_sync(make)

    ask.meters_itself = True  # type: ignore[attr-defined]
    return ask


def metered_method(function: Any) -> Callable[..., Any]:
    """Do what `metered` does, for a method that a class defines."""

    @wraps(function)
    def ask(self: Any, *args: Any, **options: Any) -> Any:
        return metered(function.__get__(self, type(self)), self, "agent")(*args, **options)

    ask.meters_itself = True  # type: ignore[attr-defined]
    return ask


class _Call:
    """One call of a method that calls a model.

    Args:
        asked: its arguments.
    """

    def __init__(
        self, activity: Activity, agent: Any, name: str, method: str, asked: tuple[Any, ...]
    ) -> None:
        self._activity = activity
        own_name, model = getattr(agent, "name", None), getattr(agent, "model", None)
        self._agent = own_name if isinstance(own_name, str) and own_name else name
        self._model = model if isinstance(model, str) and model else type(agent).__qualname__
        self._prompt = "".join(part for part in asked if isinstance(part, str))
        text = "\0".join((self._agent, type(agent).__qualname__, method, repr(asked)))
        # The text of anything else may be different in the next attempt.
        self._is_known = all(type(part) in _PLAIN for part in asked)
        digest = sha256(text.encode(errors="replace")).hexdigest()[:32]
        self._within = OwnAgentsCalled()
        self._key = f"reply:{activity.slot(digest)}" if self._is_known else ""

    def call_sync(self, make: Callable[[], Any]) -> Any:
        """Make a call that blocks its thread, and return the reply."""
        if (kept := self._kept()) is not MISSING:
            return _same_again(kept)
        self._activity.stop_at_limit_sync()
        started = time.monotonic_ns()
        with self._activity.in_flight.call_sync():
            with self._inside():
                reply = make()
            if inspect.isgenerator(reply):
                return self._pieces(reply)
            if inspect.isasyncgen(reply):
                return self._later_pieces(reply)
            if not isinstance(reply, str) and inspect.isawaitable(reply):
                return self.call_async(lambda: reply)
            if not self._within.yes:
                use = self._count(reply, started)
                if self._is_recorded(reply):
                    self._activity.record_sync(self._key, reply, uses=[use])
        return reply

    async def call_async(self, make: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call that is awaited, and return the reply."""
        if (kept := self._kept()) is not MISSING:
            return kept
        await self._activity.stop_at_limit()
        started = time.monotonic_ns()
        async with self._activity.in_flight.call():
            with self._inside():
                reply = await make()
            if not self._within.yes:
                use = self._count(reply, started)
                if self._is_recorded(reply):
                    await self._activity.record(self._key, reply, uses=[use])
        return reply

    def _kept(self) -> Any:
        return self._activity.memory.recall(self._key) if self._is_known else MISSING

    def _is_recorded(self, reply: Any) -> bool:
        return self._is_known and type(reply) is str

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Note whether our own agents are called within the call: they count their own use."""
        token = own_agents_called.set(self._within)
        try:
            yield
        finally:
            own_agents_called.reset(token)

    def _count(self, reply: Any, started: int) -> ModelUse:
        written = reply if isinstance(reply, str) else repr(reply)
        tokens = rough_tokens(self._prompt), rough_tokens(written)
        use = ModelUse(self._agent, ESTIMATED, self._model, *tokens, None)
        self._activity.model_called(use, (time.monotonic_ns() - started) // 1000)
        return use

    def _pieces(self, pieces: Iterator[Any]) -> Iterator[Any]:
        started, said = time.monotonic_ns(), list[Any]()
        is_whole = False
        try:
            while True:
                with self._inside():
                    piece = next(pieces, MISSING)
                if piece is MISSING:
                    break
                said.append(piece)
                yield piece
            is_whole = True
        finally:
            if (use := self._count_stream(said, started)) and is_whole and self._are_recorded(said):
                self._activity.record_sync(self._key, {"pieces": said, "awaited": False}, uses=[use])

    async def _later_pieces(self, pieces: AsyncIterator[Any]) -> AsyncIterator[Any]:
        started, said = time.monotonic_ns(), list[Any]()
        is_whole = False
        try:
            while True:
                with self._inside():
                    piece = await anext(pieces, MISSING)
                if piece is MISSING:
                    break
                said.append(piece)
                yield piece
            is_whole = True
        finally:
            if (use := self._count_stream(said, started)) and is_whole and self._are_recorded(said):
                await self._activity.record(self._key, {"pieces": said, "awaited": True}, uses=[use])

    def _count_stream(self, said: Sequence[Any], started: int) -> ModelUse | None:
        """Count what a stream used; None if agents of ours were asked inside, which count it themselves."""
        return None if self._within.yes else self._count("".join(map(str, said)), started)

    def _are_recorded(self, said: Sequence[Any]) -> bool:
        return self._is_known and all(type(piece) is str for piece in said)


def _same_again(kept: Any) -> Any:
    """Return the result of a completed call as the method returns it: a text, or an iterator over pieces."""
    if not isinstance(kept, dict):
        return kept
    return _later(kept["pieces"]) if kept["awaited"] else iter(kept["pieces"])


async def _later(pieces: Sequence[str]) -> AsyncIterator[str]:
    for piece in pieces:
        yield piece


_PLAIN: Final = (str, int, float, bool, type(None))


class _MeteredAgent:
    """A proxy of an agent that meters its model calls; everything else is the agent's own."""

    def __init__(self, agent: Any, name: str) -> None:
        object.__setattr__(self, "_stands_for", (agent, name))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(object.__getattribute__(self, "_stands_for")[0])

    def __getattribute__(self, attribute: str) -> Any:
        if attribute == "__class__":
            return object.__getattribute__(self, attribute)
        agent, name = object.__getattribute__(self, "_stands_for")
        value = getattr(agent, attribute)
        if attribute in METERED and _needs_meter(value):
            return metered(value, agent, name)
        if attribute in _COPIES and callable(value):
            return lambda *args, **options: _metered_agent(value(*args, **options), name)
        return value

    def __setattr__(self, attribute: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_stands_for")[0], attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(object.__getattribute__(self, "_stands_for")[0], attribute)


def _metered_agent(agent: Any, name: str) -> Any:
    return _metered_type(type(agent))(agent, name) if is_foreign(agent) else agent  # type: ignore[arg-type]


@cache
def _metered_type(kind: type) -> type[_MeteredAgent]:
    """Return the proxy class for a type of agents.

    It has the type's operators, because Python looks them up on the class.
    """
    operators = {
        name: _passed_on(name)
        for name in dir(kind)
        if name.startswith("__") and name.endswith("__") and name not in _KEPT
        if getattr(kind, name) is not getattr(object, name, None) and callable(getattr(kind, name))
    }
    return type(kind.__name__, (_MeteredAgent,), operators)


_KEPT: Final = frozenset(
    {"__class__", "__class_getitem__", "__delattr__", "__getattr__", "__getattribute__", "__setattr__"}
    | {"__del__", "__init__", "__init_subclass__", "__new__", "__subclasshook__"}
)
"""Special methods that the proxy defines itself."""


def _passed_on(name: str) -> Callable[..., Any]:
    def operator(self: _MeteredAgent, *args: Any, **options: Any) -> Any:
        return getattr(object.__getattribute__(self, "_stands_for")[0], name)(*args, **options)

    return operator
