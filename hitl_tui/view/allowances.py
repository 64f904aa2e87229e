"""Finds the call to allow, reads patterns for its arguments, and describes allowances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.allowances import Allowance
from hitl_tui.engine.thread.approval_formats import ToolAction
from hitl_tui.errors import UsageError
from hitl_tui.view.card import actions
from hitl_tui.view.format import NotJson, inline, local_time, read_json
from hitl_tui.view.sanitise import sanitise_line

_NAME: Final = 60
_VALUE: Final = 80
_NOTE: Final = 200


def call_asked_about(pending: Iterable[Request], tool: str | None = None) -> ToolAction:
    """Return the call that waits for approval, with its current arguments.

    Args:
        tool: the name of its tool, None for any.

    Raises:
        UsageError: no call waits, or several do.
    """
    calls = [action for request in pending for action in actions(request) if tool in (None, action.name)]
    if len(calls) != 1:
        names = ", ".join(action.name for action in calls)
        raise UsageError(
            f"{len(calls)} calls wait: {names}" if calls else "no call waits",
            "name the tool, and patterns for its arguments",
        )
    return as_it_stands(calls[0])


def as_it_stands(call: ToolAction) -> ToolAction:
    """Return a call with its arguments as plain values."""
    return replace(call, args=thaw(call.args))


def exact_args(call: ToolAction) -> Mapping[str, Any]:
    """Return patterns for arguments that only this call matches.

    Raises:
        UsageError: the arguments have no names.
    """
    if not isinstance(call.args, dict):
        raise UsageError("the arguments of this call have no names", "allow the tool, whatever they are")
    return call.args


def read_patterns(given: Iterable[str]) -> dict[str, Any]:
    """Read patterns for arguments, such as "path=docs/*" and "n=3"; JSON for values other than text.

    Raises:
        UsageError: a pattern is not NAME=PATTERN.
    """
    patterns: dict[str, Any] = {}
    for word in given:
        name, equals, pattern = word.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{word!r} is not NAME=PATTERN", "as in path=docs/*")
        try:
            patterns[name.strip()] = read_json(pattern)
        except NotJson:
            patterns[name.strip()] = pattern.strip()
    return patterns


def args_words(args: Any) -> str:
    """Return arguments or patterns as "path=docs/*, n=3"; sanitised."""
    if not isinstance(args, Mapping):
        return inline(args, _VALUE)
    return ", ".join(
        f"{sanitise_line(str(name), _NAME)}="
        f"{sanitise_line(value, _VALUE) if isinstance(value, str) else inline(value, _VALUE)}"
        for name, value in sorted(args.items())
    )


def allowance_words(allowance: Allowance, now: int) -> str:
    """Describe an allowance, as "a4: send with to=ann@*, until 14:05, by ann: “they know us”"; sanitised."""
    tool = sanitise_line(allowance.tool, _NAME)
    args = args_words(allowance.args)
    like = (
        f" with {'exactly ' if allowance.exact else ''}{args or 'no arguments'}"
        if args or allowance.exact
        else ""
    )
    more = [
        *(["also of high risk"] if allowance.high_risk else []),
        *(["also after untrusted data was read"] if allowance.tainted else []),
        *_until(allowance, now),
        f"by {sanitise_line(allowance.actor or 'somebody', _NAME)}",
    ]
    note = f": “{sanitise_line(allowance.note, _NOTE)}”" if allowance.note else ""
    return f"{sanitise_line(allowance.id, _NAME)}: {tool}{like}, {', '.join(more)}{note}"


def _until(allowance: Allowance, now: int) -> Iterator[str]:
    if allowance.expires_at is not None:
        ended = "ended at" if allowance.ended(now) else "until"
        yield f"{ended} {local_time(allowance.expires_at)}"
