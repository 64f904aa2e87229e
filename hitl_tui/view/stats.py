"""What reviews measure: decisions by person and graph, reasons, rubrics, agreement; as data and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import sqrt
from statistics import fmean, median
from typing import Annotated, Final, NamedTuple

import msgspec

from hitl_tui.drivers.measured import Canary, Measured, MeasuredReading, Reviews
from hitl_tui.engine.log.units import Duration, about
from hitl_tui.view.cells import GAP, columns, fitted
from hitl_tui.view.format import capital, count, duration
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, trusted

_NAME: Final = 40


class Share(msgspec.Struct, frozen=True):
    """The decisions of a person, or about a graph."""

    name: Annotated[str, about("The person, or the graph.")]
    decisions: Annotated[int, about("How many decisions and votes.")]
    answers: Annotated[dict[str, int], about("How often each answer was given, by its id.")]
    edited: Annotated[float, about("The share, from 0 to 1, before which the person edited.")]
    median: Annotated[Duration, about("Seconds from question to decision: the median.")]
    mean: Annotated[Duration, about("Seconds from question to decision: the mean.")]


class ReasonCount(msgspec.Struct, frozen=True):
    """How often a reason was picked."""

    reason: Annotated[str, about("The id of the reason.")]
    count: Annotated[int, about("How often it was picked.")]
    people: Annotated[dict[str, int], about("By whom, and how often.")]


class RubricMean(msgspec.Struct, frozen=True):
    """The scores for a criterion of a graph's rubrics."""

    graph: Annotated[str, about("The graph.")]
    criterion: Annotated[str, about("The criterion.")]
    scores: Annotated[int, about("How many scores.")]
    mean: Annotated[float, about("Their mean, from 1 to 5.")]


class Agreement(msgspec.Struct, frozen=True):
    """How far second readings agree with the first answers about a graph."""

    graph: Annotated[str, about("The graph.")]
    read: Annotated[int, about("How many requests were read again.")]
    waiting: Annotated[int, about("How many are still to be read again.")]
    agreed: Annotated[int, about("How often both answers were the same.")]
    kappa: Annotated[float | None, about("Cohen's kappa; null if it is not defined.")]
    low: Annotated[float | None, about("The lower end of its 95 % interval.")]
    high: Annotated[float | None, about("The upper end.")]


class ToRead(msgspec.Struct, frozen=True):
    """A request that waits for a second reading."""

    thread: Annotated[str, about("The thread.")]
    request: Annotated[str, about("The request.")]
    title: Annotated[str, about("The question.")]


class Caught(msgspec.Struct, frozen=True):
    """How many canaries a person has answered, and how many of them were caught."""

    person: Annotated[str, about("The person.")]
    canaries: Annotated[int, about("How many they answered.")]
    caught: Annotated[int, about("How many of them without the wrong answer.")]


class Stats(msgspec.Struct, frozen=True):
    """What reviews in a store measure."""

    decisions: Annotated[int, about("How many decisions and votes of people were counted.")]
    people: Annotated[tuple[Share, ...], about("By person, most decisions first.")]
    graphs: Annotated[tuple[Share, ...], about("By graph, most decisions first.")]
    reasons: Annotated[tuple[ReasonCount, ...], about("Picked reasons, most frequent first.")]
    rubric: Annotated[tuple[RubricMean, ...], about("Rubric scores by graph and criterion.")]
    agreement: Annotated[tuple[Agreement, ...], about("Second readings by graph.")]
    to_read: Annotated[
        tuple[ToRead, ...], about("What you can read again: requests that you have not answered yourself.")
    ]
    canaries: Annotated[tuple[Caught, ...], about("Canaries by person.")]


class Counted(NamedTuple):
    """What is counted; times are microseconds since the epoch.

    Args:
        graph, person: only of this one; None for all.
        since, until: the earliest time, and the one before which it was.
    """

    graph: str | None = None
    person: str | None = None
    since: int | None = None
    until: int | None = None

    def takes(self, graph: str, people: Collection[str], at: int) -> bool:
        """Whether something is counted."""
        return (
            self.graph in (None, graph)
            and (self.person is None or self.person in people)
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
        )


