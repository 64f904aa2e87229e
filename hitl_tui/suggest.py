"""`did you mean ...?` for a misspelt name."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, "" where none is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or all of them when there are few; "" else."""
    names = sorted(known)
    if near := nearest(word, names):
        return near
    return f"known: {', '.join(names)}" if 0 < len(names) <= 12 else ""
