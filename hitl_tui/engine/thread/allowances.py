"""Allowances: decisions in the ledger that certain calls need no approval in a thread.

They are read from the ledger, so only a decision makes one; a fork has none of its parent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

import msgspec

from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.log.units import Time, about
from hitl_tui.engine.state.canonical import equal
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.approval_formats import ToolAction, actions_of
from hitl_tui.engine.thread.logged import decisions

ALLOWED: Final = "allowed"
"""The kind of the ledger's entry for a new allowance."""
REVOKED: Final = "allowance_revoked"
APPROVE: Final = "approve"
"""The answer that an allowance gives."""


class Allowance(msgspec.Struct, frozen=True):
    """Calls of a tool that need no approval in a thread.

    Args:
        args: by the name of an argument, what it must be: a text is a pattern (`*`, `?`, `[a-z]`) for texts,
            any other value must be equal. Other arguments may be anything, unless `exact` is set.
        exact: the arguments are exactly these, and texts are not patterns.
    """

    id: Annotated[str, about("The id, as `revoke` takes it.")]
    tool: Annotated[str, about("The tool.")]
    args: Annotated[Mapping[str, Any], about("Patterns for its arguments.")]
    exact: Annotated[bool, about("Whether the arguments must be exactly these.")]
    high_risk: Annotated[bool, about("Whether it includes calls of high risk.")]
    tainted: Annotated[bool, about("Whether it includes calls by nodes that read untrusted data.")]
    actor: Annotated[str | None, about("Who granted it.")]
    note: Annotated[str | None, about("The reason they gave.")]
    at: Annotated[Time, about("When.")]
    thread: Annotated[str, about("The thread that it applies to, with the threads inside it.")]
    expires_at: Annotated[Time | None, about("When it ends; null if only `revoke` ends it.")] = None

    def ended(self, now: int) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and now >= self.expires_at

    def holds(self, action: ToolAction) -> bool:
        """Whether a call is allowed by it."""
        if action.name != self.tool or APPROVE not in action.allowed:
            return False
        given, wanted = thaw(action.args), thaw(self.args)
        if self.exact:
            return equal(given, wanted)
        if not isinstance(given, Mapping):
            return not wanted
        return all(name in given and _matches(given[name], pattern) for name, pattern in wanted.items())


def _matches(value: Any, pattern: Any) -> bool:
    if isinstance(pattern, str):
        return isinstance(value, str) and fnmatchcase(value, pattern)
    return equal(value, pattern)


def allowances(ledger: Iterable[LedgerEntry], thread_id: str) -> tuple[Allowance, ...]:
    """Return the allowances of a thread that were not revoked, oldest first; some may have ended."""
    standing: dict[str, Allowance] = {}
    for entry in ledger:
        if entry.thread_id != thread_id or not isinstance(entry.data, Mapping):
            continue
        named = str(entry.data.get("id", ""))
        if entry.kind == REVOKED:
            standing.pop(named, None)
        elif entry.kind == ALLOWED:
            args, expires_at = entry.data.get("args"), entry.data.get("expires_at")
            standing[named] = Allowance(
                id=named,
                tool=str(entry.data.get("tool", "")),
                args=args if isinstance(args, Mapping) else {},
                exact=entry.data.get("exact") is True,
                high_risk=entry.data.get("high_risk") is True,
                tainted=entry.data.get("tainted") is True,
                actor=entry.actor,
                note=entry.note,
                at=entry.at,
                thread=thread_id,
                expires_at=expires_at if isinstance(expires_at, int) else None,
            )
    return tuple(standing.values())


def allowances_for(store: Store, info: ThreadInfo) -> tuple[Allowance, ...]:
    """Return the allowances that apply in a thread: its own, and those of the threads that contain it."""
    known: list[Allowance] = []
    above: ThreadInfo | None = info
    while above is not None:
        known += allowances(decisions(store, above.thread_id), above.thread_id)
        above = store.info(above.owner.thread_id) if above.owner else None
    return tuple(known)


def allowed_by(known: Iterable[Allowance], request: Request, now: int) -> tuple[Allowance, ...]:
    """Return the allowances that answer a request, one for each of its calls; () if a person must answer."""
    if not request.shape or request.reviewers or request.logins or request.quorum > 1 or request.signed:
        return ()
    if request.four_eyes:
        return ()
    fitting = [
        allowance
        for allowance in known
        if not allowance.ended(now)
        and (allowance.high_risk or request.risk != "high")
        and (allowance.tainted or not request.tainted)
    ]
    found: list[Allowance] = []
    for action in actions_of(request.shape, thaw(request.payload)):
        allowance = next((allowance for allowance in fitting if allowance.holds(action)), None)
        if allowance is None:
            return ()
        found.append(allowance)
    return tuple(found)
