"""Who is logged in: cookies that name a login kept here, and how often somebody may try."""

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
"""Seconds after which everybody logs in again."""
FAILURES: Final = 10
WITHIN: Final = 60.0
"""So many failed logins in so many seconds, and an address has to wait."""
_MOST_ADDRESSES: Final = 10_000
_MOST_LOGINS: Final = 10_000


class Login(msgspec.Struct, frozen=True):
    """Somebody who is logged in, until a moment of `time.monotonic()`."""

    name: str
    token: str
    until: float


class Logins:
    """Logins by the hash of their cookie; they live as long as the server.

    Args:
        tokens: who may log in; whose token was taken back is logged out.
        clock: seconds that only grow.
    """

    def __init__(self, tokens: KnownTokens, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._clock = clock
        self._logins: OrderedDict[str, Login] = OrderedDict()

    def name_of(self, token: str) -> str | None:
        """Whose token it is, None for nobody's."""
        return self._tokens.name_of(digest(token))

    def log_in(self, token: str) -> str | None:
        """A cookie for whoever has this token, None for nobody."""
        kept = digest(token)
        name = self._tokens.name_of(kept)
        if name is None:
            return None
        cookie = secrets.token_urlsafe(32)
        while len(self._logins) >= _MOST_LOGINS:
            self._logins.popitem(last=False)
        self._logins[_key(cookie)] = Login(name, kept, self._clock() + LASTS)
        return cookie

    def of(self, cookie: str) -> Login | None:
        """The login of a cookie, None where it has ended or never was."""
        login = self._logins.get(_key(cookie))
        if login is None or self.holds(login):
            return login
        del self._logins[_key(cookie)]
        return None

    def holds(self, login: Login) -> bool:
        """Whether a login has neither run out nor lost its token."""
        return self._clock() < login.until and self._tokens.name_of(login.token) == login.name

    def log_out(self, cookie: str) -> None:
        """End a login."""
        self._logins.pop(_key(cookie), None)


def _key(cookie: str) -> str:
    return sha256(cookie.encode(errors="replace")).hexdigest()


class Attempts:
    """Failed logins by the address they came from; an IPv6 network of 64 bits counts as one.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds until this address may try again; 0 at once."""
        failed = self._failed.get(_network(address), deque())
        if len(failed) < FAILURES:
            return 0
        return max(failed[0] + WITHIN - self._clock(), 0)

    def failed(self, address: str) -> None:
        """Note a failure."""
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
