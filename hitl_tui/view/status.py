"""Describes a thread's status: the status line of a screen, and one sentence for plain text and commands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from hitl_tui.engine.log.events import Progress
from hitl_tui.engine.log.records import END, ROLLBACK, LedgerEntry, Status
from hitl_tui.engine.log.requests import Request, RequestKind
from hitl_tui.errors import ExitCode
from hitl_tui.view.failed_branches import failed_branches
from hitl_tui.view.format import cost, duration, stopwatch, tokens
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.lines import name, sentence
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Role

if TYPE_CHECKING:
    from hitl_tui.view.run_view import RunView

DEFAULT_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {"step": "s", "continue": "c", "decide": "d", "edit": "e", "fork": "f", "rollback": "U"}
)
_SHORTEST: Final = 100_000
"""Microseconds of work below which no duration is shown."""
_ASKS: Final[Mapping[RequestKind, str]] = MappingProxyType(
    {"approve": "verdict", "edit": "edit", "choose": "choice", "ask": "question"}
)
_CANCELLED: Final = MappingProxyType(
    {
        "user": "ended by a person",
        "rejected": "rejected by a person",
        "rolled_back": "rolled back",
        "canary": "it was known to be bad, and only measures reviews",
    }
)
_FAILED: Final = MappingProxyType(
    {"dead_end": "no edge leads further", "deadline": "nobody decided before the deadline"}
)
_WIDE: Final = 400


class StatusLine(msgspec.Struct, frozen=True):
    """The status line: `glyph` and `word` ("WAITING") are the badge; `turn` says who acts next and how.

    `brief` replaces `turn` if there is little room: it names only one key, and only the node of a failure.
    """

    glyph: str
    word: str
    role: Role
    turn: str
    brief: str
    step: str
    tokens: str
    cost: str
    elapsed: str

    @property
    def figures(self) -> str:
        """Return step, tokens, cost and elapsed time, as shown at the right of the status line."""
        return " · ".join(part for part in (self.step, self.tokens, self.cost, self.elapsed) if part)


def status(
    view: RunView,
    now_us: int,
    *,
    pausing: bool = False,
    glyphs: Glyphs = UNICODE,
    keys: Mapping[str, str] = DEFAULT_KEYS,
    waits_for: str = "",
) -> StatusLine:
    """Return the status line of a thread at a moment.

    Args:
        pausing: a pause was requested and has not taken effect yet.
        keys: the keys to name, by action: step, continue, decide, input, fork, extend, undo. An empty
            "decide" means that the person is already deciding; "undo" undoes what is being sent.
        waits_for: what the running node waits for before it can start; the brief form is the part before a
            comma.
    """
    progress = view.progress
    glyph, word, role = _badge(view, glyphs)
    since = view.running_since
    flying = max(now_us - since, 0) if since is not None and progress.status == "running" else 0
    used = progress.tokens_in + progress.tokens_out
    keys = {**DEFAULT_KEYS, **keys}
    turn = _turn(view, flying, now_us, pausing, keys)
    brief = _brief(view, turn, pausing, keys)
    if waits_for:
        turn, brief = (f"{words} · {stopwatch(flying)}" for words in (waits_for, waits_for.partition(",")[0]))
    active = progress.active + flying
    return StatusLine(
        glyph=glyph,
        word=word,
        role=role,
        turn=turn,
        brief=brief,
        step=f"step {progress.head}" if progress.head >= 0 else "",
        tokens=tokens(used) if used else "",
        cost=cost(progress.cost, progress.cost_known) if used or progress.cost else "",
        elapsed=duration(active) if active >= _SHORTEST else "",
    )


def _brief(view: RunView, turn: str, pausing: bool, keys: Mapping[str, str]) -> str:
    if pausing and view.running_node and view.progress.status == "running":
        return f"pausing after {_short(view.running_node)}"
    failed = view.progress.status == "failed" and view.error is not None and view.error.node
    return (
        _short(failed) if failed else turn.replace(_go_on(keys), f"press {keys['step'] or keys['continue']}")
    )


def _badge(view: RunView, glyphs: Glyphs) -> tuple[str, str, Role]:
    looks: dict[Status, tuple[str, Role]] = {
        "pending": (glyphs.pending, "accent"),
        "running": (glyphs.running, "node"),
        "waiting": (glyphs.waiting, "accent"),
        "completed": (glyphs.done, "ok"),
        "failed": (glyphs.failed, "error"),
        "cancelled": (glyphs.cancelled, "dim"),
    }
    glyph, role = looks[view.progress.status]
    return glyph, status_word(view.progress).upper(), role


def _turn(view: RunView, flying: int, now: int, pausing: bool, keys: Mapping[str, str]) -> str:
    progress = view.progress
    if view.held_by and progress.status in ("waiting", "pending", "failed"):
        return held_words(view.held_by)
    match progress.status:
        case "running":
            return _running(view, flying, pausing)
        case "waiting":
            return _waiting(view, now, keys)
        case "failed":
            return _failed(view, keys)
        case "completed":
            ended = f"{reason_words(progress, view.ledger)}{_failed_inside(view)}"
            return f"{ended} — {keys['fork']} forks from any step"
        case "cancelled":
            return reason_words(progress)
    return (
        f"{next_words(progress.next_node)} — {_go_on(keys)}"
        if progress.head >= 0
        else f"needs its input{_press(keys, 'input', 'to give it')}"
    )


def _failed_inside(view: RunView) -> str:
    """Return which branches failed in a thread that ended all the same."""
    failed = failed_branches(view.branched, view.progress.head)
    words = " and ".join(
        f"{number:,} branch{'' if number == 1 else 'es'} of {sanitise_line(node, 40)}"
        for node, number in failed.items()
    )
    return f", but {words} failed" if words else ""


def reason_words(progress: Progress, ledger: Sequence[LedgerEntry] = (), width: int = 80) -> str:
    """Return the reason for a thread's status, for a status line or a sentence.

    Args:
        ledger: the available part of it, which names the breakpoint or termination condition.
        width: the width of an error message.
    """
    if progress.status == "completed":
        if progress.reason != "termination":
            return "reached the end"
        stops = [entry.note for entry in ledger if entry.kind == "stop" and entry.note]
        return "ended by its stop condition" + (f": {sanitise_line(stops[-1], 80)}" if stops else "")
    if progress.status == "cancelled":
        return _CANCELLED.get(progress.reason, _short(progress.reason))
    if progress.reason == "limit":
        return f"limit reached: {_limit(progress)}"
    if progress.status == "failed":
        if words := _FAILED.get(progress.reason):
            return words
        error = progress.error
        return sanitise_line((error.message or error.title) if error else progress.reason, width) or "failed"
    if progress.position == ROLLBACK:
        return "rolling back"
    if progress.reason == "paused" and (stop := _stopped_by(progress, ledger)):
        return sanitise_line(stop, 100)
    return next_words(progress.next_node)


def _stopped_by(progress: Progress, ledger: Sequence[LedgerEntry]) -> str:
    from hitl_tui.drivers.breakpoints import stopped_by

    return stopped_by(progress, ledger)


_STANDS: Final[Mapping[Status, str]] = MappingProxyType(
    {
        "pending": "Ready",
        "running": "Running",
        "waiting": "Waiting",
        "completed": "Done",
        "failed": "Failed",
        "cancelled": "Cancelled",
    }
)


def status_word(progress: Progress) -> str:
    """Return the status as people read it: "Waiting", "Paused", "Done"."""
    paused = progress.status == "waiting" and progress.reason == "paused"
    return "Paused" if paused else _STANDS[progress.status]


def standing_line(progress: Progress, held_by: str = "", ledger: Sequence[LedgerEntry] = ()) -> str:
    """Return a thread's status, its reason, and whose turn it is, as one sentence.

    Args:
        ledger: as for `reason_words`.
    """
    stands = f"{status_word(progress)} {f'at step {progress.head}' if progress.head >= 0 else 'not started'}"
    if progress.status == "running":
        return f"{stands}{f' by {name(held_by)}' if held_by else ''}."
    if progress.status == "completed" and progress.reason != "termination":
        return f"{stands}."
    channel = progress.error.channel if progress.status == "failed" and progress.error else ""
    if channel:
        return f"{stands}: {reason_words(progress, ledger, _WIDE)} Edit {name(channel)} to fix it."
    if not progress.pending:
        return sentence(f"{stands}: {reason_words(progress, ledger, _WIDE)}")
    request, more = progress.pending[0], more_words(progress)
    if request.breakpoint:
        return f"{stands}: {stopped_words(request)}{f' ({more})' if more else ''}."
    where = f" of {name(request.path)}" if _names_place(request) else ""
    asked = sanitise_line(request.title, _WIDE)
    return sentence(f"{stands} for a human{where}: {asked}{f' ({more})' if more else ''}")


def standing_code(progress: Progress) -> ExitCode:
    """Return a status code: done, waiting, run by another process, or failed, which includes cancelled."""
    if progress.status == "completed":
        return ExitCode.DONE
    if progress.status in ("waiting", "pending"):
        return ExitCode.WAITING
    return ExitCode.CONFLICT if progress.status == "running" else ExitCode.FAILED


def held_words(holder: str) -> str:
    """Return the text about a thread that another process runs."""
    return f"run by {sanitise_line(holder, 60)} — you can view, not step"


def stopped_words(request: Request) -> str:
    """Return where a plain interrupt, or a breakpoint inside a node, stopped."""
    if request.when == "inside":
        return sanitise_line(request.title, _WIDE)
    return f"stopped {request.when} {_short(request.node)}"


def votes_words(request: Request) -> str:
    """Return how many of the required votes a request has."""
    return f"{len(request.votes)} of {request.quorum} votes"


def deadline_words(deadline: int, now: int) -> str:
    """Return how long a request may still be answered; both times in microseconds since the epoch."""
    return f"expires in {duration(deadline - now)}" if deadline > now else "expired"


def more_words(progress: Progress) -> str:
    """Return how many requests wait after the first one, "" for none."""
    more = len(progress.pending) - 1
    return f"{more} more after it" if more > 0 else ""


def next_words(node: str | None) -> str:
    """Describe what comes next."""
    if node is None:
        return "next: choosing the route"
    return "the end is next" if node == END else f"{_short(node)} is next"


def _names_place(request: Request) -> bool:
    """Whether a request's branch must be named because its title lacks it."""
    return bool(request.path) and request.path not in request.title


