from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui.config import config_path, load_settings
from hitl_tui.errors import ExitCode, UsageError


def write_config(text: str) -> Path:
    path = config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_defaults_need_no_file(isolated: Path) -> None:
    settings = load_settings()
    assert settings.store == f"sqlite:///{isolated}/data/hitl-tui/threads.db"
    assert settings.reviewer == "tester"
    assert (settings.theme, settings.model, settings.api_base) == ("", None, None)
    assert set(settings.origins.values()) == {"default"}


def test_flags_over_environment_over_file(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_config('theme = "light"\nmodel = "ollama/a"\nreviewer = "ann"\n')
    monkeypatch.setenv("HITL_TUI_MODEL", "ollama/b")
    monkeypatch.setenv("HITL_TUI_REVIEWER", "ben")
    settings = load_settings({"reviewer": "cas", "theme": None})
    assert (settings.theme, settings.model, settings.reviewer) == ("light", "ollama/b", "cas")
    assert settings.origins["theme"] == f"{path}:1"
    assert settings.origins["model"] == "HITL_TUI_MODEL"
    assert settings.origins["reviewer"] == "flag"


def test_another_file_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "other.toml"
    path.write_text('theme = "light"')
    monkeypatch.setenv("HITL_TUI_CONFIG", str(path))
    assert load_settings().theme == "light"


def test_all_problems_are_told_at_once_with_file_line_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_config('# mine\nthem = "light"\nreviewer = 3\n\n[stores]\na = 1\n')
    monkeypatch.setenv("HITL_TUI_API_BASE", "localhost:1")
    with pytest.raises(UsageError) as caught:
        load_settings()
    assert caught.value.message.splitlines() == [
        f"{path}:2: unknown key 'them': did you mean 'theme'?",
        f"{path}:3: reviewer: must be text, not int",
        f"{path}:5: unknown key 'stores': did you mean 'store'?",
        "HITL_TUI_API_BASE: api_base: must begin with http:// or https://",
    ]
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"theme = \n", ":1:9: "),
        (b'theme = "a"\ntheme = "b"\n', ":2:"),
        (b"theme = '\xff'\n", "isn't UTF-8 text (byte 9)"),
    ],
)
def test_a_broken_file_names_the_place(content: bytes, problem: str) -> None:
    path = write_config("")
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_settings()
    assert f"{path}" in caught.value.message
    assert problem in caught.value.message


def test_a_named_file_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITL_TUI_CONFIG", "/nowhere/config.toml")
    with pytest.raises(UsageError, match=r"there is no file /nowhere/config\.toml"):
        load_settings()


@pytest.mark.parametrize("value", ["", "  ", "a\nb", "a\x1b[2J", "x" * 1001])
def test_values_are_one_printable_line(value: str) -> None:
    with pytest.raises(UsageError, match="reviewer: must"):
        load_settings({"reviewer": value})
