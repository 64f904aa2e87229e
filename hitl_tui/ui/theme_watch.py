"""The theme in use, and whether its file was saved since."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hitl_tui.ui.theming import DEFAULT_THEME, LoadedTheme, ThemeInvalid, Themes

LOOK_EVERY: Final = 1.0
"""Seconds between two looks at the files."""
Stamp = tuple[int, int] | None


class ThemeWatch:
    """Keeps the last good theme, whatever is saved."""

    def __init__(self, themes: Themes) -> None:
        self.themes = themes
        self._files: tuple[Path, ...] = ()
        self._stamps: tuple[Stamp, ...] = ()
        self._gone: tuple[Stamp, ...] = ()

    def choose(self, name: str) -> LoadedTheme:
        """Use a theme from now on; a broken one is looked at too, so that mending it helps at once.

        Raises:
            ThemeInvalid: it can't be used.
        """
        return self._load(name)

    def fallback(self) -> LoadedTheme:
        """What is used in place of a broken theme."""
        return Themes().load(DEFAULT_THEME)

    def saved(self) -> LoadedTheme | None:
        """The theme anew if one of its files was saved since the last look.

        Raises:
            ThemeInvalid: what was saved can't be used, or a file has been away for two looks.
        """
        stamps = tuple(map(_stamp, self._files))
        if stamps == self._stamps:
            return None
        if None in stamps:
            # An editor that replaces a file may have taken the old one away for a moment.
            if stamps == self._gone:
                self._stamps = stamps
                raise ThemeInvalid(f"{self._files[stamps.index(None)]} is gone")
            self._gone = stamps
            return None
        self._stamps, self._gone = stamps, ()
        return self._load(self._files[0].stem)

    def _load(self, name: str) -> LoadedTheme:
        self._files = self.themes.files(name)
        self._stamps, self._gone = tuple(map(_stamp, self._files)), ()
        return self.themes.load(name)


def _stamp(path: Path) -> Stamp:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size
