"""The frames of a user's code that led to an error: file and line, the lines around, and local variables.

None of the user's code is called for this: values are read only by methods of built-in types, so no
`__repr__` can hang, raise or print. The value of a private channel is left out wherever it occurs, whole or
inside something else; values computed from it can't be recognised. Keys and passwords in the code or in
local variables are left out if their name or their form shows what they are.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import CO_NEWLOCALS, CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS, getblock, iscoroutinefunction
from pathlib import Path
from textwrap import dedent
from time import perf_counter
from types import CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType, TracebackType
from typing import Any, Final

from hitl_tui.engine.graph.functions import code_behind
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.outcomes import Frame, LocalValue
from hitl_tui.engine.log.redaction import hiding
from hitl_tui.engine.log.secrets import MASK, SECRET_LOOK, is_secret_name, masked_source
from hitl_tui.engine.state.values import keepable

_MOST_FRAMES: Final = 8
_MOST_VALUES: Final = 16
_MOST_LINES: Final = 200
"""Entries of a traceback that are read, from its end."""
_BEFORE, _AFTER = 12, 8
"""Source lines that are kept around the innermost line; other frames keep only their own line."""
_MOST_CODE: Final = 80
"""Lines of a function that are shown."""
_MOST_FILE: Final = 200
_OPENING: Final = 20
"""Lines before those that are also read, because a literal may start in them."""
_LONGEST_LINE: Final = 160
_LONGEST_VALUE: Final = 200
_LONGEST_NAME: Final = 60
_ALL_VALUES: Final = 12_000
"""Characters of all values of a failure."""
_ITEMS: Final = 8
_DEPTH: Final = 3
_WORD: Final = 4
"""Private texts with fewer characters are not searched for inside others."""
_WINDOW: Final = 16
"""A text that shares this many characters with a longer private one is private, too."""
_MOST_LEAVES: Final = 1_000
_SECONDS: Final = 0.25
"""Seconds for all values of a failure; after that the rest is left out."""
_MASKED: Final = repr(PRIVATE)

_OURS = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_PACKAGES = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("purelib", "platlib")})
_PYTHON = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")})


class Masks:
    """The private values of a state, and the names of its private channels.

    Args:
        values: those of the private channels, by name.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.names = frozenset(values)
        self._hide = hiding(values)
        self._equal: set[Any] = set()
        self._within: list[str] = []
        self._long: list[str] = []
        self._whole = {id(value) for value in values.values() if isinstance(value, (list, dict))}
        self.too_many = False
        for value in values.values():
            for leaf in _leaves(value):
                if len(self._equal) >= _MOST_LEAVES:
                    self.too_many = True
                    return
                self._equal.add((type(leaf) is bool, leaf))
                text = leaf if isinstance(leaf, str) else repr(leaf)
                if len(text) >= 2 * _WINDOW:
                    self._long.append(text)
                elif len(text) >= _WORD and type(leaf) is not bool:
                    self._within.append(text)
        self._within.sort(key=len, reverse=True)

    def hides(self, value: Any) -> bool:
        """Whether a plain value is private."""
        if type(value) in (str, int, float, bool):
            return (type(value) is bool, value) in self._equal
        return id(value) in self._whole

    def placeholder(self, name: str, value: Any) -> str:
        """Return what to show instead of a value because of its name; "" to show the value."""
        if name in self.names:
            return _MASKED
        secret = issubclass(type(value), str) and is_secret_name(name)
        return MASK if secret and not self.hides(value) else ""

    def cleaned(self, text: str) -> str:
        """Return a text without the private parts.

        It may be cut, but must be longer than what will be shown.
        """
        for secret in self._within:
            if secret in text:
                text = text.replace(secret, _MASKED)
        windows = [
            text[at : at + _WINDOW] for at in range(0, min(len(text), _LONGEST_VALUE) - _WINDOW + 1, _WINDOW)
        ]
        if any(part in secret for secret in self._long for part in windows):
            return _MASKED
        return str(self._hide(text))


NO_MASKS: Final = Masks({})


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in dict.items(value):
            yield key
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif value is not None and value != "":
        yield value


