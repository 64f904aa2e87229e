"""Digests of a user's functions, by which a changed node, route or reducer is detected.

A digest is made from compiled code, so it is valid for one version of Python (`PYTHON`). It covers:

- the function's code (without line numbers, comments and names of variables) and its defaults;
- what that code uses of the user's own functions, classes and modules, called at any depth;
- plain values in its closure or its module; of lists, dicts and sets, which may change while it runs, the
  content counts only if their name is in capitals;
- of an agent, its model, instructions, options and tools.

It does not cover what is imported inside a function, read from a file, or looked up by a name that is made
at run time.

Nothing that is read here is run: objects are read as they are stored, never through their attributes,
comparisons or texts, which may run any code (a lazy proxy, a mock). What can't be read that way is not
covered: only its type counts.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hitl_tui.engine.graph.functions import is_library, is_ours

PYTHON: Final = sys.implementation.cache_tag or sys.version.split()[0]
"""The version of Python; digests of code can only be compared within one version."""

_TEXTS: Final[tuple[tuple[type, Callable[[Any], str]], ...]] = (
    (str, str.__repr__),
    (bytes, bytes.__repr__),
    (bool, bool.__repr__),
    (int, hex),  # Python refuses to convert a very large one to decimal
    (float, float.__repr__),
    (complex, complex.__repr__),
    (types.NoneType, lambda _: "None"),
    (types.EllipsisType, lambda _: "..."),
)
"""Functions that write plain values, by type."""
_MEMBERS: Final = (types.FunctionType, property, staticmethod, classmethod)
_DEEPEST: Final = 40
_MOST_ITEMS: Final = 10_000
"""Most items of one container that are read; of a longer one the length counts, too."""
_MOST_VALUES: Final = 100_000
"""Most values that are read for one function; the rest is not covered."""
_NOT_COVERED: Final = "not covered"

_mro_of: Final = type.__dict__["__mro__"].__get__
_name_of: Final = type.__dict__["__qualname__"].__get__
_members_of: Final = type.__dict__["__dict__"].__get__
_bases_of: Final = type.__dict__["__bases__"].__get__


class CodeReader:
    """Reads functions of one graph.

    Args:
        agents: the graph's agents; they count for code that names them.

    Attributes:
        tools: the names of the tools of the agents that the last digest covers.
    """

    def __init__(self, agents: Mapping[str, Any]) -> None:
        self._agents = agents
        self.tools: tuple[str, ...] = ()

    def digest(self, function: Callable[..., Any]) -> str:
        """Return a digest of a function and of the user's code that it is known to use; never fails."""
        reading = _Reading(self._agents)
        reading.value(function, root=True)
        self.tools = tuple(dict.fromkeys(reading.tools))
        return hashlib.sha256("\n".join(reading.parts).encode("utf-8", "surrogatepass")).hexdigest()


