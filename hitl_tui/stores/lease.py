"""Who holds a thread, and whether that process still lives."""

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
"""Microseconds from now until which a lease may end: the clocks of two hosts may differ by an hour."""
_given_back: set[str] = set()


def new_lease(now: int, lasting: int = LEASE_TIME) -> Lease:
    """A lease of this process.

    Args:
        now: microseconds since the epoch.
        lasting: microseconds until it ends for other hosts, unless renewed.
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
    """Whether a holder can't write any more.

    Where its process is among ours, that is asked, so neither a slow holder nor a clock that jumps loses
    its thread.  Of another host, another boot or another container only the lease's end is known; one that
    ends later than any can is not believed, so that a forged one holds a thread for an hour at most.
    """
    ended = _process_ended(lease)
    return lease.expires_at <= now or is_beyond_belief(lease, now) if ended is None else ended


def is_beyond_belief(lease: Lease, now: int) -> bool:
    """Whether a lease ends later than any that is given: it was forged, or a clock is wrong."""
    return lease.expires_at > now + _LATEST


def _process_ended(lease: Lease) -> bool | None:
    """Whether a holder's process has ended, None where that can't be asked here."""
    alive = _pid_exists(lease.pid) if _is_near(lease) else None
    if not alive:
        return None if alive is None else True
    started = process_started(lease.pid)
    return started == 0 or bool(started and lease.process_started and started != lease.process_started)


def _is_near(lease: Lease) -> bool:
    """Whether the holder's process id means the same here."""
    us = _identity()
    if us.boot:
        return (lease.boot, lease.namespace) == (us.boot, us.namespace)
    # All there is to go by where the system tells no boot.
    return not lease.boot and lease.host == us.host


def process_of(lease: Lease) -> tuple[str, str, int]:
    """What a holder's process is told from others by."""
    return lease.boot or lease.host, lease.namespace, lease.pid


@contextmanager
def giving_back(token: str) -> Iterator[None]:
    """A block that takes a lease out of a store: where the store can't be written (it is full), the
    lease counts as given back in this process."""
    try:
        yield
    except StoreUnusable:
        _given_back.add(token)
        raise


def is_given_back(lease: Lease) -> bool:
    """Whether this process has given a lease back that its store could not take out."""
    return lease.token in _given_back


def describe(lease: Lease) -> str:
    """A holder in words: "ann on host box, process 4711"."""
    return f"{lease.user} on host {lease.host}, process {lease.pid}"


def is_there(presence: Presence, now: int) -> bool:
    """Whether somebody is still at a question: their time is not over, and their process lives."""
    if presence.until <= now or is_given_back(presence.lease):
        return False
    return presence.lasts or not _process_ended(presence.lease)


def process_started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot: with the pid it names one process.

    Returns 0 for a process that has ended and waits to be reaped, None where the system does not
    tell (no /proc, or another user's process behind hidepid).
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The command in the second field may hold spaces and brackets; fields count from its end.
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


@lru_cache(maxsize=1)
def _own_start(pid: int) -> int:
    return process_started(pid) or 0


def _pid_exists(pid: int) -> bool | None:
    # Elsewhere than on POSIX signal 0 is not a question but a signal.
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
    """Who holds a thread, in words; None for nobody."""
    free = lease is None or is_given_back(lease) or is_dead(lease, now)
    return None if free or lease is None else describe(lease)
