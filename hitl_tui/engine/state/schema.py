"""Schemas of channels: makes a JSON Schema from a declaration, and checks values against it.

Specified in docs/spec/channels.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin, get_type_hints
from urllib.parse import quote

from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.reducers import Part
from hitl_tui.errors import GraphInvalid, SchemaMismatch, in_words

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_TYPE_WORDS = {
    "string": "text",
    "array": "list",
    "object": "dict",
    "integer": "number",
    "number": "number",
    "boolean": "yes/no",
    "null": "null",
}


def as_schema(given: Any, channel: str, *, of_stored: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of a schema, a Python type or a pydantic model; {} fits anything.

    Args:
        channel: named in errors.
        of_stored: describe models as channels store them, with the field names of `model_dump`; else as they
            are parsed, with aliases.

    Raises:
        GraphInvalid: names the channel and the invalid schema.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    by_alias = not of_stored or any(map(_dumps_aliases, _leaves(given)))
    if hasattr(given, "model_json_schema"):
        return dict(given.model_json_schema(by_alias=by_alias))
    # Only a type made from pydantic's types, such as list[Plan] or PositiveInt, needs pydantic, already
    # imported.
    pydantic = sys.modules.get("pydantic")
    import msgspec

    try:
        if pydantic and any(map(_is_of_pydantic, _leaves(given))):
            raise TypeError  # msgspec would ignore constraints that it does not know
        return _in_declared_order(msgspec.json.schema(given), given)
    except (TypeError, msgspec.MsgspecError) as error:
        if pydantic:
            try:
                return dict(pydantic.TypeAdapter(given).json_schema(by_alias=by_alias))
            except pydantic.errors.PydanticUserError:
                pass
        raise GraphInvalid(
            f"channel {channel!r}: no schema can be made from {given!r} ({str(error).splitlines()[-1]})",
            "give a JSON Schema, a type such as list[str], a dataclass or a pydantic model",
        ) from None


def _in_declared_order(schema: dict[str, Any], given: Any) -> dict[str, Any]:
    """Restore the declared order of each enum's values, which msgspec sorts."""
    orders: dict[frozenset[Any], tuple[Any, ...]] = {}
    seen: list[Any] = []
    left = [given]
    while left:
        kind = left.pop()
        if any(kind is known for known in seen):
            continue
        seen.append(kind)
        values: tuple[Any, ...] = ()
        if get_origin(kind) is Literal:
            values = get_args(kind)
        elif isinstance(kind, type) and issubclass(kind, Enum):
            values = tuple(member.value for member in kind)
        elif isinstance(kind, type) and getattr(kind, "__annotations__", None):
            with suppress(Exception):  # with a name that can't be resolved, the order is unknown
                left += get_type_hints(kind, include_extras=True).values()
        else:
            left += get_args(kind)
        with suppress(TypeError):
            orders[frozenset(values)] = values
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if isinstance(part.get("enum"), list):
                values = orders.get(frozenset(part["enum"]), ())
                part["enum"] = list(values) or part["enum"]
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return schema


