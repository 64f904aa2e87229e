"""Checks of what people declare (gates, limits, options, commands): each value fits its declared type.

A declaration is written down as it was given, so one that is of another kind would be read back by nobody.
The annotations of fields and parameters say what fits: `Declaration` checks the fields of a struct when it is
made, `declares` the arguments of a function when it is called.  Reading stored facts back checks nothing
here, so it costs nothing.
"""

from __future__ import annotations

import builtins
import functools
import math
import os
import sys
import types
import typing
import warnings
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ParamSpec, TypeVar

import msgspec

from hitl_tui.errors import GraphInvalid, HitlError, in_words
from hitl_tui.suggest import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

_OURS = f"{os.path.dirname(os.path.abspath(__file__))}{os.sep}"
_COMMANDS = f"{_OURS}cli{os.sep}"
_STANDARD_LIBRARY = f"{os.path.dirname(os.path.abspath(os.__file__))}{os.sep}"
_LARGEST = 1 << 63
AnyText = typing.Annotated[str, "any text"]
"""Text that may come from anywhere: half of a surrogate pair in it is written out, and refuses nothing."""
_NAMES: Mapping[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    types.NoneType: "None",
}


class TypeMismatch(Exception):
    """A value that is of another type than declared.

    Args:
        path: where in the value, as "[2]"; "" for all of it.
        expected: what fits, in words.
        found: what is there instead, in words.
        right_kind: the value is of the declared kind, and what is in it is refused.
    """

    def __init__(self, path: str, expected: str, found: str, right_kind: bool = False) -> None:
        super().__init__(path, expected, found)
        self.path, self.expected, self.found = path, expected, found
        self.right_kind = right_kind


def fitting(value: Any, kind: Any) -> Any:
    """A value as it is kept: of exactly the declared types, in containers that nobody else can change.

    Raises:
        TypeMismatch: it is of another type.
    """
    origin = typing.get_origin(kind)
    if kind is Any or isinstance(kind, TypeVar):
        return value
    if origin is typing.Annotated:
        if kind is AnyText and isinstance(value, str):
            return value.encode("utf-8", "backslashreplace").decode()
        return fitting(value, typing.get_args(kind)[0])
    if origin is typing.Union or origin is types.UnionType:
        return _of_any(value, typing.get_args(kind), kind)
    if origin is typing.Literal:
        return _of_literal(value, kind)
    if kind is None or kind in _NAMES:
        return _plain(value, types.NoneType if kind is None else kind)
    if origin is None and not isinstance(kind, type):
        return value
    return _of_class(value, origin or kind, typing.get_args(kind), kind)


def _plain(value: Any, kind: Any) -> Any:
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(value, int) and abs(value) >= _LARGEST:
            raise TypeMismatch("", "a number below 2^63", "a larger one", right_kind=True)
        number = float(value)
        if not math.isfinite(number):
            raise TypeMismatch("", "a finite number", repr(number), right_kind=True)
        return number
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeMismatch("", _NAMES[kind], in_words(value))
    if kind is str:
        text = str.__str__(value)  # of a class of its own, as a member of an enum
        try:
            text.encode()
        except UnicodeEncodeError:
            found = "text with half of a surrogate pair"
            raise TypeMismatch("", "text that UTF-8 can hold", found, right_kind=True) from None
        return text
    if kind is int:
        if abs(value) >= _LARGEST:
            raise TypeMismatch("", "a whole number below 2^63", "a larger one", right_kind=True)
        return int.__index__(value)
    return value


def _of_literal(value: Any, kind: Any) -> Any:
    allowed = typing.get_args(kind)
    for each in allowed:
        if isinstance(value, type(each)) and bool(each == value):
            return each
    found = repr(value)[:80] if isinstance(value, str) else in_words(value)
    raise TypeMismatch("", _words(kind), found)


def _of_any(value: Any, kinds: Sequence[Any], whole: Any) -> Any:
    problems = []
    for kind in kinds:
        try:
            return fitting(value, kind)
        except TypeMismatch as problem:
            problems.append(problem)
    for each in problems:
        if each.path or each.right_kind:  # what is wrong in it says more than all that would fit
            raise each
    raise TypeMismatch("", _words(whole), in_words(value))


