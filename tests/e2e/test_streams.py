"""Standard streams that are closed or take no more, and a current directory that is no more."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.program import APP


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in which `app` is the program."""
    line = f'app() {{ "{APP[0]}" "$@"; }}; {command}'
    return subprocess.run(
        ["sh", "-c", line], cwd=cwd, capture_output=True, text=True, timeout=150, check=False
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", ["--help", "schema json", "run counter --headless --thread full"])
def test_output_to_a_full_disk_is_reported_and_no_bug(arguments: str, tmp_path: Path) -> None:
    done = shell(f"app {arguments} > /dev/full", tmp_path)
    assert done.returncode == 1
    assert "The output can't be written: No space left on device" in done.stderr
    assert "unexpected" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_is_an_empty_one(closed: str, tmp_path: Path) -> None:
    run = "run counter --headless --input limit=2 --thread c --store files:kept"
    done = shell(f"app {run} {closed} && app verify c --strict --store files:kept", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert shell(f"app show nobody --store files:kept {closed}", tmp_path).returncode == 2


def test_without_stdin_a_plain_session_ends(tmp_path: Path) -> None:
    done = shell("app demo --thread c --plain <&-", tmp_path)
    assert done.returncode == 3
    assert "Left." in done.stdout


def test_an_error_keeps_its_exit_code_if_stderr_is_closed(tmp_path: Path) -> None:
    full = "/dev/full" if Path("/dev/full").exists() else "/dev/null"
    assert shell(f"app show nobody 2>{full}", tmp_path).returncode == 2


def test_a_deleted_current_directory_is_reported(tmp_path: Path) -> None:
    done = shell("mkdir gone; cd gone; rmdir ../gone; app run counter --headless", tmp_path)
    assert done.returncode == 2
    assert "the current directory has gone" in done.stderr
