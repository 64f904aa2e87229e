"""What machines that do things to threads in any order share: a store, crashes, failures, and the checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hitl_tui import GraphRunner, open_store
from hitl_tui.stores import Checkpointer
from tests.support.flows import check_log


class AnyOrder(RuleBasedStateMachine):
    """Threads in a store; whatever was done to them, every log stays whole.

    Args:
        broken: nodes fail while it is set.
        threads: those that rules choose from.
    """

    folder: Path
    names: Iterator[int]

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.store: Checkpointer
        self.place: Path | None = None
        self.runner: GraphRunner
        self.threads = ["t"]

    def open_new(self, memory: bool) -> None:
        """A store of this example's own."""
        self.place = None if memory else self.folder / f"{next(self.names)}.db"
        self.store = open_store("memory:" if memory else str(self.place))

    def reopened(self) -> GraphRunner:
        """The graph on the store as another process would have it."""
        return self.runner.with_store(self.store)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            for thread in self.store.list_threads():
                assert self.runner.verify(thread, strict=True).mismatches == ()
                assert self.runner.replay(thread).mismatches == ()
            self.store.close()

    @rule()
    def crash(self) -> None:
        """Nothing but the file is left."""
        if self.place is not None:
            self.store.close()
            self.store = open_store(str(self.place))
            self.runner = self.reopened()

    @rule()
    def break_or_fix(self) -> None:
        self.broken = not self.broken

    @invariant()
    def the_log_is_the_truth(self) -> None:
        for thread in self.threads if hasattr(self, "store") else ():
            check_log(self.runner, thread)


def run_in_any_order(kind: type[AnyOrder], folder: Path, *, examples: int, steps: int) -> None:
    """Try a machine, the same way each time."""
    machine = type("Machine", (kind,), {"folder": folder, "names": iter(range(10_000))})
    case = machine.TestCase  # type: ignore[attr-defined]
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    case("runTest").runTest()
