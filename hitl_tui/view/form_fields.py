"""What stands in a field of a form: values as texts, texts as values, and what may be typed, in words."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from hitl_tui.view.json_text import NotJson, read_json

_YES: Final = ("yes", "y", "true", "on", "1")
_NO: Final = ("no", "n", "false", "off", "0")
_MOST_OPTIONS: Final = 100
_DATES: Final = {
    "date": ("a date, as 2026-11-30", datetime.date.fromisoformat),
    "date-time": ("a date and a time, as 2026-11-30T15:00:00Z", datetime.datetime.fromisoformat),
    "time": ("a time, as 15:00:00", datetime.time.fromisoformat),
}
_KINDS: Final = {
    "number": "number",
    "integer": "whole number",
    "many": "any of these",
    "list": "with commas between",
    "json": "JSON",
}


_MOST_NAMES = 4


class Problem(ValueError):
    """A text that is no value of its field; the message says why."""


class Named(Protocol):
    """A value to choose, and the word for it."""

    @property
    def word(self) -> str:
        """The word."""

    @property
    def value(self) -> Any:
        """The value."""


def options_of(kind: str, schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What a schema lets one choose from: (word, value); empty where it is no list of constants."""
    if kind == "yesno":
        return [("yes", True), ("no", False)]
    values = schema.get("enum")
    if isinstance(values, list):
        named = [(_word(value), value) for value in values if value is not None]
    else:
        parts = schema.get("oneOf", schema.get("anyOf"))
        if not isinstance(parts, list) or not all(isinstance(p, Mapping) and "const" in p for p in parts):
            return []
        named = [(str(part.get("title") or _word(part["const"])), part["const"]) for part in parts]
    words = [word for word, _ in named]
    return named if named and len(set(words)) == len(words) and len(words) <= _MOST_OPTIONS else []


def hint_of(kind: str, schema: Mapping[str, Any], items: Mapping[str, Any]) -> str:
    """What may be typed, such as "whole number, 1 to 5"; `items` are those of a list."""
    words = [_KINDS[kind]] if kind in _KINDS else []
    if kind == "date":
        words.append(_DATES[schema["format"]][0])
    if kind in ("number", "integer"):
        low, high = schema.get("minimum"), schema.get("maximum")
        words += [_range(low, high)] if (low, high) != (None, None) else []
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        words += [f"above {above}"] if above is not None else []
        words += [f"below {below}"] if below is not None else []
        words += [f"a multiple of {schema['multipleOf']}"] if "multipleOf" in schema else []
    if kind == "text":
        low, high = schema.get("minLength"), schema.get("maxLength")
        words += [f"{_range(low, high)} characters"] if (low, high) != (None, None) else []
        words += [f"like {schema['pattern']}"] if "pattern" in schema else []
        words += [str(schema["format"])] if "format" in schema else []
    if kind in ("many", "list"):
        low, high = schema.get("minItems"), schema.get("maxItems")
        words += [f"{_range(low, high)} of them"] if (low, high) != (None, None) else []
    if kind == "json" and (names := list(items.get("properties", ()))):
        pairs = ", ".join(f"{json.dumps(name)}: …" for name in names[:_MOST_NAMES])
        words.append(f"as [{{{pairs}{', …' if len(names) > _MOST_NAMES else ''}}}]")
    return ", ".join(words)


def field_text(kind: str, value: Any, options: Sequence[Named]) -> str | None:
    """A value as the text of its field, None where it is none that the field could hold."""
    if kind in ("one", "yesno", "many"):
        many = kind == "many" and isinstance(value, list)
        words = [_named(one, options) for one in (value if many else [value])]
        return None if None in words else ", ".join(word for word in words if word is not None)
    if kind == "json":
        return json.dumps(value, ensure_ascii=False)
    if kind == "list":
        plain = isinstance(value, list) and all(
            not isinstance(one, str) or (one.strip() == one and one and "," not in one and one[0] != "[")
            for one in value
        )
        return ", ".join(_word(one) for one in value) if plain else json.dumps(value, ensure_ascii=False)
    if kind in ("text", "date"):
        return value if isinstance(value, str) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return json.dumps(value) if number else None


def read_text(kind: str, text: str, options: Sequence[Named], schema: Mapping[str, Any]) -> Any:
    """The value of a text that is not empty.

    Raises:
        Problem: it is none of this kind.
    """
    if kind == "text":
        return text
    text = text.strip()
    if kind in ("number", "integer"):
        return _number(text, whole=kind == "integer")
    if kind == "yesno":
        return _yes(text)
    if kind == "one":
        return _option(text, options)
    if kind == "many":
        words = _split(text)
        return [_option(word, options) for word in dict.fromkeys(words)]
    if kind == "list":
        return _items(text, schema)
    return _date(text, schema["format"]) if kind == "date" else _json(text)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _named(value: Any, options: Sequence[Named]) -> str | None:
    return next((one.word for one in options if type(one.value) is type(value) and one.value == value), None)


def _range(low: Any, high: Any) -> str:
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"


def _number(text: str, *, whole: bool) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Problem("must be a whole number" if whole else "must be a number")
    if whole and not number.is_integer():
        raise Problem("must be a whole number")
    return int(number) if whole else number


def _yes(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise Problem("must be yes or no")


def _option(text: str, options: Sequence[Named]) -> Any:
    """The value of a word; without one of that word, of a place in the list."""
    for same in (str, str.lower):
        for option in options:
            if same(option.word) == same(text):
                return option.value
    if text.isascii() and text.isdigit() and 1 <= int(text) <= len(options):
        return options[int(text) - 1].value
    raise Problem(f"must be one of: {', '.join(option.word for option in options)}")


def _split(text: str) -> list[str]:
    return [word for word in map(str.strip, text.split(",")) if word]


def _items(text: str, schema: Mapping[str, Any]) -> list[Any]:
    if text.startswith("["):
        found = _json(text)
        if isinstance(found, list):
            return found
    items = schema.get("items")
    kind = items.get("type") if isinstance(items, Mapping) else None
    words = _split(text)
    return (
        [_number(word, whole=kind == "integer") for word in words] if kind in ("number", "integer") else words
    )


def _date(text: str, form: str) -> str:
    what, read = _DATES[form]
    try:
        read(text)
    except ValueError:
        raise Problem(f"must be {what}") from None
    return text


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except NotJson as error:
        raise Problem(f"is no JSON: {error}") from None
