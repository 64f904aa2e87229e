"""Parses command-line arguments: THREAD[@STEP], an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hitl_tui.errors import UnknownThread, UsageError
from hitl_tui.given_files import read_given

if TYPE_CHECKING:
    from hitl_tui.cli.thread import OpenStored, OpenThread
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.drivers.reading import RecordedThread
    from hitl_tui.engine.log.requests import Request
    from hitl_tui.stores import Checkpointer
    from hitl_tui.view.form import Form


class LoggedPlace(NamedTuple):
    """Step of a thread to show."""

    thread: RecordedThread
    step: int

    @property
    def name(self) -> str:
        """Place in words, as "report@4"."""
        return f"{self.thread.thread_id}@{self.step}"


def logged_place(opened: OpenStored, text: str) -> LoggedPlace:
    """Find a step of a thread, the newest one by default, to show it; raise as `open_place`."""
    name, step = split_place(opened.store, text)
    thread = opened.thread(name)
    return LoggedPlace(thread, _step_of(name, step, thread.progress.head))


async def open_place(opened: OpenThread, text: str) -> tuple[Driver, int]:
    """Open the thread of a place and find its step, the newest one by default.

    Raises:
        UnknownThread: there is no such thread, or no such step in it.
        UsageError: the thread has no step yet.
    """
    name, step = split_place(opened.store, text)
    driver = await opened.thread(name)
    return driver, _step_of(name, step, (await driver.snapshot()).progress.head)


async def named_place(opened: OpenThread, text: str) -> tuple[Driver, int | None]:
    """Open the thread of a place and return its step, None if none is named; what it is for checks the step.

    Raises:
        UnknownThread: there is no such thread.
    """
    name, step = split_place(opened.store, text)
    return await opened.thread(name), step


def _step_of(thread: str, step: int | None, head: int) -> int:
    if head < 0:
        raise UsageError(f"thread {thread!r} has no step yet", "start it with an input first")
    if step is not None and step > head:
        raise UnknownThread(f"thread {thread!r} has no step {step}", f"its steps are 0 to {head}")
    return head if step is None else step


def split_place(store: Checkpointer, text: str) -> tuple[str, int | None]:
    """Return the thread and the step of a place; a thread with this whole name takes precedence."""
    thread, at, step = text.rpartition("@")
    if not at or not (step.isascii() and step.isdigit()) or store.info(text) is not None:
        return text, None
    return thread, int(step)


_WAYS = "give VALUE, --set FIELD=VALUE, --value JSON or --value @FILE"


class Given(NamedTuple):
    """Given answer: VALUE, the values of `--set`, and that of `--value`."""

    word: str | None
    fields: tuple[str, ...]
    json: str | None

    def answer(self, request: Request, note: str | None, *, commented: bool) -> Any:
        """Return the answer to a request.

        Raises:
            UsageError: there is no answer, or there are several; or it can't be parsed, field by field.
        """
        given = (self.word is not None or bool(self.fields)) + (self.json is not None)
        if given != 1:
            problem = "the answer is given in two ways" if given else "there is no answer"
            raise UsageError(f"{problem} to {request.title!r}", _WAYS)
        if self.json is not None:
            return _read_json(self.json)
        if self.fields:
            return self._fields_answer(request)
        from hitl_tui.view.answers import find_choice
        from hitl_tui.view.card import choice_answer, value_answer

        assert self.word is not None
        if request.choices:
            return choice_answer(find_choice(request, self.word), note, commented=commented)
        return value_answer(request, self.word)

    def _fields_answer(self, request: Request) -> Any:
        from hitl_tui.view.card import EDIT, actions, answer_form, edit_form

        if request.shape:
            asked = actions(request)
            if self.word != EDIT or len(asked) != 1:
                raise UsageError(
                    "--set changes the arguments of one action",
                    f"answer {EDIT} with it; for several actions give a list of decisions with --value",
                )
            form = edit_form(request, asked[0])
            return {"choice": EDIT, "args": _filled(form, self.fields, request)}
        if self.word is not None:
            raise UsageError(f"the answer to {request.title!r} is given in two ways", _WAYS)
        if request.choices:
            raise UsageError(
                f"{request.title!r} takes a choice, not fields",
                f"allowed: {', '.join(choice.id for choice in request.choices)}",
            )
        form = edit_form(request) if request.kind == "edit" else answer_form(request)
        return _filled(form, self.fields, request)


def _filled(form: Form | None, given: Sequence[str], request: Request) -> Any:
    from hitl_tui.suggest import did_you_mean
    from hitl_tui.view.form import read_form

    if form is None:
        raise UsageError(f"the answer to {request.title!r} has no fields", "give it with --value JSON")
    labels = {".".join(field.path): field for field in form.fields}
    texts, touched = form.texts, set()
    for pair in given:
        name, equals, text = pair.partition("=")
        field = labels.get(name.strip())
        if not equals or field is None:
            what = f"there is no field {name.strip()!r}" if equals else f"--set {pair!r} has no value"
            raise UsageError(what, did_you_mean(name.strip(), labels) or f"fields: {', '.join(labels)}")
        joined = field.path in touched and field.kind in ("many", "list")
        texts[field.path] = f"{texts[field.path]}, {text}" if joined else text
        touched.add(field.path)
    reading = read_form(form, texts)
    if reading.problems:
        raise UsageError(
            "\n".join(f"{'.'.join(path) or 'the answer'} {what}" for path, what in reading.problems.items()),
            f"fields: {', '.join(labels)}",
        )
    return reading.value


def _read_json(text: str) -> Any:
    from hitl_tui.view.format import NotJson, read_json

    where = f"--value {text}" if text.startswith("@") else "--value"
    try:
        return read_json(read_given(Path(text[1:])) if text.startswith("@") else text)
    except OSError as error:
        raise UsageError(f"{where}: can't be read: {error.strerror}", "write --value @file.json") from None
    except NotJson as error:
        raise UsageError(
            f"{where} is not JSON: {error}", "a text is written in quotation marks, as '\"a text\"'"
        ) from None
