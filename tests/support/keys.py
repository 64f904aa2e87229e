"""Keys of OpenSSH for a test, as people have them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_ssh = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="there is no ssh-keygen here")


def new_key(file: Path, passphrase: str = "") -> Path:
    """A fresh key pair; the private half is the file."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "test", "-f", str(file)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return file


def allow(file: Path, **keys: Path) -> Path:
    """A file of allowed signers: these people have these keys."""
    lines = [f"{who} {Path(f'{key}.pub').read_text()}" for who, key in keys.items()]
    file.write_text("".join(lines))
    return file
