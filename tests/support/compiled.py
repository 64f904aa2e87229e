"""Compiles all modules once before the processes that run tests start.

In a fresh clone each of them would otherwise compile every module, all at the same moment: 25 seconds of work
for each process.
"""

from __future__ import annotations

import compileall
import multiprocessing
import os
from pathlib import Path

import pytest
from _pytest.assertion import assertstate_key
from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc, _rewrite_test, _write_pyc, get_cache_dir

from tests.support.places import ROOT


def compile_all(config: pytest.Config) -> None:
    """Compile the package, and the tests with pytest's own assertions; what is up to date is left alone.

    Of the tests only those are compiled that pytest was asked to run.
    """
    asked = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    tests = [path for path in (ROOT / "tests").rglob("*.py") if _is_rewritten(path)]
    stale = [
        path
        for path in tests
        if any(path.is_relative_to(one) for one in asked) and _read_pyc(path, _place(path)) is None
    ]
    processes = os.cpu_count() or 1
    shares = [stale[number::processes] for number in range(processes)]
    children = [
        multiprocessing.get_context("fork").Process(target=_rewrite, args=(config, s)) for s in shares if s
    ]
    for child in children:
        child.start()
    for folder in ("hitl_tui", "tests/support"):
        compileall.compile_dir(ROOT / folder, quiet=2)
    for child in children:
        child.join()


def _is_rewritten(path: Path) -> bool:
    return path.name.startswith("test_") or path.name == "conftest.py"


def _place(path: Path) -> Path:
    return get_cache_dir(path) / (path.stem + PYC_TAIL)


def _rewrite(config: pytest.Config, paths: list[Path]) -> None:
    for path in paths:
        place = _place(path)
        place.parent.mkdir(exist_ok=True)
        stat, code = _rewrite_test(path, config)
        _write_pyc(config.stash[assertstate_key], code, stat, place)
