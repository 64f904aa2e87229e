"""Answers with parts in lines: a question for each field of a form, a value as JSON, an edited text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hitl_tui.errors import UsageError
from hitl_tui.plain.console import END_OF_TEXT, Console, ask_text, confirm, json_of
from hitl_tui.plain.content import content
from hitl_tui.plain.differing import changed_lines
from hitl_tui.plain.words import name, numbered
from hitl_tui.view.answers import wants_text
from hitl_tui.view.diff import value_diff
from hitl_tui.view.form import Field, Form, Path, Reading, mismatch, read_field, read_form
from hitl_tui.view.form_fields import Problem
from hitl_tui.view.value_lines import value_lines

LEAVE = END_OF_TEXT
"""What is typed to leave a request waiting."""
_NOTHING = "-"


class LeftWaiting(Exception):
    """The person wants to decide later."""


def ask_form(console: Console, form: Form) -> Any:
    """Ask for each field, again where what was typed doesn't fit; returns the answer.

    Raises:
        LeftWaiting: a dot alone was typed.
    """
    console.say(f"{len(form.fields)} fields; empty takes what stands in brackets, {LEAVE} leaves it waiting.")
    texts: dict[Path, str] = {}
    wanted = form.fields
    while True:
        for field in wanted:
            texts[field.path] = _ask_field(console, field, texts.get(field.path, field.text))
        reading = read_form(form, texts)
        if not reading.problems:
            return reading.value
        wanted = _again(console, form, reading)


def ask_value(console: Console, schema: Mapping[str, Any] | None) -> Any:
    """Ask for any value, again where it is no JSON or does not fit; a text is typed as it is.

    Raises:
        LeftWaiting: nothing was typed.
    """
    text = wants_text(schema)
    while typed := console.ask(f"Your answer, as {'text' if text else 'JSON'}; empty leaves it waiting:"):
        try:
            value = typed if text else json_of(typed)
        except UsageError as error:
            console.say(*content([error.message]))
            continue
        wrong = mismatch(schema or {}, value)
        if not wrong:
            return value
        console.say(*content([wrong]))
    raise LeftWaiting


def ask_edit(console: Console, value: Any, schema: Mapping[str, Any] | None) -> Any:
    """Ask for another version of a value, show what changed, and have it confirmed.

    Raises:
        LeftWaiting: the change was not confirmed.
    """
    is_text = isinstance(value, str)
    shown = (
        value_lines(value, "text") if is_text else json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    )
    console.say("It is now:", *content(shown))
    while True:
        typed = ask_text(
            console, f"Your version, as {'text' if is_text else 'JSON'}; empty keeps it as it is."
        )
        try:
            changed = value if not typed.strip() else typed if is_text else json_of(typed)
        except UsageError as error:
            console.say(*content([error.message]))
            continue
        wrong = mismatch(schema or {}, changed)
        if wrong:
            console.say(*content([wrong]))
            continue
        console.say("What changes:", *(changed_lines(value_diff(value, changed)) or ["    nothing"]))
        if confirm(console, "Send it?"):
            return changed
        raise LeftWaiting


def _ask_field(console: Console, field: Field, text: str) -> str:
    mark = ", required" if field.required else ""
    hint = f" ({field.hint})" if field.hint else ""
    about = [f"{field.help}"] if field.help else []
    console.say(f"{name(field.label)}{hint}{mark}.", *content(about))
    if field.options and field.kind != "yesno":
        console.say(*numbered([name(option.word) for option in field.options]))
    while True:
        typed = _typed(console, field, text)
        try:
            read_field(field, typed)
        except Problem as problem:
            console.say(*content([f"{field.label} {problem}"]))
        else:
            return typed


def _typed(console: Console, field: Field, text: str) -> str:
    kept = f" [{text}]" if text and not field.long else ""
    if field.long:
        console.say(*(["It is now:", *content(text.splitlines())] if text else []))
        typed = ask_text(console, "Empty keeps it." if text else "Your text.")
        return typed if typed.strip() else text
    out = f", {_NOTHING} leaves it out" if text and not field.required else ""
    typed = console.ask(f"{'yes or no' if field.kind == 'yesno' else 'value'}{out}{kept}:")
    if typed == LEAVE:
        raise LeftWaiting
    if typed == _NOTHING and out:
        return ""
    return typed or text


def _again(console: Console, form: Form, reading: Reading) -> tuple[Field, ...]:
    """The fields to ask again: those with a problem, or all where it is about the answer as a whole."""
    console.say(
        *content([f"{'.'.join(path) or 'the answer'} {what}" for path, what in reading.problems.items()])
    )
    return tuple(field for field in form.fields if field.path in reading.problems) or form.fields
