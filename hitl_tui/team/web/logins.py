"""Keeps who is logged in, by cookie, and limits how often an address may try."""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from hashlib import sha256
from typing import Final

import msgspec

from hitl_tui.team.web.tokens import KnownTokens, digest

LASTS: Final = 12 * 3600.0
"""Seconds until a login ends."""
FAILURES: Final = 10
WITHIN: Final = 60.0
"""After `FAILURES` failed logins in `WITHIN` seconds, an address has to wait."""
_MOST_ADDRESSES: Final = 10_000
_MOST_LOGINS: Final = 10_000


class Login(msgspec.Struct, frozen=True):
    """A person who is logged in; `until` is a time of `time.monotonic()`."""

    name: str
    token: str
    until: float


class Logins:
    """Logins by the hash of their cookie. They end with the server.

    Args:
        tokens: who may log in; removing a token logs its owner out.
        clock: seconds that only grow.
    """

    def __init__(self, tokens: KnownTokens, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._clock = clock
        self._logins: OrderedDict[str, Login] = OrderedDict()

    def name_of(self, token: str) -> str | None:
        """Return the name of a token's owner; None for an unknown token."""
        return self._tokens.name_of(digest(token))

    def log_in(self, token: str) -> str | None:
        """Log in the owner of a token and return the cookie; None for an unknown token."""
        token_digest = digest(token)
        name = self._tokens.name_of(token_digest)
        if name is None:
            return None
        cookie = secrets.token_urlsafe(32)
        while len(self._logins) >= _MOST_LOGINS:
            self._logins.popitem(last=False)
        self._logins[_key(cookie)] = Login(name, token_digest, self._clock() + LASTS)
        return cookie

    def of(self, cookie: str) -> Login | None:
        """Return the login of a cookie; None if there is none, or it has ended."""
        login = self._logins.get(_key(cookie))
        if login is None or self.is_valid(login):
            return login
        del self._logins[_key(cookie)]
        return None

    def is_valid(self, login: Login) -> bool:
        """Whether a login has not expired and its token still exists."""
        return self._clock() < login.until and self._tokens.name_of(login.token) == login.name

    def log_out(self, cookie: str) -> None:
        """End a login."""
        self._logins.pop(_key(cookie), None)


def _key(cookie: str) -> str:
    return sha256(cookie.encode(errors="replace")).hexdigest()


class Attempts:
    """Failed logins by address; an IPv6 network of 64 bits counts as one address.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Return the seconds until an address may try again; 0 for now."""
        failed = self._failed.get(_network(address), deque())
        if len(failed) < FAILURES:
            return 0
        return max(failed[0] + WITHIN - self._clock(), 0)

    def failed(self, address: str) -> None:
        """Count a failed login."""
        network = _network(address)
        self._failed.setdefault(network, deque(maxlen=FAILURES)).append(self._clock())
        self._failed.move_to_end(network)
        while len(self._failed) > _MOST_ADDRESSES:
            self._failed.popitem(last=False)


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False))
