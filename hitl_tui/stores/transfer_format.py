"""The lines of an exported thread (format "hitl-tui thread", version 3).

| line | is |
|---|---|
| first | `{"format", "version", "info", "past", "left_out", "inside"}`: the thread's fixed facts; `past` has [name, last step, last seq, last decision, hash of its facts] of those who wrote the rows, oldest first; `left_out` names the channels whose values are not in the file; `inside` has [name, the thread it is below] of the threads of subgraphs' runs that come along, each before those below it |
| one a graph | `{"graph": the graph as data}`, for each that the thread has run on; its digest is the SHA-256 of the object as it stands there |
| one a step, from 0 | `{"step": checkpoint, "records": [...], "snapshot": base64}`; a snapshot, where there is one, is the part that `snapshots.part_of` makes of it after the one before |
| one a decision | `{"decision": entry}` |
| last | `{"cursor": ..., "lines": number of lines before, "sha256": of all bytes before}` |

The threads of `inside` follow in their order, each in the same five kinds of lines, numbers and sums
counted from the beginning of the file.  Hashes are written `sha256:<hex>`, those of the first line in base64.
"""  # noqa: E501 - a table

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.stores.lineage import Past

FORMAT = "hitl-tui thread"
VERSION = 3


class Place(NamedTuple):
    """A thread of a subgraph's run, and the thread it is below."""

    thread_id: str
    of: str


class Header(msgspec.Struct):
    """The first line of a thread."""

    format: str
    version: int
    info: ThreadInfo
    past: tuple[Past, ...]
    left_out: tuple[str, ...]
    inside: tuple[Place, ...] = ()


class Line(msgspec.Struct):
    """Any line after the first."""

    graph: msgspec.Raw = msgspec.Raw()
    step: dict[str, Any] | None = None
    records: list[dict[str, Any]] = []
    snapshot: bytes | None = None
    decision: dict[str, Any] | None = None
    cursor: dict[str, Any] | None = None
    lines: int = 0
    sha256: str = ""


class Kind(msgspec.Struct):
    """What a first line says of the file it begins."""

    format: str
    version: int
