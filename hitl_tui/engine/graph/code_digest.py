"""Digests of a user's functions: what a node, a route or a reducer would do, so that a changed one is seen.

A digest is of compiled code, so it holds for one version of Python (`PYTHON`).  It covers a function's own
code (not its lines, comments or the names of its variables), its defaults, and what that code names, as far
as it is the user's: functions, classes and modules of their own, called at any depth; plain values that it
was closed over or finds in its module.  A list, a dict or a set may change while it runs, so its content
counts only under a name in capitals.  Of an agent its model, instructions, options and tools count.  What is
imported inside a function, read from a file or looked up by a name made at run time does not count.

Nothing that is read here runs: objects are looked at as they are stored, never through their attributes,
comparisons or texts, which may be code of anybody (a lazy proxy, a mock).  What can't be read that way is
not covered: its type alone counts.
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
"""The version of Python that digests of code are comparable within."""

_TEXTS: Final[tuple[tuple[type, Callable[[Any], str]], ...]] = (
    (str, str.__repr__),
    (bytes, bytes.__repr__),
    (bool, bool.__repr__),
    (int, hex),  # decimal digits of a large one are refused
    (float, float.__repr__),
    (complex, complex.__repr__),
    (types.NoneType, lambda _: "None"),
    (types.EllipsisType, lambda _: "..."),
)
"""How plain values are written, by their type."""
_MEMBERS: Final = (types.FunctionType, property, staticmethod, classmethod)
_DEEPEST: Final = 40
_MOST_ITEMS: Final = 10_000
"""How much of one container is read; of a longer one its length counts, too."""
_MOST_VALUES: Final = 100_000
"""How much is read for one function; what comes after is not covered."""
_NOT_COVERED: Final = "not covered"

_mro_of: Final = type.__dict__["__mro__"].__get__
_name_of: Final = type.__dict__["__qualname__"].__get__
_members_of: Final = type.__dict__["__dict__"].__get__
_bases_of: Final = type.__dict__["__bases__"].__get__


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
        """A digest of a function and all of the user's own that it is known to use; it never fails."""
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
        self._left = _MOST_VALUES

    def value(self, value: Any, *, name: str = "", root: bool = False) -> None:
        """Anything that code can get at.

        Args:
            name: what the code calls it.
            root: it counts wherever it comes from.
        """
        kind = type(value)
        self._left -= 1
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
        except Exception:  # whatever it is: no run fails because its code can't be read
            self.parts[before:] = [f"{_NOT_COVERED}: {_name_of(kind)}"]
        finally:
            self._depth -= 1

    def _describe(self, value: Any, kind: type, name: str, root: bool) -> None:
        # A type is compared by `is` and by what it derives from: its metaclass may have an `==` of its own.
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
            self.parts.append(text(value))  # of a type of its own, as a member of an enum
            self.value(kind)
        elif container is tuple or container is frozenset or (container and name.isupper()):
            self._content(value, container)
        elif _stored(value, "chat") is not None and _stored(value, "model") is not None:
            self._agent(value)
        elif callable(wrapped := _stored(value, "__wrapped__")):
            self.value(wrapped)
        else:
            self.value(kind)

    def _all(self, values: Iterable[Any]) -> None:
        for value in values:
            if self._left <= 0:
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
        elif size <= _MOST_ITEMS:  # which of more would come first is another one in each process
            self.parts += sorted(map(_briefly, container.__iter__(value)))

    def _function(self, function: types.FunctionType, root: bool) -> None:
        self.parts.append("function")
        code = function.__code__
        if not root and is_library(code.co_filename):
            self.parts.append(f"{_text(function.__module__)}.{_text(function.__qualname__)}")
            return
        self._code(code, function.__globals__)
        self._all((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                content = cell.cell_contents
            except ValueError:
                continue  # a function that names itself before it is there
            # What a library's function is closed over, as a workflow's over its agents, is the user's wish.
            self.value(content, name=name, root=root and type(content) is types.FunctionType)
        if callable(wrapped := _stored(function, "__wrapped__")):
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
        """An agent of the graph that the code asks for by its name."""
        if type(constant) is str and constant in self._agents:
            self.value(self._agents[constant])

    def _globals(self, names: tuple[str, ...], known: dict[str, Any]) -> None:
        for name in names:
            value = dict.get(known, name)
            if issubclass(type(value), types.ModuleType):
                # A module may be loaded, or run a `__getattr__`, when it is asked for what it holds.
                held = types.ModuleType.__getattribute__(value, "__dict__")
                file = held.get("__file__")
                if type(file) is str and file and not is_library(file):
                    self._globals(names, {each: held.get(each) for each in names})
            elif value is not None:
                self.value(value, name=name)

    def _class(self, kind: type) -> None:
        self.parts.append(f"class {_name_of(kind)}")
        members = _members_of(kind)
        named = _text(members.get("__module__"))
        module = sys.modules.get(named)
        file = _stored(module, "__file__")
        if named in sys.builtin_module_names or is_library(file if type(file) is str else ""):
            return
        self._all(_bases_of(kind))
        for name, member in list(members.items()):
            if name == "__annotations__":
                if type(member) is dict:  # of a type of an extension it is what makes them
                    self.parts += [f"{field}: {_annotation(note)}" for field, note in member.items()]
            elif _counts(type(member)) and name not in (
                "__module__",
                "__doc__",
                "__qualname__",
                "__firstlineno__",
            ):
                self.parts.append(name)
                self.value(member)

    def _agent(self, agent: Any) -> None:
        """What an agent was made with; the settings of its thread are not the graph's."""
        made = [_text(_stored(agent, field)) for field in ("name", "instructions", "role")]
        model = _stored(agent, "model")
        self.parts += ["agent", *made, model if type(model) is str else _name_of(type(model))]
        self.value(_own_property(agent, "options"), name="OPTIONS")
        tools = _own_property(agent, "tools")
        for name, tool in tools.items() if type(tools) is dict else ():
            self.tools.append(_text(name))
            self.parts.append(_text(name))
            function = _stored(tool, "function")
            self.value(tool if function is None else function)


def _writer(kind: type) -> Callable[[Any], str] | None:
    """How values of exactly a type are written, None where it is not a plain one."""
    return next((text for plain, text in _TEXTS if plain is kind), None)


def _briefly(value: Any) -> str:
    """A plain value as text, of any other its type."""
    kind = type(value)
    text = _writer(kind)
    return text(value) if text else str(_name_of(kind))


def _counts(kind: type) -> bool:
    """Whether a member of a class counts as what the class does."""
    return _writer(kind) is not None or any(kind is each for each in _MEMBERS)


def _field(kind: type, name: str, value: Any) -> Any:
    """A field of an object of a type of Python's own, whatever a type derived from it makes of the name."""
    return kind.__dict__[name].__get__(value)


def _stored(value: Any, name: str) -> Any:
    """An attribute as it is stored with an object or its type, None for none; nothing is called for it."""
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


def _own_property(agent: Any, name: str) -> Any:
    """An attribute of an agent, which a property of this package may make."""
    held = _stored(agent, name)
    if not issubclass(type(held), property):
        return held
    if type(held) is not property or type(held.fget) is not types.FunctionType:
        return None
    return held.fget(agent) if is_ours(held.fget.__code__.co_filename) else None


def _text(value: Any) -> str:
    """A text that is one and nothing else, "" for anything else."""
    return value if type(value) is str else ""


def _annotation(note: Any) -> str:
    """What a field of a class is declared as."""
    kind = type(note)
    if kind is str:
        return str(note)
    if text := _writer(kind):
        return text(note)
    if issubclass(kind, type):
        return _name_of(note)  # type: ignore[no-any-return]
    origin, arguments = _stored(note, "__origin__"), _stored(note, "__args__")
    if kind is types.GenericAlias:
        origin, arguments = (_field(kind, each, note) for each in ("__origin__", "__args__"))
    elif kind is types.UnionType:
        arguments = _field(kind, "__args__", note)
    name = _annotation(origin) if issubclass(type(origin), type) else _text(_stored(note, "_name"))
    inside = ", ".join(map(_annotation, arguments)) if type(arguments) is tuple else ""
    return f"{_name_of(kind)} {name}[{inside}]"
