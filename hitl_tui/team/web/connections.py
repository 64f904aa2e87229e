"""Limits the number of connections and the time that each may take for a request; aiohttp waits for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container
from typing import Any, Final, cast

MOST: Final = 500
MOST_PER_ADDRESS: Final = 100
"""Most connections in all, and from one address that is not a trusted proxy."""
PATIENCE: Final = 10.0
"""Seconds that a connection may take to send a request, or be idle between two."""


class Connections:
    """Open connections; one that sends no request in time is closed.

    Args:
        make: makes the protocol of a connection.
        unlimited: addresses that many people come from.
        patience: seconds, see `PATIENCE`.
    """

    def __init__(
        self, make: Callable[[], asyncio.BaseProtocol], unlimited: Container[str], patience: float
    ) -> None:
        self._make = make
        self._unlimited = unlimited
        self._patience = patience
        self._timers: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}
        self._addresses: Counter[str] = Counter()

    def __call__(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return cast("asyncio.Protocol", _Bounded(self._make(), self))

    def opened(self, transport: asyncio.Transport) -> bool:
        """Count a new connection; return False if there are too many."""
        address = address_of(transport)
        crowded = address not in self._unlimited and self._addresses[address] >= MOST_PER_ADDRESS
        if len(self._timers) >= MOST or crowded:
            return False
        self._addresses[address] += 1
        self._timers[transport] = self._timer(transport)
        return True

    def closed(self, transport: asyncio.BaseTransport) -> None:
        """Forget a connection that was closed."""
        if (timer := self._timers.pop(transport, None)) is not None:
            timer.cancel()
            address = address_of(transport)
            self._addresses[address] -= 1
            if not self._addresses[address]:
                del self._addresses[address]

    def request_received(self, transport: asyncio.BaseTransport | None) -> None:
        """Stop the timer of a connection that has sent its request; the response may take any time."""
        if transport is not None and (timer := self._timers.get(transport)) is not None:
            timer.cancel()

    def response_sent(self, transport: asyncio.BaseTransport | None) -> None:
        """Start the timer for the next request of a connection."""
        if transport is not None and transport in self._timers:
            self._timers[transport].cancel()
            self._timers[transport] = self._timer(transport)

    def _timer(self, transport: asyncio.BaseTransport) -> asyncio.TimerHandle:
        abort = cast("asyncio.Transport", transport).abort
        return asyncio.get_running_loop().call_later(self._patience, abort)


def address_of(transport: asyncio.BaseTransport | None) -> str:
    """Return the address at the other end; "" for a closed connection."""
    peer = transport.get_extra_info("peername") if transport is not None else None
    return str(peer[0]) if peer else ""


class _Bounded:
    """A protocol that aborts connections beyond the limit."""

    def __init__(self, protocol: Any, connections: Connections) -> None:
        self._protocol = protocol
        self._connections = connections
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        if self._connections.opened(transport):
            self._transport = transport
            self._protocol.connection_made(transport)
        else:
            transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._connections.closed(self._transport)
            self._protocol.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None:
            self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return bool(self._protocol.eof_received()) if self._transport is not None else None

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()
