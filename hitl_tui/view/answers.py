"""Finds the request, choice, limit or setting that the arguments of a command name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.errors import UsageError
from hitl_tui.shell import command_line
from hitl_tui.suggest import did_you_mean, nearest


def pick_request(pending: tuple[Request, ...], wanted: str | None = None, where: str = "") -> Request:
    """Return the request to answer: the one named, or the only one that waits.

    Args:
        where: the thread's status, for the error message.

    Raises:
        UsageError: no request waits, or several do and none was named.
    """
    asked = [request for request in pending if not request.breakpoint]
    if wanted is not None:
        for request in asked:
            if request.id == wanted:
                return request
    if len(asked) == 1 and wanted is None:
        return asked[0]
    if not asked:
        hint = "it only stopped at a breakpoint: `hitl-tui resume` continues it" if pending else where
        raise UsageError("nothing waits for a decision", hint)
    names = ", ".join(f"{request.id} ({request.title})" for request in asked)
    if wanted is None:
        raise UsageError(f"{len(asked)} requests wait: {names}", "say which with --request ID")
    raise UsageError(f"no request {wanted!r} waits", f"waiting: {names}")


def find_choice(request: Request, wanted: str) -> Choice:
    """Return the request's choice with an id.

    Raises:
        UsageError: there is none; the message names the existing ones.
    """
    if not request.choices:
        raise UsageError(
            f"{request.title!r} wants a value, not a choice", "give the value with `hitl-tui answer`"
        )
    return named_choice(request.choices, wanted)


def named_choice(choices: Sequence[Choice], wanted: str) -> Choice:
    """Return the choice with an id.

    Raises:
        UsageError: there is none; the message names the existing ones.
    """
    for choice in choices:
        if choice.id == wanted:
            return choice
    ids = [choice.id for choice in choices]
    raise UsageError(f"{wanted!r} is not an allowed answer (allowed: {', '.join(ids)})", nearest(wanted, ids))


APPROVING = ("approve", "accept", "allow", "yes", "ok", "confirm", "continue", "proceed", "pass", "run")
"""Ids of answers that mean yes by their name, the plainest first."""


def approving_choice(request: Request, thread_id: str) -> Choice:
    """Return the choice that approves: the one called "approve", else the only one whose name means yes.

    Raises:
        UsageError: none approves, or several do and none of them is recommended; the message names all.  A
            recommended choice may be a no, so a recommendation alone is no approval.
    """
    if not request.choices:
        return find_choice(request, "approve")
    yes = [choice for choice in request.choices if choice.id in APPROVING]
    plain = [choice for choice in yes if choice.id == "approve"] or [
        choice for choice in yes if choice.id == request.recommended
    ]
    if approving := plain or (yes if len(yes) == 1 else []):
        return approving[0]
    which = (
        f"several answers that approve: {', '.join(choice.id for choice in yes)}"
        if yes
        else "no answer that approves"
    )
    ids = [
        f"{choice.id} (recommended)" if choice.id == request.recommended else choice.id
        for choice in request.choices
    ]
    order = command_line("answer", thread_id, request.id, "ANSWER", options=f"--step {request.step}")
    raise UsageError(
        f"{request.title!r} has {which}; its answers are {', '.join(ids)}", f"give the one you mean: {order}"
    )


def find_channel(names: Sequence[str], typed: str) -> str:
    """Return a channel by its name, or by its number in the list of all.

    Raises:
        UsageError: there is none.
    """
    if typed in names:
        return typed
    if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(names):
        return names[int(typed) - 1]
    raise UsageError(f"there is no channel {typed!r}", did_you_mean(typed, names))


def read_step(text: str, option: str) -> int:
    """Read the number of a step.

    Args:
        option: its name, for the error message.

    Raises:
        UsageError: it is not a number.
    """
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{option} is {text!r}", "give the number of a step")
    return int(text)


def read_limit(text: str) -> tuple[str, float | str | None]:
    """Read a limit and its number, as "max_iterations=50"; "none" means no limit.

    Raises:
        UsageError: it has another form, or there is no limit of that name.
    """
    from hitl_tui.engine.log.records import Limits

    name, equals, word = text.partition("=")
    name = name.strip()
    if name not in Limits.__struct_fields__:
        raise UsageError(f"there is no limit {name!r}", did_you_mean(name, Limits.__struct_fields__))
    if name == "on_unknown_price":
        if word.strip() not in ("warn", "stop"):
            raise UsageError(f"{text!r} is not a limit", f"write {name}=warn or {name}=stop")
        return name, word.strip()
    if equals and word.strip().lower() == "none":
        return name, None
    whole = name in ("max_iterations", "max_tokens")
    try:
        number = int(word) if whole else float(word)
    except ValueError:
        number = -1
    if not 0 < number < float("inf"):
        kind = "a whole number" if whole else "a number"
        raise UsageError(f"{text!r} is not a limit", f"write {name}= and {kind} above 0, or none")
    return name, number


def read_settings(given: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read settings by agent, such as "worker.temperature=0"; "null" resets one to the graph's.

    Raises:
        UsageError: a setting has another form.
    """
    settings: dict[str, dict[str, Any]] = {}
    for word in given:
        name, equals, value = word.partition("=")
        agent, dot, setting = name.rpartition(".")
        if not (equals and dot and agent and setting):
            raise UsageError(
                f"{word!r} is not a setting of an agent", "write AGENT.SETTING=VALUE, as worker.temperature=0"
            )
        settings.setdefault(agent, {})[setting] = read_setting(setting, value)
    return settings


def read_setting(setting: str, text: str) -> Any:
    """Read the value of an agent's setting; None, for "null" or for no text, resets it to the graph's.

    No text as instructions means none.

    Raises:
        UsageError: the temperature is not a number.
    """
    if text == "null" or (not text.strip() and setting != "instructions"):
        return None
    if setting != "temperature":
        return text if setting == "instructions" else text.strip()
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 2:
        raise UsageError(f"temperature={text}: give a number from 0 to 2", "as in temperature=0.2")
    return int(number) if number.is_integer() else number
