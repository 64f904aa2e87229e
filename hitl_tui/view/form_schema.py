"""Reading a JSON Schema as a form does: references followed, wrappers of one part taken off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_FOLLOWED: Final = 20


def plain_schema(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its local references followed and an `allOf` of one part taken off."""
    found: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    for _ in range(_FOLLOWED):
        inner = _referred(found, root)
        if inner is None:
            return found
        # What stands beside a reference, such as a description or a default, is about this use of it.
        beside = {name: value for name, value in found.items() if name not in ("$ref", "allOf")}
        found = {**inner, **beside}
    return {}


def without_null(schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """A schema without its null, as of `str | None`, and whether it had one."""
    kinds = schema.get("type")
    if isinstance(kinds, list) and "null" in kinds and len(kinds) == 2:
        return {**schema, "type": next(kind for kind in kinds if kind != "null")}, True
    for key in ("anyOf", "oneOf"):
        parts = schema.get(key)
        if not isinstance(parts, list):
            continue
        others = [part for part in parts if not _is_null(part)]
        if len(others) == len(parts):
            continue
        rest = {name: value for name, value in schema.items() if name not in (key, "default")}
        if len(others) == 1:
            return {**plain_schema(others[0], root), **rest}, True
        return {**rest, key: others}, True
    return schema, False


def _is_null(part: Any) -> bool:
    return isinstance(part, Mapping) and (part.get("type") == "null" or part.get("const", "") is None)


def _referred(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        found: Any = root
        for name in reference.removeprefix("#").strip("/").split("/"):
            found = (
                found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
            )
        return found if isinstance(found, Mapping) else {}
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], Mapping):
        return parts[0]
    return None
