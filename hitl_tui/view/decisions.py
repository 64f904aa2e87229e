"""The page of decisions: its filter, a row for each decision, and the details of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from hitl_tui.drivers.decided import DecisionFilter, Wanted
from hitl_tui.drivers.history import AROUND
from hitl_tui.engine.log.units import span_of
from hitl_tui.suggest import did_you_mean
from hitl_tui.view.cells import cells, fitted, thread_name
from hitl_tui.view.followed import DecisionOutcome, done_words, run_again, then_words
from hitl_tui.view.format import local_time
from hitl_tui.view.rows import wrap_rich
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, trusted, untrusted

EXAMPLE: Final = "words, by:ann, by:me, thread:report, since:7d, until:2026-11-20"
_WORDS: Final = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_FIELDS: Final = ("by", "thread", "since", "until")
_BREAKS: Final = re.compile(r"\s*\n\s*")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_SHOWN_ANYWAY: Final = ("question", "reason")
_WHAT: Final = 200
_WHO: Final = 40
_GAP: Final = 2


class ReadFilter(NamedTuple):
    """A typed filter; `problems` are its parts that can't be read, which are ignored."""

    wanted: DecisionFilter
    problems: tuple[str, ...] = ()


def read_filter(text: str, now: int, me: str) -> ReadFilter:
    """Read a filter such as `by:ann since:7d -thread:test "two words"`.

    A word without a field is in the question, the reason, the answer or the text decided about; "-" before a
    word negates it. `by:me` is the person who asks.
    """
    words: list[Wanted] = []
    people: list[Wanted] = []
    threads: list[Wanted] = []
    problems: list[str] = []
    times: dict[str, int] = {}
    person = ""
    for word in _WORDS.findall(text):
        unless = word.startswith("-") and len(word) > 1
        field, colon, value = word.removeprefix("-" if unless else "").partition(":")
        if not (colon and field.isalpha() and field.islower()) or value.startswith("//"):
            field, value = "", field + colon + value
        value = value.replace('"', "").strip()
        if not value:
            continue
        wanted = Wanted(value.casefold(), unless)
        if not field:
            words.append(wanted)
        elif field == "by" and value == "me" and not unless:
            person = me
        elif field == "by":
            people.append(wanted)
        elif field == "thread":
            threads.append(wanted)
        elif field not in _FIELDS:
            hint = did_you_mean(field, _FIELDS) or f"there are {', '.join(_FIELDS)}"
            problems.append(f"there is no {field}: to filter by; {hint}")
        else:
            try:
                times[field] = moment_of(value, now, end=field == "until")
            except ValueError as error:
                problems.append(f"{field}: {error}")
    return ReadFilter(
        DecisionFilter(
            tuple(words), tuple(people), person, tuple(threads),
            since=times.get("since"), until=times.get("until"),
        ),
        tuple(problems),
    )  # fmt: skip


_MINE: Final = "by:me"


def with_mine(text: str) -> str:
    """Return a filter for the person's own decisions only; without that, if it was so."""
    words = _WORDS.findall(text)
    left = [word for word in words if word != _MINE]
    return " ".join(left if len(left) < len(words) else [_MINE, *words])


def moment_of(text: str, now: int, *, end: bool = False) -> int:
    """Return the microseconds since the epoch of "7d" (ago), "today", "yesterday" or "2026-11-20".

    Args:
        end: of the end of that day.

    Raises:
        ValueError: it is none of these.
    """
    today = datetime.fromtimestamp(now / 1e6).replace(hour=0, minute=0, second=0, microsecond=0)
    if text in ("today", "yesterday"):
        day = today - timedelta(days=text == "yesterday")
    elif _DAY.fullmatch(text):
        try:
            day = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text} is no day") from None
    else:
        try:
            return now - span_of(text)
        except ValueError:
            raise ValueError(f"{text!r} is no time: write 7d, today, yesterday or 2026-11-20") from None
    return int((day + timedelta(days=1) if end else day).timestamp() * 1e6)


# -- the rows ------------------------------------------------------------------------------------------


class DecisionColumns(NamedTuple):
    """The widths of the columns in cells; 0 for one without room."""

    when: int
    who: int
    thread: int
    what: int
    why: int
    then: int


HEADS: Final = ("when", "who", "thread", "what", "why", "result")
_LEAST_WIDTH: Final = 60
_TIMES_FROM: Final = 100
"""Cells from which a row has room for the time of another day."""
_DAY_CELLS: Final = len("2026-11-20")


