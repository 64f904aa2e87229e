"""Theme files: all that come with us can be read by people, and a wrong one says everything that is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import pytest
from textual.color import Color

from hitl_tui.ui import theme
from hitl_tui.ui.theme import ThemeInvalid, Themes, bundled_themes, theme_names
from hitl_tui.ui.widgets.lines import ROLE_CLASSES
from hitl_tui.view.spans import Role

LEAST_OF_BORDERS = 1.5
"""They frame and say nothing: less than what is read, and not the background's colour."""
OURS = ("dark", "high-contrast", "light", "presenter")


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / f"{name}.toml"
    path.write_text(text, "utf-8")
    return path


def problems(themes: Themes, name: str) -> list[str]:
    with pytest.raises(ThemeInvalid) as caught:
        themes.load(name)
    return caught.value.message.splitlines()


def luminance(colour: str) -> float:
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
             for part in Color.parse(colour).normalized]  # fmt: skip
    return sum(part * weight for part, weight in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(one: str, other: str) -> float:
    """As the web's guidelines reckon it: 4.5 can be read, 7 can be read well."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_bundled_themes_load_and_the_default_is_first():
    assert theme_names() == OURS
    for name in OURS:
        assert Themes().load(name).theme.name == name


@pytest.mark.parametrize("name", OURS)
def test_everything_that_says_something_can_be_read(name: str):
    theme = Themes().load(name).theme
    least = 7 if name in ("high-contrast", "presenter") else 4.5
    said = {"foreground": theme.foreground, "accent": theme.accent, "primary": theme.primary}
    said |= {role: theme.variables[role] for role in ("muted", "human", "added", "removed", "route")}
    for role, colour in said.items():
        wanted = least if role == "foreground" else min(least, 4.5)
        assert contrast(str(colour), str(theme.background)) >= wanted, role
    for text, back in (("cursor-text", "cursor"), ("added", "added-back"), ("removed", "removed-back")):
        assert contrast(theme.variables[text], theme.variables[back]) >= 4.5, text
    grounds = (str(theme.surface), str(theme.panel), theme.variables["cursor-quiet"])
    for role in ("foreground", "accent", "primary", "muted", "human", "added", "removed"):
        assert min(contrast(str(said[role]), ground) for ground in grounds) >= 4.5, role
    # A badge is the background's colour on the accent's.
    assert contrast(str(theme.background), str(theme.accent)) >= 4.5


def test_an_invalid_theme_file_is_reported_with_its_place(tmp_path: Path):
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "dangling.toml").symlink_to(tmp_path / "nowhere")
    for name in ("folder", "dangling"):
        assert problems(Themes(tmp_path), name) == [f"{tmp_path / name}.toml: is not a readable file"]


@pytest.mark.parametrize("name", OURS)
def test_graph_lines_and_the_focused_frame_have_enough_contrast(name: str):
    theme = Themes().load(name).theme
    for role in ("faint", "border-focus", "route"):
        for ground in (theme.background, theme.surface):
            assert contrast(theme.variables[role], str(ground)) >= 3, role


@pytest.mark.parametrize("name", OURS)
def test_the_borders_of_panes_can_be_seen(name: str):
    theme = Themes().load(name).theme
    assert contrast(theme.variables["border"], str(theme.background)) >= LEAST_OF_BORDERS


@pytest.mark.parametrize("name", ["high-contrast", "presenter"])
def test_what_is_faint_elsewhere_is_seen_here(name: str):
    theme = Themes().load(name).theme
    assert contrast(theme.variables["faint"], str(theme.background)) >= 4.5
    assert contrast(theme.variables["border"], str(theme.background)) >= 3


def test_a_colour_is_added_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ours = tmp_path / "ours"
    shutil.copytree(bundled_themes(), ours)
    dark = ours / "dark.toml"
    dark.write_text(dark.read_text("utf-8") + 'glow = "#123456"\n')
    monkeypatch.setattr(theme, "bundled_themes", lambda: ours)
    theme.known_colours.cache_clear()
    try:
        assert {Themes().load(name).theme.variables["glow"] for name in OURS} == {"#123456"}
        write(tmp_path, "mine", 'base = "light"\n[roles]\nglow = "#654321"\n')
        assert Themes(tmp_path).load("mine").theme.variables["glow"] == "#654321"
    finally:
        theme.known_colours.cache_clear()


def test_our_themes_are_based_on_ours_whatever_a_user_calls_theirs(tmp_path: Path):
    write(tmp_path, "dark", "broken")
    assert Themes(tmp_path).load("light").theme == Themes().load("light").theme


def test_every_role_of_the_view_has_a_style():
    assert {f"role--{role}" for role in get_args(Role)} - ROLE_CLASSES == {"role--plain", "role--value"}


def test_a_theme_can_be_based_on_another(tmp_path: Path):
    write(tmp_path, "mine", 'base = "light"\ntitle = "Mine"\n[colors]\naccent = "#005500"\n')
    write(tmp_path, "more", 'base = "mine"\n[roles]\nmuted = "rgb(1,2,3)"\n')
    themes = Themes(tmp_path)
    assert themes.names() == ("dark", "high-contrast", "light", "mine", "more", "presenter")
    loaded = themes.load("more")
    light = themes.load("light").theme
    assert (loaded.theme.accent, loaded.theme.variables["muted"]) == ("#005500", "rgb(1,2,3)")
    assert (loaded.theme.dark, loaded.theme.background) == (False, light.background)
    assert [path.name for path in loaded.files] == ["more.toml", "mine.toml", "light.toml", "dark.toml"]


def test_a_user_theme_goes_before_ours_of_the_same_name(tmp_path: Path):
    write(tmp_path, "dark", 'base = "dark"\n[colors]\naccent = "#123456"\n')
    assert Themes(tmp_path).load("dark").theme.accent == "#123456"


def test_a_wrong_theme_lists_all_its_problems_with_their_lines(tmp_path: Path):
    text = (bundled_themes() / "dark.toml").read_text("utf-8")
    text = text.replace('muted = "#8b92b3"', 'muted = "mud"').replace(
        'faint = "#626883"', 'fiant = "#626883"'
    )
    text = text.replace('accent = "#dfaf68"', "accent = 3").replace(
        "dark = true", 'dark = "yes"\nbsae = "light"'
    )
    text = text.replace('success = "#9ece6a"', 'success = "#9ece6a80"\nroute = "red"')
    path = write(tmp_path, "mine", text)
    lines = text.splitlines()

    def at(start: str) -> int:
        return next(number for number, line in enumerate(lines, 1) if line.startswith(start))

    assert problems(Themes(tmp_path), "mine") == [
        f"{path}:{at('dark')}: dark: must be true or false",
        f"{path}:{at('bsae')}: unknown key 'bsae'; did you mean 'base'?",
        f"{path}:{at('accent')}: [colors] accent: 3 is not a colour; write it as #rrggbb",
        f"{path}:{at('success')}: [colors] success: '#9ece6a80' is not a colour; write it as #rrggbb",
        f"{path}:{at('route')}: [colors] route: unknown key; it belongs in [roles]",
        f"{path}:{at('muted')}: [roles] muted: 'mud' is not a colour; write it as #rrggbb",
        f"{path}:{at('fiant')}: [roles] fiant: unknown key; did you mean 'faint'?",
        f'{path}:{at("[roles]")}: [roles] misses faint; add them, or a line base = "dark"',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[colors\n", ":1:8: "),
        ('title = "x"\n', ': the table [colors] is missing; add it, or a line base = "dark"'),
        ('base = "drak"\n', ":1: base: there is no theme 'drak'; did you mean 'dark'?"),
        ('# me\nbase = "mine"\n', ":2: base: 'mine' is based on this theme itself"),
        ("base = 3\n", ":1: base: must be text"),
        ('base = "dark"\ncolors = 4\n', ":2: colors: must be a table"),
        ("x" * 70_000, ": is larger than 64 kB, so it is not a theme"),
    ],
)
def test_each_problem_names_its_place(tmp_path: Path, text: str, problem: str):
    path = write(tmp_path, "mine", text)
    assert problems(Themes(tmp_path), "mine")[0].startswith(f"{path}{problem}")


def test_themes_that_are_based_on_each_other_are_refused(tmp_path: Path):
    write(tmp_path, "one", 'base = "two"\n')
    two = write(tmp_path, "two", 'base = "one"\n')
    assert problems(Themes(tmp_path), "one") == [f"{two}:1: base: 'one' is based on this theme itself"]


def test_unreadable_theme_files_are_reported(tmp_path: Path):
    (tmp_path / "mine.toml").write_bytes(b"title = '\xff'")
    assert problems(Themes(tmp_path), "mine") == [f"{tmp_path}/mine.toml: isn't UTF-8 text (byte 9)"]


@pytest.mark.parametrize(
    "name", ["\x1b]52;c;YQ==\x07", "a b", "..", "../dark", "\u202edark", "a\nb", "[red]", "x" * 61]
)
def test_misleading_theme_names_are_refused(tmp_path: Path, name: str):
    if "/" not in name:
        write(tmp_path, name, 'base = "dark"\n')
    assert Themes(tmp_path).names() == OURS
    assert Themes(tmp_path).path(name) is None
