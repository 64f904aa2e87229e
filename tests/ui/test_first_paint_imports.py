"""What the first frame does not need is imported after it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "litellm", "simpleeval", "textual.widgets._text_area", "textual.widgets._data_table",
    "textual.widgets._markdown", "textual.demo", "textual.command",
    "textual.widgets._input", "hitl_tui.ui.palette", "hitl_tui.ui.editor",
    "hitl_tui.engine.run.", "hitl_tui.engine.nodes.attempt", "hitl_tui.engine.thread.interrupts",
    "hitl_tui.engine.commands.decisions", "hitl_tui.engine.runner", "hitl_tui.drivers.breakpoints",
    "hitl_tui.view.branches", "hitl_tui.view.revision", "hitl_tui.view.word_diff", "hitl_tui.loading.graphs",
)  # fmt: skip
SCREENS = {"hitl_tui.ui.screens.run", "hitl_tui.ui.screens.modal"}


@pytest.mark.slow
def test_the_run_screen_imports_no_other_screen_and_nothing_heavy():
    code = (
        "import sys, hitl_tui.ui.app, hitl_tui.ui.screens.run_actions, hitl_tui.drivers.hub;"
        " print(*sys.modules, sep='\\n')"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    screens = {name for name in loaded if name.startswith("hitl_tui.ui.screens.")}
    assert {name for name in screens if not name.startswith("hitl_tui.ui.screens.run_")} == SCREENS
    assert [name for name in loaded if name.startswith(HEAVY)] == []