def _go_on(keys: Mapping[str, str]) -> str:
    step = f"{keys['step']} to step or " if keys["step"] else ""
    return f"press {step}{keys['continue']} to continue"


def _press(keys: Mapping[str, str], action: str, purpose: str) -> str:
    """Return how to do an action that not every screen offers."""
    return f" — press {keys[action]} {purpose}" if action in keys else ""


def retry_words(attempt: int, max_attempts: int, wait: float) -> str:
    """Return what follows a failed attempt, as "retry 2 of 4 in 8 s"; `wait` in seconds."""
    return f"retry {attempt + 1} of {max_attempts} in {round(wait, 1):g} s"


def _running(view: RunView, flying: int, pausing: bool) -> str:
    retry = view.retry
    if retry:
        again = retry_words(retry.attempt, retry.max_attempts, retry.wait)
        return f"{_short(retry.node)}: {again}: {sanitise_line(retry.why, 80)}"
    if view.held_by:
        at = f"{_short(view.running_node)} · " if view.running_node else ""
        return f"{at}{held_words(view.held_by)}"
    if view.running_node is None:
        return "pausing" if pausing else "between nodes"
    node = _short(view.running_node)
    attempt = f", attempt {view.running_attempt}" if view.running_attempt > 1 else ""
    stops = f" — pausing after {node}" if pausing else ""
    inside = _inside(view)
    return f"{node}{attempt}{inside} · {stopwatch(flying)}{stops}"


