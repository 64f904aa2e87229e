"""Units of the fields of facts: what a screen, a line or a document needs to know to show a bare value."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

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
