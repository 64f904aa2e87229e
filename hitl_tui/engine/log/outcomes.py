"""What became of work: errors, model calls, branches of maps, parallels and subgraphs.

Units are those of `records`.

Specified in docs/spec/branches.md and docs/spec/log.md.
"""

from base64 import b64decode
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

import msgspec

from hitl_tui.declared import Declaration
from hitl_tui.engine.log.requests import When
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.log.units import MESSAGE, Duration, Maybe, about
from hitl_tui.errors import ValueRejected

_MOST_TOKENS = 1 << 53
BranchStatus = Literal["ok", "failed", "cancelled", "unneeded"]


class LocalValue(msgspec.Struct, frozen=True):
    """What a local held when its frame was left, as text."""

    name: Annotated[str, about("The local.")]
    text: Annotated[str, about("Its value, bounded; `[private]` where a private channel has it.")]


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A frame of the user's code, or how many of a library's stood in its place.

    Args:
        file: "" where it is of a library.
        first: the number of the first of `lines`.
    """

    file: Annotated[Maybe, about("The file; null for frames of a library.")] = ""
    line: Annotated[int, about("The line that it stood at.")] = 0
    function: Annotated[Maybe, about("The function with its parameters.")] = ""
    first: Annotated[int, about("The number of the first of `lines`.")] = 1
    lines: Annotated[tuple[str, ...], about("Source lines around it, as they were.")] = ()
    values: Annotated[tuple[LocalValue, ...], about("What its locals held.")] = ()
    library: Annotated[Maybe, about("The library whose frames stand here.")] = ""
    count: Annotated[int, about("How many frames of it.")] = 0


class ErrorInfo(msgspec.Struct, frozen=True):
    """A node's failure as stored and shown; `details` is its traceback, `frames` what of it is the user's."""

    node: Annotated[str, about("The node; empty where none is to blame.")]
    attempt: Annotated[int, about("Its last attempt, from 1.")]
    title: Annotated[str, about("What kind of failure.")]
    message: Annotated[str, about("What was wrong, and where.")]
    hint: Annotated[str, about("How to mend it; empty where there is nothing to say.")] = ""
    details: str = ""
    channel: Annotated[Maybe, about("The channel whose value must be mended.")] = ""
    frames: Annotated[
        tuple[Frame, ...], about("Your frames that led to it, the innermost last, with what locals held.")
    ] = ()


class ModelUse(Declaration, frozen=True):
    """One model call's use; `cost` in US dollars, None where the price is unknown."""

    agent: Annotated[str, about("The agent.")]
    provider: Annotated[str, about("The provider.")]
    model: Annotated[str, about("The model.")]
    tokens_in: Annotated[int, about("Tokens sent.")]
    tokens_out: Annotated[int, about("Tokens written.")]
    cost: Annotated[float | None, about("US dollars; null where the price is unknown.")]

    refusal = ValueRejected

    def check(self) -> None:
        """Refuse what could not be counted."""
        counted = all(0 <= count < _MOST_TOKENS for count in (self.tokens_in, self.tokens_out))
        if not counted or (self.cost is not None and self.cost < 0):
            raise ValueRejected(
                f"{self!r:.200}",
                "tokens are whole numbers and the cost US dollars, None where it is unknown; none is below 0",
            )

    def __post_init__(self) -> None:
        # As it is read back from a store: its hash must come out the same.
        if type(self.cost) is int:
            with suppress(OverflowError):
                msgspec.structs.force_setattr(self, "cost", float(self.cost))


