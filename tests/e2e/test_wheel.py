"""What others get: a clone and the README, or the wheel in a fresh environment away from the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from functools import partial
from pathlib import Path

import pytest

from tests.support.once import made_once
from tests.support.places import ROOT
from tests.support.terminal import Terminal

pytestmark = pytest.mark.wheel

INSTALLED = 300.0
"""Seconds for what installs something: the network may be slow."""


def call(*argv: str | Path, cwd: Path) -> str:
    """Run a program that must succeed; returns what it printed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made_once(tmp_path_factory, "wheel", partial(build, ROOT))
    (built,) = folder.glob("hitl_tui-*.whl")
    return built


def build(checkout: Path, folder: Path) -> Path:
    """Build a wheel as it is built for PyPI: from the source distribution."""
    by = ["--installer", "uv"] if shutil.which("uv") else []
    call(sys.executable, "-m", "build", *by, "--outdir", folder, checkout, cwd=folder)
    (built,) = folder.glob("hitl_tui-*.whl")
    return built


def metadata(wheel: Path) -> Message:
    """What a wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def description(wheel: Path) -> str:
    """What PyPI shows."""
    payload = metadata(wheel).get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()


def clone(folder: Path) -> Path:
    """The checkout as others get it, without what was made in it."""
    made = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "dist", "build")
    shutil.copytree(ROOT, folder, ignore=made)
    return folder


def links(text: str) -> list[str]:
    """Where the links and pictures of a Markdown text lead."""
    return re.findall(r"\]\(([^)\s]+)\)", text)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` directory of an environment with the wheel and what it depends on."""
    folder = made_once(tmp_path_factory, "wheel installed", partial(install, wheel))
    return folder / "venv" / "bin"


def install(wheel: Path, folder: Path) -> None:
    """Make an environment with the wheel, which takes what it depends on from the one of these tests.

    That its list of dependencies is whole is shown by the first command of the README.
    """
    call(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv/bin/python"
    call(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel, cwd=folder)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    here, there = (call(each, "-c", where, cwd=folder).strip() for each in (sys.executable, python))
    Path(there, "those_of_the_tests.pth").write_text(f"{here}\n", encoding="utf-8")


def test_the_wheel_carries_what_is_needed_and_no_more(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for kind in ("themes/dark.toml", "sample_graphs/advisor.py"):
        assert f"hitl_tui/_bundled/{kind}" in names
    assert "hitl_tui/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    styles = {path.relative_to(ROOT).as_posix() for path in (ROOT / "hitl_tui").rglob("*.tcss")}
    assert styles <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"hitl_tui"}
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]


def test_the_demo_and_the_samples_run_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    assert str(ROOT) not in call(
        installed / "python", "-c", "import hitl_tui; print(hitl_tui.__file__)", cwd=tmp_path
    )
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    with Terminal(["hitl-tui", "demo"], env={"PATH": path, "PYTHONPATH": ""}, cwd=tmp_path) as terminal:
        terminal.wait_for("latest_draft")
        terminal.press("s")
        terminal.wait_for("step 1")
        terminal.press("q")
        assert terminal.wait_exit() == 3
    argv = [str(installed / "hitl-tui"), "run", "counter", "--input", "limit=2", "--theme", "light"]
    with Terminal(argv, env={"PYTHONPATH": ""}, cwd=tmp_path) as terminal:
        terminal.wait_for("increment is next")
        terminal.press("c")
        terminal.wait_for("DONE")
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_the_wheel_names_its_python_versions_and_no_address_yet(wheel: Path) -> None:
    said = metadata(wheel)
    assert said["Requires-Python"] == ">=3.11"
    assert said["License-Expression"] == "MIT"
    assert said.get_all("Project-URL", []) == []
    classifiers = said.get_all("Classifier", [])
    for version in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {version}" in classifiers


def test_the_page_on_pypi_has_no_link_that_only_works_in_a_checkout(wheel: Path) -> None:
    assert metadata(wheel)["Description-Content-Type"] == "text/markdown"
    text = description(wheel)
    assert text.startswith("# hitl-tui\n")
    assert "docs/reviewing.md" in text
    assert [link for link in links(text) if not link.startswith("https://")] == []


def test_with_a_repository_the_page_on_pypi_leads_into_it_at_the_version(tmp_path: Path) -> None:
    checkout = clone(tmp_path / "checkout")
    settings = checkout / "pyproject.toml"
    urls = '[project.urls]\nRepository = "https://example.org/hitl/hitl-tui"\n'
    settings.write_text(
        settings.read_text(encoding="utf-8").replace("[project.scripts]\n", f"{urls}\n[project.scripts]\n"),
        encoding="utf-8",
    )
    (tmp_path / "dist").mkdir()
    wheel = build(checkout, tmp_path / "dist")
    tag = f"v{metadata(wheel)['Version']}"
    page = description(wheel)
    assert f"(https://example.org/hitl/hitl-tui/blob/{tag}/docs/reviewing.md)" in page
    assert f"(https://example.org/hitl/hitl-tui/raw/{tag}/docs/pictures/run.svg)" in page
    assert [link for link in links(page) if not link.startswith("https://")] == []
    assert "Repository, https://example.org/hitl/hitl-tui" in metadata(wheel).get_all("Project-URL", [])


def test_the_first_command_of_the_readme_opens_the_demo_in_a_fresh_clone(tmp_path: Path) -> None:
    """Word for word, with a home and caches that are empty; it says all the time what it does."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.findall(r"^```bash\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)[0]
    assert first.count("\n") == 1
    checkout = clone(tmp_path / "clone")
    with Terminal(["bash", "-c", first], env={"PYTHONPATH": ""}, cwd=checkout) as terminal:
        terminal.wait_for("latest_draft", timeout=INSTALLED)
        assert b"Collecting uv" in terminal.raw
        assert b"Installed" in terminal.raw
        terminal.press("s")
        terminal.wait_for("step 1")
        terminal.press("q")
        assert terminal.wait_exit() == 3