def frames_of(error: BaseException, masks: Masks) -> tuple[Frame, ...]:
    """Return the frames of an error, from the outermost to the one that raised; () if none is the user's.

    Frames of libraries are only counted; ours are left out.
    """
    entries = list(_entries(error.__traceback__))
    while isinstance(error, BaseExceptionGroup):  # the first error of a group shows where it started
        error = error.exceptions[0]
        entries += _entries(error.__traceback__)
    return _shown(entries[-_MOST_LINES:], masks)


def stack_frames(stack: Sequence[tuple[FrameType, int]], masks: Masks) -> tuple[Frame, ...]:
    """Return the frames of a stack, from the outermost to the innermost; () if none is the user's."""
    return _shown(stack[-_MOST_LINES:], masks)


def frame_of(frame: FrameType, masks: Masks) -> tuple[Frame, ...]:
    """Return one frame as it is now; () if it is not the user's."""
    return _shown([(frame, frame.f_lineno)], masks)


def with_return_hook(
    function: Callable[..., Any], note: Callable[[tuple[Frame, ...]], object], masks: Masks
) -> Callable[..., Any]:
    """Wrap a function so that `note` gets its frame when it returns; this makes it slower."""
    code = code_behind(function)

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "return" and frame.f_code is code:
            note(frame_of(frame, masks))

    if iscoroutinefunction(function):

        async def awaited(*args: Any) -> Any:
            before = sys.getprofile()
            sys.setprofile(profile)
            try:
                return await function(*args)
            finally:
                sys.setprofile(before)

        return awaited

    def called(*args: Any) -> Any:
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            return function(*args)
        finally:
            sys.setprofile(before)

    return called


def place_of(function: Any, masks: Masks) -> tuple[Frame, ...]:
    """Return where a function starts, for an error that none of its lines has raised."""
    code = code_behind(function)
    if code is None or _library(code.co_filename) is not None:
        return ()
    return (_frame(code, code.co_firstlineno, masks),)


def code_of(function: Any, masks: Masks) -> Frame | None:
    """Return the source of any function, up to some lines; None if it has none."""
    code = code_behind(function)
    if code is None:
        return None
    first = code.co_firstlineno
    below = _source(code.co_filename)[first - 1 : first - 1 + _MOST_CODE]
    try:
        block = getblock(below)
    except Exception:  # for example, the file has been changed since
        return None
    return Frame(
        file=keepable(code.co_filename),
        line=first,
        function=keepable(_called(code)),
        first=first,
        lines=_code_lines(dedent("".join(block)).splitlines(), masks),
    )


def file_of(frame: Frame, masks: Masks) -> Frame:
    """Return the file of a function from its top, up to some lines."""
    return Frame(file=frame.file, line=1, lines=_code_lines(_source(frame.file)[:_MOST_FILE], masks))


def _code_lines(lines: Iterable[str], masks: Masks) -> tuple[str, ...]:
    """Return code without secrets, and without private values that occur in the code."""
    return _without_private(masked_source([line.rstrip() for line in lines]), masks)


def _without_private(lines: Iterable[str], masks: Masks) -> tuple[str, ...]:
    return tuple(keepable(masks.cleaned(text)[:_LONGEST_LINE]) for text in lines)


