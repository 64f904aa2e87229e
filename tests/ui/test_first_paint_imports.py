"""What stands before the first paint stays light."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "hitl_tui.view", "hitl_tui.drivers", "hitl_tui.engine", "hitl_tui.stores", "litellm", "sqlite3",
    "msgspec", "textual.widgets._text_area", "textual.widgets._data_table", "textual.widgets._markdown",
)  # fmt: skip


def test_the_app_module_imports_nothing_heavy():
    code = "import sys, hitl_tui.ui.app; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    # What nodes print is caught from the first moment on, by a module that needs nothing else of its layer.
    light = ("hitl_tui.drivers", "hitl_tui.drivers.node_streams")
    assert [name for name in loaded if name.startswith(HEAVY) and name not in light] == []