def _inside(view: RunView) -> str:
    """Describe the inside of the running node: its branches, or the positions of its threads."""
    inside = view.inside
    if not inside.live or inside.node != view.running_node:
        return ""
    within = [child.running for child in inside.children if child.running]
    if within:
        return "".join(f" › {_short(node)}" for node in within)
    from hitl_tui.view.branches import counted

    words = counted(inside)
    return f" · {words}" if words else ""


def _waiting(view: RunView, now: int, keys: Mapping[str, str]) -> str:
    progress = view.progress
    if progress.pending:
        return _request(progress, progress.pending[0], now, keys)
    reason = reason_words(progress, view.ledger)
    if progress.reason == "limit":
        return f"{reason}{_press(keys, 'extend', 'to extend it')}"
    if progress.position == ROLLBACK:
        return f"{reason} — press {keys['rollback']} to continue that"
    return f"{reason} — {_go_on(keys)}"


def _request(progress: Progress, request: Request, now: int, keys: Mapping[str, str]) -> str:
    node = _short(request.node)
    if request.breakpoint:
        return f"{stopped_words(request)} — {_go_on(keys)}"
    what = sanitise_line(request.title, 60) or f"{_ASKS[request.kind]} of {node}"
    if _names_place(request):
        what = f"{sanitise_line(request.path, 40)}: {what}"
    parts = [f"{what} — {_yours(keys)}"]
    if request.reviewers:
        voted = {vote.actor for vote in request.votes}
        left_to_vote = [reviewer for reviewer in request.reviewers if reviewer not in voted]
        names = ", ".join(map(_short, left_to_vote or request.reviewers))
        parts = [f"{what} — waits for {names}"]
    elif request.logins:
        parts = [f"{what} — waits for login {' or '.join(map(_short, request.logins))}"]
    if request.quorum > 1:
        parts.append(votes_words(request))
    if request.deadline is not None:
        parts.append(deadline_words(request.deadline, now))
    if more := more_words(progress):
        parts.append(more)
    return ", ".join(parts)


