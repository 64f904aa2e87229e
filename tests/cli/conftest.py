from __future__ import annotations

import pytest

from tests.support.commands import App


@pytest.fixture
def review(app: App) -> App:
    """The command line with a thread `r` that waits at step 2 for a decision."""
    app.expect(3, "run", "review", "--headless", "--input", "task=Hills", "--thread", "r")
    return app
