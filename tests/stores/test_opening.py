"""From what a user writes to a store."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.errors import UsageError
from hitl_tui.stores import MemoryCheckpointer, SQLiteCheckpointer, open_store
from hitl_tui.stores.opening import without_password
from tests.support.places import ROOT


def test_memory_is_a_store_that_ends_with_the_process() -> None:
    assert isinstance(open_store("memory:"), MemoryCheckpointer)


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("runs.db", "here/runs.db"),
        ("./odd:name.db", "here/odd:name.db"),
        ("~/runs.db", "home/runs.db"),
        ("{tmp}/runs.db", "runs.db"),
        ("sqlite:///runs.db", "here/runs.db"),
        ("sqlite:///~/runs.db", "home/runs.db"),
        ("sqlite:///{tmp}/runs.db", "runs.db"),
    ],
)
def test_a_path_is_a_sqlite_file(
    form: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with closing(open_store(form.format(tmp=tmp_path))) as store:
        assert isinstance(store, SQLiteCheckpointer)
        assert store.path == tmp_path / place
        assert store.path.is_file()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory",
        ":memory:",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "files:",
        "sqlite://runs.db",
        "mysql://h/db",
        "odd:x",
    ],
)
def test_other_urls_are_refused_with_what_to_write(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        open_store(url)
    assert "memory:" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_package_loads_no_database() -> None:
    code = (
        "import sys, hitl_tui.stores\n"
        "assert 'sqlite3' not in sys.modules\n"
        "from hitl_tui.stores import MemoryCheckpointer\n"
        "assert 'sqlite3' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3:c/r@t@h:5/db?schema=x", "postgresql://ann@h:5/db?schema=x"),
        ("postgresql://h/db?user=a&password=s3cret&schema=x", "postgresql://h/db?user=a&password=&schema=x"),
        ("postgresql://ann@h/db", "postgresql://ann@h/db"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_no_password_of_a_url_is_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
