from __future__ import annotations

import pytest

from tests.support.homes import HomeWith, home_with
from tests.verbs.hosts import Hosts

__all__ = ["HomeWith", "home_with"]


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> Hosts:
    """The three hosts."""
    return Hosts(request)
