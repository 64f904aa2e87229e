"""A little random input on some screens; `python -m tests.support.fuzzing` sends as much as is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fuzzing import fuzz


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "screens"), [(1, ("card", "batch")), (2, ("threads", "edit"))])
async def test_random_input_ends_nothing_and_decides_nothing_that_the_card_does_not_allow(
    seed: int, screens: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDITOR", "true")
    fuzzer = await fuzz(tmp_path, seed=seed, inputs=60, screens=screens, threads=18)
    assert fuzzer.found == []
    assert fuzzer.sent >= 120  # some inputs are several keys
