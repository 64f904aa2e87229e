"""Commands: what can be done to a thread, as data.

They are separate from their handlers, so that code that only makes them, such as a screen, does not load
the handlers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

from hitl_tui.declared import Declaration
from hitl_tui.engine.graph.limits import with_limits
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.log.threads import check_thread_id
from hitl_tui.engine.state.values import is_name
from hitl_tui.engine.thread.agent_settings import Settings
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.engine.thread.comments import Comment
from hitl_tui.errors import UsageError, in_words

R = TypeVar("R")
LONGEST_MINUTES: Final = 100 * 366 * 1440
MOST_REASONS: Final = 20
LONGEST_REASON: Final = 100


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Command(
    Declaration, Generic[R], frozen=True, tag_field="command", tag=_snake_case, forbid_unknown_fields=True
):
    """Something to do to a thread; `R` is the type of its result.

    Attributes:
        takes_graph: it needs the thread's graph, so it fails if that can't be built.
        while_held: it can be done while another process runs the thread.
    """

    takes_graph: ClassVar[bool] = True
    while_held: ClassVar[bool] = False
    refusal = UsageError

    def label_in_errors(self) -> str:
        """The verb of the command, as errors name it."""
        return verb(type(self))

    def check(self) -> None:
        """Refuse an empty name: to name nobody, leave the name out."""
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
    """Whether a name is given; a value that is not text is left to the type check."""
    return given is not None and (not isinstance(given, str) or bool(given.strip()))


def verb(command: type[Command[Any]]) -> str:
    """Return the name of a kind of command in JSON, in snapshots and in messages, such as "update_state"."""
    return str(command.__struct_config__.tag)


class Start(Command[int], frozen=True):
    """Commit the input of a run as a step, through the reducers, without running anything; returns the step.

    A new thread starts at its entry node. So does one that is completed or cancelled, and any thread with
    `from_entry`: that is a new invocation on the current state.

    Args:
        context: read-only data of a new invocation, for its nodes, routes and tools; one that continues keeps
            its own, and takes no other.
        unattended: an unattended run follows at once. On a LangGraph server that run takes the input.
    """

    inputs: Mapping[str, Any] = {}
    actor: str | None = None
    from_entry: bool = False
    context: Mapping[str, Any] | None = None
    unattended: bool = False

    def check(self) -> None:
        """Refuse an input that is not a dict."""
        super().check()
        if not isinstance(self.inputs, Mapping):
            raise UsageError(f"the input is {in_words(self.inputs)}", 'give a dict, as {"task": "…"}')


class UpdateState(Command[int], frozen=True):
    """Set channel values as one new step, without reducers; returns the step.

    Pending requests are kept and bound to the new step. With `as_node` the cursor moves to that node's
    successor, and requests are withdrawn, since the thread has left the place where they were asked.

    Args:
        expected_step: the head when the edit was made; the edit is refused if the head is another step now. A
            preview shows the edit at this step, the head or a past one.
        as_node: continue as if this node had just run.
        seen: the hash of the state that was shown to the person who edits.

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
    """Raise limits, so that a thread that one has stopped can continue; logged.

    Args:
        limits: named as in `Limits`; None removes a limit.
        seen: the hash of the state that was shown to the person who decides.

    Raises:
        UsageError: no such limit, or a value that is not allowed for it.
    """

    limits: Mapping[str, int | float | str | None]
    actor: str | None = None
    note: str | None = None
    seen: bytes = b""

    def check(self) -> None:
        """Refuse limits that do not exist, and values that are not allowed."""
        super().check()
        if not isinstance(self.limits, Mapping):
            raise UsageError(f"limits is {in_words(self.limits)}", 'give a dict, as {"max_tokens": 5000}')
        with_limits(Limits(), self.limits)


class Cancel(Command[None], frozen=True):
    """End a thread as cancelled(user), and stop the node that runs.

    A new invocation or a fork can continue from it.

    Args:
        seen: the hash of the state that was shown to the person who decides.

    Raises:
        UsageError: it is completed or cancelled already.
    """

    takes_graph: ClassVar[bool] = False
    actor: str | None = None
    note: str | None = None
    seen: bytes = b""


