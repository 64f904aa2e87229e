"""Paths, text files and addresses are read in one place each; the raw calls are forbidden elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hitl_tui

_ROOT = Path(hitl_tui.__file__).parent
_FORBIDDEN = [
    # A home directory that nobody knows raises, and each has its own idea of `~name`.
    (r"expanduser|Path\.home\b", {"given_files.py"}),
    (r"\bplatformdirs\b", {"config.py"}),
    # Files of people begin with marks and end lines in other ways; these read files of ours or of the system.
    (
        r"\.read_text\(",
        {"stores/lease.py", "ui/widgets/lines.py", "loading/starts.py"},
    ),
    # An address is compared by its origin, never as text.
    (r"\.netloc\b", {"team/web/origins.py", "stores/postgres/server.py"}),
    # State is kept in variables; classes of styles only follow it.
    (r"\.has_class\(", set()),
]


@pytest.mark.parametrize(("call", "allowed"), _FORBIDDEN)
def test_a_raw_call_is_made_in_its_helper_alone(call: str, allowed: set[str]) -> None:
    users = {
        path.relative_to(_ROOT).as_posix()
        for path in _ROOT.rglob("*.py")
        if re.search(call, path.read_text("utf-8"))
    }
    assert users - allowed == set()
