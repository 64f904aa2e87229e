"""One machine with one SQLite file pays nothing for a team: nothing of it is loaded, or has to be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import APP, COUNTER, call
from tests.support.terminal import Terminal

LIBRARIES = ("psycopg", "psycopg_pool", "procrastinate", "aiohttp", "textual_serve")
OURS = ("hitl_tui.stores.postgres", "hitl_tui.team.web", "hitl_tui.team.workers")
MISSING = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if any(f"{{name}}.".startswith(f"{{each}}.") for each in {names!r}):
            with open({asked!r}, "a") as file:
                file.write(name + "\\n")
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.fixture(params=[(*LIBRARIES, *OURS)], ids=[""])
def asked(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs find nothing of a team's; here is what they asked for."""
    asked = tmp_path / "asked"
    (tmp_path / "sitecustomize.py").write_text(MISSING.format(names=request.param, asked=str(asked)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return asked


def test_a_thread_is_run_viewed_and_checked_without_optional_packages(asked: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "runs.db")
    for words in (
        ("run", COUNTER, "--thread", "t", "--headless"),
        ("threads",),
        ("show", "t"),
        ("log", "t"),
        ("verify", "t", "--strict"),
    ):
        done = call(*words, "--store", place)
        assert done.returncode == 0, done.stderr
    assert not asked.exists()


def test_the_screens_are_painted_and_a_step_is_made_without_them(asked: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "runs.db")
    with Terminal([*APP, "run", COUNTER, "--thread", "t", "--store", place]) as terminal:
        terminal.wait_for("Timeline")
        terminal.press("s")
        terminal.wait_for("Channels at step 1")
        terminal.press("q")
        terminal.wait_exit()
    with Terminal([*APP, "--store", place]) as terminal:
        terminal.wait_for("Threads")
    assert not asked.exists()


@pytest.mark.parametrize("asked", [LIBRARIES], ids=[""], indirect=True)
@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("threads", "--store", "postgresql://nobody@127.0.0.1:1/none"), "postgres"),
        (("worker", "--graph", COUNTER), "team"),
        (("serve",), "web"),
    ],
)
def test_a_missing_optional_package_is_named_with_the_command_that_installs_it(
    words: tuple[str, ...], extra: str, asked: Path
) -> None:
    done = call(*words)
    assert (done.returncode, f"hitl-tui[{extra}]" in done.stderr) == (2, True), done.stderr
    assert asked.exists()