class Answer(Command[int], frozen=True):
    """Answer a pending request that is bound to `step`; returns the head after it.

    Deadlines that have passed are applied first, so a late answer is refused.

    Args:
        seen: the hash of the state that was shown to the person who answers; refused if it is another one
            now.
        comments: on passages of the subject, in the order of its text; the ledger keeps them, and they become
            part of the answer's text.
        policy: which rule of which policy has answered in the name of `actor`, by names and hashes, for the
            ledger; empty if the person decided.
        reasons: the ids of reasons picked from a list, which the ledger keeps to be counted.
        scores: by criterion of the gate's rubric, from 1 to 5; the ledger keeps them.

    Raises:
        AnswerRefused: late, unknown, duplicate, stale or unauthorised; only the refusal was stored.
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
    reasons: tuple[str, ...] = ()
    scores: Mapping[str, int] = {}

    def check(self) -> None:
        """Refuse reasons that nobody could read or count."""
        super().check()
        check_reasons(verb(type(self)), self.reasons)


def check_reasons(command: str, given: object) -> None:
    """Refuse reasons that nobody could read or count; raises `UsageError`."""
    if not isinstance(given, tuple) or not all(isinstance(reason, str) for reason in given):
        return  # the type check refuses it
    if len(given) > MOST_REASONS or len(set(given)) != len(given):
        raise UsageError(f"{command}: {len(given)} reasons", f"give each once, at most {MOST_REASONS}")
    for reason in given:
        if not is_name(reason) or len(reason) > LONGEST_REASON or not reason.isprintable():
            raise UsageError(
                f"{command}: the reason {reason!r:.60} can't be counted",
                f"give one line of at most {LONGEST_REASON} characters",
            )


class ReadAgain(Command[None], frozen=True):
    """Decide an answered request of the sample again, as its second reader.

    Nothing runs on it: it only measures how far people agree. Whoever reads it must not have seen the first
    answer, so only a question and what it is about are shown for it.

    Args:
        reasons, scores: as for `Answer`.
        seen: the hash of the state that was shown to the person who reads.

    Raises:
        AnswerRefused: the request is not in the sample, has no answer of a person, has been read again, or
            `actor` has given the first answer or may not answer it.
        SigningFailed: nothing was stored.
    """

    takes_graph: ClassVar[bool] = False
    request_id: str
    value: Any
    actor: str
    note: str | None = None
    seen: bytes = b""
    reasons: tuple[str, ...] = ()
    scores: Mapping[str, int] = {}

    def check(self) -> None:
        """Refuse reasons that nobody could read or count."""
        super().check()
        check_reasons(verb(type(self)), self.reasons)


class LookAt(Command[None], frozen=True):
    """Show others that a person has the card of a request open, until they open another one; "" closes it.

    The driver repeats this while its process lives. Nothing is decided, and nothing is logged.
    """

    takes_graph: ClassVar[bool] = False
    request_id: str
    actor: str


class Claim(Command[int], frozen=True):
    """Claim a pending request for a while: no other answer to it counts; returns when the claim ends (us).

    The claim is for the request as it is now: the same question about another step is not claimed. If the
    same person claims it again, the time starts again.

    Args:
        minutes: for how long.
        lasts: it lasts for the whole time even if this process ends; otherwise it ends with the process.
        take_over: the person whose claim it replaces, which the ledger keeps; "" for nobody's.

    Raises:
        AnswerRefused: no such request, somebody else has claimed it, or `actor` may not answer it.
    """

    takes_graph: ClassVar[bool] = False
    request_id: str
    actor: str
    minutes: float = 15
    lasts: bool = False
    take_over: str = ""
    note: str | None = None


class Unclaim(Command[bool], frozen=True):
    """Release a claim; returns whether there was one.

    Args:
        left: its card was closed without a decision, so a claim with `lasts` stays.

    Raises:
        AnswerRefused: it is somebody else's.
    """

    takes_graph: ClassVar[bool] = False
    request_id: str
    actor: str
    left: bool = False


class HandOver(Command[None], frozen=True):
    """Hand a pending request over to a person by name: it becomes theirs, though others can still answer it.

    The claim of the person who hands it over is released.

    Args:
        step: the step that it is about; refused if it is another one.
        to: who is to decide.
        note: why, for that person.

    Raises:
        AnswerRefused: no such request, it is about another step, somebody else has claimed it, or `actor` may
            not answer it.
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
        """Refuse to hand it over to nobody."""
        if not _is_name(self.to) or not _is_name(self.actor):
            raise UsageError("handing over takes two names", "say who passes it on, and to whom")


