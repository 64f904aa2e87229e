"""Theme files: all that come with us load, and a wrong one says everything that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui.ui.theming import ThemeInvalid, builtin_theme, bundled_themes, load_theme, theme_names


def test_bundled_themes_load_and_the_default_is_first():
    assert theme_names()[:2] == ("dark", "light")
    for name in theme_names():
        assert builtin_theme(name) is not None


def test_a_wrong_theme_lists_all_its_problems(tmp_path: Path):
    text = (bundled_themes() / "dark.toml").read_text("utf-8")
    text = text.replace('muted = "#858cac"', 'muted = "mud"').replace(
        'faint = "#4f5469"', 'fiant = "#4f5469"'
    )
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ThemeInvalid) as caught:
        load_theme(path)
    for part in (
        "mine.toml",
        "roles.muted: 'mud' is no colour",
        "roles.faint: missing",
        "roles.fiant: unknown",
    ):
        assert part in caught.value.message


def test_no_toml_names_the_place(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text("[colors\n", "utf-8")
    with pytest.raises(ThemeInvalid, match="line 1"):
        load_theme(path)
