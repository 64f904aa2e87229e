"""Shows matches in the log as lines: places of a text, moments at which a condition became true."""

from __future__ import annotations

from typing import Final

from hitl_tui.drivers.history import Asked, Moment, SearchHit
from hitl_tui.view.format import count, inline
from hitl_tui.view.leaves import changed_leaves, has_leaves, leaf_line
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, trusted, untrusted

_NAME: Final = 24
_AROUND: Final = 40
_VALUE: Final = 30
_LEAVES: Final = 3
_WHAT: Final = {"streamed": "wrote", "tool": "called", "error": "failed"}


def place_of(hit: SearchHit) -> str:
    """Describe a match's place, sanitised: `facts[2].source`, `wrote`, `called lookup`."""
    name = sanitise_line(hit.name, _NAME)
    if hit.kind == "update":
        return name + sanitise_line(hit.path, _NAME)
    word = _WHAT.get(hit.kind, "")
    if hit.kind == "streamed":
        return f"{name} {word}" if name else word
    return f"{word} {name}".strip()


def hit_line(hit: SearchHit) -> Line:
    """Return a line about a match: its place, and the text with its surroundings."""
    before = sanitise_line(hit.before, 4 * _AROUND)[-_AROUND:].lstrip()
    return (
        untrusted(f"inside {hit.thread}: " if hit.thread else "", "dim", 80),
        trusted(f"{place_of(hit)}  ", "name"),
        trusted(before, "dim"),
        trusted(sanitise_line(hit.match, 80), "accent"),
        untrusted(hit.after, "dim", 3 * _AROUND),
    )


def moment_line(moment: Moment) -> Line:
    """Return a line about what made a condition true: each channel that the step wrote, before and after."""
    spans: list[Span] = []
    for name, before in moment.before.items():
        after = moment.after[name]
        space = "  " if spans else ""
        if has_leaves(before, after) and (leaves := changed_leaves(before, after, _LEAVES)).first:
            for leaf in leaves.first:
                spans += [trusted(space), *leaf_line(leaf, name=name)]
                space = "  "
            spans.append(trusted(" …" if leaves.more else "", "dim"))
            continue
        spans += [
            untrusted(f"{space}{name}  ", "name", _NAME + 4),
            trusted(f"{inline(before, _VALUE)} → ", "dim"),
            trusted(inline(after, _VALUE), "accent" if before != after else "dim"),
        ]
    return tuple(spans) or (trusted("true from the beginning", "dim"),)


def answer_line(answer: Asked) -> str:
    """Describe how often a condition became true."""
    steps = count(answer.looked, "step")
    if not answer.moments:
        summary = f"never true in {steps}"
    else:
        times = "" if len(answer.moments) == 1 else f", {len(answer.moments):,} times in total"
        summary = f"first at step {answer.moments[0].step}{times}, {steps} checked"
    if answer.undefined:
        summary += f"; {count(answer.undefined, 'step')} undefined ({sanitise_line(answer.why, 120)})"
    return summary
