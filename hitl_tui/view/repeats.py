"""Describes what would run again: which steps are kept, the side effects, and the last use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hitl_tui.engine.log.events import Preview
from hitl_tui.engine.log.repeats import NodeRepeat, Repeats
from hitl_tui.view.format import cost, count, duration, tokens
from hitl_tui.view.sanitise import sanitise_line

_NAME: Final = 40
_WORDS: Final = 60
_NAMED: Final = 6
"""Most names in a sentence."""


def standing_words(repeats: Repeats) -> str:
    """Describe what changed, and which steps are kept: "score changed · steps 1-9 are kept"."""
    changed = f"{_names(repeats.changed)} changed" if repeats.changed else "no code that ran changed"
    if not repeats.step:
        stand = "only the input is kept"
    elif repeats.step == repeats.head:
        stand = "all steps are kept"
    else:
        stand = "step 1 is kept" if repeats.step == 1 else f"steps 1–{repeats.step} are kept"
    return f"{changed} · {stand}"


def running_words(repeats: Repeats) -> str:
    """Describe what would run, its side effects and use: "runs score · no side effects known · $0.01"."""
    runs = _names(_run_words(repeat) for repeat in repeats.nodes)
    return " · ".join(
        (f"runs {runs}" if runs else "nothing ran after it", _outside(repeats), *_used(repeats))
    )


def fork_lines(preview: Preview) -> list[str]:
    """Describe what a fork would run again, and which thread it moves, a sentence per line; sanitised."""
    lines = repeat_lines(preview.repeats, in_fork=True) if preview.repeats is not None else []
    if preview.moves:
        thread = sanitise_line(preview.moves, _NAME)
        lines.append(
            f"LangGraph keeps the fork in thread {thread!r} too: once the fork runs or is edited, "
            f"your application's next turn in {thread!r} continues from it."
        )
    return lines


def repeat_lines(repeats: Repeats, *, brief: bool = False, in_fork: bool = False) -> list[str]:
    """Describe what would run again in full, a sentence per line; sanitised.

    Args:
        brief: leave out what only reassures.
        in_fork: whether a fork runs it, not this thread.
    """
    lines = []
    if repeats.nodes:
        runs = "The fork will run" if in_fork else "Runs again"
        lines.append(f"{runs}: {_names(_run_words(repeat) for repeat in repeats.nodes)}.")
    lines += [
        f"{sanitise_line(repeat.node, _NAME)} has side effects: {_names(repeat.outside)}."
        for repeat in repeats.outside[:_NAMED]
    ]
    if repeats.nodes and not repeats.outside and not brief:
        lines.append("None of these nodes is known to have side effects.")
    if used := _used(repeats):
        lines.append(f"Last time: {', '.join(used)}.")
    if repeats.decisions:
        are = "is" if repeats.decisions == 1 else "are"
        lines.append(f"{count(repeats.decisions, 'human decision')} made later {are} not carried over.")
    if repeats.unknown:
        lines.append(f"Not everything was compared: {sanitise_line(repeats.unknown, 200)}.")
    return lines


def _run_words(repeat: NodeRepeat) -> str:
    return f"{repeat.node} ×{repeat.runs}" if repeat.runs > 1 else repeat.node


def _outside(repeats: Repeats) -> str:
    if not repeats.outside:
        return "no side effects known"
    return f"side effects: {_names(f'{repeat.node} {repeat.outside[0]}' for repeat in repeats.outside)}"


def _used(repeats: Repeats) -> list[str]:
    """Return dollars, tokens and seconds, as far as any were used."""
    sent = repeats.tokens_in + repeats.tokens_out
    used = []
    if sent:
        used = [cost(repeats.cost, repeats.cost_known), tokens(sent)]
    return [*used, duration(repeats.duration)] if repeats.duration else used


def _names(words: Iterable[str]) -> str:
    each = [sanitise_line(word, _WORDS) for word in words]
    rest = len(each) - _NAMED
    return ", ".join([*each[:_NAMED], f"{rest:,} more"] if rest > 0 else each)
