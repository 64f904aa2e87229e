"""`serve` where it is refused, and the tokens that people log in with."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hitl_tui.cli.serve import _ask_role
from hitl_tui.config import config_path, load_settings
from hitl_tui.team.web.tokens import TokenFile, TokensUnusable, digest
from tests.support.commands import App


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host", "0.0.0.0"], "nobody would be asked who they are"),
        (["--host", "192.0.2.1"], "nobody would be asked who they are"),
        (["--auth-header", "X-User"], "anybody could send that header"),
        (["--auth-header", "X User", "--trusted-proxy", "127.0.0.1"], "not a header name"),
        (["--auth-header", "X-User", "--trusted-proxy", "proxy"], "not an IP address"),
        (["--auth", "none.json"], "none.json has no token"),
        (["--auth", "none.json", "--auth-header", "X", "--trusted-proxy", "::1"], "don't go together"),
        (["--store", "memory:"], "memory: is not shared"),
        (["--public-url", "review.example.org"], "not the address of a web server"),
        (["--public-url", "https://review.example.org/app"], "below a path of a host"),
        (["--public-url", "http://u:p@review.example.org"], "not the address of a web server"),
        (["--public-url", "http://review.example.org:99999"], "not the address of a web server"),
        (["--public-url", "http://[::1"], "not the address of a web server"),
        (["--public-url", "https://review.example.org/#a"], "below a path of a host"),
    ],
)
def test_what_would_be_unsafe_is_refused(options: list[str], why: str, app: App) -> None:
    assert why in app.expect(2, "serve", *options).err


def test_a_wildcard_address_needs_a_public_url(app: App, tmp_path: Path) -> None:
    file = str(tmp_path / "tokens.json")
    app.expect(0, "serve", "token", "add", "ann", "--auth", file)
    assert "--public-url" in app.expect(2, "serve", "--host", "0.0.0.0", "--auth", file).err


def test_a_port_in_use_is_reported(app: App, tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "can't listen" in app.expect(2, "serve", "--port", port, "--store", str(tmp_path / "a.db")).err


def test_a_link_to_the_file_of_tokens_stays_and_what_it_names_is_written(app: App, tmp_path: Path) -> None:
    link, file = tmp_path / "link.json", tmp_path / "tokens.json"
    link.symlink_to(file)
    app.expect(0, "serve", "token", "add", "ann", "--auth", str(link))
    app.expect(0, "serve", "token", "add", "bob", "--auth", str(link))
    assert link.is_symlink()
    assert [entry["name"] for entry in json.loads(file.read_text())["tokens"]] == ["ann", "bob"]
    app.expect(0, "serve", "token", "remove", "ann", "--auth", str(link))
    assert [entry["name"] for entry in json.loads(file.read_text())["tokens"]] == ["bob"]


def test_tokens_are_created_shown_once_and_removed(app: App, tmp_path: Path) -> None:
    file = tmp_path / "people" / "tokens.json"
    made = app.expect(0, "serve", "token", "add", "ann", "--auth", str(file)).out.strip()
    assert made.startswith("hitl_")
    assert made not in file.read_text()
    assert json.loads(file.read_text())["tokens"][0]["sha256"] == digest(made)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "has a token" in app.expect(2, "serve", "token", "add", "ann", "--auth", str(file)).err
    assert app.expect(0, "serve", "token", "list", "--auth", str(file)).out.split()[0] == "ann"
    tokens = TokenFile(file)
    assert tokens.name_of(digest(made)) == "ann"
    app.expect(0, "serve", "token", "remove", "ann", "--auth", str(file))
    assert tokens.name_of(digest(made)) is None
    assert "'anna' has no token" in app.expect(2, "serve", "token", "remove", "anna", "--auth", str(file)).err


@pytest.mark.parametrize("name", ["", " ann", "a\nb", "a\u202eb", "x" * 101])
def test_a_name_is_a_line(name: str, app: App, tmp_path: Path) -> None:
    assert "used as a name" in app.expect(2, "serve", "token", "add", name, "--auth", str(tmp_path / "t")).err


@pytest.mark.parametrize("content", ["", "[]", '{"tokens": [{"name": "ann"}]}', '{"token": []}'])
def test_a_damaged_file_lets_nobody_in(content: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(content)
    tokens = TokenFile(file)
    assert tokens.name_of(digest("x")) is None
    with pytest.raises(TokensUnusable, match="not a file of tokens"):
        tokens.entries()


def test_a_file_that_others_may_write_lets_nobody_in(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    made = tokens.add("ann")
    assert tokens.name_of(digest(made)) == "ann"
    tokens.path.chmod(0o666)
    fresh = TokenFile(tokens.path)
    assert fresh.name_of(digest(made)) is None
    with pytest.raises(TokensUnusable, match="written by others"):
        fresh.entries()


class TestRole:
    """The question at the first start."""

    @pytest.fixture
    def typed(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What a person at the terminal types, a line for each question."""
        typed: list[str] = []
        monkeypatch.setattr("hitl_tui.cli.opening.may_ask", lambda: True)
        monkeypatch.setattr("hitl_tui.drivers.node_streams.own_input", lambda prompt: typed.pop(0))
        monkeypatch.delenv("HITL_TUI_ROLE", raising=False)
        monkeypatch.setattr(os, "environ", dict(os.environ))
        return typed

    @pytest.mark.parametrize(
        ("words", "role"), [("", "reviewer"), ("reviewer", "reviewer"), ("Dev", "developer")]
    )
    def test_it_is_asked_once_and_kept(self, typed: list[str], words: str, role: str) -> None:
        typed += [words, "never read"]
        _ask_role(load_settings())
        assert load_settings().role == os.environ["HITL_TUI_ROLE"] == role
        assert config_path().read_text() == f'role = "{role}"\n'
        _ask_role(load_settings())
        assert typed == ["never read"]

    def test_another_word_is_asked_for_again_the_next_time(
        self, typed: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        typed.append("boss")
        _ask_role(load_settings())
        assert "'boss' is neither of them" in capsys.readouterr().err
        assert load_settings().origins["role"] == "default"

    def test_nobody_is_asked_without_a_terminal(self) -> None:
        _ask_role(load_settings())
        assert load_settings().origins["role"] == "default"
