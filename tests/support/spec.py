"""Which section of the specification a test is about, as a marker.

`@spec("10")` above a test, or `pytestmark = spec("10")` in a module whose tests are all about it (a list for
several). `python -m tests.tools.spec_sections` counts the tests of each section;
`python -m pytest -m "spec(section='10')"` runs them.
"""

from __future__ import annotations

import pytest

SECTIONS = {
    "1": "Values",
    "2": "Equality and hashes",
    "3": "Channels",
    "4": "Reducers",
    "5": "Graph and run",
    "6": "Contract of a node",
    "7": "Map, parallel, subgraph",
    "8": "Visibility, taint, prompts",
    "9": "Status",
    "10": "Log, checkpoint, commit",
    "11": "Resume, update_state, fork",
    "12": "Replay and verify",
    "13": "Rollback (compensation)",
    "14": "Choices and their reasons",
    "15": "The five workflows",
}


def spec(section: str) -> pytest.MarkDecorator:
    """Mark what shows a section of the specification.

    Raises:
        KeyError: there is no such section.
    """
    if section not in SECTIONS:
        raise KeyError(f"the specification has no section {section!r}")
    return pytest.mark.spec(section=section)
