from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.commands import App, close_log


@pytest.fixture
def app(capsys: pytest.CaptureFixture[str]) -> Iterator[App]:
    """The command line, on a store of the test's own."""
    yield App(capsys)
    close_log()


@pytest.fixture
def review(app: App) -> App:
    """The command line with a thread `r` that waits at step 2 for a decision."""
    app.expect(3, "run", "review", "--headless", "--input", "task=Hills", "--thread", "r")
    return app