def rough_tokens(text: str) -> int:
    """About how many tokens `text` is: four characters each, the usual rule of thumb."""
    return -(-len(text) // 4)


ESTIMATED: Final = "estimated"
"""The provider of a model call that nobody but its caller knows, so that its tokens are counted roughly."""


class ToolUse(msgspec.Struct, frozen=True):
    """One call of a tool by an agent; `duration` in microseconds.

    Args:
        arguments: what it ran with; text where they could not be read, or are too long to be kept whole.
        result, error: what came of it, cut where it is long; neither is set where a tool gave no text.
        attempt: of the node.
        path: the branch it was made for, "" for a plain node.
        updates: how many updates of channels it made.
    """

    agent: Annotated[str, about("Who called.")]
    tool: Annotated[str, about("What was called.")]
    arguments: Annotated[Any, about("With what; text where it is long.")]
    result: Annotated[str | None, about("What it gave.")] = None
    error: Annotated[str | None, about("What it failed of.")] = None
    duration: Annotated[Duration, about("Seconds.")] = 0
    attempt: Annotated[int, about("The attempt of the node.")] = 1
    path: Annotated[Maybe, about("The branch.")] = ""
    updates: Annotated[int, about("How many updates of channels it made.")] = 0


class StreamedText(msgspec.Struct, frozen=True):
    """What one writer printed or streamed in a step, bounded: its beginning and its end.

    Args:
        agent: who wrote it, "" for the node itself.
        path: the branch it was written in, "" for a plain node.
        attempt: of the node.
        left_out: how many characters between `text` and `end` were not kept.
        replies: of an agent, how many characters of it each answer of its model has, in their order, and how
            many tools that answer calls.
    """

    agent: Annotated[Maybe, about("The agent.")]
    path: Annotated[Maybe, about("The branch.")]
    attempt: Annotated[int, about("The attempt of the node.")]
    text: Annotated[str, about("What was written; where it is long, how it begins.")]
    left_out: Annotated[int, about("Characters behind it that were not kept.")] = 0
    end: Annotated[Maybe, about("How it ends, behind those.")] = ""
    replies: Annotated[
        tuple[tuple[int, int], ...],
        about("Of an agent: a pair each time its model answered, the characters and the calls of tools."),
    ] = ()

    @property
    def size(self) -> int:
        """How many characters of it are kept."""
        return len(self.text) + len(self.end)


class KeptArtifact(msgspec.Struct, frozen=True):
    """What a node gave besides its updates, as it is kept with the step.

    Args:
        body: the text, or the bytes in base64.
        binary: whether it is bytes.
        path: the branch it came from, "" for a plain node.
    """

    name: Annotated[str, about("Its name.")]
    media_type: Annotated[str, about("What it is, as `text/markdown`.")]
    body: str
    binary: Annotated[bool, about("Whether it is bytes in place of text.")] = False
    path: Annotated[Maybe, about("The branch.")] = ""

    @property
    def content(self) -> bytes:
        """What a file with it holds; raises `ValueError` where that was damaged."""
        return b64decode(self.body, validate=True) if self.binary else self.body.encode()


class Compensation(msgspec.Struct, frozen=True):
    """How to undo what a node did: a handler's name and what it is given.

    `path` names the branch it came from, "" for a plain node.
    """

    handler: str
    args: Any = None
    path: str = ""


class KeptAnswer(msgspec.Struct, frozen=True):
    """An answer to a question inside a node, kept until the node is done.

    Args:
        request_hash: of the request that was answered; it is given to no other.
        n: the ledger entry that has it.
        key: the question's own name among those of the node, "" where it has none.
    """

    request_hash: str
    value: Any
    n: int
    key: str = ""


HOLDS: Final = "holds"
"""In the data of an answer to a gate: `PassedGate.holds`, where that is not the hash that was answered."""


HASHED: Final = "hashed"
"""In the data of a request: what its hash covers and the entry does not show by itself."""


class PassedGate(msgspec.Struct, frozen=True):
    """A question before or after a node that has been answered, so that the run may continue.

    Args:
        request_hash: of the request that was answered.
        holds: what its hash must still be when the run continues: that of the same request once the answer's
            own values are set.
        n: the ledger entry that has the answer.
        policy: "on_taint" where it was the node's policy that asked.
    """

    node: str
    when: When
    request_hash: str
    holds: str
    n: int
    policy: Literal["", "on_taint"] = ""


class BranchOutcome(msgspec.Struct, frozen=True):
    """What became of one branch of a map or a parallel, or of a subgraph's run.

    Args:
        path: as in the branch's records: `scan[0]`, `group/member`, `team#1`.
        name: the map's node, the member, or the subgraph's node.
        index: of the item, or in the list of members.
        status: "failed" contributes nothing; "cancelled" was given up while it ran, because others had
            settled the join; "unneeded" had not begun then.
        duration: waits between attempts included.
    """

    path: Annotated[str, about("Its name in the step, as `scan[2]`.")]
    name: Annotated[str, about("What it runs.")]
    index: Annotated[int, about("Its place, from 0.")]
    status: Annotated[BranchStatus, about("How it ended; `unneeded` where the others were enough.")]
    error: Annotated[ErrorInfo | None, MESSAGE, about("What it failed of.")] = None
    attempts: Annotated[int, about("How often it was tried.")] = 0
    duration: Annotated[Duration, about("Seconds.")] = 0
    overridden: Annotated[
        tuple[str, ...], about("Channels in which a later branch replaced what it wrote.")
    ] = ()
    thread: Annotated[Maybe, about("The thread of a subgraph's run.")] = ""


class ChildLink(msgspec.Struct, frozen=True):
    """The thread of a subgraph's run, and how much of its spending its parent has counted.

    `uses` are its model calls, which the parent's step will have: until then they are told from here.
    """

    thread_id: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    cost_known: bool = True
    uses: tuple[ModelUse, ...] = ()


class BranchState(msgspec.Struct, frozen=True):
    """What the cursor keeps of a branch until its step is committed: nothing done or answered is lost.

    Args:
        item: the hash of the branch's item; another item at its place makes a new branch of it.
        answers: what people answered inside it.
        outcome: how it ended, with all it made; None while it has to run (again).
        updates: (channel, update, the tool that made it or ""), in their order.
        child: the thread that a subgraph runs in.
    """

    path: str
    item: str = ""
    answers: tuple[KeptAnswer, ...] = ()
    outcome: BranchOutcome | None = None
    updates: tuple[tuple[str, Any, str], ...] = ()
    text: str = ""
    attempt: int = 1
    read: tuple[str, ...] = ()
    lineage: Lineage | None = None
    compensation: Compensation | None = None
    artifacts: tuple[KeptArtifact, ...] = ()
    child: ChildLink | None = None
