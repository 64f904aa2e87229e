"""Forms drawn from the JSON Schema of an answer: from a schema to fields, from typed texts to a value.

A form has a field for each text, number, yes/no, date, choice or list of choices that the schema describes,
nested objects included.  A property of any other kind is one field that takes JSON; a schema that describes
no such things at all has no form, and its answer is typed as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hitl_tui.engine.channels.schema import ChannelSchema
from hitl_tui.engine.channels.values import thaw
from hitl_tui.errors import SchemaMismatch
from hitl_tui.view.form_fields import Problem, field_text, hint_of, options_of, read_text
from hitl_tui.view.form_schema import plain_schema, without_null
from hitl_tui.view.sanitise import sanitise, sanitise_line

Path = tuple[str, ...]
FieldKind = Literal["text", "number", "integer", "yesno", "one", "many", "list", "date", "json"]
_SCALARS: Final = {"string": "text", "number": "number", "integer": "integer", "boolean": "yesno"}
_DATES: Final = ("date", "date-time", "time")
_MOST_FIELDS: Final = 60
_DEEPEST: Final = 6
_LONG: Final = 60
_NAME: Final = 60
_HELP: Final = 400
_UNSET: Final = object()


@dataclass(frozen=True, slots=True)
class Option:
    """One of the values to choose from, and the word that names it."""

    word: str
    value: Any


@dataclass(frozen=True, slots=True)
class Field:
    """One thing to type or to choose.

    Args:
        path: where its value goes in the answer; () for an answer that is one value.
        label: its name for people, "address.street" for one inside another.
        required: whether it must be given.
        hint: what may be typed, such as "whole number, 1 to 5".
        help: what the schema says about it, "" for nothing.
        text: what stands in it to begin with.
        options: what there is to choose from, for the kinds "one", "many" and "yesno".
        long: whether its text may take several lines.
        empty: what an empty text is: nothing ("out"), null, or the empty text itself.
    """

    path: Path
    label: str
    kind: FieldKind
    schema: Mapping[str, Any]
    required: bool = False
    hint: str = ""
    help: str = ""
    text: str = ""
    options: tuple[Option, ...] = ()
    long: bool = False
    empty: Literal["out", "null", "text"] = "out"


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of an answer, what stands in it unasked, and the schema that it must fit as a whole."""

    fields: tuple[Field, ...]
    schema: Mapping[str, Any]
    fixed: tuple[tuple[Path, Any], ...] = ()

    @property
    def texts(self) -> dict[Path, str]:
        """What the fields begin with."""
        return {field.path: field.text for field in self.fields}


@dataclass(frozen=True, slots=True)
class Reading:
    """What was typed, as a value, and what is wrong with it by field; () is the answer as a whole."""

    value: Any
    problems: Mapping[Path, str]


def form_of(schema: Mapping[str, Any] | None, value: Any = _UNSET) -> Form | None:
    """The form of an answer; None where its schema describes nothing that a form could show.

    Args:
        value: what the fields begin with instead of the schema's defaults.
    """
    if not schema:
        return None
    root = plain_schema(schema, schema)
    found = _Fields(schema)
    if root.get("properties"):
        found.add_object(root, (), value, asked=True)
    else:
        found.fields.append(found.field(root, (), value, required=True))
    fields = found.fields
    if not fields or len(fields) > _MOST_FIELDS or (fields[0].path == () and fields[0].kind == "json"):
        return None
    return Form(tuple(fields), schema, tuple(found.fixed))


def form_of_value(value: Any) -> Form | None:
    """The form to edit a mapping in that no schema describes: a field for each of its values."""
    if not isinstance(value, Mapping) or not value:
        return None
    types: Sequence[tuple[Any, str]] = (
        (bool, "boolean"),
        (str, "string"),
        (int | float, "number"),
    )
    properties = {}
    for name, one in value.items():
        known = next((word for kind, word in types if isinstance(one, kind)), None)
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
    """The value that texts stand for, checked field by field and then as a whole."""
    values: dict[Path, Any] = {}
    problems: dict[Path, str] = {}
    for field in form.fields:
        try:
            value = read_field(field, texts.get(field.path, ""))
        except Problem as problem:
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
    """The value of one field, None where it is left out; raises `Problem` with what is wrong."""
    if not text.strip():
        if field.required:
            raise Problem("is required")
        return None if field.empty == "out" else (text if field.empty == "text" else None,)
    value = read_text(field.kind, text, field.options, field.schema)
    wrong = mismatch(field.schema, value)
    if wrong:
        raise Problem(wrong)
    return (value,)


def mismatch(schema: Mapping[str, Any], value: Any) -> str:
    """What of a value does not fit a schema, in words; "" for nothing."""
    try:
        # A request that this process asked itself carries a frozen schema, which can't be compiled.
        ChannelSchema("answer", thaw(dict(schema)), "whole").check_value(thaw(value))
    except SchemaMismatch as error:
        where, _, what = error.message.partition(": ")
        place = where.partition(" at ")[2]
        return f"{place}: {what}" if place else what
    return ""


class _Fields:
    """The fields of a schema, as far as they were found."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.fields: list[Field] = []
        self.fixed: list[tuple[Path, Any]] = []

    def add_object(self, schema: Mapping[str, Any], path: Path, value: Any, *, asked: bool) -> None:
        """Add the fields of an object's properties; `asked` is whether the object itself must be given."""
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
        """One field."""
        root = self.root
        bare, nullable = without_null(schema, root)
        kind = _kind(bare, root)
        inner = bare.get("items")
        items = plain_schema(inner, root) if isinstance(inner, Mapping) else {}
        options = tuple(
            Option(sanitise_line(word, _NAME), one)
            for word, one in options_of(
                "yesno" if kind == "yesno" else "one", bare if kind == "json" else items or bare
            )
        )
        begins = schema.get("default", _UNSET) if value is _UNSET else value
        text = "" if begins is _UNSET or begins is None else field_text(kind, begins, options)
        if text is None or sanitise(text) != text or (value is None and not nullable):
            kind, text = "json", json.dumps(begins)
        checks = {**{name: root[name] for name in ("$defs", "definitions") if name in root}, **bare}
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
            long=kind == "text" and lengthy,
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
        return "list" if items.get("type") in ("string", "number", "integer") else "json"
    if kind == "string" and schema.get("format") in _DATES:
        return "date"
    return _SCALARS.get(kind, "json") if isinstance(kind, str) else "json"  # type: ignore[return-value]


def _help(schema: Mapping[str, Any], path: Path) -> str:
    """Its description, or a title that says more than its name does."""
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
