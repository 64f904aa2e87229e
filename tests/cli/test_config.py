from __future__ import annotations

import re
from pathlib import Path

import platformdirs
import pytest

from hitl_tui.config import config_path, data_folder, keep_setting, load_settings, user_themes
from hitl_tui.errors import ExitCode, UsageError
from hitl_tui.stores import open_store
from tests.support.commands import App


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


def test_a_role_is_reviewer_or_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().role == "developer"
    path = write_config('theme = "light"\nrole = "boss"\n')
    with pytest.raises(UsageError, match=rf"{path}:2: role: must be 'reviewer' or 'developer', not 'boss'"):
        load_settings()
    write_config('role = "reviewer"')
    assert load_settings().role == "reviewer"
    monkeypatch.setenv("HITL_TUI_ROLE", "developer")
    assert load_settings().role == "developer"


@pytest.mark.parametrize("text", ["", '# mine\n[keys]\nrun.step = "f10"\n'])
def test_a_setting_is_kept_above_all_tables_of_the_file(text: str) -> None:
    if text:
        write_config(text)
    keep_setting("role", "reviewer")
    assert config_path().read_text() == f'role = "reviewer"\n{text}'
    assert load_settings().role == "reviewer"
    assert [each.name for each in config_path().parent.iterdir()] == ["config.toml"]


def test_an_unknown_durability_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().durability == "decisions"
    monkeypatch.setenv("HITL_TUI_DURABILITY", "steps")
    assert load_settings().durability == "steps"
    with pytest.raises(UsageError, match="flag: durability: must be one of decisions, steps, none"):
        load_settings({"durability": "always"})
    with pytest.raises(UsageError, match=r"no durability 'step'.*did you mean 'steps'"):
        open_store("memory:", "step")  # type: ignore[arg-type]


def test_a_command_that_opens_a_store_takes_the_durability(app: App, tmp_path: Path) -> None:
    app.expect(0, "run", "counter", "--headless", "--store", f"{tmp_path}/a.db", "--durability", "none")
    app.expect(2, "run", "counter", "--headless", "--store", f"{tmp_path}/b.db", "--durability", "no")
    assert re.search(r"durability +steps", app.expect(0, "config", "--durability", "steps").out)


def test_another_file_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "other.toml"
    path.write_text('theme = "light"')
    monkeypatch.setenv("HITL_TUI_CONFIG", str(path))
    assert load_settings().theme == "light"


def test_all_problems_are_reported_at_once_with_file_line_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_config('# mine\nthem = "light"\nreviewer = 3\n\n[stores]\na = 1\n')
    monkeypatch.setenv("HITL_TUI_API_BASE", "localhost:1")
    with pytest.raises(UsageError) as caught:
        load_settings()
    assert caught.value.message.splitlines() == [
        f"{path}:2: unknown key 'them': did you mean 'theme'?",
        f"{path}:3: reviewer: must be text, not a whole number",
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


def test_the_ascii_setting_is_true_or_false_from_every_source(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().ascii is None
    path = write_config("ascii = true\n")
    assert (load_settings().ascii, load_settings().origins["ascii"]) == (True, f"{path}:1")
    monkeypatch.setenv("HITL_TUI_ASCII", "no")
    assert (load_settings().ascii, load_settings().origins["ascii"]) == (False, "HITL_TUI_ASCII")
    monkeypatch.setenv("HITL_TUI_ASCII", "perhaps")
    with pytest.raises(UsageError, match="HITL_TUI_ASCII: ascii: must be true or false"):
        load_settings()
    monkeypatch.delenv("HITL_TUI_ASCII")
    write_config('ascii = "yes"\n')
    with pytest.raises(UsageError, match=":1: ascii: must be true or false"):
        load_settings()


def test_keys_are_written_with_dots_or_quotes_and_know_their_lines() -> None:
    path = write_config(
        'reviewer = "ann"\n[keys]\nrun.step = "n"\n"run.continue" = "f5"\ntravel = { on = "N" }\n'
    )
    settings = load_settings()
    assert settings.keys == {"run.step": "n", "run.continue": "f5", "travel.on": "N"}
    assert settings.key_places == {
        "run.step": f"{path}:3",
        "run.continue": f"{path}:4",
        "travel.on": f"{path}:5",
    }
    assert settings.origins["keys"] == f"{path}:2"


def test_keys_must_be_a_table_whose_values_the_screen_checks() -> None:
    write_config("[keys]\nno.such = 3\n")
    assert load_settings().keys == {"no.such": 3}
    path = write_config('keys = "n"\n')
    with pytest.raises(UsageError) as caught:
        load_settings()
    assert caught.value.message == f'{path}:1: keys: must be a table, as in [keys] and "run.step" = "n"'


def test_each_value_has_an_origin() -> None:
    write_config('[keys]\nrun.step = "n"\n')
    settings = load_settings({"theme": "light"})
    assert set(settings.origins) == set(settings.__struct_fields__) - {"origins", "key_places"}
    assert settings.origins["theme"] == "flag"


def test_a_misspelt_environment_variable_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITL_TUI_STROE", "memory:")
    with pytest.raises(UsageError) as caught:
        load_settings()
    hint = "did you mean 'HITL_TUI_STORE'?"
    assert caught.value.message == f"HITL_TUI_STROE: there is no such variable; {hint}"


def test_themes_are_read_beside_the_configuration_file_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert user_themes() == config_path().parent / "themes"
    monkeypatch.setenv("HITL_TUI_CONFIG", str(tmp_path / "other.toml"))
    assert user_themes() == tmp_path / "themes"


@pytest.mark.parametrize("named", ["", "/somewhere/else"])
def test_folders_are_those_of_platformdirs(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, named)
    monkeypatch.delenv("HITL_TUI_CONFIG", raising=False)
    assert config_path().parent == platformdirs.user_config_path("hitl-tui", appauthor=False)
    assert data_folder() == platformdirs.user_data_path("hitl-tui", appauthor=False)


def test_a_relative_folder_in_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, "")
    monkeypatch.delenv("HITL_TUI_CONFIG", raising=False)
    usual = config_path(), data_folder()
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, "relative/folder")
    assert (config_path(), data_folder()) == usual