def stats_of(found: Reviews, me: str, only: Counted = Counted()) -> Stats:  # noqa: B008 (it is immutable)
    """Return what reviews measure; `me` is the person who reads it."""
    counted = [each for each in found.decisions if only.takes(each.graph, (each.person,), each.at)]
    readings = [
        each for each in found.readings if only.takes(each.graph, {*each.people, each.person}, each.at)
    ]
    to_read = [
        ToRead(each.thread, each.request, each.title)
        for each in found.readings
        if not each.second and me not in each.people
    ]
    canaries = [each for each in found.canaries if only.takes(each.graph, (each.person,), each.at)]
    return Stats(
        len(counted),
        _shares(counted, lambda decision: decision.person),
        _shares(counted, lambda decision: decision.graph),
        _reasons(counted),
        _rubric(counted),
        _agreement(readings),
        tuple(to_read),
        _caught(canaries),
    )


def _shares(decisions: Sequence[Measured], name: Callable[[Measured], str]) -> tuple[Share, ...]:
    by_name: dict[str, list[Measured]] = {}
    for decision in decisions:
        by_name.setdefault(name(decision), []).append(decision)
    shares = [
        Share(
            each,
            len(theirs),
            _ordered(Counter(decision.answer for decision in theirs)),
            round(fmean(decision.edited for decision in theirs), 4),
            int(median(decision.took for decision in theirs)),
            int(fmean(decision.took for decision in theirs)),
        )
        for each, theirs in by_name.items()
    ]
    return tuple(sorted(shares, key=lambda share: (-share.decisions, share.name)))


def _reasons(decisions: Sequence[Measured]) -> tuple[ReasonCount, ...]:
    people: dict[str, Counter[str]] = {}
    for decision in decisions:
        for reason in decision.reasons:
            people.setdefault(reason, Counter())[decision.person] += 1
    counts = [ReasonCount(reason, by.total(), _ordered(by)) for reason, by in people.items()]
    return tuple(sorted(counts, key=lambda each: (-each.count, each.reason)))


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def _rubric(decisions: Sequence[Measured]) -> tuple[RubricMean, ...]:
    scores: dict[tuple[str, str], list[int]] = {}
    for decision in decisions:
        for criterion, score in decision.scores.items():
            scores.setdefault((decision.graph, criterion), []).append(score)
    return tuple(
        RubricMean(graph, criterion, len(given), round(fmean(given), 4))
        for (graph, criterion), given in sorted(scores.items())
    )


def _agreement(readings: Sequence[MeasuredReading]) -> tuple[Agreement, ...]:
    by_graph: dict[str, list[MeasuredReading]] = {}
    for reading in readings:
        by_graph.setdefault(reading.graph, []).append(reading)
    rows = []
    for graph, theirs in sorted(by_graph.items()):
        pairs = [(each.first, each.second) for each in theirs if each.second]
        agreed = sum(first == second for first, second in pairs)
        kappa = cohens_kappa(pairs)
        low, high = kappa[1:] if kappa else (None, None)
        rows.append(
            Agreement(
                graph, len(pairs), len(theirs) - len(pairs), agreed, kappa[0] if kappa else None, low, high
            )
        )
    return tuple(rows)


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> tuple[float, float, float] | None:
    """Return Cohen's kappa of pairs of answers, and its 95 % interval.

    None without pairs, or if both people always give the same one answer, where it is not defined. The
    interval is that of Cohen (1960) for large samples: kappa and 1.96 standard errors to both sides.
    """
    n = len(pairs)
    if not n:
        return None
    agreed = sum(first == second for first, second in pairs) / n
    firsts, seconds = Counter(first for first, _ in pairs), Counter(second for _, second in pairs)
    by_chance = sum(firsts[answer] * seconds[answer] for answer in firsts) / (n * n)
    if by_chance >= 1:
        return None
    kappa = (agreed - by_chance) / (1 - by_chance)
    around = 1.96 * sqrt(agreed * (1 - agreed) / n) / (1 - by_chance)
    return round(kappa, 4), round(max(kappa - around, -1.0), 4), round(min(kappa + around, 1.0), 4)


