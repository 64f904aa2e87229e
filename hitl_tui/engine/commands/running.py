"""The commands that run a thread, or stop it; whoever drives the thread carries them out (SPEC 5, 13)."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from hitl_tui.engine.commands.command import Command
from hitl_tui.engine.thread.breakpoints import Breakpoint


class Step(Command[None], frozen=True):
    """Run one node; accepted at once, events tell the rest.

    Args:
        into: of a subgraph's node: begin its thread, and pause that before its first node.
        breakpoints: those inside the node; and after it.

    Raises:
        BreakpointInvalid: as for `Run`.
    """

    into: bool = False
    breakpoints: tuple[Breakpoint, ...] = ()


class Run(Command[None], frozen=True):
    """Run until something waits, fails or ends, or a breakpoint stops it; accepted at once.

    Args:
        breakpoints: of this run; how often each was hit is counted as long as the thread is open here.

    Raises:
        BreakpointInvalid: no such place, or an expression that can't be read.
    """

    breakpoints: tuple[Breakpoint, ...] = ()


class Pause(Command[None], frozen=True):
    """Stop at the next node boundary, of what runs inside as well.

    Args:
        actor, note: who asks and why; written down where another process runs the thread.
    """

    takes_graph: ClassVar[bool] = False
    actor: str | None = None
    note: str | None = None


class CancelAttempt(Command[None], frozen=True):
    """Give up the node in flight, a model call included; the thread waits before that node."""

    takes_graph: ClassVar[bool] = False


DoubleTexting: TypeAlias = Literal["enqueue", "interrupt", "rollback"]


class DoubleText(Command[None], frozen=True):
    """Make room on a thread that a server runs for somebody else; nothing is run by it.

    Args:
        strategy: "enqueue" waits until that run has ended, "interrupt" stops it and keeps what it has saved,
            "rollback" stops it and takes back what it has saved.
        actor, note: who wants that and why, for the ledger; waiting is not written down.
    """

    takes_graph: ClassVar[bool] = False
    strategy: DoubleTexting
    actor: str | None = None
    note: str | None = None


class Rollback(Command[None], frozen=True):
    """Undo what the thread's nodes did outside (SPEC 13); accepted at once, events tell the rest.

    Raises:
        ThreadBusy: the thread is running.
    """

    actor: str | None = None
    note: str | None = None


class PrepareGraph(Command[None], frozen=True):
    """Build the thread's graph, as whatever runs or changes it does first; looking takes none.

    Raises:
        GraphInvalid, UsageError: it can't be built.
    """


class Rerun(Command[str], frozen=True):
    """Fork where the thread stands under the code as it is now (see `audit.rerun`); gives the fork's id.

    The fork is on that code, and waits to be run; this thread stays as it is.

    Raises:
        UsageError: nothing would run again; or the name is taken.
        GraphInvalid: the graph can't be built.
    """

    takes_graph: ClassVar[bool] = False
    new_thread_id: str
    actor: str | None = None
    note: str | None = None


class ReloadGraph(Command[tuple[str, ...]], frozen=True):
    """Go on with the graph as its file is now; gives what is different, in words.

    Raises:
        ThreadBusy: the thread is running, here or elsewhere.
        GraphInvalid: the file can't be built, or the thread can't go on with it as it stands.
    """

    takes_graph: ClassVar[bool] = False
    actor: str | None = None


class WriteTest(Command[str], frozen=True):
    """A pytest of a recorded step, as text; nothing is run, and nothing private is in it.

    Args:
        step: None for the newest one, or for the node that failed behind it.

    Raises:
        UsageError: no test can be made of it; says why.
    """

    step: int | None = None
