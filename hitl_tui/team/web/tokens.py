"""KnownTokens that people log in with, and the file that holds their hashes.

A token has 256 bits from the system's source of randomness, so that one round of SHA-256 keeps it: there is
nothing to guess, and nothing to slow down.
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
    """The file of tokens can't be read, or others could have written it."""

    title = "The tokens can't be used"


def digest(token: str) -> str:
    """What is kept of a token."""
    return sha256(token.encode(errors="replace")).hexdigest()


def check_name(name: str) -> str:
    """The name, if it can be a person's: one line of 1 to 100 printable characters.

    Raises:
        UsageError: it can't.
    """
    if not (1 <= len(name) <= _LONGEST_NAME and name.isprintable() and name == name.strip()):
        raise UsageError(
            f"{name!r} is no name", f"1 to {_LONGEST_NAME} printable characters without blanks at the ends"
        )
    return name


class KnownTokens(Protocol):
    """Who may log in."""

    def name_of(self, digest: str) -> str | None:
        """Whose token it is, None for nobody's, or one that was taken back."""


class OneToken:
    """A token that is made for as long as a process lives, for whoever started it.

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
            raise TokensUnusable(f"{self.path} is no file of tokens: it is not in UTF-8") from None
        except msgspec.MsgspecError as error:
            raise TokensUnusable(f"{self.path} is no file of tokens: {error}") from None
        return tuple(sorted(document.tokens, key=lambda entry: entry.name))

    def name_of(self, digest: str) -> str | None:
        """See `KnownTokens.name_of`; nobody's while the file can't be used."""
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
        """Make a token for somebody, which is told this once.

        Raises:
            UsageError: it is no name, or that person has one.
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
        """Take somebody's token back; what they have open ends within seconds.

        Raises:
            UsageError: there is none of that name.
            TokensUnusable: the file can't be read or written.
        """
        entries = self.entries()
        kept = tuple(entry for entry in entries if entry.name != name)
        if len(kept) == len(entries):
            from hitl_tui.suggest import did_you_mean

            raise UsageError(f"{name!r} has no token", did_you_mean(name, [entry.name for entry in entries]))
        self._write(kept)

    def _write(self, entries: tuple[TokenEntry, ...]) -> None:
        """Put a new file in the place of the old one, for its owner alone."""
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
