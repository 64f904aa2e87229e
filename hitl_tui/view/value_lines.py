"""Shows a value as lines, each computed on access: of fifty thousand items only those on screen cost time."""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, Literal, overload

import msgspec

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.format import PRIVATE_TEXT, count, kind, scalar
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Line, Role, Span

ValueMode = Literal["text", "json"]

_DEPTH: Final = 100
_ITEMS: Final = 200
_INDENT: Final = "  "
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def value_lines(value: Any, mode: ValueMode) -> Sequence[str]:
    """Return a value as sanitised lines, each computed on access: `len(lines)` and `lines[i]`.

    As "text", a text is shown as it is and anything else as `laid_out`; as "json" it is pretty JSON.
    """
    if value is PRIVATE:
        return (PRIVATE_TEXT,)
    if mode == "text":
        return _TextLines(value) if isinstance(value, str) else laid_out(value)
    return JsonLines(value)


_JSON_LINE: Final = re.compile(r'(\s*)("(?:[^"\\]|\\.)*"(?=: ))?(: )?(.*?)(,?)', re.DOTALL)
_COLOURED: Final = 2_000
"""Most characters of a line that is coloured."""


def json_spans(line: str) -> Line:
    """Return a line of pretty JSON with the roles of its key and value; a long one stays plain."""
    match = _JSON_LINE.fullmatch(line) if len(line) <= _COLOURED else None
    if match is None:
        return (Span(line),)
    indent, key, colon, value, comma = (part or "" for part in match.groups())
    role: Role = "value"
    if value.startswith('"'):
        role = "ok"
    elif value in ("true", "false", "null") or value[:1].isdigit() or value[:1] == "-":
        role = "human"
    roles: tuple[tuple[str, Role], ...] = (
        (indent, "plain"), (key, "name"), (colon, "dim"), (value, role), (comma, "dim"),
    )  # fmt: skip
    return tuple(Span(text, meaning) for text, meaning in roles if text)


def read_lines(value: Any, like: Sequence[str] = ()) -> tuple[Sequence[str], Sequence[str]]:
    """Return the lines of the text view, and what precedes each; the items of a list of texts are numbered.

    Args:
        like: lines of another value; parts that both share are not counted again.
    """
    if not (
        isinstance(value, list) and 0 < len(value) <= _ITEMS and all(isinstance(item, str) for item in value)
    ):
        if value is PRIVATE or isinstance(value, str):
            return value_lines(value, "text"), ()
        return laid_out(value, like if isinstance(like, JsonLines) else None), ()
    lines: list[str] = []
    gutter: list[str] = []
    size = len(str(len(value) - 1))
    for number, item in enumerate(value):
        rows = value_lines(item, "text")
        lines += rows
        gutter += [f"{number:>{size}} │ ", *[" " * size + " │ "] * (len(rows) - 1)]
    return lines, gutter


def laid_out(value: Any, like: JsonLines | None = None) -> JsonLines:
    """Return pretty JSON whose texts keep their line breaks, to be read and compared line by line.

    Args:
        like: another value laid out; parts that both share are not counted again.
    """
    return JsonLines(value, breaks=True, like=like if like and like.starts else None)


class _Lines(Sequence[str]):
    """Lines by number; a slice is a list."""

    _count: int

    @abstractmethod
    def line(self, at: int) -> str: ...

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self.line(number) for number in range(*at.indices(self._count))]
        number = at + self._count if at < 0 else at
        if not 0 <= number < self._count:
            raise IndexError(at)
        return self.line(number)


class _TextLines(_Lines):
    def __init__(self, text: str) -> None:
        self._raw = text.replace("\r\n", "\n").split("\n")
        self._count = len(self._raw)

    def line(self, at: int) -> str:
        return sanitise(self._raw[at])


