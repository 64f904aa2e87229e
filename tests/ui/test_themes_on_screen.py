"""A theme of one's own: applied, applied again when it is saved, and never lost to a broken save."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.color import Color

from hitl_tui.ui.theme import Look
from tests.ui.harness import Desk, desk

MINE = 'base = "dark"\n[colors]\naccent = "#00ff00"\n'


@pytest.fixture(autouse=True)
def short_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages name files from here, so that a toast does not break them in two."""
    monkeypatch.chdir(tmp_path)


def save(path: Path, text: str) -> None:
    """A save that any clock can tell from the one before."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text, "utf-8")
    os.utime(path, ns=(before + 5_000_000_000, before + 5_000_000_000))


def accent(it: Desk) -> Color | None:
    return it.run.get_component_styles("role--accent").color


MINE_LOOK = Look("mine", Path())


@pytest.mark.slow
async def test_a_saved_theme_applies_live_and_a_broken_save_keeps_the_last(tmp_path: Path):
    path = tmp_path / "mine.toml"
    save(path, MINE)
    async with desk(look=MINE_LOOK) as it:
        assert accent(it) == Color.parse("#00ff00")
        save(path, MINE.replace("#00ff00", "#0000ff"))
        await it.until(lambda: accent(it) == Color.parse("#0000ff"), "the new colour")
        save(path, MINE.replace("#00ff00", "mud"))
        await it.shows("mine.toml:3", "is not a colour", "the colours stay as they were")
        assert accent(it) == Color.parse("#0000ff")
        save(path, MINE.replace("#00ff00", "#ff00ff"))
        await it.until(lambda: accent(it) == Color.parse("#ff00ff"), "the mended colour")


@pytest.mark.slow
async def test_saving_the_base_applies_too(tmp_path: Path):
    save(tmp_path / "base.toml", MINE)
    save(tmp_path / "mine.toml", 'base = "base"\n')
    async with desk(look=MINE_LOOK) as it:
        save(tmp_path / "base.toml", MINE.replace("#00ff00", "#0000ff"))
        await it.until(lambda: accent(it) == Color.parse("#0000ff"), "the base's colour")


@pytest.mark.slow
async def test_a_broken_theme_falls_back_with_one_message_until_it_is_fixed(tmp_path: Path):
    path = tmp_path / "mine.toml"
    save(path, MINE.replace("accent", "accnet").replace("base", "bsae"))
    async with desk(look=MINE_LOOK, size=(140, 40)) as it:
        await it.shows("The theme can't be used", "'accent'?", "'dark' is used instead")
        assert it.text().count("The theme can't be used") == 1
        assert it.app.theme == "dark"
        save(path, MINE)
        await it.until(lambda: accent(it) == Color.parse("#00ff00"), "the mended theme")


@pytest.mark.slow
async def test_a_theme_that_is_not_there_falls_back_until_it_is(tmp_path: Path):
    async with desk(look=MINE_LOOK, size=(140, 40)) as it:
        await it.shows("there is no theme 'mine'", "'dark' is used instead")
        assert it.app.theme == "dark"
        save(tmp_path / "mine.toml", MINE)
        await it.until(lambda: accent(it) == Color.parse("#00ff00"), "the theme that came")


@pytest.mark.slow
async def test_fixing_the_base_of_a_broken_theme_helps(tmp_path: Path):
    save(tmp_path / "base.toml", MINE.replace("#00ff00", "mud"))
    save(tmp_path / "mine.toml", 'base = "base"\n')
    async with desk(look=MINE_LOOK, size=(140, 40)) as it:
        await it.shows("base.toml:3", "is not a colour")
        save(tmp_path / "base.toml", MINE)
        await it.until(lambda: accent(it) == Color.parse("#00ff00"), "the base's colour")


@pytest.mark.slow
async def test_a_removed_theme_file_is_reported_once_and_changes_nothing(tmp_path: Path):
    path = tmp_path / "mine.toml"
    save(path, MINE)
    async with desk(look=MINE_LOOK) as it:
        path.unlink()
        await it.shows("mine.toml is gone", "the colours stay as they were")
        for _ in range(3):
            it.app.look_at_theme()
        assert it.text().count("mine.toml is gone") == 1
        assert accent(it) == Color.parse("#00ff00")
        save(path, MINE.replace("#00ff00", "#0000ff"))
        await it.until(lambda: accent(it) == Color.parse("#0000ff"), "the file that came back")


@pytest.mark.slow
async def test_the_palette_offers_all_themes_and_reports_broken_ones(tmp_path: Path):
    save(tmp_path / "mine.toml", MINE)
    save(tmp_path / "bad.toml", "colors = 3\n")
    save(tmp_path / "\x1b[31mred.toml", MINE)
    async with desk(look=Look("", Path()), size=(140, 40)) as it:
        offered = [entry.title for entry in it.app.get_system_commands(it.run) if "Theme" in entry.title]
        assert offered == [
            f"Theme: {name}" for name in ("dark", "bad", "high-contrast", "light", "mine", "presenter")
        ]
        it.app.use_theme("presenter")
        await it.until(lambda: it.run.styles.background == Color.parse("#ffffff"))
        it.app.use_theme("bad")
        await it.shows("bad.toml:1: colors: must be a table", "the colours stay as they were")
        assert it.app.theme == "presenter"