def _of_class(value: Any, kind: Any, arguments: tuple[Any, ...], whole: Any) -> Any:
    if kind is abc.Callable:
        if callable(value):
            return value
    elif kind is tuple and arguments and arguments[-1] is not Ellipsis:
        if isinstance(value, (tuple, list)) and len(value) == len(arguments):
            pairs = zip(value, arguments, strict=True)
            return tuple(_inside(each, kind, f"[{place}]") for place, (each, kind) in enumerate(pairs))
    elif kind in (abc.Sequence, abc.Iterable, abc.Collection, list, tuple):
        if isinstance(value, abc.Sequence) and not isinstance(value, (str, bytes, bytearray)):
            each = arguments[0] if arguments else Any
            return tuple(_inside(item, each, f"[{place}]") for place, item in enumerate(value))
    elif kind in (abc.Mapping, dict):
        if isinstance(value, abc.Mapping):
            of_key, of_value = arguments or (Any, Any)
            return {
                _inside(key, of_key, f", the name {key!r:.40}"): _inside(item, of_value, f"[{key!r:.40}]")
                for key, item in value.items()
            }
    elif getattr(kind, "_is_protocol", False) or isinstance(value, kind):
        return value
    raise TypeMismatch("", _words(whole), in_words(value))


def _inside(value: Any, kind: Any, place: str) -> Any:
    try:
        return fitting(value, kind)
    except TypeMismatch as problem:
        path = place + problem.path
        raise TypeMismatch(path, problem.expected, problem.found, problem.right_kind) from None


def _words(kind: Any) -> str:
    """What fits a type, in words."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _words(arguments[0])
    if origin is typing.Union or origin is types.UnionType:
        return " or ".join(dict.fromkeys(map(_words, arguments)))
    if origin is typing.Literal:
        listed = ", ".join(map(repr, arguments))
        return f"one of {listed}" if len(arguments) > 1 else listed
    base = origin or kind
    if base in _NAMES:
        return _NAMES[base]
    if base is abc.Callable:
        return "a function"
    if base is tuple and arguments and arguments[-1] is not Ellipsis:
        return f"a pair of {' and '.join(map(_words, arguments))}"
    if base in (abc.Sequence, abc.Iterable, abc.Collection, list, tuple):
        return f"a list of {_words(arguments[0])}" if arguments and arguments[0] is not Any else "a list"
    if base in (abc.Mapping, dict):
        return "a dict"
    name = getattr(base, "__name__", "another value")
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


class _Names(dict[str, Any]):
    """The names that annotations of a module use; what only a type checker imports may be anything."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self._module = vars(sys.modules[module]) if module in sys.modules else {}

    def __missing__(self, name: str) -> Any:
        return self._module.get(name, getattr(builtins, name, Any))


def _resolved(annotation: Any, names: _Names) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, {}, names)
    except (TypeError, NameError, AttributeError):  # of a name that only a type checker knows
        return Any


def _checked(
    what: str, name: str, value: Any, kind: Any, error: type[HitlError], *, example: str = ""
) -> Any:
    try:
        return fitting(value, kind)
    except TypeMismatch as problem:
        where = f"{what}: {name}{problem.path}"
        fits = problem.expected if problem.right_kind else example or problem.expected
        raise error(f"{where} is {problem.found}", f"give {fits}") from None
    except HitlError:
        raise
    except Exception as broken:  # a foreign object that fails when it is looked at
        kind_of = type(value).__name__
        raise error(
            f"{what}: {name} can't be read: {kind_of} raised {type(broken).__name__}",
            f"give {example or _words(kind)}",
        ) from broken


class _Declaring(msgspec.StructMeta):
    """Makes structs whose fields are checked when a person makes one, not when one is read back."""

    refusal: type[HitlError]
    examples: Mapping[str, str]

    def __call__(cls, *values: Any, **named: Any) -> Any:  # noqa: N805 (a metaclass)
        cls_name = cls.__name__
        try:
            made = super().__call__(*values, **named)
        except TypeError as error:
            fields = cls.__struct_fields__
            wrong = [name for name in named if name not in fields]
            hint = (did_you_mean(wrong[0], fields) if wrong else "") or f"fields: {', '.join(fields)}"
            raise cls.refusal(f"{cls_name}: {str(error)[0].lower()}{str(error)[1:]}", hint) from None
        what = made.label_in_errors()
        try:
            for name, kind, default in _fields_of(cls):
                value = getattr(made, name)
                if value is default:
                    continue
                kept = _checked(what, name, value, kind, cls.refusal, example=cls.examples.get(name, ""))
                if kept is not value:
                    msgspec.structs.force_setattr(made, name, kept)
        except HitlError as refusal:
            try:
                made.check()  # what it says of a wrong value, it says with an example
            except HitlError:
                raise
            except Exception:
                raise refusal from None
            raise
        made.check()
        return made


@functools.cache
def _fields_of(cls: type[msgspec.Struct]) -> tuple[tuple[str, Any, Any], ...]:
    """The name, the kind and the default of each field.

    The default is `msgspec.NODEFAULT` where there is none, or where it is stored in another form.
    """
    from inspect import get_annotations

    kinds: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        names = _Names(base.__module__)
        kinds |= {name: _resolved(note, names) for name, note in get_annotations(base).items()}
    fields = cls.__struct_fields__
    defaults = dict(zip(reversed(fields), reversed(cls.__struct_defaults__), strict=False))
    return tuple(
        (name, kinds[name], default if _is_stored_as_it_is(default, kinds[name]) else msgspec.NODEFAULT)
        for name in fields
        for default in [defaults.get(name, msgspec.NODEFAULT)]
    )