def _entries(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _library(file: str) -> str | None:
    """Return the library to which a file belongs, "" for this package, None for the user's own code."""
    if file.startswith(_OURS):
        return ""
    for folder in _PACKAGES:
        if file.startswith(folder):
            return file[len(folder) :].partition(os.sep)[0].removesuffix(".py")
    return "Python" if file.startswith(("<frozen ", *_PYTHON)) else None


def _shown(entries: Iterable[tuple[FrameType, int]], masks: Masks) -> tuple[Frame, ...]:
    kept: list[tuple[FrameType, int] | str] = []
    for frame, line in entries:
        library = _library(frame.f_code.co_filename)
        if library is None:
            kept.append((frame, line))
        elif library and kept:  # what called the user's first line is not shown
            kept.append(library)
    own = [entry for entry in kept if not isinstance(entry, str)]
    left_out = len(own) - _MOST_FRAMES
    shown: list[Frame] = []
    room, until = _ALL_VALUES, perf_counter() + _SECONDS
    for entry in reversed(kept):  # the innermost frames are filled first
        if isinstance(entry, str):
            if shown and shown[-1].library == entry:
                shown[-1] = Frame(library=entry, count=shown[-1].count + 1)
            else:
                shown.append(Frame(library=entry, count=1))
            continue
        if left_out > 0 and len([frame for frame in shown if frame.file]) >= _MOST_FRAMES:
            continue
        frame, line = entry
        values = _values(frame, masks, room) if perf_counter() < until else ()
        room -= sum(len(value.text) for value in values)
        innermost = not any(inner.file for inner in shown)
        shown.append(_frame(frame.f_code, line, masks, values, around=innermost))
    if not any(frame.file for frame in shown):
        return ()
    return tuple(reversed(shown))


def _frame(
    code: CodeType, line: int, masks: Masks, values: tuple[LocalValue, ...] = (), *, around: bool = True
) -> Frame:
    first = max(line - (_BEFORE if around else 0), 1)
    last = line + (_AFTER if around else 0)
    opening = max(first - _OPENING, 1)
    source = [text.rstrip() for text in _source(code.co_filename)[opening - 1 : last]]
    lines = masked_source(source)[first - opening :] if source else []
    while lines and not lines[0] and first < line:
        del lines[0]
        first += 1
    while lines and not lines[-1]:
        del lines[-1]
    return Frame(
        file=keepable(code.co_filename),
        line=line,
        function=keepable(_called(code)),
        first=first,
        lines=_without_private(lines, masks),
        values=values,
    )


def _source(file: str) -> list[str]:
    try:
        linecache.checkcache(file)
        return linecache.getlines(file)
    except Exception:  # for any content of a file: its lines are missing, the failure is still reported
        return []


def _called(code: CodeType) -> str:
    """Return the name of a function with its parameters."""
    if code.co_name.startswith("<") and code.co_name != "<lambda>":
        return code.co_name
    count = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[:count])
    for flag, stars in ((CO_VARARGS, "*"), (CO_VARKEYWORDS, "**")):
        if code.co_flags & flag:
            names.append(f"{stars}{code.co_varnames[len(names)]}")
    return f"{code.co_name}({', '.join(names)})"[:_LONGEST_LINE]


def _values(frame: FrameType, masks: Masks, room: int) -> tuple[LocalValue, ...]:
    """Return the local variables of a function; () for a module or a class."""
    needed = CO_OPTIMIZED | CO_NEWLOCALS
    if frame.f_code.co_flags & needed != needed or masks.too_many:
        return ()
    values: list[LocalValue] = []
    for name, value in dict(frame.f_locals).items():
        if name.startswith(".") or _is_not_shown(value):
            continue
        text = masks.placeholder(name, value) or _Writer(masks).text(value)
        room -= len(text)
        if len(values) >= _MOST_VALUES or room < 0:
            break
        values.append(LocalValue(keepable(name[:_LONGEST_NAME]), keepable(text)))
    return tuple(values)


_type_name: Callable[[type], str] = type.__dict__["__name__"].__get__
_mro_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_names_of: Callable[[type], Mapping[str, Any]] = type.__dict__["__dict__"].__get__


def _is_not_shown(value: Any) -> bool:
    """Whether a value is not worth showing: a module, function or class, or what the engine gave the node."""
    kind = type(value)
    if kind in (FunctionType, ModuleType) or issubclass(kind, type):
        return True
    return _type_name(kind) in _GIVEN and str(_names_of(kind).get("__module__")).startswith("hitl_tui.")


_GIVEN: Final = frozenset({"WorkflowState", "StateView", "NotedState", "NodeConfig"})


class _Full(Exception):
    pass


