"""Snapshots as they are stored: each contains only what is new since the one before it.

A list that only grew is stored as its new elements, so that all snapshots of an append-only channel together
take as much space as its value. Parts of other large values that are already in the snapshot before are
stored as their positions there. All this works on JSON text, without decoding values.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

import msgspec

_PLAIN, _PACKED, _OPAQUE = b"f", b"c", b"o"
_SAMPLE = 1024
_LIST = ord("[")

_SMALLEST_SHARED = 4096
"""From this number of bytes of JSON on, a value is compared with the one before it."""
_LONGEST_CHAIN = 16
"""Most snapshots of a value that build on one another, so that reading one reads at most these."""
# JSON is compared in pieces that end where an item ends, so that moved text is found again.
_LONGEST_PIECE = 2048
_ITEM_ENDS = (b"],", b"},", b'",')
_PIECE = re.compile(rb'.{0,2048}?[]}"],|.{1,2048}', re.DOTALL)
_FIRST_STEP = 64


_Run = tuple[int, int, int]
"""A range of bytes in the value before, and how many new bytes follow it."""


class _Head(msgspec.Struct, frozen=True):
    """The header of a part, before its texts.

    `sizes` has the length of each channel's text in bytes. For names in `tails` the text is a list that
    continues the one in the part before. `lists` has, for each whole list, the length of its JSON and the
    SHA-256 of all but its last byte, by which the next snapshot finds out that it only grew. For names in
    `shared` the text is what the value in the part before lacks; `chains` has the number of parts that make
    up such a value.
    """

    sizes: dict[str, int]
    tails: tuple[str, ...]
    lists: dict[str, tuple[int, bytes]]
    shared: dict[str, list[_Run]] = {}
    chains: dict[str, int] = {}


class _Part(msgspec.Struct, frozen=True):
    """What one snapshot adds: the JSON texts of channels, described by its header."""

    texts: Mapping[str, memoryview]
    head: _Head

    @property
    def open(self) -> set[str]:
        """The channels that need the part before."""
        return {*self.head.tails, *self.head.shared}


_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(_Head).decode
_decode_values = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def part_of(snapshot: bytes, before: Iterable[bytes]) -> bytes:
    """Return what to store of a snapshot.

    Args:
        before: the stored parts before it, newest first; only as many as needed are read.
    """
    try:
        values = _decode_values(snapshot)
    except msgspec.MsgspecError:
        return _OPAQUE + snapshot
    rest = iter(before)
    wholes = {name: memoryview(raw) for name, raw in values.items()}
    # Only lists and large values are built on earlier parts.
    builds = any(text[0] == _LIST or len(text) >= _SMALLEST_SHARED for text in wholes.values())
    newest = _part(first) if builds and (first := next(rest, None)) else None
    texts: dict[str, bytes | memoryview] = {}
    tails: list[str] = []
    lists: dict[str, tuple[int, bytes]] = {}
    large: list[str] = []
    for name, text in wholes.items():
        texts[name], tail = text, None
        if text[0] == _LIST:
            lists[name], tail = _list(text, newest.head.lists.get(name) if newest else None)
        if tail is not None:
            texts[name] = tail
            tails.append(name)
        elif newest and len(text) >= _SMALLEST_SHARED and name in newest.texts:
            large.append(name)
    chains = {name: newest.head.chains[name] for name in tails if newest and name in newest.head.chains}
    shared: dict[str, list[_Run]] = {}
    if newest and large:
        large = [name for name in large if newest.head.chains.get(name, 0) < _LONGEST_CHAIN]
        for name, pieces in _pieces(newest, rest, large).items():
            runs, own = _runs(b"".join(_value(pieces)), bytes(texts[name]))
            if 2 * len(own) <= len(texts[name]):
                shared[name], texts[name] = runs, own
                chains[name] = newest.head.chains.get(name, 0) + 1
    sizes = {name: len(text) for name, text in texts.items()}
    head = _encode(_Head(sizes, tuple(tails), lists, shared, chains))
    kind, data = _PLAIN, b"".join((len(head).to_bytes(4), head, *texts.values()))
    again = sum(len(texts[name]) for name in texts.keys() - set(tails) - shared.keys())
    # Only what is stored again and again is worth compressing: reads spend most time on it.
    if 2 * again > len(data):
        packed = _compressed(data)
        if 2 * len(packed) < len(data):
            kind, data = _PACKED, packed
    return kind + _check(data) + data


def whole(parts: Iterable[bytes]) -> bytes:
    """Return the snapshot from its part and those before it, newest first; reads only as many as needed.

    Raises:
        ValueError: a part is damaged or missing.
    """
    rest = iter(parts)
    newest = next(rest)
    part = _part(newest)
    return newest[1:] if part is None else _text(part, _pieces(part, rest, part.open))


def each_whole(parts: Iterable[bytes], before: Iterable[bytes]) -> Iterator[bytes]:
    """Yield consecutive snapshots from their parts, oldest first.

    Args:
        before: the parts before the first of them, newest first; only as many as needed are read.

    Raises:
        ValueError: a part is damaged or missing.
    """
    pieces: _Pieces | None = None
    for stored in parts:
        part = _part(stored)
        if part is None:
            pieces = {}
            yield stored[1:]
            continue
        if pieces is None:
            pieces = _pieces(part, iter(before), part.texts)
        else:
            pieces = {name: _pieces_after(part, name, pieces) for name in part.texts}
        yield _text(part, pieces)


_Pieces = dict[str, list[bytes | memoryview]]
"""The JSON of channels, each as a value and the contents of lists to be appended to it."""


def _text(part: _Part, pieces: _Pieces) -> bytes:
    """Return a snapshot as JSON, given the pieces of the channels that its part does not have whole."""
    text: list[bytes | memoryview] = [b"{"]
    for name, own in part.texts.items():
        text += (b"," if len(text) > 1 else b"", _encode(name), b":")
        text += _value(pieces[name]) if name in pieces else (own,)
    text.append(b"}")
    # Joined at once: an extra copy of a long list takes as long as reading it.
    return b"".join(text)


def _value(pieces: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """Yield a value as JSON, in pieces to be joined."""
    first, *more = pieces
    if not more:
        return [first]
    text: list[bytes | memoryview] = []
    for inside in filter(len, (first[1:-1], *more)):
        text += (b"," if text else b"[", inside)
    return [*(text or [b"["]), b"]"]


def _pieces(newest: _Part, rest: Iterator[bytes], names: Iterable[str]) -> _Pieces:
    """Return the pieces of some channels of a part, from the parts before it, newest first."""
    part, wanted = newest, set(names)
    chain = [(part, wanted)]
    while waiting := wanted & part.open:
        earlier = _part(next(rest, _OPAQUE))
        if earlier is None or not waiting <= earlier.texts.keys():
            raise ValueError("a snapshot before this one is missing")
        part, wanted = earlier, waiting
        chain.append((part, wanted))
    pieces: _Pieces = {}
    for part, wanted in reversed(chain):
        pieces = {name: _pieces_after(part, name, pieces) for name in wanted}
    return pieces


def _pieces_after(part: _Part, name: str, before: _Pieces) -> list[bytes | memoryview]:
    """Return the pieces of a channel in a part, given those in the part before, which are consumed."""
    own = part.texts[name]
    if name not in part.open:
        return [own]
    if name not in before:
        raise ValueError("a snapshot before this one is missing")
    if name in part.head.tails:
        before[name].append(own[1:-1])
        return before[name]
    return [_apply_runs(b"".join(_value(before[name])), part.head.shared[name], own)]


def _runs(old: bytes, new: bytes) -> tuple[list[_Run], bytes]:
    """Return how the bytes of `new` are made from those of `old`, and the new bytes."""
    runs: list[_Run] = []
    own: list[bytes] = []
    places: dict[bytes, int] = {}
    start = stop = length = at = following = 0
    while at < len(new):
        if not length:
            same = _common(old, stop, new, at)
            stop, at = stop + same, at + same
            following = stop + len(_piece(old, stop))
        piece = _piece(new, at)
        at += len(piece)
        # Most steps change items in place: the text after them is where it was.
        if not length and old.startswith(_piece(new, at), following):
            own.append(piece)
            runs.append((start, stop, len(piece)))
            start = stop = following
            continue
        places = places or _places(old)
        if (place := places.get(piece, -1)) >= 0:
            runs.append((start, stop, length))
            start, stop, length = place, place + len(piece), 0
        else:
            own.append(piece)
            length += len(piece)
    return [*runs, (start, stop, length)], b"".join(own)


def _piece(text: bytes, start: int) -> bytes:
    found = _PIECE.match(text, start)
    return found[0] if found else b""


def _places(text: bytes) -> dict[bytes, int]:
    """Return where each piece of a text is."""
    return {found[0]: found.start() for found in _PIECE.finditer(text)}


def _common(old: bytes, old_start: int, new: bytes, new_start: int) -> int:
    """Return how many bytes are the same from two places on, up to where an item ends."""
    same, step = 0, _FIRST_STEP
    while same < len(new) - new_start and old.startswith(_cut(new, new_start + same, step), old_start + same):
        same, step = same + step, step * 2
    while step := step // 2:
        if old.startswith(_cut(new, new_start + same, step), old_start + same):
            same += step
    same = min(same, len(new) - new_start)
    end = new_start + same
    if end == len(new):
        return same
    last = _cut(new, end - min(same, _LONGEST_PIECE), min(same, _LONGEST_PIECE))
    ended = max(map(last.rfind, _ITEM_ENDS))
    if ended < 0:  # inside a long text, or inside the first item
        return same if same >= _LONGEST_PIECE else 0
    return same - len(last) + ended + 2


def _cut(text: bytes, start: int, length: int) -> bytes:
    return text[start : start + length]


def _apply_runs(old: bytes, runs: list[_Run], own: memoryview) -> bytes:
    """Return the new bytes from the old ones and the result of `_runs`."""
    text: list[bytes | memoryview] = []
    place = 0
    for start, stop, length in runs:
        if not 0 <= start <= stop <= len(old) or not 0 <= length <= len(own) - place:
            raise ValueError("a snapshot does not continue the one before it")
        text += (old[start:stop], own[place : place + length])
        place += length
    return b"".join(text)


def _list(text: memoryview, before: tuple[int, bytes] | None) -> tuple[tuple[int, bytes], bytes | None]:
    """Return how the next snapshot can recognise a list, and the list of its new elements.

    The second is None if the list does not start with the one before, as recognised by `before`."""
    length, known = before or (0, b"")
    # The text is hashed once, with an intermediate digest where the list before would end.
    begins = length > 2 and length <= len(text) and text[length - 1] in b",]"
    digest = sha256(text[: length - 1] if begins else b"")
    grown = begins and digest.digest() == known
    digest.update(text[length - 1 if begins else 0 : -1])
    beyond = bytes(text[length:]) or b"]"
    return (len(text), digest.digest()), b"[" + beyond if grown else None


def _part(stored: bytes) -> _Part | None:
    """Return a part, or None for a snapshot that was stored whole."""
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
    return _Part(texts, head)


def _compressed(data: bytes) -> bytes:
    """Return the data compressed, or unchanged if a sample does not shrink to half its size."""
    sample = data[len(data) // 2 :][:_SAMPLE]
    if len(data) > 16 * _SAMPLE and 2 * len(zlib.compress(sample, 1)) >= len(sample):
        return data
    return zlib.compress(data, 1)


def _check(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(4)
