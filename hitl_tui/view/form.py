"""Makes forms from the JSON Schema of an answer, and reads typed texts as its value."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.state.schema import ChannelSchema
from hitl_tui.errors import SchemaMismatch
from hitl_tui.view.format import NotJson, read_json
from hitl_tui.view.sanitise import sanitise, sanitise_line

_FOLLOWED: Final = 20


def plain_schema(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with local references resolved and an `allOf` of one part unwrapped."""
    resolved: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    for _ in range(_FOLLOWED):
        inner = _referred(resolved, root)
        if inner is None:
            return resolved
        # Keywords beside a reference, such as a description or a default, apply to this use of it.
        beside = {name: value for name, value in resolved.items() if name not in ("$ref", "allOf")}
        resolved = {**inner, **beside}
    return {}


def without_null(schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return a schema without null, as for `str | None`, and whether it allowed null."""
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
        part: Any = root
        for name in reference.removeprefix("#").strip("/").split("/"):
            part = part.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(part, Mapping) else None
        return part if isinstance(part, Mapping) else {}
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], Mapping):
        return parts[0]
    return None


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
    "rows": "a line each",
    "json": "JSON",
}


_MOST_NAMES = 4


class FieldProblem(ValueError):
    """The text is not valid for its field; the message says why."""


class Named(Protocol):
    """A value to choose, and its label."""

    @property
    def word(self) -> str:
        """The label that a person reads."""

    @property
    def value(self) -> Any:
        """The answer's value if this is chosen."""


def options_of(kind: str, schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the options of a schema as (word, value); empty if it is no list of constants."""
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
    """Describe what may be typed, such as "whole number, 1 to 5"; `items` is the schema of a list's items."""
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
    if kind in ("many", "list", "rows"):
        low, high = schema.get("minItems"), schema.get("maxItems")
        words += [f"{_range(low, high)} of them"] if (low, high) != (None, None) else []
    if kind == "rows":
        words[-1] += f": {', '.join(items['properties'])}"
    if kind == "json" and (names := list(items.get("properties", ()))):
        pairs = ", ".join(f"{json.dumps(name)}: …" for name in names[:_MOST_NAMES])
        words.append(f"as [{{{pairs}{', …' if len(names) > _MOST_NAMES else ''}}}]")
    return ", ".join(words)


def field_text(kind: str, value: Any, options: Sequence[Named]) -> str | None:
    """Return a value as the text of its field, None if the field can't hold it."""
    if kind in ("one", "yesno", "many"):
        many = kind == "many" and isinstance(value, list)
        words = [_named(item, options) for item in (value if many else [value])]
        return None if None in words else ", ".join(word for word in words if word is not None)
    if kind == "json":
        return json.dumps(value, ensure_ascii=False)
    if kind == "list":
        plain = isinstance(value, list) and all(
            not isinstance(item, str)
            or (item.strip() == item and item and "," not in item and item[0] != "[")
            for item in value
        )
        return ", ".join(_word(item) for item in value) if plain else json.dumps(value, ensure_ascii=False)
    if kind in ("text", "date"):
        return value if isinstance(value, str) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return json.dumps(value) if number else None


def read_text(kind: str, text: str, options: Sequence[Named], schema: Mapping[str, Any]) -> Any:
    """Read a text that is not empty.

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
    if kind == "rows":
        return _json(text) if text.startswith("[") else list(_rows(text, schema["items"]))
    return _date(text, schema["format"]) if kind == "date" else _json(text)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _named(value: Any, options: Sequence[Named]) -> str | None:
    return next(
        (option.word for option in options if type(option.value) is type(value) and option.value == value),
        None,
    )


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
        raise FieldProblem("must be a whole number" if whole else "must be a number")
    if whole and not number.is_integer():
        raise FieldProblem("must be a whole number")
    return int(number) if whole else number


def _yes(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise FieldProblem("must be yes or no")


def _option(text: str, options: Sequence[Named]) -> Any:
    """Return the option named by a word, else the one at that number in the list."""
    for same in (str, str.lower):
        for option in options:
            if same(option.word) == same(text):
                return option.value
    if text.isascii() and text.isdigit() and 1 <= int(text) <= len(options):
        return options[int(text) - 1].value
    raise FieldProblem(f"must be one of: {', '.join(option.word for option in options)}")


def _split(text: str) -> list[str]:
    return [word for word in map(str.strip, text.split(",")) if word]


def _items(text: str, schema: Mapping[str, Any]) -> list[Any]:
    if text.startswith("["):
        parsed = _json(text)
        if isinstance(parsed, list):
            return parsed
    items = schema.get("items")
    kind = items.get("type") if isinstance(items, Mapping) else None
    words = _split(text)
    return (
        [_number(word, whole=kind == "integer") for word in words] if kind in ("number", "integer") else words
    )


def _rows(text: str, items: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield an object for each line, whose values are in the order of the properties."""
    properties: Mapping[str, Mapping[str, Any]] = items["properties"]
    for number, cells in enumerate(csv.reader(text.splitlines(), skipinitialspace=True), 1):
        words = [cell.strip() for cell in cells]
        if not any(words):
            continue
        if len(words) > len(properties):
            raise FieldProblem(f"line {number} has {len(words)} values, for {', '.join(properties)}")
        row = {}
        for (name, schema), word in zip(properties.items(), words, strict=False):
            if word:
                try:
                    row[name] = read_text(_SCALARS[schema["type"]], word, (), schema)
                except FieldProblem as problem:
                    raise FieldProblem(f"line {number}: {sanitise_line(name, _NAME)} {problem}") from None
        yield row


def _rows_text(value: Any, items: Mapping[str, Any]) -> str | None:
    """Return a list of objects as lines, None if they don't fit into lines."""
    names = list(items["properties"])
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        return None
    cells = [row.get(name) for row in value for name in names]
    odd = any(isinstance(cell, (list, Mapping)) or "\n" in str(cell) for cell in cells)
    if odd or any(name not in names for row in value for name in row):
        return None
    text = io.StringIO()
    rows = ([_cell(row.get(name)) for name in names] for row in value)
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().strip("\n")


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _has_columns(items: Mapping[str, Any]) -> bool:
    """Whether objects of a schema fit into a line each: all their values are scalars."""
    properties = items.get("properties")
    if not isinstance(properties, Mapping) or not 0 < len(properties) <= _MOST_COLUMNS:
        return False
    return all(isinstance(part, Mapping) and part.get("type") in _SCALARS for part in properties.values())


def _date(text: str, form: str) -> str:
    what, read = _DATES[form]
    try:
        read(text)
    except ValueError:
        raise FieldProblem(f"must be {what}") from None
    return text


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except NotJson as error:
        raise FieldProblem(f"is not JSON: {error}") from None


Path = tuple[str, ...]
FieldKind = Literal["text", "number", "integer", "yesno", "one", "many", "list", "rows", "date", "json"]
_MOST_COLUMNS: Final = 6
_SCALARS: Final = {"string": "text", "number": "number", "integer": "integer", "boolean": "yesno"}
_MOST_FIELDS: Final = 60
_DEEPEST: Final = 6
_LONG: Final = 60
_NAME: Final = 60
_HELP: Final = 400
_UNSET: Final = object()


class FieldOption(msgspec.Struct, frozen=True):
    """One of the values to choose from, with its name."""

    word: str
    value: Any


class Field(msgspec.Struct, frozen=True):
    """One field of a form.

    Args:
        path: where its value goes in the answer; () for an answer that is one value.
        label: its name for people, "address.street" for a nested field.
        required: whether it must be filled in.
        hint: what may be typed, such as "whole number, 1 to 5".
        help: the schema's description of it, "" for none.
        text: its initial text.
        options: the values to choose from, for the kinds "one", "many" and "yesno".
        long: whether its text may have several lines.
        empty: what an empty text means: the field is left out ("out"), null, or the empty text.
    """

    path: Path
    label: str
    kind: FieldKind
    schema: Mapping[str, Any]
    required: bool = False
    hint: str = ""
    help: str = ""
    text: str = ""
    options: tuple[FieldOption, ...] = ()
    long: bool = False
    empty: Literal["out", "null", "text"] = "out"


class Form(msgspec.Struct, frozen=True):
    """The fields of an answer, its fixed values, and the schema that it must match as a whole."""

    fields: tuple[Field, ...]
    schema: Mapping[str, Any]
    fixed: tuple[tuple[Path, Any], ...] = ()

    @property
    def texts(self) -> dict[Path, str]:
        """The initial texts of the fields."""
        return {field.path: field.text for field in self.fields}


class Reading(msgspec.Struct, frozen=True):
    """The typed value and its problems by field; () stands for the whole answer."""

    value: Any
    problems: Mapping[Path, str]


def form_of(schema: Mapping[str, Any] | None, value: Any = _UNSET) -> Form | None:
    """Return the form of an answer; None if its schema has nothing that a form could show.

    Args:
        value: the initial values, instead of the schema's defaults.
    """
    if not schema:
        return None
    root = plain_schema(schema, schema)
    collected = _Fields(schema)
    if root.get("properties"):
        collected.add_object(root, (), value, asked=True)
    else:
        collected.fields.append(collected.field(root, (), value, required=True))
    fields = collected.fields
    if not fields or len(fields) > _MOST_FIELDS or (fields[0].path == () and fields[0].kind == "json"):
        return None
    return Form(tuple(fields), schema, tuple(collected.fixed))


def form_of_value(value: Any) -> Form | None:
    """Return a form to edit a mapping without a schema: a field for each value."""
    if not isinstance(value, Mapping) or not value:
        return None
    types: Sequence[tuple[Any, str]] = ((bool, "boolean"), (str, "string"), (int | float, "number"))
    properties = {}
    for name, item in value.items():
        known = next((word for kind, word in types if isinstance(item, kind)), None)
        properties[name] = {"type": known} if known else {}
    form = form_of({"type": "object", "properties": properties, "required": list(properties)}, value)
    if form is None:
        return None
    return replace(
        form,
        fields=tuple(
            replace(field, empty="text", required=False) if field.kind == "text" else field
            for field in form.fields
        ),
    )


def read_form(form: Form, texts: Mapping[Path, str]) -> Reading:
    """Read the texts of a form as a value, checked by field and then as a whole."""
    values: dict[Path, Any] = {}
    problems: dict[Path, str] = {}
    for field in form.fields:
        try:
            value = read_field(field, texts.get(field.path, ""))
        except FieldProblem as problem:
            problems[field.path] = str(problem)
        else:
            if value is not None:
                values[field.path] = value[0]
    whole = _assembled(form, values)
    if not problems:
        wrong = mismatch(form.schema, whole)
        if wrong:
            problems[()] = wrong
    return Reading(whole, problems)


def read_field(field: Field, text: str) -> tuple[Any] | None:
    """Read one field, None if it is left out; raises `FieldProblem` if it is invalid."""
    if not text.strip():
        if field.required:
            raise FieldProblem("is required")
        return None if field.empty == "out" else (text if field.empty == "text" else None,)
    value = read_text(field.kind, text, field.options, field.schema)
    wrong = mismatch(field.schema, value)
    if wrong:
        raise FieldProblem(wrong)
    return (value,)


def mismatch(schema: Mapping[str, Any], value: Any) -> str:
    """Describe why a value does not match a schema; "" if it does."""
    try:
        # A request made in this process has a frozen schema, which can't be compiled.
        ChannelSchema("answer", thaw(dict(schema)), "whole").check_value(thaw(value))
    except SchemaMismatch as error:
        where, _, what = error.message.partition(": ")
        place = where.partition(" at ")[2]
        return f"{place}: {what}" if place else what
    return ""


class _Fields:
    """Collects the fields of a schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.fields: list[Field] = []
        self.fixed: list[tuple[Path, Any]] = []

    def add_object(self, schema: Mapping[str, Any], path: Path, value: Any, *, asked: bool) -> None:
        """Add the fields of an object's properties; `asked` says whether the object itself is required."""
        required = schema.get("required", ())
        for name, inner in schema["properties"].items():
            here = (*path, name)
            resolved = plain_schema(inner, self.root)
            given = value.get(name, _UNSET) if isinstance(value, Mapping) else _UNSET
            wanted = asked and name in required
            if "const" in resolved:
                self.fixed += [(here, resolved["const"])] if name in required else []
            elif resolved.get("properties") and len(here) < _DEEPEST:
                self.add_object(resolved, here, given, asked=wanted)
            else:
                self.fields.append(self.field(resolved, here, given, required=wanted))

    def field(self, schema: Mapping[str, Any], path: Path, value: Any, *, required: bool) -> Field:
        """Return the field of a form that a schema describes."""
        root = self.root
        bare, nullable = without_null(schema, root)
        kind = _kind(bare, root)
        inner = bare.get("items")
        items = plain_schema(inner, root) if isinstance(inner, Mapping) else {}
        options = tuple(
            FieldOption(sanitise_line(word, _NAME), choice)
            for word, choice in options_of(
                "yesno" if kind == "yesno" else "one", bare if kind == "json" else items or bare
            )
        )
        begins = schema.get("default", _UNSET) if value is _UNSET else value
        text: str | None = ""
        if begins is not _UNSET and begins is not None:
            text = _rows_text(begins, items) if kind == "rows" else field_text(kind, begins, options)
        if text is None or sanitise(text) != text or (value is None and not nullable):
            kind, text = "json", json.dumps(begins)
        checks = {**{name: root[name] for name in ("$defs", "definitions") if name in root}, **bare}
        if kind == "rows":
            checks = {**checks, "items": items}
        lengthy = "\n" in text or len(text) > _LONG or bare.get("maxLength", 0) > 2 * _LONG
        return Field(
            path=path,
            label=sanitise_line(".".join(path) or "answer", _NAME),
            kind=kind,
            schema=checks,
            required=required and not nullable,
            hint=sanitise_line(hint_of(kind, bare, items), _HELP),
            help=sanitise_line(_help(schema, path), _HELP),
            text=text,
            options=options if kind in ("one", "many", "yesno") else (),
            long=kind == "rows" or (kind == "text" and lengthy),
            empty="null" if nullable and required else "out",
        )


def _kind(schema: Mapping[str, Any], root: Mapping[str, Any]) -> FieldKind:
    if options_of("one", schema):
        return "one"
    kind = schema.get("type")
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        items = plain_schema(schema["items"], root)
        if options_of("one", items):
            return "many"
        if _has_columns(items):
            return "rows"
        return "list" if items.get("type") in ("string", "number", "integer") else "json"
    if kind == "string" and schema.get("format") in _DATES:
        return "date"
    return _SCALARS.get(kind, "json") if isinstance(kind, str) else "json"  # type: ignore[return-value]


def _help(schema: Mapping[str, Any], path: Path) -> str:
    """Return the schema's description, or its title if that says more than the name."""
    title = str(schema.get("title", ""))
    same = path and title.lower().replace(" ", "_") == path[-1].lower()
    return str(schema.get("description") or ("" if same else title))


def _assembled(form: Form, values: Mapping[Path, Any]) -> Any:
    if len(form.fields) == 1 and form.fields[0].path == ():
        return values.get(())
    whole: dict[str, Any] = {}
    parents = {path[:-1] for path in values} | {()}
    unasked = [(path, value) for path, value in form.fixed if path[:-1] in parents]
    for path, value in (*values.items(), *unasked):
        place = whole
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = value
    return whole
