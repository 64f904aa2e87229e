"""What holds for every verb."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hitl_tui
from hitl_tui.verbs import verbs
from hitl_tui.verbs.actions import ALL_BY_ID


@pytest.mark.parametrize("name", verbs())
def test_a_verb_is_played_on_each_host_by_a_test_of_its_name(name: str) -> None:
    file = Path(__file__).parent / f"test_{name.replace('-', '_')}.py"
    assert "each_host(" in file.read_text()


@pytest.mark.parametrize("name", verbs())
def test_a_verb_has_a_summary_an_example_and_a_row_among_the_actions(name: str) -> None:
    entry = verbs()[name]
    assert entry.summary.endswith(".")
    assert entry.examples
    action = entry.load().action
    assert action is None or ALL_BY_ID[action.id].help == action.help


def test_listing_the_verbs_imports_none_of_them() -> None:
    import subprocess
    import sys

    code = (
        "import sys, hitl_tui.verbs as v; v.verbs(); "
        "print([name for name in sys.modules if name.startswith('hitl_tui.verbs.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


HOSTS_OF_VERBS = {"ui/conversations.py", "plain/conversations.py", "cli/verbs.py"}
RUNS = {
    *("ui/screens/run.py", "ui/screens/run_actions.py", "ui/screens/run_stage.py", "view/stage.py"),
    *("view/tape.py", "view/continuing.py", "plain/context.py", "plain/running.py", "cli/opening.py"),
    *("cli/headless.py", "cli/play.py", "cli/present.py", "cli/detached.py", "team/workers/worker.py"),
}
"""Starting a thread, stepping and running it, also in turn with a server, on a stage and by workers."""
BESPOKE = {
    *("ui/widgets/review.py", "plain/deciding.py", "cli/decide.py"),
    *("ui/screens/edit.py", "plain/editing.py", "cli/change.py"),
}
"""The review card and the value editor, which are no conversations."""


def test_commands_are_sent_by_the_hosts_of_verbs_and_by_a_few_others() -> None:
    root = Path(hitl_tui.__file__).parent
    files = {
        path for front in ("ui", "plain", "cli", "view", "team") for path in (root / front).rglob("*.py")
    }
    senders = {
        path.relative_to(root).as_posix()
        for path in files
        if re.search(
            r"(driver|chosen|source|_driver\))\.execute\(|driver\)\.execute\(", path.read_text("utf-8")
        )
    }
    assert senders == HOSTS_OF_VERBS | RUNS | BESPOKE
