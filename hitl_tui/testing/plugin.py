"""Pytest plugin with fixtures for tests of graphs (entry point `pytest11`).

It imports the rest of hitl-tui only when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hitl_tui.agents.cassettes import Cassette, ScriptedCassette
    from hitl_tui.stores import MemoryCheckpointer


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that records cassettes again."""
    parser.getgroup("hitl-tui").addoption(
        "--hitl-record", action="store_true", help="Let models be asked, and keep what they say in cassettes."
    )


@pytest.fixture
def hitl_store() -> Iterator[MemoryCheckpointer]:
    """A store in memory, which is closed after the test."""
    from hitl_tui.stores import MemoryCheckpointer

    store = MemoryCheckpointer()
    yield store
    store.close()


@pytest.fixture
def hitl_script() -> Iterator[Callable[..., ScriptedCassette]]:
    """A function that lets all agents answer from a script until the test ends.

    Its arguments are those of `hitl_tui.testing.script`: `hitl_script({"writer": ["A draft."]})`.  Answers
    and results that nobody asked for fail the test.
    """
    from contextlib import ExitStack

    from hitl_tui.agents.cassettes import using
    from hitl_tui.testing import script

    used: list[ScriptedCassette] = []
    with ExitStack() as stack:

        def use(*given: Any, **named: Any) -> ScriptedCassette:
            tape = script(*given, **named)
            stack.enter_context(using(tape))
            used.append(tape)
            return tape

        yield use
    left = {name: count for tape in used for name, count in tape.left.items()}
    if left:
        pytest.fail(f"nobody asked for what the script still has: {left}")


@pytest.fixture
def hitl_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """Model calls from `cassettes/TEST.jsonl` beside the test; `--hitl-record` records them anew."""
    import re

    from hitl_tui.agents.cassettes import cassette

    name = re.sub(r"[^\w.-]+", "_", request.node.name)
    path = Path(request.node.path).parent / "cassettes" / f"{name}.jsonl"
    record = bool(request.config.getoption("--hitl-record"))
    if record:
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
    with cassette(path, record=record) as tape:
        yield tape
