"""Snapshots as stored: each holds only what is new since the one before it.

A list that merely grew is stored as its new elements, so that all snapshots of an append-only channel
together take what its value takes, once.  All is done on JSON text: nothing is decoded to values.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

import msgspec

_PLAIN, _PACKED, _OPAQUE = b"f", b"c", b"o"
_SAMPLE = 1024


class _Head(msgspec.Struct, frozen=True):
    """What stands before the texts of a part.

    `sizes` has, for each channel, the length of its text in bytes.  For the names in `tails` that is a
    list that goes on where the part before ends.  `lists` has, for each whole list, the length of its
    JSON and the SHA-256 of all but its last byte, by which the next snapshot tells that it merely grew.
    """

    sizes: dict[str, int]
    tails: tuple[str, ...]
    lists: dict[str, tuple[int, bytes]]


class _Part(NamedTuple):
    """What one snapshot adds: the JSON of channels, to be read with the `tails` and `lists` of its head."""

    texts: Mapping[str, memoryview]
    tails: tuple[str, ...]
    lists: Mapping[str, tuple[int, bytes]]


_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(_Head).decode
_decode_values = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def part_of(snapshot: bytes, before: bytes | None) -> bytes:
    """What to store of a snapshot, given what was stored of the thread's snapshot before it."""
    try:
        values = _decode_values(snapshot)
    except msgspec.MsgspecError:
        return _OPAQUE + snapshot
    known = {} if before is None or (earlier := _part(before)) is None else earlier.lists
    texts: dict[str, bytes | memoryview] = {}
    tails: list[str] = []
    lists: dict[str, tuple[int, bytes]] = {}
    for name, raw in values.items():
        text = texts[name] = memoryview(raw)
        if text[0] != ord("["):
            continue
        lists[name], tail = _list(text, known.get(name))
        if tail is not None:
            texts[name] = tail
            tails.append(name)
    head = _encode(_Head({name: len(text) for name, text in texts.items()}, tuple(tails), lists))
    kind, data = _PLAIN, b"".join((len(head).to_bytes(4), head, *texts.values()))
    again = sum(len(texts[name]) for name in texts.keys() - set(tails))
    # What is stored again and again is worth packing; unpacking is most of the cost of a read.
    if 2 * again > len(data):
        packed = _packed(data)
        if 2 * len(packed) < len(data):
            kind, data = _PACKED, packed
    return kind + _check(data) + data


def whole(parts: Iterable[bytes]) -> bytes:
    """The snapshot from its part and those before it, newest first; takes no more than it needs.

    Raises:
        ValueError: a part is damaged or missing.
    """
    rest = iter(parts)
    newest = next(rest)
    part = _part(newest)
    return newest[1:] if part is None else _text(part, _joined(part, rest))


def each_whole(parts: Iterable[bytes], before: Iterable[bytes]) -> Iterator[bytes]:
    """Consecutive snapshots from their parts, oldest first.

    Args:
        before: the parts before the first of them, newest first; no more are taken than needed.

    Raises:
        ValueError: a part is damaged or missing.
    """
    pieces: dict[str, list[memoryview]] | None = None
    for stored in parts:
        part = _part(stored)
        if part is None:
            pieces = {}
            yield stored[1:]
            continue
        if pieces is None:
            pieces = _pieces(part, iter(before))
        else:
            if not pieces.keys() >= set(part.tails):
                raise ValueError("a snapshot before this one is missing")
            pieces = {
                name: [*pieces[name], _inside(part, name)] if name in part.tails else [_inside(part, name)]
                for name in part.lists
            }
        yield _text(part, {name: _list_of(pieces[name]) for name in part.tails})


def _text(part: _Part, grown: Mapping[str, Iterable[bytes | memoryview]]) -> bytes:
    """A snapshot as JSON, given the texts of the lists that go on."""
    text: list[bytes | memoryview] = [b"{"]
    for name, own in part.texts.items():
        text += (b"," if len(text) > 1 else b"", _encode(name), b":")
        text += grown.get(name, (own,))
    text.append(b"}")
    # Put together in one go: a copy of a long list on the way costs as much as reading it.
    return b"".join(text)


def _joined(part: _Part, rest: Iterator[bytes]) -> dict[str, list[bytes | memoryview]]:
    """The texts of the lists of a part that go on, in pieces."""
    return {name: _list_of(found) for name, found in _pieces(part, rest).items() if name in part.tails}


def _pieces(part: _Part, rest: Iterator[bytes]) -> dict[str, list[memoryview]]:
    """The insides of the lists of a part, oldest piece first."""
    pieces = {name: [_inside(part, name)] for name in part.lists}
    waiting = set(part.tails)
    while waiting:
        earlier = _part(next(rest, _OPAQUE))
        if earlier is None or not waiting <= earlier.texts.keys():
            raise ValueError("a snapshot before this one is missing")
        for name in waiting:
            pieces[name].append(_inside(earlier, name))
        waiting &= set(earlier.tails)
    return {name: found[::-1] for name, found in pieces.items()}


def _list_of(pieces: Iterable[memoryview]) -> list[bytes | memoryview]:
    text: list[bytes | memoryview] = []
    for piece in filter(len, pieces):
        text += (b"," if text else b"[", piece)
    return [*(text or [b"["]), b"]"]


def _inside(part: _Part, name: str) -> memoryview:
    return part.texts[name][1:-1]


def _list(text: memoryview, before: tuple[int, bytes] | None) -> tuple[tuple[int, bytes], bytes | None]:
    """How a list is known to the next snapshot, and the list of the elements that it has beyond the one
    before, which is known so; None where it does not begin with that list."""
    length, known = before or (0, b"")
    # The text goes through the hash once, with a stop where the list before would end.
    begins = length > 2 and length <= len(text) and text[length - 1] in b",]"
    digest = sha256(text[: length - 1] if begins else b"")
    grown = begins and digest.digest() == known
    digest.update(text[length - 1 if begins else 0 : -1])
    beyond = bytes(text[length:]) or b"]"
    return (len(text), digest.digest()), b"[" + beyond if grown else None


def _part(stored: bytes) -> _Part | None:
    """A part, or None for a snapshot that was stored as it was."""
    kind = stored[:1]
    if kind == _OPAQUE:
        return None
    data = memoryview(stored)[5:]
    if kind not in (_PLAIN, _PACKED) or stored[1:5] != _check(data):
        raise ValueError("a snapshot is not as it was written")
    if kind == _PACKED:
        data = memoryview(zlib.decompress(data))
    place = 4 + int.from_bytes(data[:4])
    head = _decode_head(data[4:place])
    texts: dict[str, memoryview] = {}
    for name, size in head.sizes.items():
        texts[name] = data[place : place + size]
        place += size
    return _Part(texts, head.tails, head.lists)


def _packed(data: bytes) -> bytes:
    """The data compressed, or as it is where a sample says that it would not get half as small."""
    sample = data[len(data) // 2 :][:_SAMPLE]
    if len(data) > 16 * _SAMPLE and 2 * len(zlib.compress(sample, 1)) >= len(sample):
        return data
    return zlib.compress(data, 1)


def _check(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(4)
