"""No text from outside can hold the app up: half a megabyte of any hostile shape is read in linear time."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.parsers import PARSERS, shapes
from tests.support.places import ROOT

MOST = 15
"""Seconds of processor time for all shapes; what is quadratic takes hours.  Measured: 0.01 to 2 each."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_half_a_megabyte_of_each_hostile_shape_is_read_or_refused_at_once(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.parsers", name],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (MOST, MOST)),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(json.loads(done.stdout)) == len(list(shapes())) == 20