def _is_stored_as_it_is(default: Any, kind: Any) -> bool:
    try:
        kept = fitting(default, kind)
    except TypeMismatch:
        return False
    return type(kept) is type(default) and bool(kept == default)


class Declaration(msgspec.Struct, frozen=True, metaclass=_Declaring):
    """Something that a person declares: its fields are checked when it is made."""

    refusal: typing.ClassVar[type[HitlError]] = GraphInvalid
    """The error of a declaration that can't be used."""
    examples: typing.ClassVar[Mapping[str, str]] = {}
    """What to give for a field, where that says more than its type."""

    def label_in_errors(self) -> str:
        """What it is called in errors."""
        fields = self.__struct_fields__
        first = getattr(self, fields[0]) if fields else None
        return f"{type(self).__name__} {first!r:.60}" if isinstance(first, str) else type(self).__name__

    def check(self) -> None:
        """Refuse what fields of the right types can't mean; raises `HitlError`."""


Line: typing.TypeAlias = tuple[str, int]
"""A file and the number of a line in it."""


_WARNED: dict[str | tuple[str, type[Warning], int], int] = {}
"""Warnings that Python has shown, which it shows once a line."""


def calling_line() -> Line | None:
    """Return the line of the user's code that called us, or None if there is none."""
    frame: types.FrameType | None = sys._getframe()
    while frame and (file := frame.f_code.co_filename).startswith((_OURS, _STANDARD_LIBRARY)):
        if file.startswith(_COMMANDS):
            return None
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else None


def warn(message: str, line: Line | None = None) -> None:
    """Warn at a line of the user's code, by default the one that led here, else at our own."""
    if found := line or calling_line():
        warnings.warn_explicit(message, UserWarning, *found, registry=_WARNED)
    else:
        warnings.warn(message, stacklevel=1)


def has(value: Any, name: str) -> bool:
    """Whether a value has an attribute; one that fails when it is asked has none."""
    try:
        return hasattr(value, name)
    except Exception:
        return False


def declares(
    error: type[HitlError] = GraphInvalid, name: str = ""
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments of a function by their annotations before it is called.

    Args:
        error: what is raised for an argument that does not fit, or that the function does not take.
        name: what the function is called in errors; its own name by default, its class's for `__init__`.
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        owner = function.__qualname__.rpartition(".")[0]
        called = name or (owner if function.__name__ == "__init__" else function.__name__)

        @functools.cache
        def parameters() -> tuple[Any, Mapping[str, Any]]:
            from inspect import Parameter, signature

            known, names, kinds = signature(function), _Names(function.__module__), {}
            for each in known.parameters.values():
                kind = Any if each.annotation is Parameter.empty else _resolved(each.annotation, names)
                if each.kind is Parameter.VAR_KEYWORD:
                    kind = typing.cast("Any", Mapping)[str, kind]
                elif each.kind is Parameter.VAR_POSITIONAL:
                    kind = typing.cast("Any", Sequence)[kind]
                kinds[each.name] = kind
            return known, kinds

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            signature, kinds = parameters()
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as problem:
                known = [each for each in signature.parameters if each != "self"]
                wrong = [each for each in kwargs if each not in known]
                hint = (did_you_mean(wrong[0], known) if wrong else "") or f"it takes {', '.join(known)}"
                raise error(f"{called}: {problem}", hint) from None
            given = dict(bound.arguments)
            try:
                for each, value in given.items():
                    if kinds[each] is Any or value is signature.parameters[each].default:
                        continue
                    bound.arguments[each] = _checked(called, each, value, kinds[each], error)
            except HitlError as refusal:
                bound.arguments |= given
                _refuse(function, bound, refusal)
            return function(*bound.args, **bound.kwargs)

        return checked

    return wrap


def _refuse(function: Callable[..., Any], bound: Any, refusal: HitlError) -> typing.NoReturn:
    """Raise what a function itself says of wrong arguments, with an example of right ones; or the refusal.

    What it changes until then in the object that it is a method of is taken back.
    """
    owner = bound.arguments.get("self")
    held = getattr(owner, "__dict__", {})
    kept = {name: copy(value) for name, value in held.items() if type(value) in (dict, list)}
    try:
        function(*bound.args, **bound.kwargs)
    except HitlError:
        raise
    except Exception:
        pass
    finally:
        held.update(kept)
    raise refusal
