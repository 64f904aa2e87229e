"""Expensive fixtures, made once per test run by whichever process needs them first."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(places: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a directory that all processes of this run share; one fills it while the others wait.

    Args:
        make: fills the directory, which exists and is empty.
    """
    base = places.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    whole = folder.with_suffix(".whole")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            whole.touch()
    return folder
