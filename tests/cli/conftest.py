from __future__ import annotations

import pytest

from tests.support.commands import App
from tests.support.homes import HomeWith, home_with

__all__ = ["home_with"]


@pytest.fixture
def review(app: App, home_with: HomeWith) -> App:
    """The command line with a thread `r` that waits at step 2 for a decision."""

    def make() -> None:
        app.expect(3, "run", "review", "--headless", "--input", "task=Hills", "--thread", "r")

    home_with("review", make)
    return app
