"""Units and descriptions of the fields of events, with which screens and documents show bare values."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, TypeVar

from msgspec import Meta

T = TypeVar("T")

Time: TypeAlias = Annotated[int, Meta(extra={"unit": "time"})]
"""Microseconds since the Unix epoch, UTC."""
Duration: TypeAlias = Annotated[int, Meta(extra={"unit": "duration"})]
"""Microseconds."""
Hash: TypeAlias = Annotated[bytes, Meta(extra={"unit": "hash"})]
"""32 raw bytes, b"" for none."""
StateHash: TypeAlias = Annotated[bytes, Meta(extra={"unit": "state_hash"})]
"""A hash over all channels; with it somebody could check a guess of a private value."""
MAYBE = Meta(extra={"unit": "maybe"})
Maybe: TypeAlias = Annotated[str, MAYBE]
"""A text that may be missing, as "", such as the path of a plain node."""


Facts: TypeAlias = Annotated[Any, Meta(extra={"unit": "facts"})]
"""Facts by name, as the store returns them; may be empty."""
MESSAGE = Meta(extra={"unit": "message"})
"""An error inside another object is shown by its message alone."""
Inline: TypeAlias = Annotated[T, Meta(extra={"inline": True})]
"""In a JSON document this field is replaced by its own fields."""


def about(description: str, name: str = "") -> Meta:
    """Describe a field, with its name in JSON documents; fields without a description are left out there."""
    return Meta(description=description, extra={"name": name} if name else None)


_SPANS: Final = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
}


def span_of(text: str) -> int:
    """Parse a time span to microseconds: "30d", "12h", "2w", "90m", "45s".

    Raises:
        ValueError: the text is no time span.
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _SPANS or not (number.isascii() and number.isdigit()) or len(number) > 6:
        raise ValueError(f"{text!r} is not a time: write 30d, 12h, 2w, 90m or 45s")
    return int(number) * _SPANS[unit]


def span_words(span: int) -> str:
    """Write a time span for `span_of`, in the largest unit that divides it."""
    whole = (unit for unit, size in _SPANS.items() if span and span % size == 0)
    unit = next(whole, "s")
    return f"{span // _SPANS[unit]}{unit}"