class Allow(Command[str], frozen=True):
    """Allow calls of a tool with arguments like these in a thread, until revoked; returns the allowance's id.

    It also answers matching requests that wait already, when the thread continues.

    Args:
        args, exact: as for `Allowance`.
        high_risk: also calls with high risk.
        tainted: also calls by a node that has read untrusted data.
        minutes: for how long; None: until it is revoked.
        seen: the hash of the state that was shown to the person who decides.

    Raises:
        UsageError: no tool or no person is named, or it would never hold.
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
    minutes: float | None = None

    def check(self) -> None:
        """Refuse an allowance that never holds."""
        super().check()
        minutes = self.minutes
        if isinstance(minutes, (int, float)) and not 0 < minutes <= LONGEST_MINUTES:  # nan, too
            raise UsageError(
                f"an allowance can't last {minutes:g} minutes",
                "give minutes above 0, at most 100 years; leave it out to allow until revoked",
            )


class Revoke(Command[None], frozen=True):
    """Revoke an allowance: a person is asked about its calls again.

    Raises:
        UsageError: there is no allowance with this id.
    """

    takes_graph: ClassVar[bool] = False
    allowance: str
    actor: str
    note: str | None = None


class Fork(Command[str], frozen=True):
    """Make a new thread from a committed step; returns its id.

    The parent is not changed, and may be running.

    Args:
        changes: channel values to set as the fork's first step; its route is chosen on these.
        agents: settings of agents, in addition to those in force at `step`.
        as_node: continue as if this node had just run.
        canary: the answer that is wrong in the fork, which its changes make known to be bad. The fork only
            asks what waits at `step`: nothing runs in it. "" for no canary.

    Raises:
        UnknownThread: no such step.
        UsageError: the name is taken, an agent has no such setting, or no request there has the answer of
            the canary.
    """

    while_held: ClassVar[bool] = True
    step: int
    new_thread_id: str
    changes: Mapping[str, Any] | None = None
    agents: Settings | None = None
    actor: str | None = None
    note: str | None = None
    as_node: str | None = None
    canary: str = ""


class Declassify(Command[int], frozen=True):
    """Clear a channel's taint as one new step that changes no value; returns the step.

    Channels that were written from it before stay tainted: clear each one by itself. Requests of a node's
    `on_taint` are withdrawn if they have no tainted channel left; others are bound to the new step.

    Args:
        reason: why its value may be trusted now; kept in the ledger.
        expected_step: the head when it was checked; refused if the head is another step now.
        seen: the hash of the state that was shown to the person who decides.

    Raises:
        UndeclaredChannel: the graph has no such channel.
        UsageError: it is not tainted, or the actor or the reason is missing.
        StaleWriter: the head is not `expected_step`; nothing was stored.
        ThreadBusy: the thread is running.
    """

    channel: str
    actor: str
    reason: str
    expected_step: int | None = None
    seen: bytes = b""

    def check(self) -> None:
        """Refuse to clear a channel without a name or without a reason."""
        super().check()
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise UsageError("declassifying needs a reason", "say why this may be trusted now")


class Reveal(Command[Any], frozen=True):
    """Return a channel's value at a step (None: the newest), private or not; the ledger keeps who saw it.

    Raises:
        UndeclaredChannel, UnknownThread: no such channel or step.
        UsageError: the actor is missing.
        ThreadBusy: the thread is running, so the ledger can't be written.
    """

    takes_graph: ClassVar[bool] = False
    channel: str
    actor: str
    step: int | None = None
    note: str | None = None


class Note(Command[None], frozen=True):
    """Leave a note on a step, for others to read; kept in the ledger. It changes nothing else.

    Args:
        step: None for the newest.

    Raises:
        UsageError: the note is empty, or the thread has no step yet.
        UnknownThread: no such step.
        ThreadBusy: the thread is running.
        SigningFailed: nothing was stored.
    """

    takes_graph: ClassVar[bool] = False
    text: str
    step: int | None = None
    actor: str | None = None

    def check(self) -> None:
        """Refuse a note that says nothing."""
        super().check()
        if not self.text.strip():
            raise UsageError("the note is empty", "say what is to be read there")


class NoteExport(Command[None], frozen=True):
    """Note in the ledger who exports the values of private channels from the store, and where to.

    Raises:
        UsageError: the actor is missing.
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
        agents: settings by agent; None resets one to the graph's value.

    Raises:
        UsageError: no such agent or setting, or the thread has not been started yet.
        ThreadBusy: the thread is running.
    """

    agents: Settings
    actor: str | None = None
    note: str | None = None


class ClearTurns(Command[int], frozen=True):
    """Clear the chat turns of an agent; returns how many it had. Logged.

    Raises:
        UsageError: no such agent, its turns are in a channel, or the thread has not been started yet.
        ThreadBusy: the thread is running.
    """

    agent: str
    actor: str | None = None
    note: str | None = None


class Step(Command[None], frozen=True):
    """Run one node. The command returns at once; events report the run.

    Args:
        into: for a subgraph's node: start its thread, and pause that before its first node.
        breakpoints: those inside the node, and after it.

    Raises:
        BreakpointInvalid: as for `Run`.
    """

    into: bool = False
    breakpoints: tuple[Breakpoint, ...] = ()


class Run(Command[None], frozen=True):
    """Run until the thread waits, fails or ends, or a breakpoint stops it. The command returns at once.

    Args:
        breakpoints: of this run; hits of each are counted as long as the thread is open here.
        unattended: nobody is there to pause it between two nodes. On a LangGraph server it is then a single
            run of the server.

    Raises:
        BreakpointInvalid: no such place, or an expression that can't be read.
    """

    breakpoints: tuple[Breakpoint, ...] = ()
    unattended: bool = False


class Pause(Command[str], frozen=True):
    """Stop at the next node boundary, in subgraphs as well; returns who still runs the thread, "" for nobody.

    Args:
        actor, note: who asks and why; recorded if another process runs the thread.
        wait: the most seconds to wait for another process to pause it; the request stays.
    """

    takes_graph: ClassVar[bool] = False
    while_held: ClassVar[bool] = True
    actor: str | None = None
    note: str | None = None
    wait: float = 0.0


class CancelAttempt(Command[None], frozen=True):
    """Stop the node that runs, even in a model call; the thread then waits before that node."""

    takes_graph: ClassVar[bool] = False


DoubleTexting: TypeAlias = Literal["enqueue", "interrupt", "rollback"]


class DoubleText(Command[None], frozen=True):
    """End, or wait for, a run of somebody else on a LangGraph server, so that this thread can be run.

    It starts no run itself.

    Args:
        strategy: "enqueue" waits until that run has ended, "interrupt" stops it and keeps what it has saved,
            "rollback" stops it and removes what it has saved.
        actor, note: who asks for that and why, for the ledger; "enqueue" is not recorded.
    """

    takes_graph: ClassVar[bool] = False
    strategy: DoubleTexting
    actor: str | None = None
    note: str | None = None


class Rollback(Command[None], frozen=True):
    """Undo the side effects of the thread's nodes. The command returns at once; events report the rollback.

    Raises:
        ThreadBusy: the thread is running.
    """

    actor: str | None = None
    note: str | None = None


class PrepareGraph(Command[None], frozen=True):
    """Build the thread's graph, as every command that runs or changes the thread does first.

    A thread can be viewed without its graph.

    Raises:
        GraphInvalid, UsageError: it can't be built.
    """

    while_held: ClassVar[bool] = True


class Rerun(Command[str], frozen=True):
    """Fork the thread after the last step that the current code would not change; returns the fork's id.

    The fork uses the current code, and waits to be run; this thread is not changed. `audit.rerun` finds the
    step.

    Raises:
        UsageError: nothing would run again, or the name is taken.
        GraphInvalid: the graph can't be built.
    """

    takes_graph: ClassVar[bool] = False
    new_thread_id: str
    actor: str | None = None
    note: str | None = None


class ReloadGraph(Command[tuple[str, ...]], frozen=True):
    """Continue with the graph as its file is now; returns a description of the differences.

    Raises:
        ThreadBusy: the thread is running, here or elsewhere.
        GraphInvalid: the graph can't be built, or the thread can't continue with it.
    """

    takes_graph: ClassVar[bool] = False
    actor: str | None = None


class WriteTest(Command[str], frozen=True):
    """Write a pytest of a recorded step, as text; nothing is run.

    Args:
        step: None for the newest one, or for the node that failed after it.
        graph: names the graph, if the thread's record does not.
        private: the text may have private values; the ledger keeps who took them.

    Raises:
        UsageError: no test can be made of it; says why.
    """

    takes_graph: ClassVar[bool] = False
    step: int | None = None
    graph: str = ""
    private: bool = False
    actor: str | None = None

    def check(self) -> None:
        """Refuse to take private values for nobody."""
        super().check()
        if self.private and self.actor is None:
            raise UsageError("a test with private values takes a name", "give your name as `actor`")
