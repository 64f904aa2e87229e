"""The status line: in words, what is going on and whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from hitl_tui.drivers.breakpoints import stopped_by
from hitl_tui.engine.log.events import Progress
from hitl_tui.engine.log.records import END, ROLLBACK, Status
from hitl_tui.engine.log.requests import Request, RequestKind
from hitl_tui.view.branches import counted
from hitl_tui.view.format import cost, duration, tokens
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.run_view import RunView
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Role

DEFAULT_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {"step": "s", "continue": "c", "decide": "d", "edit": "e", "fork": "f", "rollback": "U"}
)
_SHORTEST: Final = 100_000
"""Microseconds of work below which nothing is told of them."""
_ASKS: Final[Mapping[RequestKind, str]] = MappingProxyType(
    {"approve": "verdict", "edit": "edit", "choose": "choice", "ask": "question"}
)
_CANCELLED: Final = MappingProxyType(
    {"user": "cancelled by a person", "rejected": "rejected by a person", "rolled_back": "rolled back"}
)


@dataclass(frozen=True, slots=True)
class StatusLine:
    """`glyph` and `word` ("WAITING") are the badge; `turn` says whose turn it is and how to go on.

    `brief` is the turn where there is little room: it names one key alone, and of a failure the node.
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
        """Step, tokens, cost and elapsed time, as at the right of the status line."""
        return " · ".join(part for part in (self.step, self.tokens, self.cost, self.elapsed) if part)


def status(
    view: RunView,
    now_us: int,
    *,
    pausing: bool = False,
    glyphs: Glyphs = UNICODE,
    keys: Mapping[str, str] = DEFAULT_KEYS,
) -> StatusLine:
    """The status of a thread at a moment.

    Args:
        pausing: a pause was asked for and is not reached yet.
        keys: the keys that the words name, by action: step, continue, decide, input, fork, extend, undo.
            An empty one for "decide" says that a person is at it; "undo" takes back what is being sent.
    """
    progress = view.progress
    glyph, word, role = _badge(view, glyphs)
    since = view.running_since
    flying = max(now_us - since, 0) if since is not None and progress.status == "running" else 0
    used = progress.tokens_in + progress.tokens_out
    keys = {**DEFAULT_KEYS, **keys}
    turn = _turn(view, flying, now_us, pausing, keys)
    active = progress.active + flying
    return StatusLine(
        glyph=glyph,
        word=word,
        role=role,
        turn=turn,
        brief=_brief(view, turn, pausing, keys),
        step=f"step {progress.head}" if progress.head >= 0 else "",
        tokens=tokens(used) if used else "",
        cost=cost(progress.cost, progress.cost_known) if used or progress.cost else "",
        elapsed=duration(active) if active >= _SHORTEST else "",
    )


def _brief(view: RunView, turn: str, pausing: bool, keys: Mapping[str, str]) -> str:
    if pausing and view.running_node and view.progress.status == "running":
        return f"pausing after {_one(view.running_node)}"
    failed = view.progress.status == "failed" and view.error is not None and view.error.node
    return _one(failed) if failed else turn.replace(_go_on(keys), f"press {keys['step']}")


def _badge(view: RunView, glyphs: Glyphs) -> tuple[str, str, Role]:
    badges: dict[Status, tuple[str, str, Role]] = {
        "pending": (glyphs.pending, "READY", "accent"),
        "running": (glyphs.running, "RUNNING", "node"),
        "waiting": (glyphs.waiting, "WAITING", "accent"),
        "completed": (glyphs.done, "DONE", "ok"),
        "failed": (glyphs.failed, "FAILED", "error"),
        "cancelled": (glyphs.cancelled, "CANCELLED", "dim"),
    }
    progress = view.progress
    if progress.status == "waiting" and progress.reason == "paused":
        return glyphs.waiting, "PAUSED", "accent"
    return badges[progress.status]


def _turn(view: RunView, flying: int, now: int, pausing: bool, keys: Mapping[str, str]) -> str:
    progress = view.progress
    if view.held_by and progress.status in ("waiting", "pending", "failed"):
        return f"{_holder(view)} — you can look, not step"
    match progress.status:
        case "running":
            return _running(view, flying, pausing)
        case "waiting":
            return _waiting(view, now, keys)
        case "failed":
            return _failed(view, keys)
        case "completed":
            ended = _ended(view) if progress.reason == "termination" else "reached the end"
            return f"{ended} — {keys['fork']} forks from any step"
        case "cancelled":
            return _CANCELLED.get(progress.reason, _one(progress.reason))
    return (
        f"{_next(progress)} — {_go_on(keys)}"
        if progress.head >= 0
        else f"needs its input{_press(keys, 'input', 'to give it')}"
    )


def _ended(view: RunView) -> str:
    """Which termination condition it was, as far as the ledger at hand tells."""
    stops = [entry.note for entry in view.ledger if entry.kind == "stop" and entry.note]
    return "ended by its termination condition" + (f": {sanitise_line(stops[-1], 80)}" if stops else "")


def _go_on(keys: Mapping[str, str]) -> str:
    return f"press {keys['step']} to step or {keys['continue']} to continue"


def _press(keys: Mapping[str, str], action: str, purpose: str) -> str:
    """How to do what not every screen offers."""
    return f" — press {keys[action]} {purpose}" if action in keys else ""