class _Reading:
    """Reads what one function uses, as lines of text in the order in which they are found."""

    def __init__(self, agents: Mapping[str, Any]) -> None:
        self.parts: list[str] = []
        self.tools: list[str] = []
        self._agents = agents
        self._met: dict[int, Any] = {}
        self._depth = 0
        self._values_left = _MOST_VALUES

    def value(self, value: Any, *, name: str = "", root: bool = False) -> None:
        """Read any value that code uses.

        Args:
            name: its name in the code.
            root: it counts wherever it comes from.
        """
        kind = type(value)
        self._values_left -= 1
        if text := _writer(kind):
            self.parts.append(text(value))
            return
        if id(value) in self._met or self._depth > _DEEPEST:
            self.parts.append(f"again {_name_of(kind)}")
            return
        self._met[id(value)] = value
        self._depth += 1
        before = len(self.parts)
        try:
            self._describe(value, kind, name, root)
        except Exception:  # of any kind: no run may fail because its code can't be read
            self.parts[before:] = [f"{_NOT_COVERED}: {_name_of(kind)}"]
        finally:
            self._depth -= 1

    def _describe(self, value: Any, kind: type, name: str, root: bool) -> None:
        # Types are compared by `is` and by their bases: a metaclass may define its own `==`.
        if kind is types.FunctionType:
            self._function(value, root)
        elif kind is types.CodeType:
            self._code(value, {})
        elif kind is types.MethodType:
            self.value(value.__func__, root=root)
            self.value(type(value.__self__))
        elif issubclass(kind, functools.partial):
            self.value(_field(functools.partial, "func", value), root=root)
            arguments, keywords = (_field(functools.partial, each, value) for each in ("args", "keywords"))
            self._all((*arguments, *dict.items(keywords)))
        elif issubclass(kind, property):
            accessors = (_field(property, each, value) for each in ("fget", "fset"))
            self._all(each for each in accessors if each is not None)
        elif issubclass(kind, staticmethod):
            self.value(_field(staticmethod, "__func__", value))
        elif issubclass(kind, classmethod):
            self.value(_field(classmethod, "__func__", value))
        elif issubclass(kind, type):
            self._class(value)
        else:
            self._object(value, kind, name)

    def _object(self, value: Any, kind: type, name: str) -> None:
        container = next(
            (base for base in (tuple, frozenset, list, set, dict) if issubclass(kind, base)), None
        )
        if text := next((text for plain, text in _TEXTS if issubclass(kind, plain)), None):
            self.parts.append(text(value))  # an instance of its own type, such as a member of an enum
            self.value(kind)
        elif container is tuple or container is frozenset or (container and name.isupper()):
            self._content(value, container)
        elif _stored_attribute(value, "chat") is not None and _stored_attribute(value, "model") is not None:
            self._agent(value)
        elif callable(wrapped := _stored_attribute(value, "__wrapped__")):
            self.value(wrapped)
        else:
            self.value(kind)

    def _all(self, values: Iterable[Any]) -> None:
        for value in values:
            if self._values_left <= 0:
                self.parts.append(_NOT_COVERED)
                return
            self.value(value, name="OF A CONSTANT")

    def _content(self, value: Any, container: Any) -> None:
        size = container.__len__(value)
        if size > _MOST_ITEMS:
            self.parts.append(f"{size} items")
        if container is not set and container is not frozenset:
            items = dict.items(value) if container is dict else container.__iter__(value)
            self._all(itertools.islice(items, _MOST_ITEMS))
        elif size <= _MOST_ITEMS:  # with more items, the order is different in each process
            self.parts += sorted(map(_as_text, container.__iter__(value)))

    def _function(self, function: types.FunctionType, root: bool) -> None:
        self.parts.append("function")
        code = function.__code__
        if not root and is_library(code.co_filename):
            self.parts.append(f"{_exact_text(function.__module__)}.{_exact_text(function.__qualname__)}")
            return
        self._code(code, function.__globals__)
        self._all((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                content = cell.cell_contents
            except ValueError:
                continue  # a function that names itself before it is defined
            # The closure of a library's function, such as a workflow's agents, was given by the user.
            self.value(content, name=name, root=root and type(content) is types.FunctionType)
        if callable(wrapped := _stored_attribute(function, "__wrapped__")):
            self.value(wrapped)

    def _code(self, code: types.CodeType, known: dict[str, Any]) -> None:
        self.parts += [
            code.co_code.hex(),
            code.co_exceptiontable.hex(),
            f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags}",
            " ".join(code.co_names),
        ]
        for constant in code.co_consts:
            if type(constant) is types.CodeType:
                self._code(constant, known)
            else:
                self.value(constant)
                self._named_agent(constant)
        if not is_library(code.co_filename):
            self._globals(code.co_names, known)

    def _named_agent(self, constant: Any) -> None:
        """Read an agent of the graph that the code names."""
        if type(constant) is str and constant in self._agents:
            self.value(self._agents[constant])

    def _globals(self, names: tuple[str, ...], known: dict[str, Any]) -> None:
        for name in names:
            value = dict.get(known, name)
            if issubclass(type(value), types.ModuleType):
                # Reading an attribute of a module may import something, or run its `__getattr__`.
                held = types.ModuleType.__getattribute__(value, "__dict__")
                file = held.get("__file__")
                if type(file) is str and file and not is_library(file):
                    self._globals(names, {each: held.get(each) for each in names})
            elif value is not None:
                self.value(value, name=name)

    def _class(self, kind: type) -> None:
        self.parts.append(f"class {_name_of(kind)}")
        members = _members_of(kind)
        named = _exact_text(members.get("__module__"))
        module = sys.modules.get(named)
        file = _stored_attribute(module, "__file__")
        if named in sys.builtin_module_names or is_library(file if type(file) is str else ""):
            return
        self._all(_bases_of(kind))
        for name, member in list(members.items()):
            if name == "__annotations__":
                if type(member) is dict:  # of an extension's type, it is the constructor
                    self.parts += [f"{field}: {_annotation(note)}" for field, note in member.items()]
            elif _is_behaviour(type(member)) and name not in (
                "__module__",
                "__doc__",
                "__qualname__",
                "__firstlineno__",
            ):
                self.parts.append(name)
                self.value(member)

    def _agent(self, agent: Any) -> None:
        """Read what an agent was made with; settings of a thread are not part of the graph."""
        made = [_exact_text(_stored_attribute(agent, field)) for field in ("name", "instructions", "role")]
        model = _stored_attribute(agent, "model")
        self.parts += ["agent", *made, model if type(model) is str else _name_of(type(model))]
        self.value(_agent_attribute(agent, "options"), name="OPTIONS")
        tools = _agent_attribute(agent, "tools")
        for name, tool in tools.items() if type(tools) is dict else ():
            self.tools.append(_exact_text(name))
            self.parts.append(_exact_text(name))
            function = _stored_attribute(tool, "function")
            self.value(tool if function is None else function)


def _writer(kind: type) -> Callable[[Any], str] | None:
    """Return the function that writes values of exactly this type; None if it is not a plain type."""
    return next((text for plain, text in _TEXTS if plain is kind), None)


def _as_text(value: Any) -> str:
    """Return a plain value as text; of any other value, its type."""
    kind = type(value)
    text = _writer(kind)
    return text(value) if text else str(_name_of(kind))


def _is_behaviour(kind: type) -> bool:
    """Whether a member of a class counts as behaviour of the class."""
    return _writer(kind) is not None or any(kind is each for each in _MEMBERS)


def _field(kind: type, name: str, value: Any) -> Any:
    """Read a field that a built-in type defines, even if a derived type redefines the name."""
    return kind.__dict__[name].__get__(value)


def _stored_attribute(value: Any, name: str) -> Any:
    """Return an attribute as stored with an object or its type, without calling anything; None for none."""
    kind = type(value)
    if issubclass(kind, type):
        return _of_class(value, name)
    declared = _of_class(kind, name)
    if issubclass(type(declared), types.MemberDescriptorType):
        return declared.__get__(value)
    if issubclass(type(declared), property):
        return declared
    held = _of_class(kind, "__dict__")
    own = held.__get__(value) if type(held) is types.GetSetDescriptorType else {}
    return dict.get(own, name, declared)


def _of_class(kind: type, name: str) -> Any:
    members = (_members_of(base) for base in _mro_of(kind))
    return next((held[name] for held in members if name in held), None)


def _agent_attribute(agent: Any, name: str) -> Any:
    """Return an attribute of an agent, which may be a property of this package."""
    held = _stored_attribute(agent, name)
    if not issubclass(type(held), property):
        return held
    if type(held) is not property or type(held.fget) is not types.FunctionType:
        return None
    return held.fget(agent) if is_ours(held.fget.__code__.co_filename) else None


def _exact_text(value: Any) -> str:
    """Return a value that is exactly a `str`; "" for anything else."""
    return value if type(value) is str else ""


def _annotation(note: Any) -> str:
    """Return the declared type of a field of a class, as text."""
    kind = type(note)
    if kind is str:
        return str(note)
    if text := _writer(kind):
        return text(note)
    if issubclass(kind, type):
        return _name_of(note)  # type: ignore[no-any-return]
    origin, arguments = _stored_attribute(note, "__origin__"), _stored_attribute(note, "__args__")
    if kind is types.GenericAlias:
        origin, arguments = (_field(kind, each, note) for each in ("__origin__", "__args__"))
    elif kind is types.UnionType:
        arguments = _field(kind, "__args__", note)
    name = (
        _annotation(origin)
        if issubclass(type(origin), type)
        else _exact_text(_stored_attribute(note, "_name"))
    )
    inside = ", ".join(map(_annotation, arguments)) if type(arguments) is tuple else ""
    return f"{_name_of(kind)} {name}[{inside}]"
