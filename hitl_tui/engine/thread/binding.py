"""The hash of what a request asks: an answer applies only to a request with the same hash.

The hash covers the question (kind, title, payload, the values of the channels that it is about), its
conditions (allowed answers, reviewers, quorum, deadline, risk), and its place (node, branch, key, how many
identical requests came before it). It leaves out what can change while the question stays the same: times,
the step, the id, votes, who has claimed the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from hitl_tui.engine.log.outcomes import HASHED
from hitl_tui.engine.log.requests import Choice, Request, Shape, Terms
from hitl_tui.engine.state.canonical import equal, item_hash, show_hash
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.errors import UndeclaredChannel, UsageError, in_words

CALL_PARTS: Final = ("name", "args")
"""The parts of a tool call's payload that an answer is about: the tool and its exact arguments."""
_TOOL_CALL: Final = "tool_approval"
_SHOWN: Final = (
    "kind", "node", "when", "payload", "policy", "reviewers", "quorum", "one_account", "logins", "signed",
    "four_eyes", "rubric", "escalate_to", "on_timeout",
)  # fmt: skip
"""The fields of a request in the data of its ledger entry that its hash covers."""
_LONGEST: Final = 60


class _Hashed(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields of a request that its hash covers and that are no separate fields of the ledger's entry."""

    subject: str | None = None
    schema: dict[str, Any] | None = None
    choices: tuple[Choice, ...] = ()
    recommended: str | None = None
    breakpoint: bool = False
    risk: Literal["normal", "high"] = "normal"
    shape: Shape = ""
    path: str = ""
    key: str = ""
    about_hash: str = ""
    terms: Terms = Terms()


def request_hash(request: Request) -> str:
    """Return the hash of what a request asks, as `sha256:…`.

    Raises:
        UsageError: `binds` names a part that the payload does not have.
    """
    terms = request.terms
    is_call = request.shape == _TOOL_CALL
    binds = terms.binds or (CALL_PARTS if is_call else ())
    asks = {
        "kind": request.kind,
        "title": "" if is_call else request.title,
        "payload": bound_parts(request.payload, binds) if binds else request.payload,
        "subject": request.subject,
        "about": request.about_hash,
        "schema": request.schema,
        "choices": msgspec.to_builtins(request.choices),
        "recommended": request.recommended,
        "shape": request.shape,
        "policy": request.policy,
        "breakpoint": request.breakpoint,
        "reviewers": list(request.reviewers),
        "quorum": request.quorum,
        "one_account": request.one_account,
        "logins": list(request.logins),
        "signed": request.signed,
        "deadline": terms.deadline,
        "on_timeout": request.on_timeout,
        "escalate_to": list(request.escalate_to),
        "escalate_after": terms.escalate_after,
        "risk": request.risk,
        "node": request.node,
        "when": request.when,
        "path": request.path,
        "key": request.key,
        "item": terms.item,
        "index": terms.index,
        **({"four_eyes": True} if request.four_eyes else {}),
        **({"rubric": list(request.rubric)} if request.rubric else {}),
    }
    return show_hash(item_hash(asks))


def hashed_facts(request: Request) -> dict[str, Any]:
    """Return what the ledger keeps of a request only so that its hash can be computed again."""
    facts = {name: getattr(request, name) for name in _Hashed.__struct_fields__}
    kept: dict[str, Any] = msgspec.to_builtins(
        _Hashed(**{name: thaw(value) for name, value in facts.items()})
    )
    return kept


def logged_hash(title: str | None, data: Mapping[str, Any]) -> str:
    """Return the hash of a request from its entry in the ledger.

    Args:
        title: the entry's note.

    Raises:
        ValidationError, UsageError, ValueRejected: the entry does not describe a request.
    """
    return request_hash(request_in(title, data))


def request_in(title: str | None, data: Mapping[str, Any]) -> Request:
    """Return what its entry in the ledger keeps of a request, without id and step.

    Args:
        title: the entry's note.

    Raises:
        ValidationError: the entry does not describe a request.
    """
    shown = {name: data[name] for name in _SHOWN if name in data}
    asked = {"id": "", "step": 0, "title": title or "", **shown, **data.get(HASHED, {})}
    return msgspec.convert(asked, Request)


def bound_parts(payload: Any, binds: Sequence[str]) -> dict[str, Any]:
    """Return the named parts of a payload; a dotted name names a part of a nested mapping.

    Raises:
        UsageError: the payload has no such part.
    """
    parts: dict[str, Any] = {}
    for name in binds:
        value = payload
        for step in name.split("."):
            if not isinstance(value, Mapping) or step not in value:
                known = ", ".join(payload) if isinstance(payload, Mapping) else in_words(payload)
                raise UsageError(
                    f"binds names {name!r}, which the payload does not have", f"the payload has: {known}"
                )
            value = value[step]
        parts[name] = value
    return parts


def digests_of(state: LiveState, view: WorkflowState, names: Iterable[str]) -> dict[str, bytes]:
    """Return the digests of values in a state by name, also dotted names; b"" for missing ones."""
    return {name: _digest(state.digests, view, name) for name in names}


def about_hash(about: Mapping[str, bytes]) -> str:
    """Return the hash of the values that a request is about; "" for none."""
    return show_hash(item_hash({name: digest.hex() for name, digest in about.items()})) if about else ""


def _digest(digests: Mapping[str, bytes], view: WorkflowState, name: str) -> bytes:
    if name in digests:
        return digests[name]
    try:
        return item_hash(view[name])
    except (UndeclaredChannel, KeyError):
        return b""


# The differences between two requests


def differences(before: Any, now: Any) -> tuple[str, ...]:
    """Return the parts in which two payloads differ, by their dotted names; "" for the payload as a whole."""
    return tuple(_differences(thaw(before), thaw(now), ""))


def _differences(before: Any, now: Any, place: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys((*before, *now)):
            inside = f"{place}.{name}" if place else name
            if name not in before or name not in now:
                yield inside
            else:
                yield from _differences(before[name], now[name], inside)
    elif not equal(before, now):
        yield place


def short_text(value: Any) -> str:
    """Return a value as short text, to be quoted in a sentence."""
    if not isinstance(value, str):
        value = msgspec.json.encode(thaw(value)).decode()
    text = " ".join(value.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