def columns_of(decisions: Sequence[DecisionOutcome], width: int) -> DecisionColumns:
    """Return columns for a width: names as wide as they are, texts share the rest."""
    when = max([cells(local_time(each.at)) for each in decisions], default=0)
    if width < _TIMES_FROM:
        when = min(when, _DAY_CELLS)
    who = min(max([cells(_who(each)) for each in decisions], default=0), 14 if width >= _TIMES_FROM else 8)
    thread = min(max([cells(_thread(each)) for each in decisions], default=0), width // 6)
    when, who, thread = (
        max(size, cells(head)) for size, head in zip((when, who, thread), HEADS[:3], strict=True)
    )
    rest = max(width, _LEAST_WIDTH) - when - who - thread - _GAP * (len(HEADS) - 1)
    needs = [
        max(cells(head), *(cells(words(each)) for each in decisions), 0)
        for head, words in zip(HEADS[3:], (done_words, _why, then_words), strict=True)
    ]
    what, why, then = _shares(needs, rest)
    return DecisionColumns(when, who, thread, what, why, then)


def _shares(needs: Sequence[int], room: int) -> list[int]:
    """Return widths for texts that need so many cells: the longest give way, the last one gets the rest."""
    widths = list(needs)
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    widths[-1] += room - sum(widths)
    return widths


def _when(decision: DecisionOutcome, columns: DecisionColumns) -> str:
    """Return when it was decided; only the day, if there is no room for more."""
    return local_time(decision.at)[: columns.when]


def _who(decision: DecisionOutcome) -> str:
    return sanitise_line(decision.actor or decision.by, _WHO)


def _thread(decision: DecisionOutcome) -> str:
    return thread_name(decision.thread, _WHO)


def _why(decision: DecisionOutcome) -> str:
    return sanitise_line(decision.note or "", _WHAT)


def heading(columns: DecisionColumns) -> Line:
    """Return the row with the names of the columns."""
    return (Span(_joined(HEADS, columns), "dim"),)


def decision_line(decision: DecisionOutcome, columns: DecisionColumns) -> Line:
    """Return a row."""
    gap = " " * _GAP
    then = then_words(decision)
    return (
        Span(fitted(_when(decision, columns), columns.when) + gap, "dim"),
        Span(fitted(_who(decision), columns.who) + gap, "human"),
        Span(fitted(thread_name(decision.thread, columns.thread), columns.thread) + gap, "name"),
        Span(fitted(done_words(decision), columns.what) + gap),
        Span(fitted(_why(decision), columns.why) + gap),
        Span(fitted(then, columns.then), "dim"),
    )


def texts_of(decision: DecisionOutcome) -> tuple[str, ...]:
    """Return the texts of a row, below `HEADS`; sanitised."""
    return (
        local_time(decision.at), _who(decision), _thread(decision), done_words(decision), _why(decision),
        then_words(decision),
    )  # fmt: skip


def sentence_of(decision: DecisionOutcome) -> str:
    """Return a decision in words, for plain text: when, who, where, what, why, and the result."""
    when, who, thread, what, why, then = texts_of(decision)
    return f"{when}, {who or 'a program'}, {thread}: {what}{why and f'; because: {why}'}; result: {then}"


def _joined(texts: Iterable[str], columns: DecisionColumns) -> str:
    fields = [fitted(text, width) for text, width in zip(texts, columns, strict=True)]
    return (" " * _GAP).join(fields).rstrip()


# -- the details -----------------------------------------------------------------------------------------


def detail_lines(decision: DecisionOutcome, width: int) -> list[Line]:
    """Return all of a decision: who, where, why, result, the text that was found, how to undo it."""
    where = (untrusted(decision.thread, "name"), trusted(f", step {decision.step}", "dim"))
    who = sanitise_line(decision.by or decision.actor or "", _WHAT)
    lines: list[Line] = [
        (
            trusted(f"{done_words(decision)}  ", "title"),
            *where,
            trusted(f"  {', '.join(filter(None, (who, local_time(decision.at))))}", "dim"),
        )
    ]
    if (found := decision.found) and found.text not in _SHOWN_ANYWAY:
        before = f"…{found.before}" if len(found.before) == AROUND else found.before
        after = f"{found.after}…" if len(found.after) == 2 * AROUND else found.after
        lines.append(
            (
                untrusted(f"{found.text}  ", "dim"),
                _on_one_line(before),
                _on_one_line(found.match, "accent"),
                _on_one_line(after),
            )
        )
    if decision.note:
        lines.append((trusted("why     ", "dim"), untrusted(decision.note)))
    lines.append((trusted("result  ", "dim"), trusted(then_words(decision))))
    if fork := next((way for way in decision.take_back if way.way == "fork"), None):
        lines.append((trusted("undo    ", "dim"), trusted(f"fork before it; {run_again(fork)}")))
    return [row for line in lines for row in wrap_rich(line, width)]


def _on_one_line(text: str, role: Role = "plain") -> Span:
    """Return a part of a text with its line breaks as blanks."""
    return untrusted(_BREAKS.sub(" ", text), role)
