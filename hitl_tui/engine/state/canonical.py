"""Canonical JSON, equality and hashes.

RFC 8785, except that integers of any size are written in full.  msgspec writes the same bytes about
ten times faster unless a value holds floats or keys beyond ASCII; a property test keeps both equal.

Specified in docs/spec/values.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from hitl_tui.engine.state.frozen import JOINED, PART, PLAIN, SIZE_SHIFT, known

EMPTY_LIST_DIGEST = sha256(b"list").digest()

_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_encode = msgspec.json.Encoder().encode
_SCALARS = frozenset((str, int, bool, type(None)))
_FLAT = _SCALARS | {float}


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of a JSON value; the value must have passed `normalise`.

    Large frozen values cache their bytes, so parts shared with a value encoded before are not encoded again.
    """
    kind = type(value)
    if kind in _SCALARS:
        return _encode_sorted(value)
    if kind is float:
        return _float(value)
    facts = known(value)
    if not facts:
        return b"".join(_pieces(value)) if _has_parts(value) else _written(value, plain=_is_plain(value))
    if facts & JOINED:
        return b"".join(_pieces(value))
    if facts < PART << SIZE_SHIFT:
        return _written(value, plain=bool(facts & PLAIN))
    try:
        return value.json  # type: ignore[no-any-return]
    except AttributeError:
        value.json = _written(value, plain=bool(facts & PLAIN))
        return value.json  # type: ignore[no-any-return]


def _written(value: Any, *, plain: bool) -> bytes:
    return _encode_sorted(value) if plain else b"".join(_pieces(value))


def _has_parts(value: Any) -> bool:
    """Whether a value made by a reducer has large parts that were normalised before."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if _FLAT.issuperset(map(type, parts)):
        return False
    return any(known(part) >= PART << SIZE_SHIFT for part in parts)


def _is_plain(value: Any) -> bool:
    """True where msgspec writes canonical bytes: no floats, only ASCII keys."""
    if facts := known(value):
        return bool(facts & PLAIN)
    if isinstance(value, list):
        return _are_plain(value)
    if isinstance(value, dict):
        return all(map(str.isascii, value)) and _are_plain(value.values())
    return not isinstance(value, float)


def _are_plain(values: Collection[Any]) -> bool:
    return _SCALARS.issuperset(map(type, values)) or all(map(_is_plain, values))


def _pieces(value: Any) -> Iterable[bytes]:
    if isinstance(value, float):
        yield _float(value)
    elif isinstance(value, list):
        before = b"["
        for item in value:
            yield before + canonical(item)
            before = b","
        yield b"]" if value else b"[]"
    elif isinstance(value, dict):
        before = b"{"
        for key in sorted(value) if all(map(str.isascii, value)) else sorted(value, key=_utf16):
            yield b"%b%b:%b" % (before, _encode_sorted(key), canonical(value[key]))
            before = b","
        yield b"}" if value else b"{}"
    else:
        yield _encode_sorted(value)


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _float(value: float) -> bytes:
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value)).encode()
    import rfc8785

    return rfc8785.dumps(value)


def equal(a: Any, b: Any) -> bool:
    """Return whether two values have the same canonical bytes: 1 equals 1.0 and True differs from 1."""
    if a is b:
        return True
    if type(a) is type(b) and isinstance(a, (str, int, type(None))):
        return bool(a == b)
    return canonical(a) == canonical(b)


def item_hash(value: Any) -> bytes:
    """SHA-256 digest of the canonical bytes."""
    return sha256(canonical(value)).digest()


def extend_chain(digest: bytes, items: Iterable[Any]) -> bytes:
    """Return the digest of a list channel after appending items, from its digest before."""
    for item in items:
        digest = sha256(digest + sha256(canonical(item)).digest()).digest()
    return digest


def channel_hash(value: Any) -> bytes:
    """Return the digest of a channel's value: a chain over the elements of a list, else `item_hash`."""
    return extend_chain(EMPTY_LIST_DIGEST, value) if isinstance(value, list) else item_hash(value)


def state_hash(digests: Mapping[str, bytes]) -> bytes:
    """Return the digest of a whole state, from the digests of its channels."""
    names, text = _state_text(tuple(digests))
    return sha256((text % tuple([digests[name].hex() for name in names])).encode()).digest()


@lru_cache(maxsize=64)
def _state_text(channels: tuple[str, ...]) -> tuple[list[str], str]:
    """Return the channels in order, and the state's canonical JSON with a placeholder for each digest."""
    names = sorted(channels)
    pairs = ",".join(f'"{name.replace("%", "%%")}":"sha256:%s"' for name in names)
    return names, f"{{{pairs}}}"


DIGEST_HEX = 64


def state_text(digests: Mapping[str, bytes]) -> tuple[bytearray, Mapping[str, int]]:
    """Return the canonical JSON of a state's digests, and the position in it of each channel's hex digest."""
    text, places = bytearray(b"{"), {}
    for name in sorted(digests):
        text += b'"%s":"sha256:' % name.encode()
        places[name] = len(text)
        text += b'%s",' % digests[name].hex().encode()
    text[-1:] = b"}" if digests else b"{}"
    return text, places


def show_hash(digest: bytes) -> str:
    """Format a digest for people and files."""
    return f"sha256:{digest.hex()}"


class GrowingHashes:
    """Hashes channels of consecutive states; a list that grows at its end costs only its new elements."""

    def __init__(self) -> None:
        # By channel: the JSON of the list but for its last byte, its length and its hash.
        self._lists: dict[str, tuple[bytes, int, bytes]] = {}

    def of(self, name: str, value: Any) -> bytes:
        """Return the hash of a channel's value."""
        if not isinstance(value, list):
            return channel_hash(value)
        data = _encode(value)
        start, length, digest = self._lists.get(name, (b"", 0, b""))
        if length and data.startswith(start) and data[len(start) : len(start) + 1] in (b",", b"]"):
            digest = extend_chain(digest, value[length:])
        else:
            digest = channel_hash(value)
        self._lists[name] = (data[:-1], len(value), digest)
        return digest
