"""Draws a value over the run in one row: blocks for numbers, letters for words."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import Any, Final

from hitl_tui.drivers.history import Sample
from hitl_tui.view.format import kind
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, trusted

BLOCKS: Final = "▁▂▃▄▅▆▇█"
NULL: Final = "·"
UNTOLD: Final = "?"


def strip(samples: Sequence[Sample], width: int) -> Line:
    """Draw samples as cells, at most `width`, the newest last; null and unknown have glyphs of their own."""
    shown = _thinned(samples, width)
    values = [sample.value for sample in shown]
    amounts = [_amount(value) for value in values]
    letters = _letters(values)
    known = [amount for amount in amounts if amount is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    spans: list[Span] = []
    for sample, amount, letter in zip(shown, amounts, letters, strict=True):
        if sample.why:
            spans.append(trusted(UNTOLD, "warning"))
        elif amount is not None:
            spans.append(trusted(_block(amount, low, high), "dim"))
        else:
            spans.append(trusted(letter, "error" if sample.value is None else "dim"))
    return tuple(spans)


def _thinned(samples: Sequence[Sample], width: int) -> list[Sample]:
    if len(samples) <= width:
        return list(samples)
    last = len(samples) - 1
    return [samples[round(index * last / max(width - 1, 1))] for index in range(width)]


def _amount(value: Any) -> float | None:
    """Return the height of a value: a number, true or false, the number of items."""
    what = kind(value)
    if what in ("list", "object"):
        return float(len(value))
    if what not in ("number", "bool"):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _block(amount: float, low: float, high: float) -> str:
    if not high > low:
        return BLOCKS[0] if amount == 0 else BLOCKS[3]
    if isinf(high - low):
        return BLOCKS[-1] if amount == high else BLOCKS[0]
    return BLOCKS[min(int((amount - low) / (high - low) * len(BLOCKS)), len(BLOCKS) - 1)]


def _letters(values: Sequence[Any]) -> list[str]:
    """Return a letter for each text, from the first place where they differ."""
    texts = list(dict.fromkeys(value for value in values if isinstance(value, str)))
    at = 0
    while len(texts) > 1 and at < 200 and len({text[at : at + 1] for text in texts}) == 1:
        at += 1
    return [
        (sanitise_line(value[at : at + 1], 1).strip() or "_") if isinstance(value, str) else NULL
        for value in values
    ]
