"""Runs tests in a random order: `python -m pytest -p tests.support.shuffle --shuffle 7`.

The same seed gives the same order, in each worker of pytest-xdist too.
"""

from __future__ import annotations

import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the seed."""
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="Run the tests in the random order of this seed."
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle what is left once tests have been selected."""
    seed = config.getoption("--shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)
