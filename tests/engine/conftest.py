"""The store of a test of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.stores import Checkpointer
from tests.support.any_store import new_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Checkpointer]:
    with closing(new_store("sqlite", tmp_path)) as opened:
        yield opened
