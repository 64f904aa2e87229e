"""A terminal that is looked at after each step: nothing odd was sent, and fakes look like content."""

from __future__ import annotations

from tests.support.hostile import unexpected
from tests.support.terminal import Terminal


class Watched:
    """Keys pressed in a terminal, with a look at all that was painted since the last ones."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._seen = 0

    def check(self, after: str) -> str:
        """Look at all that was sent since the last look, and at the screen; returns the screen."""
        screen = self.terminal.settle(0.12)
        raw = bytes(self.terminal.raw)
        found = unexpected(raw[self._seen :])
        assert not found, f"after {after}: {found}"
        self._seen = max(raw.rfind(b"\x1b"), 0)
        if raw.startswith(b"\x1b\\", self._seen):  # the end of the window's title
            self._seen = raw.rfind(b"\x1b]", 0, self._seen)
        for line in screen.split("\n"):
            if "FAKE-ANSWER" in line:
                assert line.startswith(("│", " ")), f"after {after}: a fake that looks like ours:\n{screen}"
                assert line.index("FAKE-ANSWER") > 4
        assert "owned" not in line_of_title(raw)
        return screen

    def press(self, *keys: str, shows: str = "", gone: str = "") -> str:
        """Press keys, wait for what they show and what goes away by them, and look; returns the screen."""
        self.terminal.press(*keys)
        if shows:
            self.terminal.wait_for(shows)
        if gone:
            self.terminal.wait_gone(gone)
        return self.check(f"pressing {keys}")


def line_of_title(raw: bytes) -> str:
    """What the terminal was told to call its window."""
    return b" ".join(part.partition(b"\x07")[0] for part in raw.split(b"\x1b]0;")[1:]).decode(
        errors="replace"
    )
