"""Signatures of decisions by OpenSSH's `ssh-keygen -Y`: with a person's key, or one that their agent holds.

It never asks for anything: a key with a passphrase is used through ssh-agent, or not at all.
"""

from __future__ import annotations

import os
import subprocess
from base64 import b64decode, b64encode
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hitl_tui.engine.log.signing import Signature
from hitl_tui.errors import SigningFailed, UsageError
from hitl_tui.given_files import expanded, read_given

NAMESPACE: Final = "hitl-tui"
"""What the signatures are for (`-n`): one that was made for something else is none of a decision."""

_PROGRAM: Final = "ssh-keygen"
_PATIENCE: Final = 30.0
_SAID: Final = 300
_ARMOR: Final = "-----"
_MAGIC: Final = b"SSHSIG\x00\x00\x00\x01"


class SshSigner:
    """Signs with a key of OpenSSH.

    Args:
        key: the private key's file, or the public one's where ssh-agent holds the key; `~` is the home.
    """

    def __init__(self, key: str | Path) -> None:
        self._path = expanded(key)
        self.key = str(key)

    def sign(self, words: bytes) -> str:
        """The armored signature of some bytes; a key in hardware has half a minute to be touched.

        Raises:
            SigningFailed: there is no such key or no ssh-keygen, or the key wants a passphrase.
        """
        run = _run(["-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(self._path)], words)
        signature = run.stdout.decode("ascii", "replace").strip()
        if run.returncode or not signature.startswith(_ARMOR):
            raise SigningFailed(f"{self.key} signs nothing: {_why(run)}", self._hint(run))
        return signature

    def _hint(self, run: subprocess.CompletedProcess[bytes]) -> str:
        if b"passphrase" in run.stderr:
            return f"nothing was decided; add the key to ssh-agent first: ssh-add {self.key}"
        return "nothing was decided; fix signing_key in config.toml (`hitl-tui doctor` tries the key)"


class AllowedSigners:
    """The people whose keys are known: an `allowed_signers` file as ssh-keygen(1) describes it.

    A decision names a reviewer, so each line names whom its key belongs to as reviewers are named, or as
    an address that begins so: `ann` or `ann@example.com` for decisions by ann.

    Raises:
        UsageError: the file can't be read.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = expanded(file)
        try:
            read_given(self._file)
        except OSError as error:
            raise UsageError(
                f"{file} can't be read: {error.strerror}", "give a file of allowed signers"
            ) from None

    def check(self, words: bytes, signature: str, actor: str | None, at: int) -> Signature:
        """Whether a signature is that of the actor over these words, with a key that was valid then.

        Raises:
            SigningFailed: there is no ssh-keygen, or it takes too long.
        """
        key = fingerprint(signature)
        with TemporaryDirectory(prefix="hitl-tui-") as directory:
            file = Path(directory) / "signature"
            file.write_text(f"{signature}\n", encoding="utf-8", errors="replace")
            valid = [f"-Overify-time={datetime.fromtimestamp(at // 1_000_000, UTC):%Y%m%d%H%M%S}Z"]
            good = ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)]
            if _run(good, words).returncode:
                return Signature("wrong", key=key)
            known = [*valid, "-f", str(self._file), "-s", str(file)]
            whose = [name for name in ([actor] if actor else []) if not name.startswith("-")]
            listed = _run(["-Y", "find-principals", *known], b"").stdout.decode("utf-8", "replace")
            # Those that are the actor's first: a key may have several names.
            names = sorted((*whose, *listed.split()), key=lambda name: not _is(name, actor))
            for name in names:
                verify = ["-Y", "verify", "-n", NAMESPACE, "-I", name, *known]
                if _run(verify, words).returncode == 0:
                    return Signature("good" if _is(name, actor) else "other", name, key)
        return Signature("unknown", key=key)


def fingerprint(signature: str) -> str:
    """The SHA-256 of the key that a signature says it was made with; "" where it is no signature."""
    body = "".join(line for line in signature.splitlines() if not line.startswith(_ARMOR))
    with suppress(ValueError):
        blob = b64decode(body, validate=True).removeprefix(_MAGIC)
        size = int.from_bytes(blob[:4], "big")
        if 0 < size <= len(blob) - 4:
            return f"SHA256:{b64encode(sha256(blob[4 : 4 + size]).digest()).decode().rstrip('=')}"
    return ""


def _is(name: str, actor: str | None) -> bool:
    return bool(actor) and actor in (name, name.partition("@")[0])


def _run(arguments: list[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    # In a session of its own there is no terminal on which it could ask for a passphrase.
    environment = {**os.environ, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
    try:
        return subprocess.run(
            [_PROGRAM, *arguments],
            input=given,
            capture_output=True,
            timeout=_PATIENCE,
            start_new_session=True,
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        raise SigningFailed(
            f"there is no {_PROGRAM} here", "install OpenSSH's client, 8.2 or newer"
        ) from None
    except subprocess.TimeoutExpired:
        raise SigningFailed(f"{_PROGRAM} took longer than {_PATIENCE:g} s", "try it by hand") from None
    except OSError as error:
        raise SigningFailed(f"{_PROGRAM} can't be run: {error.strerror}", "fix that first") from None


def _why(run: subprocess.CompletedProcess[bytes]) -> str:
    said = run.stderr.decode("utf-8", "replace").replace("\r", "").strip().splitlines()
    # After what it asked, and the file that is told already.
    words = said[-1].rpartition('": ')[2] if said else f"ssh-keygen ended with {run.returncode}"
    return words[:_SAID]
