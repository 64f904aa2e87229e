"""Converts facts to the documents of `--json`, version 1, and to their JSON Schema; see `shapes`.

Each document is one object on one line. Times are ISO 8601 in UTC, durations seconds, hashes `sha256:` and
hexadecimal digits, private values `[private]`; an optional text is null if it is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, reduce
from inspect import get_annotations
from operator import attrgetter, or_
from types import GenericAlias, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    ForwardRef,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
)

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log.events import PRIVATE, Event
from hitl_tui.engine.log.units import about
from hitl_tui.errors import HitlError
from hitl_tui.view.shapes import SHAPES, Document, ErrorDocument, EventDocument, From

VERSION = 1
PRIVATE_TEXT = "[private]"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_json(value: Any) -> str:
    """Return one line of ASCII, so that no byte of it can control a terminal."""
    import json

    try:
        data = _encode(value)
    except (msgspec.MsgspecError, OverflowError, TypeError, ValueError):  # such as an integer of many digits
        data = b"\x7f"
    if data.isascii() and b"\x7f" not in data:
        return data.decode()
    # DEL is ASCII, and the only control character that JSON does not escape.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=_other).replace(
        "\x7f", "\\u007f"
    )


def to_lines(values: Sequence[Any]) -> str:
    """Return values as `to_json` does, each with a line end."""
    try:
        data = _encode_lines(values)
    except (msgspec.MsgspecError, OverflowError, TypeError, ValueError):
        data = b"\x7f"
    if data.isascii() and b"\x7f" not in data:
        return data.decode()
    return "".join([f"{to_json(value)}\n" for value in values])


def _other(value: Any) -> Any:
    if value is PRIVATE:
        return PRIVATE_TEXT
    if isinstance(value, bytes):
        return sha(value)
    return str(value)


_encoder = msgspec.json.Encoder(enc_hook=_other)
_encode, _encode_lines = _encoder.encode, _encoder.encode_lines


def time(at: int) -> str | None:
    """Return microseconds since the epoch as ISO 8601; None for a time that no calendar has."""
    second, rest = divmod(at, 1_000_000)
    moment = _second(second)
    return moment and f"{moment}.{rest:06}Z"


@lru_cache(16)
def _second(second: int) -> str | None:
    """Return a second of the epoch without its zone; cached, as many events share one."""
    try:
        return (_EPOCH + timedelta(seconds=second)).isoformat().removesuffix("+00:00")
    except OverflowError:
        return None


def sha(digest: bytes) -> str | None:
    """Return a hash as text, None for none."""
    return f"sha256:{digest.hex()}" if digest else None


def has_secrets(graph: GraphInfo) -> bool:
    """Whether a graph has private channels, whose values a state hash could reveal."""
    return any(channel.visibility == "private" for channel in graph.channels)


def error_document(error: HitlError) -> ErrorDocument:
    """Return an exception as a document, with what to do."""
    return ErrorDocument(
        error=type(error).__name__,
        title=error.title,
        message=error.message,
        hint=error.hint,
        details=error.details,
        exit_code=int(error.exit_code),
    )


def shown(document: Document, *, secret: bool = False) -> dict[str, Any]:
    """Return a document as JSON values.

    Args:
        secret: whether the graph has private channels, so that hashes of whole states are left out.
    """
    head = {"hitl_tui": VERSION, "kind": _tag(document)}
    if isinstance(document, EventDocument):
        fact = document.event
        return {**head, "thread": document.thread, "event": _tag(fact), **_shown(fact, secret)}
    return {**head, **_shown(document, secret)}


class _Unit(NamedTuple):
    """How a plain value of a fact is shown: the function for it, and the resulting type."""

    show: Callable[[Any, bool], Any]
    shown_as: Any


_SHA = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
_UNITS: Mapping[str, _Unit] = {
    "time": _Unit(
        lambda at, _: time(at), Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | None
    ),
    "duration": _Unit(lambda duration, _: duration / 1e6, float),
    "hash": _Unit(lambda digest, _: sha(digest), _SHA | None),
    "state_hash": _Unit(
        lambda digest, secret: PRIVATE_TEXT if secret and digest else sha(digest),
        Annotated[str, Meta(pattern=r"^(sha256:[0-9a-f]{64}|\[private\])$")] | None,
    ),
    "maybe": _Unit(lambda text, _: text or None, str | None),
    "message": _Unit(lambda error, _: error.message, str | None),
    "facts": _Unit(lambda facts, _: facts, dict[str, Any] | None),
}


class _Field(NamedTuple):
    """Field of a document.

    Args:
        get: returns its value from the fact.
        type: the declared type.
        unit: the unit of the value, if its type doesn't give it.
    """

    name: str
    get: Callable[[Any], Any]
    type: Any
    unit: _Unit | None


def _parts(declared: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without `Annotated`, and the annotation."""
    return (
        (declared.__origin__, declared.__metadata__) if get_origin(declared) is Annotated else (declared, ())
    )


