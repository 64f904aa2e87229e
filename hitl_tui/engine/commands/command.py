"""Commands: what somebody may want of a thread, as data.

They stand apart from what carries them out, so that who only makes them, as a screen does, loads
none of that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from hitl_tui.declared import Declaration
from hitl_tui.engine.graph.limits import extended
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.log.threads import check_thread_id
from hitl_tui.engine.thread.agent_settings import Settings
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.errors import UsageError, in_words

R = TypeVar("R")


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Command(
    Declaration, Generic[R], frozen=True, tag_field="command", tag=_snake_case, forbid_unknown_fields=True
):
    """What somebody wants of a thread; `R` is what carrying it out gives back.

    Attributes:
        takes_graph: it can't be carried out on a thread whose graph can't be built.
    """

    takes_graph: ClassVar[bool] = True
    refusal = UsageError

    def label_in_errors(self) -> str:
        """The command by its verb."""
        return verb(type(self))

    def check(self) -> None:
        """Refuse a name of nobody: one that is left out is not given as empty text."""
        for field in ("actor", "to"):
            given = getattr(self, field, "somebody")
            if _is_name(given):
                continue
            if field in self.__struct_fields__[: -len(self.__struct_defaults__) or None]:
                what = "nobody is named" if field == "actor" else f"{field} is empty"
                raise UsageError(f"{verb(type(self))}: {what}", f"give a name as `{field}`")
            if given is not None:
                raise UsageError(f"{verb(type(self))}: {field} is empty", "give a name, or leave it out")
        if hasattr(self, "new_thread_id"):
            check_thread_id(self.new_thread_id)


def _is_name(given: Any) -> bool:
    """Whether somebody is named; a value that is no text is left to the check of its type."""
    return given is not None and (not isinstance(given, str) or bool(given.strip()))


def verb(command: type[Command[Any]]) -> str:
    """What a kind of command is called in JSON, in snapshots and in words, as "update_state"."""
    return str(command.__struct_config__.tag)


class Start(Command[int], frozen=True):
    """Commit the input of a run as a step, through the reducers, without running anything; gives the step.

    A new thread begins at its entry node; so does one that is completed or cancelled, and any with
    `from_entry`: a new invocation on the state as it is.

    Args:
        context: what the invocation is begun with besides, for its nodes, routes and tools; one that goes on
            keeps its own, and takes no other.
    """

    inputs: Mapping[str, Any] = {}
    actor: str | None = None
    from_entry: bool = False
    context: Mapping[str, Any] | None = None

    def check(self) -> None:
        """Refuse an input that is no dict."""
        super().check()
        if not isinstance(self.inputs, Mapping):
            raise UsageError(f"the input is {in_words(self.inputs)}", 'give a dict, as {"task": "…"}')


class UpdateState(Command[int], frozen=True):
    """Set channel values as one new step, without reducers; gives the step.

    Pending requests are kept and bound to the new step. With `as_node` the cursor becomes that
    node's successor, and requests are withdrawn, since the thread has left their place.

    Args:
        expected_step: the head that the edit was made on; another one refuses it.  A preview shows the edit
            at this step, the head or a past one.
        as_node: go on as if this node had just run.
        seen: the hash of the state that was before the person who edits.

    Raises:
        StaleWriter: the head is not `expected_step`; nothing was stored.
        ThreadBusy: the thread is running.
    """

    values: Mapping[str, Any]
    expected_step: int | None = None
    as_node: str | None = None
    actor: str | None = None
    note: str | None = None
    seen: bytes = b""


class ExtendLimits(Command[None], frozen=True):
    """Raise limits, so that a thread stopped by one may go on; logged.

    Args:
        limits: names as in `Limits`; None takes a limit away.
        seen: the hash of the state that was before the person who decides.

    Raises:
        UsageError: no such limit, or a value that is none.
    """

    limits: Mapping[str, int | float | str | None]
    actor: str | None = None
    note: str | None = None
    seen: bytes = b""

    def check(self) -> None:
        """Refuse limits that there are not, and values that are none."""
        super().check()
        if not isinstance(self.limits, Mapping):
            raise UsageError(f"limits is {in_words(self.limits)}", 'give a dict, as {"max_tokens": 5000}')
        extended(Limits(), self.limits)


class Cancel(Command[None], frozen=True):
    """End a thread as cancelled(user), giving up the node in flight.

    A new invocation or a fork may go on from it.

    Args:
        seen: the hash of the state that was before the person who decides.

    Raises:
        UsageError: it is completed or cancelled already.
    """

    takes_graph: ClassVar[bool] = False
    actor: str | None = None
    note: str | None = None
    seen: bytes = b""


class Answer(Command[int], frozen=True):
    """Answer a pending request that is bound to `step`; gives the head after it.

    Deadlines that have passed come first: a late answer finds the thread gone on without it.

    Args:
        seen: the hash of the state that was before the person who answers; another one refuses.
        comments: on passages of what is decided about, in the order of the text; the ledger keeps them, and
            they become a part of the answer's words.
        policy: which rule of which policy has answered in the name of who decides, by names and hashes, for
            the ledger; empty for a decision of their own.

    Raises:
        AnswerRefused: late, unknown, duplicate, stale or unauthorised; recorded as such, nothing else was
            stored.
        SigningFailed: nothing was stored.
    """

    request_id: str
    value: Any
    step: int
    actor: str | None = None
    note: str | None = None
    seen: bytes = b""
    comments: tuple[Comment, ...] = ()
    policy: Mapping[str, str] = {}


class LookAt(Command[None], frozen=True):
    """Tell others that somebody has the card of a request open, until another one or "" is looked at.

    The driver tells it again and again while its process lives; nothing is decided, and nothing is logged.
    """

    takes_graph: ClassVar[bool] = False
    request_id: str
    actor: str


class Claim(Command[int], frozen=True):
    """Take a pending request for a while: nobody else's answer to it counts; gives when that ends (us).

    It is of the request as it asks now, so the same question about another step is free.  Claimed again by
    the same person, it lasts anew.

    Args:
        minutes: how long.
        lasts: it lasts its time whatever becomes of the process; else it ends with that.
        take_over: whose claim it takes over, which the ledger keeps; "" for nobody's.

    Raises:
        AnswerRefused: no such request, somebody else has claimed it, or who claims may not answer it.
    """

    takes_graph: ClassVar[bool] = False
    request_id: str
    actor: str
    minutes: float = 15
    lasts: bool = False
    take_over: str = ""
    note: str | None = None


class Unclaim(Command[bool], frozen=True):
    """Give a claim back; gives whether there was one.

    Args:
        left: its card was left without a decision: a claim that lasts its time stays.

    Raises:
        AnswerRefused: it is somebody else's.
    """

    takes_graph: ClassVar[bool] = False
    request_id: str
    actor: str
    left: bool = False


class HandOver(Command[None], frozen=True):
    """Pass a pending request on to somebody by name: it is theirs to decide, though others may, too.

    One's own claim of it is given back.

    Args:
        step: the step that it is about; another one refuses.
        to: who is to decide.
        note: why, for them.

    Raises:
        AnswerRefused: no such request, it has moved, somebody else has claimed it, or it is not for them to
            answer.
        SigningFailed: nothing was stored.
    """

    takes_graph: ClassVar[bool] = False
    request_id: str
    step: int
    to: str
    actor: str
    note: str | None = None
    seen: bytes = b""

    def check(self) -> None:
        """Refuse to pass it on to nobody."""
        if not _is_name(self.to) or not _is_name(self.actor):
            raise UsageError("handing over takes two names", "say who passes it on, and to whom")


class Allow(Command[str], frozen=True):
    """Allow calls of a tool with arguments like these in a thread, until it is revoked; gives its id.

    What waits already is answered by it once the thread goes on.

    Args:
        args, exact: as for `Allowance`.
        high_risk: also what is of high risk.
        tainted: also where something from outside was read by who asks.
        seen: the hash of the state that was before the person who decides.

    Raises:
        UsageError: no tool, or nobody is named.
        SigningFailed: nothing was stored.
    """

    takes_graph: ClassVar[bool] = False
    tool: str
    actor: str
    args: Mapping[str, Any] = {}
    exact: bool = False
    high_risk: bool = False
    tainted: bool = False
    note: str | None = None
    seen: bytes = b""


class Revoke(Command[None], frozen=True):
    """Take an allowance back: its calls are asked about again.

    Raises:
        UsageError: there is none of this id.
    """

    takes_graph: ClassVar[bool] = False
    allowance: str
    actor: str
    note: str | None = None


class Fork(Command[str], frozen=True):
    """Make a new thread from a committed step; gives its id.  The parent is untouched, and may run.

    Args:
        changes: channel values to set as the fork's first step; the route follows from them.
        agents: settings of agents, beside those that were in force at `step`.
        as_node: go on as if this node had just run.

    Raises:
        UnknownThread: no such step.
        UsageError: the name is taken, or a setting that an agent does not take.
    """

    step: int
    new_thread_id: str
    changes: Mapping[str, Any] | None = None
    agents: Settings | None = None
    actor: str | None = None
    note: str | None = None
    as_node: str | None = None


class Declassify(Command[int], frozen=True):
    """Clear a channel's taint as one new step that changes no value; gives the step.

    Channels that were written from it before stay tainted: each is cleared by itself.  Questions of a
    node's `on_taint` that nothing is left of are withdrawn; others are bound to the new step.

    Args:
        reason: why it may be trusted now; it is kept in the ledger.
        expected_step: the head it was looked at; another one refuses.
        seen: the hash of the state that was before the person who decides.

    Raises:
        UndeclaredChannel: the graph has no such channel.
        UsageError: it is not tainted, or nobody says who and why.
        StaleWriter: the head is not `expected_step`; nothing was stored.
        ThreadBusy: the thread is running.
    """

    channel: str
    actor: str
    reason: str
    expected_step: int | None = None
    seen: bytes = b""

    def check(self) -> None:
        """Refuse a channel cleared by nobody, or for no reason."""
        super().check()
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise UsageError("declassifying needs a reason", "say why this may be trusted now")


class Reveal(Command[Any], frozen=True):
    """Give a channel's value as of a step (None: the newest), private or not; the ledger keeps who saw it.

    Raises:
        UndeclaredChannel, UnknownThread: no such channel or step.
        UsageError: nobody says who looks.
        ThreadBusy: the thread is running, so nothing can be written down.
    """

    takes_graph: ClassVar[bool] = False
    channel: str
    actor: str
    step: int | None = None
    note: str | None = None


class NoteExport(Command[None], frozen=True):
    """Note in the ledger who takes the values of private channels out of the store, and where to.

    Raises:
        UsageError: nobody is named.
        ThreadBusy: another process runs the thread.
    """

    takes_graph: ClassVar[bool] = False
    channels: tuple[str, ...]
    actor: str
    to: str


class ConfigureAgents(Command[None], frozen=True):
    """Change `model`, `instructions`, `temperature` or `api_base` of agents from the next step on.

    Logged, and kept with the thread.

    Args:
        agents: settings by agent; None takes one back to the graph's.

    Raises:
        UsageError: no such agent or setting, or a thread that was not started yet.
        ThreadBusy: the thread is running.
    """

    agents: Settings
    actor: str | None = None
    note: str | None = None


class ClearTurns(Command[int], frozen=True):
    """Let an agent forget its chat turns; gives how many it had.  Logged.

    Raises:
        UsageError: no such agent, its turns are in a channel, or a thread that was not started yet.
        ThreadBusy: the thread is running.
    """

    agent: str
    actor: str | None = None
    note: str | None = None


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
    """Undo what the thread's nodes did outside; accepted at once, events tell the rest.

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
