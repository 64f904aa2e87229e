"""Reasons to pick from, and scores for a rubric: reads what was typed, and returns what is said with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hitl_tui.engine.thread.measures import HIGHEST, LOWEST, Reason
from hitl_tui.errors import UsageError
from hitl_tui.view.sanitise import sanitise_line

_TEXT = 200
_ENDS = (".", "!", "?", "…", "。", "！", "？", "؟", ":", ";")


def pick_reasons(known: Sequence[Reason], given: Iterable[str]) -> tuple[Reason, ...]:
    """Return reasons by their ids or numbers, each once.

    Raises:
        UsageError: there is no such reason.
    """
    picked: dict[str, Reason] = {}
    for word in given:
        number = int(word) if word.isascii() and word.isdigit() else 0
        by_id = next((reason for reason in known if reason.id == word), None)
        reason = by_id or (known[number - 1] if 1 <= number <= len(known) else None)
        if reason is None:
            listed = ", ".join(f"{place} {each.id}" for place, each in enumerate(known, 1))
            hint = f"reasons: {listed}" if known else 'name a file of reasons: reasons = "…" in config.toml'
            raise UsageError(f"there is no reason {word!r}", hint)
        picked[reason.id] = reason
    return tuple(picked.values())


def typed_reasons(known: Sequence[Reason], typed: str) -> tuple[tuple[Reason, ...], str]:
    """Return the reasons that a typed line picks, and its other words: "2", "1 3" or "2: and dull".

    Raises:
        UsageError: there is no reason of that number.
    """
    numbers, colon, words = typed.partition(":")
    picks = numbers.replace(",", " ").split()
    if not known or not picks or not all(pick.isascii() and pick.isdigit() for pick in picks):
        return (), typed
    if not colon and len(picks) == 1 and int(picks[0]) > len(known):
        return (), typed
    return pick_reasons(known, picks), words.strip()


def reason_words(picked: Sequence[Reason], words: str) -> str:
    """Return what is said with an answer: the texts of the reasons as sentences, then the typed words."""
    texts = (reason.text if reason.text.endswith(_ENDS) else f"{reason.text}." for reason in picked)
    return " ".join(part for part in (*texts, words.strip()) if part)


def reason_lines(known: Sequence[Reason]) -> list[str]:
    """Return the reasons to pick from, sanitised."""
    return [sanitise_line(reason.text, _TEXT) for reason in known]


def read_scores(rubric: Sequence[str], given: Iterable[str]) -> dict[str, int]:
    """Read scores, as "accuracy=4"; a number alone is for the first criterion without a score.

    Raises:
        UsageError: it is no score, or the rubric has no such criterion.
    """
    scores: dict[str, int] = {}
    for word in given:
        name, equals, number = word.rpartition("=")
        if not equals:
            name = next((each for each in rubric if each not in scores), "")
        if name not in rubric:
            known = ", ".join(rubric)
            raise UsageError(
                f"there is no criterion {name or word!r} to score",
                f"its criteria: {known}" if known else "the request has no rubric",
            )
        if not (number.isascii() and number.isdigit() and LOWEST <= int(number) <= HIGHEST):
            raise UsageError(f"{word!r} is not a score", f"give {LOWEST} to {HIGHEST}, as {name}=4")
        scores[name] = int(number)
    return scores


def score_words(rubric: Sequence[str], scores: Mapping[str, int]) -> str:
    """Return the scores of a rubric, as "accuracy 4, tone -"; sanitised."""
    return ", ".join(f"{sanitise_line(name, _TEXT)} {scores.get(name, '-')}" for name in rubric)