def _members(declared: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the one type that it is."""
    return get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)


def _unit(declared: Any) -> _Unit | None:
    """Return the unit of a type, or of the member of a union that has one."""
    kind, metas = _parts(declared)
    metas += tuple(meta for member in _members(kind) for meta in _parts(member)[1])
    unit = _said(metas).get("unit")
    return _UNITS[unit] if unit else None


def _said(metas: Iterable[Any]) -> dict[str, Any]:
    """Return what `units` declares for a field: its unit, its name in documents, whether it is inlined."""
    return {key: said for meta in metas if isinstance(meta, Meta) for key, said in (meta.extra or {}).items()}


@cache
def _fields(fact: type) -> tuple[_Field, ...]:
    """Return the fields of a fact's document; the fields of an inlined fact replace it."""
    shape = SHAPES.get(fact, fact)
    fields: list[_Field] = []
    for name, declared in _declared_in(shape).items():
        kind, metas = _parts(declared)
        source = next((meta.source for meta in metas if isinstance(meta, From)), name)
        get = attrgetter(source) if isinstance(source, str) else source
        said = _said(metas)
        if "inline" in said:
            fields += [field._replace(get=_through(get, field.get)) for field in _fields(kind)]
        elif any(isinstance(meta, Meta) and meta.description for meta in metas):
            fields.append(_Field(said.get("name", name), get, declared, _unit(declared)))
    return tuple(fields)


def _declared_in(shape: type) -> dict[str, Any]:
    """Return the fields of a struct with their types; `get_type_hints` would also resolve inner names."""
    return {
        name: declared
        for base in reversed(shape.__mro__)
        for name, declared in get_annotations(base, eval_str=True).items()
    }


def _through(outer: Callable[[Any], Any], inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda fact: inner(outer(fact))


def _shown(fact: Any, secret: bool) -> dict[str, Any]:
    """Return the fields of a fact, each converted by its type and unit."""
    document = {}
    kind: Any = type(fact)
    for name, get, _, unit in _fields(kind):
        value = get(fact)
        if type(value) in _SCALARS:  # most are strings or numbers, and each event is a document
            document[name] = value if unit is None or value is None else unit.show(value, secret)
        elif value is not UNSET:
            document[name] = _value(value, secret) if unit is None else unit.show(value, secret)
    return document


_SCALARS: Final = frozenset((str, int, float, bool, type(None), type(PRIVATE)))


def _value(value: Any, secret: bool) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is tuple:
        return [_value(item, secret) for item in value] if value else []
    return _shown(value, secret) if issubclass(kind, msgspec.Struct) else value


def output_schema() -> dict[str, Any]:
    """Return the JSON Schema of all documents."""
    # These imports define documents.
    import hitl_tui.cli.reports  # noqa: F401
    from hitl_tui.verbs import verbs

    for entry in verbs().values():
        entry.load()
    kinds = [kind for kind in Document.__subclasses__() if kind is not EventDocument]
    roots = _Shapes().of((*kinds, *_EVENTS))
    _, components = msgspec.json.schema_components(roots, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"What hitl-tui writes with --json, version {VERSION}",
        "description": (
            "One document a line, each of one kind. `run`, `resume` and `step` write an event as each "
            "happens and a result last. Hashes are `sha256:` and hexadecimal digits, times ISO 8601 in UTC, "
            "durations seconds, costs US dollars. A change that could break a reader raises `hitl_tui`."
        ),
        "oneOf": [{"$ref": f"#/$defs/{root.__name__}"} for root in roots],
        "$defs": components,
    }


_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_EVENTS = get_args(Event)


class _Shapes:
    """Builds for each fact a struct of exactly its document's fields, for msgspec to describe.

    It has no other fields, and only those that can be `UNSET` may be missing.
    """

    def __init__(self) -> None:
        self._structs: dict[type, type | None] = {}
        self._recursive: set[type] = set()

    def of(self, facts: Iterable[type]) -> list[type]:
        """Return the structs of documents and events, with all types that they use."""
        roots = [self._struct(fact) for fact in facts]
        for struct in self._structs.values():
            for fact in self._recursive:
                setattr(struct, _name(fact), self._structs[fact])  # where msgspec looks for a forward name
        return roots

    def _struct(self, fact: type) -> type:
        struct = self._structs.get(fact)
        if struct is None:
            self._structs[fact] = None
            shape = SHAPES.get(fact, fact)
            fields = [(field.name, *self._declared(field)) for field in _fields(fact)]
            struct = msgspec.defstruct(
                _name(fact), [*_head(fact), *fields], forbid_unknown_fields=True, kw_only=True
            )
            struct.__doc__ = " ".join((shape.__doc__ or "").partition("\n\n")[0].split())
            self._structs[fact] = struct
        return struct

    def _declared(self, field: _Field) -> tuple[Any, ...]:
        """Return the type of a field, and its default if it may be missing."""
        kind, metas = _parts(field.type)
        kinds = _members(kind)
        shown = field.unit.shown_as if field.unit else self._type(kind)
        for meta in metas:
            if isinstance(meta, Meta) and meta.description:
                shown = Annotated[shown, meta]
        return (shown, UNSET) if UnsetType in kinds else (shown,)

    def _type(self, declared: Any) -> Any:
        """Return the JSON type for a type."""
        if unit := _unit(declared):
            return unit.shown_as
        kind, _ = _parts(declared)
        if len(members := _members(kind)) > 1:
            return reduce(or_, map(self._type, members))
        if get_origin(kind) is tuple:
            return GenericAlias(list, (self._type(get_args(kind)[0]),))
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if kind in self._structs and self._structs[kind] is None:
                self._recursive.add(kind)
                return ForwardRef(_name(kind))
            return self._struct(kind)
        return kind


def _name(fact: type) -> str:
    """Return the name of a fact in the schema."""
    if fact in _EVENTS:
        return f"event_{_tag(fact)}"
    if issubclass(fact, Document):
        return f"kind_{_tag(fact)}"
    return _WORDS.sub("_", SHAPES.get(fact, fact).__name__.removesuffix("Shape")).lower()


def _tag(fact: Any) -> str:
    return str(fact.__struct_config__.tag)


def _head(fact: type) -> list[tuple[str, Any]]:
    """Return the fields before a document's own ones."""
    event = fact in _EVENTS
    if not event and not issubclass(fact, Document):
        return []
    fields: list[tuple[str, Any, str]] = [
        ("hitl_tui", Literal[VERSION], "The version of these documents."),
        ("kind", Literal["event" if event else _tag(fact)], "What this document is."),
    ]
    if event:
        fields += [("event", Literal[_tag(fact)], "What happened."), ("thread", str, "The thread.")]
    return [(name, Annotated[kind, about(words)]) for name, kind, words in fields]
