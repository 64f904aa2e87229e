"""`delete`, `prune`, `deleted`, `size`, `vacuum` on the command line."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.threads import Deletion
from hitl_tui.stores import SQLiteCheckpointer
from hitl_tui.stores.deletion import DeletionPlan
from tests.support.commands import App
from tests.support.spec import spec

pytestmark = spec("10")


@pytest.fixture
def two(review: App) -> App:
    """A thread `r` that waits, and one `done` that is cancelled."""
    review.expect(3, "run", "review", "--headless", "--input", "task=Hills", "--thread", "done")
    review.expect(0, "cancel", "done")
    return review


def threads(app: App) -> set[str]:
    return {row["thread"] for row in app.expect(0, "threads", "--json").document["threads"]}


@pytest.mark.slow
def test_a_deleted_thread_leaves_an_entry_of_who_deleted_it(two: App) -> None:
    two.expect(2, "delete", "done")
    looked = two.expect(0, "delete", "done", "--dry-run", "--json").document
    assert (looked["dry_run"], looked["entries"], threads(two)) == (True, [], {"r", "done"})
    anchor = two.expect(0, "anchor", "done").document
    done = two.expect(0, "delete", "done", "--yes", "--as", "ann", "--note", "a try", "--json").document
    assert [row["thread"] for row in done["threads"]] == ["done"]
    assert threads(two) == {"r"}
    (kept,) = two.expect(0, "deleted", "--json").document["entries"]
    assert (kept["thread"], kept["decision"], kept["actor"], kept["note"]) == (
        "done",
        "delete",
        "ann",
        "a try",
    )
    assert f"sha256:{kept['data']['checkpoint_hash']}" == anchor["checkpoint_hash"]
    said = two.expect(0, "deleted").out
    assert "done deleted by ann" in said
    assert "a try" in said
    assert two.expect(0, "verify", "r").out.startswith("ok")


@pytest.mark.parametrize("given", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_stops_a_deletion_after_the_current_batch_and_twice_at_once(
    two: App, monkeypatch: pytest.MonkeyPatch, presses: int, given: tuple[str, ...]
) -> None:
    deletions: list[Deletion] = []
    whole = SQLiteCheckpointer.delete

    def delete(store: SQLiteCheckpointer, deletion: Deletion) -> list[LedgerEntry]:
        deletions.append(deletion)
        if len(deletions) == presses:
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)
        return whole(store, deletion)

    with monkeypatch.context() as patched:
        patched.setattr(SQLiteCheckpointer, "delete", delete)
        patched.setattr("hitl_tui.stores.deletion._BATCH", 1)
        stopped = two.expect(130, "delete", "done", "r", "--force", "--yes", *given)
    assert len(deletions) == presses
    assert stopped.err.endswith("stopped\n")
    assert threads(two) == {"r"}
    (entry,) = two.expect(0, "deleted", "--json").document["entries"]
    assert entry["thread"] == "done"
    if not given:
        assert "deleted 1 thread; 1 thread kept" in stopped.out
        assert "not deleted: r\n" in stopped.err
    elif presses == 1:
        assert [kept["thread"] for kept in stopped.document["entries"]] == ["done"]


def test_ctrl_c_while_it_looks_deletes_nothing(two: App, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = LocalHub.plan_deletion

    async def plan_deletion(hub: LocalHub, *what: Any, **given: Any) -> DeletionPlan:
        signal.raise_signal(signal.SIGINT)
        return await whole(hub, *what, **given)

    monkeypatch.setattr(LocalHub, "plan_deletion", plan_deletion)
    for words in (("delete", "done"), ("prune", "--older-than", "0s")):
        assert two.expect(130, *words, "--yes").out == ""
    assert threads(two) == {"r", "done"}


def test_an_unknown_thread_is_compared_with_those_there_are(two: App) -> None:
    assert "done" in two.expect(2, "delete", "dome", "r", "--force", "--yes").err
    assert threads(two) == {"r", "done"}


def test_ctrl_c_in_the_last_batch_has_nothing_left_to_stop(two: App, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SQLiteCheckpointer.delete

    def delete(store: SQLiteCheckpointer, deletion: Deletion) -> list[LedgerEntry]:
        signal.raise_signal(signal.SIGINT)
        return whole(store, deletion)

    with monkeypatch.context() as patched:
        patched.setattr(SQLiteCheckpointer, "delete", delete)
        assert "deleted 1 thread;" in two.expect(0, "delete", "done", "--yes").out
    assert threads(two) == {"r"}


def test_what_waits_stays_without_force(two: App) -> None:
    refused = two.expect(4, "delete", "r", "done", "--yes")
    assert "'r' waits" in refused.err
    assert threads(two) == {"r", "done"}
    two.expect(0, "delete", "r", "done", "--yes", "--force")
    assert threads(two) == set()


@pytest.mark.slow
def test_a_thread_with_forks_is_not_deleted_without_the_option(two: App) -> None:
    two.expect(0, "fork", "done@1", "done-b")
    assert "done-b" in two.expect(2, "delete", "done", "--yes").err
    two.expect(0, "delete", "done", "--forks", "--force", "--yes")
    assert threads(two) == {"r"}


def test_prune_wants_a_rule_and_says_what_stays(two: App) -> None:
    assert "no rule" in two.expect(2, "prune", "--yes").err
    said = two.expect(0, "prune", "--older-than", "1d", "--yes")
    assert said.out == "nothing would be deleted; 2 would be kept\n"
    assert "2 kept: 2 too recent" in said.err
    pruned = two.expect(0, "prune", "--older-than", "0s", "--yes", "--json").document
    assert ([row["thread"] for row in pruned["threads"]], pruned["kept"]) == (["done"], {"waits": 1})
    (kept,) = two.expect(0, "deleted", "--json").document["entries"]
    assert kept["data"]["rule"] == pruned["rule"] == "prune: older than 0s"


@pytest.mark.slow
def test_what_changed_last_and_what_was_decided_stay_and_a_dry_run_takes_nothing(two: App) -> None:
    two.expect(3, "run", "review", "--headless", "--input", "task=Sea", "--thread", "newest")
    two.expect(0, "cancel", "newest")
    two.expect(0, "approve", "r", "--run")

    def pruned(*words: str) -> tuple[list[str], dict[str, int]]:
        document = two.expect(0, "prune", *words, "--dry-run", "--json").document
        assert threads(two) == {"r", "done", "newest"}
        return sorted(row["thread"] for row in document["threads"]), document["kept"]

    assert pruned("--keep-last", "1") == (["done", "newest"], {"newest": 1})
    assert pruned("--keep-decided") == ([], {"decided": 3})
    assert pruned("--keep-last", "0") == (["done", "newest", "r"], {})
    assert two.expect(0, "deleted", "--json").document["entries"] == []


@pytest.mark.parametrize("number", ["-1", "x", "٣"])
def test_an_invalid_number_is_refused(two: App, number: str) -> None:
    assert "not a number of threads" in two.expect(2, "prune", f"--keep-last={number}", "--yes").err


@pytest.mark.parametrize("age", ["30", "d", "1y", "-3d", "٣d"])
def test_an_invalid_age_is_refused(two: App, age: str) -> None:
    assert "not a time" in two.expect(2, "prune", f"--older-than={age}", "--yes").err


def test_prune_follows_the_configuration(two: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    monkeypatch.setenv("HITL_TUI_CONFIG", str(file))
    file.write_text("[retention]\nolder_than = '0s'\nkeep_decided = true\n")
    kept = two.expect(0, "prune", "--yes", "--json").document
    assert (kept["threads"], kept["kept"]) == ([], {"decided": 1, "waits": 1})
    assert kept["rule"] == "prune: older than 0s, keep what was decided in"
    file.write_text("[retention]\nolder_than = 'soon'\nkeep_lats = 3\n")
    stderr = two.expect(2, "prune", "--yes").err
    assert f"{file}:2: retention.older_than: 'soon' is not a time" in stderr
    assert "retention.keep_lats: unknown key: did you mean 'keep_last'?" in stderr


def test_size_by_thread_and_by_channel(two: App) -> None:
    sizes = two.expect(0, "size", "--json").document
    assert {row["thread"] for row in sizes["threads"]} == {"r", "done"}
    assert sizes["used"] > sizes["free"] >= 0
    (one,) = two.expect(0, "size", "r", "--json").document["threads"]
    assert one["channels"]["draft"] > 0
    assert "channel draft" in two.expect(0, "size", "r").out
    assert two.expect(0, "size").out.splitlines()[0].split() == [
        "THREAD",
        "STEPS",
        "SIZE",
        "LARGEST",
        "PART",
    ]


def test_vacuum_says_how_much_space_it_freed(two: App) -> None:
    two.expect(0, "delete", "done", "--yes")
    space = two.expect(0, "vacuum", "--json").document
    assert space["after"] < space["before"]
    assert threads(two) == {"r"}
