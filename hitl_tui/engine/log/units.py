"""Units of the fields of facts: what a screen, a line or a document needs to know to show a bare value."""

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
"""A hash over all channels: it would tell of private values to who guesses them."""
MAYBE = Meta(extra={"unit": "maybe"})
Maybe: TypeAlias = Annotated[str, MAYBE]
"""A text that may be missing, as "": the path of a plain node, the thread of what has none."""


Facts: TypeAlias = Annotated[Any, Meta(extra={"unit": "facts"})]
"""Facts by name, as far as there are any; they come back from a store as it keeps them."""
MESSAGE = Meta(extra={"unit": "message"})
"""Of an error that stands in something else its message is enough."""
Inline: TypeAlias = Annotated[T, Meta(extra={"inline": True})]
"""In a document its fields stand in the place of this one."""


def about(description: str, name: str = "") -> Meta:
    """What a field means, and what documents call it; a field of a fact without either is not in them."""
    return Meta(description=description, extra={"name": name} if name else None)


_SPANS: Final = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
}


def span_of(text: str) -> int:
    """Microseconds of a time as it is written: "30d", "12h", "2w", "90m", "45s".

    Raises:
        ValueError: it is none.
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _SPANS or not (number.isascii() and number.isdigit()) or len(number) > 6:
        raise ValueError(f"{text!r} is no time: write 30d, 12h, 2w, 90m or 45s")
    return int(number) * _SPANS[unit]


def span_words(span: int) -> str:
    """What `span_of` reads again, in the largest unit that leaves nothing over."""
    whole = (unit for unit, size in _SPANS.items() if span and span % size == 0)
    unit = next(whole, "s")
    return f"{span // _SPANS[unit]}{unit}"
