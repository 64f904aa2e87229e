"""Brings addresses of web servers into the form in which browsers send them as an origin."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return the origin of a URL: scheme and host in lower case and ASCII, with the port if it is no default.

    Raises:
        ValueError: the URL is not the address of a web server.
    """
    parts = urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.port == 0 or "@" in parts.netloc:
        raise ValueError(f"{url!r} is not the address of a web server")
    host = host_name(parts.hostname)
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}"


def host_name(host: str) -> str:
    """Return a host name in lower case and ASCII, without the dot of the root.

    Raises:
        ValueError: it is not a host name.
    """
    return host.removesuffix(".").lower().encode("idna").decode() if ":" not in host else host.lower()


def host_of(authority: str) -> str:
    """Return the host name in a `Host` header; "" if it can't be read."""
    try:
        return host_name(urlsplit(f"//{authority}").hostname or "")
    except ValueError:
        return ""