def type_word(schema: Mapping[str, Any], default: Any) -> str:
    """Return a short word for a channel's type, from its schema or else its default; "" for any type."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return _TYPE_WORDS.get(declared, "")
    for kind, word in (
        (bool, "yes/no"),
        (str, "text"),
        (int, "number"),
        (float, "number"),
        (list, "list"),
        (dict, "dict"),
    ):
        if isinstance(default, kind):
            return word
    return ""


def _leaves(given: Any) -> Iterator[Any]:
    """Yield the parts of a type with constraints: of list[Annotated[int, Gt(0)]] int and Gt(0)."""
    parts = get_args(given)
    if not parts:
        yield given
    for part in parts:
        yield from _leaves(part)


def _dumps_aliases(kind: Any) -> bool:
    """Whether a type is a pydantic model whose `model_dump` names fields by their aliases."""
    return bool(getattr(kind, "model_config", {}).get("serialize_by_alias"))


def _is_of_pydantic(part: Any) -> bool:
    """Whether a part of a type is a constraint that pydantic reads."""
    return type(part).__module__.partition(".")[0] in ("pydantic", "pydantic_core", "annotated_types")


Check = Callable[..., None]
"""Called with a value and its path in the update, such as "[2]", "" for the update itself."""

# If a schema has only these keys, adding a valid element to a valid list keeps it valid.
_ANNOTATIONS: Final = frozenset({"title", "description", "default", "examples", "$comment", "$schema", "$id"})
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_GROWS_SAFELY: Final = {"type", "items", *_ANNOTATIONS, *_DEFINITIONS}

_WHOLE: Final = "json-schema:///channel"
TYPE_WORDS: Final = {
    "bool": "boolean", "str": "string", "text": "string", "int": "integer", "float": "number",
    "list": "array", "dict": "object", "none": "null",
}  # fmt: skip
"""JSON Schema's names for types that are often written otherwise."""
"""The URL of a channel's whole schema, to which the schemas of its parts refer."""


class ChannelSchema:
    """Compiled checks of one channel.

    Args:
        schema: a JSON Schema.
        part: the part of it that an update must fit (`Reducer.part`).
        appends: whether the reducer only adds elements at the end of a list.
        picks: whether the next value is the update itself, which is checked already.
        private: whether errors must not quote the value.
    """

    def __init__(
        self,
        channel: str,
        schema: dict[str, Any],
        part: Part,
        *,
        appends: bool = False,
        picks: bool = False,
        private: bool = False,
    ) -> None:
        self.channel = channel
        self.is_any = not schema
        """Whether it says nothing about a value."""
        self._whole = _compile(schema, channel, private)
        self._valid_by_construction = picks or (appends and _grows_safely(schema))
        self._items: Check | None = None
        self._properties: dict[str, Check] = {}
        self._part = part
        # With prefixItems, `items` applies only to later elements, so the whole list has to be checked.
        items = None if "prefixItems" in schema else schema.get("items")
        if part in ("items", "members") and isinstance(items, dict):
            self._items = _compile(items, channel, private, whole=schema, path="items")
        if part == "properties":
            self._properties = {
                name: check
                for name, inner in schema.get("properties", {}).items()
                if isinstance(inner, dict)
                and (check := _compile(inner, channel, private, name, whole=schema, path=_of_property(name)))
            }

    def check_update(self, update: Any) -> None:
        """Check an update, before it is reduced, against its part of the schema.

        Raises:
            SchemaMismatch: names channel, path, and the expected and actual value.
        """
        if self._part == "whole":
            if self._whole:
                self._whole(update)
        elif self._part == "items":
            self._check_item(update)
        elif self._part == "members":
            self._check_members(update)
        elif self._part == "properties" and isinstance(update, dict):
            for name, check in self._properties.items():
                if name in update:
                    check(update[name])

    def check_value(self, value: Any) -> None:
        """Check a whole value, such as a human's edit or a default.

        Raises:
            SchemaMismatch: as `check_update`.
        """
        if self._whole:
            self._whole(value)

    def check_reduced(self, value: Any) -> None:
        """Check a reducer's result, given a valid old value and a checked update.

        Raises:
            SchemaMismatch: as `check_update`.
        """
        if self._whole and not self._valid_by_construction:
            self._whole(value)

    def _check_item(self, update: Any) -> None:
        if self._items is None:
            return
        try:
            self._items(update)
        except SchemaMismatch as error:
            if isinstance(update, list) and update and all(_passes(self._items, item) for item in update):
                raise SchemaMismatch(
                    error.message,
                    "append adds a list as one element; use the reducer extend to add its members",
                ) from None
            raise

    def _check_members(self, update: Any) -> None:
        if self._items is None:
            return
        if not isinstance(update, list):
            self._items(update)
            return
        at = 0
        try:
            for item in update:
                self._items(item)
                at += 1
        except SchemaMismatch:
            self._items(update[at], f"[{at}]")


