"""A power cut: what was acknowledged is on the disk, and what is there is whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.stores import open_store
from tests.stores.deciding import runner_on
from tests.support.places import ROOT
from tests.support.power import moments, untraceable
from tests.support.spec import spec

pytestmark = [pytest.mark.skipif(bool(untraceable()), reason=untraceable()), spec("10")]


def cut_at_each_moment(
    tmp_path: Path, kind: str, durability: str
) -> Iterator[tuple[str, str, set[str], int]]:
    """What is said, and of the store that a power cut then leaves: its decisions and its newest step.

    Everything that such a store holds must be whole.
    """
    root = tmp_path / "disk"
    root.mkdir()
    place = {"sqlite": "runs.db", "files": "files:{}/runs"}[kind].format(root)
    place = place if kind == "files" else str(root / place)
    argv = [sys.executable, "-m", "tests.stores.deciding", place, durability]
    said = ""
    for number, (moment, disk) in enumerate(moments(argv, root, ROOT)):
        left = disk.cut(tmp_path / str(number))
        said = moment if not moment.startswith("synced") else said
        if not os.listdir(left):
            yield moment, said, set(), -1
            continue
        with closing(open_store(place.replace(str(root), str(left)))) as store:
            cursor = store.cursor("t")
            if cursor is not None and cursor.head >= 0:
                report = runner_on(store).verify("t", strict=True)
                assert report.ok, (moment, report.mismatches)
            decided = {entry.note or "" for entry in store.ledger("t")} if cursor else set()
            yield moment, said, decided, cursor.head if cursor else -1


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_a_decision_that_was_acknowledged_is_on_the_disk_and_the_store_is_whole_at_every_moment(
    tmp_path: Path, kind: str
) -> None:
    acknowledged: set[str] = set()
    for moment, _, decided, _ in cut_at_each_moment(tmp_path, kind, "decisions"):
        if moment.startswith(("answer", "edit")):
            acknowledged.add(moment)
        assert acknowledged <= decided, moment
    assert acknowledged == {"answer 1", "answer 2", "answer 3", "edit 1"}


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_with_durability_steps_every_reported_step_is_on_disk(tmp_path: Path, kind: str) -> None:
    heads = [
        (moment, head)
        for moment, _, _, head in cut_at_each_moment(tmp_path, kind, "steps")
        if moment.startswith("step")
    ]
    assert heads == [(f"step {head}", head) for _, head in heads]
    assert len(heads) == 2


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_with_durability_none_nothing_waits_for_the_disk(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    place = f"files:{root}/runs" if kind == "files" else str(root / "runs.db")
    argv = [sys.executable, "-m", "tests.stores.deciding", place, "none"]
    synced = [moment for moment, _ in moments(argv, root, ROOT) if moment.startswith("synced")]
    # What is made once: the directories of the store, and the names in them.
    assert len(synced) <= 6, synced