def _caught(canaries: Sequence[Canary]) -> tuple[Caught, ...]:
    by_person: dict[str, list[bool]] = {}
    for canary in canaries:
        by_person.setdefault(canary.person, []).append(canary.caught)
    return tuple(Caught(person, len(each), sum(each)) for person, each in sorted(by_person.items()))


# -- as text -------------------------------------------------------------------------------------------

Rows = list[tuple[str, ...]]


def tables(stats: Stats) -> Iterator[tuple[str, Rows]]:
    """Yield the tables with their headings; texts are sanitised, the first row names the columns."""
    if stats.decisions:
        yield "People", _share_rows("PERSON", stats.people)
        yield "Graphs", _share_rows("GRAPH", stats.graphs)
    if stats.reasons:
        rows = [(_line(each.reason), str(each.count), _counts(each.people)) for each in stats.reasons]
        yield "Reasons", [("REASON", "PICKED", "BY"), *rows]
    if stats.rubric:
        scored = [
            (_line(each.graph), _line(each.criterion), str(each.scores), f"{each.mean:.2f}")
            for each in stats.rubric
        ]
        yield "Rubric", [("GRAPH", "CRITERION", "SCORES", "MEAN"), *scored]
    if stats.agreement:
        yield "Second readings", [_AGREEMENT_HEADS, *map(_agreement_row, stats.agreement)]
    if stats.to_read:
        waiting = [(_line(each.thread), _line(each.request), _line(each.title)) for each in stats.to_read]
        yield "To be read again", [("THREAD", "REQUEST", "TITLE"), *waiting]
    if stats.canaries:
        caught = [
            (_line(each.person), str(each.canaries), f"{each.caught} ({each.caught / each.canaries:.0%})")
            for each in stats.canaries
        ]
        yield "Canaries", [("PERSON", "ANSWERED", "CAUGHT"), *caught]


_AGREEMENT_HEADS: Final = ("GRAPH", "READ AGAIN", "WAITING", "AGREED", "KAPPA", "95 % INTERVAL")


def _agreement_row(each: Agreement) -> tuple[str, ...]:
    share = f"{each.agreed} ({each.agreed / each.read:.0%})" if each.read else "-"
    kappa = "-" if each.kappa is None else f"{each.kappa:.2f}"
    interval = "-" if each.low is None or each.high is None else f"{each.low:.2f} to {each.high:.2f}"
    return _line(each.graph), str(each.read), str(each.waiting), share, kappa, interval


def _share_rows(head: str, shares: Sequence[Share]) -> Rows:
    rows: Rows = [(head, "DECISIONS", "EDITED", "MEDIAN TIME", "MEAN TIME", "ANSWERS")]
    return rows + [
        (
            _line(share.name),
            str(share.decisions),
            f"{share.edited:.0%}",
            duration(share.median),
            duration(share.mean),
            _counts(share.answers),
        )
        for share in shares
    ]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{_line(name)} {number}" for name, number in counts.items())


def _line(text: str) -> str:
    return sanitise_line(text, _NAME)


def summary(stats: Stats) -> str:
    """Return what was counted, in a few words."""
    if not stats.decisions:
        return "nobody has decided anything here"
    decisions, people = count(stats.decisions, "decision"), len(stats.people)
    return f"{decisions} by {people} {'person' if people == 1 else 'people'}"


def stats_lines(stats: Stats, width: int) -> list[Line]:
    """Return the tables as lines for a page."""
    lines: list[Line] = [(Span(f"{capital(summary(stats))}."),)]
    for heading, rows in tables(stats):
        widths = columns(rows, (len(rows[0]) - 1, 0), width)
        lines += [(), (Span(heading, "title"),)]
        for number, row in enumerate(rows):
            shown = [fitted(cell, most) for cell, most in zip(row, widths, strict=True)]
            lines.append((trusted((" " * GAP).join(shown).rstrip(), "dim" if number == 0 else "value"),))
    return lines