class JsonLines(_Lines):
    """Pretty JSON.

    A container knows the line on which each child begins, and lays a child out when it is reached. With
    `breaks`, a text with several lines takes as many lines; those after the first are aligned below its
    opening quote.

    Attributes:
        value: the value that is laid out.
        starts: the line on which each child of a container begins, and its last line; [] for a value on one
            line.
    """

    def __init__(
        self,
        value: Any,
        label: str = "",
        comma: str = "",
        depth: int = 0,
        *,
        breaks: bool = False,
        like: JsonLines | None = None,
    ) -> None:
        self.value = value
        self._label = _INDENT * depth + label
        self._comma = comma
        self._depth = depth
        self._breaks = breaks
        self._parts: Sequence[str] = ()
        self._keys = list(value) if isinstance(value, Mapping) else None
        self.starts: list[int] = []
        self._child: tuple[int, JsonLines] | None = None
        if _is_open(value, depth):
            children = value if self._keys is None else value.values()
            known = like._counts() if like else {}
            counts = (known.get(id(child)) or _count_lines(child, depth + 1, breaks) for child in children)
            self.starts = list(accumulate(counts, initial=1))
        elif breaks and isinstance(value, str):
            self._parts = value.replace("\r\n", "\n").split("\n")
        self._count = self.starts[-1] + 1 if self.starts else max(len(self._parts), 1)

    def _counts(self) -> dict[int, int]:
        """Return how many lines each child takes, by the child's identity."""
        children = self.value if self._keys is None else self.value.values()
        ends = zip(self.starts, self.starts[1:], strict=False)
        return {id(child): end - start for child, (start, end) in zip(children, ends, strict=True)}

    def line(self, at: int) -> str:
        if self._count == len(self._parts) > 1:
            return self._part(at)
        if not self.starts:
            return f"{self._label}{_flat(self.value)}{self._comma}"
        opening, closing = "{}" if self._keys is not None else "[]"
        if at == 0:
            return self._label + opening
        if at == self._count - 1:
            return _INDENT * self._depth + closing + self._comma
        index = bisect_right(self.starts, at) - 1
        return self.child(index).line(at - self.starts[index])

    def _part(self, at: int) -> str:
        """Return a line of a text; quotes surround the whole text."""
        words = _text(self._parts[at])
        if at == 0:
            return self._label + words[:-1]
        words = f"{_INDENT * self._depth} {words[1:]}"
        return words + self._comma if at == self._count - 1 else words[:-1]

    def child(self, index: int) -> JsonLines:
        """Return the child at an index; the newest is cached, as lines are mostly read in order."""
        if self._child is None or self._child[0] != index:
            key = None if self._keys is None else self._keys[index]
            child = self.value[index if key is None else key]
            label = "" if key is None else f"{_text(str(key))}: "
            comma = "," if index < len(self.value) - 1 else ""
            self._child = index, JsonLines(child, label, comma, self._depth + 1, breaks=self._breaks)
        return self._child[1]

    def part(self, at: int) -> ValuePart:
        """Return what a line shows: a scalar, or the container that it opens or closes."""
        if not self.starts or at in (0, self._count - 1):
            return ValuePart("", self.value, 0, self._count - 1)
        index = bisect_right(self.starts, at) - 1
        start = self.starts[index]
        part = self.child(index).part(at - start)
        step = f"[{index}]" if self._keys is None else f".{sanitise(str(self._keys[index]), multiline=False)}"
        return ValuePart(step + part.path, part.value, start + part.first, start + part.last)

    def around(self, at: int) -> ValuePart:
        """Return the container that a line opens or closes, or that contains it."""
        part = self.part(at)
        return part if _is_open(part.value, 0) and part.last > part.first else self._holding(at)

    def _holding(self, at: int) -> ValuePart:
        index = bisect_right(self.starts, at) - 1
        start, child = self.starts[index], self.child(index)
        if not child.starts:
            return ValuePart("", self.value, 0, self._count - 1)
        part = child._holding(at - start)
        return ValuePart("", part.value, start + part.first, start + part.last)

    def line_of(self, path: str) -> int | None:
        """Return the line where the part at a path (such as `[1].worker`) begins; None for no such part."""
        if not path:
            return 0
        children = len(self.starts) - 1
        if self._keys is None:
            step = _INDEX.match(path)
            candidates = [(int(step[1]), path[step.end() :])] if step and int(step[1]) < children else []
        else:
            candidates = [
                (index, path[len(key) + 1 :])
                for index, key in enumerate(map(str, self._keys if self.starts else ()))
                if path.startswith(f".{key}") and path[len(key) + 1 : len(key) + 2] in ("", ".", "[")
            ]
        for index, rest in candidates:
            line = self.child(index).line_of(rest)
            if line is not None:
                return self.starts[index] + line
        return None

    def parts(self) -> list[tuple[int, int]]:
        """Return the first and last lines of the containers in this one; its own if it contains none."""
        children = self.value if self._keys is None else self.value.values()
        lines = zip(children, self.starts, self.starts[1:], strict=False)
        spans = [(first, after - 1) for child, first, after in lines if _is_open(child, self._depth + 1)]
        return spans or [(0, self._count - 1)]


