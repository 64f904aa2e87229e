"""What others get: the wheel, in a fresh environment away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.terminal import Terminal

pytestmark = pytest.mark.wheel


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
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("hitl_tui-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` directory of an environment with the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("fresh")
    call(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    call(folder / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return folder / "venv" / "bin"


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
