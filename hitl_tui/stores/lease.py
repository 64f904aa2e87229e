"""Leases: which process holds a thread, and whether it still lives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from hitl_tui.engine.log.threads import LEASE_TIME, Lease, Presence
from hitl_tui.errors import StoreUnusable

_LATEST: Final = LEASE_TIME + 3_600_000_000
"""Microseconds from now within which a lease must end; the clocks of two hosts may differ by an hour."""
_given_back: set[str] = set()


def new_lease(now: int, lasting: int = LEASE_TIME) -> Lease:
    """Make a lease of this process.

    Args:
        now: microseconds since the epoch.
        lasting: microseconds until it ends for other hosts, unless it is renewed.
    """
    us = _identity()
    pid = os.getpid()
    return Lease(
        token=os.urandom(16).hex(),
        user=us.user,
        host=us.host,
        pid=pid,
        process_started=_own_start(pid),
        expires_at=now + lasting,
        boot=us.boot,
        namespace=us.namespace,
    )


def is_dead(lease: Lease, now: int) -> bool:
    """Whether a holder can no longer write.

    If its process can be checked from here, that decides, so neither a slow holder nor a clock that jumps
    loses its thread. For another host, boot or container only the lease's end is known. One that ends too
    late is ignored, so that a forged lease holds a thread for an hour at most.
    """
    ended = _process_ended(lease)
    return lease.expires_at <= now or ends_too_late(lease, now) if ended is None else ended


def ends_too_late(lease: Lease, now: int) -> bool:
    """Whether a lease ends later than any real one: it was forged, or a clock is wrong."""
    return lease.expires_at > now + _LATEST


def _process_ended(lease: Lease) -> bool | None:
    """Return whether a holder's process has ended, None if that can't be checked from here."""
    alive = _pid_exists(lease.pid) if _is_same_pid_space(lease) else None
    if not alive:
        return None if alive is None else True
    started = process_started(lease.pid)
    return started == 0 or bool(started and lease.process_started and started != lease.process_started)


def _is_same_pid_space(lease: Lease) -> bool:
    """Whether the holder's process id means the same here."""
    us = _identity()
    if us.boot:
        return (lease.boot, lease.namespace) == (us.boot, us.namespace)
    # This is all that is known on a system without boot ids.
    return not lease.boot and lease.host == us.host


def process_of(lease: Lease) -> tuple[str, str, int]:
    """Return what identifies a holder's process."""
    return lease.boot or lease.host, lease.namespace, lease.pid


@contextmanager
def releasing(token: str) -> Iterator[None]:
    """Context that removes a lease from a store.

    If the store can't be written (it is full), the lease counts as released in this process.
    """
    try:
        yield
    except StoreUnusable:
        _given_back.add(token)
        raise


def is_released(lease: Lease) -> bool:
    """Whether this process has released a lease that its store could not remove."""
    return lease.token in _given_back


def describe(lease: Lease) -> str:
    """Describe a holder: "ann on host box, process 4711"."""
    return f"{lease.user} on host {lease.host}, process {lease.pid}"


def is_present(presence: Presence, now: int) -> bool:
    """Whether a person still has a request open: their time is not over, and their process lives."""
    if presence.until <= now or is_released(presence.lease):
        return False
    return presence.lasts or not _process_ended(presence.lease)


def process_started(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; with the pid it identifies a process.

    It is 0 for a process that has ended and waits to be reaped, None if the system does not say (no /proc, or
    another user's process with hidepid).
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The command in the second field may contain spaces and brackets, so count fields from its end.
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


@lru_cache(maxsize=1)
def _own_start(pid: int) -> int:
    return process_started(pid) or 0


def _pid_exists(pid: int) -> bool | None:
    # Outside POSIX, signal 0 is not a check but a signal.
    if os.name != "posix":
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


class _Identity(msgspec.Struct, frozen=True):
    user: str
    host: str
    boot: str
    namespace: str


@lru_cache(maxsize=1)
def _identity() -> _Identity:
    try:
        import getpass

        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except (OSError, ValueError):
        boot = namespace = ""
    import socket

    return _Identity(user, socket.gethostname(), boot, namespace)


def holder(lease: Lease | None, now: int) -> str | None:
    """Describe who holds a thread; None for nobody."""
    free = lease is None or is_released(lease) or is_dead(lease, now)
    return None if free or lease is None else describe(lease)
