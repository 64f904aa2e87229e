"""Addresses of servers, in the one form in which browsers send them as an origin."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """The origin of an address: scheme and host in small letters and ASCII, the port where it is no default.

    Raises:
        ValueError: it is no address of a server.
    """
    parts = urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.port == 0 or "@" in parts.netloc:
        raise ValueError(f"{url!r} is no address of a server")
    host = host_name(parts.hostname)
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}"


def host_name(host: str) -> str:
    """The name of a host in small letters and ASCII, without the dot of the root.

    Raises:
        ValueError: it is no name of a host.
    """
    return host.removesuffix(".").lower().encode("idna").decode() if ":" not in host else host.lower()


def host_of(authority: str) -> str:
    """The name in a `Host` header, "" where it can't be read."""
    try:
        return host_name(urlsplit(f"//{authority}").hostname or "")
    except ValueError:
        return ""
