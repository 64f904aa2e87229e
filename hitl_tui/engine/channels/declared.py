"""From what a user declares to a JSON Schema: a schema, a Python type or a pydantic model (SPEC 3)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from hitl_tui.errors import GraphInvalid

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
    """A JSON Schema from a schema, a Python type or a pydantic model; {} fits anything.

    Args:
        channel: named in errors.
        of_stored: describe models as channels hold them, by the names that `model_dump` gives their fields;
            else as they are read, by their aliases.

    Raises:
        GraphInvalid: names the channel and what was found.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    by_alias = not of_stored or any(map(_dumps_aliases, _leaves(given)))
    if hasattr(given, "model_json_schema"):
        return dict(given.model_json_schema(by_alias=by_alias))
    # A type made with pydantic's own, such as list[Plan] or PositiveInt, has imported it.
    pydantic = sys.modules.get("pydantic")
    import msgspec

    try:
        if pydantic and any(map(_is_of_pydantic, _leaves(given))):
            raise TypeError  # msgspec would leave out what it does not know of
        return msgspec.json.schema(given)
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


def type_word(schema: Mapping[str, Any], default: Any) -> str:
    """A short word for a channel's type, from its schema or else from its default; "" for any."""
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
    """What a type is made of, constraints included: of list[Annotated[int, Gt(0)]] int and Gt(0)."""
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
