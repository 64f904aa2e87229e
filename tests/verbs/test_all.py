"""What holds for every verb."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    assert action is None or ALL_BY_ID[action.id] is action


def test_listing_the_verbs_imports_none_of_them() -> None:
    import subprocess
    import sys

    code = (
        "import sys, hitl_tui.verbs as v; v.verbs(); "
        "print([name for name in sys.modules if name.startswith('hitl_tui.verbs.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
