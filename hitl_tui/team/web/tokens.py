"""Tokens that people log in with, and the file that keeps their hashes.

A token has 256 random bits from the operating system. It can't be guessed, so one round of SHA-256 is enough.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

import msgspec

from hitl_tui.errors import HitlError, UsageError
from hitl_tui.given_files import open_given, text_of

_LONGEST_NAME: Final = 100
LONGEST_TOKEN: Final = 200


class TokensUnusable(HitlError):
    """The file of tokens can't be read, or others may write it."""

    title = "The tokens can't be used"


def digest(token: str) -> str:
    """Return the hash that is kept of a token."""
    return sha256(token.encode(errors="replace")).hexdigest()


def check_name(name: str) -> str:
    """Return a person's name if it is one line of 1 to 100 printable characters.

    Raises:
        UsageError: it is not.
    """
    if not (1 <= len(name) <= _LONGEST_NAME and name.isprintable() and name == name.strip()):
        raise UsageError(
            f"{name!r} can't be used as a name",
            f"1 to {_LONGEST_NAME} printable characters without blanks at the ends",
        )
    return name


class KnownTokens(Protocol):
    """Tokens of the people who may log in."""

    def name_of(self, digest: str) -> str | None:
        """Return the name of the owner of a token's digest; None if it is unknown or was removed."""


class OneToken:
    """One token for the person who started the process; it ends with the process.

    Args:
        name: the person's name.
    """

    def __init__(self, name: str) -> None:
        self.token = secrets.token_urlsafe(32)
        self._name, self._digest = name, digest(self.token)

    def name_of(self, digest: str) -> str | None:
        """See `KnownTokens.name_of`."""
        return self._name if secrets.compare_digest(digest, self._digest) else None


class TokenEntry(msgspec.Struct, frozen=True):
    """A person's token, as the file has it; `added` is in microseconds since 1970."""

    name: str
    sha256: str
    added: int


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens: tuple[TokenEntry, ...] = ()


class TokenFile:
    """The tokens of a file, which is read again whenever it has changed: one taken back is at once of no use.

    Args:
        path: the file; it need not exist until it is read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names: dict[str, str] = {}
        self._read_at: tuple[int, int, int] | None = None

    def entries(self) -> tuple[TokenEntry, ...]:
        """Everybody's, by name; none where there is no file.

        Raises:
            TokensUnusable: it can't be read, or somebody else may write it.
        """
        try:
            with open_given(self.path) as file:
                status = os.fstat(file.fileno())
                if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    raise TokensUnusable(
                        f"{self.path} may be written by others",
                        f"chmod 600 {self.path}, and look what is in it",
                    )
                document = msgspec.json.decode(text_of(file.read()), type=_Document)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise TokensUnusable(f"{self.path} can't be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise TokensUnusable(f"{self.path} is not a file of tokens: it is not in UTF-8") from None
        except msgspec.MsgspecError as error:
            raise TokensUnusable(f"{self.path} is not a file of tokens: {error}") from None
        return tuple(sorted(document.tokens, key=lambda entry: entry.name))

    def name_of(self, digest: str) -> str | None:
        """See `KnownTokens.name_of`; None while the file can't be read."""
        try:
            status = self.path.stat()
            read_at = (status.st_mtime_ns, status.st_ino, status.st_size)
            if read_at != self._read_at:
                self._names = {entry.sha256: entry.name for entry in self.entries()}
                self._read_at = read_at
        except (OSError, TokensUnusable):
            self._names, self._read_at = {}, None
        return self._names.get(digest)

    def add(self, name: str) -> str:
        """Make a token for a person and return it; only its hash is kept.

        Raises:
            UsageError: the name can't be used, or that person has a token.
            TokensUnusable: the file can't be read or written.
        """
        check_name(name)
        entries = self.entries()
        if any(entry.name == name for entry in entries):
            raise UsageError(f"{name!r} has a token", "remove it first to give a new one")
        token = f"hitl_{secrets.token_urlsafe(32)}"
        self._write((*entries, TokenEntry(name, digest(token), time.time_ns() // 1000)))
        return token

    def remove(self, name: str) -> None:
        """Remove a person's token; their sessions end within seconds.

        Raises:
            UsageError: nobody of that name has a token.
            TokensUnusable: the file can't be read or written.
        """
        entries = self.entries()
        kept = tuple(entry for entry in entries if entry.name != name)
        if len(kept) == len(entries):
            from hitl_tui.suggest import did_you_mean

            raise UsageError(f"{name!r} has no token", did_you_mean(name, [entry.name for entry in entries]))
        self._write(kept)

    def _write(self, entries: tuple[TokenEntry, ...]) -> None:
        """Replace the file; only its owner may read the new one."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix=".tokens-", dir=self.path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(msgspec.json.format(msgspec.json.encode(_Document(entries))) + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).replace(self.path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise TokensUnusable(f"{self.path} can't be written: {error.strerror}") from None