def _grows_safely(schema: Mapping[str, Any]) -> bool:
    lists = schema.get("type", "array") in ("array", ["array"])
    return lists and isinstance(schema.get("items", {}), dict) and set(schema) <= _GROWS_SAFELY


def _passes(check: Check, value: Any) -> bool:
    try:
        check(value)
    except SchemaMismatch:
        return False
    return True


def _compile(
    schema: dict[str, Any],
    channel: str,
    private: bool,
    at: str = "",
    *,
    whole: dict[str, Any] | None = None,
    path: str = "",
) -> Check | None:
    """Return a check of the value at `at`, which raises `SchemaMismatch`; None if anything fits.

    Args:
        whole: the schema that contains this one at `path`; references are resolved in it.
    """
    rules = schema.keys() - _ANNOTATIONS - _DEFINITIONS
    if not rules:
        return None
    if rules == {"type"} and schema["type"] == "string":
        return _text_check(channel, at)
    build = cache(partial(_validator, schema, channel, private, whole, path))
    fits = _surely_fits(schema)
    is_valid: Callable[[Any], bool] = (
        build().is_valid if fits is None else lambda value: fits(value) or build().is_valid(value)
    )

    def check(value: Any, at: str = at) -> None:
        if not is_valid(value):
            raise _mismatch(channel, at, build().iter_errors(value), private)

    return check


_EXACTLY: Final[Mapping[str, type]] = {
    "integer": int, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip


def _surely_fits(schema: Mapping[str, Any]) -> Callable[[Any], bool] | None:
    """Return a quick check for simple schemas that saves importing the validator library (4 ms).

    None if the schema may be invalid, or has more than a type or an enum of texts.
    """
    kind, words = _EXACTLY.get(str(schema.get("type"))), schema.get("enum")
    if len(schema) == 1 and kind is not None:
        return lambda value: type(value) is kind
    if len(schema) == 1 and isinstance(words, list) and words and all(type(word) is str for word in words):
        known = frozenset(words)
        return lambda value: type(value) is str and value in known
    return None


def _validator(
    schema: dict[str, Any], channel: str, private: bool, whole: dict[str, Any] | None, path: str
) -> Validator:
    """Return a validator of any value; raises `GraphInvalid` if the schema is invalid."""
    import jsonschema_rs

    if whole and _has_keywords_of_documents(whole):
        dialect = {"$schema": whole["$schema"]} if "$schema" in whole else {}
        schema = {**dialect, "$ref": f"{_WHOLE}#/{path}"}
    try:
        mask = "[private]" if private else None
        return jsonschema_rs.validator_for(schema, mask=mask, retriever=partial(_retrieve, whole))
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise GraphInvalid(
            f"channel {channel!r}: the schema is not valid: {str(error).splitlines()[0]}",
            _type_hint(schema) or "see json-schema.org",
        ) from None


def _type_hint(schema: Any) -> str:
    """Suggest JSON Schema's name for the first unknown type in a schema; "" if there is none."""
    for key, part in schema.items() if isinstance(schema, Mapping) else ():
        if key == "type" and isinstance(part, str) and part not in TYPE_WORDS.values():
            meant = TYPE_WORDS.get(part.lower())
            return (
                f"did you mean {meant!r}?"
                if meant
                else f"types: {', '.join(dict.fromkeys(TYPE_WORDS.values()))}"
            )
        if hint := _type_hint(part):
            return hint
    return ""


def _has_keywords_of_documents(schema: Any) -> bool:
    """Whether a schema has references, anchors or a dialect, so that its parts can't be used alone."""
    if isinstance(schema, Mapping):
        return any(str(key).startswith("$") or _has_keywords_of_documents(schema[key]) for key in schema)
    return isinstance(schema, (list, tuple)) and any(map(_has_keywords_of_documents, schema))


def _of_property(name: str) -> str:
    """Return the JSON pointer to a property's schema, escaped for a URL."""
    return f"properties/{quote(name.replace('~', '~0').replace('/', '~1'), safe='~')}"


def _retrieve(whole: dict[str, Any] | None, address: str) -> Any:
    """Resolve references without ever loading from the network or from files."""
    if whole is not None and address == _WHOLE:
        return whole
    raise ValueError(f"a schema must hold all it refers to, and {address} is outside")


def _text_check(channel: str, at: str) -> Check:
    def check(value: Any, at: str = at) -> None:
        if not isinstance(value, str):
            raise SchemaMismatch(
                f"channel {channel!r}{_at(at)}: expected text, found {in_words(value)}",
                "give a text value",
            )

    return check


def _mismatch(channel: str, at: str, errors: Iterable[Any], private: bool) -> SchemaMismatch:
    error = _nearest(next(iter(errors)))
    rules = [str(part) for part in error.schema_path]
    # Of a private value only keys that its schema names are quoted.
    named = set(rules) if private else None
    path = at + "".join(_part(part, named) for part in error.instance_path)
    about_keys = "propertyNames" in rules or rules[-1:] in (
        ["additionalProperties"],
        ["unevaluatedProperties"],
    )
    message = "a key is not allowed" if private and about_keys else _message(error, private)
    shown = message if len(message) <= 300 else f"{message[:140]} … {message[-150:]}"
    hint = _HINTS.get(rules[-1] if rules else "", "give a value that fits")
    return SchemaMismatch(
        f"channel {channel!r}{_at(path)}: {shown}",
        f"{hint}; see the rule {'/'.join(rules)} in the channel's schema",
    )


def _part(part: int | str, named: set[str] | None) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part if named is None or part in named else '[private]'}"


