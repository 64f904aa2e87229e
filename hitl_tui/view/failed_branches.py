"""Counts failed branches of a map or a parallel in committed steps."""

from __future__ import annotations

from collections.abc import Iterable

from hitl_tui.engine.log.records import Checkpoint


def failures_in(checkpoint: Checkpoint) -> int:
    """Return how many branches of a step failed."""
    return sum(outcome.status == "failed" for outcome in checkpoint.branches)


def failed_branches(branched: Iterable[Checkpoint], until: int) -> dict[str, int]:
    """Return how many branches failed in the newest run of each node that has any, up to a step.

    Args:
        branched: the steps that have branches, oldest first.
    """
    failed = {point.node: failures_in(point) for point in branched if point.step <= until}
    return {node: number for node, number in failed.items() if number}
