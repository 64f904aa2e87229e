"""The reader of keys: what it waits for, and when it ends."""

from __future__ import annotations

import os
import pty
import selectors
from concurrent.futures import ThreadPoolExecutor

import pytest

from hitl_tui.ui.terminal import _Ending, _KeySelector


def test_a_terminal_that_has_gone_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[str] = []
    ending = _Ending(lambda: lost.append("lost"))
    monkeypatch.setattr(_KeySelector, "ending", ending)
    ours, theirs = pty.openpty()
    with _KeySelector() as selector, ThreadPoolExecutor(1) as reader:
        selector.register(theirs, selectors.EVENT_READ)
        os.write(ours, b"x\n")
        assert [key.fd for key, _ in selector.select(0.1)] == [theirs]
        os.close(ours)
        waiting = reader.submit(selector.select, 0.1)
        ending.set()
        assert waiting.result() == []
        assert lost == ["lost"]
    for end in (theirs, ending.woken, ending._wake):
        os.close(end)