def _yours(keys: Mapping[str, str]) -> str:
    """Return what a person may do about a request; without a key they are already at it."""
    if "unable" in keys:
        return sanitise_line(keys["unable"].partition(":")[0], 60)
    if "undo" in keys:
        return f"being sent, {keys['undo']} undoes it"
    return f"your turn, press {keys['decide']}" if keys["decide"] else "your turn"


def _failed(view: RunView, keys: Mapping[str, str]) -> str:
    progress, error = view.progress, view.error
    again = "rollback" if progress.position == ROLLBACK else "step"
    retry = keys[again] or keys["continue"]
    keys_text = f"press {retry} to try again, {keys['edit']} to edit, {keys['fork']} to fork"
    reason = reason_words(progress, view.ledger)
    if progress.reason == "limit":
        return f"{reason}{_press(keys, 'extend', 'to extend it')}"
    if progress.reason == "dead_end":
        return f"{reason} — {keys_text}"
    if progress.reason == "deadline" or error is None:
        return reason
    if not error.node:
        runs = " or ".join(filter(None, (keys["step"], keys["continue"])))
        return f"{_short(error.title)} — {runs} continues once it can"
    return f"{_short(error.node)} — {keys_text}"  # the rows below give the reason


def _limit(progress: Progress) -> str:
    """Return which limit was reached, by what is used up."""
    limits = progress.limits
    if limits.max_cost_usd is not None and progress.cost >= limits.max_cost_usd:
        return f"{cost(progress.cost, progress.cost_known)} of {cost(limits.max_cost_usd)}"
    if limits.max_cost_usd is not None and limits.on_unknown_price == "stop" and not progress.cost_known:
        return f"{cost(limits.max_cost_usd)}, and the price of a model is unknown"
    used = progress.tokens_in + progress.tokens_out
    if limits.max_tokens is not None and used >= limits.max_tokens:
        return f"{used:,} of {limits.max_tokens:,} tokens"
    if limits.max_seconds is not None and progress.active >= limits.max_seconds * 1_000_000:
        return f"{duration(progress.active)} of {limits.max_seconds:g} s"
    return f"{progress.iteration} iterations"


def raised_limit(progress: Progress) -> str:
    """Return the reached limit, doubled, as `extend` takes it: "max_iterations=50"."""
    limits = progress.limits
    used = (
        ("max_cost_usd", progress.cost),
        ("max_tokens", progress.tokens_in + progress.tokens_out),
        ("max_seconds", progress.active / 1_000_000),
    )
    for limit, amount in used:
        allowed = getattr(limits, limit)
        if allowed is not None and amount >= allowed:
            more = 2 * max(amount, allowed)
            return f"{limit}={math.ceil(more) if limit != 'max_cost_usd' else round(more, 4)}"
    return f"max_iterations={2 * max(progress.iteration, limits.max_iterations or 0)}"


def _short(text: str) -> str:
    return sanitise_line(text, 40)
