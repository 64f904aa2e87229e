"""Units of the fields of facts: what a screen, a line or a document needs to know to show a bare value."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

Time: TypeAlias = Annotated[int, Meta(extra={"unit": "time"})]
"""Microseconds since the Unix epoch, UTC."""
Duration: TypeAlias = Annotated[int, Meta(extra={"unit": "duration"})]
"""Microseconds."""
Hash: TypeAlias = Annotated[bytes, Meta(extra={"unit": "hash"})]
"""32 raw bytes, b"" for none."""
StateHash: TypeAlias = Annotated[bytes, Meta(extra={"unit": "state_hash"})]
"""A hash over all channels: it would tell of private values to who guesses them."""
Maybe: TypeAlias = Annotated[str, Meta(extra={"unit": "maybe"})]
"""A text that may be missing, as "": the path of a plain node, the thread of what has none."""


def about(description: str) -> Meta:
    """What a field means, for the JSON Schema of documents."""
    return Meta(description=description)