_INDEX: Final = re.compile(r"\[(\d+)\]")


class ValuePart(msgspec.Struct, frozen=True):
    """A part of a laid-out value.

    Args:
        path: its path from the whole value, as `[1].worker`; "" for the whole.
        first, last: its lines.
    """

    path: str
    value: Any
    first: int
    last: int


class FoldedLines(_Lines):
    """JSON in which some containers are folded to one line, as `"plan": {… 12 keys},`.

    The cost depends on the number of folds, not of lines.

    Attributes:
        whole: all lines.
    """

    def __init__(self, whole: JsonLines) -> None:
        self.whole = whole
        self._folds: list[tuple[int, int]] = []
        self._settle([])

    def _settle(self, folds: list[tuple[int, int]]) -> None:
        self._folds = folds
        self._hidden = list(accumulate((last - first for first, last in folds), initial=0))
        self._at = [first - hidden for (first, _), hidden in zip(folds, self._hidden, strict=False)]
        self._count = len(self.whole) - self._hidden[-1]

    @property
    def folded(self) -> bool:
        """Whether any container is folded."""
        return bool(self._folds)

    def number(self, at: int) -> int:
        """Return the number of a shown line among all lines."""
        return at + self._hidden[bisect_left(self._at, at)]

    def place(self, number: int) -> int:
        """Return the shown line of any line; for a hidden one, that of the fold that hides it."""
        index = bisect_right(self._folds, number, key=lambda fold: fold[0])
        if index and number <= self._folds[index - 1][1]:
            return self._at[index - 1]
        return number - self._hidden[index]

    def part(self, at: int) -> ValuePart:
        """Return what a shown line shows."""
        return self.whole.part(self.number(at))

    def line(self, at: int) -> str:
        number = self.number(at)
        index = bisect_left(self._at, at)
        if index == len(self._at) or self._at[index] != at:
            return self.whole.line(number)
        value, last = self.whole.part(number).value, self._folds[index][1]
        held = count(len(value), "key" if isinstance(value, Mapping) else "item")
        return f"{self.whole.line(number)}… {held}{self.whole.line(last).lstrip()}"

    def turn(self, at: int) -> int:
        """Unfold a line that is folded, else fold the container around it; returns the line that changed."""
        number = self.number(at)
        if not self.unfold(number):
            part = self.whole.around(number)
            self._settle(sorted([*self._outside(part), (part.first, part.last)]))
        return self.place(number)

    def _outside(self, part: ValuePart) -> Iterator[tuple[int, int]]:
        return (fold for fold in self._folds if not part.first <= fold[0] <= part.last)

    def unfold(self, number: int) -> bool:
        """Show one of all lines if a fold hides it; returns whether one did."""
        index = bisect_right(self._folds, number, key=lambda fold: fold[0]) - 1
        if index < 0 or number > self._folds[index][1]:
            return False
        self._settle([*self._folds[:index], *self._folds[index + 1 :]])
        return True

    def turn_all(self) -> None:
        """Unfold everything if anything is folded, else fold each part of the whole."""
        self._settle([] if self._folds else self.whole.parts())


def _is_open(value: Any, depth: int) -> bool:
    """Whether a value takes several lines: a container that isn't empty."""
    # Most parts of a large value are scalars, and checking an object against Mapping is slow.
    if type(value) in _SCALARS:
        return False
    return isinstance(value, (dict, list, tuple, Mapping)) and len(value) > 0 and depth < _DEPTH


def _count_lines(value: Any, depth: int, breaks: bool) -> int:
    if breaks and isinstance(value, str):
        return 1 + value.count("\n")
    if not _is_open(value, depth):
        return 1
    children = value.values() if isinstance(value, Mapping) else value
    return 2 + sum(_count_lines(child, depth + 1, breaks) for child in children)


def _flat(value: Any) -> str:
    if value is PRIVATE:
        return PRIVATE_TEXT
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple | Mapping):
        what = kind(value)
        return ("{}" if what == "object" else "[]") if not value else "…"
    return scalar(value)


def _text(text: str) -> str:
    import json

    return sanitise(json.dumps(text, ensure_ascii=False))