class _Writer:
    """Writes one value as text until there is no more room; calls only built-in code."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._parts: list[str] = []
        self._room = _LONGEST_VALUE
        self._beside = ""

    def text(self, value: Any) -> str:
        """Return the value as text, cut if it is long."""
        try:
            self._write(value, 0)
        except _Full:
            self._parts.append("…")
        except Exception as error:  # for example, another thread changes the dict meanwhile
            self._parts.append(f"<can't be read: {_type_name(type(error))}>")
        return "".join(self._parts) + self._beside

    def _put(self, text: str) -> None:
        if len(text) > self._room:
            self._parts.append(text[: self._room])
            raise _Full
        self._room -= len(text)
        self._parts.append(text)

    def _write(self, value: Any, depth: int) -> None:
        kind = type(value)
        if self._masks.hides(value):
            self._put(_MASKED)
        elif value is None or kind is bool:
            self._put("None" if value is None else "True" if value else "False")
        elif issubclass(kind, str):
            self._write_text(value, depth)
        elif issubclass(kind, int):
            bits = int.bit_length(value)
            self._put(f"<int of {bits} bits>" if bits > 256 else self._masks.cleaned(int.__repr__(value)))
        elif issubclass(kind, float):
            self._put(float.__repr__(value))
        elif issubclass(kind, (bytes, bytearray)):
            base = bytes if issubclass(kind, bytes) else bytearray
            self._put(f"<{base.__len__(value)} bytes>")
        elif issubclass(kind, dict):
            self._write_items("{", "}", dict.__len__(value), self._pairs(dict.items(value), depth), depth)
        elif issubclass(kind, (list, tuple, set, frozenset)):
            self._write_many(value, kind, depth)
        else:
            self._write_object(value, kind, depth)

    def _write_text(self, value: str, depth: int) -> None:
        if depth == 0 and str.__len__(value) > _LONGEST_VALUE:
            self._beside = f" {str.__len__(value)} characters"
        # It is cut only after private parts are removed: a part of a secret would not be found.
        begins = str.__getitem__(value, slice(0, 20 * _LONGEST_VALUE))
        plain = SECRET_LOOK.sub(MASK, self._masks.cleaned(begins))
        self._put(str.__repr__(plain[: _LONGEST_VALUE + 1]))

    def _write_many(self, value: Any, kind: type, depth: int) -> None:
        base = next(base for base in (list, tuple, set, frozenset) if issubclass(kind, base))
        opens, closes = {list: ("[", "]"), tuple: ("(", ")")}.get(base, ("{", "}"))
        items = iter(base.__iter__(value))
        if base is tuple and tuple.__len__(value) == 1:
            closes = ",)"
        self._write_items(opens, closes, base.__len__(value), self._each(items, depth), depth)

    def _each(self, items: Iterator[Any], depth: int) -> Iterator[None]:
        for item in items:
            self._write(item, depth + 1)
            yield

    def _pairs(self, items: Iterable[tuple[Any, Any]], depth: int) -> Iterator[None]:
        for key, item in items:
            self._write(key, depth + 1)
            self._put(": ")
            if type(key) is str and (mask := self._masks.placeholder(key, item)):
                self._put(mask)
            else:
                self._write(item, depth + 1)
            yield

    def _write_items(self, opens: str, closes: str, count: int, items: Iterator[None], depth: int) -> None:
        if count and depth >= _DEPTH:
            self._put(f"{opens}… {count}{closes}")
            return
        self._put(opens)
        for number in range(min(count, _ITEMS)):
            if number:
                self._put(", ")
            next(items, None)
        self._put(f", … {count} items{closes}" if count > _ITEMS else closes)

    def _write_object(self, value: Any, kind: type, depth: int) -> None:
        """Write an instance as its class and its own attributes."""
        fields = _fields(value, kind)
        self._put(f"<{_type_name(kind)}")
        if fields and depth < _DEPTH:
            self._put(" ")
            self._write_items("", "", len(fields), self._pairs(list(fields.items()), depth), depth)
        self._put(">")


def _fields(value: Any, kind: type) -> dict[str, Any]:
    for base in _mro_of(kind):
        slot = _names_of(base).get("__dict__")
        if type(slot) is GetSetDescriptorType:
            fields = slot.__get__(value)
            return fields if type(fields) is dict else {}
    return {}
