"""The store of a test of commands: decisions are tried on each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.stores import Checkpointer
from tests.support.any_store import KINDS, new_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    with closing(new_store(request.param, tmp_path)) as opened:
        yield opened
