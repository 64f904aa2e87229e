"""Reviewers who come over ssh: the line of the guide gives them the app, whatever they ask for."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from tests.support import rich_queue
from tests.support.places import ROOT
from tests.support.program import APP, COUNTER, call
from tests.support.terminal import Terminal

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.access(SSHD, os.X_OK), reason="no sshd here: apt-get install openssh-server"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may start an sshd that lets people in"),
]


def options_of_the_guide(store: Path) -> str:
    """What the guide puts behind its Match line, with the program and the store of this test."""
    page = (ROOT / "docs" / "team.md").read_text(encoding="utf-8")
    found = re.search(r"^Match Group reviewers\n((?:    .+\n)+)", page, re.MULTILINE)
    assert found is not None
    options = found.group(1).replace("/usr/local/bin/hitl-tui", APP[0])
    return options.replace("/srv/threads/threads.db", str(store))


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[list[str]]:
    """The command that logs in to a server of this test."""
    store = tmp_path / "threads.db"
    call("run", COUNTER, "--thread", "r1", "--headless", "--store", str(store))
    for name in ("host", "person"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # What people keep is that of this test, not of whoever runs it.
    kept = " ".join(f"{name}={value}" for name, value in os.environ.items() if name.startswith("XDG_"))
    config = tmp_path / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {tmp_path}/person.pub\nStrictModes no\nPasswordAuthentication no\n"
        f"SetEnv {kept}\n"
        f"PermitRootLogin prohibit-password\nMatch User *\n{options_of_the_guide(store)}"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    checked = subprocess.run([SSHD, "-t", "-f", config], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", config], stderr=subprocess.DEVNULL)
    try:
        while server.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
        assert server.poll() is None
        yield [
            "ssh", "-F", "none", "-i", str(tmp_path / "person"), "-p", str(port), "-l", "root",
            "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={tmp_path}/known",
            "-o", "LogLevel=ERROR",
        ]  # fmt: skip
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.parametrize("wish", [[], ["bash"]], ids=["nothing", "shell"])
def test_the_app_starts_over_ssh_whatever_command_is_given(ssh: list[str], wish: list[str]) -> None:
    with Terminal([*ssh, "-tt", "127.0.0.1", *wish]) as terminal:
        terminal.wait_for("r1")
        terminal.press("enter")
        terminal.wait_for("Timeline")
        terminal.resize(90, 30)
        terminal.wait_for("Channels")
        terminal.press("q")
        terminal.wait_exit()


def test_a_decision_over_ssh_is_recorded_for_the_account(ssh: list[str], tmp_path: Path) -> None:
    with closing(SQLiteCheckpointer(tmp_path / "threads.db")) as store:
        rich_queue.fill(store, (rich_queue.Asking("memo-42", "review", 1),))
        with Terminal([*ssh, "-tt", "127.0.0.1"]) as terminal:
            terminal.wait_for("memo-42")
            terminal.press("w")
            terminal.wait_for("1 WAITS FOR YOU")
            terminal.wait_for("Is this draft good enough?")
            terminal.press("a")
            terminal.wait_for("1 would be decided")
            terminal.press("enter")
            terminal.wait_for("1 decided")
            terminal.press("enter")
            terminal.wait_for("0 WAIT FOR YOU")
            terminal.press("escape")
            terminal.wait_gone("FOR YOU")
            terminal.press("q")
            terminal.wait_exit()
        answers = [entry for entry in store.ledger("memo-42") if entry.kind == "answer"]
        assert [entry.actor for entry in answers] == ["root"]
    assert call("verify", "memo-42", "--strict", "--store", str(tmp_path / "threads.db")).returncode == 0


def test_without_a_terminal_there_is_no_shell_either(ssh: list[str]) -> None:
    done = subprocess.run(
        [*ssh, "127.0.0.1", "id; cat"], input="id\n", capture_output=True, text=True, timeout=60, check=False
    )
    assert "uid=" not in done.stdout
    assert "Usage: hitl-tui" in done.stdout
