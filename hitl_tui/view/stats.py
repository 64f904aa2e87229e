"""What reviews measure: decisions by person and graph, reasons, rubrics, agreement; as data and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Annotated, Final

import msgspec

from hitl_tui.drivers.measured import Measured
from hitl_tui.engine.log.units import Duration, about
from hitl_tui.view.format import count, duration
from hitl_tui.view.sanitise import sanitise_line

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


class Stats(msgspec.Struct, frozen=True):
    """What reviews in a store measure."""

    decisions: Annotated[int, about("How many decisions and votes of people were counted.")]
    people: Annotated[tuple[Share, ...], about("By person, most decisions first.")]
    graphs: Annotated[tuple[Share, ...], about("By graph, most decisions first.")]
    reasons: Annotated[tuple[ReasonCount, ...], about("Picked reasons, most frequent first.")]
    rubric: Annotated[tuple[RubricMean, ...], about("Rubric scores by graph and criterion.")]


def stats_of(decisions: Iterable[Measured]) -> Stats:
    """Return what decisions measure."""
    counted = list(decisions)
    return Stats(
        len(counted),
        _shares(counted, lambda decision: decision.person),
        _shares(counted, lambda decision: decision.graph),
        _reasons(counted),
        _rubric(counted),
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


# -- as text -------------------------------------------------------------------------------------------

Rows = list[tuple[str, ...]]


def tables(stats: Stats) -> Iterator[tuple[str, Rows]]:
    """Yield the tables with their headings; texts are sanitised, the first row names the columns."""
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
