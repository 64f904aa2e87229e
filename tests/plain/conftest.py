from __future__ import annotations

import pytest

from tests.plain.talker import Talker
from tests.support.commands import App


@pytest.fixture
def talk(app: App, monkeypatch: pytest.MonkeyPatch) -> Talker:
    return Talker(app, monkeypatch)
