"""Digests of code that names foreign objects: none of their code runs, and no digest fails."""

from __future__ import annotations

import functools
import operator
import re
import sys
import textwrap
import threading
import time
import types
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from hitl_tui import END, START, Channel, MemoryCheckpointer, NodeFailed, StateGraph
from hitl_tui.engine.graph.code_digest import CodeReader


class Touched(BaseException):
    """Foreign code ran: no `except Exception` hides it."""


def touch(*_: Any, **__: Any) -> Any:
    raise Touched


HOOKS = dict.fromkeys(
    [
        *("__getattribute__", "__getattr__", "__eq__", "__hash__", "__bool__", "__len__", "__iter__"),
        *("__next__", "__contains__", "__repr__", "__str__", "__format__", "__call__", "__getitem__"),
        *("__index__", "__int__", "__float__", "__instancecheck__", "__subclasscheck__", "__dir__"),
        *("__get__", "__reduce_ex__", "__sizeof__", "__bytes__", "__complex__"),
    ],
    touch,
)


def hostile(*bases: type, **members: Any) -> Any:
    """A class that runs foreign code whenever it or an object of it is asked for anything."""
    meta = type("Meta", (type,), {**HOOKS, "mro": type.mro})
    held: dict[str, Any] = {"__class__": property(touch), "__module__": "theirs", **members}
    return type.__new__(meta, "Hostile", bases, {**HOOKS, **held})


def instance(base: type = object, **members: Any) -> Any:
    """An object that runs foreign code whenever it is asked for anything."""
    return base.__new__(hostile(base, **members))


class LazyModule(types.ModuleType):
    """Loads itself once it is asked for anything."""

    def __getattribute__(self, name: str) -> Any:
        raise Touched


def function() -> Any:
    """A function whose facts are foreign objects."""

    def made(*, default: Any = None) -> Any:
        return default

    made.__kwdefaults__ = {"default": instance()}
    made.__module__ = instance(str)
    made.__annotations__ = {"default": instance()}
    made.__dict__["__wrapped__"] = instance()
    return made


def closed_over(value: Any) -> Callable[..., Any]:
    """A function that is closed over a value."""
    return lambda state: value


OBJECTS: dict[str, Callable[[], Any]] = {
    "object": instance,
    "its __dict__ is a property": lambda: instance(__dict__=property(touch)),
    "its chat and model are properties": lambda: instance(chat=property(touch), model=property(touch)),
    "class": hostile,
    "module": lambda: LazyModule("theirs"),
    "function": function,
    "method": lambda: types.MethodType(function(), instance()),
    "partial": lambda: functools.partial(function(), instance(), word=instance()),
    "property": lambda: property(function()),
    "static method": lambda: staticmethod(function()),
    "mock": mock.Mock,
    "magic mock": mock.MagicMock,
    "async mock": mock.AsyncMock,
    "sentinel": lambda: mock.sentinel.thing,
    **{
        base.__name__: functools.partial(instance, base)
        for base in (list, dict, set, tuple, frozenset, str, bytes, int, float, complex)
    },
}


def digest_of(value: Any) -> str:
    """The digest of nodes that get at a value in every way there is."""
    source = """
    class Kind:
        kept = value
        field: value
    def node(state): return value, VALUE, LIST, Kind, "judge"
    """
    module: dict[str, Any] = {"__name__": "theirs", "value": value, "VALUE": value, "LIST": [value, (value,)]}
    exec(compile(textwrap.dedent(source), "/home/ann/theirs.py", "exec"), module)
    digests = [
        CodeReader({"judge": value}).digest(each) for each in (module["node"], closed_over(value), value)
    ]
    assert {len(text) for text in digests} == {64}
    return " ".join(digests)


@pytest.mark.parametrize("name", OBJECTS)
def test_no_foreign_code_runs_for_a_digest(name: str) -> None:
    assert digest_of(OBJECTS[name]())


def test_callables_of_extensions_have_a_digest() -> None:
    cython = pytest.importorskip("aiohttp._websocket.mask")._websocket_mask_cython
    assert type(cython).__name__ == "cython_function_or_method"
    chained = functools.partial(functools.partial(functools.partial(cython)), (1,))
    for value in (cython, chained, len, str.upper, operator.itemgetter(1), re.compile("a"), threading.Lock()):
        assert digest_of(value)
    assert digest_of(sys) != digest_of(iter([]))


@pytest.mark.slow
def test_cyclic_or_huge_values_have_a_digest_quickly() -> None:
    def node(state: Any) -> Any:
        return node, again

    def again(state: Any) -> Any:
        return again, node

    around: list[Any] = []
    around.append(around)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    huge = [[0] * 1000 for _ in range(10_000)]
    started = time.monotonic()
    for value in (node, around, deep, huge, set(range(1_000_000)), dict.fromkeys(range(1_000_000)), 10**6000):
        assert digest_of(value)
    assert time.monotonic() - started < 10


@pytest.mark.slow
def test_a_container_that_another_thread_changes_has_a_digest() -> None:
    shared: dict[int, int] = {}
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            shared.update(dict.fromkeys(range(2000)))  # type: ignore[arg-type]
            shared.clear()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            assert digest_of(shared)
    finally:
        over.set()
        thread.join()


def test_a_callable_that_raises_when_inspected_runs_as_a_node() -> None:
    class Shy:
        @property
        def __wrapped__(self) -> Any:
            raise RuntimeError("looked at")

        __code__ = __wrapped__

        def __call__(self, state: Any) -> dict[str, int]:
            return {"n": 1 // state["n"]}

    graph = StateGraph({"n": Channel(1)}).add_node("shy", Shy()).add_edge(START, "shy").add_edge("shy", END)
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    assert runner.invoke(thread_id="t").status == "completed"
    with pytest.raises(NodeFailed, match="ZeroDivisionError"):
        runner.invoke({"n": 0}, thread_id="u")
