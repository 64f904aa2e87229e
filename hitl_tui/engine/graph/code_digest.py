"""Digests of a user's functions: what a node, a route or a reducer would do, so that a changed one is seen.

A digest is of compiled code, so it holds for one version of Python (`PYTHON`).  It covers a function's own
code (not its lines, comments or the names of its variables), its defaults, and what that code names, as far
as it is the user's: functions, classes and modules of their own, called at any depth; plain values that it
was closed over or finds in its module.  A list, a dict or a set may change while it runs, so its content
counts only under a name in capitals.  Of an agent its model, instructions, options and tools count.  What is
imported inside a function, read from a file or looked up by a name made at run time does not count.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hitl_tui.engine.graph.functions import is_library

PYTHON: Final = sys.implementation.cache_tag or sys.version.split()[0]
"""The version of Python that digests of code are comparable within."""

_PLAIN: Final = (str, bytes, int, float, complex, bool, types.NoneType, types.EllipsisType)
_DEEPEST: Final = 40


class CodeReader:
    """Reads functions of one graph.

    Args:
        agents: the graph's, which count for the code that names them.

    Attributes:
        tools: the names of the tools that agents have which the last digest came by.
    """

    def __init__(self, agents: Mapping[str, Any]) -> None:
        self._agents = agents
        self.tools: tuple[str, ...] = ()

    def digest(self, function: Callable[..., Any]) -> str:
        """A digest of a function and all of the user's own that it is known to use."""
        reading = _Reading(self._agents)
        reading.value(function, root=True)
        self.tools = tuple(dict.fromkeys(reading.tools))
        return hashlib.sha256("\n".join(reading.parts).encode("utf-8", "surrogatepass")).hexdigest()


class _Reading:
    """What one function is made of, as lines of text in the order in which it is met."""

    def __init__(self, agents: Mapping[str, Any]) -> None:
        self.parts: list[str] = []
        self.tools: list[str] = []
        self._agents = agents
        self._met: dict[int, Any] = {}
        self._depth = 0

    def value(self, value: Any, *, name: str = "", root: bool = False) -> None:
        """Anything that code can get at.

        Args:
            name: what the code calls it.
            root: it counts wherever it comes from.
        """
        if isinstance(value, _PLAIN):
            self.parts.append(repr(value))
            return
        if id(value) in self._met or self._depth > _DEEPEST:
            self.parts.append(f"again {type(value).__qualname__}")
            return
        self._met[id(value)] = value
        self._depth += 1
        self._described(value, name, root)
        self._depth -= 1

    def _described(self, value: Any, name: str, root: bool) -> None:
        match value:
            case types.FunctionType():
                self._function(value, root)
            case types.CodeType():
                self._code(value, {})
            case types.MethodType():
                self.value(value.__func__, root=root)
                self.value(type(value.__self__))
            case functools.partial():
                self.value(value.func, root=root)
                self._all((*value.args, *value.keywords.items()))
            case property():
                self._all(each for each in (value.fget, value.fset) if each)
            case staticmethod() | classmethod():
                self.value(value.__func__)
            case type():
                self._class(value)
            case tuple():
                self._all(value)
            case frozenset():
                self._unordered(value)
            case list() | set() | dict() if name.isupper():
                self._content(value)
            case _ if hasattr(value, "chat") and hasattr(value, "model"):
                self._agent(value)
            case _ if callable(getattr(value, "__wrapped__", None)):
                self.value(value.__wrapped__)
            case _:
                self.value(type(value))

    def _all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.value(value, name="OF A CONSTANT")

    def _unordered(self, values: Iterable[Any]) -> None:
        self.parts += sorted(
            repr(value) if isinstance(value, _PLAIN) else str(type(value)) for value in values
        )

    def _content(self, value: list[Any] | set[Any] | dict[Any, Any]) -> None:
        if isinstance(value, set):
            self._unordered(value)
        else:
            self._all(value.items() if isinstance(value, dict) else value)

    def _function(self, function: types.FunctionType, root: bool) -> None:
        self.parts.append("function")
        code = function.__code__
        if not root and is_library(code.co_filename):
            self.parts.append(f"{function.__module__}.{function.__qualname__}")
            return
        self._code(code, function.__globals__)
        self._all((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                content = cell.cell_contents
            except ValueError:
                continue  # a function that names itself before it is there
            # What a library's function is closed over, as a workflow's over its agents, is the user's wish.
            self.value(content, name=name, root=root and isinstance(content, types.FunctionType))
        if callable(wrapped := getattr(function, "__wrapped__", None)):
            self.value(wrapped)

    def _code(self, code: types.CodeType, known: Mapping[str, Any]) -> None:
        self.parts += [
            code.co_code.hex(),
            code.co_exceptiontable.hex(),
            f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags}",
            " ".join(code.co_names),
        ]
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant, known)
            else:
                self.value(constant)
                self._named_agent(constant)
        if not is_library(code.co_filename):
            self._globals(code.co_names, known)

    def _named_agent(self, constant: Any) -> None:
        """An agent of the graph that the code asks for by its name."""
        if isinstance(constant, str) and constant in self._agents:
            self.value(self._agents[constant])

    def _globals(self, names: tuple[str, ...], known: Mapping[str, Any]) -> None:
        for name in names:
            value = known.get(name)
            if isinstance(value, types.ModuleType):
                file = getattr(value, "__file__", None)
                if file and not is_library(file):
                    self._globals(names, {each: vars(value).get(each) for each in names})
            elif value is not None:
                self.value(value, name=name)

    def _class(self, kind: type) -> None:
        self.parts.append(f"class {kind.__qualname__}")
        module = sys.modules.get(kind.__module__)
        if kind.__module__ in sys.builtin_module_names or is_library(getattr(module, "__file__", None) or ""):
            return
        self._all(kind.__bases__)
        for name, member in vars(kind).items():
            if name == "__annotations__":
                self.parts += [f"{field}: {note}" for field, note in member.items()]
            elif isinstance(member, (*_PLAIN, types.FunctionType, property, staticmethod, classmethod)) and (
                name not in ("__module__", "__doc__", "__qualname__", "__firstlineno__")
            ):
                self.parts.append(name)
                self.value(member)

    def _agent(self, agent: Any) -> None:
        """What an agent was made with; the settings of its thread are not the graph's."""
        made = [str(getattr(agent, field, "")) for field in ("name", "instructions", "role")]
        model = getattr(agent, "model", "")
        self.parts += ["agent", *made, model if isinstance(model, str) else type(model).__qualname__]
        for name, tool in dict(getattr(agent, "tools", {}) or {}).items():
            self.tools.append(name)
            self.parts.append(name)
            self.value(getattr(tool, "function", tool))