def _alternatives(error: Any) -> list[Any]:
    """Return the first error of each alternative; [] if the schema has no alternatives."""
    return [way[0] for way in getattr(error.kind, "context", None) or () if way]


def _of_another_type(way: Any, error: Any) -> bool:
    """Whether an alternative is for values of another type."""
    return way.kind.name == "type" and list(way.instance_path) == list(error.instance_path)


def _nearest(error: Any) -> Any:
    """Return the error of the only alternative for the value's type, at any depth."""
    candidates = [way for way in _alternatives(error) if not _of_another_type(way, error)]
    return _nearest(candidates[0]) if len(candidates) == 1 else error


def _message(error: Any, private: bool) -> str:
    """Return jsonschema's message with the actual value; for alternatives what each expects."""
    if error.kind.name == "const":
        actual = "[private]" if private else canonical(error.instance).decode()
        return f"{actual}, where {error.message}"
    here = _alternatives(error)
    if not here or not all(_of_another_type(way, error) for way in here):
        return str(error.message)
    actual, _, _ = str(here[0].message).partition(" is not of type")
    types = [str(way.message).rpartition("of type")[2].strip() for way in here]
    return f"{actual} is not of type {' or '.join(dict.fromkeys(types))}"


_HINTS = {
    "type": "give a value of that type",
    "enum": "give one of those values",
    "const": "give that value",
    "required": "add the key",
    "additionalProperties": "leave the key out, or allow it in the schema",
    "minimum": "give a larger number",
    "exclusiveMinimum": "give a larger number",
    "maximum": "give a smaller number",
    "exclusiveMaximum": "give a smaller number",
    "maxItems": "keep fewer items, as last_n(N) does",
    "maxLength": "give a shorter text",
    "minLength": "give a longer text",
    "uniqueItems": "leave out what already exists, as set_union does",
}


def _at(path: str) -> str:
    return f" at {path.lstrip('.')}" if path else ""
