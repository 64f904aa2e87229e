"""Shows what a request without a channel asks about: its payload, or the calls that it wants to make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.approval_formats import ToolAction, actions_of
from hitl_tui.view.dangers import call_dangers, dangers
from hitl_tui.view.payload import payload_rows
from hitl_tui.view.rows import wrap_rich
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, trusted, untrusted
from hitl_tui.view.value_lines import value_lines

_NAME: Final = 80


def is_beside(request: Request) -> bool:
    """Whether the pane beside the card shows what is asked, as there is no channel to show."""
    if request.subject is not None or request.policy or request.breakpoint:
        return False
    payload = request.payload
    judged = isinstance(payload, Mapping) and isinstance(payload.get("verdict"), str)
    return payload is not None and payload != request.title and not judged


def asked_value(request: Request, part: int) -> Any:
    """Return what is shown as JSON: the arguments of the current call, or the payload."""
    calls = actions_of(request.shape, request.payload)
    return calls[part].args if part < len(calls) else request.payload


def asked_rows(request: Request, part: int, width: int) -> list[Line]:
    """Return what is asked as rows: the current call, below it the ones that follow; or the payload.

    Args:
        part: the index of the call that is decided about.
    """
    calls = actions_of(request.shape, request.payload)
    if not calls:
        return payload_rows(request.payload, width)
    rows: list[Line] = []
    for place, call in enumerate(calls):
        if place >= part:
            rows += [()] if rows else []
            rows += _call(call, place, len(calls), width, now=place == part)
    return rows


def _call(call: ToolAction, place: int, calls: int, width: int, *, now: bool) -> Iterator[Line]:
    number = f"{place + 1} of {calls}  " if calls > 1 else ""
    yield (trusted(number, "dim"), untrusted(call.name, "title" if now else "name", _NAME))
    for words in call_dangers(call.name, call.args):
        yield from wrap_rich((trusted("! ", "error"), untrusted(words, "error")), width, "  ")
    # LangChain repeats the arguments in the description, on one line.
    about = (call.description or "").partition(f"\n\nTool: {call.name}\n")[0].strip()
    for line in value_lines(about, "text") if about else ():
        yield from wrap_rich((trusted(line, "dim"),), width)
    yield ()
    if call.args:
        yield from payload_rows(call.args, width)
    else:
        yield (Span("no arguments", "dim"),)


def is_safe(request: Request, calls: Sequence[ToolAction]) -> bool:
    """Whether nothing is known to be at risk with some of the calls of a request."""
    risky = request.risk == "high" or request.tainted
    return not risky and not any(call_dangers(call.name, call.args) for call in calls)


def danger_lines(request: Request, part: int) -> Iterator[Line]:
    """Yield what to look at twice before answering, a line each."""
    calls = actions_of(request.shape, request.payload)
    if not calls:
        for words in dangers(request.payload):
            yield (trusted("! ", "error"), untrusted(words, "error"))
    for call in calls[part : part + 1]:
        name = sanitise_line(call.name, _NAME)
        for words in call_dangers(call.name, call.args):
            yield (trusted("! ", "error"), untrusted(f"{name}: {words}", "error"))


def danger_words(request: Request) -> tuple[str, ...]:
    """Return what to look at twice in any of the calls or the payload of a request, a few words each."""
    calls = actions_of(request.shape, request.payload)
    if not calls:
        return dangers(request.payload)
    return tuple(dict.fromkeys(words for call in calls for words in call_dangers(call.name, call.args)))
