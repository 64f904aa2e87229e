"""What tests of screens need: the snapshot plug-in's own directory, and a cursor that does not blink."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def snapshot_directory(
    isolated: object, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The plug-in finds its directory through the environment, which isolation has cleared."""
    directory = getattr(request.config, "_hitl_snapshot_directory", "")
    if directory:
        monkeypatch.setenv("TEXTUAL_SNAPSHOT_TEMPDIR", directory)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember the directory before the first test clears the environment."""
    session.config._hitl_snapshot_directory = os.environ.get("TEXTUAL_SNAPSHOT_TEMPDIR", "")  # type: ignore[attr-defined]