def _next(progress: Progress) -> str:
    node = progress.next_node
    if node is None:
        return "the way on is decided next"
    return "the end is next" if node == END else f"{_one(node)} is next"


def retry_words(attempt: int, max_attempts: int, wait: float) -> str:
    """What comes after a failed attempt, as "retry 2 of 4 in 8 s"; `wait` in seconds."""
    return f"retry {attempt + 1} of {max_attempts} in {round(wait, 1):g} s"


def _running(view: RunView, flying: int, pausing: bool) -> str:
    retry = view.retry
    if retry:
        again = retry_words(retry.attempt, retry.max_attempts, retry.wait)
        return f"{_one(retry.node)}: {again}: {sanitise_line(retry.why, 80)}"
    if view.held_by:
        at = f"{_one(view.running_node)} · " if view.running_node else ""
        return f"{at}{_holder(view)} — you can look, not step"
    if view.running_node is None:
        return "pausing" if pausing else "between nodes"
    node = _one(view.running_node)
    attempt = f", attempt {view.running_attempt}" if view.running_attempt > 1 else ""
    stops = f" — pausing after {node}" if pausing else ""
    inside = _inside(view)
    return f"{node}{attempt}{inside} · {duration(flying)}{stops}"


def _inside(view: RunView) -> str:
    """What goes on inside the node in flight: its branches, or where its threads are."""
    inside = view.inside
    if not inside.live or inside.node != view.running_node:
        return ""
    within = [one.running for one in inside.children if one.running]
    if within:
        return "".join(f" › {_one(name)}" for name in within)
    words = counted(inside)
    return f" · {words}" if words else ""


def _holder(view: RunView) -> str:
    return f"run by {sanitise_line(view.held_by, 60)}"


def _waiting(view: RunView, now: int, keys: Mapping[str, str]) -> str:
    progress = view.progress
    if progress.pending:
        return _request(progress, progress.pending[0], now, keys)
    if progress.reason == "limit":
        return f"limit reached: {_limit(progress)}{_press(keys, 'extend', 'to extend it')}"
    if progress.position == ROLLBACK:
        return f"being rolled back — press {keys['rollback']} to go on with that"
    if stop := stopped_by(progress, view.ledger):
        return f"{sanitise_line(stop, 100)} — {_go_on(keys)}"
    return f"{_next(progress)} — {_go_on(keys)}"


def _request(progress: Progress, request: Request, now: int, keys: Mapping[str, str]) -> str:
    node = _one(request.node)
    if request.breakpoint:
        return f"stopped {request.when} {node} — {_go_on(keys)}"
    what = sanitise_line(request.title, 60) or f"{_ASKS[request.kind]} of {node}"
    if request.path and not request.title.startswith(request.path):
        what = f"{sanitise_line(request.path, 40)}: {what}"
    parts = [f"{what} — {_yours(keys)}"]
    if request.reviewers:
        voted = {vote.actor for vote in request.votes}
        left_to_vote = [name for name in request.reviewers if name not in voted]
        names = ", ".join(_one(name) for name in left_to_vote or request.reviewers)
        parts = [f"{what} — waits for {names}"]
    if request.quorum > 1:
        parts.append(f"{len(request.votes)} of {request.quorum} votes")
    if request.deadline is not None:
        left = request.deadline - now
        parts.append(f"expires in {duration(left)}" if left > 0 else "expired")
    if len(progress.pending) > 1:
        parts.append(f"{len(progress.pending) - 1} more after it")
    return ", ".join(parts)


def _yours(keys: Mapping[str, str]) -> str:
    """What a person may do about a request; without a key to decide they are at it."""
    if "unable" in keys:
        return "its graph is needed to decide"
    if "undo" in keys:
        return f"being sent, {keys['undo']} takes it back"
    return f"your turn, press {keys['decide']}" if keys["decide"] else "your turn"


def _failed(view: RunView, keys: Mapping[str, str]) -> str:
    progress, error = view.progress, view.error
    again = "rollback" if progress.position == ROLLBACK else "step"
    ways = f"press {keys[again]} to try again, {keys['edit']} to edit, {keys['fork']} to fork"
    if progress.reason == "limit":
        return f"limit reached: {_limit(progress)}{_press(keys, 'extend', 'to extend it')}"
    if progress.reason == "dead_end":
        return f"no edge leads on — {ways}"
    if progress.reason == "deadline":
        return "nobody decided before the deadline"
    if error is None:
        return _one(progress.reason) or "failed"
    if not error.node:
        return f"{_one(error.title)} — {keys['step']} or {keys['continue']} goes on once it can"
    return f"{_one(error.node)}: {sanitise_line(error.message or error.title, 80)} — {ways}"


def _limit(progress: Progress) -> str:
    """Which limit it was, by what is used up."""
    limits = progress.limits
    if limits.max_cost_usd is not None and progress.cost >= limits.max_cost_usd:
        return f"{cost(progress.cost, progress.cost_known)} of {cost(limits.max_cost_usd)}"
    used = progress.tokens_in + progress.tokens_out
    if limits.max_tokens is not None and used >= limits.max_tokens:
        return f"{used:,} of {limits.max_tokens:,} tokens"
    if limits.max_seconds is not None and progress.active >= limits.max_seconds * 1_000_000:
        return f"{duration(progress.active)} of {limits.max_seconds:g} s"
    return f"{progress.iteration} iterations"


def _one(name: str) -> str:
    return sanitise_line(name, 40)
