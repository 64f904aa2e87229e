"""Paths and files that people name: nobody's home, marks at the begin, line ends of other systems."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from hitl_tui.config import user_folder
from hitl_tui.given_files import expanded, home_directory, lines_of


def test_the_home_of_somebody_unknown_stays_in_the_path() -> None:
    assert expanded("~nobody-of-that-name/x.toml") == Path("~nobody-of-that-name/x.toml")
    assert expanded("~/x") == home_directory() / "x"


def test_a_user_without_a_home_directory_has_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert home_directory() == Path("/")
    assert {user_folder("config").is_absolute(), user_folder("log").is_absolute()} == {True}


def test_lines_end_as_ours_and_begin_without_a_mark() -> None:
    data = io.BytesIO(b"\xef\xbb\xbf{}\r\n{1}\n{2}")
    assert list(lines_of(data, 100)) == [b"{}\n", b"{1}\n", b"{2}"]
    assert list(lines_of(io.BytesIO(b"abcdef"), 4)) == [b"abcd", b"ef"]
